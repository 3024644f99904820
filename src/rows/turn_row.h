/*
 * turn_row: one run of an agent for one conversation.
 */
#ifndef ROWS_TURN_ROW_H
#define ROWS_TURN_ROW_H

#include "rows/rows.h"

enum turn_state {
        TURN_QUEUED,
        TURN_RUNNING,
        TURN_DONE,
        TURN_FAILED,
        TURN_CANCELLED,
        TURN_EXPIRED,
};

const char *turn_state_name(enum turn_state state);
bool turn_state_parse(const char *name, enum turn_state *out);

struct turn_row {
        int64_t id, conversation;
        const char *agent, *rule;
        enum turn_state state;
        const char *inputs; /* numbers of the events it answers: "12,15" */
        const char *trace;
        int64_t attempt, fence;
        int64_t progress_attempt;                         /* the last that stored a step */
        const char *owner;                                /* the process that runs it */
        int64_t due_ms, created_ms, started_ms, ended_ms; /* 0: not yet */
        const char *error_kind, *error;
        int64_t tokens_in, tokens_cached, tokens_out, cost_microusd; /* cached: part of in */
        const char *session, *cancel_reason;
        const char *reply_policy;         /* JSON; kept while it may run again */
        const char *answered_by;          /* another agent than `agent`, by failover, also while it
                                           * runs; NULL: none */
        const char *failed_agents;        /* tried before that, a JSON list; NULL: none */
        const char *given_to;             /* the started agent that was given it; NULL: none */
        int64_t discarded_replies;        /* late ones that were not posted */
        int64_t discarded_ms;             /* the last of them; 0: none */
        const char *discard_reason;       /* its reason */
        bool keeps_policy;                /* for turn_row_finish: keep it in any case */
        int64_t draft, progress_reaction; /* deliveries; 0: none */
        /* of its conversation; NULL and 0 if that is gone */
        const char *adapter, *channel, *thread, *person;
        int64_t reset_turn;
};

/* The agent that runs it, answered, or failed last. */
const char *turn_row_agent(const struct turn_row *row);

/* Writes a new turn's columns: no error, tokens or deliveries. */
int turn_row_insert(struct store_tx *tx, const struct turn_row *row, struct error *err);
/* A message joined it. */
int turn_row_join(struct store_tx *tx, int64_t id, const char *inputs, int64_t due_ms,
                  struct error *err);
/* A message was removed from an open turn. */
int turn_row_set_inputs(struct store_tx *tx, int64_t id, const char *inputs, struct error *err);
/* Asks an open turn to stop; survives a restart. */
int turn_row_cancel(struct store_tx *tx, int64_t id, const char *reason, struct error *err);
int turn_row_set_draft(struct store_tx *tx, int64_t id, int64_t delivery, struct error *err);
int turn_row_set_progress_reaction(struct store_tx *tx, int64_t id, int64_t delivery,
                                   struct error *err);
/* Writes attempt, fence, owner and started_ms. 1; 0: stale fence; -1. */
int turn_row_claim(struct store_tx *tx, const struct turn_row *row, int64_t old_fence,
                   int64_t lease_ms, struct error *err);
/* Its attempt made progress. 1; 0: it has ended, or another attempt has it (stale fence); -1. */
int turn_row_progress(struct store_tx *tx, int64_t id, int64_t fence, struct error *err);
/* The same; a started agent is given it, and must not be given it again after a crash. */
int turn_row_give(struct store_tx *tx, int64_t id, int64_t fence, const char *agent,
                  struct error *err);
/* Writes answered_by and failed_agents. 1; 0: stale fence; -1. */
int turn_row_fail_over(struct store_tx *tx, const struct turn_row *row, struct error *err);
/* Writes state, ended_ms, error, tokens, cost and failover. 1; 0: stale fence; -1. */
int turn_row_finish(struct store_tx *tx, const struct turn_row *row, struct error *err);
/* Counts a late reply that is not posted. */
int turn_row_discard_reply(struct store_tx *tx, int64_t id, int64_t now_ms, const char *reason,
                           struct error *err);
/* Removes a queued turn whose messages joined another. 1; 0: it is not queued; -1. */
int turn_row_absorb(struct store_tx *tx, int64_t id, struct error *err);
/* Fails a turn whose messages were pruned. */
int turn_row_lose(struct store_tx *tx, int64_t id, int64_t now_ms, struct error *err);
/* Requeues a failed turn. 1; 0: not failed; -1. */
int turn_row_revive(struct store_tx *tx, int64_t id, int64_t due_ms, struct error *err);

struct turn_row *turn_row_dup(const struct turn_row *row); /* one block: free() it */
int turn_row_get(struct store_tx *tx, int64_t id, struct turn_row **out, struct error *err);
/* Queued and running turns whose conversation exists, by id. */
struct store_stmt *turn_row_list_open(struct store_tx *tx);
/* NULL and 0 do not filter. */
struct turn_filter {
        const enum turn_state *state;
        const char *agent;
        int64_t conversation;
        const char *adapters; /* ",api,tg," */
        int64_t before;       /* turns below this number */
        int64_t limit;
};
/* Newest first. */
struct store_stmt *turn_row_list(struct store_tx *tx, const struct turn_filter *f);
int turn_row_next(struct store_stmt *s, struct turn_row *row, struct error *err);

/* Takes the first number off a list of inputs; false: empty. */
bool turn_row_next_input(const char **inputs, int64_t *event);

/* The cost of a turn that cost anything. */
struct turn_cost {
        const char *adapter, *rule, *agent;
        int64_t microusd;
};
/* Turns that ended since since_ms. */
struct store_stmt *turn_row_list_costs(struct store_tx *tx, int64_t since_ms);
/* The last `limit` turns, oldest first. */
struct store_stmt *turn_row_list_last_costs(struct store_tx *tx, int64_t limit);
int turn_row_next_cost(struct store_stmt *s, struct turn_cost *out, struct error *err);

/* A queued or running turn, as dispatch counts it. */
struct turn_pending {
        const char *trace, *adapter, *rule, *agent, *session;
        int64_t created_ms;
};
struct store_stmt *turn_row_list_pending(struct store_tx *tx);
int turn_row_next_pending(struct store_stmt *s, struct turn_pending *out, struct error *err);

#endif
