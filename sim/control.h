/*
 * control: shared rows of the control API under /sim.
 *
 * Answers are {"ok":true,...} or {"ok":false,"error":"..."}. Each simulator has its own struct
 * world.
 */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/http_server.h"
#include "sim/faults.h"
#include "sim/journal.h"

struct world;

#define CONTROL_MAX_REQUEST ((size_t)16 << 20)

/* Carries out a request and writes members of an open object. -1 with an error. */
typedef int control_fn(struct world *w, const json_t *request, struct buf *out, struct error *err);

struct control_action {
        control_fn *run;
};

/* Offsets in the world of what a row reads. */
struct control_view {
        size_t at;      /* of a struct journal *, or of a struct faults */
        size_t invalid; /* of the journal for ?valid=false; 0: none */
};

/* Rows of a route table: the server's argument must be the world. */
#define CONTROL_POST(path, fn)                                                                 \
        {                                                                                      \
                "POST", path, control_run, CONTROL_MAX_REQUEST, &(const struct control_action) \
                {                                                                              \
                        fn                                                                     \
                }                                                                              \
        }

#define CONTROL_VIEW(method, path, run, ...)                       \
        {                                                          \
                method, path, run, 0, &(const struct control_view) \
                {                                                  \
                        __VA_ARGS__                                \
                }                                                  \
        }
#define CONTROL_JOURNAL(path, member) \
        CONTROL_VIEW("GET", path, control_journal, offsetof(struct world, member))
#define CONTROL_CALLS(path, member, bad)                                           \
        CONTROL_VIEW("GET", path, control_journal, offsetof(struct world, member), \
                     offsetof(struct world, bad))
/* GET and DELETE of /sim/faults. */
#define CONTROL_FAULTS(member)                                                              \
        CONTROL_VIEW("GET", "/sim/faults", control_faults, offsetof(struct world, member)), \
                CONTROL_VIEW("DELETE", "/sim/faults", control_faults,                       \
                             offsetof(struct world, member))
/* GET /sim: `text` is an array. */
#define CONTROL_HELP(text)                           \
        {                                            \
                "GET", "/sim", control_help, 0, text \
        }

void control_run(struct http_exchange *x);
void control_journal(struct http_exchange *x);
void control_faults(struct http_exchange *x);
void control_help(struct http_exchange *x);
/* For GET routes: open an object with "ok", then close and send it. */
struct buf control_begin(void);
void control_answer(struct http_exchange *x, struct buf *b);
void control_refuse(struct http_exchange *x, const struct error *err);
/* POST /sim/faults; "seed" seeds the random numbers. */
int control_add_fault(struct faults *f, const json_t *request, struct buf *out, struct error *err);

#endif
