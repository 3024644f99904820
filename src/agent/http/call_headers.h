/*
 * call_headers: the header lines of a request to an agent.
 *
 * Every call of every kind carries its trace id, and only this file writes it: as W3C traceparent,
 * and as X-Trace-Id for receivers that only log it.
 */
#ifndef AGENT_HTTP_CALL_HEADERS_H
#define AGENT_HTTP_CALL_HEADERS_H

#include "base/id.h"
#include "base/secret.h"
#include "base/settings.h"
#include "road/turn_run.h"

#define CALL_HEADERS_MAX 48

struct call_headers {
        /* "Name: value", NULL-terminated, as http_request takes them */
        const char *list[CALL_HEADERS_MAX + 1];
        size_t count;
};

void call_headers_init(struct call_headers *h);
/* Wipes the lines: some hold keys. */
void call_headers_release(struct call_headers *h);
/* Drops a line beyond the maximum; the configuration stays far below it. */
void call_headers_add(struct call_headers *h, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* prefix is all but the value: "Authorization: Bearer ". NULL secret: no line. */
void call_headers_secret(struct call_headers *h, const char *prefix, const struct secret *s);
/*
 * The idempotency key of a turn: "trn-7-" and the trace id. Another database counts turns from 1
 * again, so the number alone could match another turn in an agent's memory.
 */
#define CALL_HEADERS_KEY_SIZE (24 + ID_TRACE_SIZE)
const char *call_headers_key(const struct turn_run *run, char out[CALL_HEADERS_KEY_SIZE]);
/* The trace id of the run, and its key as Idempotency-Key. NULL run: a new trace id alone. */
void call_headers_run(struct call_headers *h, const struct turn_run *run);

/* Checks `headers`: each a single "Name: value", none that the request sets itself. */
int call_headers_check(const struct settings_source *src, const char *path,
                       const struct setting_list *lines, struct error *err);
/* Checks `apiKey`: no blank, no line end. NULL is fine. */
int call_headers_check_key(const struct settings_source *src, const char *path,
                           const struct secret *key, struct error *err);

#endif
