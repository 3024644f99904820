#include "dispatch/handover.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "dispatch/tx_extra.h"

#define BREAK "\x1f" /* between the parts of a key; no platform has it in an id */

struct entry {
        struct handover pause; /* its strings are this struct's own */
        char *key;
};

struct handovers {
        struct store *store;
        struct map entries; /* key → struct entry */
};

/* A change on its way to the disk. */
struct change {
        struct handovers *handover;
        struct entry *entry; /* NULL: resumed */
        char *key;
        bool found; /* result: there was a pause to end */
        store_done_fn *done;
        void *arg;
};

static char *key_of(const char *adapter, const char *channel, const char *thread)
{
        return mem_printf("%s" BREAK "%s" BREAK "%s", adapter, channel, thread ? thread : "");
}

static struct entry *entry_new(const struct handover *p)
{
        struct entry *e = mem_zalloc(sizeof(*e));

        e->pause = (struct handover){ .chat = { mem_strdup(p->chat.adapter),
                                                mem_strdup(p->chat.channel),
                                                mem_strdup(p->chat.thread) },
                                      .by = mem_strdup(p->by),
                                      .reason = mem_strdup(p->reason),
                                      .since_ms = p->since_ms > 0 ? p->since_ms : clock_wall_ms(),
                                      .until_ms = p->until_ms };
        e->key = key_of(p->chat.adapter, p->chat.channel, p->chat.thread);
        return e;
}

static void entry_free(struct entry *e)
{
        if (!e)
                return;
        free((char *)e->pause.chat.adapter);
        free((char *)e->pause.chat.channel);
        free((char *)e->pause.chat.thread);
        free((char *)e->pause.by);
        free((char *)e->pause.reason);
        free(e->key);
        free(e);
}

/* Takes e over. */
static void remember(struct handovers *h, struct entry *e)
{
        entry_free(map_put(&h->entries, e->key, e));
}

static void forget(struct handovers *h, const char *key)
{
        entry_free(map_remove(&h->entries, key));
}

static bool holds(const struct entry *e, int64_t now_ms)
{
        return e && (e->pause.until_ms == 0 || e->pause.until_ms > now_ms);
}

/* What ended by itself is dropped when somebody makes a change. */
static void sweep(struct handovers *h)
{
        int64_t now_ms = clock_wall_ms();
        const char *key;
        void *value;

        for (size_t i = 0; map_each(&h->entries, &i, &key, &value);) {
                if (!holds(value, now_ms))
                        forget(h, key);
        }
}

/* ---- asking ---- */

static const struct entry *find_key(const struct handovers *h, const char *adapter,
                                    const char *channel, const char *thread)
{
        char *key = key_of(adapter, channel, thread);
        const struct entry *e = map_get(&h->entries, key);

        free(key);
        return holds(e, clock_wall_ms()) ? e : NULL;
}

const struct handover *handover_find(const struct handovers *h, const struct chat_key *chat)
{
        const struct entry *e;

        if (h->entries.count == 0 || !chat->adapter || !chat->channel)
                return NULL;
        e = find_key(h, chat->adapter, chat->channel, NULL);
        if (!e && chat->thread)
                e = find_key(h, chat->adapter, chat->channel, chat->thread);
        return e ? &e->pause : NULL;
}

static int by_age(const void *a, const void *b)
{
        const struct handover *x = *(const struct handover *const *)a;
        const struct handover *y = *(const struct handover *const *)b;

        return x->since_ms < y->since_ms ? -1 : x->since_ms > y->since_ms;
}

const struct handover **handover_list(const struct handovers *h, size_t *count)
{
        const struct handover **all = mem_array(h->entries.count + 1, sizeof(*all));
        int64_t now_ms = clock_wall_ms();
        const char *key;
        void *value;

        *count = 0;
        for (size_t i = 0; map_each(&h->entries, &i, &key, &value);) {
                if (holds(value, now_ms))
                        all[(*count)++] = &((struct entry *)value)->pause;
        }
        qsort(all, *count, sizeof(*all), by_age);
        return all;
}

/* ---- changing ---- */

static struct change *change_new(struct handovers *h, struct entry *e, const char *key)
{
        struct change *c = mem_zalloc(sizeof(*c));

        c->handover = h;
        c->entry = e;
        c->key = mem_strdup(key);
        return c;
}

static void change_free(struct change *c)
{
        entry_free(c->entry);
        free(c->key);
        free(c);
}

static int write_pause(struct store_tx *tx, const struct handover *p, const char *key,
                       struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "INSERT INTO handovers(chat, adapter, channel, thread, by_whom, reason, since_ms, until_ms)"
                " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(chat) DO UPDATE SET"
                " by_whom = ?5, reason = ?6, since_ms = ?7, until_ms = ?8");

        store_bind_text(s, 1, key);
        store_bind_text(s, 2, p->chat.adapter);
        store_bind_text(s, 3, p->chat.channel);
        store_bind_text(s, 4, p->chat.thread);
        store_bind_text(s, 5, p->by);
        store_bind_text(s, 6, p->reason);
        store_bind_int(s, 7, p->since_ms);
        store_bind_int(s, 8, p->until_ms);
        if (store_run(s, err) < 0)
                return -1;
        s = store_prepare(tx, "DELETE FROM handovers WHERE until_ms > 0 AND until_ms <= ?1");
        store_bind_int(s, 1, p->since_ms);
        return store_run(s, err);
}

