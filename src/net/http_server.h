/*
 * http_server: an HTTP server on the loop, by libmicrohttpd.
 *
 * A request passes the guard, is matched to a route, passes the gate (keys, limits), its body is
 * collected up to the route's limit, then the route's function answers the exchange, now or later,
 * exactly once. An exchange stays valid until then, even if the client has gone.
 */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "net/loop.h"

struct http_server;
struct http_exchange;

struct http_route {
        const char *method; /* "GET", "POST", ... ; a GET route also answers HEAD */
        const char *path;   /* "/api/v2/turns/:id"; literals win over parameters */
        void (*run)(struct http_exchange *x);
        size_t max_body;  /* 0: the server's default */
        const void *more; /* for the owner of the table (scope, documentation) */
        bool unproven;    /* the gate admits anyone: their bodies share half of max_bodies */
};

struct http_server_options {
        const char *listen;        /* "127.0.0.1:8420", "[::1]:0" */
        const char *tls_cert_file; /* PEM; both or none */
        const char *tls_key_file;
        size_t max_body;          /* 0: 1 MiB */
        size_t max_bodies;        /* 0: 64 MiB, at least max_body; of all requests in work */
        unsigned max_connections; /* 0: 20000; fewer if the limit of open files is low */
        unsigned max_per_address; /* 0: no limit */
        unsigned idle_seconds;    /* 0: 75; for a connection with no request */
        unsigned request_seconds; /* 0: 30; from the first byte of a request to its last */
};

struct http_server_hooks {
        /* Before the body is read. Answers x and returns false to refuse. May be NULL. */
        bool (*gate)(void *arg, struct http_exchange *x);
        /* Answers with an error in the caller's format. NULL: plain text. */
        void (*refuse)(void *arg, struct http_exchange *x, int status, const char *code,
                       const char *message);
        /* After each answer, for metrics. May be NULL. */
        void (*answered)(void *arg, const struct http_route *route, int status, int64_t micros);
};

/* Listens at once. routes must outlive the server. */
struct http_server *http_server_new(struct loop *l, const struct http_server_options *options,
                                    const struct http_route *routes, size_t route_count,
                                    const struct http_server_hooks *hooks, void *arg,
                                    struct error *err);
/* The address really bound, "127.0.0.1:43121"; borrowed. */
const char *http_server_address(const struct http_server *s);
/* No new connections; requests in flight may still be answered. */
void http_server_quiesce(struct http_server *s);
/* Before http_server_free: writes what the sockets take at once. */
void http_server_flush(struct http_server *s);
void http_server_free(struct http_server *s);
unsigned http_server_connections(const struct http_server *s);

/* The request. All borrowed until the exchange is answered. */
const char *http_method(const struct http_exchange *x);
const char *http_path(const struct http_exchange *x);
const struct http_route *http_route_of(const struct http_exchange *x); /* NULL before routing */
void *http_server_arg(const struct http_exchange *x);
/* ":id" without the colon; decoded. */
const char *http_param(const struct http_exchange *x, const char *name);
/* Decoded; NULL if absent, "" if empty. The first if repeated. */
const char *http_query(const struct http_exchange *x, const char *name);
void http_query_each(const struct http_exchange *x,
                     void (*fn)(void *arg, const char *name, const char *value), void *arg);
/* The first of that name, trimmed; NULL if absent or if the client has gone. */
const char *http_header(const struct http_exchange *x, const char *name);
const char *http_body(const struct http_exchange *x, size_t *n);
/* Moves the body out of the exchange; yours to free. */
char *http_take_body(struct http_exchange *x, size_t *n);
/* Has the connection ended before the answer? */
bool http_is_gone(const struct http_exchange *x);
/* "127.0.0.1", from the connection, never from a header. */
const char *http_peer(const struct http_exchange *x);
/* For the gate; freed with free_fn when the exchange ends. */
void http_set_identity(struct http_exchange *x, void *identity, void (*free_fn)(void *));
void *http_identity(const struct http_exchange *x);

/* Adds a header to the coming answer. */
void http_add_header(struct http_exchange *x, const char *name, const char *value);
/* These end the exchange: x must not be used afterwards. */
void http_answer(struct http_exchange *x, int status, const char *content_type, const void *body,
                 size_t n);
/* Takes over the body (malloc'd). */
void http_answer_take(struct http_exchange *x, int status, const char *content_type, char *body,
                      size_t n);
/* Takes over the reference. */
void http_answer_json(struct http_exchange *x, int status, json_t *value);
/* Closes the connection without an answer. For simulators. */
void http_cut(struct http_exchange *x);
/* Answers by the refuse hook. */
void http_refuse(struct http_exchange *x, int status, const char *code, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/*
 * An answer without an end. The server pulls bytes when the socket can take some, and parks the
 * stream when there are none, so nothing is buffered for a client that does not read.
 */
struct http_stream;

struct http_stream_ops {
        /* Writes at most max bytes and returns how many; 0: none now, park; -1: the end. */
        ssize_t (*pull)(void *arg, char *out, size_t max);
        /* Once, when the client or the server has gone. Frees the stream. */
        void (*closed)(void *arg);
};

/* Answers 200 with a stream, like http_answer. Calls ops->closed at once if the client has gone. */
void http_answer_stream(struct http_exchange *x, const char *content_type,
                        const struct http_stream_ops *ops, void *arg, struct http_stream **out);
/* There are bytes to pull. Cheap when the stream is not parked. */
void http_stream_wake(struct http_stream *s);
bool http_stream_parked(const struct http_stream *s);
/* Has the client hung up? A parked stream does not notice by itself. */
bool http_stream_is_gone(const struct http_stream *s);
/* Breaks the connection; ops->closed follows from the loop. */
void http_stream_cut(struct http_stream *s);

#endif
