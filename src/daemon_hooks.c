/*
 * The road's hooks: each question goes to whoever can answer it.
 */
#include "daemon_private.h"
#include "dispatch/people/persons.h"

static void hook_decide(void *ctx, const struct incoming *in, struct decision *out)
{
        dispatch_decide(((struct daemon *)ctx)->dispatch, in, out);
}

static bool hook_admit(void *ctx, const struct incoming *in, struct decision *out)
{
        return dispatch_admit(((struct daemon *)ctx)->dispatch, in, out);
}

static unsigned hook_agent_abilities(void *ctx, const char *agent)
{
        return agents_abilities(((struct daemon *)ctx)->agents, agent);
}

static void hook_agent_start(void *ctx, struct turn_run *run)
{
        agents_start(((struct daemon *)ctx)->agents, run);
}

static void hook_agent_cancel(void *ctx, struct turn_run *run)
{
        agents_cancel(((struct daemon *)ctx)->agents, run);
}

static unsigned hook_adapter_abilities(void *ctx, const char *adapter)
{
        return adapters_abilities(((struct daemon *)ctx)->adapters, adapter);
}

static bool hook_adapter_ready(void *ctx, const char *adapter)
{
        return adapters_ready(((struct daemon *)ctx)->adapters, adapter);
}

static void hook_adapter_limits(void *ctx, const char *adapter, struct pace_limits *out)
{
        adapters_limits(((struct daemon *)ctx)->adapters, adapter, out);
}

static bool hook_channel_is_group(void *ctx, const char *adapter, const char *channel)
{
        return adapters_channel_is_group(((struct daemon *)ctx)->adapters, adapter, channel);
}

static int hook_render(void *ctx, const char *adapter, const char *text, struct rendered *out,
                       struct error *err)
{
        return adapters_render(((struct daemon *)ctx)->adapters, adapter, text, out, err);
}

static int hook_caption(void *ctx, const char *adapter, const char *text, struct rendered *out,
                        struct error *err)
{
        return adapters_caption(((struct daemon *)ctx)->adapters, adapter, text, out, err);
}

static void hook_send(void *ctx, const struct delivery *d)
{
        adapters_send(((struct daemon *)ctx)->adapters, d);
}

static void hook_reconcile(void *ctx, const struct delivery *d)
{
        adapters_reconcile(((struct daemon *)ctx)->adapters, d);
}

static void hook_recall(void *ctx, const char *adapter, const char *channel, const char *thread,
                        unsigned limit, channel_history_fn *done, void *arg)
{
        adapters_channel_history(((struct daemon *)ctx)->adapters, adapter, channel, thread, limit,
                                 done, arg);
}

static const char *hook_thread_at(void *ctx, const struct incoming *in)
{
        return adapters_thread_at(((struct daemon *)ctx)->adapters, in);
}

/* Rules and platforms have a say in it. */
static void hook_terms(void *ctx, const char *adapter, const char *rule, enum chat_kind chat,
                       struct turn_terms *out)
{
        adapters_terms(((struct daemon *)ctx)->adapters, adapter, chat, out);
        dispatch_terms(((struct daemon *)ctx)->dispatch, adapter, rule, chat, out);
}

static void hook_ending(void *ctx, const struct turn_run *run, const struct turn_outcome *outcome,
                        struct tx_extra *also)
{
        dispatch_ending(((struct daemon *)ctx)->dispatch, run, outcome, also);
}

static void hook_ended(void *ctx, const struct turn_run *run, const struct turn_outcome *outcome)
{
        dispatch_ended(((struct daemon *)ctx)->dispatch, run, outcome);
}

int64_t daemon_person(void *ctx, const char *platform, const char *user)
{
        return persons_lookup(((struct daemon *)ctx)->policy->persons, platform, user);
}

const struct road_hooks daemon_hooks = {
        .decide = hook_decide,
        .admit = hook_admit,
        .agent_abilities = hook_agent_abilities,
        .agent_start = hook_agent_start,
        .agent_cancel = hook_agent_cancel,
        .adapter_abilities = hook_adapter_abilities,
        .adapter_ready = hook_adapter_ready,
        .adapter_limits = hook_adapter_limits,
        .channel_is_group = hook_channel_is_group,
        .render = hook_render,
        .caption = hook_caption,
        .send = hook_send,
        .reconcile = hook_reconcile,
        .recall = hook_recall,
        .thread_at = hook_thread_at,
        .terms = hook_terms,
        .ending = hook_ending,
        .ended = hook_ended,
};
