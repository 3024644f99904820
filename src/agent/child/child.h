/*
 * child: agents that Dragoman starts as programs and talks with in lines of JSON.
 *
 * Each session has a process of its own (what a session is, the setting `session` says; mostly a
 * conversation), in a sandbox. The first turn starts it. It stays for further turns, is ended when
 * idle, and the next turn starts another one, which resumes the session by the agent's own id of
 * it (rows/agent_session_row.h). After /new the session has another name, and so begins anew.
 *
 *     ABSENT ──► QUEUED ──► STARTING ──► IDLE ◄──► MARKING ──► WORKING ──► STOPPING ──► IDLE
 *        ▲    until there      │           │                      │            │
 *        │    is a place       ▼           ▼                      ▼            ▼
 *        └────────────────── ENDING ◄──────┴──────────────────────┴────────────┘
 *
 * A turn is given to the agent once. That it will be is stored with the turn first (MARKING); one
 * that a crash interrupted after that ends with a notice, one that still waited goes on. STOPPING:
 * the turn has ended for people, and the agent has a grace period to end it too; what it says
 * meanwhile is dropped. A process that dies in a turn ends the turn with a notice; the next turn
 * resumes.
 *
 * Files of this folder: child.c is the machine above, child_pool.c says which of them run,
 * child_turn.c is what a turn collects, child_steer.c messages that join it, child_tools.c its tool
 * calls as events and details, child_ask.c its questions to people, child_process.c the process and
 * its lines, child_place.c where it runs and what it sees, child_path.c paths of the settings,
 * child_prompt.c what it is told, child_status.c what it uses, child_health.c whether its program
 * is there, child_conf.c the settings, child_ops.c the registry's side.
 *
 * A kind of agent is
 *   - a conf that begins with a struct child_conf, and a settings table that includes
 *     agent/child/child_settings.inc (define CHILD_COMMAND, the default command, before);
 *   - a struct child_dialect;
 *   - an agent_ops whose check is, or calls, child_check_conf, whose open calls child_open(a,
 *     &dialect), whose abilities include CHILD_CAN, and whose other slots are CHILD_OPS.
 * The dialect is called with a child; it reports by the functions below, at any time: what belongs
 * to no turn any more is dropped. Messages of the agent are objects; anything else is skipped.
 */
#ifndef AGENT_CHILD_CHILD_H
#define AGENT_CHILD_CHILD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/policy/policy.h" /* for child_settings.inc */
#include "base/settings.h"

struct child;
struct child_words;
struct sandbox_key;
struct sandboxes;

/* ---- settings ---- */

struct child_sandbox {
        char *kind; /* "bwrap" or "host" */
        struct setting_list hosts, read_only, writable;
        bool debuggers;
        int64_t memory_mb, total_mb, processes, file_mb, disk_mb;
};

/* Filled by child_settings.inc. */
struct child_conf {
        struct setting_list command;
        struct setting_pairs env;
        struct setting_list pass_env;
        char *cwd; /* "conversation", "rule" or an absolute path */
        struct child_sandbox sandbox;
        struct setting_map policy;
        char *approvers; /* of what no rule decides: "asker" or "admins" */
        int64_t processes;
        double idle_minutes;
        int64_t start_ms, silence_seconds, turn_minutes, cancel_ms;
        int64_t line_kb, output_mb, answer_kb, history_messages;
};
extern const struct setting child_sandbox_settings[];
extern const char *const child_approvers[];
/* For agent_ops.check; settings: begins with a struct child_conf. */
int child_check_conf(struct settings_source *src, const char *path, const void *settings,
                     struct error *err);

/* ---- what a dialect is ---- */

struct child_dialect {
        const char *name;  /* "ACP agent", for people */
        size_t state_size; /* of child_state(), which is zeroed for each process */
        /* Adds words to the command, such as "--session FILE". May be NULL. */
        void (*add_words)(struct child *c, struct child_words *words);
        /* The process runs: begin the handshake. child_ready or child_refused ends it. */
        void (*started)(struct child *c);
        /*
         * A line before it is parsed. 1: parse what is in out instead; 0: nothing in it matters;
         * -1: parse it. May be NULL.
         */
        int (*read_line)(struct child *c, const char *line, size_t n, struct buf *out);
        /* An object that it sent; borrowed. */
        void (*received)(struct child *c, json_t *message);
        /* Give it the turn child_run(). child_over ends it. */
        void (*prompt)(struct child *c);
        /*
         * Messages joined the running turn: tell it; idle: as a further prompt, because it has
         * ended what it was given. NULL: it cannot be told, and they wait for the next turn. The
         * kind's abilities need AGENT_STEERS as well.
         */
        void (*steer)(struct child *c, const char *text, bool idle);
        /* Ask it to end the turn, which child_over confirms within the grace period. */
        void (*cancel)(struct child *c);
        /* The process is gone, or could not be started: release the state. May be NULL. */
        void (*ended)(struct child *c);
};

void child_add_word(struct child_words *words, const char *word);

/* ---- what it may ask ---- */

void *child_state(struct child *c);
const void *child_conf(const struct child *c); /* of the kind */
struct agent *child_agent(const struct child *c);
/* The agent's id of the session to resume; "": begin one. */
const char *child_session(const struct child *c);
/* Where it works, as it sees the path. */
const char *child_folder(const struct child *c);
/* A folder of its session alone, which /new does not change, as it sees it: for what it keeps. */
const char *child_home(const struct child *c);
/* The turn it works on; NULL: none, or it has ended for people. */
struct turn_run *child_run(const struct child *c);
/* What people wrote, for the agent: the rule's prompt, earlier lines if it has no memory of them,
 * who wrote and where. Files are in it as paths. Yours to free. */
