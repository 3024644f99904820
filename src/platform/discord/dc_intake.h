/*
 * dc_intake: the path of Discord's events to the inbox.
 *
 *     gateway ──► which channel, which member? ──► read ──► intake: order, store
 *     post    ──┘ (dc_lookup)                      (dc_event)        │
 *     catch-up ─┘                                   acknowledged after the commit
 *
 * Events of one channel are stored in order; an interaction does not wait, because it must be
 * acknowledged within three seconds. REST calls go through the owner's `get` hook.
 */
#ifndef PLATFORM_DISCORD_DC_INTAKE_H
#define PLATFORM_DISCORD_DC_INTAKE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/discord/dc_cache.h"
#include "platform/discord/dc_gateway.h"
#include "platform/discord/dc_rest.h"
#include "platform/intake.h"
#include "platform/platform.h"

struct dc_intake;

/* Milliseconds; 0: the default in the comment. Tests shorten them. */
struct dc_catchup_times {
        int64_t wait_ms;  /* 250: the first wait while Discord is unavailable; doubles */
        int64_t hold_ms;  /* 30000: live events of a channel wait no longer for the missed ones */
        int64_t done_ms;  /* 3000: after the last sign of something to read, catch-up is over */
        int64_t again_ms; /* 300000: the next attempt after giving up */
        int64_t introduce_ms; /* 300000: after a gap, guilds and DMs that appear later are new */
};

struct dc_intake_options {
        struct adapter *adapter;
        struct dc_gateway_options gateway; /* without loop, http, name and dir */
        bool role_mentions;                /* mentions of the bot's roles count */
        int64_t catchup_seconds;           /* 0: no catch-up */
        int64_t catchup_messages;          /* of each channel */
        struct dc_catchup_times catchup_times;
};

struct dc_intake_hooks {
        void *ctx;
        /* Answers later, or never after dc_intake_free. */
        void (*get)(void *ctx, const struct dc_get *q, dc_answer_fn *done, void *arg);
        /* The same for the DM of a user, opened if need be. */
        void (*open_dm)(void *ctx, const char *user, dc_answer_fn *done, void *arg);
        /* As in struct dc_gateway_handlers. */
        void (*ready)(void *ctx, const struct dc_gateway_ready *ready);
        void (*state)(void *ctx, enum dc_gateway_state state, const char *why);
        /* An interaction of the gateway is stored: acknowledge it. */
        void (*stored)(void *ctx, const json_t *interaction);
        /* The DM channel of a person. May be NULL. */
        void (*dm)(void *ctx, const char *user, const char *channel);
        /* A message of the bot itself. May be NULL. */
        void (*own)(void *ctx, const json_t *message);
        /* Is this change of a scheduled event the bot's own? May be NULL. */
        bool (*wrote)(void *ctx, const char *type, const json_t *event);
        /* Does the guild have scheduled events now? May be NULL. */
        void (*scheduled)(void *ctx, const char *guild, bool any);
        /* Did it have any when last heard of? NULL: nobody knows. */
        bool (*was_scheduled)(void *ctx, const char *guild);
};

struct dc_intake *dc_intake_new(const struct dc_intake_options *options,
                                const struct dc_intake_hooks *hooks);
/* Open posts are reported as not stored. */
void dc_intake_free(struct dc_intake *in);
/* A verified interaction of the HTTP endpoint. stored(arg, true) after the commit. */
void dc_intake_post(struct dc_intake *in, const json_t *interaction,
                    void (*stored)(void *arg, bool ok), void *arg);

bool dc_intake_channel(const struct dc_intake *in, const char *channel,
                       struct dc_channel_info *out);
const char *dc_intake_user_named(const struct dc_intake *in, const char *username);

/* ---- for dc_lookup.c and the files of dc_catchup.h ---- */

struct dc_intake {
        struct dc_intake_options o; /* strings of the gateway are the caller's */
        struct dc_intake_hooks hooks;
        struct intake window;
        struct dc_cache *cache;
        struct dc_lookup *lookup;
        struct dc_catchup *catchup;
        struct dc_event_list *events;
        struct dc_gateway *gateway; /* NULL: the intake closes */
        char *self;                 /* the bot's user id; NULL: unknown */
        size_t posts;
};

/* A missed message, oldest first: goes before held events of its channel. */
void dc_intake_missed(struct dc_intake *in, const char *channel, json_t *message);
/* Who is interested in a scheduled event, see DC_EVENT_MEMBERS. */
void dc_intake_members(struct dc_intake *in, json_t *members);
/* A gap has become known: DMs that were replayed before wait for what is missing in theirs. */
void dc_intake_want_dms(struct dc_intake *in);
/* A lookup has ended. known: it is cached, or passes for a plain channel. */
void dc_intake_channel_found(struct dc_intake *in, const char *channel, bool known);
/* The same; JSON null: the member is unknown. */
void dc_intake_member_found(struct dc_intake *in, const char *guild, const char *user,
                            json_t *member);

#endif
