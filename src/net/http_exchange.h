/*
 * http_exchange: what the files of the HTTP server share. For them alone.
 *
 *     http_server.c    the daemon in the loop, connections and their deadlines
 *     http_listen.c    its socket and certificate
 *     http_head.c      a request's head: guard, route, gate
 *     http_exchange.c  the request as callers see it, and the answer
 */
#ifndef NET_HTTP_EXCHANGE_H
#define NET_HTTP_EXCHANGE_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "net/http_route.h"
#include "net/http_server.h"

/*
 * A connection is in one of these lists, or in none while the answer is prepared or a stream has
 * nothing to send. The members of a list share a deadline and join at the end, so the sweep looks
 * only at the heads.
 */
enum http_phase {
        HTTP_FRESH,   /* no complete request line yet, for a short while */
        HTTP_WAITING, /* the same, for longer */
        HTTP_READING, /* receiving a request */
        HTTP_WRITING, /* sending an answer */
        HTTP_PHASES,
        HTTP_UNTIMED = HTTP_PHASES,
};

struct http_conn {
        struct http_server *server;
        struct MHD_Connection *mhd;
        int fd;
        enum http_phase phase;
        int64_t since_ms;
        uint64_t acked;                /* when the writing deadline was set */
        struct http_exchange *current; /* what MHD holds */
        bool parked;                   /* suspended until `current` has bytes to send */
        TAILQ_ENTRY(http_conn) next;
        LIST_ENTRY(http_conn) all;
};
TAILQ_HEAD(http_conns, http_conn);

struct http_server {
        struct loop *loop;
        struct MHD_Daemon *mhd;
        uv_poll_t *poll;     /* on MHD's epoll descriptor */
        struct timer *again; /* MHD has more to do */
        struct timer *sweep; /* runs while there are connections */
        int64_t sweep_ms;
        char *address;
        const struct http_route *routes;
        size_t route_count;
        struct http_server_hooks hooks;
        void *arg;
        size_t max_body, max_bodies;
        size_t bodies;          /* bytes received and not yet answered */
        size_t unproven_bodies; /* of these, on routes that the gate leaves open */
        int64_t allowed_ms[HTTP_PHASES];
        struct http_conns in[HTTP_PHASES];
        LIST_HEAD(, http_conn) conns;
        unsigned count;
        uint64_t calls;     /* of MHD to us: it makes progress */
        unsigned fruitless; /* rounds without one */
        bool closed;        /* a connection has ended since MHD ran */
        bool tls;
        struct http_kick *kick;
        LIST_HEAD(, http_exchange) orphans; /* to be answered, but the client has gone */
};

/* A deferred run of MHD. May outlive the server. */
struct http_kick {
        struct http_server *server; /* NULL: freed meanwhile */
        bool due;
};

enum http_state {
        HTTP_HEAD,   /* only the request line is known */
        HTTP_BODY,   /* accepted; collecting the body */
        HTTP_ASKED,  /* the route's function was called, or the request refused */
        HTTP_QUEUED, /* MHD has the answer */
};

struct http_extra {
        struct http_extra *next;
        const char *value; /* stored after the name */
        char name[];
};

struct http_stream {
        const struct http_stream_ops *ops; /* NULL: the exchange is not a stream */
        void *arg;
        bool parked;
};

struct http_exchange {
        struct http_server *server; /* NULL: the server has been freed */
        struct http_conn *conn;     /* NULL: the client is gone */
        enum http_state state;
        bool answered;
        bool close; /* this is the connection's last answer */
        bool body_to_come;
        bool chunked;
        bool old; /* HTTP/1.0 */
        int status;
        struct MHD_Response *response;
        struct http_match match;
        struct http_pair *queries;
        size_t query_count;
        struct buf body;
        size_t counted;             /* its bytes in http_server.bodies */
        struct http_extra *headers; /* of the answer, in reverse */
        struct http_extra *cleaned; /* trimmed copies of request headers */
        void *identity;
        void (*free_identity)(void *);
        uint64_t started_ns;
        char method[24];
        char peer[INET6_ADDRSTRLEN];
        struct http_stream stream;
        LIST_ENTRY(http_exchange) orphan;
        size_t target_n;
        char *work;    /* a second copy of the target, split in place */
        char target[]; /* as received; loses its query once the head is accepted */
};

/* http_exchange.c */
struct http_exchange *http_exchange_new(struct http_conn *c, const char *target);
void http_exchange_free(struct http_exchange *x);
/* MHD is done with it; it stays until it is answered. */
void http_exchange_detach(struct http_exchange *x);
/* Is there room for n more bytes of request bodies? */
bool http_exchange_has_room(const struct http_exchange *x, size_t n);
/* Answers 503 when there is none. */
void http_exchange_refuse_room(struct http_exchange *x);
/* Adds to the body. False: answered, with 413 or 503. */
bool http_exchange_add_body(struct http_exchange *x, const char *bytes, size_t n);
/* Hands the answer to MHD. Only inside on_request. */
enum MHD_Result http_exchange_queue(struct http_exchange *x);

/* http_head.c: guard, route, gate and limits. Answers x, or moves it to HTTP_BODY. */
void http_head_accept(struct http_exchange *x, const char *method, const char *url,
                      const char *version);

/* http_listen.c */
/* A listening socket for "host:port", or -1 with an error. */
int http_listen(const char *address, struct error *err);
/* The address really bound; yours to free. */
char *http_listen_address(int fd);
/* A PEM file as text, yours to wipe and free. */
char *http_listen_read_pem(const char *path, struct error *err);

/* http_server.c: runs MHD soon. */
void http_server_kick(struct http_server *s);
void http_server_set_phase(struct http_conn *c, enum http_phase phase);

/* tcp_acked.c: bytes the peer has acknowledged since the connection began; 0: unknown. */
uint64_t tcp_acked(int fd);

#endif
