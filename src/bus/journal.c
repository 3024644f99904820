/*
 * The journal's rows: appending, reading pages, pruning. Everything here runs inside store
 * functions.
 */
#include "bus/journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define SWEEP_NUMBERS 1000 /* per transaction: other writes wait for it */
#define SCAN_LEAST    5000
#define SCAN_FACTOR   50

/* --- batches --- */

void journal_batch_add(struct bus_batch *b, const struct bus_event *e)
{
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

/* The unique index must see one value for "no adapter", and null is never equal to null. */
static const char *keyed_adapter(const struct bus_event *e)
{
        return e->key && !e->adapter ? "" : e->adapter;
}

int bus_find(struct store_tx *tx, const char *adapter, const char *key, int64_t *seq,
             struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT seq FROM journal WHERE adapter = ?1 AND key = ?2 AND key IS NOT NULL");
        int rc;

        store_bind_text(s, 1, adapter ? adapter : "");
        store_bind_text(s, 2, key);
        rc = store_step(s, err);
        if (rc == 1)
                *seq = store_col_int(s, 0);
        store_reset(s);
        return rc;
}

static int find_duplicate(struct store_tx *tx, const struct bus_event *e, int64_t *seq,
                          struct error *err)
{
        int rc = bus_find(tx, e->adapter, e->key, seq, err);

        if (rc == 0)
                return error_set(err, ERR_INTERNAL, "event '%s' was refused by the journal",
                                 e->type);
        return rc == 1 ? 0 : -1;
}

static int insert(struct store_tx *tx, int stream, const struct bus_event *e, int64_t *seq,
                  struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx,
                "INSERT INTO journal(type, stream, time_ms, adapter, channel, thread, trace, key, payload) "
                "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING");

        store_bind_text(s, 1, e->type);
        store_bind_int(s, 2, stream);
        store_bind_int(s, 3, e->time_ms);
        store_bind_text(s, 4, keyed_adapter(e));
        store_bind_text(s, 5, e->channel);
        store_bind_text(s, 6, e->thread);
        store_bind_text(s, 7, e->trace);
        store_bind_text(s, 8, e->key);
        store_bind_text(s, 9, e->payload);
        return store_insert(s, seq, err);
}

int bus_append(struct store_tx *tx, struct bus_batch *batch, const struct bus_event *e,
               int64_t *seq, struct error *err)
{
        struct bus_event row = *e;
        int stream = bus_stream_of(e->type);
        int rc;

        if (stream < 0)
                return error_set(err, ERR_INVALID, "event type '%s' belongs to no stream", e->type);
        if (row.time_ms == 0)
                row.time_ms = clock_wall_ms();
        rc = insert(tx, stream, &row, &row.seq, err);
        if (rc == 0)
                rc = find_duplicate(tx, &row, &row.seq, err);
        else if (rc == 1 && batch)
                journal_batch_add(batch, &row);
        if (rc >= 0 && seq)
                *seq = row.seq;
        return rc;
}

/* --- reading --- */

enum column { SEQ, TYPE, STREAM, TIME, ADAPTER, CHANNEL, THREAD, TRACE, KEY, PAYLOAD };
#define COLUMNS "seq, type, stream, time_ms, adapter, channel, thread, trace, key, payload"

static void row_event(struct store_stmt *s, struct bus_event *e)
{
        *e = (struct bus_event){
                .seq = store_col_int(s, SEQ),
                .type = store_col_text(s, TYPE),
                .time_ms = store_col_int(s, TIME),
                .adapter = store_col_text(s, ADAPTER),
                .channel = store_col_text(s, CHANNEL),
                .thread = store_col_text(s, THREAD),
                .trace = store_col_text(s, TRACE),
                .key = store_col_text(s, KEY),
                .payload = store_col_text(s, PAYLOAD),
        };
        if (e->adapter && e->adapter[0] == '\0')
                e->adapter = NULL;
}

static bool text_matches(const char *wanted, const char *text)
{
        return !wanted || (text && strcmp(wanted, text) == 0);
}

static bool type_matches(const char *wanted, const char *type)
{
        size_t n = wanted ? strlen(wanted) : 0;

        if (n == 0)
                return true;
        if (wanted[n - 1] == '*')
                return strncmp(type, wanted, n - 1) == 0;
        return strcmp(type, wanted) == 0;
}

