/*
 * sl_event: reads what Slack sends (an event_callback, an interaction, a slash command, a message
 * of a channel's history) into the shape all platforms share.
 *
 * Pure: no network, no clock, no disk; names come from the cache. An arrival gives no event
 * (`ignored` says why) or one. Dedup keys:
 *
 *     message      CHANNEL:TS, of app_mention as well; and client:ID, the client_msg_id
 *     edit         edit:CHANNEL:TS:EDITED_TS
 *     deletion     delete:CHANNEL:TS
 *     notice       CHANNEL:TS: joins, topics and the like are "custom.slack.SUBTYPE"
 *     reaction     reaction:EVENT_ID
 *     command      command:TRIGGER_ID
 *     button       action:CHANNEL:TS:USER:ACTION_TS
 *     form         form:VIEW_ID
 *
 * A command has no message: its id is its key, by which sl_interaction_url finds the response_url.
 * The source of an attachment is a URL of Slack, or "file:ID" when only files.info knows it.
 */
#ifndef PLATFORM_SLACK_SL_EVENT_H
#define PLATFORM_SLACK_SL_EVENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "platform/intake.h"
#include "platform/slack/slack.h"

#define SL_FILE_SOURCE "file:"
#define SL_COMMAND_KEY "command:"
/* The data of a button that asks for a text before it says something, see adapter_button_text. */
#define SL_ASK_PREFIX "ask:"

#define SL_USERS_MAX  8 /* looked up for one event */
#define SL_ID_SIZE    32

struct sl_event_context {
        const char *user, *bot, *team; /* ours; NULL: unknown */
        struct sl_cache *cache;
        bool reply_in_thread; /* a mention in a channel is answered in a thread */
};

struct sl_event_reader {
        struct intake_content *content;
        const struct sl_event_context *context;
        const json_t *payload;
        int retry; /* how often Slack tried before */
};

/* ---- sl_event.c ---- */

/* Always fills *out, which borrows from the payload. */
void sl_event_read(struct intake_content *out, const struct sl_event_context *context,
                   enum sl_arrival kind, json_t *payload, int retry);
/* The channel that an arrival belongs to; NULL: none, or of no interest. */
const char *sl_event_channel(enum sl_arrival kind, const json_t *payload);
/* Ids of the users whose names are needed, borrowed; returns their number. */
size_t sl_event_users(enum sl_arrival kind, const json_t *payload,
                      char users[SL_USERS_MAX][SL_ID_SIZE]);

/* ---- for sl_interaction.c ---- */

void sl_event_ignore(struct sl_event_reader *r, const char *why);
/* One event of this channel; NULL: ignored, it is not a channel. */
struct incoming *sl_event_add(struct sl_event_reader *r, const char *channel);
/* Names and roles of the sender come from the cache, else from `name`, which may be NULL. */
void sl_event_set_sender(struct sl_event_reader *r, const char *user, const char *name,
                         struct incoming *in);

/* ---- sl_interaction.c ---- */

/* NULL: it has none, as a form. */
const char *sl_interaction_channel(const json_t *payload);
void sl_interaction_read(struct sl_event_reader *r);
void sl_interaction_read_command(struct sl_event_reader *r);

/* ---- sl_text.c ---- */

bool sl_id_valid(const char *id); /* of a channel, user, bot, team or file */
/* Does the text mention this user? */
bool sl_text_mentions(const char *text, const char *user);
/*
 * Text as a person reads it: unescaped, with names for tags, without mentions of ourselves, with
 * blocks if there is no text, and attachments in words. NULL: none.
 */
const char *sl_text_read(struct arena *arena, const struct sl_event_context *context,
                         const json_t *message);

#endif
