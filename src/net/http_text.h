/*
 * http_text: pure functions on pieces of HTTP text.
 */
#ifndef NET_HTTP_TEXT_H
#define NET_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Milliseconds to wait by a Retry-After value: seconds, perhaps with a fraction, or an HTTP date;
 * -1: neither.
 */
int64_t http_text_retry_after_ms(const char *value, int64_t wall_now_ms);
/* An HTTP date, in ms since 1970; -1: it is none. */
int64_t http_text_date_ms(const char *value);
/* The status in "HTTP/1.1 200 OK"; 0: not a status line. */
int http_text_status(const char *line, size_t n);
/* Is this allowed in a request as a method; as a "Name: value" line? */
bool http_text_is_method(const char *method);
bool http_text_is_header(const char *header);
/* Percent-encoded copy of a path or query part, yours to free. */
char *http_text_escape(const char *text);
/* Have two URLs the same scheme, host and port? */
bool http_text_same_origin(const char *url, const char *other);
/* Is this https to the host, at the usual port, without user info? */
bool http_text_is_https_of(const char *url, const char *host);
/* Is `header` ("Name: value") the one called `name`? */
bool http_text_header_is(const char *header, const char *name);
/* The kind of failure that a status of 300 or above means. */
enum error_kind http_text_status_kind(int status);

#endif
