/*
 * reaction_limit: which reactions have triggered, so that none does twice and a message does not
 * become a button.
 *
 * The same emoji of the same sender on the same message triggers once a day, however often it is
 * removed and added; removing it counts as a different reaction. All senders together get at most
 * REACTION_LIMIT_PER_MESSAGE turns by reactions to one message.
 *
 * Memory holds at most `max` messages; the one whose last turn is oldest is evicted.
 * reaction_limit_restore reads them from the trigger log after a restart.
 */
#ifndef DISPATCH_LIMITS_REACTION_LIMIT_H
#define DISPATCH_LIMITS_REACTION_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "road/incoming.h"
#include "store/store.h"

#define REACTION_LIMIT_PER_MESSAGE 3
#define REACTION_LIMIT_SAME_MS     ((int64_t)86400000)     /* repetitions within this are refused */
#define REACTION_LIMIT_COUNT_MS    ((int64_t)7 * 86400000) /* how long a turn counts */

struct reaction_limits;

enum reaction_verdict { REACTION_NEW, REACTION_REPEATED, REACTION_ONE_TOO_MANY };

struct reaction_limits *reaction_limits_new(size_t max);
void reaction_limits_free(struct reaction_limits *l);
/* Is the event a reaction to a known message? */
bool reaction_limit_applies(const struct incoming *in);
enum reaction_verdict reaction_limit_check(const struct reaction_limits *l,
                                           const struct incoming *in, int64_t now_ms);
/* The reaction triggers. */
void reaction_limit_count(struct reaction_limits *l, const struct incoming *in, int64_t now_ms);
size_t reaction_limit_size(const struct reaction_limits *l); /* messages */
/* Inside a store function. */
int reaction_limit_restore(struct reaction_limits *l, struct store_tx *tx, int64_t now_ms,
                           struct error *err);

#endif