static int write_resume(struct store_tx *tx, struct change *c, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "DELETE FROM handovers WHERE chat = ?1");

        store_bind_text(s, 1, c->key);
        if (store_run(s, err) < 0)
                return -1;
        c->found = store_changes(tx) > 0;
        return 0;
}

static int write_change(struct store_tx *tx, void *arg, struct error *err)
{
        struct change *c = arg;

        return c->entry ? write_pause(tx, &c->entry->pause, c->key, err) : write_resume(tx, c, err);
}

static void apply(struct change *c)
{
        if (c->entry)
                remember(c->handover, c->entry);
        else
                forget(c->handover, c->key);
        c->entry = NULL;
}

static void on_changed(void *arg, const struct error *err)
{
        struct change *c = arg;
        struct error missing;

        if (!err && !c->entry && !c->found) {
                error_set(&missing, ERR_MISSING, "the agent is not paused there");
                err = &missing;
        }
        if (!err)
                apply(c);
        if (c->done)
                c->done(c->arg, err);
        change_free(c);
}

/* Says no in the way a completion would. */
static int refuse(struct store_tx *tx, void *arg, struct error *err)
{
        (void)tx;
        (void)arg;
        return error_set(err, ERR_LIMIT, "the agent is paused in %d chats already; resume some",
                         HANDOVER_MAX);
}

static bool has_room(struct handovers *h, const char *key)
{
        if (map_get(&h->entries, key))
                return true;
        if (h->entries.count >= HANDOVER_MAX)
                sweep(h);
        return h->entries.count < HANDOVER_MAX;
}

static void submit(struct change *c, store_fn *fn, store_done_fn *done, void *arg)
{
        c->done = done;
        c->arg = arg;
        store_write(c->handover->store, fn, on_changed, c);
}

void handover_pause(struct handovers *h, const struct handover *p, store_done_fn *done, void *arg)
{
        struct entry *e = entry_new(p);

        submit(change_new(h, e, e->key), has_room(h, e->key) ? write_change : refuse, done, arg);
}

void handover_resume(struct handovers *h, const struct chat_key *chat, store_done_fn *done,
                     void *arg)
{
        char *key = key_of(chat->adapter, chat->channel, chat->thread);

        submit(change_new(h, NULL, key), write_change, done, arg);
        free(key);
}

/* ---- with a decision ---- */

/* Again, in the order of commits: another change may have been committed since. */
static void on_decided(void *arg)
{
        struct change *c = arg;

        apply(c);
        change_free(c);
}

static void write_with(struct change *c, struct decision *out)
{
        tx_extra_add(out, (struct tx_extra){ .fn = write_change, .done = on_decided, .arg = c });
}

bool handover_pause_with(struct handovers *h, const struct handover *p, struct decision *out)
{
        struct entry *e = entry_new(p);

        if (!has_room(h, e->key)) {
                entry_free(e);
                return false;
        }
        write_with(change_new(h, e, e->key), out);
        remember(h, entry_new(p));
        return true;
}

bool handover_resume_with(struct handovers *h, const struct chat_key *chat, struct decision *out)
{
        char *key = key_of(chat->adapter, chat->channel, chat->thread);
        bool paused = holds(map_get(&h->entries, key), clock_wall_ms());

        if (paused) {
                write_with(change_new(h, NULL, key), out);
                forget(h, key);
        }
        free(key);
        return paused;
}

/* ---- opening ---- */

static int read_pauses(struct store_tx *tx, void *arg, struct error *err)
{
        struct handovers *h = arg;
        struct store_stmt *s = store_prepare(
                tx,
                "SELECT adapter, channel, thread, by_whom, reason, since_ms, until_ms FROM handovers"
                " WHERE until_ms = 0 OR until_ms > ?1");
        int rc;

        store_bind_int(s, 1, clock_wall_ms());
        while ((rc = store_step(s, err)) == 1) {
                struct handover p = { .chat = { store_col_text(s, 0), store_col_text(s, 1),
                                                store_col_text(s, 2) },
                                      .by = store_col_text(s, 3),
                                      .reason = store_col_text(s, 4),
                                      .since_ms = store_col_int(s, 5),
                                      .until_ms = store_col_int(s, 6) };

                remember(h, entry_new(&p));
        }
        return rc;
}

struct handovers *handover_open(struct store *s, struct error *err)
{
        struct handovers *h = mem_zalloc(sizeof(*h));

        h->store = s;
        map_init(&h->entries);
        if (store_read_now(s, read_pauses, h, err) == 0)
                return h;
        handover_free(h);
        return NULL;
}

void handover_free(struct handovers *h)
{
        const char *key;
        void *value;

        if (!h)
                return;
        for (size_t i = 0; map_each(&h->entries, &i, &key, &value);)
                entry_free(value);
        map_release(&h->entries);
        free(h);
}
