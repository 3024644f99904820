/*
 * acts: the control API's rows: a wish in, what came of it out.
 *
 * Answers are {"ok":true,...} or {"ok":false,"error":"..."}. Each simulator has its own struct world.
 */
#ifndef SIM_ACTS_H
#define SIM_ACTS_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/http_server.h"
#include "sim/faults.h"

struct world;

#define ACTS_MAX_WISH ((size_t)16 << 20)

/* Writes members of an open object. Returns 0, or -1 with an error. */
typedef int act_fn(struct world *w, const json_t *wish, struct buf *out, struct error *err);

struct act {
        act_fn *play;
};

/* A row of a route table: the server's argument must be the world. */
#define ACT(path, fn)                                                      \
        {                                                                  \
                "POST", path, acts_run, ACTS_MAX_WISH, &(const struct act) \
                {                                                          \
                        fn                                                 \
                }                                                          \
        }

void acts_run(struct http_exchange *x);
/* For routes that only look: an open object with "ok", then its end. */
struct buf acts_begin(void);
void acts_answer(struct http_exchange *x, struct buf *b);
void acts_refuse(struct http_exchange *x, const struct error *err);
/* POST, and GET or DELETE, of /sim/faults; POST may also seed the dice. */
int acts_add_fault(struct faults *f, const json_t *wish, struct buf *out, struct error *err);
void acts_show_faults(struct faults *f, struct http_exchange *x);
/* A number of a wish. */
double acts_number(const json_t *wish, const char *key, double fallback);

#endif
