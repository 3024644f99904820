/*
 * intake: the ordered window of updates that an adapter has received and not yet stored.
 *
 * A platform may forget an update (a polled or posted update, a gateway dispatch, a socket
 * envelope) only after its events are committed. The intake keeps each update until then:
 *
 *     preparing ─────────► ready ─────────► storing ─────────► done
 *     read by the          waits for its    its events are     acknowledged to
 *     platform, files      turn             with the inbox     the platform
 *     are downloaded
 *
 * Order: events of one chat reach the inbox in the order of the window; chats do not wait for one
 * another. Attachments are downloaded first, so that an agent finds the file when it reads the
 * event; a file that cannot be had is reported in metadata.files[i].error.
 *
 * Refusals: when the inbox is full or the disk fails, the update stays ready and is offered again
 * with backoff. Nothing is acknowledged meanwhile. An event that can never be stored (ERR_INVALID)
 * is logged and left out.
 *
 * Nothing here survives a crash, and nothing has to: the platform repeats what was not
 * acknowledged (or the adapter reads it back), and the inbox recognises repeated events by their
 * dedup keys.
 *
 * How an adapter uses it:
 *
 *     struct my_update { struct intake_update base; char *envelope; };
 *
 *     u->base.chat = ...;                    1. an update arrives: allocate it (zeroed)
 *     intake_add(in, &u->base);              2. it has its place in the window
 *     my_read(&u->base.content, ...);        3. translate it, now or after looking something up
 *     intake_prepared(&u->base);             4. the intake does the rest (or intake_skip)
 *
 *     done():  if (stored) acknowledge u->envelope
 *     free():  free what my_update owns
 */
#ifndef PLATFORM_INTAKE_H
#define PLATFORM_INTAKE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "base/map.h"
#include "platform/attachment_fetch.h"
#include "platform/platform.h"

struct intake;
struct intake_update;

/* ---- what an update says ---- */

/*
 * An update in the shape all platforms share; the platform's reader fills it in. Strings live in
 * the arena or in what the platform keeps beside the update.
 */
struct intake_content {
        struct arena arena;
        struct incoming *events; /* adapter, platform and metadata are added when they are stored */
        size_t event_count;
        const char *ignored;            /* why there is no event */
        struct attachment *attachments; /* of events[0] */
        /* for each attachment: the URL, or the key for attachment_source; NULL: nothing to fetch */
        const char **sources;
        size_t attachment_count;
        /* of every event; with attachments, its array "files" has an object for each of them */
        json_t *metadata;
};
/* An empty content with an arena and a metadata object. */
void intake_content_init(struct intake_content *c);
void intake_content_release(struct intake_content *c);

/* ---- an update in the window ---- */

enum intake_order {
        /* waits for earlier updates of its chat, and while the chat is held */
        INTAKE_IN_ORDER,
        /* waits for neither: a command that must be acknowledged within seconds */
        INTAKE_URGENT,
        /* read back after a gap: goes before the updates of its chat that are still preparing */
        INTAKE_BACKFILL,
};

enum intake_state { INTAKE_PREPARING, INTAKE_READY, INTAKE_STORING, INTAKE_DONE };

/* The first member of a platform's own struct, zeroed. */
struct intake_update {
        /* ---- set by the platform before intake_add ---- */
        const char *chat; /* updates of one chat are stored in order; NULL: on its own */
        enum intake_order order;
        /* The sender repeats it: when the inbox refuses, it is given back instead of kept. */
        bool sender_retries;
        /* ---- filled in before intake_prepared ---- */
        struct intake_content content;
        /* ---- the intake's; the platform may read state and lead ---- */
        struct intake *intake;
        enum intake_state state;
        struct intake_update *lead; /* this is a part of another update, and stored with it */
        TAILQ_HEAD(, intake_update) parts;
        bool prepared;
        struct timer *wait; /* for further parts */
        struct intake_file *files;
        unsigned fetching;
        struct intake_receipt *receipt;
        TAILQ_ENTRY(intake_update) next, next_part;
};

struct intake_handlers {
        /*
         * The update is finished. stored: everything in it is committed (or there was nothing in
         * it), so acknowledge it. Else it is given back: the inbox refused it, or the intake
         * closes. Must not call the intake.
         */
        void (*done)(struct intake_update *u, bool stored);
        /* Frees the platform's struct. The intake releases `content` and its own fields. */
        void (*free)(struct intake_update *u);
        /*
         * Hands the update's events over by intake_hand_over, once or more. NULL: intake_store.
         */
        void (*store)(struct intake_update *u);
        /*
         * The inbox knows an event of this update, or one of its parts, already: the place to hand
         * over other events instead. NULL: a duplicate counts as stored.
         */
        void (*duplicate)(struct intake_update *u);
        /* An inbox answer was processed: updates may have left the window. NULL: not needed. */
        void (*advanced)(struct intake *in);
};

/* ---- the window ---- */

struct intake {
        struct adapter *adapter;
        const struct intake_handlers *handlers;
        /*
         * Updates leave the window only together with all before them, so that repeated ones are
         * found in it: for platforms that repeat whatever follows the first unacknowledged update.
         */
        bool leaves_in_order;
        struct attachment_queue files;
        /* ---- read by the platform ---- */
        TAILQ_HEAD(intake_window, intake_update) window;
        size_t count;       /* in the window */
        size_t preparing;   /* of these: parts not counted */
        size_t backfilling; /* INTAKE_BACKFILL, not done */
        unsigned refusals;  /* by the inbox in a row */
        /* ---- the intake's ---- */
        size_t ready;
        struct map held; /* chat → how often */
        struct timer *retry;
};

/*
 * Opens an empty window; `files` says where attachments come from. Set leaves_in_order afterwards.
 */
void intake_open(struct intake *in, struct adapter *a, const struct intake_handlers *handlers,
                 const struct attachment_source *files);
/* Gives back every unfinished update. Receipts that arrive later are ignored. */
void intake_close(struct intake *in);

/* Puts an update into the window, which owns it from now on. */
void intake_add(struct intake *in, struct intake_update *u);
/* The content is complete: downloads its files, then stores it when its turn comes. */
void intake_prepared(struct intake_update *u);
/* Nothing in the update concerns us: it is done. The update may be freed by this call. */
void intake_skip(struct intake_update *u);

/*
 * Several updates that make one message (an album). The part shares the lead's fate: stored when
 * the lead is, done when it is. Both before intake_prepared of the part.
 */
void intake_join(struct intake_update *lead, struct intake_update *part);
/* The lead is not ready before `ms` have passed without another call: further parts may come. */
void intake_wait(struct intake_update *lead, int64_t ms);

/* ---- holding chats, for adapters that read back what they missed ---- */

#define INTAKE_EVERYWHERE "*"

/*
 * Updates of this chat (or INTAKE_EVERYWHERE) wait until it is released as often as it was held,
 * except urgent ones and the backfill itself.
 */
void intake_hold(struct intake *in, const char *chat);
void intake_release(struct intake *in, const char *chat);

/* ---- for handlers->store and ->duplicate ---- */

/* Each event of the content, with its metadata. */
void intake_store(struct intake_update *u);
/* One event. The metadata (borrowed) takes the place of the event's own. */
void intake_hand_over(struct intake_update *u, const struct incoming *event,
                      const json_t *metadata);

#endif
