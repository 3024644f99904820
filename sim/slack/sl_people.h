/*
 * people: what people do in the simulated Slack, by the control API.
 *
 * Each function carries out one request, sends the events to the apps concerned and writes the
 * result as members of an open object. People and direct messages are made on first mention; ids
 * may be texts, numbers (1000 is U1000, called user1000) or names.
 */
#ifndef SIM_SLACK_SL_PEOPLE_H
#define SIM_SLACK_SL_PEOPLE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "sim/control.h"
#include "sim/slack/sl_world.h"

control_fn sl_people_send, sl_people_edit, sl_people_delete, sl_people_react, sl_people_unreact;
/* sl_people_places.c: channels and the app's own places */
control_fn sl_people_places_member, sl_people_places_rename, sl_people_places_assistant,
        sl_people_places_home, sl_people_places_context;
/* sl_link_control.c: connections, request URLs, the installation */
control_fn sl_link_control, sl_link_control_endpoint;
/* sl_people_interact.c */
control_fn sl_people_interact_press, sl_people_interact_command, sl_people_interact_modal;

/* ---- members of requests ---- */

/* "app" by id, handle or token; default: the first. NULL with an error. */
struct slack_app *sl_people_find_app(struct slack_world *w, const json_t *request,
                                     struct error *err);
/* "from", made if missing; default: ada. NULL with an error. */
struct slack_user *sl_people_find_user(struct slack_world *w, const json_t *request,
                                       struct error *err);
/*
 * "channel"; or the group of "from", "users" and the app; default: the direct messages of "from"
 * with the app. NULL with an error.
 */
struct slack_channel *sl_people_find_channel(struct slack_world *w, const json_t *request,
                                             struct error *err);
/* "message_id", a ts, in "channel" or any. NULL with an error. */
struct slack_message *sl_people_find_message(struct slack_world *w, const json_t *request,
                                             struct error *err);

/* The app acknowledged a press, a command or a form; response is borrowed, NULL: none. */
void sl_people_answered(struct slack_app *a, const json_t *payload, const json_t *response);

#endif
