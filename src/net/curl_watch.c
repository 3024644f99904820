#include <stdlib.h>

#include "base/mem.h"
#include "net/http_client_private.h"

struct curl_watch {
        uv_poll_t poll;
        struct curl_watches *all;
        void (*gone)(void *arg); /* copies: `all` may be freed before the last callback */
        void *arg;
        curl_socket_t fd;
        LIST_ENTRY(curl_watch) next;
};

static void on_poll(uv_poll_t *poll, int status, int events)
{
        struct curl_watch *w = poll->data;
        int what = 0;

        if (status < 0)
                what |= CURL_CSELECT_ERR;
        if (events & UV_READABLE)
                what |= CURL_CSELECT_IN;
        if (events & UV_WRITABLE)
                what |= CURL_CSELECT_OUT;
        w->all->ready(w->arg, w->fd, what);
}

static void on_closed(uv_handle_t *handle)
{
        struct curl_watch *w = handle->data;

        w->gone(w->arg);
        free(w);
}

static void watch_free(struct curl_watch *w)
{
        LIST_REMOVE(w, next);
        uv_poll_stop(&w->poll);
        uv_close((uv_handle_t *)&w->poll, on_closed);
}

/*
 * Never fails: curl would give up all transfers at once. A call whose socket cannot be watched ends
 * by its deadline.
 */
static int on_want_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *watch)
{
        struct curl_watches *all = arg;
        struct curl_watch *w = watch;
        int events = 0;

        (void)easy;
        if (what == CURL_POLL_REMOVE) {
                if (w)
                        watch_free(w);
                curl_multi_assign(all->multi, fd, NULL);
                return 0;
        }
        if (!w) {
                w = mem_zalloc(sizeof(*w));
                w->all = all;
                w->gone = all->gone;
                w->arg = all->arg;
                w->fd = fd;
                if (uv_poll_init_socket(all->uv, &w->poll, fd)) {
                        free(w);
                        return 0;
                }
                w->poll.data = w;
                all->hold(all->arg);
                LIST_INSERT_HEAD(&all->list, w, next);
                curl_multi_assign(all->multi, fd, w);
        }
        if (what & CURL_POLL_IN)
                events |= UV_READABLE;
        if (what & CURL_POLL_OUT)
                events |= UV_WRITABLE;
        uv_poll_start(&w->poll, events, on_poll);
        return 0;
}

void curl_watches_start(struct curl_watches *w)
{
        LIST_INIT(&w->list);
        curl_multi_setopt(w->multi, CURLMOPT_SOCKETFUNCTION, on_want_socket);
        curl_multi_setopt(w->multi, CURLMOPT_SOCKETDATA, w);
}

void curl_watches_stop(struct curl_watches *w)
{
        struct curl_watch *one;

        while ((one = LIST_FIRST(&w->list)))
                watch_free(one);
}
