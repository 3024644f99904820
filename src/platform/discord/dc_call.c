#include "platform/discord/dc_call.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http_text.h"
#include "platform/adapter_file.h"
#include "platform/discord/dc_id.h"

#define CALL_MS      15000
#define WAIT_MS      10000
#define RETRY_MAX_MS ((int64_t)86400 * 1000)

int dc_call_path(const struct dc_request *q, struct buf *path, struct buf *major, struct error *err)
{
        bool webhook = strncmp(q->route, "/webhooks/", 10) == 0;
        const char *at = q->route, *open;
        size_t n = 0;

        for (; (open = strchr(at, '{')); n++) {
                const char *close = strchr(open, '}'), *arg = n < DC_ARGS_MAX ? q->args[n] : NULL;
                bool is_id = strncmp(close - 3, "_id", 3) == 0;
                char *escaped;

                buf_add(path, at, (size_t)(open - at));
                if (!arg || !*arg || strcmp(arg, ".") == 0 || strcmp(arg, "..") == 0 ||
                    (is_id && !dc_id_valid(arg)))
                        return error_set(err, ERR_INVALID, "'%.40s' is no %.*s of Discord%s",
                                         arg ? arg : "", (int)(close - open - 1), open + 1,
                                         is_id ? ": ids are digits" : "");
                escaped = http_text_escape(arg);
                buf_addstr(path, escaped);
                if (n == 0 || (n == 1 && webhook))
                        buf_addf(major, "%s%s", n ? "/" : "", escaped);
                free(escaped);
                at = close + 1;
        }
        buf_addstr(path, at);
        if (q->query)
                buf_addf(path, "?%s", q->query);
        return 0;
}

int dc_call_init(struct dc_call *c, const struct dc_request *q, int64_t now_ms, struct error *err)
{
        struct buf path, major;
        int rc;

        c->method = mem_strdup(q->method);
        c->route = mem_strdup(q->route);
        c->body = q->body ? json_text(q->body) : NULL;
        c->queued.priority = q->priority;
        c->repeatable = q->repeatable;
        c->drop_on_cancel = q->drop_on_cancel;
        c->bare = strncmp(q->route, "/interactions/", 14) == 0 ||
                  strncmp(q->route, "/webhooks/", 10) == 0;
        c->total_ms = q->total_ms > 0 ? q->total_ms : CALL_MS;
        c->queued.deadline_ms = now_ms + (q->wait_ms > 0 ? q->wait_ms : WAIT_MS);
        for (; c->file_count < q->file_count && c->file_count < DC_FILES_MAX; c->file_count++) {
                const struct dc_upload *file = &q->files[c->file_count];

                c->files[c->file_count] = (struct dc_upload){ file->file, mem_strdup(file->name),
                                                              mem_strdup(file->mime) };
                c->files[c->file_count].file.fd = fcntl(file->file.fd, F_DUPFD_CLOEXEC, 0);
        }
        buf_init(&path, 0);
        buf_init(&major, 0);
        rc = dc_call_path(q, &path, &major, err);
        if (rc == 0) {
                c->path = mem_strdup(path.data);
                c->major = mem_strdup(major.data);
        }
        buf_release(&path);
        buf_release(&major);
        return rc;
}

void dc_call_free(struct dc_call *c)
{
        for (size_t i = 0; i < c->file_count; i++) {
                adapter_file_close(&c->files[i].file);
                free((char *)c->files[i].name);
                free((char *)c->files[i].mime);
        }
        free(c->method);
        free(c->major);
        free(c->path);
        free(c->route);
        free(c->body);
        free(c);
}

struct http_call *dc_call_start(struct dc_call *c, struct http_client *http, const char *base,
                                const char *authorization, const struct http_handlers *handlers)
{
        struct http_part parts[DC_FILES_MAX + 1] = { 0 };
        char names[DC_FILES_MAX][32];
        char *url = mem_printf("%s%s", base, c->path);
        const char *headers[4] = { DC_AGENT };
        size_t n = 1;
        struct http_request q = { .method = c->method,
                                  .url = url,
                                  .headers = headers,
                                  .total_ms = c->total_ms,
                                  .repeatable = c->repeatable };
        struct http_call *started;

        if (!c->bare)
                headers[n++] = authorization;
        if (c->file_count > 0) {
                if (c->body)
                        parts[q.part_count++] =
                                (struct http_part){ .name = "payload_json",
                                                    .data = c->body,
                                                    .data_n = strlen(c->body),
                                                    .content_type = "application/json" };
                for (size_t i = 0; i < c->file_count; i++) {
                        snprintf(names[i], sizeof(names[i]), "files[%zu]", i);
                        parts[q.part_count++] =
                                (struct http_part){ .name = names[i],
                                                    .file = &c->files[i].file,
                                                    .file_name = c->files[i].name,
                                                    .content_type = c->files[i].mime };
                }
                q.parts = parts;
        } else if (c->body) {
                headers[n++] = "Content-Type: application/json";
                q.body = c->body;
                q.body_n = strlen(c->body);
        }
        started = http_call_start(http, &q, handlers, c);
        if (c->bare)
                explicit_bzero(url, strlen(url));
        free(url);
        return started;
}

