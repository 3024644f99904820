/*
 * line: a connection to a host, through proxy and TLS, whose bytes are the caller's.
 *
 * libcurl makes it with the proxy, the certificates and the name resolution of an http_client, and
 * then only reads and writes. Each line has a multi handle of its own: in a shared one, curl would
 * take the quiet connection for an idle one and close it.
 */
#ifndef NET_TLS_CONNECTION_H
#define NET_TLS_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "net/http_client.h"
#include "net/loop.h"

#define LINE_AGAIN (-2)

struct line;

struct line_handlers {
        /* Once: connected (err NULL), or not. */
        void (*on_connected)(void *arg, const struct error *err);
        /* What line_want asked for is possible. */
        void (*on_ready)(void *arg, bool readable, bool writable);
};

/* url: http:// or https://; only its host and port count. Never fails at once. */
struct line *line_open(struct loop *l, struct http_client *http, const char *url,
                       int64_t connect_ms, const struct line_handlers *handlers, void *arg);
/* Closes; no callback follows. NULL is fine. Allowed inside callbacks. */
void line_free(struct line *line);
/* After on_connected. */
void line_want(struct line *line, bool read, bool write);
/*
 * > 0: bytes; 0: the peer has closed; LINE_AGAIN: wait for on_ready; -1: the connection broke. Read
 * until LINE_AGAIN: bytes that TLS has already taken from the socket do not wake anybody.
 */
ssize_t line_read(struct line *line, void *out, size_t n, struct error *err);
ssize_t line_write(struct line *line, const void *bytes, size_t n, struct error *err);
/* Of the peer, for sentences; borrowed. */
const char *line_host(const struct line *line);

#endif
