/*
 * attachment_fetch: downloads attachments into the workspace.
 *
 *     waiting ──► locating (where is it?) ──► downloading ──► saved on a worker thread ──► done
 *
 * Each adapter has one queue, bounded in number, size and time.
 */
#ifndef PLATFORM_ATTACHMENT_FETCH_H
#define PLATFORM_ATTACHMENT_FETCH_H

#include <stdint.h>
#include <sys/queue.h>

#include "platform/platform.h"

struct attachment_fetch;

struct attachment_source {
        int64_t max_bytes; /* of one file; 0: nothing is downloaded */
        /* Looks up where `key` is; answers with _from, _fail or _retry. NULL: keys are URLs. */
        void *(*locate)(struct adapter *a, struct attachment_fetch *f, const char *key);
        void (*cancel)(void *lookup); /* ends what locate returned, without an answer */
};

struct attachment_queue {
        struct adapter *adapter;
        struct attachment_source source;
        TAILQ_HEAD(, attachment_fetch) list;
        unsigned running;
};
/* Drop all fetches before the queue goes. */
void attachment_fetch_init(struct attachment_queue *q, struct adapter *a,
                           const struct attachment_source *source);

struct attachment_order {
        const char *key;                      /* what to download */
        const char *channel, *message, *name; /* for the path; name NULL: "file" */
};
/* path is relative to the workspace, borrowed; NULL: no file, see `why`. */
typedef void attachment_fetched_fn(void *arg, const char *path, int64_t size, const char *why);

/* Why a file of this size (0: not known) is not downloaded; NULL: it may be. */
const char *attachment_fetch_refusal(const struct attachment_queue *q, int64_t size);
/* Calls done once, later, unless dropped. */
struct attachment_fetch *attachment_fetch_start(struct attachment_queue *q,
                                                const struct attachment_order *order,
                                                attachment_fetched_fn *done, void *arg);
/* No call follows. NULL is fine. */
void attachment_fetch_drop(struct attachment_fetch *f);

/* Answers of locate; _retry locates again, a few times. */
void attachment_fetch_from(struct attachment_fetch *f, const char *url);
void attachment_fetch_fail(struct attachment_fetch *f, const char *why);
void attachment_fetch_retry(struct attachment_fetch *f, const char *why);
struct adapter *attachment_fetch_adapter(const struct attachment_fetch *f);

/* A name that is safe in any folder; yours to free. */
char *attachment_fetch_safe_name(const char *name);

#endif
