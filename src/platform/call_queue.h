/*
 * call_queue: calls of a platform's API that wait for its rate limits.
 *
 *     add ──► waiting ──► flying ──► leave
 *      │       ▲    │        │
 *      ▼       └────│─ again ┘
 *     refused ◄─────┘ late
 *
 * A lane holds the calls that the platform limits together; in it, more important calls go first.
 * Nothing waits beyond its deadline. Refused calls are answered from the loop.
 */
#ifndef PLATFORM_CALL_QUEUE_H
#define PLATFORM_CALL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "net/loop.h"

#define CALL_PRIORITIES 3
#define CALL_FLYING_MAX 32   /* as many connections as are kept alive */
#define CALL_LIMITED_MS 1000 /* when to try again, if nothing says it */

enum queued_state { QUEUED_OUTSIDE, QUEUED_WAITING, QUEUED_FLYING, QUEUED_REFUSED };

/* The first member of a platform's call, zeroed. */
struct queued_call {
        unsigned priority;   /* 0: the most important */
        int64_t deadline_ms; /* by loop_now_ms: it has to fly then */
        /* ---- the queue's; the platform may read them ---- */
        enum queued_state state;
        struct call_lane *lane;
        struct error refusal; /* with QUEUED_REFUSED */
        int64_t refusal_ms;   /* when to try again; -1: not known */
        TAILQ_ENTRY(queued_call) next;
};
TAILQ_HEAD(queued_calls, queued_call);

struct call_lane {
        unsigned waiting, flying;
        struct queued_calls queues[CALL_PRIORITIES];
        LIST_ENTRY(call_lane) busy; /* while calls wait */
};
LIST_HEAD(call_lanes, call_lane);

struct call_queue;

struct call_queue_ops {
        /* 0: it may go now, which is counted; > 0: ask again then; -1: after the next answer. */
        int64_t (*wait)(struct call_queue *q, const struct queued_call *c, int64_t now_ms);
        void (*start)(struct queued_call *c);
        /* Answers with c->refusal and frees it. */
        void (*refused)(struct queued_call *c);
        /* Before each look at late calls. May be NULL. */
        void (*tick)(struct call_queue *q, int64_t now_ms);
        const char *late; /* the refusal of a call that would wait too long */
};

struct call_queue {
        struct loop *loop;
        const struct call_queue_ops *ops;
        void *arg; /* the platform's */
        size_t waiting, flying_count;
        /* ---- the queue's ---- */
        struct call_lanes busy; /* where calls wait */
        struct queued_calls flying, refused;
        struct timer *timer;
};

void call_lane_init(struct call_lane *lane);

void call_queue_open(struct call_queue *q, struct loop *l, const struct call_queue_ops *ops,
                     void *arg);
/* Every call has left. */
void call_queue_close(struct call_queue *q);
/* It goes as soon as it may, perhaps now. */
void call_queue_add(struct call_queue *q, struct call_lane *lane, struct queued_call *c);
/* The same for one that was refused for its rate, before the others of its priority. */
void call_queue_again(struct call_queue *q, struct call_lane *lane, struct queued_call *c);
void call_queue_refuse(struct call_queue *q, struct queued_call *c, enum error_kind kind,
                       int64_t retry_ms, const char *why);
/* Refuses waiting calls for which `which` is true. */
void call_queue_refuse_waiting(struct call_queue *q, bool (*which)(const struct queued_call *c),
                               enum error_kind kind, const char *why);
/* It is answered or aborted, wherever it is. */
void call_queue_leave(struct call_queue *q, struct queued_call *c);
/* What waits in one lane waits in the other from now on. */
void call_queue_move(struct call_queue *q, struct call_lane *from, struct call_lane *to);
/* An answer has come: others may go. */
void call_queue_pump(struct call_queue *q);

#endif
