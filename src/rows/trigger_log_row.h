/*
 * trigger_log_row: the decision about an event, its reason and its outcome.
 */
#ifndef ROWS_TRIGGER_LOG_ROW_H
#define ROWS_TRIGGER_LOG_ROW_H

#include "rows/journal_row.h"
#include "rows/rows.h"

enum trigger_status {
        TRIGGER_QUEUED,    /* its turn is open */
        TRIGGER_SKIPPED,   /* no turn */
        TRIGGER_EXPIRED,   /* too old */
        TRIGGER_DONE,      /* its turn is done, or it was a command */
        TRIGGER_FAILED,    /* its turn failed */
        TRIGGER_CANCELLED, /* its turn was cancelled, or its message deleted */
};

const char *trigger_status_name(enum trigger_status status);
bool trigger_status_parse(const char *name, enum trigger_status *out);

struct trigger_log_row {
        int64_t event;
        int64_t time_ms;
        const char *event_type;
        const char *adapter, *channel, *thread, *sender, *sender_name;
        const char *agent, *rule; /* read: the agent that answered, which may be another one */
        int64_t turn;             /* 0: none */
        const char *trace;
        enum trigger_status status;
        const char *reason;
        /* -1: unknown */
        int64_t duration_ms, tokens_in, tokens_cached, tokens_out, cost_microusd;
        const char *error;
        int64_t edited_by; /* the edit that replaced this text; 0: none */
        /* of its turn; without one -1, NULL and 0 */
        int64_t attempt;
        const char *session;
        int64_t started_ms, ended_ms;
        const char *chosen_agent; /* of the decision; not written */
        const char *rules;        /* tried, a JSON list; not read, see trigger_log_row_rules */
};

/* Writes the decision's columns; keeps an existing row. */
int trigger_log_row_insert(struct store_tx *tx, const struct trigger_log_row *row,
                           struct error *err);
/* At the turn's end: writes status, duration, tokens, cost, error, and the reason unless NULL. */
int trigger_log_row_finish(struct store_tx *tx, const struct trigger_log_row *row,
                           struct error *err);
/* The message was deleted while its turn was queued. */
int trigger_log_row_cancel(struct store_tx *tx, int64_t event, const char *error,
                           struct error *err);
/* The message joined another turn while that ran. */
int trigger_log_row_move(struct store_tx *tx, int64_t event, int64_t turn, struct error *err);
int trigger_log_row_set_edited_by(struct store_tx *tx, int64_t event, int64_t edit,
                                  struct error *err);
/* *edit: the event that replaced this text; 0: none. */
int trigger_log_row_edited_by(struct store_tx *tx, int64_t event, int64_t *edit, struct error *err);

int trigger_log_row_get(struct store_tx *tx, int64_t event, struct trigger_log_row **out,
                        struct error *err);
/* *out: the rules tried, yours to free; NULL: none. */
int trigger_log_row_rules(struct store_tx *tx, int64_t event, char **out, struct error *err);
/* The first event of a trace. 1, 0 or -1. */
int trigger_log_row_find_trace(struct store_tx *tx, const char *trace, int64_t *event,
                               struct error *err);
/*
 * The sender's last event of this type in a chat before `event`, among the `newest` before that;
 * commands are skipped. 1, 0 or -1.
 */
int trigger_log_row_find_last(struct store_tx *tx, const struct chat_key *chat, const char *sender,
                              const char *event_type, int64_t before, int64_t newest,
                              int64_t *event, struct error *err);
/* NULL and 0 do not filter. */
struct trigger_log_filter {
        const enum trigger_status *status;
        const char *adapter, *channel, *agent, *trace;
        const char *adapters; /* ",api,tg," */
        int64_t before;       /* events below this number */
        int64_t limit;
};
/* Newest first. */
struct store_stmt *trigger_log_row_list(struct store_tx *tx, const struct trigger_log_filter *f);
int trigger_log_row_next(struct store_stmt *s, struct trigger_log_row *row, struct error *err);

/* An event that started or joined a turn. */
struct trigger_turn {
        const char *adapter, *channel, *sender, *rule;
        int64_t turn, time_ms;
};
/* The last `limit` entries, newest first. */
struct store_stmt *trigger_log_row_list_turns(struct store_tx *tx, int64_t limit);
/* Ends at the first entry not after since_ms, so that a start reads few rows. */
int trigger_log_row_next_turn(struct store_stmt *s, int64_t since_ms, struct trigger_turn *out,
                              struct error *err);

/* Reactions that triggered after since_ms: the last `limit`, oldest first. */
struct store_stmt *trigger_log_row_list_reactions(struct store_tx *tx, int64_t since_ms,
                                                  int64_t limit);
/* time_ms is that of the decision. */
int trigger_log_row_next_reaction(struct store_stmt *s, struct journal_row *out, struct error *err);

/* A decision with its event and turn. */
struct trigger_decision {
        struct journal_row event;
        int64_t time_ms; /* of the decision */
        const char *agent, *rule, *reason;
        int64_t turn; /* 0: none; then so are the members below */
        int64_t ended_ms, cost_microusd;
        const char *thread; /* the turn posted to; NULL: none */
};
/* Decisions since since_ms whose event still exists, in event order. */
struct store_stmt *trigger_log_row_list_decisions(struct store_tx *tx, int64_t since_ms);
int trigger_log_row_next_decision(struct store_stmt *s, struct trigger_decision *out,
                                  struct error *err);

/* When the first event from this one on was decided; unchanged if there is none. */
int trigger_log_row_get_time(struct store_tx *tx, int64_t event, int64_t *time_ms,
                             struct error *err);

#endif
