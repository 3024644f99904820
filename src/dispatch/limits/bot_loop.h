/*
 * bot_loop: bots that answer each other, where messages carry no hop count.
 *
 * A message over the API says through how many bots it has passed; one on a chat platform does not.
 * There, consecutive turns caused by bots in a chat count as hops, until a person writes or the
 * chat is quiet for BOT_LOOP_QUIET_MS, which a loop never is. Kept in memory: a restart resets the
 * count.
 */
#ifndef DISPATCH_LIMITS_BOT_LOOP_H
#define DISPATCH_LIMITS_BOT_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "road/incoming.h"

#define BOT_LOOP_QUIET_MS 120000

struct bot_loops;

/* At most `max` chats; when there are more, quiet ones are evicted or the new one is not counted.
 */
struct bot_loops *bot_loops_new(size_t max);
void bot_loops_free(struct bot_loops *l);
/* Turns that bots have caused in a row in this chat. */
int bot_loop_length(const struct bot_loops *l, const struct incoming *in, int64_t now_ms);
/* A bot causes a turn. */
void bot_loop_count(struct bot_loops *l, const struct incoming *in, int64_t now_ms);
/* A person writes. */
void bot_loop_break(struct bot_loops *l, const struct incoming *in);

#endif
