/*
 * agents_private: the registry's own structures. For agents.c and its chapters only: agent_runs.c
 * (turns), answers.c (what comes later), agent_news.c (what is journaled), session.c (names).
 */
#ifndef AGENT_AGENTS_PRIVATE_H
#define AGENT_AGENTS_PRIVATE_H

#include <sys/queue.h>

#include "agent/agent.h"
#include "agent/agent_queue.h"
#include "agent/answers.h"
#include "agent/breaker.h"
#include "base/map.h"

#define RUN_BUCKETS 256

struct agent_slot {
        struct agent agent; /* first: kinds know only this part */
        struct agents *all;
        struct agent_conf *conf;
        struct agent_health health;
        struct breaker breaker;
        struct queue queue;
        char last_failure[200];
        unsigned holds; /* turns, open checks, and what a kind holds */
        bool retired;
        LIST_ENTRY(agent_slot) next; /* among the retired */
};

enum agent_run_state {
        AGENT_RUN_WAITING, /* for a place at its instance */
        AGENT_RUN_WORKING, /* the instance has it */
        AGENT_RUN_REFUSED, /* about to end: nobody can take it */
};

/* A turn the road has handed over. */
struct agent_run {
        struct queue_entry entry; /* first: the queue knows only this part */
        struct turn_run *run;
        struct agent_slot *on; /* NULL when refused */
        enum agent_run_state state;
        enum breaker_pass pass; /* with which it works */
        unsigned history_count; /* as the road gathered it */
        size_t at;              /* how far down the failover list */
        enum error_kind why;    /* of a refusal */
        char notice[120];
        int64_t tokens_in, tokens_out, cost_microusd; /* of those who had it before */
        struct buf record;                            /* what went wrong so far, for the operator */
        LIST_ENTRY(agent_run) next;
        TAILQ_ENTRY(agent_run) next_refused;
};

struct health_check {
        struct agent_slot *on;
        agents_checked_fn *fn;
        void *arg;
        bool at_once; /* the kind has nothing to ask */
        LIST_ENTRY(health_check) next;
};

struct agents {
        struct loop *loop;
        struct http_client *http;
        char *dir;
        struct map live; /* name -> struct agent_slot */
        LIST_HEAD(, agent_slot) retired;
        LIST_HEAD(agent_run_list, agent_run) running[RUN_BUCKETS]; /* by the turn's number */
        TAILQ_HEAD(, agent_run) refused;
        LIST_HEAD(, health_check) checks;
        struct timer *deferred;
        struct answers answers;
        agents_person_fn *person; /* NULL: nobody is known */
        void *person_ctx;
        LIST_HEAD(, event_write) event_writes; /* being written */
};

/* agents.c */
void agent_slot_release(struct agent_slot *in); /* one hold less */
unsigned agent_slot_abilities(const struct agent_slot *in);

/* agent_runs.c */
void agent_runs_init(struct agents *as);
struct agent_run *agent_runs_find(struct agents *as,
                                  int64_t turn); /* one that waits or works; NULL */
/* The agent is told to stop, if it works; the turn stays open, for agent_finish. */
void agent_runs_stop(struct agent_run *r);
/* What waits at an instance that goes away waits at the new one, or is refused. */
void agent_runs_move(struct agent_slot *from, struct agent_slot *to);
void agent_runs_pump(struct agents *as); /* starts what may start, ends what is refused */
void agent_runs_drop(struct agents *as); /* without a word to the road */

/* agent_news.c: events of the registry in the journal; run and payload members may be NULL. */
void agent_event_circuit(struct agent_slot *in, const char *type);
void agent_event_failover(struct agents *as, const struct turn_run *run, const char *from,
                          const char *to, const char *why);
void agent_events_drop(struct agents *as);

#endif
