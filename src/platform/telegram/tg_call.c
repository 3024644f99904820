#include "platform/telegram/tg_call.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/telegram/telegram.h"

#define CALL_MS       30000
#define ANSWER_MAX    ((size_t)16 * 1024 * 1024)
#define PARTS_MAX     16
#define RETRY_AFTER_S 86400 /* the longest rate limit we believe */

struct tg_call {
        struct telegram *tg;
        struct http_call *http;
        tg_answer_fn *done;
        void *arg;
        LIST_ENTRY(tg_call) next;
};

char *tg_call_url(const struct telegram *tg, const char *before, const char *after)
{
        size_t n = strlen(tg->conf->api_base);

        while (n > 0 && tg->conf->api_base[n - 1] == '/')
                n--;
        return mem_printf("%.*s%s/bot%s/%s", (int)n, tg->conf->api_base, before,
                          secret_reveal(tg->conf->token), after);
}

void tg_call_url_free(char *url)
{
        if (url)
                explicit_bzero(url, strlen(url));
        free(url);
}

void tg_call_set_id(json_t *params, const char *key, const char *id)
{
        char *end;
        long long n;

        errno = 0;
        n = strtoll(id, &end, 10);
        json_object_set_new(params, key,
                            *id && *end == '\0' && errno == 0 ? json_integer(n) : json_string(id));
}

/* ---- the answer ---- */

/* Why there is no result, as a sentence; "" when there is one. */
static void explain(const json_t *body, const struct http_result *r, const struct tg_answer *a,
                    char *text, size_t size)
{
        const char *said = json_str(body, "description", NULL);
        const char *why = r->why ? r->why : "no reason given";

        text[0] = '\0';
        if (r->status == 0)
                snprintf(text, size, "Telegram could not be reached: %s", why);
        else if (a->ok && !body)
                snprintf(text, size, "Telegram's answer was cut: %s", why);
        else if (!a->ok && said)
                snprintf(text, size, "Telegram says: %s", said);
        else if (!a->ok && r->status >= 200 && r->status < 300)
                snprintf(text, size, "this is not an answer of Telegram");
        else if (!a->ok)
                snprintf(text, size, "Telegram answered %d", r->status);
        log_redact(text);
}

void tg_call_read(const struct http_result *r, json_t **body, struct tg_answer *out, char *text,
                  size_t size)
{
        bool cut = r->kind != ERR_NONE; /* then the status line must do */
        const json_t *parameters;
        json_t *moved;
        int64_t retry_after;

        *body = r->status > 0 && !cut ? json_read(r->body, r->body_n, NULL) : NULL;
        *out = (struct tg_answer){ .status = r->status,
                                   .reach = r->reach,
                                   .kind = r->kind,
                                   .why = text,
                                   .body = r->body ? r->body : "",
                                   .body_n = r->body ? r->body_n : 0,
                                   .genuine = json_is_boolean(json_object_get(*body, "ok")),
                                   .ok = r->status >= 200 && r->status < 300 &&
                                         (cut || json_flag(*body, "ok", false)),
                                   .result = json_object_get(*body, "result"),
                                   .retry_after_ms = r->retry_after_ms };
        explain(*body, r, out, text, size);
        if (!out->ok && r->status > 0)
                out->status = (int)json_int(*body, "error_code", r->status);
        parameters = json_object_get(*body, "parameters");
        retry_after = json_int(parameters, "retry_after", -1);
        if (retry_after >= 0)
                out->retry_after_ms =
                        (retry_after > RETRY_AFTER_S ? RETRY_AFTER_S : retry_after) * 1000;
        moved = json_object_get(parameters, "migrate_to_chat_id");
        if (json_is_integer(moved)) {
                char id[24];

                snprintf(id, sizeof(id), "%" JSON_INTEGER_FORMAT, json_integer_value(moved));
                json_object_set_new(*body, "moved", json_string(id)); /* keeps the text alive */
                out->migrated = json_str(*body, "moved", NULL);
        }
}

static void on_done(void *arg, const struct http_result *r)
{
        struct tg_call *c = arg;
        struct tg_answer answer;
        char text[300];
        json_t *body;

        LIST_REMOVE(c, next);
        tg_call_read(r, &body, &answer, text, sizeof(text));
        c->done(c->arg, &answer);
        json_decref(body);
        free(c);
}

/* ---- the request ---- */

/*
 * Builds the parts of a form; returns how many. The data of all but the file, which is last, is
 * allocated: strings as they are, other values as JSON.
 */
static size_t make_parts(const struct tg_request *q, struct http_part *parts)
{
        size_t n = 0;
        const char *key;
        json_t *value;

        json_object_foreach(q->params, key, value) {
                char *text;

                if (n == PARTS_MAX - 1)
                        break;
                text = json_is_string(value) ? mem_strdup(json_string_value(value))
                                             : json_text(value);
                parts[n++] =
                        (struct http_part){ .name = key, .data = text, .data_n = strlen(text) };
        }
        parts[n++] = (struct http_part){ .name = q->upload->field,
                                         .file = &q->upload->file,
                                         .file_name = q->upload->name,
                                         .content_type = q->upload->mime };
        return n;
}

struct tg_call *tg_call_start(struct telegram *tg, const struct tg_request *q, tg_answer_fn *done,
                              void *arg)
{
        static const char *const json_headers[] = { "Content-Type: application/json", NULL };
        static const struct http_handlers handlers = { .on_done = on_done };
        struct tg_call *c = mem_zalloc(sizeof(*c));
        struct http_part parts[PARTS_MAX] = { 0 };
        char *url = tg_call_url(tg, "", q->method);
        char *body = q->upload ? NULL : q->params ? json_text(q->params) : mem_strdup("{}");
        struct http_request request = { .method = "POST",
                                        .url = url,
                                        .headers = q->upload ? NULL : json_headers,
                                        .body = body,
                                        .body_n = body ? strlen(body) : 0,
                                        .total_ms = q->total_ms > 0 ? q->total_ms : CALL_MS,
                                        .max_body = ANSWER_MAX,
                                        .repeatable = q->repeatable };

        if (q->upload) {
                request.parts = parts;
                request.part_count = make_parts(q, parts);
        }
        c->tg = tg;
        c->done = done;
        c->arg = arg;
        LIST_INSERT_HEAD(&tg->calls, c, next);
        c->http = http_call_start(tg->adapter->http, &request, &handlers, c);
        for (size_t i = 0; i + 1 < request.part_count; i++)
                free((char *)parts[i].data);
        free(body);
        tg_call_url_free(url);
        return c;
}

void tg_call_abort(struct tg_call *c)
{
        if (!c)
                return;
        LIST_REMOVE(c, next);
        http_call_abort(c->http);
        free(c);
}

void tg_calls_abort(struct telegram *tg)
{
        struct tg_call *c, *after;

        for (c = LIST_FIRST(&tg->calls); c; c = after) {
                after = LIST_NEXT(c, next);
                tg_call_abort(c);
        }
}
