/*
 * Updates on their way to the inbox.
 *
 *     arrived ──► held (an album is not complete) ──► fetching (files) ──► ready ──► storing ──►
 *     done
 *
 * Every update stands in the window from its arrival until it and all before it are committed; what
 * is behind the window may be confirmed to Telegram. Events of one chat are handed over in their
 * order; those of other chats do not wait for them. When the inbox refuses, a polled update stays
 * and is handed over again: nothing is confirmed meanwhile. A posted one is given back with 503.
 *
 * The polled parts of an album are one event (posted ones: tg_album.c), under the key of its first
 * message, and the inbox knows the others' keys as well. After a crash Telegram repeats what was
 * not confirmed, and then other parts may come together than before: when the inbox knows some of
 * an album's parts, each is handed over by itself.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/telegram/telegram.h"

#define ALBUM_MS   1000 /* after its last part */
#define WINDOW_MAX 100  /* what getUpdates gives at most; more posts than these are given back */
#define AGAIN_MS   500
#define AGAIN_MAX  10000

enum work_state { WORK_UNREADY, WORK_READY, WORK_STORING, WORK_DONE };

/* One file of a work that is being fetched. */
struct want {
        struct tg_work *work;
        struct fetch *fetch;
};

/* The road answers to this; it outlives the work when it must. */
struct receipt {
        struct tg_work *work; /* NULL: gone meanwhile */
        unsigned left;
        bool refused;
        char why[200];
};

struct tg_work {
        struct telegram *tg;
        json_t *update;
        struct tg_item item;
        enum work_state state;
        struct tg_work *lead;  /* the album's first part; NULL: this is it, or there is no album */
        struct tg_works parts; /* of an album besides this one */
        struct timer *hold;    /* until the album is complete */
        bool apart;            /* some of its parts are known: each is an event of its own */
        struct want *wants;    /* one for each attachment */
        unsigned fetching;
        struct receipt *receipt;
        struct http_exchange *x; /* waits for the commit */
        TAILQ_ENTRY(tg_work) next;
        TAILQ_ENTRY(tg_work) part;
};

static void flush(struct telegram *tg);

/* ---- life ---- */

static void answer(struct tg_work *w, bool stored)
{
        struct http_exchange *x = w->x;

        w->x = NULL;
        if (!x)
                return;
        if (stored)
                http_answer(x, 200, NULL, "", 0);
        else
                http_refuse(x, 503, "UNAVAILABLE", "the update could not be stored; send it again");
}

static void work_free(struct tg_work *w)
{
        answer(w, false);
        timer_free(w->hold);
        for (size_t i = 0; w->wants && i < w->item.attachment_count; i++)
                fetch_drop(w->wants[i].fetch);
        free(w->wants);
        if (w->receipt)
                w->receipt->work = NULL;
        tg_item_release(&w->item);
        json_decref(w->update);
        free(w);
}

void tg_intake_init(struct telegram *tg)
{
        TAILQ_INIT(&tg->intake.window);
        tg_fetches_init(tg);
}

void tg_intake_release(struct telegram *tg)
{
        struct tg_work *w;

        while ((w = TAILQ_FIRST(&tg->intake.window))) {
                TAILQ_REMOVE(&tg->intake.window, w, next);
                work_free(w);
        }
        timer_free(tg->intake.again);
}

/* ---- the window ---- */

/*
 * Committed updates leave: from the front when polling, because Telegram repeats what is behind a
 * pending one and it must be known again; from anywhere when they are posted.
 */
static void sweep(struct telegram *tg)
{
        struct tg_work *w, *after;

        for (w = TAILQ_FIRST(&tg->intake.window); w; w = after) {
                after = TAILQ_NEXT(w, next);
                if (w->state != WORK_DONE && tg_polls(tg))
                        return;
                if (w->state != WORK_DONE)
                        continue;
                TAILQ_REMOVE(&tg->intake.window, w, next);
                tg->intake.count--;
                work_free(w);
        }
}

static struct tg_work *find(struct telegram *tg, int64_t update)
{
        struct tg_work *w;

        for (w = TAILQ_FIRST(&tg->intake.window); w; w = TAILQ_NEXT(w, next))
                if (w->item.update == update)
                        return w;
        return NULL;
}

int64_t tg_intake_offset(const struct telegram *tg, int64_t otherwise)
{
        const struct tg_work *w;
        int64_t least = otherwise;

        for (w = TAILQ_FIRST(&tg->intake.window); w; w = TAILQ_NEXT(w, next))
                if (w->state != WORK_DONE && w->item.update < least)
                        least = w->item.update;
        return least;
}

bool tg_intake_open(const struct telegram *tg)
{
        return tg->intake.unready > 0 && tg->intake.count < WINDOW_MAX && tg->intake.refusals == 0;
}

