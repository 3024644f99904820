/*
 * limits: how many turns senders, reactions and bots may cause, and what turns may cost.
 *
 * Callers pass the wall clock. At `max` entries the least recently active is evicted. _restore
 * functions read the store after a restart, in a store function.
 */
#ifndef DISPATCH_LIMITS_LIMITS_H
#define DISPATCH_LIMITS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "road/incoming.h"
#include "store/store.h"

/* rate_limit: turns of one sender in one channel, in a sliding window. */
struct rate_limits;

struct turn_rate {
        int64_t turns; /* 0 or less: no limit */
        int64_t seconds;
};

/* Borrowed strings; NULL counts as "". */
struct rate_key {
        const char *adapter, *channel, *sender;
        const char *what; /* counted separately; NULL: turns */
};

struct rate_limits *rate_limits_new(size_t max);
void rate_limits_free(struct rate_limits *l);
/* Until the next turn may begin; 0: now. */
int64_t rate_limit_wait_ms(const struct rate_limits *l, const struct rate_key *key,
                           struct turn_rate rate, int64_t now_ms);
void rate_limit_count(struct rate_limits *l, const struct rate_key *key, struct turn_rate rate,
                      int64_t now_ms);
/* True once per window, when the caller should send its notice. */
bool rate_limit_claim_notice(struct rate_limits *l, const struct rate_key *key,
                             struct turn_rate rate, int64_t now_ms);
size_t rate_limit_size(const struct rate_limits *l);

/*
 * reaction_limit: the same emoji of a sender on a message triggers once a day, however often it is
 * removed and added; a removal is a different reaction. All senders together cause at most
 * REACTION_LIMIT_PER_MESSAGE turns per message.
 */
#define REACTION_LIMIT_PER_MESSAGE 3
#define REACTION_LIMIT_SAME_MS     ((int64_t)86400000)     /* refuse repetitions within this */
#define REACTION_LIMIT_COUNT_MS    ((int64_t)7 * 86400000) /* how long a turn counts */

struct reaction_limits;
enum reaction_verdict { REACTION_NEW, REACTION_REPEATED, REACTION_ONE_TOO_MANY };

struct reaction_limits *reaction_limits_new(size_t max);
void reaction_limits_free(struct reaction_limits *l);
/* Is the event a reaction to a known message? */
bool reaction_limit_applies(const struct incoming *in);
enum reaction_verdict reaction_limit_check(const struct reaction_limits *l,
                                           const struct incoming *in, int64_t now_ms);
void reaction_limit_count(struct reaction_limits *l, const struct incoming *in, int64_t now_ms);
size_t reaction_limit_size(const struct reaction_limits *l); /* messages */
int reaction_limit_restore(struct reaction_limits *l, struct store_tx *tx, int64_t now_ms,
                           struct error *err);

/*
 * bot_loop: where messages carry no hop count, consecutive turns caused by bots in a chat count as
 * hops, until a person writes or the chat is quiet for two minutes, which a loop never is. A
 * restart resets the count.
 */
struct bot_loops;

/* While `max` chats are active, others are not counted. */
struct bot_loops *bot_loops_new(size_t max);
void bot_loops_free(struct bot_loops *l);
/* A bot causes a turn. */
void bot_loop_count(struct bot_loops *l, const struct incoming *in, int64_t now_ms);
/* A person writes. */
void bot_loop_break(struct bot_loops *l, const struct incoming *in);

/*
 * budget: the cost of the day's turns (UTC) by adapter and rule. An unfinished turn counts with the
 * mean cost of its agent's recent turns, so that concurrent turns cannot exceed a budget that
 * consecutive ones would keep.
 */
struct budget;

/* Borrowed strings; all but adapter may be NULL. */
struct budget_turn {
        const char *trace; /* identifies the turn on its adapter */
        const char *adapter, *rule, *agent;
};

struct budget *budget_new(void);
void budget_free(struct budget *b);
void budget_begin(struct budget *b, const struct budget_turn *t, int64_t now_ms);
/* Also for turns without a budget_begin. */
void budget_end(struct budget *b, const struct budget_turn *t, int64_t microusd, int64_t now_ms);
int budget_restore(struct budget *b, struct store_tx *tx, int64_t now_ms, struct error *err);

#endif
