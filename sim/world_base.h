/*
 * world_base: what the worlds of all simulators have.
 *
 * It is the first member of each simulator's struct world, so that the shared rows of the control
 * API (control.h) find it in any world.
 */
#ifndef SIM_WORLD_BASE_H
#define SIM_WORLD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "sim/faults.h"
#include "sim/journal.h"
#include "sim/options.h"

struct world_setting;

struct world_base {
        struct loop *loop;
        struct http_client *client; /* for calls to the bot's server; borrowed */
        bool quiet;                 /* do not print messages */
        /* the settings of all simulators */
        bool strict;          /* refuse unknown parameters and wrong types */
        bool limits;          /* answer 429 above a rate limit */
        bool record_calls;    /* list calls with their parameters */
        size_t keep_messages; /* per chat */
        const struct world_setting *own_settings;
        struct faults faults;
        struct journal *sent;        /* actions of bots */
        struct journal *calls;       /* their API calls */
        struct journal *invalid;     /* calls that break the rules */
        LIST_HEAD(, call_base) live; /* unanswered calls */
        uint64_t call_count, invalid_count, message_count;
};

/* `own` is the table of the simulator's own settings. */
void world_base_init(struct world_base *w, struct loop *l, size_t keep_messages,
                     const struct world_setting *own);
/* Answers waiting readers, so call it while the server can still answer. */
void world_base_release(struct world_base *w);
void world_base_apply(struct world_base *w, struct http_client *client, const struct options *o);
/* Writes members of an open object. */
void world_base_write_counters(const struct world_base *w, struct buf *b);

#endif
