/*
 * llm_call: one request to a service until it is answered or has failed.
 *
 *     ASKING ──► (an answer, or a failure) ──► on_done
 *       ▲  ├───► WAITING  when asking again may help: the service is busy (a patient call: or has a
 *       └──┼────────┘     problem), or the request was never sent; and nothing of an answer was
 * seen └───► LEAVING  when the stream is complete but the connection still open
 *
 * One timer serves both waits.
 */
#ifndef AGENT_LLM_LLM_CALL_H
#define AGENT_LLM_LLM_CALL_H

#include "agent/http/call_headers.h"
#include "agent/llm/llm.h"

struct llm_call;

struct llm_call_handlers {
        /* The body, for each try. */
        void (*write)(void *arg, struct buf *out);
        /* Pieces of the answer; may be NULL, as the next three. */
        void (*on_text)(void *arg, const char *text, size_t n);
        void (*on_thinking)(void *arg, const char *text, size_t n);
        void (*on_call)(void *arg, const char *name);
        void (*on_retry)(void *arg, int64_t wait_ms, const struct llm_failure *f);
        /*
         * Once. f: why the call failed; NULL: there is an answer, though reader.too_large may have
         * cut it. Frees the call.
         */
        void (*on_done)(void *arg, const struct llm_failure *f, int64_t retry_after_ms);
};

enum llm_call_state { CALL_ASKING, CALL_WAITING, CALL_LEAVING };

struct llm_call {
        const struct llm *llm;
        const struct turn_run *run; /* NULL: of no turn */
        bool stream;
        bool first;   /* of its turn: may carry the turn's idempotency key */
        bool patient; /* retries also what the service may have worked on: that only costs money */
        const char *session; /* keeps a router at one service; NULL: none */
        const struct llm_call_handlers *handlers;
        void *arg;
        /* for reading: */
        enum llm_call_state state;
        struct http_call *http;
        struct timer *timer;
        struct llm_reader reader;
        bool streaming;
        bool taken; /* the service may have started */
        int status;
        int should_retry;       /* what the service says; -1: nothing */
        int64_t retry_after_ms; /* from retry-after-ms; -1: none */
        char request_id[80];    /* for the service's support */
        int tries;
        int64_t deadline_ms;
};

/* Starts; the fields above "for reading" are set. Calls no handler but write. */
void llm_call_start(struct llm_call *c);
/* Instead: fails, later, without sending anything. */
void llm_call_fail(struct llm_call *c, enum error_kind kind, const char *why);
/* No handler is called. */
void llm_call_release(struct llm_call *c);

/* What happened, for the user and for the operator. */
void llm_call_notice(const struct llm_call *c, const struct llm_failure *f, int64_t retry_after_ms,
                     struct buf *out);
void llm_call_record(const struct llm_call *c, const char *why, struct buf *out);
/* Header lines of every request to the service, without the turn's. */
void llm_call_headers(struct call_headers *h, const struct llm *m);

#endif
