/*
 * event: what a platform hands over, in the one shape all platforms share.
 *
 * Adapters fill a struct incoming; the inbox turns it into a journal event whose payload is the
 * unified message (id, channelId, sender, text, attachments, ...). Both directions are here, so
 * that a restart reads back exactly what was handed over.
 */
#ifndef ROAD_INCOMING_H
#define ROAD_INCOMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "bus/bus.h"
#include "rows/journal_row.h"

#define EVENT_MESSAGE_RECEIVED  "message.received"
#define EVENT_MESSAGE_SENT      "message.sent"
#define EVENT_MESSAGE_FAILED    "message.failed"
#define EVENT_MESSAGE_EDITED    "message.edited"
#define EVENT_MESSAGE_DELETED   "message.deleted"
#define EVENT_MESSAGE_PART      "message.part" /* told in the event of another message */
#define EVENT_REACTION_RECEIVED "reaction.received"
#define EVENT_REACTION_REMOVED  "reaction.removed"
#define EVENT_TURN_STARTED      "turn.started"
#define EVENT_DELIVERY_SENT     "delivery.sent"
#define EVENT_DELIVERY_FAILED   "delivery.failed"
#define EVENT_DELIVERY_RETRYING "delivery.retrying"

enum chat_kind { CHAT_DM, CHAT_GROUP, CHAT_BROADCAST };

struct attachment {
        /* "image", "audio", "voice", "video", "document", "sticker", "location", "contact" */
        const char *kind;
        const char *name;
        const char *mime;
        const char *url;  /* where the platform has it; may need credentials */
        const char *path; /* where we have it, relative to the workspace; NULL until downloaded */
        int64_t size;     /* 0 when unknown */
};

/* A message of the platform that is told in the event of another one, as those of an album are. */
struct incoming_part {
        const char *key, *id; /* as of an event of its own */
};

/* All strings are borrowed by whoever receives the struct; NULL means the platform does not say. */
struct incoming {
        const char *type;    /* an inbound EVENT_*; NULL: message.received */
        const char *adapter; /* name of the configured connection */
        const char *platform;
        const char *key; /* unique per adapter for this happening; required */
        /*
         * the platform's message id; of an edit, a deletion or a reaction: of the message it is
         * about
         */
        const char *id;
        const char *channel; /* required */
        const char *thread;
        enum chat_kind chat;
        const char *chat_name;
        const char *guild;
        const char *sender_id;
        const char *sender_username;
        const char *sender_name;
        bool sender_is_bot;
        bool is_own;          /* the bot's own message, handed back by the platform */
        const char *text;     /* as an agent should read it: mentions of the bot removed */
        const char *raw_text; /* as it was written; NULL: same as text */
        bool is_mention;      /* addresses the bot */
        bool is_reply;        /* answers one of the bot's messages */
        const char *reply_to; /* platform id of the message it answers */
        const char *emoji;    /* reactions; id is the message they are on */
        const char *emoji_name;
        bool emoji_custom;
        int64_t time_ms;   /* when it happened, by the platform's clock; 0: now */
        const char *trace; /* continue this trace; NULL: a new one */
        int hops;          /* how many bots it has passed through */
        /* said on purpose and whole, by a command or a form: no burst is waited for */
        bool is_command;
        /*
         * the platform shows that an answer is coming, in the place it will take: a
         * "cancel_deferred" ends that without one
         */
        bool is_awaited;
        /* a part of a message in several parts, which arrive one by one: one turn reads them all */
        bool more_follows;
        const struct attachment *attachments;
        size_t attachment_count;
        /*
         * What else is told here, and is known from now on as the event itself is. Where one of all
         * these keys is known already nothing is stored, and the receipt says INBOX_DUPLICATE: each
         * part must then be handed over by itself, for some may be new.
         */
        const struct incoming_part *parts;
        size_t part_count;
        const char *metadata; /* JSON object text with what only this platform knows */
        /* asked for by software that has shown a key, where the adapter trusts it */
        const char *agent;
        /* who the sender is known to be, for whoever decides; 0: not known; never stored */
        int64_t person;
        int64_t event; /* journal sequence number, once stored */
};

/* The payload as JSON object text, appended to out. */
void incoming_payload(const struct incoming *in, struct buf *out);
/*
 * Back from the journal; yours to incoming_free. NULL with an error when the payload makes no
 * sense.
 */
struct incoming *incoming_parse(const struct bus_event *e, struct error *err);
struct incoming *incoming_from_row(const struct journal_row *row, struct error *err);
/* A deep copy; valid UTF-8 whatever the original was. */
struct incoming *incoming_dup(const struct incoming *in);
/* The message as it reads after an edit, as a copy. */
struct incoming *incoming_edited(const struct incoming *said, const struct incoming *edit);
void incoming_free(struct incoming *in);
/* Who wrote it, as people know him. */
const char *incoming_sender(const struct incoming *in);
/* Is this event type one that dispatch must look at? */
bool event_is_inbound(const char *type);

#endif
