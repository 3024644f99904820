/*
 * a2a: agents that speak the Agent2Agent protocol, versions 1.0 and 0.3, over JSON-RPC.
 *
 * The agent's card says where it takes requests. A turn sends one message; what becomes of it is a
 * task at the agent, which is followed to its end, by its stream of events or by asking. The
 * context of a conversation is the agent's own, and is kept in agent_session_row.h; what a turn was
 * sent, and its task, in a2a_turn_row.h.
 *
 *     LOADING ──► DISCOVERING ──► READING ──► MARKING ──► SENDING ──┬─► the end of the task
 *     its rows    the card        files       the row       │       │
 *        │                                      ▲           ▼       ▼
 *        │                                      │        PAUSING ──► ASKING ──► SUBSCRIBED
 *        │ sent before a restart                │         ▲ ▲  ▲        │           │
 *        └──────────────────► FINDING ──────────┘         │ │  └────────┘           │
 *                             is there a task? ───────────┘ └───────────────────────┘
 *
 * A message is sent once. When it may have arrived and nothing is known of it, it is looked for
 * among the agent's tasks, and sent again only if it certainly is not there, or the agent is known
 * to recognise it (`repeatable`). The end of a task is its state, not the end of a stream.
 *
 * A turn may end before its task: after the time for it, or while the task waits for an
 * authorization. Then the task is followed on (`run` is NULL), and its answer is a late reply.
 *
 * Files of this folder: a2a_turn.c is the machine above, a2a_end.c how a turn ends, a2a_follow.c
 * what to do when an answer is missing, a2a_rows.c what it stores, a2a_discovery.c keeps the card,
 * a2a_call.c is one request, a2a_params.c what requests say, a2a_files.c files both ways;
 * a2a_wire.c, a2a_card.c and a2a_answer.c read what agents say, without network; a2a.c has the
 * settings and the registry's side. src/api/compat/a2a*.c is the other direction.
 */
#ifndef AGENT_A2A_A2A_H
#define AGENT_A2A_A2A_H

#include <sys/queue.h>

#include "agent/a2a/a2a_answer.h"
#include "agent/a2a/a2a_card.h"
#include "agent/a2a/a2a_wire.h"
#include "agent/agent.h"
#include "agent/usage.h"
#include "net/http_client.h"

#define A2A_LATE_MAX 32 /* turns that have ended and whose tasks are followed */

struct a2a_conf {
        char *url, *endpoint;
        struct setting_list origins;
        struct secret *key;
        struct setting_list headers;
        bool stream, repeatable;
        char *context; /* who names it: "agent" or "session" */
        int64_t timeout_ms, first_byte_ms, silence_ms, poll_ms, retries;
        char *late; /* or "discard" */
        int64_t late_seconds, max_file_bytes;
};

LIST_HEAD(a2a_waiters, a2a_waiter);
LIST_HEAD(a2a_turns, a2a_turn);

/* An opened agent: a->self. */
struct a2a_agent {
        struct agent *agent;
        const struct a2a_conf *conf;
        char *card_url;
        struct a2a_card *card; /* NULL: not known yet */
        int64_t card_until_ms; /* then it is fetched again; 0: it is out of date */
        struct http_call *fetching;
        struct a2a_waiters waiters;
        struct timer *wake;
        char moved_to[200]; /* of a redirect */
        struct a2a_turns turns;
        unsigned late_count;
};

/* ---- a2a_discovery.c ---- */

void a2a_discovery_open(struct a2a_agent *o);
/*
 * err: why the card could not be fetched; then card is an older one, or NULL. elapsed_ms: of the
 * request; 0: the card was known.
 */
typedef void a2a_card_fn(void *arg, struct a2a_card *card, const struct error *err,
                         int64_t elapsed_ms);
struct a2a_waiter;
/* Calls fn once, later, unless dropped. fresh: ask for it now. */
struct a2a_waiter *a2a_discover(struct a2a_agent *o, bool fresh, a2a_card_fn *fn, void *arg);
void a2a_discover_drop(struct a2a_waiter *w); /* NULL is fine */
/* The agent no longer is where the card says. */
void a2a_discover_again(struct a2a_agent *o);
void a2a_discovery_close(struct a2a_agent *o);

