/*
 * policy_rows: what operators change at run time: rules, access rules, pairings, handovers.
 */
#ifndef ROWS_POLICY_ROWS_H
#define ROWS_POLICY_ROWS_H

#include "rows/rows.h"

/* --- rule_row.c: rules written over the API --- */

struct rule_row {
        const char *name;
        int64_t position;
        bool enabled;
        const char *json; /* an object, as written */
        int64_t created_ms, updated_ms;
};

/* insert: 0 if the name is taken. */
int rule_row_insert(struct store_tx *tx, const struct rule_row *r, struct error *err);
int rule_row_update(struct store_tx *tx, const struct rule_row *r, struct error *err);
int rule_row_delete(struct store_tx *tx, const char *name, struct error *err);

struct store_stmt *rule_row_list(struct store_tx *tx);
int rule_row_next(struct store_stmt *s, struct rule_row *out, struct error *err);

/* --- access_rule_row.c: who may talk to the bot, besides the configuration --- */

struct access_rule {
        int64_t id; /* shown as "acr-N" */
        bool deny;
        const char *adapter; /* NULL: all */
        /* optional "platform:" prefix; `*` globs; NULL: the rule names a person */
        const char *user;
        int64_t person;    /* 0: the rule names a user */
        const char *place; /* "dm", "group"; NULL: everywhere */
        bool enabled;
        const char *reason; /* for the operator; may be NULL */
        /* deny: sent to the sender in a direct message, now and then; NULL: nothing */
        const char *message;
        const char *by;     /* who made it; may be NULL */
        int64_t expires_ms; /* 0: never */
        int64_t created_ms, updated_ms;
};

int access_rule_row_insert(struct store_tx *tx, const struct access_rule *r, int64_t *id,
                           struct error *err);
int access_rule_row_update(struct store_tx *tx, const struct access_rule *r, struct error *err);
int access_rule_row_delete(struct store_tx *tx, int64_t id, struct error *err);

/* By number. */
struct store_stmt *access_rule_row_list(struct store_tx *tx);
int access_rule_row_next(struct store_stmt *s, struct access_rule *out, struct error *err);

/* --- pairing_row.c: codes of strangers who ask for access --- */

#define PAIRING_WAITING  "waiting"
#define PAIRING_APPROVED "approved"
#define PAIRING_DENIED   "denied"

struct pairing {
        int64_t id;       /* shown as "pair-N" */
        const char *code; /* "ABCD2345" */
        const char *adapter, *platform, *sender;
        const char *name;  /* of the sender; may be NULL */
        const char *state; /* PAIRING_* */
        int64_t rule;      /* the resulting access rule; 0: none */
        int64_t created_ms, expires_ms;
        int64_t decided_ms; /* 0: not yet */
        const char *by;     /* who decided */
};

/* Adds a waiting one; deletes expired ones and the sender's previous one. */
int pairing_row_insert(struct store_tx *tx, const struct pairing *p, int64_t *id,
                       struct error *err);
/* Stores state, rule, decided_ms and by. 1; 0: not waiting; -1. */
int pairing_row_decide(struct store_tx *tx, const struct pairing *p, struct error *err);
/* 1 with its access rule (0: none); 0: no such pairing; -1. */
int pairing_row_get_rule(struct store_tx *tx, int64_t id, int64_t *rule, struct error *err);
/* 0 or -1; missing rows are fine. */
int pairing_row_delete(struct store_tx *tx, int64_t id, struct error *err);

/* Decided and still valid ones below `before`, newest first. */
struct store_stmt *pairing_row_list(struct store_tx *tx, int64_t before, int64_t limit,
                                    int64_t now_ms);
/* Waiting and still valid ones. */
struct store_stmt *pairing_row_list_waiting(struct store_tx *tx, int64_t now_ms);
int pairing_row_next(struct store_stmt *s, struct pairing *out, struct error *err);

/* --- handover_row.c: chats a human took over from the agent --- */

struct handover {
        struct chat_key chat;    /* a channel includes its threads */
        const char *by, *reason; /* for people; may be NULL */
        int64_t since_ms;
        int64_t until_ms; /* 0: until resumed */
};

int handover_row_put(struct store_tx *tx, const struct handover *h, struct error *err);
int handover_row_delete(struct store_tx *tx, const struct chat_key *chat, struct error *err);
int handover_row_delete_expired(struct store_tx *tx, int64_t now_ms, struct error *err);

/* Those not expired. */
struct store_stmt *handover_row_list(struct store_tx *tx, int64_t now_ms);
int handover_row_next(struct store_stmt *s, struct handover *out, struct error *err);

#endif
