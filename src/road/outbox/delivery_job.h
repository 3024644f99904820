/*
 * delivery_job: open deliveries in memory, and the queues in which they wait. For src/road alone.
 *
 *     QUEUED ── claim committed ──► SENDING ── adapter answers ──► SETTLING ── result committed
 *        ▲                                                                            │
 *        └──────────────────────── retry ────────────────────────────────────── or removed
 *
 * The claim is stored before the adapter gets the delivery: after a crash, a row that says sending
 * may have arrived. A delivery that may leave at once is inserted as claimed, which saves a commit.
 */
#ifndef ROAD_OUTBOX_DELIVERY_JOB_H
#define ROAD_OUTBOX_DELIVERY_JOB_H

#include <sys/queue.h>

#include "base/buf.h"
#include "base/map.h"
#include "bus/bus.h"
#include "net/loop.h"
#include "net/pace.h"
#include "road/numbers.h"
#include "road/outbox/delivery.h"
#include "road/road.h"

struct turn;
TAILQ_HEAD(turn_list, turn);

enum delivery_phase {
        JOB_QUEUED,
        JOB_CLAIMING, /* its claim is being stored */
        JOB_SENDING,  /* the adapter has it */
        JOB_SETTLING, /* its result is being stored */
};

TAILQ_HEAD(delivery_queue_list, delivery_queue);

struct delivery_job {
        struct delivery d; /* strings in the same block */
        enum delivery_phase phase;
        struct delivery_queue *queue;    /* NULL until enqueued */
        char *payload, *target, *thread; /* replacements that d points to */
        char *read_from;                 /* d points to it */
        char *request_key, *request_hash;
        bool journaled;    /* stored as sent */
        bool unconfirmed;  /* claimed by an earlier run: it may have arrived */
        bool rate_limited; /* in an earlier run */
        bool reconciling;
        bool counted;   /* in the adapter's count of unconfirmed sends */
        bool exclusive; /* in the adapter's map of channels */
        enum { TARGET_SENT, TARGET_NOT_SENT, TARGET_UNKNOWN } target_state; /* of `edits` */
        struct delivery_queue_list waiting; /* exclusive: other threads of its channel */
        int64_t edits; /* the delivery whose message it changes, or in whose thread it is; 0: none
                        */
        int64_t due_mono;     /* not before */
        int64_t yields_until; /* loop_now_ms; an edit goes after messages so long; 0: not set */
        int64_t delay_ms;     /* from creation to due */
        int64_t lease_ms;     /* of the last claim */
        int64_t expires_ms;   /* wall clock, as stored; 0: never */
        int64_t expires_boot; /* the same by a clock that cannot be set */
        struct timer *deadline;
        struct delivery_job *follower; /* enqueued when this one is removed */
        TAILQ_ENTRY(delivery_job) next;
};
TAILQ_HEAD(delivery_list, delivery_job);

/* Deliveries of one chat, sent in order, except that others pass one that keeps failing. */
struct delivery_queue {
        struct outbox_adapter *adapter;
        char *key; /* channel and thread */
        struct delivery_list jobs;
        struct delivery_job *active; /* on its way, one at a time; NULL: none */
        struct timer *timer;
        /* waits for fewer unconfirmed sends, or for a send in another thread of its channel */
        bool blocked;
        struct delivery_job *waits_for; /* NULL: none */
        TAILQ_ENTRY(delivery_queue) next_blocked;
};

struct outbox_adapter {
        struct road *road;
        char *name;
        struct pace *pace;
        struct map queues;
        struct turn_list held; /* turns waiting for fewer open deliveries */
        int64_t unconfirmed;   /* state unknown after a crash */
        struct delivery_queue_list blocked;
        /*
         * ADAPTER_READBACK: channel -> the one send that may be under way there, so that a message
         * found later can only be that one. Queues of its other threads wait.
         */
        struct map exclusive;
        struct adapter_stats stats;
};

struct outbox {
        struct map adapters;
        struct map jobs;  /* by number */
        struct map edits; /* the newest open edit of a message, by the number that sent it */
        size_t open;
        size_t sending;                        /* claiming or sending */
        STAILQ_HEAD(, submission) submissions; /* waiting for delivery numbers */
        size_t submission_count;
};

/* ---- delivery.c ---- */

/* Copies *d; sets created_ms and the default expiry. */
struct delivery_job *delivery_new(struct road *r, const struct delivery *d);
struct delivery_job *delivery_load(const struct delivery_row *row);
void delivery_free(struct delivery_job *j);
/* The only place that changes the phase. */
void delivery_enter(struct delivery_job *j, enum delivery_phase phase);
void delivery_expire_at(struct delivery_job *j, int64_t wall_ms); /* 0: never */
void delivery_set_payload(struct delivery_job *j, const char *payload);
/* Is it the final answer in place of a draft, which is sent anew when there is no draft? */
bool delivery_may_become_send(const struct delivery_job *j);
void delivery_become_send(struct delivery_job *j);
/* Does it go to a chat, so that `edits` is the message that begins its thread? */
bool delivery_has_place(enum delivery_kind kind);
void delivery_set_thread(struct delivery_job *j, const char *thread);
bool delivery_is_typing(const struct delivery_job *j);
/* Is repeating it harmless? */
bool delivery_is_repeatable(const struct delivery_job *j);
/* Queued and never attempted. */
bool delivery_is_unseen(const struct delivery_job *j);

