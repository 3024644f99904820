/*
 * journal: a bounded list of things that happened, read with a long poll.
 *
 *     struct buf *b = journal_open(j, "message", chat_id);
 *     jsonw_int(b, "message_id", 7);
 *     journal_close(j);
 *
 * Entries are JSON objects numbered from 1. Readers ask for what comes after a number and may wait
 * for it; old entries are forgotten, and a reader who missed some is told so.
 */
#ifndef SIM_JOURNAL_H
#define SIM_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http_server.h"
#include "net/loop.h"

struct journal;

/* Keeps the last `keep` entries and at most max_bytes of them. */
struct journal *journal_new(struct loop *l, size_t keep, size_t max_bytes);
/* Readers who wait get what there is: call it while the server can still answer. */
void journal_free(struct journal *j);
/*
 * Begins an entry; kind must be a constant. Add members to the buffer with jsonw, then close. Not
 * nested.
 */
struct buf *journal_open(struct journal *j, const char *kind, int64_t subject);
/* Keeps the entry; returns its number. */
uint64_t journal_close(struct journal *j);
uint64_t journal_last(const struct journal *j);
/* Forgets the entries, not the numbers. */
void journal_clear(struct journal *j);
/*
 * Answers the exchange: {"last":N,"missed":false,"items":[...]}. Its query may have after (default
 * 0), limit (1000), wait (ms, at most 60000), kind and, for the subject, chat or channel.
 */
void journal_serve(struct journal *j, struct http_exchange *x);

#endif
