/*
 * play: what users do in the simulated Telegram.
 *
 * Each function takes a request as the control API documents it, makes it happen, tells the bots
 * concerned and writes what came of it as members of an open object. Users and private chats are
 * made on first mention. Returns 0, or -1 with an error.
 */
#ifndef SIM_TELEGRAM_TG_PEOPLE_H
#define SIM_TELEGRAM_TG_PEOPLE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "sim/control.h"

typedef control_fn control_fn;

control_fn tg_admin_bot, tg_admin_user, tg_admin_chat, tg_admin_topic,
        tg_admin_member;                   /* play_people.c */
control_fn tg_people_send, tg_people_edit; /* tg_people_send.c */
control_fn tg_people_react, tg_people_press, tg_people_block, tg_people_migrate; /* play_act.c */

/* ---- for the play_*.c files ---- */
struct bot;
struct chat;
struct message;
struct user;

/* "bot" by number, username or token; the first one when absent. */
struct bot *tg_people_find_bot(struct world *w, const json_t *request, struct error *err);
/* "from" as a number or an object; else the owner of the private chat; else user 42. */
struct user *tg_people_find_user(struct world *w, const json_t *request, const struct chat *chat);
/* "chat", or the private chat of "from". */
struct chat *tg_people_find_chat(struct world *w, const json_t *request, struct error *err);
/* "chat" and "message_id". */
struct message *tg_people_find_message(struct world *w, const json_t *request, struct error *err);
/*
 * Carries a message to every bot that may see it; kind is "message" or "edited_message". Returns to
 * how many.
 */
unsigned tg_people_deliver(struct world *w, const struct message *m, bool edited);
/* A change of standing, told to the bot itself and to those who asked for such news. */
void tg_people_deliver_member(struct world *w, struct chat *chat, const struct user *by,
                              const struct user *who, int before, int after);

#endif
