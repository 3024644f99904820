/* tg_call: one call of the Bot API. */
#ifndef PLATFORM_TELEGRAM_TG_CALL_H
#define PLATFORM_TELEGRAM_TG_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/http_client.h"

struct telegram;
struct tg_call;

struct tg_answer {
        bool ok;
        bool genuine; /* it has Telegram's form; else it may come from a proxy */
        /* error_code, or the HTTP status of an answer that is not genuine; 0: no answer */
        int status;
        enum http_reach reach;
        enum error_kind kind; /* ERR_NONE: the answer is complete */
        const char *body;     /* as received, also when it could not be read */
        size_t body_n;
        const json_t *result;   /* with ok; NULL when the answer was cut after its status line */
        const char *why;        /* one sentence, without secrets */
        int64_t retry_after_ms; /* -1: not given */
        const char *migrated;   /* the chat's new id, or NULL */
};
typedef void tg_answer_fn(void *arg, const struct tg_answer *answer);

struct tg_upload {
        struct http_file file;
        const char *field, *name, *mime;
};

struct tg_request {
        const char *method;
        json_t *params; /* borrowed; NULL: none */
        const struct tg_upload *upload;
        int64_t total_ms; /* 0: 30 s */
        bool repeatable;
};

/* Copies everything it needs; never answers before it has returned. */
struct tg_call *tg_call_start(struct telegram *tg, const struct tg_request *request,
                              tg_answer_fn *done, void *arg);
/* No answer follows. NULL is fine. */
void tg_call_abort(struct tg_call *c);
void tg_calls_abort(struct telegram *tg);
/* Reads an HTTP result. *body owns the strings: decref it afterwards. Exported for tests. */
void tg_call_read(const struct http_result *r, json_t **body, struct tg_answer *out, char *text,
                  size_t size);
/* "<base><before>/bot<token>/<after>"; tg_call_url_free wipes it. */
char *tg_call_url(const struct telegram *tg, const char *before, const char *after);
void tg_call_url_free(char *url);
/* Sets an id as a number where it is one, else as a string. */
void tg_call_set_id(json_t *params, const char *key, const char *id);

#endif
