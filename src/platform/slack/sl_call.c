#include "platform/slack/sl_call.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http_text.h"
#include "platform/adapter_file.h"

#define CALL_MS 15000

/* Of every post: its limits are those of the address. */
static const struct sl_method post_method = { .name = "" };

/* ---- requests ---- */

/* Texts as they are, everything else as JSON; null is absent. */
static char *form_body(const json_t *args)
{
        struct buf form;
        const char *key;
        json_t *value;

        buf_init(&form, 0);
        json_object_foreach((json_t *)args, key, value) {
                char *dumped = json_is_string(value) ? NULL : json_text(value);
                char *name = http_text_escape(key),
                     *text = http_text_escape(dumped ? dumped : json_string_value(value));

                if (!json_is_null(value))
                        buf_addf(&form, "%s%s=%s", form.len ? "&" : "", name, text);
                free(dumped);
                free(name);
                free(text);
        }
        return buf_take(&form);
}

int sl_call_init(struct sl_call *c, const struct sl_request *q, struct error *err)
{
        c->file.fd = -1;
        c->method = sl_method_find(q->method);
        c->drop_on_cancel = q->drop_on_cancel;
        c->total_ms = q->total_ms > 0 ? q->total_ms : CALL_MS;
        if (!c->method) {
                c->method = &post_method;
                return error_set(err, ERR_INVALID, "'%.60s' is no method of Slack that is called",
                                 q->method);
        }
        if (c->method->form)
                c->body = form_body(q->args);
        else
                c->body = q->args ? json_text(q->args) : mem_strdup("{}");
        return 0;
}

int sl_call_init_post(struct sl_call *c, const struct sl_post *p, struct error *err)
{
        c->method = &post_method;
        c->url = mem_strdup(p->url);
        c->total_ms = p->total_ms > 0 ? p->total_ms : CALL_MS;
        c->body = p->json ? json_text(p->json) : NULL;
        c->file.fd = -1;
        if (p->file) {
                c->file = *p->file;
                c->file.fd = fcntl(p->file->fd, F_DUPFD_CLOEXEC, 0);
                if (c->file.fd < 0)
                        return error_set(err, ERR_IO, "cannot read the file to send");
        }
        return 0;
}

void sl_call_free(struct sl_call *c)
{
        adapter_file_close(&c->file);
        if (c->url)
                explicit_bzero(c->url, strlen(c->url));
        free(c->url);
        free(c->body);
        free(c->scopes);
        free(c);
}

struct http_call *sl_call_start(struct sl_call *c, struct http_client *http, const char *base,
                                const char *authorization, const struct http_handlers *handlers)
{
        static const char form[] = "Content-Type: application/x-www-form-urlencoded",
                          json[] = "Content-Type: application/json; charset=utf-8";
        const struct http_part part = { .name = "file", .file = &c->file, .file_name = "file" };
        char *url = c->url ? c->url : mem_printf("%s/%s", base, c->method->name);
        const char *headers[3] = { NULL };
        struct http_request q = { .method = "POST",
                                  .url = url,
                                  .headers = headers,
                                  .total_ms = c->total_ms,
                                  .repeatable = c->method->repeatable };
        struct http_call *started;
        size_t n = 0;

        if (!c->url)
                headers[n++] = authorization;
        if (c->file.fd >= 0) {
                q.parts = &part;
                q.part_count = 1;
        } else if (c->body) {
                headers[n++] = c->method->form ? form : json;
                q.body = c->body;
                q.body_n = strlen(c->body);
        }
        started = http_call_start(http, &q, handlers, c);
        if (url != c->url)
                free(url);
        return started;
}

/* ---- answers ---- */

bool sl_call_is_limit(const char *error)
{
        return error && (strcmp(error, "ratelimited") == 0 || strcmp(error, "rate_limited") == 0);
}

/* Not what Slack answers: a proxy, a login page, a maintenance page. */
static void read_other(const struct http_result *r, struct sl_answer *out, char *text, size_t size)
{
        size_t blank = r->body ? strspn(r->body, " \t\r\n") : 0;
        bool page = r->body && r->body[blank] == '<';

        if (r->kind == ERR_LIMIT)
                snprintf(text, size, "Slack's answer (status %d) is too large", r->status);
        else if (r->kind != ERR_NONE)
                snprintf(text, size, "Slack's answer broke off: %s",
                         r->why ? r->why : "no reason given");
        else
                snprintf(text, size, "Slack answered %d with %s instead of JSON%s", r->status,
                         page ? "a web page" : "something",
                         r->status < 300 ? ": is apiBase right, or a proxy in between?" : "");
        /* ERR_LIMIT would mean that it was not tried */
        out->kind = r->kind == ERR_NONE || r->kind == ERR_LIMIT ? ERR_PROTOCOL : r->kind;
}

void sl_call_answer(const struct sl_call *c, const struct http_result *r, const json_t *body,
                    struct sl_answer *out, char *text, size_t size)
{
        bool answered = r->status >= 200 && r->status < 300, is_json = json_is_object(body);

        *out = (struct sl_answer){ .status = r->status,
                                   .reach = r->reach,
                                   .kind = r->kind,
                                   .result = is_json ? body : NULL,
                                   .error = json_str(body, "error", NULL),
                                   .why = text,
                                   .retry_after_ms = r->retry_after_ms,
                                   .scopes = c->scopes };
        text[0] = '\0';
        if (c->url) /* these say "ok" in many ways */
                out->ok = answered && json_flag(body, "ok", true);
        else
                out->ok = answered && json_flag(body, "ok", false);
        if (out->ok)
                out->error = NULL;
        else if (r->status == 0)
                snprintf(text, size, "Slack could not be reached: %s",
                         r->why ? r->why : "no reason given");
        else if (r->status == 429 || sl_call_is_limit(out->error))
                snprintf(text, size, "Slack's rate limit%s%s is reached", c->url ? "" : " of ",
                         c->method->name);
        else if (is_json && out->error)
                sl_error_text(c->url ? NULL : c->method, body, text, size);
        else if (c->url && r->kind == ERR_NONE)
                snprintf(text, size, "Slack answered %d", r->status);
        else
                read_other(r, out, text, size);
        if (r->status > 0 && sl_call_is_limit(out->error))
                out->status = 429;
        log_redact(text);
}
