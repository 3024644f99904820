/*
 * dc_rest: calls of Discord's REST API, as fast as Discord permits. Three limits hold:
 *
 *     bucket   learned from the headers of each answer; before the first answer a route is its own
 *              bucket, with one call at a time
 *     global   50 calls a second for the bot, or as a global 429 says; interactions are exempt
 *     invalid  401, 403 and 429 are counted: Discord bans an address after 10,000 in ten minutes,
 *              so calls are refused here before that
 *
 * A call waits for its bucket, at most wait_ms and with at most DC_WAITING_MAX others; one that
 * would wait longer is refused at once with ERR_LIMIT: long queues belong in the outbox, on disk.
 * Only the request header contains the token.
 */
#ifndef PLATFORM_DISCORD_DC_REST_H
#define PLATFORM_DISCORD_DC_REST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/secret.h"
#include "net/http_client.h"
#include "net/loop.h"

/* Discord demands this form. */
#define DC_AGENT       "User-Agent: DiscordBot (https://example.com/dragoman, " DRAGOMAN_VERSION ")"

#define DC_WAITING_MAX 1000
#define DC_ARGS_MAX    4
#define DC_FILES_MAX   10

struct dc_rest;
struct dc_call;

struct dc_rest_options {
        struct loop *loop;
        struct http_client *http;
        const char *base;           /* "https://discord.com/api/v10"; copied */
        const struct secret *token; /* must outlive the dc_rest */
        const char *name;           /* of the adapter */
        double per_second;          /* the global limit; 0: 50, below 0: none */
        unsigned invalid_max;       /* for the ban guard; 0: 9000 */
        /* The token is unknown: called once, then calls are refused. May be NULL. */
        void (*unauthorized)(void *arg);
        void *arg;
};

struct dc_answer {
        bool ok;    /* 2xx */
        int status; /* 0: no answer */
        int code;   /* Discord's; 0: none */
        enum http_reach reach;
        /* ERR_NONE: answered; ERR_LIMIT, ERR_REFUSED, ERR_INVALID: not tried */
        enum error_kind kind;
        const json_t *result; /* also of an error; NULL: none */
        const char *why;
        int64_t retry_after_ms; /* -1: not given */
        bool global;            /* the limit is the bot's, not the bucket's */
};
typedef void dc_answer_fn(void *arg, const struct dc_answer *answer);

struct dc_upload {
        struct http_file file;
        const char *name, *mime;
};

enum dc_priority {
        DC_URGENT, /* the acknowledgement of an interaction: three seconds */
        DC_NORMAL, /* answers */
        DC_IDLE,   /* typing, reactions, reading: may be late */
};

struct dc_request {
        const char *method;
        const char *route; /* as in Discord's OpenAPI file: "/channels/{channel_id}/messages" */
        /* for the braces, in order: digits for {..._id} */
        const char *args[DC_ARGS_MAX];
        const char *query; /* encoded; NULL: none */
        const json_t *body;
        const struct dc_upload *files; /* with files the body becomes payload_json */
        size_t file_count;
        enum dc_priority priority;
        bool repeatable;     /* sending it twice does no harm */
        bool drop_on_cancel; /* dc_rest_cancel gives no answer */
        int64_t total_ms;    /* on the wire; 0: 15 s */
        int64_t wait_ms;     /* for the bucket; 0: 10 s */
};

struct dc_rest *dc_rest_new(const struct dc_rest_options *options);
/* No callback follows. */
void dc_rest_free(struct dc_rest *r);
/* Answers once, from the loop, unless aborted. Copies everything but the files. */
struct dc_call *dc_rest_call(struct dc_rest *r, const struct dc_request *request,
                             dc_answer_fn *done, void *arg);
/* No answer follows. */
void dc_rest_abort(struct dc_call *c);
/* May a byte of it have gone out? */
bool dc_rest_begun(const struct dc_call *c);
/* No answer, 429 or 5xx: a later attempt may succeed. */
bool dc_rest_is_unavailable(const struct dc_answer *a);
/* A call without a handle; done may be NULL. */
void dc_rest_ask(struct dc_rest *r, const struct dc_request *request, dc_answer_fn *done,
                 void *arg);
/* The same for a GET. */
struct dc_get {
        const char *route;
        const char *args[2];
        const char *query; /* NULL: none */
        bool idle;         /* it may be late */
        bool drop_on_cancel;
};
void dc_rest_get(struct dc_rest *r, const struct dc_get *q, dc_answer_fn *done, void *arg);
/* Discord's clock, see server_clock.h. */
int64_t dc_rest_now_ms(const struct dc_rest *r);
/* Answers all calls without a handle with ERR_CANCELLED. */
void dc_rest_cancel(struct dc_rest *r);
void dc_rest_stats(const struct dc_rest *r, size_t *waiting, unsigned *invalid);

#endif
