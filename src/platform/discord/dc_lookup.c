#include "platform/discord/dc_lookup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "platform/discord/dc_catchup.h"
#include "platform/discord/dc_id.h"

#define TRIES        8 /* about a minute */
#define RETRY_MS     500
#define RETRY_MAX_MS 10000
#define AT_ONCE      4 /* members: more would only age in their queue */
#define HOLDS_MS     60000
#define MEMBERS_MAX  1000 /* beyond it answers are forgotten */

struct channel_query {
        struct dc_lookup *lookup;
        char *channel, *guild;
        unsigned tries;
        bool wants_roles;
        struct timer *retry;
        LIST_ENTRY(channel_query) next;
};

struct member_entry {
        struct dc_lookup *lookup;
        char *key, *guild, *user;
        json_t *member; /* NULL: being fetched */
        int64_t until_ms;
        bool idle;
        unsigned tries;
        struct timer *retry;
        TAILQ_ENTRY(member_entry) next;
};

struct dc_lookup {
        struct dc_intake *in;
        LIST_HEAD(, channel_query) channels;
        struct map members; /* by "guild/user" */
        TAILQ_HEAD(, member_entry) queue;
        unsigned asking;
};

/* ---- channels ---- */

static void ask_channel(void *query);

static void channel_free(struct channel_query *q)
{
        timer_free(q->retry);
        free(q->channel);
        free(q->guild);
        free(q);
}

static bool needs_roles(const struct dc_lookup *l, const char *guild)
{
        return l->in->o.role_mentions && l->in->self && dc_id_valid(guild) &&
               !dc_cache_knows_roles(l->in->cache, guild);
}

static void finish_channel(struct channel_query *q, bool known)
{
        LIST_REMOVE(q, next);
        dc_intake_channel_found(q->lookup->in, q->channel, known);
        channel_free(q);
}

/* Without a guild there is no fallback: retries for ever. */
static bool retry_channel(struct channel_query *q, const struct dc_answer *a)
{
        int64_t ms = backoff_ms(q->tries++, RETRY_MS, RETRY_MAX_MS);

        if (!dc_rest_is_unavailable(a) || (q->guild && q->tries >= TRIES))
                return false;
        if (!q->retry)
                q->retry = timer_new(q->lookup->in->o.adapter->loop, ask_channel, q);
        timer_start(q->retry, ms);
        return true;
}

static void on_roles(void *arg, const struct dc_answer *a)
{
        struct channel_query *q = arg;
        struct dc_lookup *l = q->lookup;

        if (retry_channel(q, a))
                return;
        if (a->status != 200)
                log_info("cannot look up the bot's roles; assuming none",
                         LOG_S("adapter", l->in->o.adapter->name), LOG_S("guild", q->guild),
                         LOG_S("why", a->why));
        if (!dc_rest_is_unavailable(a))
                dc_cache_set_roles(l->in->cache, q->guild,
                                   a->status == 200 ? json_object_get(a->result, "roles") : NULL);
        finish_channel(q, true);
}

static void on_channel(void *arg, const struct dc_answer *a)
{
        struct channel_query *q = arg;
        struct dc_lookup *l = q->lookup;

        if (retry_channel(q, a))
                return;
        if (a->status == 200) {
                dc_cache_add(l->in->cache, q->guild, a->result);
                if (!q->guild)
                        q->guild = mem_strdup(json_str(a->result, "guild_id", NULL));
        } else if (q->guild) {
                json_t *plain = json_pack("{s:s, s:i}", "id", q->channel, "type", DC_TYPE_TEXT);

                log_info("cannot look up channel; treating it as a plain one",
                         LOG_S("adapter", l->in->o.adapter->name), LOG_S("channel", q->channel),
                         LOG_S("why", a->why));
                if (!dc_rest_is_unavailable(a)) /* else ask again next time */
                        dc_cache_add(l->in->cache, q->guild, plain);
                json_decref(plain);
        }
        if (!needs_roles(l, q->guild)) {
                finish_channel(q, a->status == 200 || q->guild);
                return;
        }
        q->wants_roles = true;
        q->tries = 0;
        ask_channel(q);
}

static void ask_channel(void *query)
{
        struct channel_query *q = query;
        struct dc_intake *in = q->lookup->in;

        if (q->wants_roles)
                in->hooks.get(in->hooks.ctx,
                              &(struct dc_get){ "/guilds/{guild_id}/members/{user_id}",
                                                { q->guild, in->self } },
                              on_roles, q);
        else
                in->hooks.get(in->hooks.ctx,
                              &(struct dc_get){ "/channels/{channel_id}", { q->channel } },
                              on_channel, q);
}

