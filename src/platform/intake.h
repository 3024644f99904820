/*
 * intake: the ordered window of updates that an adapter has received and not yet stored.
 *
 *     preparing ─────────► ready ─────────► storing ─────────► done
 *     read by the          waits for its    its events are     acknowledged to
 *     platform             turn             with the inbox     the platform
 *
 * An update is acknowledged only after its events are committed. Events of one chat reach the inbox
 * in the order of the window; chats do not wait for one another. An update that the inbox refuses
 * is offered again with backoff. Nothing here survives a crash: the platform repeats what was not
 * acknowledged, and the inbox recognises it by its dedup key. Files are not fetched here: the
 * sender is not judged yet (attachment_hold.c).
 */
#ifndef PLATFORM_INTAKE_H
#define PLATFORM_INTAKE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "base/map.h"
#include "platform/platform.h"

struct intake;
struct intake_update;

/* The contents of an update. Strings are in the arena or in the platform's struct. */
struct intake_content {
        struct arena arena;
        struct incoming *events; /* adapter, platform and metadata are added when they are stored */
        size_t event_count;
        const char *ignored;            /* why there is no event */
        struct attachment *attachments; /* of events[0] */
        size_t attachment_count;
        /* of every event; with attachments, its array "files" has an object for each of them */
        json_t *metadata;
};
/* An empty content with an arena and a metadata object. */
void intake_content_init(struct intake_content *c);
void intake_content_release(struct intake_content *c);

enum intake_order {
        INTAKE_IN_ORDER, /* waits for earlier updates of its chat, and while the chat is held */
        INTAKE_URGENT,   /* waits for neither: a command to acknowledge within seconds */
        INTAKE_BACKFILL, /* read back: goes before updates of its chat that are still preparing */
};

enum intake_state { INTAKE_PREPARING, INTAKE_READY, INTAKE_STORING, INTAKE_DONE };

/* The first member of a platform's own struct, zeroed. */
struct intake_update {
        /* ---- set before intake_add ---- */
        const char *chat; /* updates of one chat are stored in order; NULL: on its own */
        enum intake_order order;
        bool sender_retries; /* when the inbox refuses, it is given back instead of kept */
        /* ---- set before intake_prepared ---- */
        struct intake_content content;
        /*
         * Fills in what is stored in place of the content, for an update with parts. Events may
         * have attachments and metadata of their own. NULL: the content is stored as it is.
         */
        void (*compose)(struct intake_update *u, struct intake_content *out);
        /* ---- the intake's; the platform may read state and lead ---- */
        struct intake *intake;
        enum intake_state state;
        struct intake_update *lead; /* this is a part of another update, and stored with it */
        TAILQ_HEAD(, intake_update) parts;
        bool prepared;
        struct timer *wait; /* for further parts */
        struct intake_receipt *receipt;
        TAILQ_ENTRY(intake_update) next, next_part;
};

struct intake_handlers {
        /*
         * stored: all of it is committed, so acknowledge it. Else the inbox refused it, or the
         * intake closes. Must not call the intake.
         */
        void (*done)(struct intake_update *u, bool stored);
        /* Frees the platform's struct; the intake releases `content` and its own fields. */
        void (*free)(struct intake_update *u);
        /* The inbox knows an event of this update. True: compose others instead. May be NULL. */
        bool (*duplicate)(struct intake_update *u);
        /* Updates may have left the window. May be NULL. */
        void (*advanced)(struct intake *in);
};

struct intake {
        struct adapter *adapter;
        const struct intake_handlers *handlers;
        /*
         * Updates leave in order, so that repeats are recognised: for platforms that resend
         * everything from the first unacknowledged update on.
         */
        bool leaves_in_order;
        /* ---- read by the platform ---- */
        TAILQ_HEAD(intake_window, intake_update) window;
        size_t count;       /* in the window */
        size_t preparing;   /* of these, without parts */
        size_t backfilling; /* INTAKE_BACKFILL, not done */
        unsigned refusals;  /* by the inbox in a row */
        /* ---- the intake's ---- */
        size_t ready;
        struct map held; /* chat → how often */
        struct timer *retry;
};

/* Opens an empty window; set leaves_in_order afterwards. */
void intake_open(struct intake *in, struct adapter *a, const struct intake_handlers *handlers);
/* Gives back every unfinished update. Receipts that arrive later are ignored. */
void intake_close(struct intake *in);

/* Puts an update into the window, which owns it from now on. */
void intake_add(struct intake *in, struct intake_update *u);
/* The content has its events: stores it when its turn comes. */
void intake_prepared(struct intake_update *u);
/* Finishes an update without events; may free it. */
void intake_skip(struct intake_update *u);
/* Stores the part (an album's) with the lead. Before intake_prepared of the part. */
void intake_join(struct intake_update *lead, struct intake_update *part);
/* Holds the lead until `ms` pass without another call: further parts may come. */
void intake_wait(struct intake_update *lead, int64_t ms);

#define INTAKE_EVERYWHERE "*"
/* IN_ORDER updates of this chat wait until every hold is released. */
void intake_hold(struct intake *in, const char *chat);
void intake_release(struct intake *in, const char *chat);

#endif
