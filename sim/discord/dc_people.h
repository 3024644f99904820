/*
 * play: what people do in the simulated Discord.
 *
 * Each function takes a wish as the control API documents it, makes it happen, tells the bots
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

typedef act_fn dc_play_fn;

/* play_send.c */
dc_play_fn dc_play_send, dc_play_edit;
/* play_act.c */
dc_play_fn dc_play_delete, dc_play_react, dc_play_unreact, dc_play_typing, dc_play_thread,
        dc_play_rename, dc_play_archive;
/* play_use.c */
dc_play_fn dc_play_press, dc_play_command, dc_play_modal;
/* play_people.c */
dc_play_fn dc_play_user, dc_play_guild, dc_play_channel, dc_play_member, dc_play_permissions,
        dc_play_bot;

/* ---- for the play_*.c files (play.c) ---- */

/*
 * The text of a member that may be a text or a number; NULL: absent. Borrowed until the next call
 * with this room.
 */
const char *dc_play_text(const json_t *wish, const char *key, char room[DC_ID_SIZE]);
/* "bot" by id, name or token; the first one when absent. NULL with an error. */
struct bot *dc_play_find_bot(struct world *w, const json_t *wish, struct error *err);
/* "from", made when it does not exist; user 42 when absent. */
struct user *dc_play_find_user(struct world *w, const json_t *wish);
/* "channel", or the direct messages of "from" with the bot. NULL with an error. */
struct channel *dc_play_find_channel(struct world *w, const json_t *wish, struct error *err);
/* "message_id", wherever it is. NULL with an error. */
struct message *dc_play_find_message(struct world *w, const json_t *wish, struct error *err);
/* Says this, with those whom it mentions by name: "<@ada>". */
void dc_play_set_text(struct world *w, struct message *m, const char *text);
/* "guild", or the first one. NULL with an error. */
struct guild *dc_play_find_guild(struct world *w, const json_t *wish, struct error *err);

#endif
