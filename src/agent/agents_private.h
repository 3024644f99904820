/*
 * agents_private: the registry's structures.
 */
#ifndef AGENT_AGENTS_PRIVATE_H
#define AGENT_AGENTS_PRIVATE_H

#include <sys/queue.h>

#include "agent/agents.h"
#include "agent/breaker.h"
#include "base/crypto.h"
#include "base/map.h"

#define RUN_BUCKETS 256

TAILQ_HEAD(agent_run_queue, agent_run);
LIST_HEAD(agent_run_list, agent_run);

/* An opened agent. */
struct agent_slot {
        struct agent agent; /* first: kinds see only this */
        struct agents *all;
        struct agent_conf *conf;
        struct agent_health health;
        struct breaker breaker;
        /* FIFO, which is fair: a lane hands over one turn at a time. */
        struct agent_run_queue queue;
        size_t waiting, working;
        char last_failure[200];
        unsigned holds; /* turns, health checks and agent_hold */
        bool retired;
        LIST_ENTRY(agent_slot) next; /* in the list of retired slots */
};

enum agent_run_state {
        AGENT_RUN_WAITING, /* in its slot's queue */
        AGENT_RUN_WORKING, /* the agent has it */
        AGENT_RUN_REFUSED, /* in agents->refused, about to end */
};

/* A turn handed over by the road. */
struct agent_run {
        struct turn_run *run;
        struct agent_slot *slot; /* NULL when refused */
        enum agent_run_state state;
        enum breaker_pass pass; /* WORKING: how the breaker admitted it */
        unsigned history_count; /* as read by the road */
        size_t tried;           /* agents of the failover list */
        unsigned failovers;     /* being stored: it waits for them in its slot's queue */
        bool behind;            /* messages wait, and the agent has not been told */
        bool stored;            /* steps are stored: only for agents that resume */
        enum error_kind why;    /* of a refusal */
        char notice[120];
        struct buf record; /* failures of agents, for the operator */
        TAILQ_ENTRY(agent_run) in_queue;
        LIST_ENTRY(agent_run) next;
};

struct health_check {
        struct agent_slot *slot;
        agents_checked_fn *fn;
        void *arg;
        bool immediate; /* the kind has no check */
        LIST_ENTRY(health_check) next;
};

struct agents {
        struct loop *loop;
        struct http_client *http;
        char *dir;
        struct agents_env env; /* store NULL: not connected yet */
        unsigned char secret[SHA256_SIZE];
        char *reply_base; /* NULL: not known yet */
        int64_t transcript_days;
        char *timezone; /* NULL: not known yet */
        agents_person_fn *person;
        void *person_ctx;
        struct map live; /* name -> struct agent_slot */
        LIST_HEAD(, agent_slot) retired;
        struct agent_run_list runs[RUN_BUCKETS]; /* by turn number */
        struct agent_run_queue refused;
        size_t behind; /* runs with that flag */
        LIST_HEAD(, health_check) checks;
        LIST_HEAD(, event_write) event_writes;
        /* for work not allowed in a caller's callback */
        struct timer *deferred;
};

/* The timer then closes it if retired and without holds. */
void agent_slot_release(struct agent_slot *s);
/* Records the result of a health check or a turn. latency_ms -1: not measured. */
void agent_slot_observe(struct agent_slot *s, bool healthy, int64_t latency_ms, const char *why);

/* agent_runs.c */
/* Moves waiting turns of a retiring slot to its replacement, or refuses them (to NULL). */
void agent_runs_move(struct agent_slot *from, struct agent_slot *to);
/* Starts waiting turns and ends refused ones; called by the timer. */
void agent_runs_pump(struct agents *as);
void agent_runs_drop(struct agents *as);

/*
 * reply_token.c: the key to a turn's reply URL, "EXPIRY.MAC": an HMAC over turn and expiry, so it
 * survives a restart without being stored.
 */
#define REPLY_TOKEN_SIZE 80

/* expiry: wall clock, in seconds. */
void reply_token_write(const unsigned char secret[SHA256_SIZE], const char *turn, int64_t expiry,
                       char out[REPLY_TOKEN_SIZE]);
/* -1: ERR_REFUSED, or ERR_TIMEOUT if expired. */
int reply_token_check(const unsigned char secret[SHA256_SIZE], const char *turn, const char *token,
                      int64_t now, struct error *err);

#endif
