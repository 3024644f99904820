/*
 * a2a: our agents for software that speaks the Agent2Agent protocol, versions 1.0 and 0.3, as
 * JSON-RPC. The other direction, agents of others, is agent/a2a/.
 *
 * A task is a message on the road and what becomes of it: its id is that of the event, its state
 * that of the decision and of the turn, its artifact the answer. So it survives everything that the
 * road survives, and is known as long as the journal keeps the message. A context is a chat. Both
 * belong to the key that began them: no other key sees them, whatever it knows.
 *
 *     POST /a2a, /a2a/AGENT ──► a2a_rpc.c ──► a2a_endpoint.c ──► a2a_send.c ──► the inbox
 *                               reads it      GetTask, ...       SendMessage, streams
 *                                                    └─────► a2a_task.c ◄──┘
 *                                                            reads rows, writes a task
 *
 * Files of this folder: a2a_rpc.c reads requests, without network; a2a_endpoint.c answers all but
 * messages; a2a_send.c takes messages and follows their tasks; a2a_task.c is a task, a2a_cards.c
 * what we say of ourselves.
 */
#ifndef API_COMPAT_A2A_H
#define API_COMPAT_A2A_H

#include "agent/a2a/a2a_wire.h"
#include "api/compat/chat_bridge.h"
#include "api/core/reply_waiters.h"
#include "store/store.h"

#define A2A_ID_MAX      200 /* bytes of an id that a client chooses */
#define A2A_PARTS_MAX   100
#define A2A_ASK_FILES   20
#define A2A_PAGE        50
#define A2A_PAGE_MAX    100
#define A2A_ALL_HISTORY (-1)

/* ---- a2a_rpc.c: requests ---- */

