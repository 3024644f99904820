/*
 * clock: the monotonic clock for durations, the wall clock for times stored, shown or compared
 * across restarts.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_ISO_SIZE 25 /* 2026-11-15T06:19:41.123Z and the NUL */

int64_t clock_wall_ms(void);
int64_t clock_mono_ms(void);
/* Monotonic, and also counts while the machine sleeps. */
int64_t clock_boot_ms(void);
uint64_t clock_mono_ns(void);
/* RFC 3339 in UTC with milliseconds. Returns out. */
char *clock_iso(int64_t wall_ms, char out[CLOCK_ISO_SIZE]);
/* RFC 3339 with Z or an offset; the fraction is optional. 0 or -1. */
int clock_parse_iso(const char *text, int64_t *wall_ms);
/* A duration such as 30s, 15m, 2h or 1d. 0 or -1. */
int clock_parse_span(const char *text, int64_t *ms);

#endif
