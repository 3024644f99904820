/*
 * dc_event: a dispatch of the gateway, or a message read by REST, in the shape all platforms share.
 *
 * Pure: no network, no clock, no disk. One dispatch gives no event (joins, pins, somebody's
 * pictures unfolding), one, or several (a bulk delete). The keys are made so that the same
 * happening told again is the same event:
 *
 *     a message    its id                     a deletion    its id and "delete"
 *     an edit      its id and time of edit    a reaction    message, person, emoji, + or -, and the
 *                  session's number of the dispatch:
 *     an interaction    its id                              Discord gives a reaction no time, and
 *                       one may come back after it went
 */
#ifndef PLATFORM_DISCORD_DC_EVENT_H
#define PLATFORM_DISCORD_DC_EVENT_H

#include <jansson.h>
#include <stddef.h>

#include "base/arena.h"
#include "platform/discord/dc_cache.h"
#include "platform/discord/dc_gateway.h"
#include "road/incoming.h"

/*
 * Data of a button that begins like this is said by whoever presses it: "say:yes" is the message
 * "yes".
 */
#define DC_SAY "say:"

/* What a reader knows of us and the world. */
struct dc_reader {
        const char *self; /* the bot's user id; NULL: not known, then nothing is a mention */
        const struct dc_cache *cache;
        bool role_mentions;
};

/* Where Discord has an attachment. */
struct dc_media {
        const char *id, *url;
        const char *error; /* why we do not have it; set while fetching */
};

/* What one dispatch says. Strings live as long as the item and the dispatch it was read from. */
struct dc_item {
        struct arena arena;
        const char *ignored; /* why there is no event */
        struct incoming *events;
        size_t event_count;
        struct attachment *attachments; /* of events[0] */
        struct dc_media *files;         /* one for each; url NULL: nothing to fetch */
        size_t attachment_count;
        json_t *metadata; /* of every event */
};

/*
 * The channel or thread it happened in, as Discord names it; NULL: nowhere, or it is of no
 * interest. Borrowed.
 */
const char *dc_event_place(const char *type, const json_t *d);
/*
 * Whose member it should tell and does not: a person's id, borrowed; NULL: it tells, or nobody
 * needs it. Messages read by REST never do. A member of null says that nobody knows:
 * metadata.rolesUnknown.
 */
const char *dc_event_stranger(const char *type, const json_t *d);
/* Always fills *out (release it); the dispatch is borrowed and its d must outlive it. */
void dc_item_read(struct dc_item *out, const struct dc_reader *reader, const struct dc_dispatch *e);
void dc_item_release(struct dc_item *item);

/* ---- for the files that read ---- */

struct dc_reading {
        struct dc_item *item;
        const struct dc_reader *by;
        const struct dc_dispatch *e;
};
/* Room for n events, all in this place. NULL when the place makes no sense. */
struct incoming *dc_events_new(struct dc_reading *r, const char *channel, const char *guild,
                               size_t n);
void dc_read_person(struct dc_reading *r, const json_t *user, const json_t *member,
                    struct incoming *in);
void dc_note(struct dc_reading *r, const char *key, json_t *value);
/* dc_interaction.c */
void dc_read_interaction(struct dc_reading *r, json_t *d);
/* dc_words.c: the text as an agent should read it, from the arena; NULL: nothing is said. */
const char *dc_words(struct dc_reading *r, const json_t *message);

#endif
