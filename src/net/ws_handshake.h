/*
 * ws_handshake: turns an HTTP connection into a WebSocket (RFC 6455, section 4). Pure: bytes in,
 * bytes out.
 */
#ifndef NET_WS_HANDSHAKE_H
#define NET_WS_HANDSHAKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define WS_KEY_SIZE    25 /* base64 of 16 bytes and the NUL */
#define WS_ACCEPT_SIZE 29 /* base64 of 20 bytes and the NUL */
#define WS_HEAD_MAX    ((size_t)16 * 1024)

struct ws_target {
        char *origin; /* http(s)://host:port, for the connection */
        char *host;   /* for the Host header */
        char *path;   /* with the query */
};
/* Splits a ws:// or wss:// URL; -1: it is none. Release it in any case. */
int ws_target_init(struct ws_target *p, const char *url, struct error *err);
void ws_target_release(struct ws_target *p);

/* A random key. */
char *ws_handshake_key(char out[WS_KEY_SIZE]);
/* The server's answer to this key. */
char *ws_handshake_accept(const char *key, char out[WS_ACCEPT_SIZE]);

/* The request; -1 when one of the headers is malformed. */
int ws_handshake_request(struct buf *out, const struct ws_target *target, const char *key,
                         const char *const *headers, struct error *err);

struct ws_handshake_answer {
        size_t length; /* of the head; frames follow */
        int status;
        int64_t retry_after_ms; /* -1: none */
};
/*
 * Parses what has arrived of the answer. 1: switched to WebSocket; 0: incomplete; -1: refused
 * (status is set if it was HTTP at all, e.g. 429). We offer no extensions or protocols, so the
 * server must not choose any.
 */
int ws_handshake_read(struct ws_handshake_answer *out, const char *bytes, size_t n, const char *key,
                      struct error *err);

#endif
