#include "platform/slack/sl_cache.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "platform/slack/sl_event.h"
#include "platform/slack/slack.h"

#define CHANNELS_MAX 5000
#define USERS_MAX    5000 /* without a setting */
#define REPLIES_MAX  1000
#define FRESH_MS     86400000
#define UNKNOWN_MS   600000 /* Slack does not know it */
#define FAILED_MS    60000  /* Slack did not answer */
#define CALL_MS      5000   /* an event waits for its names */
#define WAIT_MS      2000

/* Who waits for an answer. */
struct waiter {
        union {
                sl_user_fn *user;
                sl_channel_fn *channel;
        } done;
        void *arg;
        TAILQ_ENTRY(waiter) next;
};

/* A user or a channel. */
struct cache_entry {
        struct sl_cache *cache;
        struct cache_table *table;
        char *id;
        union {
                struct sl_user user;
                struct sl_channel channel;
        } is;             /* strings are owned */
        bool filled;      /* with Slack's answer, or with the id */
        int64_t until_ms; /* monotonic: then Slack is asked again */
        struct sl_call *call;
        TAILQ_HEAD(, waiter) waiters;
        TAILQ_ENTRY(cache_entry) next;
};

struct cache_table {
        bool of_users;
        size_t max;
        struct map by_id;
        TAILQ_HEAD(cache_list, cache_entry) recent; /* the first is the oldest */
};

struct cached_reply {
        char *key, *thread; /* "CHANNEL TS" */
        TAILQ_ENTRY(cached_reply) next;
};

struct sl_cache {
        struct slack *sl;
        struct cache_table users, channels;
        struct {
                struct map by_key;
                TAILQ_HEAD(, cached_reply) list; /* oldest first */
        } replies;
};

/* ---- entries ---- */

static void release_user(struct sl_user *u)
{
        free((char *)(uintptr_t)u->username);
        free((char *)(uintptr_t)u->name);
        free((char *)(uintptr_t)u->team);
        *u = (struct sl_user){ 0 };
}

static void release_channel(struct sl_channel *ch)
{
        free((char *)(uintptr_t)ch->name);
        free((char *)(uintptr_t)ch->topic);
        free((char *)(uintptr_t)ch->user);
        *ch = (struct sl_channel){ 0 };
}

static void clear(struct cache_entry *e)
{
        if (e->table->of_users)
                release_user(&e->is.user);
        else
                release_channel(&e->is.channel);
}

static void entry_free(struct cache_entry *e)
{
        struct waiter *w;

        TAILQ_REMOVE(&e->table->recent, e, next);
        map_remove(&e->table->by_id, e->id);
        sl_api_abort(e->call);
        while ((w = TAILQ_FIRST(&e->waiters))) {
                TAILQ_REMOVE(&e->waiters, w, next);
                free(w);
        }
        clear(e);
        free(e->id);
        free(e);
}

/* Drops the least recently used entries; those that are being looked up stay. */
static void make_room(struct cache_table *t)
{
        struct cache_entry *e, *after;

        for (e = TAILQ_FIRST(&t->recent); e && t->by_id.count >= t->max; e = after) {
                after = TAILQ_NEXT(e, next);
                if (!e->call)
                        entry_free(e);
        }
}

static struct cache_entry *find(struct cache_table *t, const char *id)
{
        struct cache_entry *e = id ? map_get(&t->by_id, id) : NULL;

        if (e) {
                TAILQ_REMOVE(&t->recent, e, next);
                TAILQ_INSERT_TAIL(&t->recent, e, next);
        }
        return e;
}

static struct cache_entry *find_or_add(struct sl_cache *c, struct cache_table *t, const char *id)
{
        struct cache_entry *e = find(t, id);

        if (e)
                return e;
        make_room(t);
        e = mem_zalloc(sizeof(*e));
        e->cache = c;
        e->table = t;
        e->id = mem_strdup(id);
        TAILQ_INIT(&e->waiters);
        TAILQ_INSERT_TAIL(&t->recent, e, next);
        map_put(&t->by_id, id, e);
        return e;
}

