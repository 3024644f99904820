/*
 * interactions: the trigger_ids and response_urls that sl_world.h makes.
 */
#ifndef SIM_SLACK_SL_INTERACTIONS_H
#define SIM_SLACK_SL_INTERACTIONS_H

#include "sim/slack/sl_world.h"

struct slack_trigger {
        struct slack_app *app;
        struct slack_user *user;
        int64_t made_ms;
        bool used;
};

struct slack_hook {
        struct slack_app *app;
        struct slack_channel *channel;
        struct slack_user *user;
        char ts[SL_TS_SIZE], thread_ts[SL_TS_SIZE]; /* of the pressed message; "": a command */
        int64_t made_ms;
        int64_t uses;
};

/* NULL: none. */
struct slack_trigger *sl_trigger_find(const struct slack_world *w, const char *id);
struct slack_hook *sl_hook_find(const struct slack_world *w, const char *secret);

#endif
