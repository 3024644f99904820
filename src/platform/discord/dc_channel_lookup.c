#include "platform/discord/dc_channel_lookup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_rest.h"

#define TRIES     8 /* most of a minute */
#define AGAIN_MS  500
#define AGAIN_MAX 10000

/* A place that is being asked for. */
struct question {
        struct dc_where *where;
        char *place, *guild;
        bool roles; /* which roles we have there is what is asked now */
        unsigned tries;
        struct timer *later; /* Discord was unwell */
        LIST_ENTRY(question) next;
};

struct dc_where {
        struct adapter *adapter;
        struct dc_inbound_hooks hooks;
        struct dc_cache *cache;
        bool role_mentions;
        char *self;
        dc_where_fn *answered;
        void *arg;
        LIST_HEAD(, question) questions;
};

/* ---- life ---- */

struct dc_where *dc_where_new(const struct dc_inbound_options *o,
                              const struct dc_inbound_hooks *hooks, struct dc_cache *cache,
                              dc_where_fn *answered, void *arg)
{
        struct dc_where *w = mem_zalloc(sizeof(*w));

        w->adapter = o->adapter;
        w->hooks = *hooks;
        w->cache = cache;
        w->role_mentions = o->role_mentions;
        w->answered = answered;
        w->arg = arg;
        LIST_INIT(&w->questions);
        return w;
}

static void question_free(struct question *q)
{
        timer_free(q->later);
        free(q->place);
        free(q->guild);
        free(q);
}

void dc_where_free(struct dc_where *w)
{
        struct question *q, *after;

        if (!w)
                return;
        for (q = LIST_FIRST(&w->questions); q; q = after) {
                after = LIST_NEXT(q, next);
                question_free(q);
        }
        free(w->self);
        free(w);
}

void dc_where_set_self(struct dc_where *w, const char *user_id)
{
        free(w->self);
        w->self = mem_strdup(user_id);
}

/* ---- asking ---- */

static void pose(struct question *q);

static void on_later(void *arg)
{
        pose(arg);
}

static bool is_unwell(int status)
{
        return status == 0 || status == 429 || status >= 500;
}

/*
 * What happened in a guild goes on after a while, as good as it can; of what is not even known to
 * be in one nothing can be made.
 */
static bool asks_again(struct question *q, int status)
{
        int64_t ms = (int64_t)AGAIN_MS << (q->tries < TRIES ? q->tries : TRIES);

        q->tries++;
        if (!is_unwell(status) || (q->guild && q->tries >= TRIES))
                return false;
        if (!q->later)
                q->later = timer_new(q->where->adapter->loop, on_later, q);
        timer_start(q->later, ms < AGAIN_MAX ? ms : AGAIN_MAX);
        return true;
}

static void end(struct question *q, bool known)
{
        struct dc_where *w = q->where;

        LIST_REMOVE(q, next);
        w->answered(w->arg, q->place, known);
        question_free(q);
}

static bool needs_roles(const struct dc_where *w, const char *guild)
{
        return w->role_mentions && w->self && dc_is_id(guild) &&
               !dc_cache_knows_roles(w->cache, guild);
}

static void take_place(struct question *q, const json_t *channel)
{
        dc_cache_add(q->where->cache, q->guild, channel);
        if (!q->guild)
                q->guild = mem_strdup(json_str(channel, "guild_id", NULL));
}

static void take_for_channel(struct question *q, int status, const char *why)
{
        json_t *plain = json_pack("{s:s, s:i}", "id", q->place, "type", DC_TYPE_TEXT);

        log_info("Discord does not say what this channel is",
                 LOG_S("adapter", q->where->adapter->name), LOG_S("channel", q->place),
                 LOG_S("why", why));
        if (!is_unwell(status))
                dc_cache_add(q->where->cache, q->guild, plain);
        json_decref(plain);
}

static void on_place(void *arg, int status, json_t *body, const char *why)
{
        struct question *q = arg;

        if (asks_again(q, status))
                return;
        if (status == 200)
                take_place(q, body);
        else if (q->guild)
                take_for_channel(q, status, why);
        if (!needs_roles(q->where, q->guild)) {
                end(q, status == 200 || q->guild);
                return;
        }
        q->roles = true;
        q->tries = 0;
        pose(q);
}

/* Where nobody tells, we have none. */
static void on_roles(void *arg, int status, json_t *body, const char *why)
{
        struct question *q = arg;

        if (asks_again(q, status))
                return;
        if (status != 200)
                log_info("Discord does not say which roles the bot has",
                         LOG_S("adapter", q->where->adapter->name), LOG_S("guild", q->guild),
                         LOG_S("why", why));
        if (!is_unwell(status))
                dc_cache_set_roles(q->where->cache, q->guild,
                                   status == 200 ? json_object_get(body, "roles") : NULL);
        end(q, true);
}

static void pose(struct question *q)
{
        const struct dc_inbound_hooks *hooks = &q->where->hooks;
        char *path = q->roles ? mem_printf("/guilds/%s/members/%s", q->guild, q->where->self)
                              : mem_printf("/channels/%s", q->place);

        hooks->get(hooks->ctx, path, q->roles ? on_roles : on_place, q);
        free(path);
}

bool dc_where_knows(const struct dc_where *w, const char *place, const char *guild)
{
        struct dc_place known;

        return dc_cache_place(w->cache, place, &known) && !needs_roles(w, guild);
}

void dc_where_ask(struct dc_where *w, const char *place, const char *guild)
{
        struct question *q;

        LIST_FOREACH(q, &w->questions, next) {
                if (strcmp(q->place, place) != 0)
                        continue;
                if (!q->guild)
                        q->guild = mem_strdup(guild);
                return;
        }
        q = mem_zalloc(sizeof(*q));
        q->where = w;
        q->place = mem_strdup(place);
        q->guild = mem_strdup(guild);
        LIST_INSERT_HEAD(&w->questions, q, next);
        pose(q);
}
