/*
 * What the files that use libcurl share.
 *
 *     http_client.c     the multi handle and the lists of calls
 *     http_call.c       one call: deadlines, answer, redirects, result
 *     http_setup.c      turns a request into a curl handle
 *     http_public.c     keeps a call away from private networks
 *     curl_watch.c      lets libuv watch the sockets of a multi handle
 *     tls_connection.c  a byte stream for websocket.c
 */
#ifndef NET_HTTP_CLIENT_PRIVATE_H
#define NET_HTTP_CLIENT_PRIVATE_H

#include <curl/curl.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"
#include "net/http_client.h"

/* --- http_setup.c --- */

struct http_setup {
        CURL *easy;
        struct curl_slist *headers;
        curl_mime *mime;
        char *host; /* for error texts; never the whole URL, which may hold a token */
};

/* Copies everything from the request. Release the setup after an error, too. */
int http_setup_init(struct http_setup *s, const struct http_request *request, struct error *err);
/* The handle must have left its multi handle. */
void http_setup_release(struct http_setup *s);
/* Points the handle at a redirect's target. Refuses to go from https to http. */
int http_setup_redirect(struct http_setup *s, const char *location, struct error *err);

/* --- curl_watch.c --- */

struct curl_watch;

/* `hold` and `gone` let the owner's memory outlive the close callback of a poll. */
struct curl_watches {
        uv_loop_t *uv;
        CURLM *multi;
        /* calls curl_multi_socket_action */
        void (*ready)(void *arg, curl_socket_t fd, int what);
        void (*hold)(void *arg); /* before a watch begins */
        void (*gone)(void *arg); /* after its last callback */
        void *arg;
        LIST_HEAD(, curl_watch) list;
};

/* Call with all fields but `list` filled in. */
void curl_watches_start(struct curl_watches *w);
/* After the multi handle is gone. */
void curl_watches_stop(struct curl_watches *w);

/* --- http_client.c --- */

enum call_state {
        CALL_WAITING, /* until pump hands it to curl */
        CALL_RUNNING, /* curl has it */
        CALL_ENDING,  /* inside on_done */
        CALL_ABORTED, /* until pump frees it */
};

TAILQ_HEAD(http_calls, http_call);

struct http_call {
        struct http_client *client;
        struct http_handlers on;
        void *arg;
        enum call_state state;
        struct http_setup setup;
        struct timer *timer; /* the nearest deadline */
        struct error error;  /* found by us; more precise than curl's code */
        char curl_error[CURL_ERROR_SIZE];

        int64_t connect_ms, first_byte_ms, silence_ms, total_ms;
        int64_t started_ms, hop_started_ms, last_byte_ms;
        size_t max_body, body_bytes, head_bytes;
        struct buf body;
        int status;
        unsigned sendings; /* of this hop */
        unsigned hops;
        bool repeatable, follow;
        bool sent;             /* a byte of the request may have left, on any hop */
        bool connected;        /* on this hop */
        bool head_done;        /* status and headers of the final answer are in */
        bool redirecting;      /* this answer only names the next hop */
        bool met_private;      /* public_only: an address of its host was refused */
        unsigned round;        /* of the pump that will launch it */
        struct http_calls *in; /* the client's list that holds it */
        TAILQ_ENTRY(http_call) next;
};

struct http_client {
        struct loop *loop;
        CURLM *multi;
        struct timer *timer; /* curl's one timer */
        char *proxy, *ca_file, *ca_dir, *user_agent;
        long max_connections;
        struct http_calls waiting; /* until pump comes */
        struct http_calls running; /* and ending */
        struct http_calls aborted; /* until pump comes */
        struct curl_watches watches;
        size_t active;
        unsigned round; /* how often pump ran */
        unsigned refs;  /* the owner, a pending pump, each watch */
        unsigned depth; /* > 0: curl or a handler is on the stack */
        bool pumping;   /* pump is deferred */
        bool tick;      /* curl's timer is due now */
        bool ca_sought; /* ca_dir has been looked for */
        bool freed;     /* by the owner */
};

/* Creates the multi handle, for the first call. */
void http_client_start(struct http_client *c);
/* Sets the client's proxy and certificates, and close-on-exec. */
void http_client_configure(struct http_client *c, CURL *easy);
/*
 * Ends what `depth++` began, around everything that may run a handler: if a handler freed the
 * client, the outermost leave destroys it.
 */
void http_client_leave(struct http_client *c);
/* Hands the call to curl later, never inside this function. */
void http_client_enqueue(struct http_call *call);
/* Moves the call to another of the client's lists; NULL: to none. */
void http_client_move(struct http_call *call, struct http_calls *list);
/* Defers a pump, which starts waiting calls and frees aborted ones. */
void http_client_want_pump(struct http_client *c);

/* --- http_call.c; not allowed inside a curl callback --- */

/* curl is done with the call: follows a redirect or finishes. */
void http_call_end(struct http_call *call, CURLcode code);
/* Calls on_done and frees the call. */
void http_call_finish(struct http_call *call);
void http_call_free(struct http_call *call);

/* --- http_public.c --- */

/* Keeps a call on the Internet; -1: its host is an address elsewhere. */
int http_public_limit(struct http_call *call, const char *url, struct error *err);
/* The error of a call whose host led elsewhere; returns -1. */
int http_public_refused(const struct http_call *call, struct error *err);

/* --- tls_connection.c --- */

/*
 * A byte stream to a host, through proxy and TLS (or plain TCP for http://). Each has a multi
 * handle of its own: in a shared one, curl would take a quiet connection for an idle one and close
 * it.
 */
struct tls_connection;

#define TLS_CONNECTION_AGAIN (-2)

struct tls_connection_handlers {
        /* Once: connected (err NULL) or failed. */
        void (*on_connected)(void *arg, const struct error *err);
        /* Some of what tls_connection_want asked for is possible. */
        void (*on_ready)(void *arg, bool readable, bool writable);
};

/* url: only its scheme, host and port count. Reports errors by on_connected, later. */
struct tls_connection *tls_connection_open(struct loop *l, struct http_client *http,
                                           const char *url, int64_t connect_ms,
                                           const struct tls_connection_handlers *handlers,
                                           void *arg);
/* No callback follows. NULL is fine. Allowed inside callbacks. */
void tls_connection_free(struct tls_connection *c);
/* After on_connected. */
void tls_connection_want(struct tls_connection *c, bool read, bool write);
/*
 * > 0: bytes; 0: the peer has closed; TLS_CONNECTION_AGAIN: wait for on_ready; -1: it broke. Read
 * until TLS_CONNECTION_AGAIN: bytes that TLS holds already cause no on_ready.
 */
ssize_t tls_connection_read(struct tls_connection *c, void *out, size_t n, struct error *err);
ssize_t tls_connection_write(struct tls_connection *c, const void *bytes, size_t n,
                             struct error *err);

#endif
