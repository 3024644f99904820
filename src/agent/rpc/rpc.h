/*
 * rpc: the coding agents pi and omp in RPC mode, as children (agent/child/child.h).
 *
 * Both read commands and write events, an object of JSON per line. They share an ancestor, and what
 * differs is in two tables (rpc_dialect.c).
 *
 *     GREETING ──► IDLE ◄──► RUNNING ──► SETTLING ──► IDLE
 *                    ▲         │ │ ▲         │ more comes
 *                    │         ▼ ▼ │         ▼
 *                    └─ ABORTING  ASKING    RUNNING
 *
 * A prompt is accepted before its run begins, and may be refused after it was accepted, or carried
 * out without a run ("/name" of an extension). A run has ended when the program says that nothing
 * more follows by itself, and no message of ours is still on its way to it (SETTLING). Runs also
 * begin by themselves, when a background job of omp ends or an extension speaks: what such a run
 * says is delivered as a late reply to the last turn.
 *
 * Files of this folder: rpc_agent.c the two kinds of agent, rpc_dialect.c the tables, rpc_run.c the
 * machine above, rpc_event.c what the program reports, rpc_dialog.c what it and its extensions ask,
 * rpc_question.c what takes more than a yes, rpc_frame.c lines before they are parsed.
 */
#ifndef AGENT_RPC_RPC_H
#define AGENT_RPC_RPC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "agent/child/child.h"
#include "agent/rpc/rpc_frame.h"
#include "base/buf.h"
#include "net/loop.h"

/* ---- rpc_dialect.c ---- */

struct rpc;

struct rpc_dialect {
        const char *name;         /* "pi" */
        const char *const *words; /* after the command of the settings, NULL-terminated */
        const char *resume;      /* names the file of the session, which is made if there is none */
        bool greets;             /* its first message is "ready" */
        bool tells_handled;      /* says so when a prompt needs no run */
        bool chunks;             /* splits large messages if asked to */
        bool settles;            /* says when nothing more follows, since version 0.80.4 */
        const char *clear_queue; /* the command that drops waiting messages; NULL: there is none */
};

struct rpc_conf {
        struct child_conf child; /* first: child.h reads it */
        char *model;
        char *while_running; /* "steer", "followUp" or "wait" */
};

const struct rpc_dialect *rpc_dialect_of(const struct agent *a);

/* ---- rpc_run.c ---- */

enum rpc_phase {
        RPC_GREETING, /* its state is not known yet */
        RPC_IDLE,
        RPC_RUNNING,  /* it was given a prompt, or began by itself */
        RPC_SETTLING, /* its run has ended; may more follow? */
        RPC_ASKING,   /* its run waits for the next turn, see rpc_question.c */
        RPC_ABORTING,
};

enum rpc_command { RPC_STATE, RPC_PROMPT, RPC_STEER, RPC_CLEAR, RPC_ABORT, RPC_NEGOTIATE };

#define RPC_COMMANDS_MAX 64 /* without an answer; further answers count as of nothing */
#define RPC_DIALOGS_MAX  32 /* open */

struct rpc {
        struct child *child;
        const struct rpc_dialect *dialect;
        enum rpc_phase phase;
        struct rpc_frames frames;
        struct timer *timer;
        char *file;  /* of the session, without its folder */
        bool images; /* its model takes pictures */
        struct {
                char *text; /* of a prompt that waits for its files; NULL: none */
                struct child_files *files;
        } pending;
        struct {
                uint64_t last;
                struct {
                        uint64_t id; /* 0: none */
                        enum rpc_command what;
                } open[RPC_COMMANDS_MAX];
        } commands;
        struct {
                bool began;   /* agent_start was seen */
                bool steered; /* messages were sent while it ran */
                bool spoke, used_tools;
                bool aborted;       /* by somebody else */
                bool cut;           /* its last answer reached the model's limit */
                char *error;        /* of its last answer; NULL: none */
                char *refused;      /* why a message could not be passed on; NULL: none */
                struct buf notices; /* what extensions and commands said */
                struct child_usage usage;
        } run;
        uint64_t prompt;    /* the command that began the run; it may be refused late */
        unsigned polls;     /* of its state, without an answer that decides */
        unsigned aborts;    /* sent since the turn was stopped */
        unsigned jobs;      /* in the background */
        bool knows_settled; /* it has said so before: no grace time is needed */
        struct {
                int64_t turn; /* gets what a run without a turn says; 0: none */
                struct buf text;
        } late;
        struct {
                char *id;        /* of the dialog that the next turn answers; NULL: none */
                json_t *options; /* NULL: free words */
                char *own;       /* words for the editor that follows the choice; NULL: none */
        } question;
        LIST_HEAD(, rpc_dialog) dialogs;
        unsigned dialog_count;
};

extern const struct child_dialect rpc_child_dialect;
struct rpc *rpc_of(struct child *c);

/* Does the run belong to a turn? One that still waits for its files has not joined it. */
bool rpc_has_turn(const struct rpc *r);
void rpc_greeted(struct rpc *r, const json_t *message);
void rpc_began(struct rpc *r); /* a run */
/* The program says that the run has ended; sure: and that nothing more follows by itself. */
void rpc_run_ended(struct rpc *r, bool sure);
/* A prompt was carried out, or refused because of this error, without a run. */
void rpc_prompt_ended(struct rpc *r, uint64_t id, const char *error);
void rpc_answered(struct rpc *r, const json_t *message); /* a command */
/* The turn ends with a question. timeout_ms: then the run goes on by itself; 0: it does not. */
void rpc_asks(struct rpc *r, int64_t timeout_ms);
/* The question needs no answer any more. */
void rpc_asks_no_more(struct rpc *r);
void rpc_count_jobs(struct rpc *r, int change);

/* ---- rpc_event.c ---- */

void rpc_received(struct child *c, json_t *message);
void rpc_notify(struct rpc *r, const char *text); /* an extension says so */

/* ---- rpc_dialog.c ---- */

void rpc_ui_request(struct rpc *r, const json_t *message);
/* value NULL: it is cancelled. */
void rpc_dialog_answer(struct rpc *r, const char *id, const char *value);
/* Answers all of them with "cancelled". */
void rpc_dialogs_cancel(struct rpc *r);
void rpc_dialogs_release(struct rpc *r);

/* ---- rpc_question.c ---- */

/* Says the question as the answer of the turn. False: it cannot be asked. */
bool rpc_question_ask(struct rpc *r, const json_t *message);
/* Answers it with what people wrote. False: that is none, and it is cancelled. */
bool rpc_question_answer(struct rpc *r);
/* An editor for words that were given already. */
bool rpc_question_answer_own(struct rpc *r, const json_t *message);
void rpc_question_forget(struct rpc *r);

#endif