/* ---- storing ---- */

static void answer_button(struct telegram *tg, const char *callback);

static void done(struct tg_work *w)
{
        w->state = WORK_DONE;
        if (w->item.callback)
                answer_button(w->tg, w->item.callback);
        answer(w, true);
}

static void all_stored(struct tg_work *w)
{
        struct tg_work *p;

        w->tg->intake.refusals = 0;
        for (p = TAILQ_FIRST(&w->parts); p; p = TAILQ_NEXT(p, part))
                done(p);
        done(w);
}

static void on_again(void *arg)
{
        flush(arg);
}

/* The sweep takes it out of the window. */
static void forget(struct tg_work *w)
{
        w->state = WORK_DONE;
        answer(w, false);
}

/*
 * Whoever posted is told to come back, and it is forgotten here; what we polled ourselves is kept
 * and handed over again.
 */
static void refused(struct tg_work *w, const char *why)
{
        struct tg_intake *in = &w->tg->intake;
        int64_t wait = AGAIN_MS << (in->refusals < 5 ? in->refusals : 5);
        struct tg_work *p;

        if (in->refusals++ == 0)
                log_warn("the inbox takes nothing at the moment; updates will be offered again",
                         LOG_S("adapter", w->tg->adapter->name), LOG_S("why", why));
        if (!tg_polls(w->tg)) {
                for (p = TAILQ_FIRST(&w->parts); p; p = TAILQ_NEXT(p, part))
                        forget(p);
                forget(w);
                return;
        }
        w->state = WORK_READY;
        if (!in->again)
                in->again = timer_new(w->tg->adapter->loop, on_again, w->tg);
        if (!timer_active(in->again))
                timer_start(in->again, wait < AGAIN_MAX ? wait : AGAIN_MAX);
}

static void store_apart(struct tg_work *w, struct receipt *t);

static void on_receipt(void *arg, const struct inbox_receipt *r)
{
        struct receipt *t = arg;
        struct tg_work *w = t->work;
        struct telegram *tg;

        if (w && r->outcome == INBOX_DUPLICATE && !TAILQ_EMPTY(&w->parts) && !w->apart) {
                w->apart = true;
                store_apart(w, t);
                return;
        }
        if (r->outcome == INBOX_FAILED && r->error.kind != ERR_INVALID) {
                t->refused = true;
                snprintf(t->why, sizeof(t->why), "%.199s", r->error.text);
        } else if (r->outcome == INBOX_FAILED) {
                log_warn("an update was left out: it will never be accepted",
                         LOG_S("why", r->error.text));
        }
        if (--t->left > 0)
                return;
        if (w) {
                tg = w->tg;
                w->receipt = NULL;
                if (t->refused)
                        refused(w, t->why);
                else
                        all_stored(w);
                sweep(tg);
                tg_listen_on(tg);
        }
        free(t);
}

/* ---- handing over ---- */

static void note_files(json_t *metadata, const struct tg_item *item)
{
        json_t *files = json_object_get(metadata, "files");

        if (!files) {
                files = json_array();
                json_object_set_new(metadata, "files", files);
        }
        for (size_t i = 0; i < item->attachment_count; i++) {
                json_t *file = json_object();

                if (item->files[i].id)
                        json_object_set_new(file, "fileId", json_string(item->files[i].id));
                if (item->files[i].unique)
                        json_object_set_new(file, "fileUniqueId",
                                            json_string(item->files[i].unique));
                if (item->files[i].error)
                        json_object_set_new(file, "error", json_string(item->files[i].error));
                json_array_append_new(files, file);
        }
}

/* The part of an album that came first in the chat, whatever the order of arrival. */
static struct tg_work *first_part(struct tg_work *w)
{
        struct tg_work *first = w, *p;

        for (p = TAILQ_FIRST(&w->parts); p; p = TAILQ_NEXT(p, part))
                if (p->item.message < first->item.message)
                        first = p;
        return first;
}

/* Adds what another part of the album says. */
static void add_part(struct incoming *in, json_t *metadata, struct attachment *all,
                     const struct tg_work *p)
{
        const struct incoming *more = p->item.events;

        memcpy(all + in->attachment_count, p->item.attachments,
               p->item.attachment_count * sizeof(*all));
        in->attachment_count += p->item.attachment_count;
        note_files(metadata, &p->item);
        if (!in->text || !*in->text) {
                in->text = more->text;
                in->raw_text = more->raw_text;
        }
        in->is_mention = in->is_mention || more->is_mention;
        in->is_reply = in->is_reply || more->is_reply;
}

static void hand_over(struct tg_work *w, struct incoming *in, const json_t *metadata,
                      struct receipt *t)
{
        char *text = json_text(metadata);

        in->metadata = text;
        adapter_received(w->tg->adapter, in, on_receipt, t);
        free(text);
}

