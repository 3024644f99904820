/*
 * play: what people do in the simulated Discord.
 *
 * Each function takes a request as the control API documents it, makes it happen, tells the bots
 * concerned and writes what came of it as members of an open object. People and direct messages are
 * made on first mention; ids may be texts or numbers, and wherever an id is expected a name will
 * do. Returns 0, or -1 with an error.
 */
#ifndef SIM_DISCORD_DC_PEOPLE_H
#define SIM_DISCORD_DC_PEOPLE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "sim/control.h"
#include "sim/discord/dc_world.h"

typedef control_fn control_fn;

/* play_send.c */
control_fn dc_people_send, dc_people_edit;
/* play_act.c */
control_fn dc_people_delete, dc_people_react, dc_people_unreact, dc_people_typing, dc_people_thread,
        dc_people_rename, dc_people_archive;
/* play_use.c */
control_fn dc_people_interact_press, dc_people_interact_command, dc_people_interact_modal;
/* play_people.c */
control_fn dc_admin_user, dc_admin_guild, dc_admin_channel, dc_admin_member, dc_admin_permissions,
        dc_admin_bot;

/* ---- for the play_*.c files (play.c) ---- */

/*
 * The text of a member that may be a text or a number; NULL: absent. Borrowed until the next call
 * with this room.
 */
const char *dc_people_text(const json_t *request, const char *key, char room[DC_ID_SIZE]);
/* "bot" by id, name or token; the first one when absent. NULL with an error. */
struct bot *dc_people_find_bot(struct world *w, const json_t *request, struct error *err);
/* "from", made when it does not exist; user 42 when absent. */
struct user *dc_people_find_user(struct world *w, const json_t *request);
/* "channel", or the direct messages of "from" with the bot. NULL with an error. */
struct channel *dc_people_find_channel(struct world *w, const json_t *request, struct error *err);
/* "message_id", wherever it is. NULL with an error. */
struct message *dc_people_find_message(struct world *w, const json_t *request, struct error *err);
/* Says this, with those whom it mentions by name: "<@ada>". */
void dc_people_set_text(struct world *w, struct message *m, const char *text);
/* "guild", or the first one. NULL with an error. */
struct guild *dc_people_find_guild(struct world *w, const json_t *request, struct error *err);

#endif
