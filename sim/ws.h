/*
 * ws: the server side of WebSocket connections, frames by wslay.
 *
 * It listens at an address of its own, since the HTTP server hands out no connections. A connection
 * that has shaken hands is told of as open; then messages come whole, and at last it is told of as
 * gone, exactly once. With a certificate it speaks TLS.
 */
#ifndef SIM_WS_H
#define SIM_WS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "net/loop.h"

#define WS_CODE_GONE 1006 /* the code of a connection that ended without one */

struct ws;
struct ws_server;

struct ws_hooks {
        /*
         * target is the path and query that were asked for, borrowed. Set the connection's owner
         * here.
         */
        void (*on_open)(void *arg, struct ws *ws, const char *target);
        void (*on_message)(void *owner, const char *bytes, size_t n, bool binary);
        /* The last call; the connection is gone. code is the peer's, or WS_CODE_GONE. */
        void (*on_gone)(void *owner, int code);
};

struct ws_options {
        const char *listen; /* "127.0.0.1:0" */
        const char *tls_cert_file, *tls_key_file;
        size_t max_message; /* 0: 64 KiB; more closes the connection with 1009 */
};

struct ws_server *ws_server_new(struct loop *l, const struct ws_options *o,
                                const struct ws_hooks *hooks, void *arg, struct error *err);
/* Ends all connections, telling of each. */
void ws_server_free(struct ws_server *s);
/* "127.0.0.1:40123", borrowed. */
const char *ws_server_address(const struct ws_server *s);

void ws_set_owner(struct ws *ws, void *owner);
/* Copies the bytes. After a close nothing is sent any more. */
void ws_send(struct ws *ws, const char *bytes, size_t n, bool binary);
/* Says goodbye with a code; the connection ends when the peer has answered, or after a second. */
void ws_close(struct ws *ws, int code, const char *reason);
/* Ends at once, as if the cable had been pulled. on_gone follows from the loop. */
void ws_cut(struct ws *ws);

#endif
