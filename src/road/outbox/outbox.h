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

struct outgoing {
        const char *adapter, *channel, *thread;
        enum delivery_kind kind;
        const char *text;       /* Markdown, rendered and split; caption of an upload */
        const char *reply_to;   /* the platform's id */
        const char *message_id; /* to edit, delete or react to */
        const char *emoji;
        bool broadcast; /* a reply in a thread: shown in its channel, too, if that is possible */
        const char *buttons;  /* JSON: rows of {"text", "data" or "url"}, under the last part */
        bool had_buttons;     /* the message to edit was sent with buttons, so it may keep some */
        const char *calendar; /* DELIVER_CALENDAR: JSON object, see road/calendar_sync.h */
        struct {
                const char *path; /* inside the workspace */
                const char *name, *mime, *as;
        } file;
        const char *trace;       /* NULL: a new one */
        bool unsampled;          /* see struct delivery */
        const char *author;      /* a human speaking as the bot: added to transcripts; NULL: none */
        const char *request_key; /* the same key gives the same delivery */
        const char *request_hash; /* another hash with the same key: ERR_CONFLICT; may be NULL */
        int64_t reply_of;         /* late reply to this turn; 0: none */
        enum pace_class class;
        int64_t expires_ms; /* wall clock; 0: the configured expiry */
};

struct outbox_receipt {
        int64_t delivery; /* the first */
        unsigned count;
        bool duplicate; /* known request key */
        char trace[33];
        struct error error; /* ERR_NONE: stored */
};
typedef void outbox_ack_fn(void *arg, const struct outbox_receipt *receipt);

/* Stores the deliveries, then calls ack; sends later. */
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
