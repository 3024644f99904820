/*
 * control: shared rows of the control API under /sim.
 *
 * Answers are {"ok":true,...} or {"ok":false,"error":"..."}. Each simulator has its own struct
 * world, which begins with a world_base.
 */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/http_server.h"

struct world;

#define CONTROL_MAX_REQUEST ((size_t)16 << 20)

/* Carries out a request and writes members of an open object. -1 with an error. */
typedef int control_fn(struct world *w, const json_t *request, struct buf *out, struct error *err);

struct control_action {
        control_fn *run;
};

/* Rows of a route table: the server's argument must be the world. */
#define CONTROL_POST(path, fn)                                                                 \
        {                                                                                      \
                "POST", path, control_run, CONTROL_MAX_REQUEST, &(const struct control_action) \
                {                                                                              \
                        fn                                                                     \
                }                                                                              \
        }
/* The rows of every simulator; `help`, an array, is the text of GET /sim. */
#define CONTROL_SHARED(help)                                           \
        { "GET", "/sim", control_help, 0, help },                      \
                { "GET", "/sim/messages", control_messages, 0, NULL }, \
                { "GET", "/sim/calls", control_calls, 0, NULL },       \
                { "GET", "/sim/faults", control_faults, 0, NULL },     \
                { "DELETE", "/sim/faults", control_faults, 0, NULL },  \
                CONTROL_POST("/sim/faults", control_add_fault),        \
                CONTROL_POST("/sim/settings", control_settings)

void control_run(struct http_exchange *x);
/*
 * For actions that also take several requests: a list, or one in "messages". Runs `one` for each
 * until one fails, and writes "results"; else runs it for the request.
 */
int control_run_each(struct world *w, const json_t *request, control_fn *one, struct buf *out,
                     struct error *err);
void control_help(struct http_exchange *x);
void control_messages(struct http_exchange *x);
/* ?valid=false: those that break the rules. */
void control_calls(struct http_exchange *x);
void control_faults(struct http_exchange *x);
/* "seed" seeds the random numbers. */
control_fn control_add_fault, control_settings;
/* For GET routes: open an object with "ok", then close and send it. */
struct buf control_begin(void);
void control_answer(struct http_exchange *x, struct buf *b);
void control_refuse(struct http_exchange *x, const struct error *err);
/* Writes members of GET /sim/state. */
void control_write_state(const struct world *w, struct buf *b);

#endif
