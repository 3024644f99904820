/*
 * delivery_row: one outbound action and its attempts.
 */
#ifndef ROWS_DELIVERY_ROW_H
#define ROWS_DELIVERY_ROW_H

#include "rows/rows.h"

enum delivery_kind {
        DELIVER_SEND,
        DELIVER_EDIT,
        DELIVER_DELETE,
        DELIVER_REACT,
        DELIVER_UNREACT,
        DELIVER_THREAD, /* starts a thread, at a message or by its name */
        DELIVER_TYPE,   /* typing indicator */
        DELIVER_UPLOAD,
        DELIVER_CANCEL_DEFERRED, /* removes the placeholder of an unanswered command */
        DELIVER_CALENDAR,        /* a calendar event, see road/calendar_sync.h */
        DELIVER_CHANGE_THREAD,   /* renames, closes or reopens the thread that it is in */
};

enum delivery_state {
        DELIVERY_QUEUED,
        DELIVERY_SENDING, /* claimed; may have arrived after a crash */
        DELIVERY_SENT,
        DELIVERY_FAILED,
        DELIVERY_UNKNOWN, /* may have arrived; the platform cannot be asked */
        DELIVERY_EXPIRED,
        DELIVERY_SUPERSEDED, /* replaced by a newer one before it was sent */
};

const char *delivery_kind_name(enum delivery_kind kind);
const char *delivery_state_name(enum delivery_state state);
bool delivery_kind_parse(const char *name, enum delivery_kind *out);
bool delivery_state_parse(const char *name, enum delivery_state *out);

struct delivery_row {
        int64_t id;
        int64_t turn;         /* 0: none */
        int64_t conversation; /* read from the turn; 0: none */
        const char *adapter, *channel, *thread;
        enum delivery_kind kind;
        int class;           /* enum pace_class */
        const char *payload; /* JSON object */
        enum delivery_state state;
        int64_t attempt, fence;
        const char *owner; /* the process that claimed it */
        /* sending: end of the claim; queued: time of the last attempt, 0: none */
        int64_t lease_ms;
        int64_t due_ms;
        int64_t expires_ms; /* 0: never */
        int64_t created_ms;
        int64_t ended_ms; /* 0: not yet */
        const char *platform_id, *error_kind, *error, *trace;
        const char *request_key;  /* unique; NULL: none */
        const char *request_hash; /* distinguishes requests with the same key */
        int64_t edits;            /* the delivery whose message it changes; of what is written:
                                   * the one in whose message's thread it is; 0: none */
        int64_t reply_of;         /* the turn it answers from outside; 0: none; not inserted */
        const char *read_from;    /* where reading back begins; NULL: nowhere */
        int64_t read_seq;         /* the end of the journal then; 0: not known */
        bool unsampled;           /* who began the trace does not record it */
};

int delivery_row_insert(struct store_tx *tx, const struct delivery_row *row, struct error *err);
/* Writes attempt, fence, owner, lease_ms, kind, edits, read_from and read_seq. 1; 0: stale fence;
 * -1. */
int delivery_row_claim(struct store_tx *tx, const struct delivery_row *row, int64_t old_fence,
                       struct error *err);
/* Writes state, attempt, times, platform_id, error, kind, edits. 1; 0: stale fence; -1. */
int delivery_row_settle(struct store_tx *tx, const struct delivery_row *row, struct error *err);
int delivery_row_set_payload(struct store_tx *tx, int64_t id, const char *payload,
                             struct error *err);
/* Unless it was claimed again. */
int delivery_row_set_read_from(struct store_tx *tx, int64_t id, int64_t fence, const char *text,
                               struct error *err);
/* Only while queued. 1; 0: not queued; -1. */
int delivery_row_replace_payload(struct store_tx *tx, int64_t id, const char *payload,
                                 struct error *err);
/* Only while queued. */
int delivery_row_supersede(struct store_tx *tx, int64_t id, int64_t now_ms, struct error *err);
/* A failed one was sent elsewhere: it is no dead letter any more. */
int delivery_row_move_on(struct store_tx *tx, int64_t id, struct error *err);
/* Moves the turn's queued deliveries from the thread to the channel. */
int delivery_row_leave_thread(struct store_tx *tx, int64_t turn, const char *thread,
                              struct error *err);
/* Sets the request key unless another delivery has it. */
int delivery_row_set_request_key(struct store_tx *tx, int64_t id, const char *key,
                                 struct error *err);
