/*
 * sl_send: one delivery on its way to Slack. sl_payload.c makes the call, sl_send.c sends it,
 * sl_upload.c does so with a file in three steps, sl_outcome.c reads the answer.
 */
#ifndef PLATFORM_SLACK_SL_SEND_H
#define PLATFORM_SLACK_SL_SEND_H

#include <sys/queue.h>

#include "base/map.h"
#include "platform/slack/sl_ts.h"
#include "platform/slack/slack.h"

#define SL_METADATA  "dragoman_delivery" /* event_type of our messages */

#define SL_FILE_SIZE 40 /* of a file's id, with NUL */

struct sl_send;
struct sl_upload;

struct sl_send_kind {
        bool creates; /* a message: repeating it needs care */
        enum sl_priority priority;
        int64_t wait_ms;
        /* Fills method and args, without the channel. */
        int (*make)(struct sl_send *s, const struct delivery *d, struct error *err);
};

struct sl_send {
        struct adapter *adapter;
        struct slack *sl;
        const struct sl_send_kind *kind;
        enum delivery_kind delivery_kind;
        int64_t delivery, fence, created_ms;
        int64_t turn; /* 0: none */
        enum pace_class class;
        char *channel;      /* as the delivery names it */
        char *conversation; /* its id; NULL: not known yet */
        char *thread;
        char *message; /* ts of the message to change; NULL: none */
        json_t *payload;
        const char *method; /* a constant; NULL: there is nothing to do */
        int64_t wait_ms;    /* for the method; 0: that of its kind */
        json_t *args;
        struct {
                const char *method;
                json_t *args;
        } instead;           /* of a stream: the call without one; method NULL: it is no stream */
        bool stream_ends;    /* the stop of a stream completes the text */
        bool stream_stopped; /* one of an earlier run */
        bool only_for_one;   /* ephemeral: not in the history, and harmless to repeat */
        bool plain;          /* Slack has refused the blocks */
        bool responded;      /* the response_url of a command was tried */
        bool creating;       /* `call` makes the message */
        bool created;        /* it is there, but its ts is not known yet */
        struct sl_upload *upload; /* NULL: no file */
        struct sl_call *call;
        struct timer *later; /* reports `early` */
        struct send_result early;
        char why[400];
        TAILQ_ENTRY(sl_send) next;
};

#define SL_DELETED_MAX 64

struct sl_doubt;
struct sl_sends {
        TAILQ_HEAD(, sl_send) list;
        TAILQ_HEAD(, sl_doubt) doubts;
        struct map dms; /* user -> conversation */
        /* messages of ours that were deleted lately: history shows them no more */
        struct {
                char nonce[ADAPTER_NONCE_SIZE + 1], ts[SL_TS_SIZE];
        } deleted[SL_DELETED_MAX];
        unsigned deleted_next;
        int64_t newest_us;      /* of all ts seen: Slack's clock; 0: none yet */
        int64_t newest_boot_ms; /* clock_boot_ms then */
};

/* ---- sl_send.c ---- */

/* Makes the call `method` with `args`; the answer ends the delivery. */
void sl_send_call(struct sl_send *s);
/* Frees s. */
void sl_send_end(struct sl_send *s, const struct send_result *result);
void sl_send_end_with(struct sl_send *s, const struct sl_answer *a, const char *platform_id);
/*
 * Stops what is on its way for a delivery. 1: it may have arrived; 0: it certainly did not; -1:
 * nothing was.
 */
int sl_send_abort(struct slack *sl, int64_t delivery);
/* Notes Slack's time by a ts; one that is not valid is ignored. */
void sl_sends_saw(struct slack *sl, const char *ts);

/* ---- sl_destination.c ---- */

/* The conversation's id, borrowed; NULL: not known yet. */
const char *sl_destination_find(struct slack *sl, const char *channel);
/* Whose DM it is, borrowed: "user:ID", "operator" or a person's id; NULL: no DM. */
const char *sl_destination_person(const struct slack *sl, const char *channel);
/*
 * Opens the DM, or looks for the channel of that name: an answer for sl_destination_opened. NULL:
 * there is none; see *wrong.
 */
struct sl_call *sl_destination_open(struct slack *sl, const char *channel, sl_answer_fn *done,
                                    void *arg, struct send_result *wrong, char *why, size_t size);
/* The conversation's id, kept from now on; NULL: Slack has none. */
const char *sl_destination_opened(struct slack *sl, const char *channel, const struct sl_answer *a);
/* An answer that named no conversation becomes a failure; `why` outlives it. */
void sl_destination_refuse(const char *channel, struct sl_answer *a, char *why, size_t size);
bool sl_destination_is_dm(struct slack *sl, const char *channel);

/* ---- sl_payload.c ---- */

extern const struct sl_send_kind sl_payload_kinds[]; /* by enum delivery_kind */
/* Marks a message as that of this delivery. */
void sl_payload_add_metadata(const struct sl_send *s, json_t *args);
/* The same call without blocks that Slack refused. False: there were none. */
bool sl_payload_make_plain(struct sl_send *s);
/* Is the delivery shown to one person only? */
bool sl_payload_is_for_one(struct slack *sl, const struct delivery *d, const json_t *payload);

/* ---- sl_outcome.c ---- */

/* `why` is that of the answer. */
void sl_outcome_read(enum delivery_kind kind, bool creates, const struct sl_answer *a,
                     struct send_result *out);
/* The error as an error. */
void sl_outcome_error(const struct sl_answer *a, struct error *err);

/* ---- sl_upload.c ---- */

/* The file of the delivery's payload, which stays open until sl_upload_free. */
struct sl_upload *sl_upload_new(struct sl_send *s, const struct delivery *d, struct error *err);
void sl_upload_free(struct sl_upload *u);
/* The three steps; ends the delivery. */
void sl_upload_start(struct sl_upload *u);
/*
 * Where reading back begins, "TS" or "TS FILE": when it was sent, and which file it is. True if
 * both are there; ts "" : none.
 */
bool sl_upload_read_from(const char *text, char ts[SL_TS_SIZE], char file[SL_FILE_SIZE]);
/* ts of the message that shows the file in a conversation, borrowed; NULL: none yet. */
const char *sl_upload_shared_ts(const json_t *file, const char *conversation);

#endif
