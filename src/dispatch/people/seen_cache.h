/*
 * seen_cache: how senders looked lately (names, adapter, chat), so that the same facts are not
 * written again with each message.
 *
 * Only the most recent senders are kept; an evicted one costs one redundant write.
 */
#ifndef DISPATCH_PEOPLE_SEEN_CACHE_H
#define DISPATCH_PEOPLE_SEEN_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_cache;

/* At most `max` senders; an entry is fresh for `fresh_ms`. */
struct seen_cache *seen_cache_new(size_t max, int64_t fresh_ms);
void seen_cache_free(struct seen_cache *s);
/* Stores a digest of the sender's facts. False: a fresh entry has the same; nothing to write. */
bool seen_cache_update(struct seen_cache *s, const char *platform, const char *user,
                       uint64_t digest, int64_t now_ms);
size_t seen_cache_count(const struct seen_cache *s);

#endif
