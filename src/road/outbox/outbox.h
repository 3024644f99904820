/*
 * outbox: deliveries submitted from outside a turn.
 */
#ifndef ROAD_OUTBOX_H
#define ROAD_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "road/outbox/delivery.h"
#include "store/store.h"

enum thread_state { THREAD_AS_IT_IS, THREAD_CLOSED, THREAD_OPEN };

struct outgoing {
        const char *adapter, *channel, *thread;
        enum delivery_kind kind;
        const char *text;       /* Markdown, rendered and split; caption of an upload */
        const char *reply_to;   /* the platform's id */
        const char *message_id; /* to edit, delete or react to */
        /*
         * Instead of message_id and of thread, for messages that may not be sent yet: the number of
         * a delivery of the same channel. It waits for that one; if that never is sent, it fails.
         */
        int64_t edits;        /* its message is edited, deleted, reacted to, or begins a thread */
        int64_t in_thread_of; /* the thread that it began, or that its message begins, or that the
                               * message is in; where there are no threads, an answer to it */
        const char *emoji;
        bool broadcast;   /* a reply in a thread: shown in its channel, too, if that is possible */
        bool silent;      /* a new message makes no sound, where the platform knows that */
        const char *card; /* JSON of card.h, below the text; of a message or an edit */
        const char *buttons;  /* JSON: rows of {"text", "data" or "url"}, under the last part */
        bool had_buttons;     /* the message to edit was sent with buttons, so it may keep some */
        const char *calendar; /* DELIVER_CALENDAR: JSON object, see road/calendar_sync.h */
        struct {
                const char *path; /* inside the workspace */
                const char *name, *mime, *as;
        } file;
        const char *thread_name;        /* DELIVER_THREAD; DELIVER_CHANGE_THREAD: NULL keeps it */
        enum thread_state thread_state; /* DELIVER_CHANGE_THREAD */
        const char *trace;              /* NULL: a new one */
        bool unsampled;                 /* see struct delivery */
        const char *author;      /* a human speaking as the bot: added to transcripts; NULL: none */
        const char *request_key; /* the same key gives the same delivery */
        const char *request_hash; /* another hash with the same key: ERR_CONFLICT; may be NULL */
        int64_t reply_of;         /* late reply to this turn; 0: none */
        enum pace_class class;
        int64_t expires_ms; /* wall clock; 0: the configured expiry */
        /*
         * Written in the same transaction, which may run more than once; delivery: the number that
         * the receipt will have. Not called for a known request key. NULL: nothing.
         */
        int (*write)(struct store_tx *tx, void *arg, int64_t delivery, struct error *err);
        void *write_arg; /* lives until ack */
};

struct outbox_receipt {
        int64_t delivery; /* the first */
        unsigned count;
        bool duplicate; /* known request key */
        char trace[33];
        struct error error; /* ERR_NONE: stored */
};
typedef void outbox_ack_fn(void *arg, const struct outbox_receipt *receipt);

/*
 * Stores the deliveries, then calls ack; sends later. Of the edits of a message that wait, only the
 * newest is sent: the receipt then has the number of the one that it replaced.
 */
void outbox_submit(struct road *r, const struct outgoing *out, outbox_ack_fn *ack, void *arg);
/* Requeues a dead delivery; an unknown one only with force, because it may have arrived. */
void outbox_retry(struct road *r, int64_t delivery, bool force, store_done_fn *done, void *arg);
/*
 * Gives up a message that waits, so that it can go elsewhere: message.failed with the state expired
 * follows. False: it is under way, may have arrived, or has ended.
 */
bool outbox_withdraw(struct road *r, int64_t delivery, const char *why);
/* Called when an adapter becomes ready or its limits change. */
void outbox_wake(struct road *r, const char *adapter);

#endif
