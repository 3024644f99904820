/*
 * One channel is read from its newest message back to the beginning of the gap, so that a limit
 * drops the oldest messages. What is new is kept in memory and then handed over, oldest first.
 *
 *     reading ──► sorting out ──► handing over
 *        ▲  one page   │ what the journal has already
 *        └─────────────┘
 */
#include "platform/discord/dc_catchup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/backoff.h"
#include "platform/discord/dc_event.h"
#include "platform/discord/dc_id.h"
#include "rows/journal_row.h"

#define AT_ONCE      4
#define PAGE         100
#define PAGES_MAX    50 /* of a channel, besides those for catchUpMessages */
#define HOLD_MS      30000
#define TRIES        10 /* with waits of about three minutes */
#define WAIT_MS      250
#define WAIT_MAX_MS  60000
#define UNSTORED_MAX 500 /* messages; beyond it handing over waits */
#define STORING_MS   100
#define JOBS_LOW     200
#define JOBS_MAX     5000
#define KNOWN_MAX    50000 /* channels remembered as read */

struct readback_job {
        struct dc_readback *r;
        char *channel;
        uint64_t since;  /* an id: the beginning of the gap */
        uint64_t before; /* the oldest id read; 0: nothing is read yet */
        json_t *page;    /* being sorted out, newest first */
        struct page_lookup *lookup;
        json_t *kept;           /* new messages, newest first */
        int64_t counted;        /* of these, towards catchUpMessages */
        int64_t pages, skipped; /* skipped: new, but beyond the limit */
        bool complete;          /* handing over */
        unsigned tries;
        struct timer *timer;
        bool running;
        bool held;
        bool failed; /* given up */
        bool of_old_gap;
        bool again; /* wanted for the current gap, too */
        TAILQ_ENTRY(readback_job) next;
};

struct dc_readback {
        struct dc_intake *in;
        TAILQ_HEAD(, readback_job) jobs;
        size_t count, running;
        struct map known; /* of the current gap: their job, or r when read */
        bool crowded;     /* catch-up waits for room */
        bool failed;
        struct timer *holding; /* ends it */
};

/* Which messages of a page does the journal have? */
struct page_lookup {
        struct readback_job *job; /* NULL: no longer wanted */
        char *adapter;
        char ids[PAGE][DC_ID_SIZE];
        bool stored[PAGE];
        size_t count;
};

static void pump(struct dc_readback *r);

static void job_free(struct readback_job *j)
{
        if (j->lookup)
                j->lookup->job = NULL;
        timer_free(j->timer);
        json_decref(j->page);
        json_decref(j->kept);
        free(j->channel);
        free(j);
}

/* ---- one channel ---- */

static void read_page(struct readback_job *j);
static void hand_over(struct readback_job *j);

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
                j->timer = timer_new(j->r->in->o.adapter->loop, on_timer, j);
        timer_start(j->timer, ms);
}

static void begin_job(struct readback_job *j)
{
        json_decref(j->kept);
        j->kept = json_array();
        j->before = 0;
        j->counted = j->pages = j->skipped = 0;
        j->tries = 0;
        j->complete = j->failed = false;
        read_page(j);
}

/* It is read and handed over, or given up. */
static void end_job(struct readback_job *j)
{
        struct dc_readback *r = j->r;

        if (j->again) {
                j->again = false;
                begin_job(j);
                return;
        }
        TAILQ_REMOVE(&r->jobs, j, next);
        r->count--;
        r->running--;
        if (j->held)
                intake_release(&r->in->window, j->channel);
        if (j->of_old_gap || j->failed)
                map_remove(&r->known, j->channel);
        else
                map_put(&r->known, j->channel, r);
        job_free(j);
        pump(r);
}

/* Oldest first, no faster than the inbox stores. */
static void hand_over(struct readback_job *j)
{
        struct dc_intake *in = j->r->in;
        size_t n;

        while ((n = json_array_size(j->kept)) > 0) {
                json_t *message;

                if (in->window.backfilling >= UNSTORED_MAX) {
                        continue_later(j, STORING_MS);
                        return;
                }
                message = json_incref(json_array_get(j->kept, n - 1));
                json_array_remove(j->kept, n - 1);
                dc_intake_missed(in, j->channel, message);
                json_decref(message);
        }
        end_job(j);
}

