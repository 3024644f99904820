/*
 * delivery: one outbound action, and the road's contract with platforms.
 */
#ifndef ROAD_DELIVERY_H
#define ROAD_DELIVERY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/settings.h"
#include "net/pace.h"
#include "road/incoming.h"
#include "road/outbox/card.h"
#include "rows/delivery_row.h"

struct adapters;
struct road;

enum adapter_ability {
        ADAPTER_JOURNALED = 1 << 0,  /* committing is sending: clients read the journal */
        ADAPTER_IDEMPOTENT = 1 << 1, /* a repeated send with the same delivery id is harmless */
        ADAPTER_READBACK = 1 << 2,   /* can reconcile unconfirmed sends */
        ADAPTER_EDITS = 1 << 3,
        ADAPTER_TYPING = 1 << 4,
        ADAPTER_THREADS = 1 << 5,
        ADAPTER_REACTIONS = 1 << 6,
        ADAPTER_FILES = 1 << 7,
        ADAPTER_STREAMS = 1 << 8, /* shows drafts; needs ADAPTER_EDITS */
        ADAPTER_CHANNEL_HISTORY = 1 << 9,
        ADAPTER_DIRECT = 1 << 10, /* a person's id also names their direct chat */
        ADAPTER_BUTTONS = 1 << 11,
        /* "ask:/refuse apr-1" as a button's data: a form asks for the text that follows it */
        ADAPTER_FORMS = 1 << 12,
        ADAPTER_APPENDS = 1 << 13, /* streams: drafts say their Markdown, to append to, and whom */
        ADAPTER_DETAILS = 1 << 14, /* the steps of a turn are shown in the thread of its draft */
        ADAPTER_EPHEMERAL = 1 << 15,    /* shows a notice to one person of a chat: "onlyFor" */
        ADAPTER_CALENDAR = 1 << 16,     /* shows calendar events, see road/calendar_sync.h */
        ADAPTER_OPENS_DIRECT = 1 << 17, /* "user:ID" names the direct chat of a person */
        ADAPTER_CARDS = 1 << 18,        /* shows cards, see card.h; else they become text */
};

struct delivery {
        int64_t id; /* shown as "dlv-N" */
        int64_t fence;
        int attempt;
        int64_t turn;         /* 0: none */
        int64_t conversation; /* of the turn */
        const char *adapter, *channel, *thread;
        enum delivery_kind kind;
        enum pace_class class;
        const char *payload; /* {"text": ..., "card": ..., "replyTo": ..., "messageId": ...} */
        /*
         * The platform's id of a message that another delivery sent. This one changes it, or is in
         * its thread, and answers it where there are no threads. NULL: none.
         */
        const char *target;
        const char *trace;
        bool unsampled; /* who began the trace does not record it */
        int64_t created_ms;
        /* what road_platforms.read_from said before the send; NULL: nothing */
        const char *read_from;
        int64_t read_seq;           /* the end of the journal then; 0: not known */
        int64_t reconcile_until_ms; /* loop_now_ms at which reconcile must have ended */
};

enum send_outcome {
        SEND_DONE,
        SEND_RETRY,    /* did not arrive; retry */
        SEND_REJECTED, /* did not arrive and never will */
        SEND_UNSURE,   /* may have arrived */
};

struct send_result {
        enum send_outcome outcome;
        const char *platform_id;
        /* ERR_LIMIT with SEND_RETRY: the platform's rate limit; not counted as an attempt */
        enum error_kind kind;
        const char *why;
        int64_t retry_after_ms; /* -1: not given */
        bool freeze_adapter; /* the rate limit holds for the whole adapter, not only this channel */
};

/*
 * Called by adapters for each delivery, after the send slot has returned; repeats are harmless. r
 * NULL: the road is closing, and the next run resumes the delivery. False: nobody waits for it.
 */
bool delivery_result(struct road *r, int64_t delivery, int64_t fence,
                     const struct send_result *result);

