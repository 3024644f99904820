/*
 * agents: the registry of configured agents; implements struct road_agents.
 *
 * agents.c opens, replaces and closes agents; agent_runs.c queues turns for them, with circuit
 * breaker and failover.
 */
#ifndef AGENT_AGENTS_H
#define AGENT_AGENTS_H

#include <jansson.h>

#include "agent/agent.h"
#include "bus/bus.h"
#include "store/store.h"

/* ---- configuration ---- */

/* Settings of all kinds. */
struct agent_common {
        int64_t concurrency; /* 0: unlimited */
        int64_t queue;
        struct setting_list failover;
        int64_t breaker_failures, breaker_seconds;
        char *description; /* what it is good at; NULL: not said */
        char *session;     /* see agent_session */
        bool session_bare;
};
extern const struct setting agent_common_settings[];

struct agent_conf {
        char *name;
        const struct agent_ops *ops;
        struct agent_common common;
        void *conf;
        json_t *raw; /* as written, to detect changes */
};
/* One member of "agents". */
struct agent_conf *agent_conf_read(struct settings_source *src, const char *name,
                                   const json_t *object, struct error *err);
/* settings: a JSON object; NULL: defaults. */
struct agent_conf *agent_conf_make(const char *name, const char *type, const char *json,
                                   struct error *err);
void agent_conf_free(struct agent_conf *c);

/* ---- registry ---- */

struct agents;
struct agents *agents_new(struct loop *l, struct http_client *http, const char *dir);
/* Drops running turns; close the road first. */
void agents_free(struct agents *as);
/*
 * Opens new agents, replaces changed ones (their turns finish on the old one), closes the rest.
 * Takes the confs, leaving NULLs. On an error nothing changes.
 */
int agents_apply(struct agents *as, struct agent_conf **confs, size_t count, struct error *err);
bool agents_has(struct agents *as, const char *name);
/* Borrowed; NULL: not said. */
const char *agents_description(const struct agents *as, const char *name);

struct road;
struct agents_env {
        struct store *store;
        struct bus *bus;
        struct road *road;
};
/*
 * Connects the registry to journal and road. Reads or creates the secret for reply tokens and
 * session names; blocks.
 */
int agents_connect(struct agents *as, const struct agents_env *env, struct error *err);
/* Base of reply URLs: "https://bot.example.org". */
void agents_set_reply_base(struct agents *as, const char *url);
void agents_set_transcript_days(struct agents *as, int64_t days);
/* For prompts. NULL: the system's. */
void agents_set_timezone(struct agents *as, const char *name);
/* 0: unknown. */
typedef int64_t agents_person_fn(void *ctx, const char *platform, const char *user);
void agents_set_persons(struct agents *as, agents_person_fn *fn, void *ctx);

/* Slots of struct road_agents. */
unsigned agents_abilities(struct agents *as, const char *agent);
void agent_runs_start(struct agents *as, struct turn_run *run);
void agent_runs_cancel(struct agents *as, struct turn_run *run);
void agent_runs_waiting(struct agents *as, struct turn_run *run);
bool agent_runs_answer(struct agents *as, struct turn_run *run, const struct turn_reply *reply);
void agents_describe(struct agents *as, const char *adapter, const char *channel, struct buf *out);
bool agents_late_replies(struct agents *as, const char *agent, struct late_reply_policy *out);

/*
 * Runs a command in an agent's sandbox. done follows once, later, at the latest in agents_free; -1:
 * it is not called.
 */
int agents_run_check(struct agents *as, const char *agent, const struct agent_check *check,
                     agent_check_fn *done, void *arg, struct error *err);

/* -1: ERR_REFUSED, or ERR_TIMEOUT if expired. */
int agents_check_token(const struct agents *as, int64_t turn, const char *token, struct error *err);

/* ---- health ---- */

struct agent_health {
        bool known, healthy;
        int64_t latency_ms; /* of the last health check; -1: only turns are known */
        int64_t checked_ms; /* wall clock, of the last health check or turn */
        char why[160];
        uint64_t turns, failures;
        size_t running, waiting;  /* turns */
        const char *circuit;      /* "closed", "open", "half-open" */
        bool circuit_open;        /* open or half-open */
        int64_t in_a_row;         /* failures since the last success */
        uint64_t opened;          /* how often the circuit opened */
        int64_t retry_ms;         /* until an open circuit admits a probe */
        const char *last_failure; /* "": none */
};
void agents_each(struct agents *as,
                 void (*fn)(void *arg, const struct agent *a, const struct agent_health *h),
                 void *arg);
/* Calls fn once, later, at the latest in agents_free. ERR_MISSING: unknown name. */
typedef void agents_checked_fn(void *arg, const struct agent_health *h);
int agents_check(struct agents *as, const char *name, agents_checked_fn *fn, void *arg,
                 struct error *err);

#endif
