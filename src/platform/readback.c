/*
 * One place is read from its newest message back to the beginning of the gap, so that a limit drops
 * the oldest messages; or from there on, where a platform has no other way. What is new is kept in
 * memory and then handed over, oldest first.
 *
 *     reading ──► sorting out ──► handing over
 *        ▲  one page   │ what the journal has already
 *        └─────────────┘
 */
#include "platform/readback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "rows/journal_row.h"

#define AT_ONCE      4
#define PAGES_MAX    50 /* of a place, besides those for its limit of messages */
#define HOLD_MS      30000
#define TRIES        10 /* with waits of about three minutes */
#define WAIT_MS      250
#define WAIT_MAX_MS  60000
#define UNSTORED_MAX 500 /* messages; beyond it handing over waits */
#define STORING_MS   100
#define JOBS_LOW     200
#define JOBS_MAX     5000
#define KNOWN_MAX    50000 /* places remembered as read */

struct readback {
        struct readback_options o;
        const struct adapter *adapter;
        TAILQ_HEAD(, readback_job) jobs;
        size_t count, running;
        struct map known; /* of the current gap: their job, or r when read */
        bool crowded;     /* the owner waits for room */
        bool failed;
        struct timer *holding; /* ends it */
};

/* Which messages of a page does the journal have? */
struct readback_lookup {
        struct readback_job *job; /* NULL: no longer wanted */
        char *adapter;
        char keys[READBACK_PAGE][READBACK_KEY_SIZE];
        bool stored[READBACK_PAGE];
        size_t count;
};

static void pump(struct readback *r);

static void job_free(struct readback_job *j)
{
        if (j->lookup)
                j->lookup->job = NULL;
        timer_free(j->timer);
        json_decref(j->page);
        json_decref(j->kept);
        free(j->cursor);
        free(j->key);
        free((char *)(uintptr_t)j->chat);
        free((char *)(uintptr_t)j->thread);
        free(j);
}

/* ---- one place ---- */

static void hand_over(struct readback_job *j);

static void read_page(struct readback_job *j)
{
        j->r->o.ops->read(j->r->o.ctx, j);
}

static void on_timer(void *job)
{
        struct readback_job *j = job;

        if (j->complete)
                hand_over(j);
        else
                read_page(j);
}

static void continue_later(struct readback_job *j, int64_t ms)
{
        if (!j->timer)
                j->timer = timer_new(j->r->adapter->loop, on_timer, j);
        timer_start(j->timer, ms);
}

static void begin_job(struct readback_job *j)
{
        json_decref(j->kept);
        j->kept = json_array();
        free(j->cursor);
        j->cursor = NULL;
        j->before = 0;
        j->counted = j->pages = j->skipped = 0;
        j->tries = 0;
        j->last = j->complete = j->failed = false;
        read_page(j);
}

/* It is read and handed over, or given up. */
static void end_job(struct readback_job *j)
{
        struct readback *r = j->r;

        if (j->again) {
                j->again = false;
                begin_job(j);
                return;
        }
        TAILQ_REMOVE(&r->jobs, j, next);
        r->count--;
        r->running--;
        if (j->held)
                intake_release(r->o.window, j->chat);
        if (j->of_old_gap || j->failed)
                map_remove(&r->known, j->key);
        else
                map_put(&r->known, j->key, r);
        job_free(j);
        pump(r);
}

/* Oldest first, no faster than the inbox stores. */
static void hand_over(struct readback_job *j)
{
        const struct readback_options *o = &j->r->o;
        size_t n;

        while ((n = json_array_size(j->kept)) > 0) {
                json_t *message;

                if (o->window->backfilling >= UNSTORED_MAX) {
                        continue_later(j, STORING_MS);
                        return;
                }
                message = json_incref(json_array_get(j->kept, n - 1));
                json_array_remove(j->kept, n - 1);
                o->ops->missed(o->ctx, j, message);
                json_decref(message);
        }
        end_job(j);
}

/* The place is read as far as it will be. */
static void complete(struct readback_job *j, bool whole)
{
        const struct readback *r = j->r;

        if (!whole || j->skipped > 0)
                log_warn("catch-up limit of a channel reached; its oldest missed messages are "
                         "skipped",
                         LOG_S("adapter", r->adapter->name), LOG_S("channel", j->chat),
                         LOG_S("thread", j->thread),
                         LOG_I("taken", (int64_t)json_array_size(j->kept)),
                         LOG_I("skipped", j->skipped), LOG_I("pages", j->pages),
                         LOG_S("unread", whole          ? "none"
                                         : j->ascending ? "newer messages"
                                                        : "older messages"),
                         LOG_I("catchUpMessages", r->o.messages));
        else if (json_array_size(j->kept) > 0)
                log_debug("missed messages read back", LOG_S("adapter", r->adapter->name),
                          LOG_S("channel", j->chat), LOG_S("thread", j->thread),
                          LOG_I("messages", (int64_t)json_array_size(j->kept)));
        j->complete = true;
        hand_over(j);
}

