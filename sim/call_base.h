/*
 * call_base: a bot's call of the API until it is answered: its parameters, the faults that fire on
 * it, its entry in the journals, and its answer, at once or late.
 *
 * It is the first member of each simulator's struct call.
 */
#ifndef SIM_CALL_BASE_H
#define SIM_CALL_BASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/http_server.h"
#include "net/loop.h"
#include "sim/world_base.h"

/* Longer arguments are left out of the journals. */
#define CALL_BASE_MAX_ARGS 16384

struct call;

/* What a simulator does with its calls. */
struct call_ops {
        void (*record)(const struct call *c, struct journal *j);
        /* Replaces the answer with an error of this status. */
        void (*fail_late)(struct call *c, int status);
        /* Sends the answer, or cuts the connection if c->base.cut; frees the call. */
        void (*deliver)(struct call *c);
};

struct call_base {
        const struct call_ops *ops;
        struct world_base *world;
        bool valid; /* as the description of the API wants it */
        uint64_t started_ns;
        bool cut;        /* no answer */
        int late_status; /* instead of the answer */
        int64_t slow_ms;
        struct timer *delay;
        LIST_ENTRY(call_base) next;
};

void call_base_init(struct call_base *c, struct world_base *w, const struct call_ops *ops);
void call_base_release(struct call_base *c);
/*
 * Fires the faults of this method. Returns one that ends the call now: FAULT_CUT_BEFORE,
 * FAULT_ERROR or FAULT_FLOOD. NULL: carry it out.
 */
const struct fault *call_base_fault(struct call_base *c, const char *method);
/* Counts and records the call, whose answer is written, and delivers it. */
void call_base_finish(struct call_base *c);
/* Calls run with the call after ms; a second time replaces the first. */
void call_base_later(struct call_base *c, int64_t ms, void (*run)(void *call));
/* Add the query of the request, or a form (-1: malformed), to args, as texts. */
void call_base_read_query(const struct http_exchange *x, json_t *args);
int call_base_read_form(const char *body, size_t n, json_t *args);
/* Microseconds since its start. */
int64_t call_base_micros(const struct call_base *c);
/* Cuts all unanswered calls. */
void call_base_cut_all(struct world_base *w);

#endif