/* What becomes of a message that may have arrived and cannot be found. */
enum unsure_policy {
        UNSURE_REPORT, /* a dead letter */
        UNSURE_REPEAT, /* sent again once, with a mark: "repeated" in its payload */
        UNSURE_ASK,    /* a dead letter, and admins are asked whether to send it again */
};

/* ---- for reconcile ---- */

/* A stored message of an adapter. */
struct message_record {
        const char *channel;
        const char *id;  /* own: the platform's id; else the dedup key */
        bool own, plain; /* plain: own, without buttons */
};

struct message_records {
        const struct message_record *items; /* newest deliveries first, then newest events first */
        size_t count;
        /* another message of the channel may be there, and nobody knows its id */
        bool ambiguous;
        bool whole; /* there are no older deliveries */
};
/* records NULL: the store failed. */
typedef void message_records_fn(void *arg, const struct message_records *records);

/*
 * Reads messages of the delivery's adapter: those since it was sent, and its newest sends. Calls
 * done once, later.
 */
void message_records_read(struct road *r, const struct delivery *d, message_records_fn *done,
                          void *arg);
/* Stores what was found out so far: read_from of the next reconcile or send, after a crash. */
void delivery_set_read_from(struct road *r, int64_t delivery, int64_t fence, const char *text);
/*
 * The same for a send of several steps, which goes on once it is stored. True: done is called once,
 * later; stored is false only when the road closes. False: the delivery is not under way.
 */
typedef void read_from_stored_fn(void *arg, bool stored);
bool delivery_store_read_from(struct road *r, int64_t delivery, int64_t fence, const char *text,
                              read_from_stored_fn *done, void *arg);
/*
 * 0: the adapter may ask the platform about this channel now, which is counted; > 0: ms to wait.
 * Answers to people go first.
 */
int64_t delivery_take_probe(struct road *r, const char *adapter, const char *channel);

struct rendered_part {
        char *text;
        char *plain; /* fallback if the platform rejects the markup; NULL: same as text */
};
struct rendered {
        struct rendered_part *parts;
        size_t count;
};
void rendered_release(struct rendered *r);

struct channel_message {
        const char *id;
        const char *sender_id;
        const char *sender_name; /* display name */
        bool is_own, is_bot;
        const char *text;
        int64_t time_ms;
};
/* Oldest first, borrowed. */
typedef void channel_history_fn(void *arg, const struct channel_message *messages, size_t count,
                                const struct error *err);

/* The files of a message, which stay in the workspace while they are held. */
struct held_files {
        struct attachment *items; /* of the message, in order; path or error are set once ready */
        size_t count;
        bool ready;
};
typedef void files_ready_fn(void *arg);

/* A function of a platform that answers at once instead of through the outbox. */
struct road_tool {
        const char *name;       /* "discord_read" */
        const char *help;       /* one sentence for a model */
        const char *parameters; /* JSON Schema of the arguments, an object */
        const char *channel;    /* the argument that names a chat; NULL: there is none */
        bool writes;            /* changes what people see */
        bool everywhere;        /* reaches beyond one chat */
};
struct tool_request {
        const json_t *arguments; /* an object, or NULL */
        /* as in struct outgoing: the same key gives the same delivery; NULL: none */
        const char *request_key, *request_hash;
};
/* result is JSON, or NULL. */
typedef void platform_tool_fn(void *arg, const char *result, const struct error *err);

/* Where the messages about one matter can stand by themselves. */
enum chat_threads {
        CHAT_NO_THREADS,         /* only as answers to one another */
        CHAT_THREADS_AT_MESSAGE, /* DELIVER_THREAD needs a message, where it begins */
        CHAT_THREADS_BY_NAME,    /* DELIVER_THREAD needs a name alone */
        CHAT_THREADS_VARY,       /* of a platform: its chats differ */
};
typedef void chat_threads_fn(void *arg, enum chat_threads threads, const struct error *err);

