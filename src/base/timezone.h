/*
 * zone: what the clock on the wall shows in a place, such as "Europe/Berlin".
 *
 * The C library knows one zone per process, and changing it is not safe with threads; so the
 * system's zone files (RFC 8536) are read here.
 */
#ifndef BASE_TIMEZONE_H
#define BASE_TIMEZONE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct time_zone;

/* NULL with ERR_INVALID when the system knows no such zone. "UTC" is always known. */
struct time_zone *timezone_new(const char *name, struct error *err);
/* From the bytes of a zone file; NULL when they are none. */
struct time_zone *timezone_parse(const unsigned char *bytes, size_t n);
void timezone_free(struct time_zone *z);
/* Seconds that the clock there is ahead of UTC at this time. */
int64_t timezone_offset(const struct time_zone *z, int64_t unix_seconds);

#endif