/* ---- what Slack says ---- */

static char *clean(const char *text)
{
        return text && *text ? utf8_clean(text, strlen(text)) : NULL;
}

static void fill_user(struct cache_entry *e, const json_t *o)
{
        const struct slack *sl = e->cache->sl;
        const json_t *profile = json_object_get(o, "profile");
        const char *handle = json_str(o, "name", ""),
                   *display = json_str(profile, "display_name", ""),
                   *real = json_str(profile, "real_name", json_str(o, "real_name", "")),
                   *team = json_str(o, "team_id", NULL);
        struct sl_user *u = &e->is.user;

        release_user(u);
        u->id = e->id;
        u->username = clean(*handle ? handle : e->id);
        u->name = clean(*display ? display : *real ? real : u->username);
        u->team = mem_strdup(team);
        u->is_bot = json_flag(o, "is_bot", false) || strcmp(e->id, "USLACKBOT") == 0;
        u->is_guest =
                json_flag(o, "is_restricted", false) || json_flag(o, "is_ultra_restricted", false);
        u->is_stranger = json_flag(o, "is_stranger", false) ||
                         (team && sl->self.team && strcmp(team, sl->self.team) != 0 &&
                          !json_object_get(o, "enterprise_user"));
        u->known = true;
}

static void fill_channel(struct cache_entry *e, const json_t *o)
{
        struct sl_channel *ch = &e->is.channel;
        const char *topic = json_str(json_object_get(o, "topic"), "value", NULL);

        release_channel(ch);
        ch->id = e->id;
        ch->is_dm = json_flag(o, "is_im", *e->id == 'D');
        ch->name = ch->is_dm ? NULL : clean(json_str(o, "name", NULL));
        ch->topic = clean(topic);
        ch->user = ch->is_dm ? mem_strdup(json_str(o, "user", NULL)) : NULL;
        ch->is_group_dm = json_flag(o, "is_mpim", false);
        ch->is_private = json_flag(o, "is_private", ch->is_dm || ch->is_group_dm);
        ch->is_shared = json_flag(o, "is_ext_shared", json_flag(o, "is_shared", false));
        ch->is_member = json_flag(o, "is_member", ch->is_dm || ch->is_group_dm);
        ch->members = json_int(o, "num_members", -1);
}

/* Without an answer the names are the id. */
static void fill_unknown(struct cache_entry *e)
{
        clear(e);
        if (!e->table->of_users) {
                e->is.channel =
                        (struct sl_channel){ .id = e->id, .is_dm = *e->id == 'D', .members = -1 };
                return;
        }
        e->is.user = (struct sl_user){ .id = e->id,
                                       .username = mem_strdup(e->id),
                                       .name = mem_strdup(e->id),
                                       .is_bot = *e->id == 'B' };
}

static void fill(struct cache_entry *e, const json_t *object, int64_t ms)
{
        if (!object)
                fill_unknown(e);
        else if (e->table->of_users)
                fill_user(e, object);
        else
                fill_channel(e, object);
        e->filled = true;
        e->until_ms = clock_mono_ms() + ms;
}

static void put(struct sl_cache *c, struct cache_table *t, const json_t *object)
{
        const char *id = json_str(object, "id", NULL);

        if (sl_id_valid(id))
                fill(find_or_add(c, t, id), object, FRESH_MS);
}

void sl_cache_put_user(struct sl_cache *c, const json_t *user)
{
        put(c, &c->users, user);
}

void sl_cache_put_channel(struct sl_cache *c, const json_t *channel)
{
        put(c, &c->channels, channel);
}

void sl_cache_forget_channel(struct sl_cache *c, const char *id)
{
        struct cache_entry *e = map_get(&c->channels.by_id, id);

        if (e)
                e->until_ms = 0; /* it may have waiters, or be borrowed */
}

