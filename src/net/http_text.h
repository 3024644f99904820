/*
 * http_text: small pieces of HTTP text, pure.
 */
#ifndef NET_HTTP_TEXT_H
#define NET_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Milliseconds to wait from a Retry-After value: seconds (a fraction is understood) or an HTTP
 * date. -1: neither.
 */
int64_t http_text_retry_after_ms(const char *value, int64_t wall_now_ms);
/* The status of a line "HTTP/1.1 200 OK", or 0 when it is no status line. */
int http_text_status(const char *line, size_t n);
/* May this stand in a request as a method; as a "Name: value" line? */
bool http_text_is_method(const char *method);
bool http_text_is_header(const char *header);
/* Percent-encoded copy of a path or query part, yours to free. */
char *http_text_escape(const char *text);
/* Is `header` ("Name: value") the one called `name`? */
bool http_text_header_is(const char *header, const char *name);

#endif