/* Beyond the limit only messages to the bot are kept, up to the same number. */
static void keep(struct readback_job *j, json_t *message)
{
        const struct readback_options *o = &j->r->o;

        if (j->counted < o->messages) {
                j->counted++;
                json_array_append(j->kept, message);
        } else if (o->ops->is_to_us(o->ctx, j, message) &&
                   (int64_t)json_array_size(j->kept) < 2 * o->messages) {
                json_array_append(j->kept, message);
        } else {
                j->skipped++;
        }
}

/* The same when each page is newer than the last: makes room by dropping the oldest. */
static void keep_newer(struct readback_job *j, json_t *message)
{
        json_array_insert(j->kept, 0, message);
        if ((int64_t)json_array_size(j->kept) > j->r->o.messages) {
                json_array_remove(j->kept, json_array_size(j->kept) - 1);
                j->skipped++;
        }
}

/* stored NULL: none is known to be; the inbox recognises repeats. */
static void sort_out(struct readback_job *j, const bool *stored)
{
        int64_t pages_max = PAGES_MAX + j->r->o.messages / READBACK_PAGE;
        size_t n = json_array_size(j->page);

        for (size_t i = 0; i < n; i++) {
                size_t at = j->ascending ? n - 1 - i : i;
                json_t *message = json_array_get(j->page, at);

                if (stored && stored[at])
                        continue;
                if (j->ascending)
                        keep_newer(j, message);
                else
                        keep(j, message);
        }
        json_decref(j->page);
        j->page = NULL;
        if (j->last || j->pages >= pages_max)
                complete(j, j->last);
        else
                read_page(j);
}

static int read_stored(struct store_tx *tx, void *arg, struct error *err)
{
        struct readback_lookup *l = arg;

        for (size_t i = 0; i < l->count; i++) {
                int64_t seq;
                int rc = journal_row_find(tx, l->adapter, l->keys[i], &seq, err);

                if (rc < 0)
                        return -1;
                l->stored[i] = rc == 1;
        }
        return 0;
}

static void on_stored(void *arg, const struct error *err)
{
        struct readback_lookup *l = arg;
        struct readback_job *j = l->job;

        if (j) {
                j->lookup = NULL;
                if (err)
                        log_warn("cannot look up missed messages", LOG_S("adapter", l->adapter),
                                 LOG_S("why", err->text));
                sort_out(j, l->stored); /* after an error, as far as it was read */
        }
        free(l->adapter);
        free(l);
}

struct ordered {
        json_t *message;
        uint64_t order;
};

static int by_order_descending(const void *a, const void *b)
{
        uint64_t left = ((const struct ordered *)a)->order,
                 right = ((const struct ordered *)b)->order;

        return left < right ? 1 : left > right ? -1 : 0;
}

/* Takes the messages of the gap, newest first, and looks them up. */
static void take_page(struct readback_job *j, const struct readback_page *p)
{
        const struct readback_options *o = &j->r->o;
        size_t n = json_array_size(p->messages), i;
        uint64_t before = j->before;
        struct readback_lookup *l = mem_zalloc(sizeof(*l));
        struct ordered list[READBACK_PAGE] = { 0 };

        if (n > READBACK_PAGE)
                n = READBACK_PAGE;
        for (i = 0; i < n; i++) {
                list[i].message = json_array_get(p->messages, i);
                list[i].order = o->ops->order(list[i].message);
        }
        qsort(list, n, sizeof(*list), by_order_descending);
        j->page = json_array();
        for (i = 0; i < n; i++) {
                if (list[i].order > 0 && (j->before == 0 || list[i].order < j->before))
                        j->before = list[i].order;
                if (list[i].order <= j->since ||
                    !o->ops->key(o->ctx, j, list[i].message, l->keys[l->count]))
                        continue;
                json_array_append(j->page, list[i].message);
                l->count++;
        }
        if (j->ascending) {
                free(j->cursor);
                j->cursor = mem_strdup(p->cursor);
        }
        /* a short page need not be the last one, an empty one is */
        j->last =
                j->ascending ? !j->cursor : p->last || j->before == before || j->before <= j->since;
        if (!j->r->adapter->store || l->count == 0) {
                free(l);
                sort_out(j, NULL);
                return;
        }
        j->lookup = l;
        l->job = j;
        l->adapter = mem_strdup(j->r->adapter->name);
        store_read(j->r->adapter->store, read_stored, on_stored, l);
}