/* ---- looking up ---- */

static void answer(struct waiter *w, const struct cache_entry *e)
{
        if (e->table->of_users)
                w->done.user(w->arg, &e->is.user);
        else
                w->done.channel(w->arg, &e->is.channel);
}

static void on_answer(void *arg, const struct sl_answer *a)
{
        struct cache_entry *e = arg;
        const char *member = e->table->of_users ? "user" : "channel";
        const json_t *object = a->ok ? json_object_get(a->result, member) : NULL;
        bool known = json_is_object(object);
        struct waiter *w;

        if (!known)
                log_info("cannot look up a name; using the id",
                         LOG_S("adapter", e->cache->sl->adapter->name), LOG_S("id", e->id),
                         LOG_S("why", a->why ? a->why : a->error));
        /* a name that was known is better than none */
        if (known || !e->filled)
                fill(e, known ? object : NULL,
                     known                      ? FRESH_MS
                     : sl_api_is_unavailable(a) ? FAILED_MS
                                                : UNKNOWN_MS);
        else
                e->until_ms = clock_mono_ms() + FAILED_MS;
        /* e->call keeps the entry: waiters may ask for more */
        while ((w = TAILQ_FIRST(&e->waiters))) {
                TAILQ_REMOVE(&e->waiters, w, next);
                answer(w, e);
                free(w);
        }
        e->call = NULL;
}

static void ask(struct cache_entry *e)
{
        struct slack *sl = e->cache->sl;
        const char *key = e->table->of_users ? "user" : "channel";
        json_t *args = json_pack("{s:s}", key, e->id);

        if (!e->table->of_users)
                json_object_set_new(args, "include_num_members", json_true());
        e->call = sl_api_call(sl->api,
                              &(struct sl_request){ .method = e->table->of_users
                                                                      ? "users.info"
                                                                      : "conversations.info",
                                                    .args = args,
                                                    .priority = SL_NORMAL,
                                                    .total_ms = CALL_MS,
                                                    .wait_ms = WAIT_MS },
                              on_answer, e);
        json_decref(args);
}

static void lookup(struct sl_cache *c, struct cache_table *t, const char *id, struct waiter w)
{
        struct cache_entry *e = find_or_add(c, t, id);
        bool fresh = e->filled && clock_mono_ms() < e->until_ms;
        struct waiter *waits;

        if (!fresh && !e->call) {
                if (c->sl->api)
                        ask(e);
                else if (!e->filled)
                        fill(e, NULL, FAILED_MS);
        }
        if (fresh || !e->call) {
                answer(&w, e);
                return;
        }
        waits = mem_dup(&w, sizeof(w));
        TAILQ_INSERT_TAIL(&e->waiters, waits, next);
}

void sl_cache_find_user(struct sl_cache *c, const char *id, sl_user_fn *done, void *arg)
{
        lookup(c, &c->users, id, (struct waiter){ .done.user = done, .arg = arg });
}

void sl_cache_find_channel(struct sl_cache *c, const char *id, sl_channel_fn *done, void *arg)
{
        lookup(c, &c->channels, id, (struct waiter){ .done.channel = done, .arg = arg });
}

void sl_cache_stop_waiting(struct sl_cache *c, const void *arg)
{
        struct cache_table *const tables[] = { &c->users, &c->channels };
        struct cache_entry *e;
        struct waiter *w, *after;

        for (size_t i = 0; i < COUNT(tables); i++) {
                TAILQ_FOREACH(e, &tables[i]->recent, next) {
                        for (w = TAILQ_FIRST(&e->waiters); w; w = after) {
                                after = TAILQ_NEXT(w, next);
                                if (w->arg != arg)
                                        continue;
                                TAILQ_REMOVE(&e->waiters, w, next);
                                free(w);
                        }
                }
        }
}

const struct sl_user *sl_cache_user(struct sl_cache *c, const char *id)
{
        struct cache_entry *e = find(&c->users, id);

        return e && e->filled ? &e->is.user : NULL;
}

