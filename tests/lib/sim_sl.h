/*
 * sim_sl: the simulated Slack on a sim_rig, with clients of its Web API and of Socket Mode.
 */
#ifndef TESTS_LIB_SIM_SL_H
#define TESTS_LIB_SIM_SL_H

#include <jansson.h>
#include <stdbool.h>

#include "net/websocket.h"
#include "sim/slack/sl_world.h"
#include "sim_rig.h"

#define SL_TOKEN   "xoxb-test" /* of the app dragoman */
#define SL_ADA     "U0ADA"
#define SL_BOT     "U0DRAGOMAN"
#define SL_GENERAL "C0GENERAL"

/* cmocka fixtures: *state is a struct sim_rig. */
int sim_sl_setup(void **state);
int sim_sl_teardown(void **state);
struct slack_world *sim_sl_world(const struct sim_rig *r);

/* ---- the Web API ---- */

/* JSON to the method, or a GET without a body ("users.info?user=U0ADA"). The answer is yours. */
json_t *sim_sl_call(struct sim_rig *r, const char *method, const char *body);
/* The same, and expects this error. */
void sim_sl_refused(struct sim_rig *r, const char *method, const char *body, const char *error);
/* Expects it to succeed, and frees the answer. */
void sim_sl_ok(struct sim_rig *r, const char *method, const char *body);
/* The app posts to #general; out gets the ts. */
void sim_sl_post(struct sim_rig *r, const char *text, char out[SL_TS_SIZE]);
/* Entries in GET /sim/messages of this kind. */
size_t sim_sl_count(struct sim_rig *r, const char *kind);

/* ---- Socket Mode ---- */

struct sim_sl_link {
        struct sim_rig *rig;
        struct websocket *ws;
        json_t *frames[64]; /* received, not yet read */
        size_t count;
        bool closed;
        int code; /* of the close */
};

/* Connects with a ticket; more is appended to its URL. Reads nothing. */
void sim_sl_connect(struct sim_rig *r, struct sim_sl_link *l, const char *more);
/* Connects and reads hello. */
void sim_sl_hello(struct sim_rig *r, struct sim_sl_link *l);
/* The next frame; yours. */
json_t *sim_sl_receive(struct sim_sl_link *l);
/* The next envelope with an event of this type, skipping others; acknowledged if `ack`. Yours. */
json_t *sim_sl_event(struct sim_sl_link *l, const char *type, bool ack);
/* Sends {"envelope_id":..}, with a payload if it is not NULL. */
void sim_sl_ack(struct sim_sl_link *l, const json_t *envelope, const char *payload);
void sim_sl_send(struct sim_sl_link *l, const char *frame);
/* Waits for the close; returns its code. */
int sim_sl_close_code(struct sim_sl_link *l);
void sim_sl_disconnect(struct sim_sl_link *l);
/* The next entry of this kind in GET /sim/links after *seen, which it moves; yours. */
json_t *sim_sl_entry(struct sim_rig *r, const char *kind, int64_t *seen);

#endif
