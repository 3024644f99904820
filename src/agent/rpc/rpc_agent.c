/*
 * rpc_agent: the two kinds of agent, "pi" and "omp".
 */
#include <string.h>

#include "agent/rpc/rpc.h"

#define LATE_REPLIES_MAX 100 /* for a turn */

static const char *const while_running[] = { "steer", "followUp", "wait", NULL };

#define CHILD_AT(field) offsetof(struct rpc_conf, child.field)
#define AT(field)       offsetof(struct rpc_conf, field)
/* clang-format off */
#define RPC_SETTINGS                                                                              \
        { "model", SETTING_STRING, "null", 1, 200, .at = AT(model),                                \
          .help = "The model, as `--model` of the program takes it, such as "                      \
                  "`anthropic/claude-sonnet-4-5`." },                                              \
        { "whileRunning", SETTING_CHOICE, "\"steer\"", .choices = while_running,                  \
          .at = AT(while_running),                                                                \
          .help = "What becomes of messages that people write while it works: `steer` (it gets "  \
                  "them before it asks its model again), `followUp` (it gets them when it has "   \
                  "finished what it does, and goes on) or `wait` (they are the next turn)." }
/* clang-format on */

static const struct setting pi_settings[] = {
#define CHILD_COMMAND "[\"pi\"]"
#include "agent/child/child_settings.inc"
#undef CHILD_COMMAND
        RPC_SETTINGS, SETTING_END
};

static const struct setting omp_settings[] = {
#define CHILD_COMMAND "[\"omp\"]"
#include "agent/child/child_settings.inc"
#undef CHILD_COMMAND
        RPC_SETTINGS, SETTING_END
};

/* ---- kinds ---- */

static int open_rpc(struct agent *a, struct error *err)
{
        return child_open(a, &rpc_child_dialect, err);
}

static unsigned abilities(const struct agent *a)
{
        const struct rpc_conf *conf = a->conf;

        return CHILD_CAN | (strcmp(conf->while_running, "wait") == 0 ? 0 : AGENT_STEERS);
}

/* What a background job or an extension makes it say after the turn. */
static void late_replies(const struct agent *a, struct late_reply_policy *out)
{
        (void)a;
        *out = (struct late_reply_policy){ .deliver_failed = true,
                                           .max_replies = LATE_REPLIES_MAX };
}

const struct agent_ops pi_agent = {
        .type = "pi",
        .help = "The coding agent pi, a process for each conversation.",
        .can = CHILD_CAN | AGENT_STEERS,
        .settings = pi_settings,
        .conf_size = sizeof(struct rpc_conf),
        .check = child_check_conf,
        .open = open_rpc,
        .abilities = abilities,
        .late_replies = late_replies,
        CHILD_OPS,
};

const struct agent_ops omp_agent = {
        .type = "omp",
        .help = "The coding agent omp (Oh My Pi), a process for each conversation.",
        .can = CHILD_CAN | AGENT_STEERS,
        .settings = omp_settings,
        .conf_size = sizeof(struct rpc_conf),
        .check = child_check_conf,
        .open = open_rpc,
        .abilities = abilities,
        .late_replies = late_replies,
        CHILD_OPS,
};
