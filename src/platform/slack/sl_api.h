/*
 * sl_api: calls of Slack's Web API, as fast as Slack permits.
 *
 *     sl_api.c         which calls go, and what their answers mean for others
 *     sl_call.c        one call: its request, its answer
 *     sl_method.c      what we know about each method
 *     sl_rate_limit.c  how often a method may be called
 *     sl_error.c       what to do about Slack's errors
 *
 * Limits are per method and workspace: each method has a tier (sl_method.c), and a 429 with
 * Retry-After stops that method only. chat.postMessage is limited per channel by the outbox's
 * pace. A call waits for its method at most wait_ms and with at most SL_WAITING_MAX others; one
 * that would wait longer is refused at once with ERR_LIMIT: long queues belong in the outbox, on
 * disk. Arguments are sent as JSON or as a form, whichever the method takes. Slack answers 200
 * also to failures: `ok` counts.
 */
#ifndef PLATFORM_SLACK_SL_API_H
#define PLATFORM_SLACK_SL_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/secret.h"
#include "net/http_client.h"
#include "net/loop.h"

#define SL_WAITING_MAX 1000

struct sl_answer;
struct sl_api;
struct sl_call;

/* ---- sl_method.c: what we know about a method ---- */

struct sl_method {
        const char *name;
        int tier;          /* calls a minute: 1, 20, 50, 100; 0: a limit of its own */
        bool form;         /* takes no JSON */
        bool app_level;    /* needs the app-level token */
        bool repeatable;   /* calling it twice does no harm */
        const char *scope; /* the first one that permits it; NULL: none is needed */
};
const struct sl_method *sl_method_find(const char *name); /* or NULL */

/* ---- calls ---- */

struct sl_api_options {
        struct loop *loop;
        struct http_client *http;
        const char *base;                           /* "https://slack.com/api"; copied */
        const struct secret *bot_token, *app_token; /* outlive the sl_api; app_token may be NULL */
        const char *name;                           /* of the adapter */
        bool unpaced; /* call as fast as Slack answers: only its 429s count, not the tiers */
        /* Slack does not accept a token: called once, then calls are refused. */
        void (*unauthorized)(void *arg, const struct sl_method *method, const char *error);
        /* A call with the bot's token succeeded, or lacked a scope. May be NULL. */
        void (*scoped)(void *arg, const struct sl_method *method, const struct sl_answer *answer);
        void *arg;
};

struct sl_answer {
        bool ok;
        int status;        /* of HTTP; 0: no answer */
        const char *error; /* Slack's: "channel_not_found"; NULL: none */
        enum http_reach reach;
        /* ERR_NONE: answered; ERR_LIMIT, ERR_REFUSED, ERR_INVALID: not tried; else the network's */
        enum error_kind kind;
        const json_t *result;   /* also of an error; NULL: none, or not JSON */
        const char *why;        /* for a person: what to do about it, as far as we know */
        int64_t retry_after_ms; /* -1: not given */
        const char *scopes;     /* that the token has, "chat:write,..."; NULL: not said */
};
typedef void sl_answer_fn(void *arg, const struct sl_answer *answer);

enum sl_priority {
        SL_URGENT, /* opening a connection or a modal: within seconds */
        SL_NORMAL, /* answers */
        SL_IDLE,   /* status, reactions, reading: may be late */
        SL_PRIORITIES,
};

struct sl_request {
        const char *method;
        const json_t *args; /* an object, copied; values that are not text are encoded for forms */
        enum sl_priority priority;
        bool drop_on_cancel; /* sl_api_cancel gives no answer */
        int64_t total_ms;    /* on the wire; 0: 15 s */
        int64_t wait_ms;     /* for the method; 0: 10 s */
};

struct sl_api *sl_api_new(const struct sl_api_options *options);
/* No callback follows. */
void sl_api_free(struct sl_api *api);
/* Answers once, from the loop, unless aborted. */
struct sl_call *sl_api_call(struct sl_api *api, const struct sl_request *request,
                            sl_answer_fn *done, void *arg);
/* No answer follows. NULL is fine. */
void sl_api_abort(struct sl_call *c);
/* A call without a handle; done may be NULL. */
void sl_api_ask(struct sl_api *api, const struct sl_request *request, sl_answer_fn *done,
                void *arg);
/* Answers all calls without a handle with ERR_CANCELLED. */
void sl_api_cancel(struct sl_api *api);
/*
 * Posts to an address that Slack gave, without a token: a file's bytes to an upload_url, JSON to a
 * response_url. Only to hosts of Slack, or of `base`. A file is sent in pieces.
 */
struct sl_post {
        const char *url;
        const json_t *json;           /* or: */
        const struct http_file *file; /* its bytes */
        int64_t total_ms;             /* 0: 15 s */
};
struct sl_call *sl_api_post(struct sl_api *api, const struct sl_post *post, sl_answer_fn *done,
                            void *arg);
/* May a byte of it have gone out? */
bool sl_api_begun(const struct sl_call *c);
/* Refused for its rate, by Slack or before it was sent. */
bool sl_api_is_limited(const struct sl_answer *a);
/* No answer, 429, 5xx, or an error such as internal_error: a later attempt may succeed. */
bool sl_api_is_unavailable(const struct sl_answer *a);
/* The error means that the token will never be accepted again. */
bool sl_api_is_revoked(const char *error);
/* Is it https of Slack, or of the origin of base? Nothing else gets a token or a file. */
bool sl_api_owns_url(const struct sl_api *api, const char *url);
/* How often a method was refused for its rate since the start, for tests and status. */
unsigned sl_api_limited(const struct sl_api *api);
/* Slack's clock, see server_clock.h: times of messages are its own. */
int64_t sl_api_now_ms(const struct sl_api *api);

/* ---- sl_error.c ---- */

/* What a person can do about Slack's error; NULL: nothing is known. */
const char *sl_error_advice(const char *error);
/*
 * One sentence about an answer with ok false: the error, and what to do about it. A missing scope
 * is named with the line of the manifest that adds it. method NULL: not known.
 */
void sl_error_text(const struct sl_method *method, const json_t *answer, char *out, size_t size);
/* What to do when a token is not accepted: name of the adapter, whose token. */
void sl_error_token_text(const char *adapter, const struct sl_method *method, const char *error,
                         char *out, size_t size);
/*
 * Names scopes of the manifest in docs/platforms/slack.md that a token ("chat:write,...") lacks and
 * what does not work without them. False: it has all of them.
 */
bool sl_error_lacking(const char *scopes, char *out, size_t size);

#endif
