/*
 * journal: a bounded list of entries, read with a long poll.
 *
 *     struct buf *b = journal_open(j, "message", chat_id);
 *     jsonw_int(b, "message_id", 7);
 *     journal_close(j);
 *
 * Entries are JSON objects numbered from 1. Readers ask for entries after a number and may wait
 * for them. Old entries are dropped; a reader who missed some gets "missed":true.
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
/* Answers waiting readers, so call it while the server can still answer. */
void journal_free(struct journal *j);
/* Opens an entry; kind must be a constant. Add members with jsonw, then close. Not nested. */
struct buf *journal_open(struct journal *j, const char *kind, int64_t subject);
/* Stores the entry; returns its number. */
uint64_t journal_close(struct journal *j);
uint64_t journal_last(const struct journal *j);
/* Drops the entries; numbers go on. */
void journal_clear(struct journal *j);
/*
 * Answers {"last":N,"missed":false,"items":[...]}. Query: after (default 0), limit (1000), wait
 * (ms, at most 60000), kind and, for the subject, chat or channel.
 */
void journal_serve(struct journal *j, struct http_exchange *x);

#endif
