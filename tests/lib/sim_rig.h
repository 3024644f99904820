/*
 * sim_rig: a simulator on the test's loop, with a client of its API and its control API.
 *
 *     struct sim_rig *r = sim_rig_new(headers);
 *
 *     r->world = tg_world_new(r->loop);
 *     ...
 *     sim_rig_serve(r, &r->world->base, routes, count, NULL);
 */
#ifndef TESTS_LIB_SIM_RIG_H
#define TESTS_LIB_SIM_RIG_H

#include <jansson.h>
#include <stdbool.h>

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "sim/world_base.h"

struct sim_rig {
        struct loop *loop;
        struct world *world;
        struct http_server *server;
        struct http_client *client;
        /* of the simulator */
        struct http_client *sim_client;
        struct http_route *routes;  /* freed with the rig; may be NULL */
        const char *const *headers; /* of every request */
};

struct sim_answer {
        bool done;
        int status; /* 0: none, the connection was cut */
        json_t *body;
        char remaining[32], bucket[40], scope[16]; /* X-RateLimit-... */
        char retry_after[16];
        struct http_call *call;
};

/* headers: as in struct http_request. */
struct sim_rig *sim_rig_new(const char *const *headers);
/* Serves the world, quiet and without rate limits. */
void sim_rig_serve(struct sim_rig *r, struct world_base *w, const struct http_route *routes,
                   size_t count, const struct http_server_hooks *hooks);
void sim_rig_free(struct sim_rig *r, void (*free_world)(struct world *));
/* method NULL: GET, or POST with a body. The caller frees the body of the answer. */
void sim_rig_start(struct sim_rig *r, struct sim_answer *a, const char *method, const char *path,
                   const char *body);
void sim_rig_await(struct sim_rig *r, struct sim_answer *a);
/* Both, with method NULL. */
struct sim_answer sim_rig_ask(struct sim_rig *r, const char *path, const char *body);
/* POST /sim/what, or GET without a request; the answer is yours. */
json_t *sim_rig_control(struct sim_rig *r, const char *what, const char *request);
/* The same, and frees the answer. */
void sim_rig_control_ok(struct sim_rig *r, const char *what, const char *request);

#endif
