/*
 * pace: the outbound rate budget of one adapter, which every call uses.
 *
 * Token buckets over the caller's clock: one for the adapter, one per channel, and a second one per
 * channel for long windows (20 a minute in a group). It never queues: the outbox does.
 */
#ifndef NET_PACE_H
#define NET_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pace;

/* Rates of 0 mean no limit. */
struct pace_limits {
        double per_second;         /* the adapter as a whole */
        double per_channel_second; /* one channel */
        double per_channel_minute; /* one channel marked as group */
        double burst;              /* how many may go at once; 0: one second's worth, at least 1 */
};

enum pace_class { PACE_FINAL, PACE_APPROVAL, PACE_EDIT, PACE_TYPING }; /* falling importance */

struct pace *pace_new(const struct pace_limits *limits);
/* For platforms that count strictly: no more than per_second in any second, bursts included. */
struct pace_limits pace_strict(double per_second);
void pace_free(struct pace *p);
void pace_set_limits(struct pace *p, const struct pace_limits *limits);
/*
 * 0: a call to this channel may go now and is counted; > 0: ask again after so many ms. Edits and
 * typing only get a token if one remains for a final answer.
 */
int64_t pace_take(struct pace *p, const char *channel, bool group, enum pace_class class,
                  int64_t now_ms);
/* Closes the channel's bucket (NULL: the adapter's) until now + ms. The later end wins. */
void pace_freeze(struct pace *p, const char *channel, int64_t ms, int64_t now_ms);
/* Drops idle channels; returns how many are left. Also runs by itself when there are many. */
unsigned pace_sweep(struct pace *p, int64_t now_ms);
/* In memory. */
size_t pace_channels(const struct pace *p);

#endif
