/*
 * http_client: HTTP(S) requests on the loop, by libcurl.
 *
 * Bodies stream or are collected up to a cap; four deadlines guard each call. A failed call says
 * how far it got: unless it is idempotent, retry it only if no byte can have reached the peer.
 */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"

struct http_client;
struct http_call;

struct http_client_options {
        const char *proxy;      /* NULL: the environment decides (https_proxy, no_proxy) */
        const char *ca_file;    /* NULL: the system's certificates */
        const char *user_agent; /* NULL: "dragoman/VERSION" */
        long max_connections;   /* 0: 256 */
};

/* An open regular file, read by position; its name may change meanwhile. */
struct http_file {
        int fd;
        int64_t size;
};

/* One part of a multipart/form-data body. Either bytes or a file. */
struct http_part {
        const char *name;
        const char *data;
        size_t data_n;
        const struct http_file *file; /* the descriptor stays the caller's; the call has its own */
        const char *file_name;        /* sent as filename="..." */
        const char *content_type;     /* NULL: none for bytes, application/octet-stream for files */
};

/* http_call_start copies everything except the files themselves. */
struct http_request {
        const char *method; /* NULL: GET, or POST when there is a body */
        const char *url;
        const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
        const char *body;
        size_t body_n;
        const struct http_part *parts; /* instead of body */
        size_t part_count;
        int64_t connect_ms;    /* 0: 10 s; name resolution, TCP and TLS together */
        int64_t first_byte_ms; /* 0: none; from the start to the first byte of the answer */
        int64_t silence_ms;    /* 0: none; between bytes of the answer */
        int64_t total_ms;      /* 0: none */
        size_t max_body;       /* 0: 8 MiB; more is an error (ERR_LIMIT) */
        bool repeatable;       /* idempotent: may be sent again on a new connection */
        /* accept only this public key ("sha256//..."); NULL: verify as usual */
        const char *pinned_key;
        /* follow up to 5 redirects (GET only), never with credentials to another host */
        bool follow;
        /* for URLs of strangers: connect to no address of this machine or of a private network
         * (ERR_REFUSED), follow nothing */
        bool public_only;
};

/* How far a failed call got. */
enum http_reach {
        HTTP_NOT_SENT, /* no byte of the request can have reached the peer */
        HTTP_UNSURE,   /* it may have been received and acted upon */
        HTTP_ANSWERED, /* a status line came */
};

struct http_result {
        int status; /* 0 when no answer came */
        enum http_reach reach;
        enum error_kind kind; /* ERR_NONE when a whole answer came, whatever its status */
        const char *why;      /* the sentence that goes with kind */
        const char *body;     /* if there is no on_data; NUL-terminated, borrowed */
        size_t body_n;
        int64_t retry_after_ms; /* from Retry-After; -1: absent */
        int64_t elapsed_ms;
};

struct http_handlers {
        /* The status line and headers are in. Optional, like on_data. */
        void (*on_head)(void *arg, struct http_call *call, int status);
        /* A piece of the body. Then only bodies of status >= 400 are collected. */
        void (*on_data)(void *arg, const char *bytes, size_t n);
        /* Once, unless the call was aborted; frees the call. */
        void (*on_done)(void *arg, const struct http_result *result);
};

struct http_client *http_client_new(struct loop *l, const struct http_client_options *options,
                                    struct error *err);
/* Aborts the remaining calls. */
void http_client_free(struct http_client *c);
/* Reports every problem by on_done, later. */
struct http_call *http_call_start(struct http_client *c, const struct http_request *request,
                                  const struct http_handlers *handlers, void *arg);
/* No callback follows. Allowed inside callbacks. NULL is fine. */
void http_call_abort(struct http_call *call);
/* A header of the answer, borrowed until on_done returns, or NULL. */
const char *http_call_header(const struct http_call *call, const char *name);
size_t http_client_active(const struct http_client *c);

#endif
