/*
 * call: one request of a bot to the HTTP API, from its body to its answer.
 */
#ifndef SIM_DISCORD_DC_CALL_H
#define SIM_DISCORD_DC_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http_server.h"
#include "sim/discord/dc_rate_limit.h"
#include "sim/discord/dc_spec.h"
#include "sim/discord/dc_world.h"
#include "sim/multipart.h"

struct call {
        struct world *world;
        struct bot *bot; /* NULL: the operation needs none */
        const struct dc_spec_op *op;
        struct http_exchange *x;
        json_t *args;  /* the body; NULL: none */
        json_t *query; /* texts */
        struct multipart uploads;
        struct buf out;
        int status; /* 200, 204, or what call_fail said */
        int code;
        char message[200];
        json_t *errors; /* of 50035 */
        struct rate_limit rate;
        double retry_after; /* of 429, seconds */
        const char *scope;
        bool valid;
        char problem[DC_SPEC_PROBLEM_SIZE];
        bool cut;        /* a fault: no answer */
        int late_status; /* a fault: this instead of the answer */
        int64_t slow_ms; /* a fault */
        struct timer *delay;
        uint64_t started_ns;
        struct call *next, **link;
};

typedef int op_fn(struct call *c);

/* All routes of the description, then those given. Yours to free; count is set. */
struct http_route *dc_call_routes(const struct http_route *more, size_t more_count, size_t *count);
/* Ends everything that waits; before the server goes. */
void dc_call_end_all(struct world *w);

/* For operations. call_fail returns -1; call_done (204, no body) 0. */
int dc_call_fail(struct call *c, int status, int code, const char *message);
int dc_call_no_content(struct call *c);
/* 50035 with one wrong member. Returns -1. */
int dc_call_invalid(struct call *c, const char *member, const char *code, const char *message);
/* Ids in the path, the query or the body (where they are text or a number); 0: none. */
uint64_t dc_call_id(const struct call *c, const char *param);
uint64_t dc_call_query_id(const struct call *c, const char *name);
int64_t dc_call_query_int(const struct call *c, const char *name, int64_t fallback);
uint64_t dc_call_args_id(const json_t *args, const char *member);
/* The channel of the path, if the bot may do all this there; NULL after call_fail. */
struct channel *dc_call_channel(struct call *c, uint64_t needed);
struct message *dc_call_message(struct call *c, struct channel *channel);
/* The guild of the path, if the bot is in it. */
struct guild *dc_call_guild(struct call *c);
/* An entry in the list of what bots did; add to it, then journal_close(c->world->sent). */
struct buf *dc_call_record(const struct call *c, const char *kind, const struct channel *channel);

/* Whoever runs the simulator in a terminal sees what is said. */
void dc_call_print(const struct call *c, const struct message *m);

/* ops.c: NULL when the operation is known but not simulated. */
op_fn *dc_ops_find(const struct dc_spec_op *op);

#endif