/* Marks a message of a late reply to this turn. */
int delivery_row_set_reply_of(struct store_tx *tx, int64_t id, int64_t turn, struct error *err);
/* late: number of late replies to the turn; own: does it have its own answer? */
int delivery_row_count_replies(struct store_tx *tx, int64_t turn, int64_t *late, bool *own,
                               struct error *err);
/* Requeues a failed or expired one, an unknown one with force. As _get; 0: other states. */
int delivery_row_revive(struct store_tx *tx, int64_t id, bool force, int64_t now_ms,
                        struct delivery_row **out, struct error *err);

/* Ends the doubt about an unknown one: it is failed, with this reason. 1; 0: other states; -1. */
int delivery_row_leave(struct store_tx *tx, int64_t id, const char *why, struct error *err);
int delivery_row_get(struct store_tx *tx, int64_t id, struct delivery_row **out, struct error *err);
int delivery_row_get_request(struct store_tx *tx, const char *request_key,
                             struct delivery_row **out, struct error *err);
/* A delivery that another one edits, or whose message begins the thread of another one. */
struct delivery_target {
        enum delivery_kind kind;
        enum delivery_state state;
        char *message; /* the platform's id; NULL: not sent */
        char *thread;  /* where the message is; NULL: in the channel, or not known yet */
};
/* Release *out, which is empty unless it returns 1. */
int delivery_row_get_target(struct store_tx *tx, int64_t id, struct delivery_target *out,
                            struct error *err);
void delivery_target_release(struct delivery_target *t);
/* The turn's failed, unknown or expired messages of this class. */
int delivery_row_count_lost(struct store_tx *tx, int64_t turn, int class, int64_t *out,
                            struct error *err);
/* The first with this trace, among the newest. 1, 0 or -1. */
int delivery_row_find_trace(struct store_tx *tx, const char *trace, int64_t newest, int64_t *id,
                            struct error *err);
/* Those with this trace that neither a turn nor a late reply made, in one chat, by id. */
struct store_stmt *delivery_row_list_notices(struct store_tx *tx, const char *trace,
                                             const char *adapter, const char *channel,
                                             int64_t newest);
/* A message by the platform's id. */
struct delivery_message {
        const char *adapter, *chat; /* chat: channel or thread; NULL: any */
        const char *id;
};
/* Deliveries that sent it, one per chat, newest first. How many, at most `max`, or -1. */
int delivery_row_find_message(struct store_tx *tx, const struct delivery_message *m, int64_t newest,
                              int64_t *ids, int max, struct error *err);

/* Queued and sending ones; late replies to a turn; those of a turn; by id. */
struct store_stmt *delivery_row_list_open(struct store_tx *tx);
struct store_stmt *delivery_row_list_replies(struct store_tx *tx, int64_t turn);
struct store_stmt *delivery_row_list_turn(struct store_tx *tx, int64_t turn);
/* NULL, 0 and false do not filter. */
struct delivery_filter {
        const enum delivery_state *state;
        bool dead; /* failed or unknown */
        int64_t turn;
        const char *adapter, *channel;
        const char *adapters; /* ",api,tg," */
        int64_t before;       /* deliveries below this number */
        int64_t limit;
};
/* Newest first. */
struct store_stmt *delivery_row_list(struct store_tx *tx, const struct delivery_filter *f);
int delivery_row_next(struct store_stmt *s, struct delivery_row *row, struct error *err);

/* A delivery that was claimed: what is known of its message. */
struct sent_row {
        int64_t id;
        const char *adapter, *channel;
        const char *platform_id; /* NULL: not known, or not sent */
        int64_t ended_ms;        /* 0: it has not */
        bool message;            /* it sends a message or a file */
        bool buttons;
};
/* The newest of all adapters, newest first. */
struct store_stmt *delivery_row_list_sent(struct store_tx *tx, int64_t before, int64_t newest);
int delivery_row_next_sent(struct store_stmt *s, struct sent_row *row, struct error *err);

struct attempt_row {
        int64_t delivery, attempt;
        int64_t time_ms;
        const char *outcome; /* "retry", "limited", "found", or the delivery state it led to */
        const char *detail;
};
int delivery_row_put_attempt(struct store_tx *tx, const struct attempt_row *row, struct error *err);
struct store_stmt *delivery_row_list_attempts(struct store_tx *tx, int64_t delivery);
int delivery_row_next_attempt(struct store_stmt *s, struct attempt_row *row, struct error *err);

#endif
