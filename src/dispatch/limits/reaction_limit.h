/*
 * reactions: which reactions have triggered, so that none does twice and a message does not become
 * a button for everybody.
 *
 * The same person's same emoji on the same message triggers once a day, however often it is taken
 * away and put back; removing it is a reaction of its own kind. A message has at most
 * REACTIONS_PER_MESSAGE turns by reactions, of whomever.
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

#define REACTIONS_PER_MESSAGE 3
#define REACTIONS_SAME_MS     ((int64_t)86400000)     /* how long a repetition is one */
#define REACTIONS_COUNT_MS    ((int64_t)7 * 86400000) /* how long a turn counts for its message */

struct reactions;

enum reaction_verdict { REACTION_NEW, REACTION_REPEATED, REACTION_ONE_TOO_MANY };

struct reactions *reactions_new(size_t max);
void reactions_free(struct reactions *r);
/* is the event a reaction, and to which message? */
bool reactions_concern(const struct incoming *in);
/* Changes nothing. */
enum reaction_verdict reactions_ask(const struct reactions *r, const struct incoming *in,
                                    int64_t now_ms);
/* It triggers. */
void reactions_count(struct reactions *r, const struct incoming *in, int64_t now_ms);
size_t reactions_messages(const struct reactions *r);
/* Reads what triggered before; blocks. */
int reactions_restore(struct reactions *r, struct store *s, int64_t now_ms, struct error *err);

#endif
