/*
 * agent: a configured provider of answers, as its kind sees it.
 *
 * agent_ops is what the registry (agents.h) asks of a kind. An agent calls turn_delta and
 * turn_progress (road/turn_run.h) and the functions below. It never repeats a request that may have
 * been acted upon. A failure carries a notice for the user and a record for the operator.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/settings.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "road/turn_run.h"

struct agent;

struct agent_ops {
        const char *type;               /* "openai" */
        const char *help;               /* one sentence */
        unsigned can;                   /* AGENT_* of road/turn_run.h */
        const struct setting *settings; /* into a struct of conf_size bytes */
        size_t conf_size;
        /* What the tables cannot express. May be NULL. */
        int (*check)(struct settings_source *src, const char *path, const void *conf,
                     struct error *err);
        int (*open)(struct agent *a, struct error *err); /* may set a->self */
        void (*close)(struct agent *a);
        void (*start)(struct agent *a, struct turn_run *run);
        void (*cancel)(struct agent *a, struct turn_run *run);
        /* Calls agent_health_report later. NULL: always healthy. */
        void (*check_health)(struct agent *a, void *token);
        /* By configuration. NULL: `can`. */
        unsigned (*abilities)(const struct agent *a);
        /* NULL: takes no late replies. */
        void (*late_replies)(const struct agent *a, struct late_reply_policy *out);
};

struct agent {
        const struct agent_ops *ops;
        const char *name;
        const void *conf; /* filled by ops->settings */
        struct loop *loop;
        struct http_client *http;
        const char *dir; /* the data directory */
        void *self;      /* the kind's own state */
};

/* NULL-terminated. */
extern const struct agent_ops *const agent_kinds[];

unsigned agent_abilities(const struct agent *a);

/*
 * Ends a turn; never before ops->start has returned. Frees run; the agent lives at least until the
 * next round of the loop.
 */
void agent_finish(struct agent *a, struct turn_run *run, const struct turn_reply *reply);

/* What a failed call may have done. */
enum agent_effect {
        EFFECT_NONE,     /* nothing, or asking twice is harmless: another agent may be asked */
        EFFECT_POSSIBLE, /* the agent may have worked on it */
};
/* Ends a turn with a failure, or fails over to the next agent of the list. */
void agent_fail(struct agent *a, struct turn_run *run, const struct turn_reply *reply,
                enum agent_effect effect);

/* Keeps the agent open for work that outlives its turns. */
void agent_hold(struct agent *a);
void agent_unhold(struct agent *a);

/*
 * The session's name, for agents with a memory of their own, by the setting `session`: the
 * decision's session or a name unique to the database and the conversation, or a readable one,
 * "telegram:tg:7:-100" (of several people "telegram:tg:*:-100"). /new changes it. Yours to free.
 */
char *agent_session(const struct agent *a, const struct turn_run *run);
/* A URL that accepts answers to this turn for so long; yours to free. NULL: not known yet. */
char *agent_reply_url(const struct agent *a, const struct turn_run *run, int64_t seconds);
/* An answer that came after the turn had ended, see road/late_reply.h. Copies. */
void agent_late_reply(struct agent *a, int64_t turn, const struct turn_reply *reply);
/* 0: unknown. */
int64_t agent_person(const struct agent *a, const struct incoming *in);
/* The result of ops->check_health. */
void agent_health_report(void *token, bool healthy, int64_t latency_ms, const char *why);

/* ---- health checks over HTTP ---- */

#define HEALTH_PROBE_MS 10000

LIST_HEAD(health_probes, health_probe);

/*
 * Sends the request and calls agent_health_report. Healthy is a status below 300 or one of `also`
 * (ended by 0; may be NULL). request->total_ms 0: HEALTH_PROBE_MS. Drop open probes on close.
 */
void health_probe_start(struct health_probes *all, struct agent *a, void *token,
                        const struct http_request *request, const int *also);
void health_probes_drop(struct health_probes *all);

#endif
