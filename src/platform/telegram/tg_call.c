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

#define CALL_MS    30000
#define ANSWER_MAX ((size_t)16 * 1024 * 1024)
#define PARTS_MAX  16
#define FOREVER_S  86400 /* nobody waits longer for a rate limit */

struct tg_call {
        struct telegram *tg;
        struct http_call *http;
        tg_answer_fn *done;
        void *arg;
        LIST_ENTRY(tg_call) next;
};

/* ---- the address ---- */

char *tg_url(const struct telegram *tg, const char *before, const char *after)
{
        size_t n = strlen(tg->conf->api_base);

        while (n > 0 && tg->conf->api_base[n - 1] == '/')
                n--;
        return mem_printf("%.*s%s/bot%s/%s", (int)n, tg->conf->api_base, before,
                          secret_reveal(tg->conf->token), after);
}

void tg_url_free(char *url)
{
        if (url)
                explicit_bzero(url, strlen(url));
        free(url);
}

void tg_set_id(json_t *params, const char *key, const char *id)
{
        char *end;
        long long n;

        errno = 0;
        n = strtoll(id, &end, 10);
        json_object_set_new(params, key,
                            *id && *end == '\0' && errno == 0 ? json_integer(n) : json_string(id));
}

/* ---- the answer ---- */

static bool is_2xx(int status)
{
        return status >= 200 && status < 300;
}

static int64_t retry_after_of(const json_t *parameters, const struct http_result *r)
{
        int64_t seconds = json_int(parameters, "retry_after", -1);

        if (seconds < 0)
                return r->retry_after_ms;
        return (seconds > FOREVER_S ? FOREVER_S : seconds) * 1000;
}

static void read_refusal(const json_t *body, const struct http_result *r, struct tg_answer *out,
                         char *text, size_t size)
{
        const char *said = json_str(body, "description", NULL);

        out->status = (int)json_int(body, "error_code", r->status);
        if (said)
                snprintf(text, size, "Telegram says: %s", said);
        else if (is_2xx(r->status))
                snprintf(text, size, "what came is not an answer of Telegram");
        else
                snprintf(text, size, "Telegram answered %d", r->status);
}

/* Why there is no result, as a sentence; "" when there is one. */
static void explain(const json_t *body, const struct http_result *r, struct tg_answer *out,
                    char *text, size_t size)
{
        const char *why = r->why ? r->why : "no reason given";

        text[0] = '\0';
        if (r->status == 0)
                snprintf(text, size, "Telegram could not be reached: %s", why);
        else if (!out->ok)
                read_refusal(body, r, out, text, size);
        else if (!body)
                snprintf(text, size, "the answer of Telegram did not arrive as a whole: %s", why);
        log_redact(text);
}

void tg_answer_read(const struct http_result *r, json_t **body, struct tg_answer *out, char *text,
                    size_t size)
{
        const json_t *parameters;
        bool cut = r->kind != ERR_NONE; /* then the status line must do */
        json_t *moved;

        *body = r->status > 0 && !cut ? json_read(r->body, r->body_n, NULL) : NULL;
        parameters = json_object_get(*body, "parameters");
        *out = (struct tg_answer){ .status = r->status,
                                   .reach = r->reach,
                                   .kind = r->kind,
                                   .why = text,
                                   .body = r->body ? r->body : "",
                                   .body_n = r->body ? r->body_n : 0,
                                   .genuine = json_is_boolean(json_object_get(*body, "ok")),
                                   .ok = is_2xx(r->status) &&
                                         (cut || json_flag(*body, "ok", false)),
                                   .result = json_object_get(*body, "result"),
                                   .retry_after_ms = retry_after_of(parameters, r) };
        explain(*body, r, out, text, size);
        moved = json_object_get(parameters, "migrate_to_chat_id");
        if (json_is_integer(moved)) {
                char id[24];

                snprintf(id, sizeof(id), "%" JSON_INTEGER_FORMAT, json_integer_value(moved));
                /* the body keeps the text alive */
                json_object_set_new(*body, "moved", json_string(id));
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
        tg_answer_read(r, &body, &answer, text, sizeof(text));
        c->done(c->arg, &answer);
        json_decref(body);
        free(c);
}

/* ---- the request ---- */

/* Text of a value in a form: strings as they are, everything else as JSON. */
static char *form_value(const json_t *value)
{
        return json_is_string(value) ? mem_strdup(json_string_value(value)) : json_text(value);
}

/*
 * The parameters and the file as parts of a form; returns how many. The data of all but the file is
 * allocated.
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
                text = form_value(value);
                parts[n++] =
                        (struct http_part){ .name = key, .data = text, .data_n = strlen(text) };
        }
        parts[n++] = (struct http_part){ .name = q->upload->field,
                                         .file_path = q->upload->path,
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
        char *url = tg_url(tg, "", q->method);
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
        tg_url_free(url);
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
