/*
 * agent: a configured provider of answers.
 *
 * agent_ops is what the registry asks of a kind of agent; turn_delta and turn_progress of
 * road/road.h and agent_finish below are what an agent may tell the road. An agent that fails ends
 * its turn with a kind, a short text for the user and the full record for the operator; it never
 * tries again by itself once a request may have been acted upon.
 *
 * Adding a kind is a file with its agent_ops and a row in kinds.c.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/settings.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "road/road.h"

struct agent;

/* Answers that come beside the call's own, through the turn's reply URL or after its deadline. */
struct reply_terms {
        /* those of a turn that has failed are delivered, else discarded; recorded either way */
        bool deliver_late;
        int64_t max_replies; /* how many answers one turn may have */
};

struct agent_ops {
        const char *type;               /* as written in the configuration: "openai" */
        const char *help;               /* one sentence */
        unsigned can;                   /* AGENT_* of road.h */
        const struct setting *settings; /* its own keys, into a struct of conf_size bytes */
        size_t conf_size;
        /* Optional check of what the tables cannot express. */
        int (*check)(struct settings_source *src, const char *path, const void *conf,
                     struct error *err);
        int (*open)(struct agent *a, struct error *err); /* may set a->self */
        void (*close)(struct agent *a);
        void (*start)(struct agent *a, struct turn_run *run);
        void (*cancel)(struct agent *a, struct turn_run *run);
        /* Answers with agent_health_report, later. NULL: always healthy. */
        void (*check_health)(struct agent *a, void *token);
        /* When the configuration decides; NULL: `can`. */
        unsigned (*abilities)(const struct agent *a);
        /* What becomes of answers posted to a reply URL; NULL: there are none. */
        void (*reply_terms)(const struct agent *a, struct reply_terms *out);
};

/* One configured agent. */
struct agent {
        const struct agent_ops *ops;
        const char *name;
        const void *conf; /* the ops' struct, filled from its table */
        struct loop *loop;
        struct http_client *http;
        const char *dir; /* the data directory */
        void *self;      /* the kind's own state */
};

extern const struct agent_ops *const agent_kinds[]; /* NULL-terminated: the table of kinds */

/*
 * How an agent ends a turn: counts it, calls turn_finish, and lets a replaced agent go once its
 * last turn has ended. Never before the start hook has returned. Both run and what the agent keeps
 * for it are done with; a lives at least until the loop's next round.
 */
void agent_finish(struct agent *a, struct turn_run *run, const struct turn_reply *reply);

/* What a call that failed may have done. */
enum agent_effect {
        /* nothing: the request was certainly not acted upon, or asking twice does no harm */
        EFFECT_NONE,
        EFFECT_POSSIBLE, /* the agent may have worked on it */
};
/* The same for a failure; only where it had no effect may another agent be asked instead. */
void agent_fail(struct agent *a, struct turn_run *run, const struct turn_reply *reply,
                enum agent_effect effect);

/* An agent with work that outlives its turns stays open while it is held. */
void agent_hold(struct agent *a);
void agent_unhold(struct agent *a);
/*
 * What an agent that remembers by itself knows this turn's memory by, as its setting `session`
 * says; after /new it is another one. Yours to free.
 *
 *     conversation     the session of the decision, or else a name of its own, which is never that
 *                      of another conversation: not of another database, nor of the same chat
 *                      before it began anew
 *     perUser, perChat, perUserPerChat
 *                      a name that says whose it is: "telegram:tg:7:-100". What several people said
 *                      in one turn is no person's own: "telegram:tg:*:-100"
 */
char *agent_session(const struct agent *a, const struct turn_run *run);
/*
 * Where this turn can be answered by a POST, for so long; yours to free. NULL while there is no
 * such place.
 */
char *agent_reply_url(const struct agent *a, const struct turn_run *run, int64_t seconds);
/*
 * An answer that came after its turn had ended: delivered or discarded as reply_terms say, recorded
 * either way. Copies.
 */
void agent_late(struct agent *a, int64_t turn, const struct turn_reply *reply);

/* The person who sent it, when that is known; else 0. */
int64_t agent_person(const struct agent *a, const struct incoming *in);

/* ---- configuration ---- */

/* Settings of every kind. */
struct agent_common {
        int64_t concurrency; /* 0: no limit of its own */
        int64_t queue;
        struct setting_list failover;
        int64_t breaker_failures, breaker_seconds;
        char *session; /* how agent_session names it */
        bool session_bare;
};
extern const struct setting agent_common_settings[];

