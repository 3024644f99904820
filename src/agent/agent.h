/*
 * agent: a configured provider of answers.
 *
 * agent_ops is what the registry asks of a kind of agent; turn_delta and turn_progress of road/road.h and agent_finish
 * below are what an agent may tell the road. An agent that fails ends its turn with a kind, a short text for the user
 * and the full record for the operator; it never tries again by itself once a request may have been acted upon.
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

struct agent_ops {
        const char *type;               /* as written in the configuration: "openai" */
        const char *help;               /* one sentence */
        unsigned can;                   /* AGENT_* of road.h */
        const struct setting *settings; /* its own keys, into a struct of conf_size bytes */
        size_t conf_size;
        /* Optional check of what the tables cannot express. */
        int (*check)(struct settings_source *src, const char *path, const void *conf, struct error *err);
        int (*open)(struct agent *a, struct error *err); /* may set a->self */
        void (*close)(struct agent *a);
        void (*start)(struct agent *a, struct turn_run *run);
        void (*cancel)(struct agent *a, struct turn_run *run);
        /* Answers with agent_health_told, later. NULL: always healthy. */
        void (*check_health)(struct agent *a, void *token);
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

/* How an agent ends a turn: counts it, calls turn_finish, and lets a replaced agent go once its last turn has ended. Never
 * before the start hook has returned. Both run and what the agent keeps for it are done with; a lives at least until the
 * loop's next round. */
void agent_finish(struct agent *a, struct turn_run *run, const struct turn_reply *reply);

/* ---- configuration ---- */

struct agent_conf {
        char *name;
        const struct agent_ops *ops;
        void *conf;
        json_t *raw; /* as written, to see what a reload changes */
};
/* Reads one member of "agents". */
struct agent_conf *agent_conf_read(struct settings_source *src, const char *name, const json_t *object,
                                   struct error *err);
/* A built-in default: kind `type` with these settings (json object text). */
struct agent_conf *agent_conf_make(const char *name, const char *type, const char *json, struct error *err);
void agent_conf_free(struct agent_conf *c);

/* ---- the registry: implements the road's agent hooks ---- */

struct agents;
struct agents *agents_new(struct loop *l, struct http_client *http, const char *dir);
/* Turns still running are stopped without a word to the road; drain and close the road first (it cancels its own). */
void agents_free(struct agents *as);
/* Makes the running agents equal to these: starts what is new, replaces what changed (running turns finish on the old
 * one), stops what is gone. Takes the confs over in any case and leaves NULLs in the caller's array. On an error nothing
 * has changed. */
int agents_apply(struct agents *as, struct agent_conf **confs, size_t count, struct error *err);
unsigned agents_abilities(void *agents, const char *agent);
void agents_start(void *agents, struct turn_run *run);
void agents_cancel(void *agents, struct turn_run *run);
bool agents_has(struct agents *as, const char *name);

struct agent_health {
        bool known, healthy;
        int64_t latency_ms;
        int64_t checked_ms; /* wall clock */
        char why[160];
        uint64_t turns, failures;
};
/* Visits every agent with what is known of it. */
void agents_each(struct agents *as,
                 void (*fn)(void *arg, const struct agent *a, const struct agent_health *h), void *arg);
/* Asks the agent; fn is called once, later. ERR_MISSING at once for an unknown name. */
typedef void agents_checked_fn(void *arg, const struct agent_health *h);
int agents_check(struct agents *as, const char *name, agents_checked_fn *fn, void *arg, struct error *err);
void agent_health_told(void *token, bool healthy, int64_t latency_ms, const char *why);

#endif