struct dc_rate_limit_headers dc_call_limits(const struct http_call *h)
{
        int64_t limit = dc_rate_limit_ms(http_call_header(h, "X-RateLimit-Limit")),
                remaining = dc_rate_limit_ms(http_call_header(h, "X-RateLimit-Remaining")),
                after = dc_rate_limit_ms(http_call_header(h, "X-RateLimit-Reset-After"));

        return (struct dc_rate_limit_headers){
                .hash = http_call_header(h, "X-RateLimit-Bucket"),
                .limit = limit < 0 ? -1 : limit / 1000, /* plain numbers */
                .remaining = remaining < 0 ? -1 : remaining / 1000,
                .reset_after_ms = after < RETRY_MAX_MS ? after : RETRY_MAX_MS,
                .window = dc_rate_limit_ms(http_call_header(h, "X-RateLimit-Reset")),
        };
}

/* The body's number is exact, the header has whole seconds. */
static int64_t retry_after(const json_t *body, const struct http_result *result)
{
        const json_t *given = json_object_get(body, "retry_after");
        double seconds = json_number_value(given);

        if (json_is_number(given) && seconds >= 0)
                return seconds > (double)RETRY_MAX_MS / 1000 ? RETRY_MAX_MS
                                                             : (int64_t)(seconds * 1000) + 1;
        if (json_is_number(given) || (result->status == 429 && result->retry_after_ms <= 0))
                return CALL_LIMITED_MS;
        return result->retry_after_ms;
}

/* The first of {"content": {"_errors": [{"message": ...}]}}; where: its path. */
static const char *first_error(const json_t *errors, struct buf *where)
{
        const json_t *list = json_object_get(errors, "_errors");
        const char *key, *message;
        json_t *member;

        if (list)
                return json_str(json_array_get(list, 0), "message", NULL);
        json_object_foreach((json_t *)errors, key, member) {
                size_t before = where->len;

                buf_addf(where, "%s%s", before ? "." : "", key);
                message = first_error(member, where);
                if (message)
                        return message;
                buf_truncate(where, before);
        }
        return NULL;
}

void dc_call_answer(const struct http_call *h, const struct http_result *result, const json_t *body,
                    struct dc_answer *out, char *text, size_t size)
{
        const char *global = http_call_header(h, "X-RateLimit-Global"),
                   *message = json_str(body, "message", NULL), *detail;
        struct buf where;

        *out = (struct dc_answer){
                .ok = result->status >= 200 && result->status < 300,
                .status = result->status,
                .code = (int)json_int(body, "code", 0),
                .reach = result->reach,
                .kind = result->kind,
                .result = body,
                .why = text,
                .retry_after_ms = retry_after(body, result),
                /* a 429 without JSON comes from Cloudflare, and is about our address */
                .global = (global && strcmp(global, "true") == 0) ||
                          json_flag(body, "global", false) || (result->status == 429 && !body),
        };
        text[0] = '\0';
        buf_init(&where, 200);
        detail = first_error(json_object_get(body, "errors"), &where);
        if (result->status == 0)
                snprintf(text, size, "Discord could not be reached: %s",
                         result->why ? result->why : "no reason given");
        else if (!out->ok && message && detail)
                snprintf(text, size, "Discord says: %s (%d): %s: %s", message, out->code,
                         where.data, detail);
        else if (!out->ok && message && out->code)
                snprintf(text, size, "Discord says: %s (%d)", message, out->code);
        else if (!out->ok && message)
                snprintf(text, size, "Discord says: %s (status %d)", message, out->status);
        else if (!out->ok)
                snprintf(text, size, "Discord answered %d", out->status);
        buf_release(&where);
        log_redact(text);
}