static bool row_matches(struct store_stmt *s, const struct bus_filter *f)
{
        int64_t time_ms = store_col_int(s, TIME);

        if (f->streams && !(f->streams & (1u << store_col_int(s, STREAM))))
                return false;
        if ((f->since_ms && time_ms < f->since_ms) || (f->until_ms && time_ms >= f->until_ms))
                return false;
        return type_matches(f->type, store_col_text(s, TYPE)) &&
               text_matches(f->adapter, store_col_text(s, ADAPTER)) &&
               text_matches(f->channel, store_col_text(s, CHANNEL)) &&
               text_matches(f->trace, store_col_text(s, TRACE));
}

static bool may_be_seen(const struct bus_filter *f, const struct bus_event *e)
{
        return !f->may || f->may(f->may_arg, e->adapter);
}

/* The messages of one chat have an index of their own. */
static bool is_one_chat(const struct bus_filter *f)
{
        return f->adapter && f->channel && f->streams == 1u << STREAM_MESSAGE;
}

static struct store_stmt *start_chat_scan(struct store_tx *tx, const struct bus_filter *f)
{
        struct store_stmt *s;

        _Static_assert(STREAM_MESSAGE == 0, "the index names the stream");
        if (f->before > 0)
                s = store_prepare(tx,
                                  "SELECT " COLUMNS
                                  " FROM journal WHERE stream = 0 AND adapter = ?3 AND channel = ?4"
                                  " AND seq > ?1 AND seq < ?2 ORDER BY seq DESC");
        else
                s = store_prepare(tx,
                                  "SELECT " COLUMNS
                                  " FROM journal WHERE stream = 0 AND adapter = ?3 AND channel = ?4"
                                  " AND seq > ?1 AND seq < ?2 ORDER BY seq");
        store_bind_int(s, 1, f->after);
        store_bind_int(s, 2, f->before > 0 ? f->before : INT64_MAX);
        store_bind_text(s, 3, f->adapter);
        store_bind_text(s, 4, f->channel);
        return s;
}

static struct store_stmt *start_scan(struct store_tx *tx, const struct bus_filter *f)
{
        struct store_stmt *s;

        if (is_one_chat(f))
                return start_chat_scan(tx, f);
        if (f->before <= 0) {
                s = store_prepare(tx,
                                  "SELECT " COLUMNS " FROM journal WHERE seq > ?1 ORDER BY seq");
                store_bind_int(s, 1, f->after);
                return s;
        }
        s = store_prepare(tx, "SELECT " COLUMNS
                              " FROM journal WHERE seq > ?1 AND seq < ?2 ORDER BY seq DESC");
        store_bind_int(s, 1, f->after);
        store_bind_int(s, 2, f->before);
        return s;
}

/*
 * Rows are filtered here, not by the database, so that a rare match ends after a bounded number of
 * rows. *ended: no row was left.
 */
static int scan(struct store_tx *tx, const struct bus_filter *f, unsigned limit,
                bus_listener_fn *each, void *arg, int64_t *scanned_to, bool *ended,
                struct error *err)
{
        struct store_stmt *s = start_scan(tx, f);
        int64_t budget = limit * (int64_t)SCAN_FACTOR > SCAN_LEAST ? limit * (int64_t)SCAN_FACTOR
                                                                   : SCAN_LEAST;
        unsigned found = 0;
        int rc = 1;

        *scanned_to = f->before > 0 ? f->before : f->after;
        while (found < limit && budget-- > 0 && (rc = store_step(s, err)) == 1) {
                struct bus_event e;

                *scanned_to = store_col_int(s, SEQ);
                if (!row_matches(s, f))
                        continue;
                row_event(s, &e);
                if (!may_be_seen(f, &e))
                        continue;
                each(arg, &e);
                found++;
        }
        store_reset(s);
        *ended = rc == 0;
        return rc < 0 ? -1 : (int)found;
}

int bus_read(struct store_tx *tx, const struct bus_filter *f, unsigned limit, bus_listener_fn *each,
             void *arg, int64_t *scanned_to, struct error *err)
{
        int64_t ignored;
        bool ended;

        return scan(tx, f, limit, each, arg, scanned_to ? scanned_to : &ignored, &ended, err);
}

