/*
 * people: what users do in the simulated Telegram, by the control API.
 *
 * Each function carries out one request, sends the updates to the bots concerned and writes the
 * result as members of an open object. Users and private chats are made on first mention.
 */
#ifndef SIM_TELEGRAM_TG_PEOPLE_H
#define SIM_TELEGRAM_TG_PEOPLE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "sim/control.h"

struct bot;
struct chat;
struct message;
struct user;

control_fn tg_people_send, tg_people_edit, tg_people_react, tg_people_press, tg_people_block,
        tg_people_migrate;
/* tg_admin.c */
control_fn tg_admin_bot, tg_admin_user, tg_admin_chat, tg_admin_topic, tg_admin_member;

/* ---- members of requests; NULL with an error ---- */

/* "bot" by id, username or token; default: the first. */
struct bot *tg_people_find_bot(struct world *w, const json_t *request, struct error *err);
/* "from" as a number or an object; default: the user of the private chat, or user 42. */
struct user *tg_people_find_user(struct world *w, const json_t *request, const struct chat *chat);
/* "chat"; default: the private chat of "from". */
struct chat *tg_people_find_chat(struct world *w, const json_t *request, struct error *err);
/* "chat" and "message_id". */
struct message *tg_people_find_message(struct world *w, const json_t *request, struct error *err);

/* Sends a new or edited message to the bots that may see it; returns how many. */
unsigned tg_people_deliver(const struct message *m, bool edited);
/* A service message, delivered to bots, also the one that acted; extra is its member as JSON. */
struct message *tg_people_announce(struct world *w, struct chat *c, struct user *by, char *extra,
                                   int64_t thread);
#define TG_TOPIC_COLOR 7322096
/* The message about it, whose id is the topic's. */
struct message *tg_people_create_topic(struct world *w, struct chat *c, struct user *by,
                                       const char *name, int64_t color);
/* Sends a change of status to the bot concerned and to administrators that want it. */
void tg_people_deliver_member(struct world *w, struct chat *chat, const struct user *by,
                              const struct user *who, int before, int after);

#endif
