#include "platform/discord/dc_member_lookup.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "platform/discord/dc_readback.h"

#define AT_ONCE     4     /* more would only age in the queue of their rate limit */
#define TRIES       8     /* about a minute, by dc_readback_wait_ms */
#define HOLDS_MS    60000 /* how long an answer is used */
#define ENTRIES_MAX 1000  /* beyond it answers are forgotten, pending queries are not */

struct member_entry {
        struct dc_member_lookup *lookup;
        char *key, *guild, *user;
        json_t *member; /* NULL: being fetched */
        int64_t until_ms;
        bool idle;
        unsigned tries;
        struct timer *retry;
        TAILQ_ENTRY(member_entry) next;
};

struct dc_member_lookup {
        struct adapter *adapter;
        struct dc_intake_hooks hooks;
        struct dc_catchup_times times;
        dc_member_lookup_fn *done;
        void *arg;
        struct map entries;               /* by "guild/user" */
        TAILQ_HEAD(, member_entry) queue; /* to be asked for */
        unsigned asking;
};

static void entry_free(struct member_entry *e)
{
        timer_free(e->retry);
        json_decref(e->member);
        free(e->key);
        free(e->guild);
        free(e->user);
        free(e);
}

static void make_room(struct dc_member_lookup *l)
{
        void *value;

        if (l->entries.count < ENTRIES_MAX)
                return;
        for (size_t i = 0; map_each(&l->entries, &i, NULL, &value);) {
                struct member_entry *e = value;

                if (!e->member)
                        continue;
                map_remove(&l->entries, e->key);
                entry_free(e);
        }
}

/* ---- fetching ---- */

static void on_answer(void *arg, const struct dc_answer *a);

static void pump(struct dc_member_lookup *l)
{
        struct member_entry *e;

        while (l->asking < AT_ONCE && (e = TAILQ_FIRST(&l->queue))) {
                TAILQ_REMOVE(&l->queue, e, next);
                l->asking++;
                l->hooks.get(l->hooks.ctx,
                             &(struct dc_get){ "/guilds/{guild_id}/members/{user_id}",
                                               { e->guild, e->user },
                                               .idle = e->idle },
                             on_answer, e);
        }
}

/* What happens now goes before what was missed. */
static void enqueue(void *entry)
{
        struct member_entry *e = entry;

        if (e->idle)
                TAILQ_INSERT_TAIL(&e->lookup->queue, e, next);
        else
                TAILQ_INSERT_HEAD(&e->lookup->queue, e, next);
        pump(e->lookup);
}

/* A new reference. */
static json_t *member_of(const struct member_entry *e, const struct dc_answer *a)
{
        if (a->status == 200 && json_is_array(json_object_get(a->result, "roles")))
                return json_incref((json_t *)a->result);
        if (a->status == 404)
                return json_pack("{s:[]}", "roles");
        log_warn("member roles unavailable; applying role blocks conservatively",
                 LOG_S("adapter", e->lookup->adapter->name), LOG_S("member", e->key),
                 LOG_S("why", a->why));
        return json_null();
}

static void on_answer(void *arg, const struct dc_answer *a)
{
        struct member_entry *e = arg;
        struct dc_member_lookup *l = e->lookup;
        char *guild, *user;
        json_t *member;

        l->asking--;
        if (dc_rest_is_unavailable(a) && e->tries < TRIES) {
                if (!e->retry)
                        e->retry = timer_new(l->adapter->loop, enqueue, e);
                timer_start(e->retry, dc_readback_wait_ms(&l->times, e->tries++));
                pump(l);
                return;
        }
        e->member = member_of(e, a);
        e->until_ms = clock_mono_ms() + HOLDS_MS;
        /* the callback may ask for others, and this entry be forgotten */
        member = json_incref(e->member);
        guild = mem_strdup(e->guild);
        user = mem_strdup(e->user);
        l->done(l->arg, guild, user, member);
        json_decref(member);
        free(guild);
        free(user);
        pump(l);
}

json_t *dc_member_lookup_get(struct dc_member_lookup *l, const char *guild, const char *user,
                             bool idle)
{
        char *key = mem_printf("%s/%s", guild, user);
        struct member_entry *e = map_get(&l->entries, key);

        if (e && e->member && e->until_ms <= clock_mono_ms()) {
                map_remove(&l->entries, key);
                entry_free(e);
                e = NULL;
        }
        if (e) {
                free(key);
                return e->member;
        }
        make_room(l);
        e = mem_zalloc(sizeof(*e));
        e->lookup = l;
        e->key = key;
        e->guild = mem_strdup(guild);
        e->user = mem_strdup(user);
        e->idle = idle;
        map_put(&l->entries, key, e);
        enqueue(e);
        return NULL;
}

/* ---- open and close ---- */

struct dc_member_lookup *dc_member_lookup_new(const struct dc_intake_options *o,
                                              const struct dc_intake_hooks *hooks,
                                              dc_member_lookup_fn *done, void *arg)
{
        struct dc_member_lookup *l = mem_zalloc(sizeof(*l));

        l->adapter = o->adapter;
        l->hooks = *hooks;
        l->times = o->catchup_times;
        l->done = done;
        l->arg = arg;
        map_init(&l->entries);
        TAILQ_INIT(&l->queue);
        return l;
}

void dc_member_lookup_free(struct dc_member_lookup *l)
{
        void *value;

        if (!l)
                return;
        for (size_t i = 0; map_each(&l->entries, &i, NULL, &value);)
                entry_free(value);
        map_release(&l->entries);
        free(l);
}