/* What is wrong with a request. */
struct a2a_mistake {
        int64_t code;
        char text[200];
};
/* Returns -1. */
int a2a_mistake_set(struct a2a_mistake *m, int64_t code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

struct a2a_rpc {
        enum a2a_version version;
        enum a2a_method method;
        char *id;             /* JSON text; yours to free, also after a mistake */
        const json_t *params; /* an object, borrowed; NULL: none */
};
/* header: A2A-Version, may be NULL. root NULL: it is no JSON. */
int a2a_rpc_read(const json_t *root, const char *header, struct a2a_rpc *out,
                 struct a2a_mistake *m);

/* A message. Strings are borrowed from the request. */
struct a2a_ask {
        const char *message, *context, *task; /* context, task: may be NULL */
        struct buf text;
        struct attachment files[A2A_ASK_FILES];
        const char *bytes[A2A_ASK_FILES]; /* base64 of a file that was sent along, else NULL */
        size_t file_count;
        bool waits;      /* for the end of the task */
        int64_t history; /* messages of it that are wanted; A2A_ALL_HISTORY */
};
/* Release it in any case. */
int a2a_ask_read(const struct a2a_rpc *rpc, struct a2a_ask *out, struct a2a_mistake *m);
void a2a_ask_release(struct a2a_ask *ask);

/* Which tasks are listed. */
struct a2a_list_ask {
        const char *context;  /* NULL: all */
        enum a2a_state state; /* A2A_UNKNOWN: any */
        int64_t size, history;
        int64_t after_ms;            /* with a newer state; 0: all */
        int64_t from_ms, from_event; /* where the page begins; 0: with the newest */
        bool artifacts;
};
int a2a_list_ask_read(const struct a2a_rpc *rpc, struct a2a_list_ask *out, struct a2a_mistake *m);
/* The page after this task. */
void a2a_page_token(struct buf *b, int64_t time_ms, int64_t event);

/* historyLength; -1 after a mistake. */
int a2a_history_read(const json_t *object, int64_t *out, struct a2a_mistake *m);
/* The number of a task "evt-12" in `id`; -1 after a mistake. */
int64_t a2a_task_id_read(const struct a2a_rpc *rpc, struct a2a_mistake *m);

/* Whom an answer is for. */
struct a2a_to {
        enum a2a_version version;
        char *id;     /* JSON text */
        bool streams; /* asked for a stream */
};
/*
 * The HTTP status of a mistake. Clients of 0.3 that asked for a stream read an error only with one
 * that says so.
 */
int a2a_mistake_status(bool streams);
bool a2a_method_streams(enum a2a_method m);
void a2a_write_error(struct buf *b, const char *id, const struct a2a_mistake *m);
/* Both take rpc.id. */
void a2a_reply_mistake(struct http_exchange *x, struct a2a_rpc *rpc, const struct a2a_mistake *m);
/* Begins {"jsonrpc", "id", "result": ; the result follows, then a2a_close. */
void a2a_open(struct buf *b, const struct a2a_to *to);
void a2a_close(struct buf *b);

/* ---- a2a_task.c: tasks ---- */

struct a2a_task {
        bool found;
        int64_t event, turn; /* turn 0: none */
        enum a2a_state state;
        int64_t time_ms;         /* of the state */
        char *context, *message; /* message: the client's id of it */
        char *trace;
        json_t *payload; /* of the message */
        char *answer;    /* NULL: none */
        char *said;      /* about the state; NULL: nothing */
};
void a2a_task_release(struct a2a_task *t);

/*
 * What the names of an agent's chats (NULL: of the rules) with a key begin with; a context follows.
 * Yours to free.
 */
char *a2a_chats(int64_t caller, const char *agent);
/* A message's key in the inbox; of "" what all of them begin with. Yours to free. */
char *a2a_key(int64_t caller, const char *message);
/* The id of a context that a client did not name: the same for the same message. */
char *a2a_context_for(int64_t caller, const char *message);

/* On a store thread. Reads the task if it is the caller's and of this agent. */
int a2a_task_read(struct store_tx *tx, const struct key *caller, const char *agent, int64_t event,
                  struct a2a_task *out, struct error *err);
/* Appends the members that make a task. key NULL: an element, or a value. */
struct a2a_task_form {
        enum a2a_version version;
        int64_t history;
        bool artifacts;
};
void a2a_task_write(struct buf *b, const char *key, const struct a2a_task_form *f,
                    const struct a2a_task *t);
/* One event of a stream: {"statusUpdate": ...}. said may be NULL. */
void a2a_status_write(struct buf *b, enum a2a_version v, const struct a2a_task *t,
                      enum a2a_state state, const char *said);
void a2a_artifact_write(struct buf *b, enum a2a_version v, const struct a2a_task *t,
                        const char *text, size_t n, bool append);
/* What became of a message; NULL: it still runs. */
enum a2a_state a2a_state_of(const struct awaited_reply *r);
/* The reason of a state that is no answer; borrowed, or NULL. */
const char *a2a_reason_of(const struct awaited_reply *r);

/* ---- a2a_endpoint.c ---- */

/* A request that is answered later; the first member of other structs, malloc'd as a whole. */
struct a2a_job {
        struct api_job job; /* first */
        struct a2a_to to;
        char *agent; /* of the path; NULL: the rules choose */
        struct key *caller;
        char *adapter; /* its name: a reload may remove it meanwhile */
        json_t *root;  /* the request */
        int64_t event, history;
        struct a2a_task task; /* as read last */
        unsigned tries;
        struct timer *timer;
        /* After a2a_job_load. err: of the store, or NULL. */
        void (*loaded)(struct a2a_job *j, const struct error *err);
        void (*release)(struct a2a_job *j); /* of the struct around it; may be NULL */
};
/* What a request begins with. Takes rpc->id, and a reference of root. */
void a2a_job_init(struct a2a_job *j, struct http_exchange *x, struct a2a_rpc *rpc, json_t *root,
                  const char *agent, const char *adapter);
void a2a_job_free(struct a2a_job *j);
/* Reads the task of j->event and calls j->loaded, which has an exchange to answer. */
void a2a_job_load(struct a2a_job *j);
/* These answer, and free the job. */
void a2a_job_mistake(struct a2a_job *j, int64_t code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
void a2a_job_failed(struct a2a_job *j, const struct error *err);
void a2a_job_reply_task(struct a2a_job *j);
void a2a_job_reply(struct a2a_job *j, int status, struct buf *json);

/* ---- a2a_send.c ---- */

/* SendMessage and SendStreamingMessage. Takes rpc->id, and a reference of root. */
void a2a_send_message(struct http_exchange *x, struct a2a_rpc *rpc, json_t *root, const char *agent,
                      const char *adapter);
/* SubscribeToTask: j->task is loaded, and has not ended. */
void a2a_subscribe_task(struct a2a_job *j);

#endif
