#include "platform/discord/dc_channel_lookup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "platform/discord/dc_id.h"

#define TRIES        8 /* most of a minute */
#define RETRY_MS     500
#define RETRY_MAX_MS 10000

/* One channel that is being looked up: first the channel, then perhaps the bot's roles. */
struct channel_query {
        struct dc_channel_lookup *lookup;
        char *channel, *guild;
        unsigned tries;
        bool wants_roles;
        struct timer *retry;
        LIST_ENTRY(channel_query) next;
};

struct dc_channel_lookup {
        struct adapter *adapter;
        struct dc_intake_hooks hooks;
        struct dc_cache *cache;
        bool role_mentions;
        char *self;
        dc_channel_lookup_fn *done;
        void *arg;
        LIST_HEAD(, channel_query) queries;
};

static void send_query(void *query);

static void query_free(struct channel_query *q)
{
        timer_free(q->retry);
        free(q->channel);
        free(q->guild);
        free(q);
}

static bool needs_roles(const struct dc_channel_lookup *l, const char *guild)
{
        return l->role_mentions && l->self && dc_id_valid(guild) &&
               !dc_cache_knows_roles(l->cache, guild);
}

static void finish(struct channel_query *q, bool known)
{
        LIST_REMOVE(q, next);
        q->lookup->done(q->lookup->arg, q->channel, known);
        query_free(q);
}

/* Without a guild there is nothing to fall back on: retries for ever. */
static bool retry(struct channel_query *q, const struct dc_answer *a)
{
        int64_t ms = backoff_ms(q->tries++, RETRY_MS, RETRY_MAX_MS);

        if (!dc_rest_is_unavailable(a) || (q->guild && q->tries >= TRIES))
                return false;
        if (!q->retry)
                q->retry = timer_new(q->lookup->adapter->loop, send_query, q);
        timer_start(q->retry, ms);
        return true;
}

static void on_channel(void *arg, const struct dc_answer *a)
{
        struct channel_query *q = arg;
        struct dc_channel_lookup *l = q->lookup;

        if (retry(q, a))
                return;
        if (a->status == 200) {
                dc_cache_add(l->cache, q->guild, a->result);
                if (!q->guild)
                        q->guild = mem_strdup(json_str(a->result, "guild_id", NULL));
        } else if (q->guild) {
                json_t *plain = json_pack("{s:s, s:i}", "id", q->channel, "type", DC_TYPE_TEXT);

                log_info("cannot look up channel; treating it as a plain one",
                         LOG_S("adapter", l->adapter->name), LOG_S("channel", q->channel),
                         LOG_S("why", a->why));
                if (!dc_rest_is_unavailable(a)) /* else it is asked for again next time */
                        dc_cache_add(l->cache, q->guild, plain);
                json_decref(plain);
        }
        if (!needs_roles(l, q->guild)) {
                finish(q, a->status == 200 || q->guild);
                return;
        }
        q->wants_roles = true;
        q->tries = 0;
        send_query(q);
}

static void on_roles(void *arg, const struct dc_answer *a)
{
        struct channel_query *q = arg;
        struct dc_channel_lookup *l = q->lookup;

        if (retry(q, a))
                return;
        if (a->status != 200)
                log_info("cannot look up the bot's roles; assuming none",
                         LOG_S("adapter", l->adapter->name), LOG_S("guild", q->guild),
                         LOG_S("why", a->why));
        if (!dc_rest_is_unavailable(a))
                dc_cache_set_roles(l->cache, q->guild,
                                   a->status == 200 ? json_object_get(a->result, "roles") : NULL);
        finish(q, true);
}

static void send_query(void *query)
{
        struct channel_query *q = query;
        const struct dc_intake_hooks *hooks = &q->lookup->hooks;
        const struct dc_get channel = { "/channels/{channel_id}", { q->channel } },
                            roles = { "/guilds/{guild_id}/members/{user_id}",
                                      { q->guild, q->lookup->self } };

        if (q->wants_roles)
                hooks->get(hooks->ctx, &roles, on_roles, q);
        else
                hooks->get(hooks->ctx, &channel, on_channel, q);
}

bool dc_channel_lookup_has(const struct dc_channel_lookup *l, const char *channel,
                           const char *guild)
{
        struct dc_channel_info known;

        return dc_cache_channel(l->cache, channel, &known) && !needs_roles(l, guild);
}

void dc_channel_lookup_ask(struct dc_channel_lookup *l, const char *channel, const char *guild)
{
        struct channel_query *q;

        LIST_FOREACH(q, &l->queries, next) {
                if (strcmp(q->channel, channel) != 0)
                        continue;
                if (!q->guild)
                        q->guild = mem_strdup(guild);
                return;
        }
        q = mem_zalloc(sizeof(*q));
        q->lookup = l;
        q->channel = mem_strdup(channel);
        q->guild = mem_strdup(guild);
        LIST_INSERT_HEAD(&l->queries, q, next);
        send_query(q);
}

void dc_channel_lookup_set_self(struct dc_channel_lookup *l, const char *user_id)
{
        free(l->self);
        l->self = mem_strdup(user_id);
}

struct dc_channel_lookup *dc_channel_lookup_new(const struct dc_intake_options *o,
                                                const struct dc_intake_hooks *hooks,
                                                struct dc_cache *cache, dc_channel_lookup_fn *done,
                                                void *arg)
{
        struct dc_channel_lookup *l = mem_zalloc(sizeof(*l));

        l->adapter = o->adapter;
        l->hooks = *hooks;
        l->cache = cache;
        l->role_mentions = o->role_mentions;
        l->done = done;
        l->arg = arg;
        LIST_INIT(&l->queries);
        return l;
}

void dc_channel_lookup_free(struct dc_channel_lookup *l)
{
        struct channel_query *q, *after;

        if (!l)
                return;
        for (q = LIST_FIRST(&l->queries); q; q = after) {
                after = LIST_NEXT(q, next);
                query_free(q);
        }
        free(l->self);
        free(l);
}
