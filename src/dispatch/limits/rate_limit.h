/*
 * limits: how many turns one person may cause in one channel.
 *
 * A sliding window of the times at which turns were placed. Turns are counted, not messages: a
 * message that joins a turn which is still waiting costs nothing, and neither does one that was
 * refused. It lives in memory, at most `max` people at a time; when one more comes, whoever was
 * quiet longest is forgotten, in his favour. After a restart it is filled again from the trigger
 * log.
 *
 * The clock is the wall clock, which the caller passes in; times from the future (a clock set back)
 * do not count.
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

struct rate_limits *rate_limits_new(size_t max);
void rate_limits_free(struct rate_limits *l);

/* Who in which channel; the strings are borrowed, NULL counts as "". */
struct rate_key {
        const char *adapter, *channel, *sender;
        const char *what; /* counted apart from turns; NULL: turns */
};

/* How long until the next turn may be placed: 0 means now. Changes nothing. */
int64_t rate_limit_wait_ms(const struct rate_limits *l, const struct rate_key *who,
                           struct turn_rate rate, int64_t now_ms);
/* A turn is placed. */
void rate_limit_count(struct rate_limits *l, const struct rate_key *who, struct turn_rate rate,
                      int64_t now_ms);
/*
 * Has he been told within this window that he is too fast? If not, he counts as told from now on.
 */
bool rate_limit_claim_notice(struct rate_limits *l, const struct rate_key *who,
                             struct turn_rate rate, int64_t now_ms);
size_t rate_limit_size(const struct rate_limits *l);

#endif
