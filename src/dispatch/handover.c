#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dispatch/dispatch_private.h"
#include "store/write_through.h"

#define HANDOVERS_MAX 10000 /* chats handed over at once */

struct handovers {
        struct store *store;
        struct map by_chat; /* chat_key_text → struct handover, which owns its strings */
};

static void free_handover(struct handover *h)
{
        if (!h)
                return;
        free((char *)h->chat.adapter);
        free((char *)h->chat.channel);
        free((char *)h->chat.thread);
        free((char *)h->by);
        free((char *)h->reason);
        free(h);
}

static struct handover *dup_handover(const struct handover *h)
{
        struct handover *copy = mem_dup(h, sizeof(*h));

        copy->chat = (struct chat_key){ mem_strdup(h->chat.adapter), mem_strdup(h->chat.channel),
                                        mem_strdup(h->chat.thread) };
        copy->by = mem_strdup(h->by);
        copy->reason = mem_strdup(h->reason);
        if (copy->since_ms == 0)
                copy->since_ms = clock_wall_ms();
        return copy;
}

/* Takes h; NULL: ends that chat's handover. */
static void set(struct handovers *hs, const struct chat_key *chat, struct handover *h)
{
        char *key = chat_key_text(chat);

        free_handover(h ? map_put(&hs->by_chat, key, h) : map_remove(&hs->by_chat, key));
        free(key);
}

static bool in_force(const struct handover *h, int64_t now_ms)
{
        return h->until_ms == 0 || h->until_ms > now_ms;
}

/* ---- queries ---- */

static const struct handover *find_exact(const struct handovers *hs, const struct chat_key *chat)
{
        char *key = chat_key_text(chat);
        const struct handover *h = map_get(&hs->by_chat, key);

        free(key);
        return h && in_force(h, clock_wall_ms()) ? h : NULL;
}

const struct handover *handover_find(const struct handovers *hs, const struct chat_key *chat)
{
        const struct handover *h;

        if (hs->by_chat.count == 0 || !chat->adapter || !chat->channel)
                return NULL;
        h = find_exact(hs, &(struct chat_key){ chat->adapter, chat->channel, NULL });
        return h || !chat->thread ? h : find_exact(hs, chat);
}

static int by_age(const void *a, const void *b)
{
        const struct handover *x = *(const struct handover *const *)a;
        const struct handover *y = *(const struct handover *const *)b;

        return x->since_ms < y->since_ms ? -1 : x->since_ms > y->since_ms;
}

const struct handover **handover_list(const struct handovers *hs, size_t *count)
{
        const struct handover **all = mem_array(hs->by_chat.count + 1, sizeof(*all));
        int64_t now_ms = clock_wall_ms();
        void *value;

        *count = 0;
        for (size_t i = 0; map_each(&hs->by_chat, &i, NULL, &value);) {
                if (in_force(value, now_ms))
                        all[(*count)++] = value;
        }
        qsort(all, *count, sizeof(*all), by_age);
        return all;
}

/* A human has taken over: no agent runs, but the transcript gets the text. */
bool handover_guard(struct evaluation *e)
{
        const struct handovers *all = e->d->policy ? e->d->policy->handovers : NULL;
        struct chat_key chat = { e->in->adapter, e->in->channel, e->in->thread };
        const struct handover *h = all ? handover_find(all, &chat) : NULL;
        char since[CLOCK_ISO_SIZE];

        if (!h)
                return true;
        e->out->remember = true;
        return evaluation_refuse(e, "the agent is paused here since %s by %s%s%s",
                                 clock_iso(h->since_ms, since), h->by ? h->by : "someone",
                                 h->reason ? ": " : "", h->reason ? h->reason : "");
}

/* ---- changes ---- */

struct handover_change {
        struct write_through base;
        struct handovers *table;
        struct handover *handover; /* its strings are owned */
        bool resume;
};

