/*
 * acts: the control API's rows: a wish in, what came of it out.
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

#define ACTS_MAX_WISH ((size_t)16 << 20)

/* Writes members of an open object. Returns 0, or -1 with an error. */
typedef int act_fn(struct world *w, const json_t *wish, struct buf *out, struct error *err);

struct act {
        act_fn *play;
};

/* Where a world keeps what a row looks at. */
struct act_look {
        size_t at;      /* of a struct journal *, or of a struct faults */
        size_t invalid; /* of the journal for ?valid=false; 0: there is none */
};

/* Rows of a route table: the server's argument must be the world. */
#define ACT(path, fn)                                                      \
        {                                                                  \
                "POST", path, acts_run, ACTS_MAX_WISH, &(const struct act) \
                {                                                          \
                        fn                                                 \
                }                                                          \
        }

#define ACT_LOOK(method, path, run, ...)                       \
        {                                                      \
                method, path, run, 0, &(const struct act_look) \
                {                                              \
                        __VA_ARGS__                            \
                }                                              \
        }
#define ACT_JOURNAL(path, member) \
        ACT_LOOK("GET", path, acts_journal, offsetof(struct world, member))
#define ACT_CALLS(path, member, bad)                                        \
        ACT_LOOK("GET", path, acts_journal, offsetof(struct world, member), \
                 offsetof(struct world, bad))
/* GET and DELETE of /sim/faults. */
#define ACT_FAULTS(member)                                                           \
        ACT_LOOK("GET", "/sim/faults", acts_faults, offsetof(struct world, member)), \
                ACT_LOOK("DELETE", "/sim/faults", acts_faults, offsetof(struct world, member))
/* GET /sim: `text` is an array. */
#define ACT_HELP(text)                            \
        {                                         \
                "GET", "/sim", acts_help, 0, text \
        }

void acts_run(struct http_exchange *x);
void acts_journal(struct http_exchange *x);
void acts_faults(struct http_exchange *x);
void acts_help(struct http_exchange *x);
/* For routes that only look: an open object with "ok", then its end. */
struct buf acts_begin(void);
void acts_answer(struct http_exchange *x, struct buf *b);
void acts_refuse(struct http_exchange *x, const struct error *err);
/* POST /sim/faults, which may also seed the dice. */
int acts_add_fault(struct faults *f, const json_t *wish, struct buf *out, struct error *err);

#endif
