/*
 * call_headers: header lines of a request to an agent, with the trace id as W3C traceparent and as
 * X-Trace-Id, for receivers that only log it.
 */
#ifndef AGENT_HTTP_CALL_HEADERS_H
#define AGENT_HTTP_CALL_HEADERS_H

#include "base/id.h"
#include "base/secret.h"
#include "base/settings.h"
#include "road/turn/turn_run.h"

#define CALL_HEADERS_MAX 48

struct call_headers {
        /* NULL-terminated, for http_request */
        const char *list[CALL_HEADERS_MAX + 1];
        size_t count;
};

void call_headers_init(struct call_headers *h);
/* Wipes the lines, some of which hold keys. */
void call_headers_release(struct call_headers *h);
/* Drops lines beyond the maximum, far above any configuration. */
void call_headers_add(struct call_headers *h, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* prefix: "Authorization: Bearer ". NULL secret: no line. */
void call_headers_secret(struct call_headers *h, const char *prefix, const struct secret *s);
/*
 * A turn's idempotency key: "trn-7-" and the trace id, because other databases also count from 1.
 */
#define CALL_HEADERS_KEY_SIZE (24 + ID_TRACE_SIZE)
const char *call_headers_key(const struct turn_run *run, char out[CALL_HEADERS_KEY_SIZE]);
/* Trace id and Idempotency-Key. NULL run: a new trace id alone. */
void call_headers_run(struct call_headers *h, const struct turn_run *run);

/* `headers`: each "Name: value", none set by the request itself. */
int call_headers_check(const struct settings_source *src, const char *path,
                       const struct setting_list *lines, struct error *err);
/* `apiKey`: no blank, no line end. May be NULL. */
int call_headers_check_key(const struct settings_source *src, const char *path,
                           const struct secret *key, struct error *err);

#endif
