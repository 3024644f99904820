/*
 * timezone: offsets from UTC in a zone such as "Europe/Berlin".
 *
 * Reads zone files (RFC 8536) itself: the C library has one zone per process, which threads must
 * not change.
 */
#ifndef BASE_TIMEZONE_H
#define BASE_TIMEZONE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct time_zone;

/* NULL with ERR_INVALID when there is no such zone. "UTC" always works. */
struct time_zone *timezone_new(const char *name, struct error *err);
/* NULL when the file is malformed. */
struct time_zone *timezone_parse(const unsigned char *bytes, size_t n);
void timezone_free(struct time_zone *z);
/* Seconds ahead of UTC. */
int64_t timezone_offset(const struct time_zone *z, int64_t unix_seconds);

#endif