static void add_to_page(void *arg, const struct bus_event *e)
{
        journal_batch_add(arg, e);
}

int journal_page(struct store_tx *tx, struct journal_page *page, struct error *err)
{
        struct bus_filter f = { .after = page->after, .streams = page->streams };

        bus_batch_reset(&page->events);
        return scan(tx, &f, page->limit, add_to_page, &page->events, &page->scanned_to,
                    &page->to_the_end, err) < 0
                       ? -1
                       : 0;
}

/* --- extent and pruning --- */

/*
 * The head is noted when events are deleted: with an empty journal nothing else tells where the
 * numbers had got to.
 */
int journal_extent(struct store_tx *tx, struct journal_extent *out, struct error *err)
{
        int64_t last, noted, first;

        if (store_number(store_prepare(tx, "SELECT max(seq) FROM journal"), 0, &last, err) != 0 ||
            store_number(store_prepare(tx, "SELECT min(seq) FROM journal"), 0, &first, err) != 0 ||
            store_number(
                    store_prepare(
                            tx,
                            "SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'journal_head'"),
                    0, &noted, err) != 0)
                return -1;
        out->head = last > noted ? last : noted;
        out->tail = first > 0 ? first : out->head + 1;
        return 0;
}

static int note_head(struct store_tx *tx, int64_t head, struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "INSERT INTO meta(key, value) VALUES('journal_head', CAST(?1 AS TEXT)) "
                    "ON CONFLICT(key) DO UPDATE SET value = excluded.value");

        store_bind_int(s, 1, head);
        return store_run(s, err);
}

static int64_t latest_cutoff(const struct journal_sweep *sweep)
{
        int64_t latest = INT64_MIN;

        for (int i = 0; i < STREAM_COUNT; i++)
                if (sweep->cutoff_ms[i] > latest)
                        latest = sweep->cutoff_ms[i];
        return latest;
}

/*
 * Is the next event after sweep->at old enough to be looked at? 1: yes, *from set to just before
 * it. One from the future tells nothing about those behind it, so the sweep goes on.
 */
static int next_old(struct store_tx *tx, const struct journal_sweep *sweep, int64_t *from,
                    struct error *err)
{
        struct store_stmt *s = store_prepare(
                tx, "SELECT seq, time_ms FROM journal WHERE seq > ?1 ORDER BY seq LIMIT 1");
        int rc;

        store_bind_int(s, 1, sweep->at);
        rc = store_step(s, err);
        if (rc == 1) {
                int64_t time_ms = store_col_int(s, 1);

                *from = store_col_int(s, 0) - 1;
                rc = time_ms < latest_cutoff(sweep) || time_ms > sweep->future_ms;
        }
        store_reset(s);
        return rc;
}

/*
 * What a sweep deletes of the numbers in (?1, ?2]: older than its stream's cutoff, and passed by
 * everybody who holds the stream. The streams are numbers: _Static_assert below.
 */
#define OLD_EVENTS                                                                   \
        "journal.seq > ?1 AND journal.seq <= ?2 AND time_ms < CASE stream "          \
        "WHEN 0 THEN ?3 WHEN 1 THEN ?4 WHEN 2 THEN ?5 WHEN 3 THEN ?6 "               \
        "WHEN 4 THEN ?7 WHEN 5 THEN ?8 WHEN 6 THEN ?9 WHEN 7 THEN ?10 ELSE ?11 END " \
        "AND journal.seq <= CASE stream "                                            \
        "WHEN 0 THEN ?12 WHEN 1 THEN ?13 WHEN 2 THEN ?14 WHEN 3 THEN ?15 "           \
        "WHEN 4 THEN ?16 WHEN 5 THEN ?17 WHEN 6 THEN ?18 WHEN 7 THEN ?19 ELSE ?20 END"

/* The next part of the journal to be swept. */
struct part {
        int64_t from, to;             /* numbers after from, up to to */
        int64_t passed[STREAM_COUNT]; /* everybody who holds the stream has come so far */
};

