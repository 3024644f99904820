/*
 * approval_row: questions of running turns that a person answers, and the rules that an answer
 * "always" leaves behind.
 */
#ifndef ROWS_APPROVAL_ROW_H
#define ROWS_APPROVAL_ROW_H

#include "rows/rows.h"

enum approval_state {
        APPROVAL_OPEN,
        APPROVAL_APPROVED,
        APPROVAL_REFUSED,
        APPROVAL_EXPIRED,   /* counts as refused */
        APPROVAL_CANCELLED, /* its turn ended first */
};
const char *approval_state_name(enum approval_state state);
bool approval_state_parse(const char *name, enum approval_state *out);

enum approvers {
        APPROVERS_ASKER,  /* who began the turn, and admins */
        APPROVERS_ADMINS, /* admins of the adapter, and the operator */
};
const char *approvers_name(enum approvers who);

struct approval_row {
        int64_t id; /* shown as "apr-N" */
        int64_t turn, conversation;
        const char *agent, *adapter, *channel, *thread, *trace;
        /* as in struct approval_request, see road/turn/approval.h */
        const char *call, *tool, *title, *detail, *subject, *reason;
        const char *effect, *rule; /* may be NULL */
        const char *asker;         /* the platform's id; NULL: unknown */
        enum approvers approvers;
        enum approval_state state;
        int64_t created_ms, expires_ms;
        int64_t decided_ms;     /* 0: open */
        const char *by, *note;  /* may be NULL */
        bool always;            /* it left a rule behind */
        const char *deliveries; /* that ask: "12,13" */
};

/* Adds a question of a running turn. 1; 0: stale fence; -1. */
int approval_row_insert(struct store_tx *tx, const struct approval_row *row, int64_t fence,
                        struct error *err);
int approval_row_get(struct store_tx *tx, int64_t id, struct approval_row **out, struct error *err);
int approval_row_find(struct store_tx *tx, int64_t turn, const char *call,
                      struct approval_row **out, struct error *err);
/* The turn's last refusal, or question nobody answered, of something with this effect. */
int approval_row_find_refused(struct store_tx *tx, int64_t turn, const char *effect,
                              struct approval_row **out, struct error *err);
/* Stores state, decided_ms, by, note and always. 1; 0: it is no longer open; -1. */
int approval_row_decide(struct store_tx *tx, const struct approval_row *row, struct error *err);

struct approval_filter {
        int64_t before;                   /* 0: from the newest on */
        const enum approval_state *state; /* NULL: any */
        int64_t turn;                     /* 0: any */
        const char *adapters;             /* see ROWS_IF_ADAPTERS */
        int64_t limit;
};
/* Newest first. */
struct store_stmt *approval_row_list(struct store_tx *tx, const struct approval_filter *f);
/* Open ones, oldest first. */
struct store_stmt *approval_row_list_open(struct store_tx *tx);
int approval_row_next(struct store_stmt *s, struct approval_row *out, struct error *err);
struct approval_row *approval_row_dup(const struct approval_row *row); /* free() it */

/* ---- rules ---- */

struct approval_rule_row {
        int64_t id; /* shown as "apl-N" */
        const char *agent, *adapter, *channel;
        const char *rule; /* JSON, as a rule of the agent's policy */
        int64_t approval; /* that made it */
        const char *by;   /* who; may be NULL */
        int64_t created_ms;
};

int approval_rule_row_insert(struct store_tx *tx, const struct approval_rule_row *row, int64_t *id,
                             struct error *err);
int approval_rule_row_delete(struct store_tx *tx, int64_t id, struct error *err);
struct store_stmt *approval_rule_row_list(struct store_tx *tx);
int approval_rule_row_next(struct store_stmt *s, struct approval_rule_row *out, struct error *err);
struct approval_rule_row *approval_rule_row_dup(const struct approval_rule_row *row);

#endif
