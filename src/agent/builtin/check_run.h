/*
 * check_run: commands that the schedule runs in an agent's sandbox, outside of turns.
 *
 * No person can be asked, so a command runs only if the agent's policy allows it without asking.
 * It has a sandbox of its own per channel, with the files of that channel.
 */
#ifndef AGENT_BUILTIN_CHECK_RUN_H
#define AGENT_BUILTIN_CHECK_RUN_H

#include <sys/queue.h>

#include "agent/agent.h"
#include "agent/sandbox/sandbox.h"

LIST_HEAD(check_runs, check_run);

struct check_place {
        struct agent *agent;
        struct sandboxes *sandboxes; /* NULL: the agent runs no commands */
        const struct sandbox_conf *conf;
        const struct setting_map *policy;
};

/* -1: done is not called. */
int check_run_start(struct check_runs *all, const struct check_place *place,
                    const struct agent_check *check, agent_check_fn *done, void *arg,
                    struct error *err);
/* The sandboxes are gone: calls done of those that wait. */
void check_runs_drop(struct check_runs *all);

#endif