/* The channel is read as far as it will be. */
static void complete(struct readback_job *j, bool whole)
{
        const struct dc_intake_options *o = &j->r->in->o;

        if (!whole || j->skipped > 0)
                log_warn("catch-up limit of a channel reached; its oldest missed messages are "
                         "skipped",
                         LOG_S("adapter", o->adapter->name), LOG_S("channel", j->channel),
                         LOG_I("taken", (int64_t)json_array_size(j->kept)),
                         LOG_I("skipped", j->skipped), LOG_I("pages", j->pages),
                         LOG_S("unread", whole ? "none" : "older messages"),
                         LOG_I("catchUpMessages", o->catchup_messages));
        else if (json_array_size(j->kept) > 0)
                log_debug("missed messages read back", LOG_S("adapter", o->adapter->name),
                          LOG_S("channel", j->channel),
                          LOG_I("messages", (int64_t)json_array_size(j->kept)));
        j->complete = true;
        hand_over(j);
}

static uint64_t id_number(const json_t *message)
{
        const char *id = json_str(message, "id", NULL);

        return dc_id_valid(id) ? strtoull(id, NULL, 10) : 0;
}

/* Beyond the limit only messages to the bot are kept, up to the same number. */
static void keep(struct readback_job *j, json_t *message)
{
        struct dc_intake *in = j->r->in;
        const struct dc_event_context context = { .self = in->self,
                                                  .cache = in->cache,
                                                  .role_mentions = in->o.role_mentions };
        int64_t most = in->o.catchup_messages;

        if (j->counted < most) {
                j->counted++;
                json_array_append(j->kept, message);
        } else if (dc_event_is_to_us(&context, message) &&
                   (int64_t)json_array_size(j->kept) < 2 * most) {
                json_array_append(j->kept, message);
        } else {
                j->skipped++;
        }
}

/* stored NULL: none is known to be; the inbox recognises repeats. */
static void sort_out(struct readback_job *j, const bool *stored)
{
        int64_t pages_max = PAGES_MAX + j->r->in->o.catchup_messages / PAGE;
        json_t *message;
        bool whole;
        size_t i;

        json_array_foreach(j->page, i, message)
                if (!(stored && stored[i]))
                        keep(j, message);
        json_decref(j->page);
        j->page = NULL;
        whole = j->before <= j->since;
        if (whole || j->pages >= pages_max)
                complete(j, whole);
        else
                read_page(j);
}

static int read_stored(struct store_tx *tx, void *arg, struct error *err)
{
        struct page_lookup *l = arg;

        for (size_t i = 0; i < l->count; i++) {
                int64_t seq;
                int rc = journal_row_find(tx, l->adapter, l->ids[i], &seq, err);

                if (rc < 0)
                        return -1;
                l->stored[i] = rc == 1;
        }
        return 0;
}

static void on_stored(void *arg, const struct error *err)
{
        struct page_lookup *l = arg;
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

static void look_up(struct readback_job *j)
{
        const struct adapter *a = j->r->in->o.adapter;
        struct page_lookup *l;
        json_t *message;
        size_t i;

        if (!a->store || json_array_size(j->page) == 0) {
                sort_out(j, NULL);
                return;
        }
        l = j->lookup = mem_zalloc(sizeof(*l));
        l->job = j;
        l->adapter = mem_strdup(a->name);
        json_array_foreach(j->page, i, message)
                snprintf(l->ids[l->count++], DC_ID_SIZE, "%s", json_str(message, "id", ""));
        store_read(a->store, read_stored, on_stored, l);
}

static int by_id_descending(const void *a, const void *b)
{
        uint64_t left = id_number(*(json_t *const *)a), right = id_number(*(json_t *const *)b);

        return left < right ? 1 : left > right ? -1 : 0;
}

/* Takes the messages of the gap, newest first, whatever order they come in. */
static void take_page(struct readback_job *j, const json_t *body)
{
        size_t n = json_array_size(body) < PAGE ? json_array_size(body) : PAGE, i;
        const char *self = j->r->in->self;
        json_t *list[PAGE] = { 0 };

        for (i = 0; i < n; i++)
                list[i] = json_array_get(body, i);
        qsort(list, n, sizeof(*list), by_id_descending);
        j->page = json_array();
        for (i = 0; i < n; i++) {
                const char *author = json_str(json_object_get(list[i], "author"), "id", "");
                uint64_t id = id_number(list[i]);

                if (id > 0 && (j->before == 0 || id < j->before))
                        j->before = id;
                if (id > j->since && !(self && strcmp(author, self) == 0))
                        json_array_append(j->page, list[i]);
        }
}

static void on_page(void *arg, const struct dc_answer *a)
{
        struct readback_job *j = arg;
        bool unavailable = dc_rest_is_unavailable(a);
        int64_t wait = unavailable ? dc_readback_wait_ms(j->r->in, j->tries++) : -1;
        uint64_t before = j->before;

        if (wait >= 0) {
                continue_later(j, wait);
                return;
        }
        if (a->status != 200 || !json_is_array(a->result)) {
                j->failed = unavailable;
                j->r->failed = j->r->failed || j->failed;
                log_debug("cannot read missed messages of a channel",
                          LOG_S("adapter", j->r->in->o.adapter->name), LOG_S("channel", j->channel),
                          LOG_S("why", a->why));
                j->complete = true;
                hand_over(j);
                return;
        }
        j->tries = 0;
        j->pages++;
        take_page(j, a->result);
        if (j->before == before) /* empty: a short page need not be the last one */
                j->before = j->since;
        look_up(j);
}

static void read_page(struct readback_job *j)
{
        struct dc_readback *r = j->r;
        char query[60];

        if (j->before > 0)
                snprintf(query, sizeof(query), "before=%" PRIu64 "&limit=%d", j->before, PAGE);
        else
                snprintf(query, sizeof(query), "limit=%d", PAGE);
        r->in->hooks.get(r->in->hooks.ctx,
                         &(struct dc_get){ "/channels/{channel_id}/messages",
                                           { j->channel },
                                           .query = query,
                                           .idle = true },
                         on_page, j);
}

int64_t dc_readback_wait_ms(const struct dc_intake *in, unsigned failures)
{
        int64_t first = in->o.catchup_times.wait_ms;

        if (failures >= TRIES)
                return -1;
        return backoff_ms(failures, first > 0 ? first : WAIT_MS, WAIT_MAX_MS);
}

/* ---- all channels ---- */

static void pump(struct dc_readback *r)
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
                dc_catchup_continue(r->in->catchup);
        }
}

