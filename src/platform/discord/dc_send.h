/*
 * dc_send: one delivery on its way to Discord, as dc_make.c fills and dc_send.c sends it.
 */
#ifndef PLATFORM_DISCORD_DC_SEND_H
#define PLATFORM_DISCORD_DC_SEND_H

#include "platform/discord/discord.h"

struct dc_send;

/* A kind of delivery. */
struct dc_kind {
        bool creates; /* a message: repeating needs care */
        enum dc_priority priority;
        int64_t wait_ms;
        /*
         * Fills method, route, args and body; -1 with an error when it cannot be. args[0] stays
         * NULL when a DM must be opened first.
         */
        int (*make)(struct dc_send *s, const struct delivery *d, struct error *err);
};

struct dc_send {
        struct adapter *adapter;
        enum delivery_kind delivery_kind;
        const struct dc_kind *kind;
        int64_t delivery, fence, created_ms;
        int attempt;
        char *channel, *thread; /* as the delivery names them */
        char *message;          /* the one it is about */
        char *interaction;      /* the command in whose place it is, while that can be */
        char *reply_to;
        json_t *payload;
        const char *method, *route; /* constants */
        char *args[DC_ARGS_MAX];
        json_t *body;
        char *file, *file_name, *file_mime;
        struct dc_call *call;
        struct timer *later; /* the answer to what could not even begin */
        struct send_result early;
        char why[300];
        bool looked, afresh;
        bool waits;    /* for the acknowledgement of its command */
        bool needless; /* there is nothing to do for it */
        unsigned pages;
        TAILQ_ENTRY(dc_send) next;
};

const struct dc_kind *dc_kind_of(enum delivery_kind kind);
/* A message anew, after the command it answered could not be answered. */
int dc_make_afresh(struct dc_send *s, struct error *err);

#endif