static int write_change(struct store_tx *tx, void *change, struct error *err)
{
        const struct handover_change *c = change;
        const struct handover *h = c->handover;
        int rc;

        if (!c->resume && handover_row_put(tx, h, err) < 0)
                return -1;
        if (handover_row_delete_expired(tx, h->since_ms, err) < 0)
                return -1;
        if (!c->resume)
                return 0;
        rc = handover_row_delete(tx, &h->chat, err);
        if (rc == 0 && c->base.done) /* not part of a decision */
                return error_set(err, ERR_MISSING, "the agent is not paused there");
        return rc < 0 ? -1 : 0;
}

static void apply_change(void *change)
{
        struct handover_change *c = change;
        struct handover *h = c->handover;

        set(c->table, &h->chat, c->resume ? NULL : h);
        if (!c->resume)
                c->handover = NULL;
}

static void release_change(void *change)
{
        struct handover_change *c = change;

        free_handover(c->handover);
        free(c);
}

static const struct write_through_ops change_ops = { .write = write_change,
                                                     .apply = apply_change,
                                                     .release = release_change };

static struct handover_change *change_new(struct handovers *hs, const struct handover *h,
                                          bool resume, store_done_fn *done, void *arg)
{
        struct handover_change *c = mem_zalloc(sizeof(*c));

        c->base.ops = &change_ops;
        c->table = hs;
        c->handover = dup_handover(h);
        c->resume = resume;
        c->base.done = done;
        c->base.arg = arg;
        return c;
}

/* Drops expired handovers when full. */
static bool make_room(struct handovers *hs, const struct chat_key *chat)
{
        char *key = chat_key_text(chat);
        bool known = map_get(&hs->by_chat, key) != NULL;
        int64_t now_ms = clock_wall_ms();
        void *value;

        free(key);
        if (known || hs->by_chat.count < HANDOVERS_MAX)
                return true;
        for (size_t i = 0; map_each(&hs->by_chat, &i, NULL, &value);) {
                struct handover *h = value;

                if (!in_force(h, now_ms))
                        set(hs, &h->chat, NULL);
        }
        return hs->by_chat.count < HANDOVERS_MAX;
}

void handover_pause(struct handovers *hs, const struct handover *h, store_done_fn *done, void *arg)
{
        struct handover_change *c = change_new(hs, h, false, done, arg);

        if (!make_room(hs, &h->chat))
                error_set(&c->base.refusal, ERR_LIMIT,
                          "the agent is paused in %d chats already; resume some", HANDOVERS_MAX);
        write_through_submit(hs->store, c);
}

void handover_resume(struct handovers *hs, const struct chat_key *chat, store_done_fn *done,
                     void *arg)
{
        struct handover none = { .chat = *chat };

        write_through_submit(hs->store, change_new(hs, &none, true, done, arg));
}

/* Memory changes at once, and again in commit order, as other changes may come between. */
bool handover_pause_with(struct handovers *hs, const struct handover *h, struct decision *out)
{
        if (!make_room(hs, &h->chat))
                return false;
        evaluation_add_change(out, change_new(hs, h, false, NULL, NULL));
        set(hs, &h->chat, dup_handover(h));
        return true;
}

bool handover_resume_with(struct handovers *hs, const struct chat_key *chat, struct decision *out)
{
        struct handover none = { .chat = *chat };

        if (!find_exact(hs, chat))
                return false;
        evaluation_add_change(out, change_new(hs, &none, true, NULL, NULL));
        set(hs, chat, NULL);
        return true;
}

/* ---- opening ---- */

static int read_table(struct store_tx *tx, void *arg, struct error *err)
{
        struct store_stmt *s = handover_row_list(tx, clock_wall_ms());
        struct handover h;
        int rc;

        while ((rc = handover_row_next(s, &h, err)) == 1)
                set(arg, &h.chat, dup_handover(&h));
        return rc;
}

struct handovers *handovers_open(struct store *s, struct error *err)
{
        struct handovers *hs = mem_zalloc(sizeof(*hs));

        hs->store = s;
        map_init(&hs->by_chat);
        if (store_read_now(s, read_table, hs, err) == 0)
                return hs;
        handovers_free(hs);
        return NULL;
}

void handovers_free(struct handovers *hs)
{
        void *value;

        if (!hs)
                return;
        for (size_t i = 0; map_each(&hs->by_chat, &i, NULL, &value);)
                free_handover(value);
        map_release(&hs->by_chat);
        free(hs);
}
