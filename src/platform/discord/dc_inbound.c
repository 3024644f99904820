#include "platform/discord/dc_inbound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_cache.h"
#include "platform/discord/dc_catchup.h"
#include "platform/discord/dc_intake.h"

#define AUTOCOMPLETE 4

struct dc_inbound {
        struct adapter *adapter;
        struct dc_inbound_hooks hooks;
        struct dc_cache *cache;
        struct dc_intake *intake;
        struct dc_catchup *catchup;
        struct dc_gateway *gateway;
};

/* ---- what the gateway tells ---- */

static void on_bot(void *arg, const struct dc_answer *a)
{
        struct dc_inbound *in = arg;

        dc_gateway_bot(in->gateway, a->status, a->result, a->why);
}

static void on_ask(void *arg)
{
        struct dc_inbound *in = arg;

        in->hooks.get(in->hooks.ctx, &(struct dc_get){ "/gateway/bot" }, on_bot, in);
}

static bool is_completion(const struct dc_dispatch *e)
{
        return strcmp(e->type, "INTERACTION_CREATE") == 0 &&
               json_int(e->d, "type", 0) == AUTOCOMPLETE;
}

static void on_event(void *arg, const struct dc_dispatch *e)
{
        struct dc_inbound *in = arg;

        if (is_completion(e)) {
                if (in->hooks.complete)
                        in->hooks.complete(in->hooks.ctx, e->d);
                dc_gateway_committed(in->gateway, e->ticket);
                return;
        }
        if (strcmp(e->type, "GUILD_CREATE") == 0)
                dc_catchup_guild(in->catchup, e->shard, e->d);
        dc_intake_event(in->intake, e);
}

static void on_ready(void *arg, const struct dc_gateway_ready *ready)
{
        struct dc_inbound *in = arg;

        dc_intake_set_self(in->intake, ready->user_id);
        in->hooks.ready(in->hooks.ctx, ready);
}

static void on_gap(void *arg, const struct dc_gateway_ready *ready, int64_t since_ms)
{
        struct dc_inbound *in = arg;
        struct dc_gateway_stats stats;

        dc_gateway_stats(in->gateway, &stats);
        if (ready->resumed)
                dc_catchup_resumed(in->catchup, ready->shard, stats.shards, since_ms);
        else
                dc_catchup_gap(in->catchup, ready->shard, stats.shards, since_ms);
}

static void on_behind(void *arg, unsigned shard)
{
        struct dc_inbound *in = arg;

        (void)shard;
        dc_catchup_hold(in->catchup);
}

static void on_caught_up(void *arg, unsigned shard)
{
        struct dc_inbound *in = arg;

        dc_gateway_caught_up(in->gateway, shard);
}

static void on_state(void *arg, enum dc_gateway_state state, const char *why)
{
        struct dc_inbound *in = arg;

        in->hooks.state(in->hooks.ctx, state, why);
}

/* ---- life ---- */

static struct dc_gateway *open_gateway(struct dc_inbound *in, const struct dc_inbound_options *o)
{
        static const struct dc_gateway_handlers handlers = { .ask = on_ask,
                                                             .event = on_event,
                                                             .ready = on_ready,
                                                             .gap = on_gap,
                                                             .behind = on_behind,
                                                             .state = on_state };
        const struct dc_gateway_options options = { .loop = o->adapter->loop,
                                                    .http = o->adapter->http,
                                                    .name = o->adapter->name,
                                                    .token = o->token,
                                                    .dir = o->adapter->dir,
                                                    .url = o->gateway_url,
                                                    .intents = o->intents,
                                                    .flags = o->flags,
                                                    .shards = o->shards,
                                                    .compress = o->compress,
                                                    .times = o->times };

        return dc_gateway_new(&options, &handlers, in);
}

struct dc_inbound *dc_inbound_new(const struct dc_inbound_options *o,
                                  const struct dc_inbound_hooks *hooks)
{
        struct dc_inbound *in = mem_zalloc(sizeof(*in));

        in->adapter = o->adapter;
        in->hooks = *hooks;
        in->cache = dc_cache_new();
        in->intake = dc_intake_new(o, hooks, in->cache);
        in->catchup = dc_catchup_new(o, hooks, in->intake, on_caught_up, in);
        in->gateway = open_gateway(in, o);
        dc_intake_set_gateway(in->intake, in->gateway);
        return in;
}

void dc_inbound_free(struct dc_inbound *in)
{
        if (!in)
                return;
        dc_catchup_free(in->catchup);
        dc_intake_free(in->intake);
        dc_gateway_free(in->gateway);
        dc_cache_free(in->cache);
        free(in);
}

void dc_inbound_interaction(struct dc_inbound *in, const json_t *interaction,
                            void (*stored)(void *arg, bool ok), void *arg)
{
        dc_intake_interaction(in->intake, interaction, stored, arg);
}

bool dc_inbound_channel(const struct dc_inbound *in, const char *channel,
                        struct dc_channel_info *out)
{
        return dc_cache_channel(in->cache, channel, out);
}

const char *dc_inbound_user_named(const struct dc_inbound *in, const char *username)
{
        return dc_cache_user_named(in->cache, username);
}

void dc_inbound_stats(const struct dc_inbound *in, struct dc_gateway_stats *out)
{
        dc_gateway_stats(in->gateway, out);
}
