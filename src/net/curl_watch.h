/*
 * curl_watch: lets libuv watch the sockets of a libcurl multi handle.
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

#endif