/* In store functions: the row, and the event of a journaled delivery. */
int delivery_store(struct store_tx *tx, struct bus_batch *batch, const struct delivery_job *j,
                   struct error *err);
int delivery_append_event(struct store_tx *tx, struct bus_batch *batch,
                          const struct delivery_job *j, const char *type, int64_t time_ms,
                          const char *payload, struct error *err);
/* Appends the members of its payload to an object. */
void delivery_write_members(const struct delivery_job *j, struct buf *payload);
/* The payload of message.sent. */
void delivery_write_sent(const struct delivery_job *j, const char *platform_id, int64_t time_ms,
                         struct buf *payload);

/* ---- outbox.c ---- */

/* Takes j, whose row is stored. */
void outbox_enqueue(struct road *r, struct delivery_job *j);
/* For several in order; *answer (initially NULL) is the message that reactions follow. */
void outbox_enqueue_next(struct road *r, struct delivery_job *j, struct delivery_job **answer);
/* True: claimed in memory; store it, then call outbox_on_stored. */
bool outbox_claim_new(struct road *r, struct delivery_job *j);
/* Sends it; !stored: another process claimed it, or it has no row. */
void outbox_on_stored(struct road *r, struct delivery_job *j, bool stored);
/* Frees it; does not touch its row. */
void outbox_remove(struct road *r, struct delivery_job *j);
/* It is no longer an unconfirmed send. */
void outbox_confirm(struct road *r, struct delivery_job *j);
/* Lets the next send of its channel go. */
void outbox_leave_channel(struct delivery_job *j);
/* Asks the adapter whether it arrived. */
void outbox_reconcile(struct road *r, struct delivery_job *j);
/* The thread could not be created: send its turn's deliveries to the channel, as stored. */
void outbox_leave_thread(struct road *r, struct delivery_job *thread);
void outbox_count_journaled(struct road *r, const char *adapter, size_t count, int64_t time_ms);
/* Sends the first of the queue if allowed now. */
void outbox_pump(struct road *r, struct delivery_queue *q);
void outbox_pump_all(struct road *r);
void outbox_update_limits(struct road *r);
void outbox_sweep(struct road *r); /* frees idle rate budgets */
struct outbox_adapter *outbox_adapter(struct road *r, const char *name); /* created on demand */
bool outbox_has_room(const struct road *r, const char *adapter);
struct delivery_job *outbox_find(const struct road *r, int64_t delivery);
/* The queued edit of a delivery's message, which a newer one can replace; NULL: none. */
struct delivery_job *outbox_find_edit(const struct road *r, int64_t edits);
/* The same for a message of the chat of d that is known by the platform's id. */
struct delivery_job *outbox_find_edit_of(struct road *r, const struct delivery *d,
                                         const char *message_id);
/* It edits no message any more. */
void outbox_forget_edit(struct road *r, const struct delivery_job *j);
/* Does a message wait that belongs into the thread of this one? */
bool outbox_has_details(const struct delivery_job *j);
void outbox_release(struct road *r);

/* ---- outbox_submit.c ---- */

/* Stores submissions that waited for delivery numbers. */
void outbox_submit_resume(struct road *r);
void outbox_submit_refuse(struct road *r, const struct error *err);

/* ---- delivery_result.c ---- */

/* Ends it without an attempt, as DELIVERY_EXPIRED or DELIVERY_UNKNOWN. */
void delivery_result_give_up(struct road *r, struct delivery_job *j, enum delivery_state state,
                             const char *why);
/* Requeues it as if never claimed. */
void delivery_result_unclaim(struct road *r, struct delivery_job *j);

/* ---- unsure.c: messages that may have arrived ---- */

/* The payload with which it is sent again, yours; NULL: it is not. */
char *unsure_repeats(const struct road *r, const struct delivery_job *j);
/* Asks the admins whether to send it again, if the adapter's setting wants it. */
void unsure_ask(struct road *r, const struct delivery_job *j, const char *why);

/* ---- deferred_reply.c ---- */

/* Is there a placeholder to remove? */
bool deferred_reply_is_open(const struct incoming *in);
/* Removes the placeholder; turn may be NULL. Leaves the delivery unnumbered. */
struct delivery_job *deferred_reply_cancel(struct road *r, const struct incoming *in,
                                           const struct turn *turn);

#endif
