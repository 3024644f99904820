/*
 * dc_shard: one shard of the gateway, over as many connections as it takes; and the gateway as its
 * shards see it.
 */
#ifndef PLATFORM_DISCORD_DC_SHARD_H
#define PLATFORM_DISCORD_DC_SHARD_H

#include "platform/discord/dc_gateway.h"

#define DC_TICKET_SHARD 40 /* bits of a ticket below the number of its shard */

struct dc_shard;

struct dc_shard *dc_shard_new(struct dc_gateway *g, unsigned id, unsigned shards);
void dc_shard_free(struct dc_shard *s);
/* Connects and resumes, or asks for permission to identify. */
void dc_shard_start(struct dc_shard *s);
/* Permission granted: connects and identifies. */
void dc_shard_identify(struct dc_shard *s);
/* Drops the connection for good. */
void dc_shard_stop(struct dc_shard *s);
/* Replaces the connection and resumes. */
void dc_shard_renew(struct dc_shard *s, const char *why);
void dc_shard_committed(struct dc_shard *s, uint64_t number);
void dc_shard_caught_up(struct dc_shard *s);
void dc_shard_stats(const struct dc_shard *s, struct dc_gateway_stats *out);
bool dc_shard_is_up(const struct dc_shard *s);

/* ---- dc_gateway.c ---- */

/* Shards whose ids are equal modulo max_concurrency identify one after the other. */
struct dc_identify_slot {
        struct dc_shard *holder;
        int64_t next_ms; /* the next one may go then */
};

struct dc_gateway {
        struct dc_gateway_options o; /* times filled in, strings owned */
        struct dc_gateway_handlers on;
        void *arg;
        struct dc_shard **shards;
        unsigned count;
        struct dc_identify_slot *slots; /* one for each shard that may identify at once */
        unsigned concurrency;
        unsigned *waiting; /* shards that want to identify, in order; room for all */
        unsigned waiting_count;

        char *url;                             /* as answered, or of the options */
        int64_t remaining, total, reset_at_ms; /* session_start_limit; loop time */
        int64_t asked_ms;                      /* when that was answered; -1: ask */
        int64_t retry_at_ms;                   /* do not ask before */
        unsigned failures;                     /* of asking, in a row */
        bool asking, stopped;

        struct timer *timer;    /* the next IDENTIFY or question */
        struct timer *watch;    /* did the machine sleep? */
        struct timer *grace;    /* a loss that is not reported yet */
        struct timer *trimming; /* memory that large payloads took is given back */
        int64_t watch_wall_ms, watch_mono_ms;
        enum dc_gateway_state reported;
        char why[200]; /* of the last loss */
        struct dc_gateway_stats counted;
        unsigned refs; /* the owner, handlers on the stack */
        bool freed;
};

/* Asks for permission to identify; dc_shard_identify follows. */
void dc_gateway_want_identify(struct dc_gateway *g, unsigned shard);
/* Gives the permission back: IDENTIFY was sent, or was not. Harmless without permission. */
void dc_gateway_end_identify(struct dc_gateway *g, unsigned shard, bool sent);
/* since_ms: something may be missing since then; 0: no. */
void dc_gateway_shard_up(struct dc_gateway *g, const struct dc_gateway_ready *ready,
                         int64_t since_ms);
void dc_gateway_shard_lost(struct dc_gateway *g, const char *why);
/* state: DC_GATEWAY_STOPPED or DC_GATEWAY_BAD_TOKEN. */
void dc_gateway_stop(struct dc_gateway *g, enum dc_gateway_state state, const char *why);
/* Returns freed memory to the system when no more large payloads come. */
void dc_gateway_trim(struct dc_gateway *g);

#endif
