/*
 * attachment_fetch: downloads attachments for turns.
 *
 *     looking (is it there?) ──► waiting ──► locating (where is it?) ──► downloading ──► saving
 *
 * Each adapter has one queue, bounded in number, size, time and bytes an hour, for all and for each
 * sender. Places go to the sender with the fewest running downloads, so files do not wait behind
 * those of one other person.
 */
#ifndef PLATFORM_ATTACHMENT_FETCH_H
#define PLATFORM_ATTACHMENT_FETCH_H

#include <stdint.h>

#include "platform/attachment_files.h"
#include "platform/platform.h"

struct attachment_fetch;
struct attachment_queue;

/* A platform's part. */
struct attachment_source {
        int64_t (*max_bytes)(const struct adapter *a); /* of one file; 0: nothing is downloaded */
        /*
         * Finds out where `source` of an attachment is; answers with _from, _fail or _retry, now or
         * later. Returns what `cancel` ends; NULL: answered already.
         */
        void *(*locate)(struct adapter *a, struct attachment_fetch *f, const char *source);
        void (*cancel)(void *lookup); /* without an answer; may be NULL */
};

/* The adapter's platform has `files`. */
struct attachment_queue *attachment_queue_new(struct adapter *a, struct attachment_files *files);
/* Ends all fetches with a reason. NULL is fine. */
void attachment_queue_free(struct attachment_queue *q);

struct attachment_order {
        const char *source; /* of the attachment */
        const char *path;   /* where it is saved in the workspace, pinned by the caller */
        const char *sender; /* whose budget it uses */
        int64_t size;       /* 0: not known */
};
/* size -1: no file, see `why`. */
typedef void attachment_fetched_fn(void *arg, int64_t size, const char *why);

/* Why a file of this size (0: not known) is not downloaded; NULL: it may be. */
const char *attachment_fetch_refusal(const struct attachment_queue *q, int64_t size);
/* Copies the order. Calls done once, later, unless dropped. */
struct attachment_fetch *attachment_fetch_start(struct attachment_queue *q,
                                                const struct attachment_order *order,
                                                attachment_fetched_fn *done, void *arg);
/* No call follows. NULL is fine. */
void attachment_fetch_drop(struct attachment_fetch *f);

/* Where a file is, copied except page_why. */
struct attachment_place {
        const char *url;
        const char *header; /* "Authorization: ..."; NULL: none. Redirects are not followed. */
        /* why a page to log in, or a redirect to one, came instead of the file; NULL: none does */
        const char *page_why;
};

/* Answers of locate; _retry locates again, a few times. */
void attachment_fetch_with(struct attachment_fetch *f, const struct attachment_place *place);
void attachment_fetch_from(struct attachment_fetch *f, const char *url);
void attachment_fetch_fail(struct attachment_fetch *f, const char *why);
void attachment_fetch_retry(struct attachment_fetch *f, const char *why);
struct adapter *attachment_fetch_adapter(const struct attachment_fetch *f);

#endif
