/*
 * call: one request of an app to the Web API, from its arguments to its answer.
 *
 * Slack answers 200 also to failures: {"ok":false,"error":"channel_not_found"}.
 */
#ifndef SIM_SLACK_SL_CALL_H
#define SIM_SLACK_SL_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http_server.h"
#include "sim/call_base.h"
#include "sim/slack/sl_spec.h"
#include "sim/slack/sl_world.h"

struct slack_call;
typedef int slack_method_fn(struct slack_call *c);

/* A simulated method; sl_spec.h describes its arguments. */
struct slack_method {
        const char *name;
        slack_method_fn *run;
        int tier;          /* calls a minute: 1, 20, 50, 100; 0: no limit here */
        const char *scope; /* NULL: none; "*:read": the one of the conversation's kind */
};

struct slack_call {
        struct call_base base; /* first */
        struct slack_world *world;
        struct slack_app *app;
        const struct slack_method *method;
        const struct sl_spec_method *spec;
        struct http_exchange *x; /* NULL: cut, carried out later */
        json_t *args;            /* typed as the description says */
        json_t *out;             /* members of the answer */
        int status;
        char error[64];     /* "": ok */
        json_t *messages;   /* of response_metadata; NULL: none */
        const char *needed; /* of missing_scope */
        bool no_charset;
        bool plain;           /* answered "ok", not JSON */
        bool html, truncated; /* instead of the answer */
        double retry_after;   /* of 429 */
        char problem[SL_SPEC_PROBLEM_SIZE];
        slack_method_fn *rest; /* of sl_call_later */
};

/* POST and GET /api/:method */
void sl_call_serve(struct http_exchange *x);
/* POST to a response_url */
void sl_call_serve_response(struct http_exchange *x);
/* Carries out a method without a connection, token and limits. The answer is yours. */
json_t *sl_call_direct(struct slack_world *w, struct slack_app *a, const char *method,
                       const json_t *args);
/* The rows of sl_methods.c. */
const struct slack_method *sl_method_find_simulated(const char *name);

/* ---- for methods ---- */

/* Returns -1. */
int sl_call_fail(struct slack_call *c, const char *error);
/* invalid_arguments or so, with a sentence for response_metadata.messages. Returns -1. */
int sl_call_fail_because(struct slack_call *c, const char *error, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Runs the rest of the call after its answer, with a copy of it. */
void sl_call_later(const struct slack_call *c, int64_t ms, slack_method_fn *rest);
/* 429 with Retry-After. Returns -1. */
int sl_call_limit(struct slack_call *c, double retry_after);
/* missing_scope unless the app has it. 0 or -1. */
int sl_call_need(struct slack_call *c, const char *scope);
/* NULL: absent or empty. */
const char *sl_call_text(const struct slack_call *c, const char *name);
int64_t sl_call_int(const struct slack_call *c, const char *name, int64_t fallback);
bool sl_call_flag(const struct slack_call *c, const char *name, bool fallback);
void sl_call_set(struct slack_call *c, const char *key, const char *text);
void sl_call_set_new(struct slack_call *c, const char *key, json_t *value);
/*
 * These return NULL after sl_call_fail. The conversation that the app sees, by id; its scope is
 * checked by the method's.
 */
struct slack_channel *sl_call_channel(struct slack_call *c, const char *name);
/* The same, and the app is a member. */
struct slack_channel *sl_call_member_of(struct slack_call *c, const char *name);
struct slack_message *sl_call_message(struct slack_call *c, struct slack_channel *channel,
                                      const char *name);
/* Opens an entry in GET /sim/messages; add members, then journal_close(c->world->base.sent). */
struct buf *sl_call_record(const struct slack_call *c, const char *kind,
                           const struct slack_channel *channel);
void sl_call_print(const struct slack_call *c, const struct slack_message *m);

#endif
