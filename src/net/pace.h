/*
 * pace: the outbound budget of one adapter, through which every call passes.
 *
 * Pure arithmetic over token buckets and a clock the caller passes in: one bucket for the adapter,
 * one per channel, a second per-channel one for long windows (20 a minute in a group). A freeze
 * (Retry-After) closes a bucket until a time. It never queues: it says "now" or "in n
 * milliseconds"; the outbox keeps the queues.
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
void pace_free(struct pace *p);
void pace_set_limits(struct pace *p, const struct pace_limits *limits);
/*
 * May a call go to this channel now? 0: yes, and it is counted. > 0: ask again in that many ms,
 * nothing counted. Lesser classes leave room: typing and edits only get a token when at least one
 * would remain for a final answer.
 */
int64_t pace_take(struct pace *p, const char *channel, bool group, enum pace_class class,
                  int64_t now_ms);
/*
 * Closes the channel's bucket, or with channel NULL the adapter's, until now + ms. The later end
 * wins.
 */
void pace_freeze(struct pace *p, const char *channel, int64_t ms, int64_t now_ms);
/*
 * Forgets channels whose buckets are full again and not frozen; it also happens by itself when many
 * have gathered. Returns how many are left.
 */
unsigned pace_sweep(struct pace *p, int64_t now_ms);
/* How many channels are in memory. */
size_t pace_channels(const struct pace *p);

#endif
