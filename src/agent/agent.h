/*
 * agent: a configured provider of answers, as its kind sees it.
 *
 * agent_ops is what the registry (agents.h) asks of a kind of agent. An agent calls turn_delta and
 * turn_progress of road/turn_run.h and the functions below. A failure ends the turn with a kind, a
 * short notice for the user and the full record for the operator. An agent never repeats a request
 * that may have been acted upon.
 *
 * To add a kind, write a file with its agent_ops and a row in kinds.c.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/settings.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "road/turn_run.h"

struct agent;

struct agent_ops {
        const char *type;               /* as written in the configuration: "openai" */
        const char *help;               /* one sentence */
        unsigned can;                   /* AGENT_* of road/turn_run.h */
        const struct setting *settings; /* its own keys, into a struct of conf_size bytes */
        size_t conf_size;
        /* Checks what the tables cannot express. May be NULL. */
        int (*check)(struct settings_source *src, const char *path, const void *conf,
                     struct error *err);
        int (*open)(struct agent *a, struct error *err); /* may set a->self */
        void (*close)(struct agent *a);
        void (*start)(struct agent *a, struct turn_run *run);
        void (*cancel)(struct agent *a, struct turn_run *run);
        /* Calls agent_health_report, later. NULL: always healthy. */
        void (*check_health)(struct agent *a, void *token);
        /* Abilities that depend on the configuration. NULL: `can`. */
        unsigned (*abilities)(const struct agent *a);
        /* NULL: the agent takes no late replies. */
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

/* The kinds, NULL-terminated. */
extern const struct agent_ops *const agent_kinds[];

/* Abilities of an opened agent. */
unsigned agent_abilities(const struct agent *a);

/*
 * Ends a turn; never before ops->start has returned. Frees run; the agent lives at least until the
 * next round of the loop.
 */
void agent_finish(struct agent *a, struct turn_run *run, const struct turn_reply *reply);

/* What a failed call may have done. */
enum agent_effect {
        EFFECT_NONE,     /* nothing, or asking twice does no harm: another agent may be asked */
        EFFECT_POSSIBLE, /* the agent may have worked on it */
};
/* Ends a turn with a failure, or hands it to the next agent of the failover list. */
void agent_fail(struct agent *a, struct turn_run *run, const struct turn_reply *reply,
                enum agent_effect effect);

/* Keeps the agent open for work that outlives its turns. */
void agent_hold(struct agent *a);
void agent_unhold(struct agent *a);

/*
 * Names the session of this turn for agents with a memory of their own, by the setting `session`.
 * /new changes the name. Yours to free.
 *
 *     conversation     the decision's session; without one a name that is unique to the database
 *                      and to the conversation since its last /new
 *     perUser, perChat, perUserPerChat
 *                      readable: "telegram:tg:7:-100". When several people spoke in one turn, it is
 *                      no person's own: "telegram:tg:*:-100"
 */
char *agent_session(const struct agent *a, const struct turn_run *run);
/* A URL that accepts an answer to this turn for so long; yours to free. NULL: not known yet. */
char *agent_reply_url(const struct agent *a, const struct turn_run *run, int64_t seconds);
/* Hands over an answer that came after the turn had ended, see road/late_reply.h. Copies. */
void agent_late_reply(struct agent *a, int64_t turn, const struct turn_reply *reply);
/* The person who sent the message; 0: unknown. */
int64_t agent_person(const struct agent *a, const struct incoming *in);
/* The result of ops->check_health. */
void agent_health_report(void *token, bool healthy, int64_t latency_ms, const char *why);

#endif
