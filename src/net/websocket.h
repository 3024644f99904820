/*
 * websocket: a WebSocket client on the loop (RFC 6455).
 *
 * libcurl makes the connection, so proxies, certificates and names are those of the http_client;
 * wslay makes the frames; the handshake between them is ours. Every wait has a deadline, every
 * buffer a maximum. The life of one connection:
 *
 *     websocket_open ──► on_open ──► on_message ... ──► on_closed
 *            └─────────────────────────────────────────────┘
 *
 * on_closed comes exactly once unless websocket_free came first. Pings are answered by themselves.
 * No extension is offered: compression, where there is any, is the business of whoever reads the
 * messages.
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
        const char *const *headers; /* further ones, "Name: value", NULL-terminated; may be NULL */
        int64_t open_ms;            /* 0: 20 s; name, connection, TLS and handshake together */
        int64_t close_ms;           /* 0: 5 s; how long the peer may take to answer our close */
        /* 0: 30 s; how long the peer may take nothing of what we send */
        int64_t stall_ms;
        size_t max_message; /* 0: 16 MiB; a larger one closes the connection with 1009 */
        size_t max_queued;  /* 0: 1 MiB; bytes waiting to be sent */
};

/* How it ended. Strings are borrowed for the call. */
struct websocket_end {
        bool opened; /* on_open had been called */
        /* of the peer's close frame; WEBSOCKET_NO_STATUS; WEBSOCKET_ABNORMAL when there was none */
        int code;
        const char *reason; /* of the peer's close frame, valid UTF-8; "" when none */
        /* the code we closed with first; 0: the peer was first, or nobody closed */
        int sent;
        int status;             /* the answer to a handshake that was refused; 0: another trouble */
        int64_t retry_after_ms; /* of that answer; -1: not told */
        enum error_kind kind;   /* ERR_NONE: a close frame came or was asked for */
        const char *why;        /* the sentence for a person, also without an error */
};

struct websocket_handlers {
        void (*on_open)(void *arg); /* optional */
        /* A whole message; bytes are borrowed. Text is valid UTF-8. */
        void (*on_message)(void *arg, bool binary, const char *bytes, size_t n);
        void (*on_pong)(void *arg); /* optional */
        /* ws still has to be freed */
        void (*on_closed)(void *arg, const struct websocket_end *end);
};

/*
 * Never fails at once: every problem arrives as on_closed, later. The client must outlive the
 * websocket.
 */
struct websocket *websocket_open(struct loop *l, struct http_client *http,
                                 const struct websocket_options *options,
                                 const struct websocket_handlers *handlers, void *arg);
/*
 * Drops the connection without a close frame, when it is still there; no callback follows. NULL is
 * fine. Allowed inside callbacks.
 */
void websocket_free(struct websocket *ws);

/*
 * Queues a message. -1: it is not open (any more), or max_queued is reached (ERR_LIMIT); nothing is
 * queued then.
 */
int websocket_send(struct websocket *ws, bool binary, const char *bytes, size_t n,
                   struct error *err);
int websocket_ping(struct websocket *ws);
/*
 * Says goodbye: on_closed follows when the peer has answered or close_ms is over. Messages that
 * come meanwhile are dropped.
 */
void websocket_close(struct websocket *ws, int code, const char *reason);
/* Backpressure: while paused nothing is read. Pings wait, too. */
void websocket_pause(struct websocket *ws, bool paused);
/* Bytes that wait to be sent. */
size_t websocket_queued(const struct websocket *ws);

#endif
