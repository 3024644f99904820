#include "agent/http/call_headers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/mem.h"

void call_headers_init(struct call_headers *h)
{
        *h = (struct call_headers){ 0 };
}

void call_headers_release(struct call_headers *h)
{
        for (size_t i = 0; i < h->count; i++) {
                char *line = (char *)h->list[i]; /* ours; const only for http_request */

                explicit_bzero(line, strlen(line));
                free(line);
        }
        call_headers_init(h);
}

void call_headers_add(struct call_headers *h, const char *fmt, ...)
{
        struct buf b;
        va_list ap;

        buf_init(&b, 0);
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        if (h->count < CALL_HEADERS_MAX)
                h->list[h->count++] = buf_take(&b);
        else
                buf_release(&b);
}

void call_headers_secret(struct call_headers *h, const char *prefix, const struct secret *s)
{
        if (s)
                call_headers_add(h, "%s%s", prefix, secret_reveal(s));
}

const char *call_headers_key(const struct turn_run *run, char out[CALL_HEADERS_KEY_SIZE])
{
        snprintf(out, CALL_HEADERS_KEY_SIZE, "%s-%s", run->key, run->trace ? run->trace : "");
        return out;
}

void call_headers_run(struct call_headers *h, const struct turn_run *run)
{
        char made[ID_TRACE_SIZE], span[ID_SPAN_SIZE], key[CALL_HEADERS_KEY_SIZE];
        const char *trace = run ? run->trace : NULL;
        const char *parent = run && run->input_count > 0 ? run->inputs[0]->traceparent : NULL;

        if (!trace || strlen(trace) != ID_TRACE_SIZE - 1)
                trace = id_trace(made);
        call_headers_add(h, "traceparent: 00-%s-%s-%s", trace, id_span(span),
                         id_parent_samples(parent, trace) ? "01" : "00");
        call_headers_add(h, "X-Trace-Id: %s", trace);
        if (run && run->key && *run->key)
                call_headers_add(h, "Idempotency-Key: %s", call_headers_key(run, key));
}

/* ---- configuration ---- */

/* Set by us, or by libcurl. */
static const char *const reserved[] = { "content-type",         "content-length",
                                        "transfer-encoding",    "host",
                                        "connection",           "traceparent",
                                        "x-trace-id",           "idempotency-key",
                                        "x-dragoman-signature", "x-dragoman-timestamp" };

static const char *find_mistake(const char *line)
{
        size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

        if (n == 0 || line[n] != ':')
                return "is not written as \"Name: value\"";
        for (const char *p = line; *p; p++) {
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        return "contains a control character";
        }
        for (size_t i = 0; i < COUNT(reserved); i++) {
                if (strlen(reserved[i]) == n && strncasecmp(reserved[i], line, n) == 0)
                        return "is a header that the request sets itself";
        }
        return NULL;
}

int call_headers_check(const struct settings_source *src, const char *path,
                       const struct setting_list *lines, struct error *err)
{
        if (lines->count > CALL_HEADERS_MAX / 2)
                return settings_member_error(src, path, "headers", err, "has more than %d lines",
                                             CALL_HEADERS_MAX / 2);
        for (size_t i = 0; i < lines->count; i++) {
                const char *mistake = find_mistake(lines->items[i]);

                if (mistake)
                        return settings_member_error(src, path, "headers", err, "'%.60s' %s",
                                                     lines->items[i], mistake);
        }
        return 0;
}

int call_headers_check_key(const struct settings_source *src, const char *path,
                           const struct secret *key, struct error *err)
{
        for (const char *p = key ? secret_reveal(key) : ""; *p; p++) {
                if ((unsigned char)*p <= ' ' || *p == 0x7f)
                        return settings_member_error(src, path, "apiKey", err,
                                                     "contains a blank or a control character");
        }
        return 0;
}
