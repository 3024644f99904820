/*
 * backoff: how long to wait before the next attempt.
 *
 * The delay starts at base_ms, doubles with each failure and never exceeds cap_ms. `failures`
 * counts those before the last one: 0 for the first retry.
 */
#ifndef NET_BACKOFF_H
#define NET_BACKOFF_H

#include <stdint.h>

int64_t backoff_ms(unsigned failures, int64_t base_ms, int64_t cap_ms);

/* With jitter: "half" is between half of the delay and all of it, "full" between 0 and all. */
int64_t backoff_half_jitter_ms(unsigned failures, int64_t base_ms, int64_t cap_ms);
int64_t backoff_full_jitter_ms(unsigned failures, int64_t base_ms, int64_t cap_ms);

#endif