struct road_platforms {
        struct adapters *adapters;
        unsigned (*abilities)(struct adapters *as, const char *adapter);
        bool (*ready)(struct adapters *as, const char *adapter);
        void (*limits)(struct adapters *as, const char *adapter, struct pace_limits *out);
        bool (*channel_is_group)(struct adapters *as, const char *adapter, const char *channel);
        /* caption: of a file, whose first part may be empty */
        int (*render)(struct adapters *as, const char *adapter, const char *text, bool caption,
                      struct rendered *out, struct error *err);
        /* Without ADAPTER_CARDS: the text (NULL: none) with the card below it. */
        int (*render_card)(struct adapters *as, const char *adapter, const char *text,
                           const struct card *card, struct rendered *out, struct error *err);
        void (*send)(struct adapters *as, const struct delivery *d); /* delivery_result follows */
        /*
         * ADAPTER_READBACK: did it arrive? delivery_result follows: SEND_DONE, SEND_RETRY if it
         * certainly did not, SEND_UNSURE; with ERR_CANCELLED it is asked again, after
         * retry_after_ms or when the adapter is back.
         */
        void (*reconcile)(struct adapters *as, const struct delivery *d);
        /* *admins: whom to ask, ids of direct chats, borrowed. May be NULL: UNSURE_REPORT. */
        enum unsure_policy (*when_unsure)(struct adapters *as, const char *adapter,
                                          const struct setting_list **admins);
        /*
         * Where reading back would begin, stored before the send; "": nowhere. May be NULL.
         * ADAPTER_IDEMPOTENT: asked before every attempt, d->read_from is that of the one before.
         */
        void (*read_from)(struct adapters *as, const struct delivery *d, char *out, size_t size);
        /* Calls done once, after this has returned. May be NULL. */
        void (*channel_history)(struct adapters *as, const char *adapter, const char *channel,
                                const char *thread, unsigned limit, channel_history_fn *done,
                                void *arg);
        /* The same for one message: one, or none with an error. May be NULL. */
        void (*message)(struct adapters *as, const char *adapter, const char *channel,
                        const char *thread, const char *id, channel_history_fn *done, void *arg);
        /*
         * Fetches what is not there yet; `done` follows, unless it is ready already. NULL: the
         * message has no files to fetch. Release it. May be NULL.
         */
        struct held_files *(*hold_files)(struct adapters *as, const struct incoming *in,
                                         files_ready_fn *done, void *arg);
        /* Ends the fetches under way with this error: it is ready, and no call follows. */
        void (*stop_files)(struct held_files *held, const char *why);
        void (*release_files)(struct held_files *held);
        /* Id of a thread started at this message, borrowed; NULL: impossible. May be NULL. */
        const char *(*thread_at)(struct adapters *as, const struct incoming *in);
        /* The i-th tool of the adapter; NULL: there are no more. May be NULL. */
        const struct road_tool *(*tool_at)(struct adapters *as, const char *adapter, size_t i);
        /* Calls done once, later. */
        void (*call_tool)(struct adapters *as, const char *adapter, const char *tool,
                          const struct tool_request *q, platform_tool_fn *done, void *arg);
        /* Bytes of a file that it sends. May be NULL. */
        int64_t (*upload_max)(struct adapters *as, const char *adapter);
        /* Calls done once, later. As road_ask_threads. */
        void (*threads)(struct adapters *as, const char *adapter, const char *channel,
                        chat_threads_fn *done, void *arg);
        /* Milliseconds between edits of a draft there; 0: the default. May be NULL. */
        int64_t (*draft_ms)(struct adapters *as, const char *adapter, const char *channel,
                            const char *thread);
        /* How commands begin there: "/dragoman " before "stop"; NULL: "/". May be NULL. */
        const char *(*command_prefix)(struct adapters *as, const char *adapter);
        /* What makes a link of a user's id there; NULL: `@id` is a mention. May be NULL. */
        const char *(*user_link)(struct adapters *as, const char *adapter);
        /* With ADAPTER_TYPING: does it show there? May be NULL: everywhere. */
        bool (*shows_typing)(struct adapters *as, const char *adapter, const char *channel,
                             const char *thread);
};

#endif