/* ---- a2a_call.c ---- */

struct call_headers;
/* Those that identify us, for the operator's own URLs. */
void a2a_add_credentials(const struct a2a_agent *o, struct call_headers *h);

struct a2a_request {
        const struct a2a_card *card;
        enum a2a_method method;
        const char *params;         /* a JSON object */
        const struct turn_run *run; /* whose request it is; key NULL: not the turn's message */
        bool stream;
        int64_t total_ms, first_byte_ms, silence_ms;
};

enum a2a_end {
        A2A_END_DONE,    /* the response came to its end */
        A2A_END_ERROR,   /* JSON-RPC's error */
        A2A_END_REFUSED, /* an HTTP status that says so */
        A2A_END_BROKEN,  /* no response, or half of one */
};

struct a2a_outcome {
        enum a2a_end end;
        int status;   /* 0: none */
        int64_t code; /* of A2A_END_ERROR */
        enum http_reach reach;
        enum error_kind kind;
        const char *why;
        int64_t retry_after_ms; /* -1: not told */
};

/* Each may free the call. */
struct a2a_call_handlers {
        void (*on_result)(void *arg, const json_t *result);
        /* Once. Frees the call: forget it. */
        void (*on_end)(void *arg, const struct a2a_outcome *o);
};

struct a2a_call;
/* Copies. No handler is called before it returns. */
struct a2a_call *a2a_call_start(const struct a2a_agent *o, const struct a2a_request *q,
                                const struct a2a_call_handlers *handlers, void *arg);
/* No handler follows. NULL is fine. */
void a2a_call_free(struct a2a_call *c);
/* Asks the agent to stop a task; nobody waits for the answer. */
void a2a_cancel_task(const struct a2a_agent *o, const struct a2a_card *card, const char *task,
                     const struct turn_run *run);

/* ---- a turn ---- */

enum a2a_step {
        A2A_LOADING,
        A2A_DISCOVERING,
        A2A_READING,
        A2A_MARKING,
        A2A_SENDING,
        A2A_FINDING,
        A2A_PAUSING,
        A2A_ASKING,
        A2A_SUBSCRIBED,
        A2A_STORING, /* that its task is open; or files on their way to the chat */
        A2A_LEAVING, /* stopped before the agent told its task: to cancel that */
};

/* What follows a pause. */
enum a2a_next { A2A_DISCOVER_NEXT, A2A_SEND_NEXT, A2A_FIND_NEXT, A2A_ASK_NEXT };

struct a2a_turn {
        struct a2a_agent *owner;
        struct turn_run *run; /* NULL: it has ended */
        int64_t id, fence;
        char *adapter, *channel, *thread, *trace;
        enum reply_mode mode;
        enum a2a_step step;
        enum a2a_next next;
        char *name;         /* of the session */
        char *message;      /* id of the message */
        char *context;      /* NULL: the agent has not told it */
        char *task;         /* the same */
        char *refers_to;    /* a task that had ended before the message came; NULL: none */
        bool goes_on;       /* the message is for a task that was open */
        char *before;       /* its state then, see struct a2a_turn_row; NULL: none */
        char *since;        /* the state it has now, in the same form; NULL: not known */
        bool sent;          /* the row says so */
        bool resent;        /* it was missing, and sent again */
        bool told;          /* the agent has told of this message */
        bool checks;        /* asks whether the message reached the task */
        bool resumed;       /* some of its events were missed */
        bool plain;         /* the agent does not stream, whatever its card says */
        bool deaf;          /* it cannot be subscribed to */
        bool held;          /* it outlives its turn, and so holds the agent */
        bool awaits_person; /* it waits for an authorization, and the turn has said so */
        struct a2a_card *card;
        struct a2a_waiter *waiter;
        struct a2a_load *load;
        struct a2a_write *write; /* the one that the turn waits for */
        struct a2a_reading *reading;
        struct a2a_upload *upload;
        struct a2a_call *call;
        struct timer *timer, *deadline, *show;
        json_t *parts; /* files of the message */
        unsigned tries, finds, pauses;
        int64_t kept_alive_ms;
        /* what the agent said */
        enum a2a_state state;
        struct a2a_answer answer;
        char *said;                /* the message of its state; NULL: none */
        char *label;               /* shown last */
        struct buf shown, unshown; /* text so far; names of files that have no way to the chat */
        unsigned rewrites;
        struct usage usage;
        LIST_ENTRY(a2a_turn) next_turn;
};

