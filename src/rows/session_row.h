/*
 * session_row: coding agents that run elsewhere (sessions), what people tell them
 * (session_commands) and what they ask people (session_approvals).
 *
 * A session is reported by a program with an API key; its events are journal rows (session.*). A
 * command is a row before the program can see it, and goes queued → delivered → seen or failed;
 * each step is taken once, so a command is carried out at most once.
 */
#ifndef ROWS_SESSION_ROW_H
#define ROWS_SESSION_ROW_H

#include "rows/rows.h"

enum session_state {
        SESSION_ACTIVE,
        SESSION_ARCHIVED, /* quiet for long; its next event makes it active again */
        SESSION_ENDED,    /* its program said so; the same */
};
const char *session_state_name(enum session_state state); /* "active" */
bool session_state_parse(const char *name, enum session_state *out);

struct session_row {
        int64_t id;           /* shown as "ses-N" */
        const char *session;  /* the program's id of it, unique */
        int64_t owner;        /* id of the API key that reported it first; 0: the operator */
        const char *identity; /* whose it is: "discord:42"; NULL: not said */
        const char *program, *host, *cwd, *title, *model; /* NULL: not said */
        enum session_state state;
        /* where it is shown; NULL: nowhere, or (thread) the channel itself */
        const char *adapter, *channel, *thread;
        const char *trace; /* of all its events */
        int64_t turns, tokens, cost_microusd;
        int64_t created_ms;
        int64_t last_event_ms; /* to the second */
        int64_t ended_ms;      /* 0: it has not */
};

/* 1: added, *id set; 0: there is one of this name; -1. id and ended_ms are not read. */
int session_row_insert(struct store_tx *tx, const struct session_row *row, int64_t *id,
                       struct error *err);
int session_row_get(struct store_tx *tx, int64_t id, struct session_row **out, struct error *err);
/* 1; 0: it was pruned; -1. */
int session_row_exists(struct store_tx *tx, int64_t id, struct error *err);
/* By the program's id. */
int session_row_find(struct store_tx *tx, const char *session, struct session_row **out,
                     struct error *err);
/* Stores what events say: program to model, state, the counters, last_event_ms and ended_ms. */
int session_row_update(struct store_tx *tx, const struct session_row *row, struct error *err);
/* Where it is shown, and whose it is (NULL: keeps it). */
int session_row_link(struct store_tx *tx, int64_t id, const struct chat_key *chat,
                     const char *identity, struct error *err);
/* Active to archived. 1; 0: it had an event meanwhile; -1. */
int session_row_archive(struct store_tx *tx, int64_t id, int64_t before_ms, struct error *err);

struct session_filter {
        int64_t before;                  /* 0: from the newest on */
        const enum session_state *state; /* NULL: any */
        int64_t owner;                   /* -1: any */
        bool linked;                     /* only those that are shown somewhere */
        int64_t limit;
};
/* Newest first. */
struct store_stmt *session_row_list(struct store_tx *tx, const struct session_filter *f);
/* Active ones. How many, or -1; counts no further than `enough`. */
int64_t session_row_count(struct store_tx *tx, int64_t enough, struct error *err);
/* Active ones without an event since then, the quietest first. */
struct store_stmt *session_row_list_quiet(struct store_tx *tx, int64_t before_ms, int64_t limit);
/* *out: the oldest last_event_ms of active ones; 0: there are none. */
int session_row_quiet_ms(struct store_tx *tx, int64_t *out, struct error *err);
/* A state that is not known counts as ended. */
int session_row_next(struct store_stmt *s, struct session_row *out, struct error *err);
struct session_row *session_row_dup(const struct session_row *row); /* free() it */

/* ---- session_command_row.c: what people tell them ---- */

enum session_action {
        SESSION_STEER,     /* read by the agent before its next step */
        SESSION_FOLLOW_UP, /* read by it when it would stop */
        SESSION_ABORT,
        SESSION_DECISION, /* the answer to an approval */
};
const char *session_action_name(enum session_action action); /* "followUp" */
bool session_action_parse(const char *name, enum session_action *out);

enum session_command_state {
        SESSION_COMMAND_QUEUED,
        SESSION_COMMAND_DELIVERED,  /* the program has it, and nobody gets it again */
        SESSION_COMMAND_SEEN,       /* the agent has read it */
        SESSION_COMMAND_FAILED,     /* error says why */
        SESSION_COMMAND_EXPIRED,    /* nobody fetched it in time */
        SESSION_COMMAND_SUPERSEDED, /* a decision that somebody else made first */
};
const char *session_command_state_name(enum session_command_state state);
bool session_command_state_parse(const char *name, enum session_command_state *out);

#define SESSION_COMMAND_ID_SIZE 25 /* 24 characters and the NUL */

struct session_command_row {
        int64_t id;
        const char *command; /* the id that programs see: random, unique */
        int64_t session;
        const char *request_key; /* unique: the same request gives the same row; may be NULL */
        enum session_action action;
        const char *content; /* "" for an abort */
        enum session_command_state state;
        const char *given_by;     /* "discord:42", "the operator", "key laptop" */
        const char *display_name; /* NULL: given_by */
        /* the message that gave it; NULL: none */
        const char *adapter, *channel, *thread, *message;
        const char *approval, *decision, *reason; /* of SESSION_DECISION; else NULL */
        const char *error;                        /* of SESSION_COMMAND_FAILED; may be NULL */
        int64_t created_ms, expires_ms;
        int64_t delivered_ms, ended_ms; /* 0: not yet */
        const char *receipt;            /* of the program that got it; may be NULL */
};

/* The caller has looked for its request key. id, state and its times are not read. */
int session_command_row_insert(struct store_tx *tx, const struct session_command_row *row,
                               int64_t *id, struct error *err);
