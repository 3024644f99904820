/*
 * call: one method call of a bot, from its parameters to its answer.
 */
#ifndef SIM_TELEGRAM_TG_CALL_H
#define SIM_TELEGRAM_TG_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "sim/multipart.h"
#include "sim/telegram/tg_files.h"
#include "sim/telegram/tg_spec.h"
#include "sim/telegram/tg_world.h"

/* What a method returns: 0 when the result is in `out`, -1 after tg_call_fail, or this. */
#define CALL_LATER 1 /* tg_call_finish will be called, or has been */
#define CALL_FETCH 2 /* the file at `wants_url` first, then the method again */

struct fetched {
        char *url;
        struct file *file;
        struct fetched *next;
};

struct call {
        struct world *world;
        struct bot *bot;
        const struct tg_spec_method *method;
        struct http_exchange *x; /* NULL: the call came in a webhook's answer */
        json_t *args;            /* of the described types */
        struct multipart uploads;
        struct buf out;
        int status; /* 200, or what tg_call_fail said */
        char description[300];
        const char *note; /* a description beside a good result */
        int64_t retry_after, migrate_to;
        bool valid;
        char problem[TG_SPEC_PROBLEM_SIZE];
        char *wants_url;
        struct fetched *fetched;
        struct http_call *fetching;
        bool cut;        /* a fault: no answer */
        int late_status; /* a fault: this instead of the answer */
        int64_t slow_ms; /* a fault */
        struct timer *delay;
        uint64_t started_ns;
        struct call *next, **link;
};

/* The routes. */
void tg_call_serve(struct http_exchange *x);
void tg_call_serve_file(struct http_exchange *x);
/* The answer of a webhook holds a call: {"method":"sendMessage",...}. */
void tg_call_from_webhook(struct bot *b, const json_t *reply);
/* Ends everything that waits; before the server goes. */
void tg_call_end_all(struct world *w);

/* For methods. Returns -1. */
int tg_call_fail(struct call *c, int status, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The result is true. Returns 0. */
int tg_call_true(struct call *c);
/* The answer is ready; c is gone afterwards. */
void tg_call_finish(struct call *c);
/* The uploaded part a parameter means: by its own name or by attach://. NULL: none. */
const struct multipart_part *tg_call_upload(const struct call *c, const char *parameter);
/* The chat of parameter chat_id in which the bot may act; NULL after tg_call_fail. */
struct chat *tg_call_chat(struct call *c);
/* The same by parameter name, and without asking whether the bot may act there. */
struct chat *tg_call_find_chat(struct call *c, const char *parameter);
/* May the bot say n more things in this chat now? -1 after tg_call_fail with 429. */
int tg_call_pace(struct call *c, struct chat *chat, unsigned n);

/* methods.c: NULL when the method is known but not simulated. */
typedef int method_fn(struct call *c);
method_fn *tg_methods_find(const struct tg_spec_method *m);

#endif
