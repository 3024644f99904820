/*
 * agents_private: the registry's own structures. For agents.c and its chapters only.
 */
#ifndef AGENT_AGENTS_PRIVATE_H
#define AGENT_AGENTS_PRIVATE_H

#include <sys/queue.h>

#include "agent/agent.h"
#include "agent/answers.h"
#include "base/map.h"

struct instance {
        struct agent agent; /* first: kinds know only this part */
        struct agents *all;
        struct agent_conf *conf;
        struct agent_health health;
        unsigned holds; /* running turns, open checks, and what a kind holds */
        bool retired;
        LIST_ENTRY(instance) next; /* among the retired */
};

/* A turn an instance works on; without an instance, one that is about to be refused. */
struct running {
        struct turn_run *run;
        struct instance *on;
        LIST_ENTRY(running) next;
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
        LIST_HEAD(runnings, running) running;
        LIST_HEAD(checks, check) checks;
        struct timer *chores;
        struct answers answers;
};

#endif
