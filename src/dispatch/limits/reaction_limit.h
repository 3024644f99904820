/*
 * reactions: which reactions have triggered, so that none does twice and a message does not become
 * a button for everybody.
 *
 * The same person's same emoji on the same message triggers once a day, however often it is taken
 * away and put back; removing it is a reaction of its own kind. A message has at most
 * REACTION_LIMIT_PER_MESSAGE turns by reactions, of whomever.
 *
 * It lives in memory, at most `max` messages; when one more comes, the one whose last turn is
 * oldest is forgotten. After a restart it is filled again from the trigger log and the journal,
 * which has what was reacted to.
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
#define REACTION_LIMIT_SAME_MS     ((int64_t)86400000) /* how long a repetition is one */
#define REACTION_LIMIT_COUNT_MS                                           \
        ((int64_t)7 * 86400000) /* how long a turn counts for its message \
                                 */

struct reaction_limits;

enum reaction_verdict { REACTION_NEW, REACTION_REPEATED, REACTION_ONE_TOO_MANY };

struct reaction_limits *reaction_limits_new(size_t max);
void reaction_limits_free(struct reaction_limits *r);
/* is the event a reaction, and to which message? */
bool reaction_limit_applies(const struct incoming *in);
/* Changes nothing. */
enum reaction_verdict reaction_limit_check(const struct reaction_limits *r,
                                           const struct incoming *in, int64_t now_ms);
/* It triggers. */
void reaction_limit_count(struct reaction_limits *r, const struct incoming *in, int64_t now_ms);
size_t reaction_limit_size(const struct reaction_limits *r);
/* Reads what triggered before; blocks. */
int reaction_limit_restore(struct reaction_limits *r, struct store *s, int64_t now_ms,
                           struct error *err);

#endif