void readback_page(struct readback_job *j, const struct readback_page *p)
{
        struct readback *r = j->r;
        int64_t wait = -1;

        if (!p->messages && p->unavailable)
                wait = readback_retry_ms(r->o.wait_ms, p->retry_after_ms, &j->tries);
        if (wait >= 0) {
                continue_later(j, wait);
                return;
        }
        if (!p->messages) {
                j->failed = p->unavailable;
                r->failed = r->failed || j->failed;
                log_debug("cannot read missed messages of a channel",
                          LOG_S("adapter", r->adapter->name), LOG_S("channel", j->chat),
                          LOG_S("thread", j->thread), LOG_S("why", p->why));
                j->complete = true;
                hand_over(j);
                return;
        }
        j->tries = 0;
        j->pages++;
        take_page(j, p);
}

int64_t readback_wait_ms(int64_t first_ms, unsigned failures)
{
        if (failures >= TRIES)
                return -1;
        return backoff_ms(failures, first_ms > 0 ? first_ms : WAIT_MS, WAIT_MAX_MS);
}

int64_t readback_retry_ms(int64_t first_ms, int64_t retry_after_ms, unsigned *failures)
{
        int64_t least_ms = readback_wait_ms(first_ms, 0);

        if (retry_after_ms >= 0)
                return retry_after_ms > least_ms ? retry_after_ms : least_ms;
        return readback_wait_ms(first_ms, (*failures)++);
}

/* ---- all places ---- */

static void pump(struct readback *r)
{
        struct readback_job *j;

        TAILQ_FOREACH(j, &r->jobs, next) {
                if (r->running >= AT_ONCE)
                        break;
                if (j->running)
                        continue;
                j->running = true;
                r->running++;
                begin_job(j);
        }
        if (r->crowded && r->count <= JOBS_LOW / 2) {
                r->crowded = false;
                r->o.ops->room(r->o.ctx);
        }
}

static void stop_holding(void *arg)
{
        struct readback *r = arg;
        struct readback_job *j;

        TAILQ_FOREACH(j, &r->jobs, next) {
                if (j->held)
                        intake_release(r->o.window, j->chat);
                j->held = false;
        }
}

static void forget_known(struct readback *r)
{
        struct readback_job *j;

        map_release(&r->known);
        map_init(&r->known);
        TAILQ_FOREACH(j, &r->jobs, next)
                map_put(&r->known, j->key, j);
}

void readback_restart(struct readback *r)
{
        struct readback_job *j;

        forget_known(r);
        TAILQ_FOREACH(j, &r->jobs, next)
                j->of_old_gap = true;
}

void readback_want(struct readback *r, const char *chat, const char *thread, bool ascending,
                   uint64_t since)
{
        char *key = thread ? mem_printf("%s:%s", chat, thread) : mem_strdup(chat);
        void *known = map_get(&r->known, key);
        struct readback_job *j = known != r ? known : NULL;

        if (j && j->of_old_gap) { /* it may have read past the current gap */
                j->of_old_gap = false;
                j->again = true;
        }
        if (known) {
                free(key);
                return;
        }
        if (r->known.count >= KNOWN_MAX)
                forget_known(r);
        j = mem_zalloc(sizeof(*j));
        map_put(&r->known, key, j);
        j->r = r;
        j->ctx = r->o.ctx;
        j->key = key;
        j->chat = mem_strdup(chat);
        j->thread = mem_strdup(thread);
        j->ascending = ascending;
        j->since = since;
        j->held = true;
        intake_hold(r->o.window, chat);
        if (!timer_active(r->holding))
                timer_start(r->holding, r->o.hold_ms);
        TAILQ_INSERT_TAIL(&r->jobs, j, next);
        r->count++;
        r->crowded = r->crowded || r->count >= JOBS_LOW;
        pump(r);
}

enum readback_load readback_load(const struct readback *r)
{
        if (r->count >= JOBS_MAX)
                return READBACK_FULL;
        if (r->crowded)
                return READBACK_CROWDED;
        return r->count == 0 && r->o.window->backfilling == 0 ? READBACK_IDLE : READBACK_BUSY;
}

bool readback_take_failed(struct readback *r)
{
        bool failed = r->failed;

        r->failed = false;
        return failed;
}

struct readback *readback_new(const struct readback_options *o)
{
        struct readback *r = mem_zalloc(sizeof(*r));

        r->o = *o;
        if (r->o.hold_ms <= 0)
                r->o.hold_ms = HOLD_MS;
        r->adapter = o->window->adapter;
        TAILQ_INIT(&r->jobs);
        map_init(&r->known);
        r->holding = timer_new(r->adapter->loop, stop_holding, r);
        return r;
}

/* Releases nothing: held events come again after the restart. */
void readback_free(struct readback *r)
{
        struct readback_job *j, *after;

        if (!r)
                return;
        for (j = TAILQ_FIRST(&r->jobs); j; j = after) {
                after = TAILQ_NEXT(j, next);
                job_free(j);
        }
        timer_free(r->holding);
        map_release(&r->known);
        free(r);
}
