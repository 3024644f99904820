/*
 * rate_limit: how many turns one sender may cause in one channel.
 *
 * A sliding window of the times at which turns began. It counts turns, not messages: a message that
 * joins a queued turn costs nothing, and neither does a refused one. Memory holds at most `max`
 * senders; the one that was quiet longest is evicted, in their favour. dispatch_restore refills it
 * from the trigger log after a restart.
 *
 * Callers pass the wall clock. Times from the future (a clock set back) do not count.
 */
#ifndef DISPATCH_LIMITS_RATE_LIMIT_H
#define DISPATCH_LIMITS_RATE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate_limits;

struct turn_rate {
        int64_t turns; /* 0 or less: no limit */
        int64_t seconds;
};

/* Who, and in which channel. Borrowed strings; NULL counts as "". */
struct rate_key {
        const char *adapter, *channel, *sender;
        const char *what; /* counted apart from turns; NULL: turns */
};

struct rate_limits *rate_limits_new(size_t max);
void rate_limits_free(struct rate_limits *l);

/* How long until the next turn may begin; 0: now. */
int64_t rate_limit_wait_ms(const struct rate_limits *l, const struct rate_key *key,
                           struct turn_rate rate, int64_t now_ms);
/* A turn begins. */
void rate_limit_count(struct rate_limits *l, const struct rate_key *key, struct turn_rate rate,
                      int64_t now_ms);
/* True once per window: the caller sends its notice then. */
bool rate_limit_claim_notice(struct rate_limits *l, const struct rate_key *key,
                             struct turn_rate rate, int64_t now_ms);
size_t rate_limit_size(const struct rate_limits *l);

#endif
