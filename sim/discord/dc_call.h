/*
 * call: one request of a bot to the HTTP API, from its body to its answer; and the messages that
 * requests hold (dc_compose.c).
 */
#ifndef SIM_DISCORD_DC_CALL_H
#define SIM_DISCORD_DC_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http_server.h"
#include "sim/call_base.h"
#include "sim/discord/dc_rate_limit.h"
#include "sim/discord/dc_spec.h"
#include "sim/discord/dc_world.h"
#include "sim/multipart.h"

struct call {
        struct call_base base; /* first */
        struct world *world;
        struct bot *bot; /* NULL: the operation needs none */
        const struct dc_spec_op *op;
        struct http_exchange *x;
        json_t *args;  /* the body; NULL: none */
        json_t *query; /* texts */
        struct multipart uploads;
        struct buf out;
        int status; /* 200, 204, or that of dc_call_fail */
        int code;
        char message[200];
        json_t *errors; /* of 50035 */
        struct rate_limit rate;
        double retry_after; /* of 429, seconds */
        const char *scope;  /* of 429 */
        char problem[DC_SPEC_PROBLEM_SIZE];
};

/* All routes of the description, then `more`. Yours to free. */
struct http_route *dc_call_routes(const struct http_route *more, size_t more_count, size_t *count);

/* ---- for operations ---- */

/* Returns -1. */
int dc_call_fail(struct call *c, int status, int code, const char *message);
/* 204. Returns 0. */
int dc_call_no_content(struct call *c);
/* 50035 with one wrong member. Returns -1. */
int dc_call_invalid(struct call *c, const char *member, const char *code, const char *message);
/* Ids in the path, the query or the body (text or a number); 0: none. */
uint64_t dc_call_id(const struct call *c, const char *param);
uint64_t dc_call_query_id(const struct call *c, const char *name);
int64_t dc_call_query_int(const struct call *c, const char *name, int64_t fallback);
uint64_t dc_call_args_id(const json_t *args, const char *member);
/* These return NULL after dc_call_fail. The channel of the path, if the bot has `needed` there. */
struct channel *dc_call_channel(struct call *c, uint64_t needed);
struct message *dc_call_message(struct call *c, struct channel *channel);
/* Fails: nothing of an archived thread can be changed. */
int dc_call_archived(struct call *c);
/* The guild of the path, if the bot is a member. */
struct guild *dc_call_guild(struct call *c);
/* Opens an entry in GET /sim/messages; add members, then journal_close(c->world->base.sent). */
struct buf *dc_call_record(const struct call *c, const char *kind, const struct channel *channel);

/* Prints the message to the terminal. */
void dc_call_print(const struct call *c, const struct message *m);

/* ---- dc_compose.c ---- */

/*
 * Fills m from args (a message of the API) and the call's uploads. With `edit`, absent members stay
 * as they are. 0, or -1 after dc_call_fail: then an edited message is unchanged, a new one may be
 * half filled.
 */
int dc_compose(struct call *c, struct message *m, const json_t *args, bool edit);
/* Sets the message_reference of args; -1 after dc_call_fail. */
int dc_compose_reference(struct call *c, struct message *m, const json_t *args);

#endif
