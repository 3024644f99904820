/*
 * http_raw: a client that sends exactly the given bytes, for tests of the HTTP server.
 *
 * Server and client share one thread: every wait here runs the server's loop. All waits end after
 * some seconds with a failed test.
 */
#ifndef TESTS_LIB_HTTP_RAW_CLIENT_H
#define TESTS_LIB_HTTP_RAW_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "net/loop.h"

struct http_raw {
        struct loop *loop;
        int fd;
        bool closed;   /* the server has closed (or reset) its side */
        struct buf in; /* everything received so far */
};

/* Connects to "127.0.0.1:port". */
void http_raw_open(struct http_raw *c, struct loop *l, const char *address);
void http_raw_close(struct http_raw *c);
/* Closes with a TCP reset. */
void http_raw_reset(struct http_raw *c);
/* Sends as much as the server takes; false when the connection broke meanwhile. */
bool http_raw_send(struct http_raw *c, const void *bytes, size_t n);
bool http_raw_say(struct http_raw *c, const char *text);
/* Shuts down our writing side. */
void http_raw_half_close(struct http_raw *c);
/* Runs the loop until done(arg); false after too long. */
bool http_raw_until(struct loop *l, bool (*done)(void *arg), void *arg);
/* Runs the loop until this text has been received; false when the server closed before. */
bool http_raw_wait_for(struct http_raw *c, const char *text);
/* Runs the loop until there are n complete answers; false when the server closed before. */
bool http_raw_wait_answers(struct http_raw *c, size_t n);
/* Runs the loop until the server has closed. */
bool http_raw_wait_closed(struct http_raw *c);
/* Lets the server run while at most so many milliseconds pass. */
void http_raw_pause(struct http_raw *c, int ms);
/* Is a connection to this address refused? */
bool http_raw_refused(const char *address);
/*
 * Number of complete answers received (status line, headers, Content-Length or chunked body). 100s
 * do not count.
 */
size_t http_raw_answers(const struct http_raw *c);
/* Status of the i-th answer, or of its beginning; 0 when there is none. */
int http_raw_status(const struct http_raw *c, size_t i);

#endif