static void stop_holding(void *arg)
{
        struct dc_readback *r = arg;
        struct readback_job *j;

        TAILQ_FOREACH(j, &r->jobs, next) {
                if (j->held)
                        intake_release(&r->in->window, j->channel);
                j->held = false;
        }
}

static void forget_known(struct dc_readback *r)
{
        struct readback_job *j;

        map_release(&r->known);
        map_init(&r->known);
        TAILQ_FOREACH(j, &r->jobs, next)
                map_put(&r->known, j->channel, j);
}

void dc_readback_restart(struct dc_readback *r)
{
        struct readback_job *j;

        forget_known(r);
        TAILQ_FOREACH(j, &r->jobs, next)
                j->of_old_gap = true;
}

void dc_readback_want(struct dc_readback *r, const char *channel, int64_t since_ms)
{
        void *known = map_get(&r->known, channel);
        struct readback_job *j = known != r ? known : NULL;
        char since[DC_ID_SIZE];

        if (j && j->of_old_gap) { /* it may have read past the current gap */
                j->of_old_gap = false;
                j->again = true;
        }
        if (known)
                return;
        if (r->known.count >= KNOWN_MAX)
                forget_known(r);
        j = mem_zalloc(sizeof(*j));
        map_put(&r->known, channel, j);
        j->r = r;
        j->channel = mem_strdup(channel);
        dc_id_at(since_ms, since);
        j->since = strtoull(since, NULL, 10);
        j->held = true;
        intake_hold(&r->in->window, channel);
        if (!timer_active(r->holding))
                timer_start(r->holding, r->in->o.catchup_times.hold_ms);
        TAILQ_INSERT_TAIL(&r->jobs, j, next);
        r->count++;
        r->crowded = r->crowded || r->count >= JOBS_LOW;
        pump(r);
}

enum dc_readback_load dc_readback_load(const struct dc_readback *r)
{
        if (r->count >= JOBS_MAX)
                return DC_READBACK_FULL;
        if (r->crowded)
                return DC_READBACK_CROWDED;
        return r->count == 0 && r->in->window.backfilling == 0 ? DC_READBACK_IDLE
                                                               : DC_READBACK_BUSY;
}

bool dc_readback_take_failed(struct dc_readback *r)
{
        bool failed = r->failed;

        r->failed = false;
        return failed;
}

struct dc_readback *dc_readback_new(struct dc_intake *in)
{
        struct dc_readback *r = mem_zalloc(sizeof(*r));

        if (in->o.catchup_times.hold_ms <= 0)
                in->o.catchup_times.hold_ms = HOLD_MS;
        r->in = in;
        TAILQ_INIT(&r->jobs);
        map_init(&r->known);
        r->holding = timer_new(in->o.adapter->loop, stop_holding, r);
        return r;
}

/* Releases nothing: held events come again after the restart. */
void dc_readback_free(struct dc_readback *r)
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
