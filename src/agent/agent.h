/*
 * agent: a configured provider of answers, as seen by its kind.
 *
 * The registry (agents.h) calls agent_ops. An agent calls turn_delta and turn_progress
 * (road/turn/turn_run.h) and the functions below. It never repeats a request that may have been
 * acted upon. A failure carries a notice for the user and a record for the operator.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "road/turn/turn_run.h"

struct agent;
struct road;
struct store;

/* Where an agent's commands run, for status and doctor. Borrowed. */
struct agent_sandbox {
        const char *kind;    /* "bwrap" */
        const char *problem; /* why they are refused; NULL: none is known */
};

/* A command of the schedule, see builtin/check_run.h. Borrowed. */
struct agent_check {
        const char *adapter, *channel; /* whose files it sees */
        const char *command;           /* for bash -c */
        int64_t seconds;
};
/* output: what it printed, of a failed one also to stderr; borrowed. err: it did not end itself. */
typedef void agent_check_fn(void *arg, int exit_code, const char *output, const struct error *err);

struct agent_ops {
        const char *type;               /* "openai" */
        const char *help;               /* one sentence */
        unsigned can;                   /* AGENT_* of road/turn/turn_run.h */
        const struct setting *settings; /* of a struct with conf_size bytes */
        size_t conf_size;
        /* Checks beyond the tables. May be NULL. */
        int (*check)(struct settings_source *src, const char *path, const void *conf,
                     struct error *err);
        int (*open)(struct agent *a, struct error *err); /* may set a->self */
        void (*close)(struct agent *a);
        void (*start)(struct agent *a, struct turn_run *run);
        void (*cancel)(struct agent *a, struct turn_run *run);
        /* Messages wait behind the turn, see turn_steer. NULL: it takes them at its own steps. */
        void (*waiting)(struct agent *a, struct turn_run *run);
        /* Calls agent_health_report later. NULL: always healthy. */
        void (*check_health)(struct agent *a, void *token);
        /* Depending on the configuration. NULL: `can`. */
        unsigned (*abilities)(const struct agent *a);
        /* Appends members of a JSON object, for the operator's status. May be NULL. */
        void (*status)(const struct agent *a, struct buf *out);
        /* Appends what it runs in a chat beside turns, a sentence each, for /status. May be NULL.
         */
        void (*describe)(const struct agent *a, const char *adapter, const char *channel,
                         struct buf *out);
        /* Where its commands run. NULL: it runs none. */
        void (*sandbox)(const struct agent *a, struct agent_sandbox *out);
        /* Runs a command where its commands run; -1: done is not called. NULL: it runs none. */
        int (*run_check)(struct agent *a, const struct agent_check *check, agent_check_fn *done,
                         void *arg, struct error *err);
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
/* Appends an event that belongs to no turn, such as "agent.network_request"; takes the payload. */
void agent_journal(struct agent *a, const char *type, struct buf *payload);

/* For sandboxes_on_request; agent: a struct agent. */
struct sandbox_request;
void agent_journal_request(void *agent, const struct sandbox_request *q);

/* Side effects of a failed call. */
enum agent_effect {
        EFFECT_NONE,     /* none, or asking twice is harmless: fail over */
        EFFECT_STORED,   /* the steps so far are stored: AGENT_RESUMES goes on from them */
        EFFECT_POSSIBLE, /* the agent may have acted */
};
/*
 * Ends a turn, or fails over to the next agent; never before ops->start has returned. Frees run;
 * the agent stays valid until the next loop iteration. effect: of a failure.
 */
void agent_finish(struct agent *a, struct turn_run *run, const struct turn_reply *reply,
                  enum agent_effect effect);

/* Keeps the agent open for work that outlives its turns. */
void agent_hold(struct agent *a);
void agent_unhold(struct agent *a);

/*
 * The session name for agents with their own memory, by the setting `session`: the decision's
 * session or a name unique to database and conversation, or a readable one, "telegram:tg:7:-100"
 * (several people: "telegram:tg:*:-100"). /new changes it. Yours to free.
 */
char *agent_session(const struct agent *a, const struct turn_run *run);
/* The name of the session's folder; /new does not change it. Yours to free. */
char *agent_session_folder(const struct agent *a, const struct turn_run *run);
/*
 * A folder's name of letters, digits, '-' and '_', because agents paste paths into commands and
 * URLs. Others have other names: a digest is added where the name was changed, and always if
 * anybody could choose it. Yours to free.
 */
char *agent_folder_name(const char *of, bool anybodys);
/* A URL that accepts answers to this turn for that long; yours to free. NULL: not known yet. */
char *agent_reply_url(const struct agent *a, const struct turn_run *run, int64_t seconds);
/* An answer after the turn's end, see road/turn/late_reply.h. Copies. */
void agent_late_reply(struct agent *a, int64_t turn, const struct turn_reply *reply);
/* Of the daemon; NULL before agents_connect. */
struct store *agent_store(const struct agent *a);
struct road *agent_road(const struct agent *a);
/* How long what was said is kept (limits.transcriptDays). */
int64_t agent_transcript_days(const struct agent *a);
/* The time zone of people without their own; NULL: not known yet. */
const char *agent_timezone(const struct agent *a);
/* 0: unknown. */
int64_t agent_person(const struct agent *a, const struct incoming *in);
/* Reports the result of ops->check_health. */
void agent_health_report(void *token, bool healthy, int64_t latency_ms, const char *why);

/* ---- health checks over HTTP ---- */

#define HEALTH_PROBE_MS 10000

LIST_HEAD(health_probes, health_probe);

/*
 * Sends the request and calls agent_health_report. A status below 300 or one of `also`
 * (0-terminated; may be NULL) is healthy. request->total_ms 0: HEALTH_PROBE_MS. Drop open probes on
 * close.
 */
void health_probe_start(struct health_probes *all, struct agent *a, void *token,
                        const struct http_request *request, const int *also);
void health_probes_drop(struct health_probes *all);

#endif
