/*
 * timezone: offsets from UTC in a time zone such as "Europe/Berlin".
 *
 * Reads the system's zone files (RFC 8536) itself: the C library knows one zone per process, and
 * changing it is not safe with threads.
 */
#ifndef BASE_TIMEZONE_H
#define BASE_TIMEZONE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct time_zone;

/* NULL with ERR_INVALID when the system has no such zone. "UTC" always works. */
struct time_zone *timezone_new(const char *name, struct error *err);
/* Parses a zone file; NULL when it is malformed. */
struct time_zone *timezone_parse(const unsigned char *bytes, size_t n);
void timezone_free(struct time_zone *z);
/* Seconds ahead of UTC at this time. */
int64_t timezone_offset(const struct time_zone *z, int64_t unix_seconds);

#endif
