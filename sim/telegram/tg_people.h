/*
 * play: what users do in the simulated Telegram.
 *
 * Each function takes a wish as the control API documents it, makes it happen, tells the bots
 * concerned and writes what came of it as members of an open object. Users and private chats are
 * made on first mention. Returns 0, or -1 with an error.
 */
#ifndef SIM_TELEGRAM_TG_PEOPLE_H
#define SIM_TELEGRAM_TG_PEOPLE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "sim/control.h"

typedef act_fn play_fn;

play_fn play_bot, play_user, play_chat, play_topic, play_member; /* play_people.c */
play_fn play_send, play_edit;                                    /* play_send.c */
play_fn play_react, play_press, play_block, play_migrate;        /* play_act.c */

/* ---- for the play_*.c files ---- */
struct bot;
struct chat;
struct message;
struct user;

/* "bot" by number, username or token; the first one when absent. */
struct bot *play_find_bot(struct world *w, const json_t *wish, struct error *err);
/* "from" as a number or an object; else the owner of the private chat; else user 42. */
struct user *play_find_user(struct world *w, const json_t *wish, const struct chat *chat);
/* "chat", or the private chat of "from". */
struct chat *play_find_chat(struct world *w, const json_t *wish, struct error *err);
/* "chat" and "message_id". */
struct message *play_find_message(struct world *w, const json_t *wish, struct error *err);
/*
 * Carries a message to every bot that may see it; kind is "message" or "edited_message". Returns to
 * how many.
 */
unsigned play_deliver(struct world *w, const struct message *m, bool edited);
/* A change of standing, told to the bot itself and to those who asked for such news. */
void play_tell_member(struct world *w, struct chat *chat, const struct user *by,
                      const struct user *who, int before, int after);

#endif