/* The next part of an album after `p`, the first one left out; NULL: that was the last. */
static struct tg_work *next_part(struct tg_work *w, const struct tg_work *first, struct tg_work *p)
{
        do
                p = !p ? w : p == w ? TAILQ_FIRST(&w->parts) : TAILQ_NEXT(p, part);
        while (p && p == first);
        return p;
}

static unsigned count_parts(const struct tg_work *w)
{
        const struct tg_work *p;
        unsigned n = 1;

        for (p = TAILQ_FIRST(&w->parts); p; p = TAILQ_NEXT(p, part))
                n++;
        return n;
}

/* One message with its files, or an album as one message. A message has one attachment at most. */
static void store_message(struct tg_work *w, struct receipt *t)
{
        struct tg_work *first = first_part(w), *p = NULL;
        struct incoming in = first->item.events[0];
        json_t *metadata = json_copy(first->item.metadata);
        unsigned n = count_parts(w);
        struct attachment *all = mem_array(n, sizeof(*all));
        struct incoming_part *parts = mem_array(n, sizeof(*parts));

        in.attachments = all;
        in.parts = parts;
        add_part(&in, metadata, all, first);
        while ((p = next_part(w, first, p))) {
                parts[in.part_count++] =
                        (struct incoming_part){ p->item.events->key, p->item.events->id };
                add_part(&in, metadata, all, p);
        }
        if (w->item.album)
                tg_album_joins(w->tg, &w->item, &in);
        hand_over(w, &in, metadata, t);
        json_decref(metadata);
        free(parts);
        free(all);
}

/* One part of an album as an event of its own, which is addressed to the bot when the album is. */
static void store_part(struct tg_work *w, struct tg_work *p, struct receipt *t)
{
        struct incoming in = p->item.events[0];
        json_t *metadata = json_copy(p->item.metadata);

        note_files(metadata, &p->item);
        in.attachments = p->item.attachments;
        in.attachment_count = p->item.attachment_count;
        in.more_follows = true;
        tg_album_joins(w->tg, &p->item, &in);
        hand_over(w, &in, metadata, t);
        json_decref(metadata);
}

static void store_apart(struct tg_work *w, struct receipt *t)
{
        struct tg_work *p = NULL;

        t->left = count_parts(w);
        store_part(w, first_part(w), t);
        while ((p = next_part(w, first_part(w), p)))
                store_part(w, p, t);
}

static void store_others(struct tg_work *w, struct receipt *t)
{
        char *metadata = json_text(w->item.metadata);

        for (size_t i = 0; i < w->item.event_count; i++) {
                struct incoming in = w->item.events[i];

                in.metadata = metadata;
                adapter_received(w->tg->adapter, &in, on_receipt, t);
        }
        free(metadata);
}

static void store(struct tg_work *w)
{
        struct receipt *t = mem_zalloc(sizeof(*t));

        w->state = WORK_STORING;
        w->receipt = t;
        t->work = w;
        t->left = (unsigned)w->item.event_count;
        if (w->apart)
                store_apart(w, t);
        else if (w->item.attachment_count > 0 || !TAILQ_EMPTY(&w->parts))
                store_message(w, t);
        else
                store_others(w, t);
}

/* Does an earlier update of the same chat still wait? */
static bool is_behind(const struct tg_work *w)
{
        const struct tg_work *p;

        for (p = TAILQ_FIRST(&w->tg->intake.window); p; p = TAILQ_NEXT(p, next)) {
                if (p == w)
                        return false;
                if (!p->lead && (p->state == WORK_UNREADY || p->state == WORK_READY) &&
                    p->item.chat && strcmp(p->item.chat, w->item.chat) == 0)
                        return true;
        }
        return false;
}

/* Hands over whatever may go. */
static void flush(struct telegram *tg)
{
        struct tg_work *w;

        if (tg->intake.again && timer_active(tg->intake.again))
                return;
        for (w = TAILQ_FIRST(&tg->intake.window); w; w = TAILQ_NEXT(w, next))
                if (w->state == WORK_READY && !w->lead &&
                    (tg->intake.unready == 0 || !is_behind(w)))
                        store(w);
}

/* ---- making ready ---- */

static void settle(struct tg_work *w)
{
        struct tg_work *lead = w->lead ? w->lead : w, *p;
        unsigned fetching = lead->fetching;

        for (p = TAILQ_FIRST(&lead->parts); p; p = TAILQ_NEXT(p, part))
                fetching += p->fetching;
        if (lead->state != WORK_UNREADY || fetching > 0 || (lead->hold && timer_active(lead->hold)))
                return;
        lead->state = WORK_READY;
        lead->tg->intake.unready--;
        flush(lead->tg);
}

