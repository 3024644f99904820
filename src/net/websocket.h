/*
 * websocket: a WebSocket client on the loop (RFC 6455).
 *
 * libcurl connects, with the proxy and certificates of the http_client; wslay handles the frames.
 *
 *     websocket_open ──► on_open ──► on_message ... ──► on_closed
 *            └─────────────────────────────────────────────┘
 *
 * on_closed comes exactly once unless websocket_free came first. Pings are answered automatically.
 */
#ifndef NET_WEBSOCKET_H
#define NET_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/http_client.h"
#include "net/loop.h"

#define WEBSOCKET_NORMAL    1000
#define WEBSOCKET_NO_STATUS 1005 /* the peer closed without a code */
#define WEBSOCKET_ABNORMAL  1006 /* the connection broke without a close frame */

struct websocket;

/* Everything is copied. */
struct websocket_options {
        const char *url;            /* ws:// or wss:// */
        const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
        int64_t open_ms;            /* 0: 20 s; name resolution, TCP, TLS and handshake */
        int64_t close_ms;           /* 0: 5 s; for the answer to our close */
        int64_t stall_ms;           /* 0: 30 s; while the peer accepts nothing */
        size_t max_message;         /* 0: 16 MiB; a larger one closes with 1009 */
        size_t max_queued;          /* 0: 1 MiB; bytes waiting to be sent */
};

/* How it ended. Strings are borrowed for the call. */
struct websocket_end {
        bool opened;            /* on_open had been called */
        int code;               /* of the peer's close frame */
        const char *reason;     /* valid UTF-8; "" when none */
        int sent;               /* our close code if we closed first, else 0 */
        int status;             /* HTTP status of a refused handshake, else 0 */
        int64_t retry_after_ms; /* of that answer; -1: none */
        enum error_kind kind;   /* ERR_NONE: a close frame came, or we closed */
        const char *why;        /* for a person, also without an error */
};

struct websocket_handlers {
        void (*on_open)(void *arg); /* optional */
        /* A whole message; bytes are borrowed. Text is valid UTF-8. */
        void (*on_message)(void *arg, bool binary, const char *bytes, size_t n);
        void (*on_ping)(void *arg); /* optional; it is answered already */
        void (*on_pong)(void *arg); /* optional */
        /* ws still has to be freed */
        void (*on_closed)(void *arg, const struct websocket_end *end);
};

/* Reports every problem by on_closed, later. The http_client must outlive the websocket. */
struct websocket *websocket_open(struct loop *l, struct http_client *http,
                                 const struct websocket_options *options,
                                 const struct websocket_handlers *handlers, void *arg);
/* Drops the connection; no callback follows. NULL is fine. Allowed inside callbacks. */
void websocket_free(struct websocket *ws);

/* Queues a message. -1: not open, or max_queued is reached (ERR_LIMIT). */
int websocket_send(struct websocket *ws, bool binary, const char *bytes, size_t n,
                   struct error *err);
int websocket_ping(struct websocket *ws);
/* on_closed follows when the peer answers or after close_ms; messages until then are dropped. */
void websocket_close(struct websocket *ws, int code, const char *reason);
/* Backpressure: reads nothing while paused, so pings wait, too. */
void websocket_pause(struct websocket *ws, bool paused);
size_t websocket_queued(const struct websocket *ws);

#endif
