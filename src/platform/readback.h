/*
 * readback: reads the messages that channels and threads got during a gap.
 *
 * A few places are read at a time, no faster than the intake stores; live events of their chats are
 * held meanwhile, for a limited time. What the journal has already is left out. The number of
 * messages of a place is limited: its oldest are skipped, except some that are to the bot.
 */
#ifndef PLATFORM_READBACK_H
#define PLATFORM_READBACK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "platform/intake.h"

#define READBACK_PAGE     100 /* messages */
#define READBACK_KEY_SIZE 96

struct readback;

/* A place that is being read. */
struct readback_job {
        /* ---- the platform reads these ---- */
        void *ctx;          /* of the options */
        const char *chat;   /* whose events are held */
        const char *thread; /* in the chat; NULL: the chat itself */
        bool ascending;     /* pages come oldest first; `cursor` leads to the next */
        uint64_t since;     /* the beginning of the gap, in the order of its messages */
        uint64_t before;    /* the oldest message read; 0: none yet */
        char *cursor;       /* of the next page; NULL: the first */
        /* ---- the readback's ---- */
        struct readback *r;
        char *key;
        json_t *page; /* being sorted out, newest first */
        struct readback_lookup *lookup;
        json_t *kept;           /* new messages, newest first */
        int64_t counted;        /* of these, towards the limit */
        int64_t pages, skipped; /* skipped: new, but beyond the limit */
        bool last;              /* there is no further page */
        bool complete;          /* handing over */
        unsigned tries;
        struct timer *timer;
        bool running, held;
        bool failed; /* given up */
        bool of_old_gap;
        bool again; /* wanted for the current gap, too */
        TAILQ_ENTRY(readback_job) next;
};

struct readback_ops {
        /* Reads at most READBACK_PAGE messages; readback_page follows, from the loop. */
        void (*read)(void *ctx, struct readback_job *j);
        /* The place of a message in the order of its chat; 0: not a message. */
        uint64_t (*order)(const json_t *message);
        /* The dedup key of a message. False: it is none to hand over. */
        bool (*key)(void *ctx, const struct readback_job *j, const json_t *message,
                    char out[READBACK_KEY_SIZE]);
        bool (*is_to_us)(void *ctx, const struct readback_job *j, const json_t *message);
        /* Oldest first. */
        void (*missed)(void *ctx, const struct readback_job *j, json_t *message);
        /* There is room for places again. */
        void (*room)(void *ctx);
};

struct readback_options {
        struct intake *window;
        const struct readback_ops *ops;
        void *ctx;
        int64_t messages; /* of each place */
        int64_t wait_ms;  /* 0: 250; as in readback_wait_ms */
        int64_t hold_ms;  /* 0: 30000 */
};

struct readback *readback_new(const struct readback_options *options);
/* Before the window is closed, or after. No callback follows; the platform drops its requests. */
void readback_free(struct readback *r);
/* A new gap. */
void readback_restart(struct readback *r);
/* Reads a place once for each gap, unless it was given up. Text is copied. */
void readback_want(struct readback *r, const char *chat, const char *thread, bool ascending,
                   uint64_t since);

/* The answer to `read`. */
struct readback_page {
        const json_t *messages; /* an array, in any order; NULL: none could be read */
        const char *cursor;     /* with ascending: of the next page; NULL: the last */
        bool last;              /* there are no older messages */
        bool unavailable;       /* without messages: a later attempt may succeed */
        int64_t retry_after_ms; /* the platform's; -1: not given */
        const char *why;        /* without messages */
};
void readback_page(struct readback_job *j, const struct readback_page *page);

enum readback_load {
        READBACK_IDLE, /* everything is read and stored, or given up */
        READBACK_BUSY,
        READBACK_CROWDED, /* add only places that cannot wait */
        READBACK_FULL,    /* add none */
};
enum readback_load readback_load(const struct readback *r);
/* Was one given up since the last call? */
bool readback_take_failed(struct readback *r);
/* How long to wait after so many failures; -1: give up. first_ms 0: 250. */
int64_t readback_wait_ms(int64_t first_ms, unsigned failures);
/* The same, or as long as the platform says (-1: it does not): a limit is not a failure. */
int64_t readback_retry_ms(int64_t first_ms, int64_t retry_after_ms, unsigned *failures);

#endif
