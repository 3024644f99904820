/*
 * websocket: the server side of WebSocket connections, frames by wslay.
 *
 * It listens at an address of its own, since the HTTP server hands out no connections. A connection that has shaken hands is
 * told of as open; then messages come whole, and at last it is told of as gone, exactly once. With a certificate it speaks TLS.
 */
#ifndef SIM_WEBSOCKET_H
#define SIM_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "net/loop.h"

#define WEBSOCKET_GONE 1006 /* the code of a connection that ended without one */

struct websocket;
struct websocket_server;

struct websocket_hooks {
        /* target is the path and query that were asked for, borrowed. Set the connection's owner here. */
        void (*on_open)(void *arg, struct websocket *ws, const char *target);
        void (*on_message)(void *owner, const char *bytes, size_t n, bool binary);
        /* The last call; the connection is gone. code is the peer's, or WEBSOCKET_GONE. */
        void (*on_gone)(void *owner, int code);
};

struct websocket_options {
        const char *listen; /* "127.0.0.1:0" */
        const char *tls_cert_file, *tls_key_file;
        size_t max_message; /* 0: 64 KiB; more closes the connection with 1009 */
};

struct websocket_server *websocket_server_new(struct loop *l, const struct websocket_options *o,
                                              const struct websocket_hooks *hooks, void *arg,
                                              struct error *err);
/* Ends all connections, telling of each. */
void websocket_server_free(struct websocket_server *s);
/* "127.0.0.1:40123", borrowed. */
const char *websocket_server_address(const struct websocket_server *s);

void websocket_set_owner(struct websocket *ws, void *owner);
/* Copies the bytes. After a close nothing is sent any more. */
void websocket_send(struct websocket *ws, const char *bytes, size_t n, bool binary);
/* Says goodbye with a code; the connection ends when the peer has answered, or after a second. */
void websocket_close(struct websocket *ws, int code, const char *reason);
/* Ends at once, as if the cable had been pulled. on_gone follows from the loop. */
void websocket_cut(struct websocket *ws);

#endif
