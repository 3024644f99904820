/*
 * step_row: what a turn of the built-in agent did so far: messages, answers of the model, results
 * of tools. Each is stored before the next is taken, so a turn goes on after a crash.
 */
#ifndef ROWS_STEP_ROW_H
#define ROWS_STEP_ROW_H

#include "rows/rows.h"

enum step_kind {
        STEP_USER,         /* messages of people, also those that joined the running turn */
        STEP_ASSISTANT,    /* an answer of the model, complete */
        STEP_TOOL_STARTED, /* a call may have had effects from here on */
        STEP_TOOL_DONE,    /* its result */
        STEP_COMPACTION,   /* a summary of what precedes first_kept */
};

const char *step_kind_name(enum step_kind kind);
bool step_kind_parse(const char *name, enum step_kind *out);

struct step_row {
        int64_t id;
        int64_t conversation, turn;
        const char *session; /* NULL: none */
        const char *agent;
        const char *person; /* who pays for it: "person-7" or "tg:42"; NULL: unknown */
        enum step_kind kind;
        const char *call;   /* a tool call, by the step that asked and its place: "12.0"; or NULL */
        const char *body;   /* JSON; see agent/llm/model.h */
        int64_t first_kept; /* of a compaction: the id of the first step after the summary */
        int64_t cost_microusd;
        int64_t time_ms;
};

/*
 * Adds a step of a running turn. 1; 0: the turn ended or another attempt has it (stale fence), or
 * the call has such a step; -1. Sets row->id and counts the attempt as one that made progress.
 */
int step_row_insert(struct store_tx *tx, struct step_row *row, int64_t fence, struct error *err);

/*
 * Steps of a conversation, or of a session in any conversation, oldest first: those that the last
 * compaction kept, and it and what followed; none before the turn `from` (of the last /new).
 */
struct store_stmt *step_row_list(struct store_tx *tx, int64_t conversation, const char *session,
                                 int64_t from);
struct store_stmt *step_row_list_turn(struct store_tx *tx, int64_t turn);
int step_row_next(struct store_stmt *s, struct step_row *out, struct error *err);
/* The last one of the conversation before `id` that is no start of a call; 0: none. */
int step_row_previous(struct store_tx *tx, int64_t conversation, int64_t id, int64_t *previous,
                      int64_t *turn, struct error *err);
/* Conversations that have steps. */
struct store_stmt *step_row_list_conversations(struct store_tx *tx);
int step_row_next_conversation(struct store_stmt *s, int64_t *id, struct error *err);
/* A step that another program recorded, of no turn. Sets row->id. */
int step_row_import(struct store_tx *tx, struct step_row *row, struct error *err);

/* What an agent's steps since since_ms cost, by person. */
struct store_stmt *step_row_list_costs(struct store_tx *tx, const char *agent, int64_t since_ms);
int step_row_next_cost(struct store_stmt *s, const char **person, int64_t *microusd,
                       struct error *err);

#endif
