/*
 * dc_inbound: everything that comes from Discord, on its way to the inbox. What discord.c has to
 * know of it is this header.
 *
 *     dc_inbound.c      introduces the gateway to the intake
 *     dc_intake.c       events in order, each committed before the gateway may forget it; files are
 *                       fetched before
 *     dc_where.c        what kind of place it is, asked when nobody has told
 *     dc_members.c      who somebody is there, asked when what happened does not tell
 *     dc_event.c        a dispatch in the shape all platforms share (pure)
 *     dc_interaction.c  slash commands, buttons and forms in that shape (pure)
 *     dc_cache.c        the channels, threads and roles we have been told of
 *     dc_catchup.c      what a lost session has missed, and where: gaps, and how they end
 *     dc_roll.c         guilds the gateway has not introduced are called by REST
 *     dc_readback.c     channels are read back, a few at once
 *
 * REST is the owner's: it is asked by the `get` hook.
 */
#ifndef PLATFORM_DISCORD_DC_INBOUND_H
#define PLATFORM_DISCORD_DC_INBOUND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/http_server.h"
#include "platform/discord/dc_cache.h"
#include "platform/discord/dc_gateway.h"
#include "platform/discord/dc_rest.h"
#include "platform/platform.h"

struct dc_inbound;

/* What the inbound side reads by REST. */
struct dc_get {
        const char *route; /* as in struct dc_request */
        const char *args[2];
        const char *query; /* NULL: none */
        bool idle;         /* it may be late: leave the limits to what people wait for */
};

/*
 * Waits of reading back, in milliseconds; 0 stands for what is in the comment. Tests make them
 * short.
 */
struct dc_catchup_times {
        int64_t wait_ms;  /* 250: after Discord could not answer; doubles */
        int64_t done_ms;  /* 3000: after the last sign of something to read, it has ended */
        int64_t again_ms; /* 300000: from giving up to the next attempt */
};

struct dc_inbound_options {
        struct adapter *adapter;
        const struct secret *token; /* must live as long */
        const char *gateway_url;    /* NULL: as Discord says */
        unsigned intents;           /* DC_INTENTS, perhaps without DC_INTENT_MESSAGE_CONTENT */
        int64_t flags;              /* of the application, to name a missing intent; 0: not known */
        int64_t shards;             /* 0: "auto" */
        const char *compress;       /* "zlib-stream", "zstd-stream", "none" */
        bool role_mentions;         /* a mention of one of the bot's roles is a mention */
        int64_t media_max_bytes;    /* 0: nothing is downloaded */
        int64_t catchup_seconds;    /* how far back a lost session is read up; 0: not at all */
        int64_t catchup_messages;   /* at most so many of each channel */
        struct dc_gateway_times times;
        struct dc_catchup_times catchup_times;
};

struct dc_inbound_hooks {
        void *ctx;
        /* One call of done, later, or none after dc_inbound_free. */
        void (*get)(void *ctx, const struct dc_get *q, dc_answer_fn *done, void *arg);
        void (*ready)(void *ctx, const struct dc_gateway_ready *ready);
        void (*state)(void *ctx, enum dc_gateway_state state, const char *why);
        /*
         * An interaction is stored: acknowledge it now, deferring (type 5 for commands, 6 for
         * components). `interaction` is what Discord sent, with id, token, type; borrowed. Answers
         * to it carry metadata.interaction of the event.
         */
        void (*stored)(void *ctx, const json_t *interaction);
        /* Somebody has written to us in this DM channel. NULL: nobody wants to know. */
        void (*dm)(void *ctx, const char *user, const char *channel);
        /*
         * A message of the bot itself, as Discord tells it; borrowed. NULL: nobody wants to know.
         */
        void (*own)(void *ctx, const json_t *message);
        /* Autocompletion: answered by the owner at once; nothing is stored. NULL: left alone. */
        void (*complete)(void *ctx, const json_t *interaction);
};

struct dc_inbound *dc_inbound_new(const struct dc_inbound_options *options,
                                  const struct dc_inbound_hooks *hooks);
/* Late answers find nobody. NULL is fine. */
void dc_inbound_free(struct dc_inbound *in);

/*
 * An interaction that came by the signed HTTP endpoint, already verified. stored(arg, true) after
 * the commit, or false. Borrowed.
 */
void dc_inbound_interaction(struct dc_inbound *in, const json_t *interaction,
                            void (*stored)(void *arg, bool ok), void *arg);

/* False when we have not been told of it. */
bool dc_inbound_channel(const struct dc_inbound *in, const char *channel,
                        struct dc_channel_info *out);
/*
 * The id of somebody whose user name this is (they are unique), as far as we have met them; NULL:
 * not known. Borrowed as above.
 */
const char *dc_inbound_user_named(const struct dc_inbound *in, const char *username);
void dc_inbound_stats(const struct dc_inbound *in, struct dc_gateway_stats *out);

#endif
