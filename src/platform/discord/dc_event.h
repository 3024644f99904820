/*
 * dc_event: reads a dispatch of the gateway, or a message fetched by REST, into the shape all
 * platforms share.
 *
 *     dc_event.c        messages, edits, deletions, reactions
 *     dc_interaction.c  slash commands, buttons and forms
 *     dc_describe.c     the text of a message as an agent reads it
 *
 * Pure: no network, no clock, no disk. A dispatch gives no event (joins, pins, links that unfold),
 * one, or several (a bulk deletion). Dedup keys:
 *
 *     message      its id
 *     edit         its id and the time of the edit
 *     deletion     its id and "delete"
 *     interaction  its id
 *     reaction     message, person, emoji, + or -, session and sequence of the dispatch: Discord
 *                  gives a reaction no time, and it may come back after it was removed
 */
#ifndef PLATFORM_DISCORD_DC_EVENT_H
#define PLATFORM_DISCORD_DC_EVENT_H

#include <jansson.h>
#include <stddef.h>

#include "base/arena.h"
#include "platform/discord/dc_cache.h"
#include "platform/discord/dc_gateway.h"
#include "road/incoming.h"

/* Pressing a button whose data begins so sends the rest as a message: "say:yes" sends "yes". */
#define DC_SAY "say:"

/* What reading depends on. */
struct dc_event_context {
        const char *self; /* the bot's user id; NULL: unknown, then nothing is a mention */
        const struct dc_cache *cache;
        bool role_mentions;
};

struct dc_event_file {
        const char *id, *url; /* url NULL: nothing to fetch */
        const char *error;    /* why it is missing; set while fetching */
};

/* Strings live as long as the event and the dispatch it was read from. */
struct dc_event {
        struct arena arena;
        const char *ignored; /* why there is nothing to store */
        struct incoming *items;
        size_t count;
        struct attachment *attachments; /* of items[0] */
        struct dc_event_file *files;    /* one for each attachment */
        size_t attachment_count;
        json_t *metadata; /* of every item */
};

/* The channel or thread of a dispatch, as Discord names it; NULL: none, or of no interest. */
const char *dc_event_channel(const char *type, const json_t *d);
/*
 * The user whose member object is missing from a dispatch, borrowed; NULL: it is there or not
 * needed. Messages fetched by REST never have one. A member of null means that nobody knows:
 * metadata.rolesUnknown.
 */
const char *dc_event_missing_member(const char *type, const json_t *d);
/* Always fills *out; release it. The dispatch's d must outlive it. */
void dc_event_read(struct dc_event *out, const struct dc_event_context *context,
                   const struct dc_dispatch *dispatch);
void dc_event_release(struct dc_event *event);

/* ---- for the files that read ---- */

struct dc_event_reader {
        struct dc_event *event;
        const struct dc_event_context *context;
        const struct dc_dispatch *dispatch;
};
/* Room for n items in this channel; NULL: it is not a channel. */
struct incoming *dc_event_add(struct dc_event_reader *r, const char *channel, const char *guild,
                              size_t n);
void dc_event_set_sender(struct dc_event_reader *r, const json_t *user, const json_t *member,
                         struct incoming *in);
/* Takes the value over. */
void dc_event_set_metadata(struct dc_event_reader *r, const char *key, json_t *value);
void dc_interaction_read(struct dc_event_reader *r, json_t *d);
/* The text of a message: tags become names, stickers, polls and embeds words. NULL: none. */
const char *dc_describe(struct dc_event_reader *r, const json_t *message);

#endif