struct agent_conf {
        char *name;
        const struct agent_ops *ops;
        struct agent_common common;
        void *conf;
        json_t *raw; /* as written, to see what a reload changes */
};
/* Reads one member of "agents". */
struct agent_conf *agent_conf_read(struct settings_source *src, const char *name,
                                   const json_t *object, struct error *err);
/* A built-in default: kind `type` with these settings (json object text). */
struct agent_conf *agent_conf_make(const char *name, const char *type, const char *json,
                                   struct error *err);
void agent_conf_free(struct agent_conf *c);

/* ---- the registry: implements the road's agent hooks ---- */

struct agents;
struct agents *agents_new(struct loop *l, struct http_client *http, const char *dir);
/*
 * Turns still running are stopped without a word to the road; drain and close the road first (it
 * cancels its own).
 */
void agents_free(struct agents *as);
/*
 * Makes the running agents equal to these: starts what is new, replaces what changed (running turns
 * finish on the old one), stops what is gone. Takes the confs over in any case and leaves NULLs in
 * the caller's array. On an error nothing has changed.
 */
int agents_apply(struct agents *as, struct agent_conf **confs, size_t count, struct error *err);
unsigned agents_abilities(struct agents *as, const char *agent);
void agents_start(struct agents *as, struct turn_run *run);
void agents_cancel(struct agents *as, struct turn_run *run);
bool agents_has(struct agents *as, const char *name);

/*
 * Where answers beside a call's own are looked up and go: for reply URLs. Reads or makes the secret
 * of their tokens, so it blocks.
 */
struct agents_outlet {
        struct store *store;
        struct bus *bus;
        struct road *road;
        void (*put)(struct road *r, const struct outgoing *out, outbox_ack_fn *ack,
                    void *arg); /* outbox_submit */
};
int agents_set_outlet(struct agents *as, const struct agents_outlet *outlet, struct error *err);
/* How the API is reached ("https://bot.example.org"), for reply URLs. */
void agents_set_reply_base(struct agents *as, const char *url);

/* Who somebody on a platform is known to be, over all of them; 0: not known. */
typedef int64_t agents_person_fn(void *ctx, const char *platform, const char *user);
void agents_set_persons(struct agents *as, agents_person_fn *fn, void *ctx);

enum reply_outcome {
        REPLY_ENDED,     /* it ended the turn */
        REPLY_DELIVERED, /* a further message, stored as a delivery */
        REPLY_DISCARDED, /* recorded, not delivered; why says why */
        REPLY_DUPLICATE, /* its idempotency key was seen before */
};
const char *agents_replied_name(enum reply_outcome outcome);
struct agents_replied {
        enum reply_outcome outcome;
        int64_t delivery; /* 0: none */
        char why[100];
        /* kind ERR_NONE when it was taken; ERR_CONFLICT: no further answer is allowed */
        struct error error;
};
typedef void agents_replied_fn(void *arg, const struct agents_replied *r);
/*
 * Is this the token of the turn's reply URL? -1: ERR_REFUSED when it is not, ERR_TIMEOUT when it
 * has expired.
 */
int agents_check_token(const struct agents *as, int64_t turn, const char *token, struct error *err);
/*
 * An answer to a turn from whoever has its token. fn is called once, when what became of it is
 * stored; -1 at once as agents_check_token. key: the caller's idempotency key, may be NULL.
 */
int agents_reply(struct agents *as, int64_t turn, const char *token, const char *key,
                 const struct turn_reply *reply, agents_replied_fn *fn, void *arg,
                 struct error *err);

struct agent_health {
        bool known, healthy;
        int64_t latency_ms;
        int64_t checked_ms; /* wall clock */
        char why[160];
        uint64_t turns, failures;
        size_t running, waiting;  /* turns it works on, and those that wait for a place */
        const char *circuit;      /* "closed", "open", "half-open" */
        bool circuit_open;        /* not closed: it failed too often */
        int64_t in_a_row;         /* failures since the last success */
        uint64_t opened;          /* how often the circuit opened */
        int64_t retry_ms;         /* until an open one lets somebody through */
        const char *last_failure; /* "" when there was none */
};
/* Visits every agent with what is known of it. */
void agents_each(struct agents *as,
                 void (*fn)(void *arg, const struct agent *a, const struct agent_health *h),
                 void *arg);
/*
 * Asks the agent; fn is called once, later, at the latest by agents_free. ERR_MISSING at once for
 * an unknown name.
 */
typedef void agents_checked_fn(void *arg, const struct agent_health *h);
int agents_check(struct agents *as, const char *name, agents_checked_fn *fn, void *arg,
                 struct error *err);
void agent_health_report(void *token, bool healthy, int64_t latency_ms, const char *why);

#endif
