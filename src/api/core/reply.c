#include "api/core/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/api_core.h"
#include "base/jsonw.h"
#include "base/mem.h"

#define JSON_TYPE "application/json"

void reply_json(struct http_exchange *x, int status, struct buf *json)
{
        size_t n = json->len;

        http_answer_take(x, status, JSON_TYPE, buf_take(json), n);
}

void reply_data(struct http_exchange *x, int status, struct buf *data)
{
        struct buf json;

        buf_init(&json, 0);
        buf_addstr(&json, "{\"data\":");
        buf_add(&json, data->data, data->len);
        buf_addch(&json, '}');
        buf_release(data);
        reply_json(x, status, &json);
}

void reply_write_error(struct buf *json, const char *path, int status, const char *code,
                       const char *details, const char *message)
{
        static const struct {
                int status;
                const char *type;
        } types[] = { { 401, "authentication_error" },
                      { 403, "permission_error" },
                      { 404, "not_found_error" },
                      { 409, "conflict_error" },
                      { 429, "rate_limit_error" } };
        const char *type = status >= 500 ? "server_error" : "invalid_request_error";

        for (size_t i = 0; i < COUNT(types); i++)
                if (types[i].status == status)
                        type = types[i].type;
        jsonw_open(json, '{');
        jsonw_open_member(json, "error", '{');
        jsonw_str(json, "code", code);
        jsonw_str(json, "message", message);
        if (strncmp(path, "/v1/", 4) == 0) {
                jsonw_str(json, "type", type);
                jsonw_null(json, "param");
        }
        if (details) {
                jsonw_open_member(json, "details", '{');
                buf_addstr(json, details);
                jsonw_close(json, '}');
        }
        jsonw_close(json, '}');
        jsonw_close(json, '}');
}

static void answer_error(struct http_exchange *x, int status, const char *code, const char *details,
                         const char *message)
{
        struct buf json;

        buf_init(&json, 0);
        reply_write_error(&json, http_path(x), status, code, details, message);
        reply_json(x, status, &json);
}

void reply_error(struct http_exchange *x, int status, const char *code, const char *details,
                 const char *fmt, ...)
{
        char message[600];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(message, sizeof(message), fmt, ap);
        va_end(ap);
        answer_error(x, status, code, details, message);
}

static const struct {
        enum error_kind kind;
        int status;
        const char *code;
} failures[] = {
        { ERR_INVALID, 400, "VALIDATION_ERROR" },  { ERR_MISSING, 404, "NOT_FOUND" },
        { ERR_REFUSED, 403, "FORBIDDEN" },         { ERR_CONFLICT, 409, "CONFLICT" },
        { ERR_LIMIT, 429, "RATE_LIMITED" },        { ERR_TIMEOUT, 504, "AGENT_TIMEOUT" },
        { ERR_NET, 502, "AGENT_ERROR" },           { ERR_PROTOCOL, 502, "AGENT_ERROR" },
        { ERR_FULL, 503, "DB_CONNECTION_FAILED" }, { ERR_IO, 503, "DB_CONNECTION_FAILED" },
        { ERR_BUSY, 503, "DB_CONNECTION_FAILED" }, { ERR_CORRUPT, 500, "DB_QUERY_FAILED" },
        { ERR_CANCELLED, 503, "UNAVAILABLE" },
};

void reply_failed(struct http_exchange *x, const struct error *err)
{
        int status = 500;
        const char *code = "INTERNAL_ERROR";

        for (size_t i = 0; i < COUNT(failures); i++) {
                if (failures[i].kind == err->kind) {
                        status = failures[i].status;
                        code = failures[i].code;
                }
        }
        if (status == 429 || status == 503)
                http_add_header(x, "Retry-After", "1");
        answer_error(x, status, code, NULL, err->text);
}

void reply_missing(struct http_exchange *x, const char *type, const char *id)
{
        struct buf details;

        buf_init(&details, 0);
        jsonw_str(&details, "resourceType", type);
        jsonw_str(&details, "resourceId", id);
        reply_error(x, 404, "NOT_FOUND", details.data, "there is no %s '%.100s'", type, id);
        buf_release(&details);
}

void reply_mistakes(struct http_exchange *x, const struct body *b)
{
        struct buf details;

        buf_init(&details, 0);
        jsonw_open_member(&details, "fields", '{');
        buf_add(&details, b->mistakes.data, b->mistakes.len);
        jsonw_close(&details, '}');
        answer_error(x, 400, "VALIDATION_ERROR", b->mistake_count > 0 ? details.data : NULL,
                     b->error.text);
        buf_release(&details);
}

void reply_refused(void *api, struct http_exchange *x, int status, const char *code,
                   const char *message)
{
        reply_identify(api, x);
        /* the server's own refusals have lower-case codes */
        if (code[0] < 'A' || code[0] > 'Z')
                code = status == 404   ? "NOT_FOUND"
                       : status == 413 ? "PAYLOAD_TOO_LARGE"
                       : status == 429 ? "RATE_LIMITED"
                       : status == 503 ? "UNAVAILABLE"
                       : status >= 500 ? "INTERNAL_ERROR"
                                       : "HTTP_ERROR";
        answer_error(x, status, code, NULL, message);
}

void reply_identify(struct api *a, struct http_exchange *x)
{
        static const char safe[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";
        const char *given = http_header(x, "x-request-id");
        size_t n = given ? strspn(given, safe) : 0;
        struct buf id;

        if (http_identity(x))
                return;
        http_set_identity(x, a->anonymous, NULL);
        /* answers may hold what people wrote: no cache keeps it, no browser guesses a type */
        http_add_header(x, "Cache-Control", "no-store");
        http_add_header(x, "X-Content-Type-Options", "nosniff");
        /* echo an id only if harmless in headers and logs */
        if (n > 0 && n <= 128 && given[n] == '\0') {
                http_add_header(x, "x-request-id", given);
                return;
        }
        buf_init(&id, 0);
        buf_addstr(&id, "req-");
        buf_addstr(&id, a->run);
        buf_addch(&id, '-');
        buf_addint(&id, (int64_t)++a->requests);
        http_add_header(x, "x-request-id", id.data);
        buf_release(&id);
}

void reply_field_error(struct http_exchange *x, struct body *b, const struct error *err)
{
        const char *colon = strstr(err->text, ": ");
        char *path = mem_strndup(err->text, colon ? (size_t)(colon - err->text) : 0);

        body_mistake(b, path, "%s", colon ? colon + 2 : err->text);
        reply_mistakes(x, b);
        free(path);
}
