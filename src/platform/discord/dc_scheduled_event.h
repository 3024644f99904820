/*
 * dc_scheduled_event: Discord's scheduled events, which show the calendar's (road/calendar_sync.h).
 *
 *     dc_scheduled_event.c       reads what people do there: dispatches become calendar.event
 *     dc_scheduled_event_send.c  creates, changes and deletes them; recognises its own changes
 *     dc_scheduled_event_list.c  asks who is interested, after a new session
 *
 * Discord gives no revision number. Dedup keys of changes are session and sequence of the dispatch:
 * a resume repeats them, and a later change has others, even one back to an earlier state. What a
 * lost session missed is in the guild's list, which every new session gets with GUILD_CREATE.
 */
#ifndef PLATFORM_DISCORD_DC_SCHEDULED_EVENT_H
#define PLATFORM_DISCORD_DC_SCHEDULED_EVENT_H

#include <jansson.h>
#include <stdbool.h>

#include "platform/discord/dc_event.h"
#include "platform/discord/dc_intake.h"

#define DC_GUILD         "guild:"                  /* before the id: the channel of these events */
#define DC_PLACE_UNKNOWN "To be announced"         /* Discord needs a place */
#define DC_EVENT_MEMBERS "SCHEDULED_EVENT_MEMBERS" /* not Discord's: made by the list */
#define DC_EVENTS_MAX    100                       /* of a guild, by Discord */

/* ---- dc_scheduled_event.c: pure, as dc_event.h ---- */

/* GUILD_SCHEDULED_EVENT_CREATE, _UPDATE and _DELETE */
void dc_scheduled_event_read(struct dc_event_reader *r, json_t *d);
/* GUILD_SCHEDULED_EVENT_USER_ADD and _REMOVE */
void dc_scheduled_event_read_interest(struct dc_event_reader *r, json_t *d);
/* What dc_scheduled_event_list_of made of a GUILD_CREATE. */
void dc_scheduled_event_read_list(struct dc_event_reader *r, json_t *d);
/* DC_EVENT_MEMBERS: {"guild_id", "event_id", "stamp", "users": [{"id", "name"}], "complete"} */
void dc_scheduled_event_read_members(struct dc_event_reader *r, json_t *d);
/* {"guild_id", "guild_scheduled_events"} of a GUILD_CREATE; yours. NULL: it says nothing. */
json_t *dc_scheduled_event_list_of(const json_t *guild);
/* Is it to come, or under way? */
bool dc_scheduled_event_is_open(const json_t *event);

/* ---- dc_scheduled_event_list.c ---- */

struct dc_event_list;

struct dc_event_list *dc_event_list_new(struct dc_intake *in);
/* Before the intake. */
void dc_event_list_free(struct dc_event_list *l);
/* Asks for the members of each open event; dc_intake_members follows. */
void dc_event_list_want(struct dc_event_list *l, const char *guild, const json_t *events);
/* Somebody joined or left: an answer under way may be older than that. */
void dc_event_list_touch(struct dc_event_list *l, const char *event);
bool dc_event_list_is_idle(const struct dc_event_list *l);
/* Was one given up since the last call? */
bool dc_event_list_take_failed(struct dc_event_list *l);

#endif