bool dc_lookup_has_channel(const struct dc_lookup *l, const char *channel, const char *guild)
{
        struct dc_channel_info known;

        return dc_cache_channel(l->in->cache, channel, &known) && !needs_roles(l, guild);
}

void dc_lookup_channel(struct dc_lookup *l, const char *channel, const char *guild)
{
        struct channel_query *q;

        LIST_FOREACH(q, &l->channels, next) {
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
        LIST_INSERT_HEAD(&l->channels, q, next);
        ask_channel(q);
}

/* ---- members ---- */

static void on_member(void *arg, const struct dc_answer *a);

static void entry_free(struct member_entry *e)
{
        timer_free(e->retry);
        json_decref(e->member);
        free(e->key);
        free(e->guild);
        free(e->user);
        free(e);
}

static void ask_members(struct dc_lookup *l)
{
        struct member_entry *e;

        while (l->asking < AT_ONCE && (e = TAILQ_FIRST(&l->queue))) {
                TAILQ_REMOVE(&l->queue, e, next);
                l->asking++;
                l->in->hooks.get(l->in->hooks.ctx,
                                 &(struct dc_get){ "/guilds/{guild_id}/members/{user_id}",
                                                   { e->guild, e->user },
                                                   .idle = e->idle },
                                 on_member, e);
        }
}

/* Live events go before missed ones. */
static void enqueue_member(void *entry)
{
        struct member_entry *e = entry;

        if (e->idle)
                TAILQ_INSERT_TAIL(&e->lookup->queue, e, next);
        else
                TAILQ_INSERT_HEAD(&e->lookup->queue, e, next);
        ask_members(e->lookup);
}

/*
 * A person who left has no roles. Unknown members are cached for a minute, too, so that their
 * messages do not each hold up the channel.
 */
static void on_member(void *arg, const struct dc_answer *a)
{
        struct member_entry *e = arg;
        struct dc_lookup *l = e->lookup;
        char *guild, *user;
        json_t *member;

        l->asking--;
        if (dc_rest_is_unavailable(a) && e->tries < TRIES) {
                if (!e->retry)
                        e->retry = timer_new(l->in->o.adapter->loop, enqueue_member, e);
                timer_start(e->retry, dc_readback_wait_ms(l->in, e->tries++));
                ask_members(l);
                return;
        }
        if (a->status == 200 && json_is_array(json_object_get(a->result, "roles"))) {
                e->member = json_incref((json_t *)a->result);
        } else if (a->status == 404) {
                e->member = json_pack("{s:[]}", "roles");
        } else {
                log_warn("member roles unavailable; applying role blocks conservatively",
                         LOG_S("adapter", l->in->o.adapter->name), LOG_S("member", e->key),
                         LOG_S("why", a->why));
                e->member = json_null();
        }
        e->until_ms = clock_mono_ms() + HOLDS_MS;
        /* the handler may drop this entry */
        member = json_incref(e->member);
        guild = mem_strdup(e->guild);
        user = mem_strdup(e->user);
        dc_intake_member_found(l->in, guild, user, member);
        json_decref(member);
        free(guild);
        free(user);
        ask_members(l);
}

json_t *dc_lookup_member(struct dc_lookup *l, const char *guild, const char *user, bool idle)
{
        char *key = mem_printf("%s/%s", guild, user);
        struct member_entry *e = map_get(&l->members, key);
        bool full = l->members.count >= MEMBERS_MAX;
        void *value;

        if (e && (!e->member || e->until_ms > clock_mono_ms())) {
                free(key);
                return e->member;
        }
        if (e) {
                map_remove(&l->members, key);
                entry_free(e);
        }
        for (size_t i = 0; full && map_each(&l->members, &i, NULL, &value);) {
                e = value;
                if (!e->member)
                        continue;
                map_remove(&l->members, e->key);
                entry_free(e);
        }
        e = mem_zalloc(sizeof(*e));
        e->lookup = l;
        e->key = key;
        e->guild = mem_strdup(guild);
        e->user = mem_strdup(user);
        e->idle = idle;
        map_put(&l->members, key, e);
        enqueue_member(e);
        return NULL;
}

struct dc_lookup *dc_lookup_new(struct dc_intake *in)
{
        struct dc_lookup *l = mem_zalloc(sizeof(*l));

        l->in = in;
        LIST_INIT(&l->channels);
        map_init(&l->members);
        TAILQ_INIT(&l->queue);
        return l;
}

void dc_lookup_free(struct dc_lookup *l)
{
        struct channel_query *q, *after;
        void *value;

        if (!l)
                return;
        for (q = LIST_FIRST(&l->channels); q; q = after) {
                after = LIST_NEXT(q, next);
                channel_free(q);
        }
        for (size_t i = 0; map_each(&l->members, &i, NULL, &value);)
                entry_free(value);
        map_release(&l->members);
        free(l);
}
