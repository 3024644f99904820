/*
 * people: what people do in the simulated Discord, by the control API.
 *
 * Each function carries out one request, sends the events to the bots concerned and writes the
 * result as members of an open object. People and direct messages are made on first mention; ids
 * may be texts, numbers or names.
 */
#ifndef SIM_DISCORD_DC_PEOPLE_H
#define SIM_DISCORD_DC_PEOPLE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "sim/control.h"
#include "sim/discord/dc_world.h"

control_fn dc_people_send, dc_people_edit, dc_people_delete, dc_people_react, dc_people_unreact,
        dc_people_typing, dc_people_thread, dc_people_rename, dc_people_archive;
/* dc_people_events.c */
control_fn dc_people_event, dc_people_interest;
control_fn dc_people_interact_press, dc_people_interact_command, dc_people_interact_modal;
/* dc_admin.c: users, guilds, channels, permissions, bots */
control_fn dc_admin_user, dc_admin_guild, dc_admin_channel, dc_admin_member, dc_admin_permissions,
        dc_admin_bot;

/* ---- members of requests ---- */

/* A text or a number as text, in `room` or borrowed; NULL: absent. */
const char *dc_people_text(const json_t *request, const char *key, char room[DC_ID_SIZE]);
/* "bot" by id, name or token; default: the first. NULL with an error. */
struct bot *dc_people_find_bot(struct world *w, const json_t *request, struct error *err);
/* "from", made if missing; default: user 42. */
struct user *dc_people_find_user(struct world *w, const json_t *request);
/* "channel"; default: the direct messages of "from" with the bot. NULL with an error. */
struct channel *dc_people_find_channel(struct world *w, const json_t *request, struct error *err);
/* "message_id" in any channel. NULL with an error. */
struct message *dc_people_find_message(struct world *w, const json_t *request, struct error *err);
/* "guild"; default: the first. NULL with an error. */
struct guild *dc_people_find_guild(struct world *w, const json_t *request, struct error *err);

#endif