/* 1: *id is the row of this request key; 0: there is none; -1. */
int session_command_row_find_request(struct store_tx *tx, const char *request_key, int64_t *id,
                                     struct error *err);
int session_command_row_get(struct store_tx *tx, int64_t id, struct session_command_row **out,
                            struct error *err);
/* By the id that programs see. */
int session_command_row_find(struct store_tx *tx, const char *command,
                             struct session_command_row **out, struct error *err);
/* Moves it on; error and receipt may be NULL. 1; 0: it is not in the state `from` any more; -1. */
int session_command_row_move(struct store_tx *tx, int64_t id, enum session_command_state from,
                             enum session_command_state to, const char *error, const char *receipt,
                             int64_t now_ms, struct error *err);
/* Queued ones of a session. How many, or -1; counts no further than `enough`. */
int64_t session_command_row_count(struct store_tx *tx, int64_t session, int64_t enough,
                                  struct error *err);
/* *out: when the first queued one expires; 0: none is queued. */
int session_command_row_first_ms(struct store_tx *tx, int64_t *out, struct error *err);

/* Queued ones of a session, oldest first. */
struct store_stmt *session_command_row_list_queued(struct store_tx *tx, int64_t session,
                                                   int64_t limit);
/* All of a session before this number (0: from the newest on), newest first. */
struct store_stmt *session_command_row_list(struct store_tx *tx, int64_t session, int64_t before,
                                            int64_t limit);
/* Queued ones that expire by then, oldest first. */
struct store_stmt *session_command_row_list_due(struct store_tx *tx, int64_t now_ms, int64_t limit);
/* A state that is not known counts as failed, such an action as an abort. */
int session_command_row_next(struct store_stmt *s, struct session_command_row *out,
                             struct error *err);
struct session_command_row *session_command_row_dup(const struct session_command_row *row);

/* A command that was given in a chat, as that is told what became of it. */
struct session_command_given {
        const char *command, *content, *error;
        enum session_command_state state;
        struct chat_key chat;
        const char *message; /* may be NULL */
        const char *trace;   /* of the session */
};
/* Those created since then, newest first. */
struct store_stmt *session_command_row_list_given(struct store_tx *tx, int64_t since_ms,
                                                  int64_t limit);
int session_command_row_next_given(struct store_stmt *s, struct session_command_given *out,
                                   struct error *err);

/* ---- session_approval_row.c: what they ask people ---- */

/* decided_by of what was open when its session ended. */
#define SESSION_DECIDED_BY_END "session_end"
/* `shown` of an open one that its chat refuses to show. */
#define SESSION_APPROVAL_UNASKED "open "

struct session_approval_row {
        int64_t id; /* shown as "sap-N" */
        int64_t session;
        const char *approval; /* the program's id of it, unique in the session */
        const char *tool, *content;
        const char *reason;     /* may be NULL */
        const char *fallback;   /* "allow" or "deny": what no answer means; NULL: not said */
        const char *state;      /* "open", "allow", "deny" */
        const char *decided_by; /* "discord:42", "desk", "timeout"; NULL: open */
        int64_t created_ms;
        int64_t expires_ms; /* 0: not said */
        int64_t ended_ms;   /* 0: it is open */
        int64_t delivery;   /* the message that asks; 0: none yet */
        /* what that message says: the state, and by whom; NULL: the question */
        const char *shown;
        const char *note; /* why it was decided so; NULL: not said */
};

/* 1: added, *id set; 0: it is known; -1. id, state and what follows its end are not read. */
int session_approval_row_insert(struct store_tx *tx, const struct session_approval_row *row,
                                int64_t *id, struct error *err);
int session_approval_row_get(struct store_tx *tx, int64_t id, struct session_approval_row **out,
                             struct error *err);
int session_approval_row_find(struct store_tx *tx, int64_t session, const char *approval,
                              struct session_approval_row **out, struct error *err);
/* The one end of it; note may be NULL. 1; 0: it is not open; -1. */
int session_approval_row_decide(struct store_tx *tx, int64_t id, const char *decision,
                                const char *by, const char *note, int64_t now_ms,
                                struct error *err);
/* The program decided otherwise before it heard of the decision. */
int session_approval_row_overrule(struct store_tx *tx, int64_t id, const char *decision,
                                  const char *by, int64_t now_ms, struct error *err);
/* Refuses all that are open in a session. 0 or -1. */
int session_approval_row_close(struct store_tx *tx, int64_t session, const char *by, int64_t now_ms,
                               struct error *err);
/* Which message shows it, and what that says; see the fields. */
int session_approval_row_set_shown(struct store_tx *tx, int64_t id, int64_t delivery,
                                   const char *shown, struct error *err);
/*
 * Those of a session that their message does not show as they are, and open ones that were asked
 * before the delivery `since`; oldest first.
 */
struct store_stmt *session_approval_row_list_behind(struct store_tx *tx, int64_t session,
                                                    int64_t since, int64_t limit);
/* Open ones that were asked in a chat. */
struct store_stmt *session_approval_row_list_open(struct store_tx *tx, int64_t session);
/* Open ones that nobody answered by then, oldest first. */
struct store_stmt *session_approval_row_list_due(struct store_tx *tx, int64_t now_ms,
                                                 int64_t limit);
int session_approval_row_next(struct store_stmt *s, struct session_approval_row *out,
                              struct error *err);
struct session_approval_row *session_approval_row_dup(const struct session_approval_row *row);
/* *out: when the first open one expires; 0: none does. */
int session_approval_row_first_ms(struct store_tx *tx, int64_t *out, struct error *err);

#endif
