/*
 * agents_private: the structures of the registry. For agents.c, agent_runs.c (turns),
 * agent_events.c (the journal) and agent_session.c (session names).
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
        struct agent agent; /* first: kinds know only this part */
        struct agents *all;
        struct agent_conf *conf;
        struct agent_health health;
        struct breaker breaker;
        /*
         * In order of arrival. That is fair, because a lane hands over one turn at a time: the next
         * one of a conversation that was just served is behind all others.
         */
        struct agent_run_queue queue;
        size_t waiting, working;
        char last_failure[200];
        unsigned holds; /* turns, health checks and agent_hold */
        bool retired;
        LIST_ENTRY(agent_slot) next; /* among the retired */
};

enum agent_run_state {
        AGENT_RUN_WAITING, /* in its slot's queue */
        AGENT_RUN_WORKING, /* the agent has it */
        AGENT_RUN_REFUSED, /* in agents->refused, about to end */
};

/* A turn that the road has handed over. */
struct agent_run {
        struct turn_run *run;
        struct agent_slot *slot; /* NULL when refused */
        enum agent_run_state state;
        enum breaker_pass pass; /* WORKING: how the breaker admitted it */
        unsigned history_count; /* as the road gathered it */
        size_t tried;           /* agents of the failover list */
        enum error_kind why;    /* of a refusal */
        char notice[120];
        int64_t tokens_in, tokens_out, cost_microusd; /* of the agents that failed */
        struct buf record;                            /* their failures, for the operator */
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
        agents_person_fn *person;
        void *person_ctx;
        struct map live; /* name -> struct agent_slot */
        LIST_HEAD(, agent_slot) retired;
        struct agent_run_list runs[RUN_BUCKETS]; /* by turn number */
        struct agent_run_queue refused;
        LIST_HEAD(, health_check) checks;
        LIST_HEAD(, event_write) event_writes;
        /* what must not happen inside a caller's callback */
        struct timer *deferred;
};

/* Drops a hold; a retired slot without holds is closed by the timer. */
void agent_slot_release(struct agent_slot *s);

/* agent_runs.c */
/* Moves waiting turns of a slot that goes away to its replacement, or refuses them (to NULL). */
void agent_runs_move(struct agent_slot *from, struct agent_slot *to);
/* Starts waiting turns and ends refused ones; by the timer. */
void agent_runs_pump(struct agents *as);
/* Drops all turns without a word to the road. */
void agent_runs_drop(struct agents *as);

/* agent_events.c */
void agent_event_circuit(struct agent_slot *s, const char *type);
void agent_event_failover(struct agents *as, const struct turn_run *run, const char *from,
                          const char *to, const char *why);
void agent_events_drop(struct agents *as);

#endif
