/*
 * tls_connection: a byte stream to a host, through proxy and TLS (or plain TCP for http://).
 *
 * libcurl connects with the proxy, certificates and name resolution of an http_client, then only
 * reads and writes. Each connection has a multi handle of its own: in a shared one, curl would take
 * a quiet connection for an idle one and close it.
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

#define TLS_CONNECTION_AGAIN (-2)

struct tls_connection;

struct tls_connection_handlers {
        /* Once: connected (err NULL) or failed. */
        void (*on_connected)(void *arg, const struct error *err);
        /* Some of what tls_connection_want asked for is possible. */
        void (*on_ready)(void *arg, bool readable, bool writable);
};

/* url: http:// or https://; only its host and port count. Reports errors by on_connected, later. */
struct tls_connection *tls_connection_open(struct loop *l, struct http_client *http,
                                           const char *url, int64_t connect_ms,
                                           const struct tls_connection_handlers *handlers,
                                           void *arg);
/* Closes; no callback follows. NULL is fine. Allowed inside callbacks. */
void tls_connection_free(struct tls_connection *c);
/* After on_connected. */
void tls_connection_want(struct tls_connection *c, bool read, bool write);
/*
 * > 0: bytes; 0: the peer has closed; TLS_CONNECTION_AGAIN: wait for on_ready; -1: the connection
 * broke. Read until TLS_CONNECTION_AGAIN: bytes that TLS has already taken from the socket cause no
 * on_ready.
 */
ssize_t tls_connection_read(struct tls_connection *c, void *out, size_t n, struct error *err);
ssize_t tls_connection_write(struct tls_connection *c, const void *bytes, size_t n,
                             struct error *err);

#endif
