/*
 * sim_dc: the simulated Discord on a sim_rig, with clients of its API and its gateway.
 */
#ifndef TESTS_LIB_SIM_DC_H
#define TESTS_LIB_SIM_DC_H

#include <jansson.h>
#include <stdbool.h>

#include "net/websocket.h"
#include "sim/discord/dc_world.h"
#include "sim_rig.h"

#define TOKEN   "OTAw.sim.test" /* of the bot 900 */
#define LAB     "1000"
#define GENERAL "1001"

/* cmocka fixtures: *state is a struct sim_rig. */
int sim_dc_setup(void **state);
int sim_dc_teardown(void **state);
/* Calls the API ("/channels/..") and expects this status. The answer is yours. */
json_t *sim_dc_call(struct sim_rig *r, const char *method, const char *path, const char *body,
                    int status);
/* The same, and expects this error code. */
void sim_dc_refused(struct sim_rig *r, const char *method, const char *path, const char *body,
                    int status, int code);

/* ---- the gateway ---- */

struct sim_dc_link {
        struct sim_rig *rig;
        struct websocket *ws;
        json_t *frames[256]; /* received, not yet read */
        size_t count;
        bool closed;
        int code; /* of the close */
        struct unpack *unpack;
};

/* compress: "", "zlib-stream" or "zstd-stream". */
void sim_dc_connect(struct sim_rig *r, struct sim_dc_link *l, const char *path,
                    const char *compress);
void sim_dc_send(struct sim_dc_link *l, const char *frame);
/* The next frame; yours. */
json_t *sim_dc_receive(struct sim_dc_link *l);
/* The next event of this name, skipping others; its d is yours. */
json_t *sim_dc_event(struct sim_dc_link *l, const char *name);
/* Waits for the close; returns its code. */
int sim_dc_close_code(struct sim_dc_link *l);
void sim_dc_disconnect(struct sim_dc_link *l);
/* Connects, identifies with these intents, returns READY (yours). */
json_t *sim_dc_identify(struct sim_rig *r, struct sim_dc_link *l, unsigned intents);

#endif
