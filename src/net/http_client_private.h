/*
 * What the halves of the HTTP client share. http_client.c has the multi handle and the lists of
 * calls; http_call.c is one call: deadlines, answer, redirects, result. http_setup.c turns a
 * request into a curl handle.
 */
#ifndef NET_HTTP_CLIENT_PRIVATE_H
#define NET_HTTP_CLIENT_PRIVATE_H

#include <curl/curl.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "net/curl_watch.h"
#include "net/http_client.h"
#include "net/http_setup.h"

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

/* --- http_client.c --- */

/* Creates the multi handle, for the first call. */
void http_client_start(struct http_client *c);
/*
 * Bracket everything that may run a handler: if a handler frees the client, the outermost leave
 * does it.
 */
void http_client_enter(struct http_client *c);
void http_client_leave(struct http_client *c);
/* Hands the call to curl later, never inside this function. */
void http_client_enqueue(struct http_call *call);
/* Moves the call to another of the client's lists; NULL: to none. */
void http_client_move(struct http_call *call, struct http_calls *list);
/* Defers a pump, which starts waiting calls and frees aborted ones. */
void http_client_want_pump(struct http_client *c);

/* --- http_call.c --- */

/* These are not allowed inside a curl callback. */

/* curl is done with the call: follows a redirect or finishes. */
void http_call_end(struct http_call *call, CURLcode code);
/* Calls on_done and frees the call. */
void http_call_finish(struct http_call *call);
void http_call_free(struct http_call *call);

#endif
