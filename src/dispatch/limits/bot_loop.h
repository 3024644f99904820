/*
 * chain: bots that answer each other, where nobody counts hops.
 *
 * A message over the API says through how many bots it has passed; one on a chat platform does not.
 * There, turns that bots cause one after the other in a channel, without a person saying anything
 * in between, are the hops. The chain ends when a person speaks, or when it has been quiet for
 * BOT_LOOP_QUIET_MS: two bots in a loop never are. It lives in memory: after a restart a loop
 * begins to be counted anew.
 */
#ifndef DISPATCH_LIMITS_BOT_LOOP_H
#define DISPATCH_LIMITS_BOT_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "road/incoming.h"

#define BOT_LOOP_QUIET_MS 120000

struct bot_loops;

/*
 * At most `max` channels; when one more comes, all that are quiet are forgotten, and if there are
 * none, the new one is not counted.
 */
struct bot_loops *bot_loops_new(size_t max);
void bot_loops_free(struct bot_loops *c);
/* How many turns bots have caused there in a row. */
int bot_loop_length(const struct bot_loops *c, const struct incoming *in, int64_t now_ms);
/* A bot causes a turn. */
void bot_loop_count(struct bot_loops *c, const struct incoming *in, int64_t now_ms);
/* A person speaks. */
void bot_loop_break(struct bot_loops *c, const struct incoming *in);

#endif
