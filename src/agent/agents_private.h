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

struct instance {
        struct agent agent; /* first: kinds know only this part */
        struct agents *all;
        struct agent_conf *conf;
        struct agent_health health;
        struct breaker breaker;
        struct queue queue;
        char last_failure[200];
        unsigned holds; /* turns, open checks, and what a kind holds */
        bool retired;
        LIST_ENTRY(instance) next; /* among the retired */
};

enum running_state {
        RUNNING_WAITS,   /* for a place at its instance */
        RUNNING_WORKS,   /* the instance has it */
        RUNNING_REFUSED, /* about to end: nobody can take it */
};

/* A turn the road has handed over. */
struct running {
        struct queue_entry entry; /* first: the queue knows only this part */
        struct turn_run *run;
        struct instance *on; /* NULL when refused */
        enum running_state state;
        enum breaker_pass pass; /* with which it works */
        unsigned history_count; /* as the road gathered it */
        size_t at;              /* how far down the failover list */
        enum error_kind why;    /* of a refusal */
        char notice[120];
        int64_t tokens_in, tokens_out, cost_microusd; /* of those who had it before */
        struct buf record;                            /* what went wrong so far, for the operator */
        LIST_ENTRY(running) next;
        TAILQ_ENTRY(running) next_refused;
};

struct check {
        struct instance *on;
        agents_checked_fn *fn;
        void *arg;
        bool at_once; /* the kind has nothing to ask */
        LIST_ENTRY(check) next;
};

struct agents {
        struct loop *loop;
        struct http_client *http;
        char *dir;
        struct map live; /* name -> struct instance */
        LIST_HEAD(instances, instance) retired;
        LIST_HEAD(runnings, running) running[RUN_BUCKETS]; /* by the turn's number */
        TAILQ_HEAD(, running) refused;
        LIST_HEAD(checks, check) checks;
        struct timer *chores;
        struct answers answers;
        agents_person_fn *person; /* NULL: nobody is known */
        void *person_ctx;
        LIST_HEAD(, news) news; /* being written */
};

/* agents.c */
void instance_let_go(struct instance *in); /* one hold less */
unsigned instance_abilities(const struct instance *in);

/* agent_runs.c */
void runs_init(struct agents *as);
struct running *runs_find(struct agents *as, int64_t turn); /* one that waits or works; NULL */
/* The agent is told to stop, if it works; the turn stays open, for agent_finish. */
void runs_stop(struct running *r);
/* What waits at an instance that goes away waits at the new one, or is refused. */
void runs_move(struct instance *from, struct instance *to);
void runs_chores(struct agents *as); /* starts what may start, ends what is refused */
void runs_drop(struct agents *as);   /* without a word to the road */

/* agent_news.c: events of the registry in the journal; run and payload members may be NULL. */
void news_circuit(struct instance *in, const char *type);
void news_failover(struct agents *as, const struct turn_run *run, const char *from, const char *to,
                   const char *why);
void news_drop(struct agents *as);

#endif
