/*
 * dc_rest: calls of Discord's REST API, as fast as Discord permits and no faster.
 *
 * Every call of an adapter goes through here. Three limits are kept:
 *
 *     bucket   learned from the headers of each answer: X-RateLimit-Bucket and the route's
 *              top-level id (channel, guild, webhook). Before the first answer a route is its own
 *              bucket, and one call at a time asks.
 *     global   50 calls a second for the bot, and whatever a 429 with X-RateLimit-Global says.
 *              Interaction routes are outside it.
 *     invalid  answers 401, 403 and 429 are counted; long before Discord would ban our address
 *              (10,000 in ten minutes) calls end here.
 *
 * What cannot go now waits for its bucket, at most `wait_ms` and at most DC_WAITING_MAX calls:
 * whatever would wait longer is answered at once as ERR_LIMIT with the time after which it makes
 * sense. The rows of the outbox wait on disk, not here.
 *
 * The token is in a header of each request and nowhere else.
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

/*
 * How every request to Discord introduces us; in another form Cloudflare may answer in its place.
 */
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
        const struct secret *token; /* borrowed, must outlive the dc_rest */
        const char *name;           /* of the adapter, for the log; copied */
        double per_second;          /* the global limit; 0: 50, below 0: none (a simulator) */
        /* refused answers in ten minutes after which we stop; 0: 9000 */
        unsigned invalid_max;
        /*
         * Discord does not know the token (any more): told once, after the call's own answer;
         * further calls are refused. May be NULL.
         */
        void (*unauthorized)(void *arg);
        void *arg;
};

struct dc_answer {
        bool ok;    /* 2xx */
        int status; /* 0: no answer came, or the call was not made */
        int code;   /* Discord's own, such as 50013; 0: none */
        enum http_reach reach;
        /* ERR_NONE for an answer; ERR_LIMIT, ERR_REFUSED, ERR_INVALID: not even tried */
        enum error_kind kind;
        const json_t *result;   /* the body, also of an error; NULL: none */
        const char *why;        /* one sentence, without secrets */
        int64_t retry_after_ms; /* -1: not told */
        bool global;            /* the limit is the bot's, not the bucket's */
};
typedef void dc_answer_fn(void *arg, const struct dc_answer *answer);

struct dc_upload {
        const char *path, *name, *mime;
};

/* Who goes first when several wait for the same bucket. */
enum dc_priority {
        DC_URGENT, /* the acknowledgement of an interaction: three seconds */
        DC_NORMAL, /* answers */
        DC_IDLE,   /* typing, reactions, reading: whatever may be late */
        DC_PRIORITIES,
};

struct dc_request {
        const char *method;
        const char *route; /* as in Discord's OpenAPI file: "/channels/{channel_id}/messages" */
        /*
         * what stands in its braces, in order: `…_id` must be digits, all else is percent-encoded
         */
        const char *args[DC_ARGS_MAX];
        const char *query; /* "limit=50", encoded already; NULL: none */
        const json_t *body;
        const struct dc_upload *files; /* with files the body becomes payload_json */
        size_t file_count;
        enum dc_priority priority;
        bool repeatable;  /* asking twice does no harm */
        int64_t total_ms; /* on the wire; 0: 15 s */
        int64_t wait_ms;  /* for the bucket; 0: 10 s */
};

struct dc_rest *dc_rest_new(const struct dc_rest_options *options);
/* Aborts what is left; no callback follows. NULL is fine. */
void dc_rest_free(struct dc_rest *r);
/*
 * Never answers before it has returned; exactly one answer unless aborted. Everything but the files
 * is copied.
 */
struct dc_call *dc_rest_call(struct dc_rest *r, const struct dc_request *request,
                             dc_answer_fn *done, void *arg);
/* No answer follows. NULL is fine. */
void dc_call_abort(struct dc_call *c);
/* Has a byte of it gone out? Whoever aborts a call wants to know. */
bool dc_call_begun(const struct dc_call *c);
/* Calls that wait, and invalid answers of the last ten minutes. */
size_t dc_rest_waiting(const struct dc_rest *r);
unsigned dc_rest_invalid(const struct dc_rest *r);
/* A snowflake: 1 to 20 digits. NULL is none. */
bool dc_is_id(const char *text);

#endif
