#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bus/bus_private.h"
#include "rows/journal_row.h"
#include "rows/meta_row.h"

#define SWEEP_NUMBERS 1000 /* per transaction: other writes wait for it */
#define SCAN_LEAST    5000
#define SCAN_FACTOR   50
#define HEAD_KEY      "journal_head"

_Static_assert(STREAM_COUNT == JOURNAL_STREAMS, "rows/journal_row.c names every stream");
_Static_assert(STREAM_MESSAGE == 0, "the index of messages by chat names the stream");
_Static_assert(STREAM_SESSION == 4, "the index of events by session names the stream");

/* --- batches --- */

static void batch_add(void *batch, const struct bus_event *e)
{
        struct bus_batch *b = batch;

        if (b->count == b->cap) {
                b->cap = b->cap ? b->cap * 2 : 4;
                b->events = mem_realloc(b->events, b->cap * sizeof(struct bus_event *));
        }
        b->events[b->count++] = bus_event_dup(e);
}

void bus_batch_reset(struct bus_batch *b)
{
        for (unsigned i = 0; i < b->count; i++)
                free(b->events[i]);
        b->count = 0;
}

void bus_batch_release(struct bus_batch *b)
{
        bus_batch_reset(b);
        free(b->events);
        *b = (struct bus_batch){ 0 };
}

/* --- appending --- */

int bus_append(struct store_tx *tx, struct bus_batch *batch, const struct bus_event *e,
               int64_t *seq, struct error *err)
{
        struct bus_event stored = *e;
        struct journal_row row = {
                .type = e->type,
                .stream = bus_stream_of(e->type),
                .time_ms = e->time_ms ? e->time_ms : clock_wall_ms(),
                .adapter = e->adapter,
                .channel = e->channel,
                .thread = e->thread,
                .trace = e->trace,
                .key = e->key,
                .payload = e->payload,
        };
        int rc;

        if (row.stream < 0)
                return error_set(err, ERR_INVALID, "event type '%s' belongs to no stream", e->type);
        rc = journal_row_insert(tx, &row, &stored.seq, err);
        if (rc < 0)
                return -1;
        if (rc == 0) {
                int found = journal_row_find(tx, e->adapter, e->key, &stored.seq, err);

                if (found == 0)
                        return error_set(err, ERR_INTERNAL, "event '%s' was refused by the journal",
                                         e->type);
                if (found < 0)
                        return -1;
        } else if (batch) {
                stored.time_ms = row.time_ms;
                batch_add(batch, &stored);
        }
        if (seq)
                *seq = stored.seq;
        return rc;
}

/* --- reading --- */

static bool text_matches(const char *wanted, const char *text)
{
        return !wanted || (text && strcmp(wanted, text) == 0);
}

static bool row_matches(const struct journal_row *row, const struct bus_filter *f)
{
        size_t n = f->type ? strlen(f->type) : 0;

        if (f->streams && !(f->streams & (1u << row->stream)))
                return false;
        if ((f->since_ms && row->time_ms < f->since_ms) ||
            (f->until_ms && row->time_ms >= f->until_ms))
                return false;
        if (n > 0 && f->type[n - 1] == '*' ? strncmp(row->type, f->type, n - 1) != 0
                                           : n > 0 && strcmp(row->type, f->type) != 0)
                return false;
        return text_matches(f->adapter, row->adapter) && text_matches(f->channel, row->channel) &&
               text_matches(f->trace, row->trace) && (!f->may || f->may(f->may_arg, row->adapter));
}

/*
 * Filters here, not in the database, so that looking for a rare event ends after a bounded number
 * of rows. *at_end: no row was left.
 */
static int scan(struct store_tx *tx, const struct bus_filter *f, unsigned limit,
                bus_listener_fn *each, void *arg, int64_t *scanned_to, bool *at_end,
                struct error *err)
{
        bool one_chat = f->adapter && f->channel && f->streams == 1u << STREAM_MESSAGE;
        bool one_session = f->trace && f->streams == 1u << STREAM_SESSION && f->before == 0;
        struct journal_range range = { .after = f->after,
                                       .before = f->before,
                                       .adapter = one_chat ? f->adapter : NULL,
                                       .channel = one_chat ? f->channel : NULL,
                                       .session_trace = one_session ? f->trace : NULL };
        struct store_stmt *s = journal_row_scan(tx, &range);
        int64_t budget = (int64_t)limit * SCAN_FACTOR;
        struct journal_row row;
        unsigned found = 0;
        int rc = 1;

        if (budget < SCAN_LEAST)
                budget = SCAN_LEAST;
        *scanned_to = f->before > 0 ? f->before : f->after;
        while (found < limit && budget-- > 0 && (rc = journal_row_next(s, &row, err)) == 1) {
                *scanned_to = row.seq;
                if (!row_matches(&row, f))
                        continue;
                journal_row_read_payload(s, &row);
                each(arg, &(struct bus_event){ .seq = row.seq,
                                               .type = row.type,
                                               .time_ms = row.time_ms,
                                               .adapter = row.adapter,
                                               .channel = row.channel,
                                               .thread = row.thread,
                                               .trace = row.trace,
                                               .key = row.key,
                                               .payload = row.payload });
                found++;
        }
        rows_end(s);
        *at_end = rc == 0;
        return rc < 0 ? -1 : (int)found;
}

