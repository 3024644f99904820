/*
 * journal_row: events in commit order; see bus/bus.h.
 *
 * (adapter, key) is unique, so that redelivered events are recognised; an event with a key but no
 * adapter has the adapter "". When its retention ends, an event's payload becomes "{}" and the row
 * stays for a while to keep the key.
 */
#ifndef ROWS_JOURNAL_ROW_H
#define ROWS_JOURNAL_ROW_H

#include "rows/rows.h"

#define JOURNAL_STREAMS 9 /* = STREAM_COUNT of bus.h */

struct journal_row {
        int64_t seq;
        const char *type;
        int stream;
        int64_t time_ms;
        const char *adapter, *channel, *thread, *trace, *key; /* may be NULL */
        const char *payload;                                  /* a JSON object */
};

/* Ignores row->seq. 1: added, *seq set; 0: adapter and key exist; -1. */
int journal_row_insert(struct store_tx *tx, const struct journal_row *row, int64_t *seq,
                       struct error *err);
/* 1: *seq set; 0: no such key; -1. */
int journal_row_find(struct store_tx *tx, const char *adapter, const char *key, int64_t *seq,
                     struct error *err);
/*
 * Events of the message with this id of its platform, newest first: those with this key, and those
 * with the key "CHANNEL:ID", as on platforms that count per chat. chat (NULL: any): its channel;
 * else only the `newest` events are searched for the second. How many, at most `max`, or -1.
 */
int journal_row_find_message(struct store_tx *tx, const char *id, const char *chat, int64_t newest,
                             int64_t *seqs, int max, struct error *err);
/* The first of a trace among the `newest`. 1: *seq set; 0; -1. */
int journal_row_find_trace(struct store_tx *tx, const char *trace, int64_t newest, int64_t *seq,
                           struct error *err);
int journal_row_get(struct store_tx *tx, int64_t seq, struct journal_row **out, struct error *err);
/* First and last sequence number; both 0 if the journal is empty. */
int journal_row_bounds(struct store_tx *tx, int64_t *first, int64_t *last, struct error *err);

/* Rows after `after`, oldest first; before `before` (> 0), newest first. */
struct journal_range {
        int64_t after, before;
        /* both set: messages (stream 0) of this chat only, by their index */
        const char *adapter, *channel;
        /* set: events (stream 4) of this session only, by their index, oldest first */
        const char *session_trace;
};
struct store_stmt *journal_row_scan(struct store_tx *tx, const struct journal_range *range);
/* 1: *row without payload, borrowed until the next step; 0: end; -1. */
int journal_row_next(struct store_stmt *s, struct journal_row *row, struct error *err);
/* For rows that pass a filter: payloads may be large. */
void journal_row_read_payload(struct store_stmt *s, struct journal_row *row);

/* The last message (stream 0) of a chat; *seq 0: none. */
int journal_row_last_of_chat(struct store_tx *tx, const char *adapter, const char *channel,
                             int64_t *seq, struct error *err);
/*
 * Moves to the next chat with messages, in byte order of adapter and channel; replaces *adapter and
 * *channel. 1; 0: end; -1.
 */
int journal_row_next_chat(struct store_tx *tx, char **adapter, char **channel, struct error *err);

/*
 * Events to delete: numbers in (from, to], older than their stream's cutoff, and processed by all
 * readers of the stream.
 */
struct journal_cut {
        int64_t from, to;
        int64_t cutoff_ms[JOURNAL_STREAMS];
        int64_t processed[JOURNAL_STREAMS];
};
/* How many events of the cut are still readable. */
int journal_row_count_cut(struct store_tx *tx, const struct journal_cut *cut, int64_t *out,
                          struct error *err);
/* Deletes them; keeps keys of events since keys_ms without payload. How many, or -1. */
int64_t journal_row_cut(struct store_tx *tx, const struct journal_cut *cut, int64_t keys_ms,
                        struct error *err);

/* --- cursor_row.c: positions of durable readers --- */

struct cursor_row {
        const char *name;
        int64_t seq;     /* processed up to here */
        int64_t seen_ms; /* its owner's last run, to the hour */
        int64_t missed;  /* events deleted before it read them */
};

/* 1; 0: unknown name, all numbers 0; -1. */
int cursor_row_get(struct store_tx *tx, const char *name, struct cursor_row *out,
                   struct error *err);
/* Adds the cursor or moves it forward only; moving clears `missed`. */
int cursor_row_move(struct store_tx *tx, const char *name, int64_t seq, int64_t now_ms,
                    struct error *err);
/*
 * Records that the owner is running and has reached at least `seq`. Writes only if the cursor moves
 * or seen_ms is older than stale_ms. Ignores unknown names.
 */
int cursor_row_touch(struct store_tx *tx, const char *name, int64_t seq, int64_t now_ms,
                     int64_t stale_ms, struct error *err);
int cursor_row_add_missed(struct store_tx *tx, const char *name, int64_t events, struct error *err);
/* The lowest seq of cursors seen since then; INT64_MAX: none. */
int cursor_row_least(struct store_tx *tx, int64_t seen_since_ms, int64_t *out, struct error *err);

/* Calls each() for cursors before `seq` (INT64_MAX: all), by name; the row is borrowed. */
typedef void cursor_row_fn(void *arg, const struct cursor_row *row);
int cursor_row_each(struct store_tx *tx, int64_t seq, cursor_row_fn *each, void *arg,
                    struct error *err);

#endif