const struct sl_channel *sl_cache_channel(struct sl_cache *c, const char *id)
{
        struct cache_entry *e = find(&c->channels, id);

        return e && e->filled ? &e->is.channel : NULL;
}

static bool same_name(const char *known, const char *name, size_t n)
{
        return strncasecmp(known, name, n) == 0 && known[n] == '\0';
}

/* A handle is unique and wins; several people may have a display name. */
const char *sl_cache_user_named(struct sl_cache *c, const char *name, size_t n)
{
        const struct cache_entry *e, *found = NULL;
        unsigned named = 0;

        if (n == 0)
                return NULL;
        TAILQ_FOREACH(e, &c->users.recent, next) {
                if (!e->filled || !e->is.user.known)
                        continue;
                if (same_name(e->is.user.username, name, n))
                        return e->id;
                if (same_name(e->is.user.name, name, n)) {
                        found = e;
                        named++;
                }
        }
        return named == 1 ? found->id : NULL;
}

const char *sl_cache_channel_named(struct sl_cache *c, const char *name)
{
        const struct cache_entry *e;

        name += *name == '#';
        TAILQ_FOREACH(e, &c->channels.recent, next)
                if (e->filled && e->is.channel.name && strcmp(e->is.channel.name, name) == 0)
                        return e->id;
        return NULL;
}

/* ---- replies ---- */

static void reply_free(struct sl_cache *c, struct cached_reply *r)
{
        TAILQ_REMOVE(&c->replies.list, r, next);
        map_remove(&c->replies.by_key, r->key);
        free(r->key);
        free(r->thread);
        free(r);
}

void sl_cache_put_reply(struct sl_cache *c, const char *channel, const char *ts, const char *thread)
{
        char *key = mem_printf("%s %s", channel, ts);
        struct cached_reply *r;

        if (map_get(&c->replies.by_key, key)) {
                free(key);
                return;
        }
        if (c->replies.by_key.count >= REPLIES_MAX)
                reply_free(c, TAILQ_FIRST(&c->replies.list));
        r = mem_zalloc(sizeof(*r));
        r->key = key;
        r->thread = mem_strdup(thread);
        TAILQ_INSERT_TAIL(&c->replies.list, r, next);
        map_put(&c->replies.by_key, key, r);
}

const char *sl_cache_thread(const struct sl_cache *c, const char *channel, const char *ts)
{
        char *key = mem_printf("%s %s", channel, ts);
        const struct cached_reply *r = map_get(&c->replies.by_key, key);

        free(key);
        return r ? r->thread : NULL;
}

/* ---- opening and closing ---- */

static void table_init(struct cache_table *t, bool of_users, size_t max)
{
        t->of_users = of_users;
        t->max = max;
        map_init(&t->by_id);
        TAILQ_INIT(&t->recent);
}

static void table_release(struct cache_table *t)
{
        struct cache_entry *e;

        while ((e = TAILQ_FIRST(&t->recent)))
                entry_free(e);
        map_release(&t->by_id);
}

struct sl_cache *sl_cache_new(struct slack *sl)
{
        struct sl_cache *c = mem_zalloc(sizeof(*c));
        int64_t max = sl->conf ? sl->conf->cached_users : 0;

        c->sl = sl;
        table_init(&c->users, true, max > 0 ? (size_t)max : USERS_MAX);
        table_init(&c->channels, false, CHANNELS_MAX);
        map_init(&c->replies.by_key);
        TAILQ_INIT(&c->replies.list);
        return c;
}

void sl_cache_free(struct sl_cache *c)
{
        struct cached_reply *r;

        if (!c)
                return;
        while ((r = TAILQ_FIRST(&c->replies.list)))
                reply_free(c, r);
        map_release(&c->replies.by_key);
        table_release(&c->users);
        table_release(&c->channels);
        free(c);
}
