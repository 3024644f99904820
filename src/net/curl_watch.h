/*
 * curl_watch: the sockets a multi handle of libcurl wants watched, watched by libuv.
 *
 * A poll is stopped before curl closes its socket and freed in its close callback; `hold` and
 * `gone` let the owner's memory outlive it.
 */
#ifndef NET_CURL_WATCH_H
#define NET_CURL_WATCH_H

#include <curl/curl.h>
#include <sys/queue.h>
#include <uv.h>

struct curl_watch;

struct curl_watches {
        uv_loop_t *uv;
        CURLM *multi;
        /* time for curl_multi_socket_action */
        void (*ready)(void *arg, curl_socket_t fd, int what);
        void (*hold)(void *arg); /* a watch begins */
        void (*gone)(void *arg); /* its last callback is over */
        void *arg;
        LIST_HEAD(, curl_watch) list;
};

/* The fields but `list` are filled in. Tells the multi handle. */
void curl_watches_start(struct curl_watches *w);
/* After the multi handle is gone. */
void curl_watches_stop(struct curl_watches *w);

#endif