static void bind_part(struct store_stmt *s, const struct journal_sweep *sweep,
                      const struct part *part, int64_t from)
{
        _Static_assert(STREAM_COUNT == 9, "the statement names every stream");
        store_bind_int(s, 1, from);
        store_bind_int(s, 2, part->to);
        for (int i = 0; i < STREAM_COUNT; i++) {
                store_bind_int(s, 3 + i, sweep->cutoff_ms[i]);
                store_bind_int(s, 3 + STREAM_COUNT + i, part->passed[i]);
        }
}

/*
 * What a platform may tell us again must still be known then, though nobody may read it any more:
 * its key stays for a while.
 */
static int delete_old(struct store_tx *tx, struct journal_sweep *sweep, const struct part *part,
                      struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "DELETE FROM journal WHERE " OLD_EVENTS
                                                 " AND (key IS NULL OR time_ms < ?21)");

        bind_part(s, sweep, part, part->from);
        store_bind_int(s, 21, sweep->keys_ms);
        if (store_run(s, err) != 0)
                return -1;
        sweep->deleted = store_changes(tx);
        s = store_prepare(tx, "UPDATE journal SET payload = '{}' WHERE " OLD_EVENTS
                              " AND key IS NOT NULL AND payload <> '{}'");
        bind_part(s, sweep, part, part->from);
        if (store_run(s, err) != 0)
                return -1;
        sweep->deleted += store_changes(tx);
        return 0;
}

/* How many events that come after `seq` are about to be deleted. */
static int count_lost(struct store_tx *tx, const struct journal_sweep *sweep,
                      const struct part *part, int64_t seq, int64_t *out, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "SELECT count(*) FROM journal WHERE " OLD_EVENTS
                                                 " AND (key IS NULL OR payload <> '{}')");

        bind_part(s, sweep, part, seq > part->from ? seq : part->from);
        return store_number(s, 0, out, err);
}

/* Whoever was away for too long is not waited for; what that costs it is counted. */
static int note_lost(struct store_tx *tx, struct journal_sweep *sweep, const struct part *part,
                     struct error *err)
{
        struct cursor_list behind = { 0 };
        int64_t lost = 0;
        int rc = cursors_behind(tx, part->to, &behind, err);

        for (size_t i = 0; rc == 0 && i < behind.count; i++) {
                const struct bus_cursor *c = &behind.items[i];

                rc = count_lost(tx, sweep, part, c->seq, &lost, err);
                if (rc == 0 && lost > 0)
                        rc = cursor_missed(tx, c->name, lost, err);
                if (rc == 0 && lost > 0 && c->missed == 0)
                        buf_addf(&sweep->lapsed, "%s%s", sweep->lapsed.len > 0 ? ", " : "",
                                 c->name);
        }
        cursor_list_release(&behind);
        return rc;
}

/* 1: there is a part to sweep; 0: not now. */
static int next_part(struct store_tx *tx, const struct journal_sweep *sweep, struct part *part,
                     struct error *err)
{
        int64_t furthest = 0;
        int rc = next_old(tx, sweep, &part->from, err);

        if (rc <= 0)
                return rc;
        for (int i = 0; i < STREAM_COUNT; i++) {
                if (cursors_passed(tx, sweep->cutoff_ms[i], &part->passed[i], err) != 0)
                        return -1;
                if (part->passed[i] > furthest)
                        furthest = part->passed[i];
        }
        part->to = part->from + SWEEP_NUMBERS < furthest ? part->from + SWEEP_NUMBERS : furthest;
        return part->from < furthest;
}

int journal_sweep(struct store_tx *tx, struct journal_sweep *sweep, struct error *err)
{
        struct part part = { 0 };
        int rc;

        sweep->deleted = 0;
        sweep->more = false;
        sweep->next = 0;
        buf_clear(&sweep->lapsed);
        if (journal_extent(tx, &sweep->extent, err) != 0)
                return -1;
        rc = next_part(tx, sweep, &part, err);
        if (rc <= 0)
                return rc;
        if (note_lost(tx, sweep, &part, err) != 0 || delete_old(tx, sweep, &part, err) != 0)
                return -1;
        sweep->next = part.to;
        sweep->more = true;
        if (sweep->deleted == 0)
                return 0;
        if (note_head(tx, sweep->extent.head, err) != 0)
                return -1;
        return journal_extent(tx, &sweep->extent, err);
}
