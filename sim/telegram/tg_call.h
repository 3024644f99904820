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
#include "sim/call_base.h"
#include "sim/multipart.h"
#include "sim/telegram/tg_files.h"
#include "sim/telegram/tg_spec.h"
#include "sim/telegram/tg_world.h"

/* Results of a method besides 0 and -1. */
#define TG_CALL_LATER 1 /* tg_call_finish will be or was called */
#define TG_CALL_FETCH 2 /* fetch the file at `wants_url`, then run the method again */

struct fetched {
        char *url;
        struct file *file;
        struct fetched *next;
};

struct call {
        struct call_base base; /* first */
        struct world *world;
        struct bot *bot;
        const struct tg_spec_method *method;
        struct http_exchange *x; /* NULL: from a webhook's response */
        json_t *args;            /* converted to the described types */
        struct multipart uploads;
        struct buf out;
        int status; /* 200, or that of tg_call_fail */
        char description[300];
        const char *note; /* a description beside a good result */
        int64_t retry_after, migrate_to;
        char problem[TG_SPEC_PROBLEM_SIZE];
        char *wants_url;
        struct fetched *fetched;
        struct http_call *fetching;
};

/* The routes. */
void tg_call_serve(struct http_exchange *x);
void tg_call_serve_file(struct http_exchange *x);
/* Runs the call in a webhook's response: {"method":"sendMessage",...}. */
void tg_call_from_webhook(struct bot *b, const json_t *reply);

/* For methods. Returns -1. */
int tg_call_fail(struct call *c, int status, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The result is true. Returns 0. */
int tg_call_true(struct call *c);
/* Answers and frees c. */
void tg_call_finish(struct call *c);
/* The uploaded part of a parameter, by its name or attach://. NULL: none. */
const struct multipart_part *tg_call_upload(const struct call *c, const char *parameter);
/* The chat of parameter chat_id in which the bot may act; NULL after tg_call_fail. */
struct chat *tg_call_chat(struct call *c);
/* The same for any parameter, without a check of the bot's rights. */
struct chat *tg_call_find_chat(struct call *c, const char *parameter);
/* Takes n messages from the rate limits. -1 after tg_call_fail with 429. */
int tg_call_pace(struct call *c, struct chat *chat, unsigned n);

#endif
