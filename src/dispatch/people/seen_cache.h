/*
 * sightings: who was noted lately and how he looked (names, adapter, chat), so that the same is not
 * noted again with each message.
 *
 * Only the latest are remembered: whoever was forgotten is noted once more, which costs a write and
 * is never wrong.
 */
#ifndef DISPATCH_PEOPLE_SEEN_CACHE_H
#define DISPATCH_PEOPLE_SEEN_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_cache;

/* At most `max` people; a sighting is worth `fresh_ms`. */
struct seen_cache *seen_cache_new(size_t max, int64_t fresh_ms);
void seen_cache_free(struct seen_cache *s); /* NULL is fine */
/*
 * Is there something to note? Then it counts as noted now. look: a digest of what would be noted.
 */
bool seen_cache_update(struct seen_cache *s, const char *platform, const char *user, uint64_t look,
                       int64_t now_ms);
size_t seen_cache_count(const struct seen_cache *s);

#endif