static void on_hold_over(void *arg)
{
        settle(arg);
}

static void on_fetched(void *arg, const char *path, int64_t size, const char *why)
{
        struct want *want = arg;
        struct tg_work *w = want->work;
        size_t i = (size_t)(want - w->wants);

        want->fetch = NULL;
        if (path) {
                w->item.attachments[i].path = arena_strdup(&w->item.arena, path);
                w->item.attachments[i].size = size;
        } else {
                w->item.files[i].error = arena_strdup(&w->item.arena, why);
        }
        w->fetching--;
        settle(w);
}

static void fetch(struct tg_work *w, size_t i)
{
        struct fetches *all = &w->tg->intake.fetches;
        const struct attachment *a = &w->item.attachments[i];
        struct tg_file *file = &w->item.files[i];
        const struct fetch_order order = { .key = file->id,
                                           .channel = w->item.chat,
                                           .message = w->item.events[0].id,
                                           .name = a->name };

        if (!file->id)
                return;
        file->error = fetch_refusal(all, a->size);
        if (file->error)
                return;
        w->fetching++;
        w->wants[i].work = w;
        w->wants[i].fetch = fetch_start(all, &order, on_fetched, &w->wants[i]);
}

/* The held album this update belongs to, or NULL. */
static struct tg_work *album_of(struct tg_work *w)
{
        struct tg_work *p;

        if (!w->item.album)
                return NULL;
        for (p = TAILQ_FIRST(&w->tg->intake.window); p; p = TAILQ_NEXT(p, next))
                if (p != w && !p->lead && p->state == WORK_UNREADY && p->item.album &&
                    strcmp(p->item.album, w->item.album) == 0 &&
                    strcmp(p->item.chat, w->item.chat) == 0)
                        return p;
        return NULL;
}

static void join_album(struct tg_work *w)
{
        struct tg_work *lead = album_of(w);

        if (lead) {
                w->lead = lead;
                TAILQ_INSERT_TAIL(&lead->parts, w, part);
        } else {
                lead = w;
                w->hold = timer_new(w->tg->adapter->loop, on_hold_over, w);
                w->tg->intake.unready++;
        }
        timer_start(lead->hold, ALBUM_MS);
}

static void prepare(struct tg_work *w)
{
        struct telegram *tg = w->tg;

        if (w->item.event_count == 0) {
                log_debug("an update is left out", LOG_S("adapter", tg->adapter->name),
                          LOG_I("update", w->item.update), LOG_S("why", w->item.ignored));
                done(w);
                return;
        }
        w->wants = mem_array(w->item.attachment_count, sizeof(*w->wants));
        if (w->item.album && tg_polls(tg))
                join_album(w);
        else if (w->item.album)
                tg_album_part(tg, &w->item);
        for (size_t i = 0; i < w->item.attachment_count; i++)
                fetch(w, i);
        if (w->item.album && tg_polls(tg))
                return;
        if (w->fetching > 0)
                tg->intake.unready++;
        else
                w->state = WORK_READY;
}

/* ---- arriving ---- */

void tg_intake_add(struct telegram *tg, json_t *update, struct http_exchange *x)
{
        struct tg_work *w = find(tg, json_int(update, "update_id", 0));

        if (w) {
                if (x) { /* its first sender has given up */
                        answer(w, false);
                        w->x = x;
                }
                return;
        }
        if (x && tg->intake.count >= WINDOW_MAX) {
                http_refuse(x, 503, "UNAVAILABLE",
                            "too many updates wait to be stored; send it again");
                return;
        }
        w = mem_zalloc(sizeof(*w));
        w->tg = tg;
        w->update = json_incref(update);
        w->x = x;
        TAILQ_INIT(&w->parts);
        TAILQ_INSERT_TAIL(&tg->intake.window, w, next);
        tg->intake.count++;
        tg_item_read(&w->item, &tg->self, update);
        if (w->item.migrated)
                tg_chat_moved(tg, w->item.chat, w->item.migrated);
        prepare(w);
        if (tg->intake.unready > 0 || tg->intake.refusals > 0)
                flush(tg);
        else if (w->state == WORK_READY)
                store(w);
        sweep(tg);
}

/* ---- buttons ---- */

static void on_button(void *arg, const struct tg_answer *answer)
{
        struct telegram *tg = arg;

        if (!answer->ok)
                log_info("a pressed button could not be confirmed",
                         LOG_S("adapter", tg->adapter->name), LOG_S("why", answer->why));
}

/* Ends the progress the user sees on the button. */
static void answer_button(struct telegram *tg, const char *callback)
{
        json_t *params = json_pack("{s:s}", "callback_query_id", callback);

        tg_call_start(tg, &(struct tg_request){ .method = "answerCallbackQuery", .params = params },
                      on_button, tg);
        json_decref(params);
}
