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
int64_t http_retry_after_ms(const char *value, int64_t wall_now_ms);
/* The status of a line "HTTP/1.1 200 OK", or 0 when it is no status line. */
int http_status_of_line(const char *line, size_t n);
/* May this stand in a request as a method; as a "Name: value" line? */
bool http_method_ok(const char *method);
bool http_header_ok(const char *header);
/* Is `header` ("Name: value") the one called `name`? */
bool http_header_is(const char *header, const char *name);

#endif
