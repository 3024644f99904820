/*
 * ws: a WebSocket server, frames by wslay, with TLS if it has a certificate.
 *
 * It listens on its own address, since the HTTP server hands out no connections. Each connection
 * reports on_open after the handshake, then whole messages, and on_gone exactly once.
 */
#ifndef SIM_WS_H
#define SIM_WS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "net/loop.h"

#define WS_CODE_GONE 1006 /* the connection ended without a close code */

struct ws;
struct ws_server;

struct ws_hooks {
        /* target is the path and query, borrowed. Set the connection's owner here. */
        void (*on_open)(void *arg, struct ws *ws, const char *target);
        void (*on_message)(void *owner, const char *bytes, size_t n, bool binary);
        /* The last call. code is the peer's, or WS_CODE_GONE. */
        void (*on_gone)(void *owner, int code);
};

struct ws_options {
        const char *listen; /* "127.0.0.1:0" */
        const char *tls_cert_file, *tls_key_file;
        size_t max_message; /* 0: 64 KiB; more closes the connection with 1009 */
};

struct ws_server *ws_server_new(struct loop *l, const struct ws_options *o,
                                const struct ws_hooks *hooks, void *arg, struct error *err);
/* Ends all connections, with on_gone for each. */
void ws_server_free(struct ws_server *s);
/* "127.0.0.1:40123", borrowed. */
const char *ws_server_address(const struct ws_server *s);

void ws_set_owner(struct ws *ws, void *owner);
/* Copies the bytes. Does nothing after a close. */
void ws_send(struct ws *ws, const char *bytes, size_t n, bool binary);
/* At most 125 bytes of text. */
void ws_ping(struct ws *ws, const char *text);
/* Keeps the connection but reads and writes nothing more, as when the network is gone. */
void ws_mute(struct ws *ws);
/* Sends a close frame; the connection ends when the peer answers, or after a second. */
void ws_close(struct ws *ws, int code, const char *reason);
/* Ends at once without a close frame. on_gone follows from the loop. */
void ws_cut(struct ws *ws);

#endif