/* a2a_turn.c */
void a2a_start(struct agent *a, struct turn_run *run);
void a2a_stop(struct agent *a, struct turn_run *run);
void a2a_turn_free(struct a2a_turn *t);
/* The turn ends, or has ended, and its task is followed for that long. */
void a2a_outlive(struct a2a_turn *t, int64_t ms);
/* Stores that the message goes out, and sends it. */
void a2a_send_marked(struct a2a_turn *t);
void a2a_send(struct a2a_turn *t);
void a2a_ask(struct a2a_turn *t); /* GetTask */
void a2a_subscribe(struct a2a_turn *t);
/* Takes what the agent says of the turn's task. False: it has ended, and may be gone. */
bool a2a_take(struct a2a_turn *t, const json_t *result, bool whole);
/* What is stored is stored: the row was loaded, the message marked. */
void a2a_loaded(struct a2a_turn *t, const struct error *err);
void a2a_marked(struct a2a_turn *t, bool stored);
void a2a_files_read(struct a2a_turn *t);

/* a2a_follow.c */
void a2a_pause(struct a2a_turn *t, enum a2a_next next, int64_t ms);
/* How long until it is tried again: longer each time, at most pollMs. */
int64_t a2a_backoff(struct a2a_turn *t);
/* The task goes on and is not heard of: ask, then listen again. o: of the last request, or NULL. */
void a2a_follow(struct a2a_turn *t, const struct a2a_outcome *o);
/* Nothing is known of the message, which may have arrived. */
void a2a_find(struct a2a_turn *t);
/* The message was sent before the process ended. */
void a2a_recover(struct a2a_turn *t);
extern const struct a2a_call_handlers a2a_send_handlers, a2a_find_handlers, a2a_ask_handlers,
        a2a_subscribe_handlers;

/* a2a_end.c */
/* The task has ended, or waits for somebody. */
void a2a_conclude(struct a2a_turn *t);
/* Frees the turn. o: of the last request; NULL: none. */
void a2a_fail(struct a2a_turn *t, enum error_kind kind, enum agent_effect effect,
              const char *notice, const struct a2a_outcome *o, const char *why);
void a2a_out_of_time(struct a2a_turn *t);
void a2a_task_stored(struct a2a_turn *t);
void a2a_files_sent(struct a2a_turn *t);

/* a2a_rows.c */
void a2a_load(struct a2a_turn *t);
/* Unless the process ends, a2a_marked or a2a_task_stored follows. */
void a2a_store_mark(struct a2a_turn *t);
void a2a_store_open(struct a2a_turn *t);
/* What the agent told; nobody waits for it. */
void a2a_store_task(struct a2a_turn *t);
/* Whether its task waits for a message; also without a run. Nobody waits for it. */
void a2a_store_late(struct a2a_turn *t, bool open);
void a2a_rows_forget(struct a2a_turn *t);

/* a2a_params.c: yours to free */
char *a2a_params_send(const struct a2a_turn *t);
char *a2a_params_task(const struct a2a_turn *t, bool with_history);
char *a2a_params_list(const struct a2a_turn *t);
/* Is the message among these? */
bool a2a_has_message(const json_t *history, const char *id);

/* a2a_files.c */
/* Reads the files of the turn's messages on a pool thread; then a2a_files_read. False: none. */
bool a2a_read_files(struct a2a_turn *t);
/* Sends the files of the answer to the chat; then a2a_files_sent. False: there are none. */
bool a2a_send_files(struct a2a_turn *t);
void a2a_files_forget(struct a2a_turn *t);

#endif