char *child_prompt_text(const struct child *c);
/* The same of messages that joined. */
char *child_messages_text(const struct child *c, const struct incoming *const *inputs,
                          unsigned count);
/* Where an attachment (with a path) is; yours to free. */
char *child_file_path(const struct child *c, const struct attachment *file);
/*
 * The files of the turn's messages; of pictures also the bytes, if `images`, read on a pool thread
 * unless they are too large. done follows once, later, unless they are dropped.
 */
struct child_file {
        char *path; /* as it sees it */
        char *name, *mime;
        int64_t size; /* 0: unknown */
        char *image;  /* base64; NULL: only the path is to be told */
};
struct child_files;
typedef void child_files_fn(struct child *c, const struct child_file *files, size_t count);
struct child_files *child_files_read(struct child *c, bool images, child_files_fn *done);
void child_files_drop(struct child_files *f); /* NULL is fine */
/* Where it runs, for commands beside it (agent/sandbox/sandbox.h). */
struct sandboxes *child_sandboxes(const struct child *c);
struct sandbox_key child_sandbox_key(const struct child *c);

/* ---- what it reports ---- */

/* A line; json has no line end. A child that does not read is ended. */
void child_send(struct child *c, const char *json, size_t n);
void child_send_json(struct child *c, json_t *message); /* takes it */

/*
 * The handshake is done. session: the agent's id, stored with the next turn; resumed: it remembers
 * the conversation.
 */
void child_ready(struct child *c, const char *session, bool resumed);
/* It cannot work: the turn that waits ends with the notice, the process is ended. */
void child_refused(struct child *c, enum error_kind kind, const char *notice, const char *why);
/* The session has another id now; stored with the next turn. */
void child_set_session(struct child *c, const char *session);
/*
 * Also without a turn: runs: it works, so it is not ended to make room; awaits: it will, so it is
 * not ended as idle.
 */
void child_set_busy(struct child *c, bool runs, bool awaits);

void child_text(struct child *c, const char *text, size_t n); /* a piece of the answer */
void child_text_break(struct child *c);                       /* what follows is another message */
/*
 * A message of the answer is complete: the text is what its pieces were, and replaces them if they
 * differ. NULL: nothing of it counts. What follows is a paragraph of its own.
 */
void child_message(struct child *c, const char *text, size_t n);
void child_progress(struct child *c, const char *label); /* "thinking", "2 of 5: tests" */

/* A tool call, by any message that tells of it: what is NULL is unchanged. */
enum child_tool_state { CHILD_TOOL_ANNOUNCED, CHILD_TOOL_RUNS, CHILD_TOOL_DONE, CHILD_TOOL_FAILED };
struct child_tool {
        const char *id;
        enum child_tool_state state;
        const char *name;        /* "bash" */
        const char *title;       /* for people: "run the tests" */
        const json_t *arguments; /* an object; {} counts as unknown */
        const char *output;      /* text, so far or at the end */
};
void child_tool(struct child *c, const struct child_tool *t);

struct child_usage {
        int64_t tokens_in, tokens_cached, tokens_out, cost_microusd;
};
void child_set_usage(struct child *c, const struct child_usage *u); /* of the turn so far */

/*
 * Asks a person, unless the policy decides. done is called once, later or at once, unless the turn
 * or the process ends first; why (may be NULL) is for the agent.
 */
struct child_question {
        const char *call;        /* names it within the turn */
        const char *tool;        /* as policies name it: "bash" with the argument "command", ... */
        const json_t *arguments; /* an object */
        const json_t *files;     /* an array, if it is about several; may be NULL */
        bool admins;             /* only they may allow it, whatever the policy says */
        int64_t expires_ms;      /* then it goes on without an answer; 0: as the policy says */
        /* In its words, for people: "ask you something" and a text; NULL: from the arguments. */
        const char *title, *text;
};
typedef void child_answer_fn(void *arg, bool allowed, const char *why);
void child_ask(struct child *c, const struct child_question *q, child_answer_fn *done, void *arg);
/* Forgets the question of this argument: no done follows. */
void child_ask_forget(struct child *c, void *arg);

/* The agent has ended the turn. */
struct child_end {
        enum error_kind kind; /* ERR_NONE: what it said is the answer */
        const char *remark;   /* added below the answer, or the notice of a failure; may be NULL */
        const char *error;    /* for the operator */
        bool untouched;       /* it certainly did nothing: another agent may be asked */
        bool unusable;        /* end the process, and resume the session in another one */
};
void child_over(struct child *c, const struct child_end *end);

/* ---- agent_ops ---- */

#define CHILD_CAN (AGENT_BATCHES | AGENT_HISTORY | AGENT_STREAMS | AGENT_CANCELS | AGENT_RECOVERS)
/* clang-format off */
#define CHILD_OPS                                                                              \
        .close = child_close, .start = child_start,                                            \
        .cancel = child_cancel, .waiting = child_waiting, .check_health = child_check_health,  \
        .status = child_status, .sandbox = child_sandbox_state
/* clang-format on */

int child_open(struct agent *a, const struct child_dialect *d, struct error *err);
void child_close(struct agent *a);
void child_start(struct agent *a, struct turn_run *run);
void child_cancel(struct agent *a, struct turn_run *run);
void child_waiting(struct agent *a, struct turn_run *run);
/* Healthy: the command exists, and its last start worked. */
void child_check_health(struct agent *a, void *token);
void child_status(const struct agent *a, struct buf *out);
void child_sandbox_state(const struct agent *a, struct agent_sandbox *out);

#endif
