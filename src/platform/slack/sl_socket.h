/*
 * sl_socket: receives over Socket Mode, on several connections.
 *
 * Slack sends each envelope on any one of them. It is acknowledged once it is stored, on the
 * connection it came on; if that one has ended, Slack sends it again and the inbox recognises it.
 * Events of several connections are put into their order (sl_order.h).
 * A connection that Slack is about to end is replaced first: the new one says hello, then the old
 * one sends its outstanding acknowledgements and closes. Reading pauses while the owner is full.
 */
#ifndef PLATFORM_SLACK_SL_SOCKET_H
#define PLATFORM_SLACK_SL_SOCKET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/http_client.h"
#include "net/loop.h"
#include "platform/slack/sl_order.h"
#include "platform/slack/slack.h"

#define SL_SOCKET_MAX 10 /* connections, Slack's maximum */

/* Milliseconds; 0: the default in the comment. Tests shorten them. */
struct sl_socket_times {
        int64_t hello_ms;       /* 20000: from the URL to hello */
        int64_t ping_ms;        /* 5000: between our pings */
        int64_t pong_ms;        /* 10000: without an answer to ours */
        int64_t quiet_ms;       /* 30000: without a ping of Slack, after the first one */
        int64_t drain_ms;       /* 10000: for outstanding acknowledgements */
        int64_t backoff_ms;     /* 1000: doubles with each failure, with full jitter */
        int64_t backoff_max_ms; /* 60000 */
        int64_t crowded_ms;     /* 30000: the same, while Slack has too many connections */
        int64_t stable_ms;      /* 60000: a connection that lasted so long clears the failures */
        int64_t grace_ms;       /* 5000: shorter losses are not reported */
        int64_t suspend_ms;     /* 60000: a jump of the clock that means the machine slept */
        int64_t room_ms;        /* 20: how often a full owner is asked again */
        int64_t order_ms;       /* 20: how long an event waits for older ones of others */
};

/* ---- sl_connection.c: one connection, used once ---- */

struct sl_connection;

/* Each may free the connection. */
struct sl_connection_handlers {
        void (*hello)(void *arg, struct sl_connection *c, const json_t *hello);
        /* As sl_intake_take. */
        void (*envelope)(void *arg, struct sl_connection *c, enum sl_arrival kind, json_t *payload,
                         int retry, sl_stored_fn *stored, void *stored_arg);
        /* Slack is about to end it. */
        void (*disconnect)(void *arg, struct sl_connection *c, const char *reason);
        /* It has ended, or is no longer useful; free it. retry_after_ms -1: not given. */
        void (*closed)(void *arg, struct sl_connection *c, const char *why, int64_t retry_after_ms);
};

struct sl_connection_options {
        struct loop *loop;
        struct http_client *http;
        const char *name; /* of the adapter */
        const char *url;  /* not kept; NULL: there is no socket (a fuzzer) */
        struct sl_socket_times times;
};

/* Name and handlers must outlive it. */
struct sl_connection *sl_connection_open(const struct sl_connection_options *o,
                                         const struct sl_connection_handlers *handlers, void *arg);
/* Outstanding acknowledgements are dropped. NULL is fine. */
void sl_connection_free(struct sl_connection *c);
/* Sends the outstanding acknowledgements for a limited time, then closes; `closed` follows. */
void sl_connection_drain(struct sl_connection *c);
enum sl_pause {
        SL_PAUSE_FULL = 1,  /* the owner is */
        SL_PAUSE_ORDER = 2, /* it is ahead of others */
};
/* Reads nothing while there is a reason for a pause. */
void sl_connection_pause(struct sl_connection *c, enum sl_pause why, bool paused);
/* For sl_order; the owner forgets it there before it frees the connection. */
struct sl_order_source *sl_connection_source(struct sl_connection *c);
/* The connection of a source. */
struct sl_connection *sl_connection_of(struct sl_order_source *source);
void sl_connection_feed(void *connection, bool binary, const char *bytes, size_t n);

/* ---- sl_socket.c ---- */

struct sl_socket_options {
        struct loop *loop;
        struct http_client *http;
        const char *name;     /* of the adapter; outlives the sl_socket */
        unsigned connections; /* 1 to SL_SOCKET_MAX */
        bool plain;           /* the API is reached without TLS, so connections may be, too */
        struct sl_socket_times times;
        int64_t (*wall_ms)(void); /* NULL: the wall clock */
};

enum sl_socket_state {
        SL_SOCKET_NONE,    /* nothing yet */
        SL_SOCKET_UP,      /* at least one connection said hello */
        SL_SOCKET_LOST,    /* retries by itself */
        SL_SOCKET_STOPPED, /* the operator has to act */
};

struct sl_socket_handlers {
        /* Call apps.connections.open, then sl_socket_url with the same slot, later. */
        void (*ask)(void *arg, unsigned slot);
        /* As sl_intake_take and sl_intake_is_full. */
        void (*take)(void *arg, enum sl_arrival kind, json_t *payload, int retry,
                     sl_stored_fn *stored, void *stored_arg);
        bool (*is_full)(void *arg);
        /* The id of the app, from hello. */
        void (*app)(void *arg, const char *id);
        /* Connections of this app that are ours as well, by other adapters. */
        unsigned (*others)(void *arg);
        void (*state)(void *arg, enum sl_socket_state state, const char *why);
};

/* Starts; `ask` follows from the loop. */
struct sl_socket *sl_socket_new(const struct sl_socket_options *options,
                                const struct sl_socket_handlers *handlers, void *arg);
/* Allowed inside handlers. */
void sl_socket_free(struct sl_socket *s);
/* The answer to `ask`. url NULL: none, and why; retry_after_ms -1: not given. */
void sl_socket_url(struct sl_socket *s, unsigned slot, const char *url, const char *why,
                   int64_t retry_after_ms);
/* Connections that said hello and are not being replaced. */
unsigned sl_socket_connections(const struct sl_socket *s);

#endif
