/*
 * dc_event: reads a dispatch of the gateway, or a message fetched by REST, into the shape all
 * platforms share.
 *
 * Pure: no network, no clock, no disk. A dispatch gives no event (joins, pins, link previews), one,
 * or several (a bulk deletion). Dedup keys:
 *
 *     message      its id
 *     edit         its id and the time of the edit
 *     deletion     its id and "delete"
 *     interaction  its id
 *     reaction     message, person, emoji, + or -, session and sequence of the dispatch: a reaction
 *                  has no time, and may return after it was removed
 *
 * Scheduled events: see dc_scheduled_event.h.
 */
#ifndef PLATFORM_DISCORD_DC_EVENT_H
#define PLATFORM_DISCORD_DC_EVENT_H

#include <jansson.h>
#include <stddef.h>

#include "platform/discord/dc_cache.h"
#include "platform/discord/dc_gateway.h"
#include "platform/intake.h"

/* The type of an interaction. */
enum dc_interaction {
        DC_INTERACTION_PING = 1,
        DC_INTERACTION_COMMAND = 2,
        DC_INTERACTION_COMPONENT = 3, /* a button or menu */
        DC_INTERACTION_AUTOCOMPLETE = 4,
        DC_INTERACTION_FORM = 5,
};

struct dc_event_context {
        const char *self; /* the bot's user id; NULL: unknown, then nothing is a mention */
        const struct dc_cache *cache;
        bool role_mentions;
};

/* The channel, thread or guild of a dispatch; NULL: none, or of no interest. */
const char *dc_event_channel(const char *type, const json_t *d);
bool dc_event_is_of_guild(const char *type);
/*
 * The user whose member is missing; NULL: none. A JSON null as member means unknown:
 * metadata.rolesUnknown.
 */
const char *dc_event_missing_member(const char *type, const json_t *d);
/* Does a message mention the bot, reply to it, or stand in a DM (or an unknown channel)? */
bool dc_event_is_to_us(const struct dc_event_context *context, const json_t *message);
/* Always fills *out, which borrows from d. */
void dc_event_read(struct intake_content *out, const struct dc_event_context *context,
                   const struct dc_dispatch *dispatch);

struct dc_event_reader {
        struct intake_content *content;
        const struct dc_event_context *context;
        const struct dc_dispatch *dispatch;
};
/* With names for tags, and stickers, polls and embeds in words. NULL: none. */
const char *dc_describe(struct dc_event_reader *r, const json_t *message);

#endif
