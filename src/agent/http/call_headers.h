/*
 * call_headers: the header lines of a request to an agent.
 *
 * Every call of every kind carries its trace, and it is written here and nowhere else: traceparent
 * as W3C says, X-Trace-Id for those who only want to log it.
 */
#ifndef AGENT_HTTP_CALL_HEADERS_H
#define AGENT_HTTP_CALL_HEADERS_H

#include "base/id.h"
#include "base/secret.h"
#include "base/settings.h"
#include "road/road.h"

#define CALL_HEADERS_MAX 48

struct call_headers {
        /* "Name: value", NULL-terminated, as http_request wants them */
        const char *list[CALL_HEADERS_MAX + 1];
        size_t count;
};

void call_headers_init(struct call_headers *h);
/* Wipes the lines: some hold keys. */
void call_headers_release(struct call_headers *h);
/* A line beyond the maximum is left out; the tables keep configured ones far below it. */
void call_headers_add(struct call_headers *h, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
/* prefix is all but the value: "Authorization: Bearer ". NULL secret: no line. */
void call_headers_secret(struct call_headers *h, const char *prefix, const struct secret *s);
/* Lines of the configuration, checked by call_headers_check. */
void call_headers_list(struct call_headers *h, const struct setting_list *lines);
/*
 * What an agent knows a turn by when it is asked again: "trn-7-" and the trace. Numbers of turns
 * alone would begin anew with another database, and an agent that remembers them would answer with
 * what it said to somebody else.
 */
#define CALL_HEADERS_KEY_SIZE (24 + ID_TRACE_SIZE)
const char *call_headers_key(const struct turn_run *run, char out[CALL_HEADERS_KEY_SIZE]);
/* The trace of the run, and its key as Idempotency-Key. NULL run: a trace of its own. */
void call_headers_run(struct call_headers *h, const struct turn_run *run);

/*
 * Is each line "Name: value", in one line, and none of those we write ourselves? Reports the first
 * that is not.
 */
int call_headers_check(const struct settings_source *src, const char *path,
                       const struct setting_list *lines, struct error *err);
/* Is the value fit for a header line: no blank, no line end? */
bool call_headers_fit(const struct secret *s);

#endif
