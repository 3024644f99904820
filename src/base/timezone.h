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

/* NULL with ERR_INVALID, which names the nearest zone. "UTC" always works. */
struct time_zone *timezone_new(const char *name, struct error *err);
/* NULL when the file is malformed. */
struct time_zone *timezone_parse(const unsigned char *bytes, size_t n);
void timezone_free(struct time_zone *z);
/* Seconds ahead of UTC. */
int64_t timezone_offset(const struct time_zone *z, int64_t unix_seconds);
/*
 * The first moment (Unix seconds) when clocks in the zone show this local time, given as seconds
 * since 1970 on those clocks; where they skip it, the moment when they jump.
 */
int64_t timezone_instant(const struct time_zone *z, int64_t local_seconds);
/* When the offset changes first after `from`, at most by `to`; 0: it does not. A day or two. */
int64_t timezone_change(const struct time_zone *z, int64_t from, int64_t to);
/* The name of the system's zone: TZ, else /etc/localtime, else "UTC". Yours to free. */
char *timezone_system_name(void);

#endif
