/*
 * fetch: attachments are downloaded before their message is handed over, so that an agent finds the
 * file where the event says it is.
 *
 *     waiting ──► locating (where is it?) ──► downloading ──► saved on a worker thread ──► done
 *
 * One queue for each adapter, bounded in number, size and time. What fails for the moment is tried
 * a few times more; when it does not work out, the message goes on without the file and says why.
 */
#ifndef PLATFORM_ATTACHMENT_FETCH_H
#define PLATFORM_ATTACHMENT_FETCH_H

#include <stdint.h>
#include <sys/queue.h>

#include "platform/platform.h"

struct fetch;

struct fetches {
        struct adapter *adapter;
        const char *from;  /* whom we download from, for sentences: "Telegram" */
        int64_t max_bytes; /* of one file; 0: nothing is downloaded */
        /*
         * The turn of a file has come: asks where `key` is, and tells with fetch_at or fetch_fail,
         * later. Returns the question, which `forget` ends without an answer. NULL: keys are URLs.
         */
        void *(*locate)(struct adapter *a, struct fetch *f, const char *key);
        void (*forget)(void *question);
        TAILQ_HEAD(, fetch) list;
        unsigned running;
};
/* The fields up to `forget` are filled in. */
void fetches_init(struct fetches *all);

struct fetch_order {
        const char *key;                      /* what to download */
        const char *channel, *message, *name; /* for the path; name NULL: "file" */
};
/* why NULL: the file is there. Path is relative to the workspace; borrowed. */
typedef void fetched_fn(void *arg, const char *path, int64_t size, const char *why);

/* Why a file of this size (0: not known) is not downloaded; NULL: it may be. Borrowed. */
const char *fetch_refusal(const struct fetches *all, int64_t size);
/* Exactly one call of done, later, unless dropped. */
struct fetch *fetch_start(struct fetches *all, const struct fetch_order *order, fetched_fn *done,
                          void *arg);
/* No call follows. NULL is fine. */
void fetch_drop(struct fetch *f);

/* For `locate`. The URL may hold a secret: it is not kept. */
void fetch_at(struct fetch *f, const char *url);
void fetch_fail(struct fetch *f, const char *why);
/* It may work in a moment: it is located again, some times. */
void fetch_fail_for_now(struct fetch *f, const char *why);
struct adapter *fetch_adapter(const struct fetch *f);

/* A name that is safe in any folder; yours to free. */
char *fetch_safe_name(const char *name);

#endif
