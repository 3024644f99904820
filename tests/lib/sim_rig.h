/*
 * sim_rig: the simulated Discord on the test's loop, with clients for its API and gateway.
 */
#ifndef TESTS_LIB_SIM_RIG_H
#define TESTS_LIB_SIM_RIG_H

#include <jansson.h>
#include <stdbool.h>

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/websocket.h"
#include "sim/discord/dc_world.h"

#define TOKEN   "OTAw.sim.test" /* of the bot 900 */
#define LAB     "1000"
#define GENERAL "1001"

struct sim_rig {
        struct loop *loop;
        struct world *world;
        struct http_server *server;
        struct http_route *routes;
        struct http_client *client;
};

struct sim_answer {
        bool done;
        int status;
        json_t *body;
        enum error_kind kind;
        char retry_after[32], remaining[32], bucket[40], scope[16];
        struct http_call *call;
};

int sim_rig_setup(void **state);
int sim_rig_teardown(void **state);
/* method NULL: GET, or POST with a body. The caller frees the body of the answer. */
void sim_rig_start(struct sim_rig *r, struct sim_answer *a, const char *method, const char *path,
                   const char *body);
void sim_rig_await(struct sim_rig *r, struct sim_answer *a);
/* Calls the API ("/channels/..") and expects this status. The answer is yours. */
json_t *sim_rig_call(struct sim_rig *r, const char *method, const char *path, const char *body,
                     int status);
/* The same, and expects this error code. */
void sim_rig_refused(struct sim_rig *r, const char *method, const char *path, const char *body,
                     int status, int code);
/* POST /sim/what, or GET without a request; the answer is yours. */
json_t *sim_rig_control(struct sim_rig *r, const char *what, const char *request);
/* The same, and frees the answer. */
void sim_rig_control_ok(struct sim_rig *r, const char *what, const char *request);

/* ---- the gateway ---- */

struct sim_link {
        struct sim_rig *rig;
        struct websocket *ws;
        json_t *frames[256]; /* received, not yet read */
        size_t count;
        bool closed, opened;
        int code; /* of the close */
        struct unpack *unpack;
};

/* compress: "", "zlib-stream" or "zstd-stream". */
void sim_rig_connect(struct sim_rig *r, struct sim_link *l, const char *path, const char *compress);
void sim_rig_send(struct sim_link *l, const char *frame);
/* The next frame; yours. */
json_t *sim_rig_receive(struct sim_link *l);
/* The next event of this name, skipping others; its d is yours. */
json_t *sim_rig_event(struct sim_link *l, const char *name);
/* Waits for the close; returns its code. */
int sim_rig_close_code(struct sim_link *l);
void sim_rig_disconnect(struct sim_link *l);
/* Connects, identifies with these intents, returns READY (yours). */
json_t *sim_rig_identify(struct sim_rig *r, struct sim_link *l, unsigned intents);

#endif