int bus_read(struct store_tx *tx, const struct bus_filter *f, unsigned limit, bus_listener_fn *each,
             void *arg, int64_t *scanned_to, struct error *err)
{
        int64_t ignored;
        bool at_end;

        return scan(tx, f, limit, each, arg, scanned_to ? scanned_to : &ignored, &at_end, err);
}

int journal_page(struct store_tx *tx, struct journal_page *page, struct error *err)
{
        struct bus_filter f = { .after = page->after, .streams = page->streams };

        bus_batch_reset(&page->events);
        return scan(tx, &f, page->limit, batch_add, &page->events, &page->scanned_to, &page->at_end,
                    err) < 0
                       ? -1
                       : 0;
}

/* --- extent and pruning --- */

/* The head is stored with every deletion, because an empty journal does not show it. */
int journal_extent(struct store_tx *tx, struct journal_extent *out, struct error *err)
{
        int64_t first, last, stored;
        char *text;

        if (journal_row_bounds(tx, &first, &last, err) != 0 ||
            meta_row_get(tx, HEAD_KEY, &text, err) < 0)
                return -1;
        stored = text ? strtoll(text, NULL, 10) : 0;
        free(text);
        out->head = last > stored ? last : stored;
        out->tail = first > 0 ? first : out->head + 1;
        return 0;
}

/* Sets *cut to the next numbers to look at. 1; 0: nothing to do now; -1. */
static int next_cut(struct store_tx *tx, const struct journal_sweep *sweep, struct journal_cut *cut,
                    struct error *err)
{
        struct store_stmt *s = journal_row_scan(tx, &(struct journal_range){ .after = sweep->at });
        int64_t latest_cutoff = INT64_MIN, furthest = 0;
        struct journal_row first;
        int rc = journal_row_next(s, &first, err);

        rows_end(s);
        if (rc <= 0)
                return rc;
        for (int i = 0; i < STREAM_COUNT; i++)
                if (sweep->cutoff_ms[i] > latest_cutoff)
                        latest_cutoff = sweep->cutoff_ms[i];
        /* a young event ends the sweep, unless its time is wrong: then older ones may follow */
        if (first.time_ms >= latest_cutoff && first.time_ms <= sweep->future_ms)
                return 0;
        memcpy(cut->cutoff_ms, sweep->cutoff_ms, sizeof(cut->cutoff_ms));
        for (int i = 0; i < STREAM_COUNT; i++) {
                if (cursor_row_least(tx, sweep->cutoff_ms[i], &cut->processed[i], err) != 0)
                        return -1;
                if (cut->processed[i] > furthest)
                        furthest = cut->processed[i];
        }
        cut->from = first.seq - 1;
        cut->to = cut->from + SWEEP_NUMBERS < furthest ? cut->from + SWEEP_NUMBERS : furthest;
        return cut->from < furthest;
}

struct cursor_list {
        struct arena arena;
        struct cursor_row *items;
        size_t count;
};

static void add_to_list(void *list, const struct cursor_row *row)
{
        struct cursor_list *l = list;

        l->items = mem_realloc(l->items, (l->count + 1) * sizeof(*l->items));
        l->items[l->count] = *row;
        l->items[l->count++].name = arena_strdup(&l->arena, row->name);
}

/* Counts how many events each absent reader is about to lose. */
static int count_missed(struct store_tx *tx, struct journal_sweep *sweep,
                        const struct journal_cut *cut, struct error *err)
{
        struct cursor_list behind = { 0 };
        int rc;

        arena_init(&behind.arena);
        rc = cursor_row_each(tx, cut->to, add_to_list, &behind, err);
        for (size_t i = 0; rc == 0 && i < behind.count; i++) {
                const struct cursor_row *c = &behind.items[i];
                struct journal_cut unread = *cut;
                int64_t lost = 0;

                if (c->seq > unread.from)
                        unread.from = c->seq;
                rc = journal_row_count_cut(tx, &unread, &lost, err);
                if (rc != 0 || lost == 0)
                        continue;
                rc = cursor_row_add_missed(tx, c->name, lost, err);
                if (c->missed == 0)
                        buf_addf(&sweep->lapsed, "%s%s", sweep->lapsed.len > 0 ? ", " : "",
                                 c->name);
        }
        free(behind.items);
        arena_release(&behind.arena);
        return rc;
}

int journal_sweep(struct store_tx *tx, struct journal_sweep *sweep, struct error *err)
{
        struct journal_cut cut = { 0 };
        char head[24];
        int rc;

        sweep->deleted = 0;
        sweep->more = false;
        sweep->next = 0;
        buf_clear(&sweep->lapsed);
        if (journal_extent(tx, &sweep->extent, err) != 0)
                return -1;
        rc = next_cut(tx, sweep, &cut, err);
        if (rc <= 0)
                return rc;
        if (count_missed(tx, sweep, &cut, err) != 0)
                return -1;
        sweep->deleted = journal_row_cut(tx, &cut, sweep->keys_ms, err);
        if (sweep->deleted < 0)
                return -1;
        sweep->next = cut.to;
        sweep->more = true;
        if (sweep->deleted == 0)
                return 0;
        snprintf(head, sizeof(head), "%" PRId64, sweep->extent.head);
        if (meta_row_put(tx, HEAD_KEY, head, err) != 0)
                return -1;
        return journal_extent(tx, &sweep->extent, err);
}
