/*
 * incoming: an event as an adapter hands it over, the same for all platforms, and its journal
 * payload.
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
#define EVENT_MESSAGE_PART      "message.part" /* reported in another message's event */
#define EVENT_REACTION_RECEIVED "reaction.received"
#define EVENT_REACTION_REMOVED  "reaction.removed"
#define EVENT_SCHEDULE_FIRED    "schedule.fired" /* see schedule_fired_receive */
#define EVENT_TURN_STARTED      "turn.started"
#define EVENT_DELIVERY_SENT     "delivery.sent"
#define EVENT_DELIVERY_FAILED   "delivery.failed"
#define EVENT_DELIVERY_RETRYING "delivery.retrying"
#define EVENT_CALENDAR          "calendar.event" /* a change there, see calendar_sync.h */

enum chat_kind { CHAT_DM, CHAT_GROUP, CHAT_BROADCAST };

/* A source: software sent the file along, and it is saved already. A number follows. */
#define ATTACHMENT_SAVED "saved:"

struct attachment {
        /* "image", "audio", "voice", "video", "document", "sticker", "location", "contact" */
        const char *kind;
        const char *name;
        const char *mime;
        const char *url; /* the platform's; may need credentials */
        /* what its adapter fetches it by, or ATTACHMENT_SAVED; NULL: there is nothing to fetch */
        const char *source;
        const char *path;  /* in the workspace; set for the turn that answers the message */
        const char *error; /* why there is no path; set like it */
        int64_t size;      /* 0: unknown */
};

/* A message reported in another one's event, as in an album. */
struct incoming_part {
        const char *key, *id;
};

/* Strings are borrowed; NULL: the platform does not say. */
struct incoming {
        const char *type; /* an inbound EVENT_*; NULL: message.received */
        const char *adapter;
        const char *platform;
        const char *key;     /* dedup key, unique per adapter; required */
        const char *id;      /* of the message, or the one edited, deleted or reacted to */
        const char *channel; /* required */
        const char *thread;
        enum chat_kind chat;
        const char *chat_name;
        const char *guild;
        const char *sender_id;
        const char *sender_username;
        const char *sender_name;
        bool sender_is_bot;
        bool is_own;          /* written by the bot itself */
        const char *text;     /* without mentions of the bot */
        const char *raw_text; /* as written; NULL: same as text */
        bool is_mention;      /* of the bot */
        bool is_reply;        /* to the bot */
        bool is_for_other;    /* a command that names another bot */
        const char *reply_to; /* id of the message it replies to */
        const char *emoji;    /* of a reaction */
        const char *emoji_name;
        bool emoji_custom;
        int64_t time_ms;         /* the platform's; 0: now */
        const char *trace;       /* continue this trace; NULL: that of traceparent, or a new one */
        const char *traceparent; /* W3C, as received; ignored if malformed */
        int hops;                /* bots it has passed through */
        bool is_command;         /* complete in itself: no debounce */
        bool is_awaited;         /* the platform shows a placeholder until answered or cancelled */
        bool more_follows;       /* further parts follow as separate events for the same turn */
        const struct attachment *attachments;
        size_t attachment_count;
        /*
         * Stored under their own keys. If any key is known, nothing is stored (INBOX_DUPLICATE):
         * then submit each part as an event, since some may be new.
         */
        const struct incoming_part *parts;
        size_t part_count;
        const char *metadata; /* JSON object, platform-specific */
        const char *agent;    /* requested by trusted software */
        const char *caller;   /* whose key it came with: INCOMING_OPERATOR or "key-3"; else NULL */
        int64_t person;       /* set by dispatch, never stored; 0: unknown */
        int64_t event;        /* journal number once stored */
};

#define INCOMING_OPERATOR "operator"

/* Appends a JSON object. */
void incoming_payload(const struct incoming *in, struct buf *out);
/* NULL with an error: damaged payload. */
struct incoming *incoming_parse(const struct bus_event *e, struct error *err);
struct incoming *incoming_from_row(const struct journal_row *row, struct error *err);
/* Deep copy, converted to valid UTF-8. */
struct incoming *incoming_dup(const struct incoming *in);
/* A copy of the message with the edit applied. */
struct incoming *incoming_edited(const struct incoming *said, const struct incoming *edit);
void incoming_free(struct incoming *in);
const char *incoming_sender(const struct incoming *in);
/* Do events of this type need a decision? */
bool incoming_is_type(const char *type);
/* Is it the schedule that speaks? */
bool incoming_is_scheduled(const struct incoming *in);
/*
 * Did the operator write it at a terminal? On adapters that trust their clients anyone who holds a
 * key says who writes, so nobody else is an admin there.
 */
bool incoming_is_operators(const struct incoming *in);
/* The schedule speaks for a chat: sender_id stands for no person. */
#define SCHEDULE_SENDER "schedule"
bool incoming_has_no_person(const struct incoming *in);

#endif
