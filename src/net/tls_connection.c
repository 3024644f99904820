#include "net/tls_connection.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <uv.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/curl_watch.h"
#include "net/http_setup.h"

struct line {
        struct loop *loop;
        struct line_handlers on;
        void *arg;
        struct http_setup setup;
        CURLM *multi;
        struct curl_watches watches; /* while connecting */
        struct timer *timer;         /* curl's */
        uv_poll_t poll;              /* once connected */
        bool polling;
        struct error error;
        char curl_error[CURL_ERROR_SIZE];
        unsigned refs; /* the owner, the first tick, each watch, the poll */
        bool freed;
};

static void unref(void *arg)
{
        struct line *l = arg;

        if (--l->refs == 0)
                free(l);
}

static void hold(void *arg)
{
        struct line *l = arg;

        l->refs++;
}

/* ---- connecting ---- */

static void failed(struct line *l)
{
        log_redact(l->error.text);
        l->on.on_connected(l->arg, &l->error);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
        struct line *l = poll->data;

        /* trouble is found by reading */
        l->on.on_ready(l->arg, status < 0 || (events & UV_READABLE), (events & UV_WRITABLE) != 0);
}

static void connected(struct line *l)
{
        curl_socket_t fd = CURL_SOCKET_BAD;

        curl_easy_getinfo(l->setup.easy, CURLINFO_ACTIVESOCKET, &fd);
        if (fd == CURL_SOCKET_BAD || uv_poll_init_socket(loop_uv(l->loop), &l->poll, fd)) {
                error_set(&l->error, ERR_INTERNAL, "the connection to '%s' cannot be watched",
                          l->setup.host);
                failed(l);
                return;
        }
        l->poll.data = l;
        l->polling = true;
        hold(l);
        l->on.on_connected(l->arg, NULL);
}

/* Nothing of the line is touched after its owner was called. */
static void reap(struct line *l)
{
        const char *why = l->curl_error;
        CURLMsg *message;
        CURLcode code;
        int left;

        while ((message = curl_multi_info_read(l->multi, &left)) && message->msg != CURLMSG_DONE)
                ;
        if (!message)
                return;
        code = message->data.result;
        if (code == CURLE_OK) {
                connected(l);
                return;
        }
        error_set(&l->error, code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_NET,
                  "cannot reach '%s': %s", l->setup.host, *why ? why : curl_easy_strerror(code));
        failed(l);
}

static void drive(struct line *l, curl_socket_t fd, int events)
{
        int running;

        curl_multi_socket_action(l->multi, fd, events, &running);
        reap(l);
}

static void on_socket(void *arg, curl_socket_t fd, int what)
{
        drive(arg, fd, what);
}

static void on_timer(void *arg)
{
        drive(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int on_want_timer(CURLM *multi, long ms, void *arg)
{
        struct line *l = arg;

        (void)multi;
        if (l->freed)
                return 0;
        if (ms < 0)
                timer_stop(l->timer);
        else
                timer_start(l->timer, ms);
        return 0;
}

static void start_multi(struct line *l)
{
        curl_global_init(CURL_GLOBAL_DEFAULT);
        l->multi = curl_multi_init();
        if (!l->multi)
                abort(); /* only memory can be missing */
        l->timer = timer_new(l->loop, on_timer, l);
        l->watches = (struct curl_watches){ .uv = loop_uv(l->loop),
                                            .multi = l->multi,
                                            .ready = on_socket,
                                            .hold = hold,
                                            .gone = unref,
                                            .arg = l };
        curl_watches_start(&l->watches);
        curl_multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, on_want_timer);
        curl_multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
}

static void on_start(void *arg)
{
        struct line *l = arg;

        if (!l->freed && l->error.kind != ERR_NONE)
                failed(l);
        else if (!l->freed)
                curl_multi_add_handle(l->multi, l->setup.easy);
        unref(l);
}

struct line *line_open(struct loop *loop, struct http_client *http, const char *url,
                       int64_t connect_ms, const struct line_handlers *handlers, void *arg)
{
        struct line *l = mem_zalloc(sizeof(*l));
        CURL *easy;

        l->loop = loop;
        l->on = *handlers;
        l->arg = arg;
        l->refs = 2;
        start_multi(l);
        if (http_setup_init(&l->setup, &(struct http_request){ .url = url }, &l->error) == 0) {
                easy = l->setup.easy;
                http_client_dress(http, easy);
                curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, l->curl_error);
                curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
                curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
                /* what follows is neither HTTP/2 nor a request a proxy could pass on */
                curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
                curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
        }
        loop_defer(loop, on_start, l);
        return l;
}

/* ---- connected ---- */

static void on_poll_closed(uv_handle_t *handle)
{
        unref(handle->data);
}

void line_free(struct line *l)
{
        if (!l)
                return;
        l->freed = true;
        if (l->polling) { /* before curl closes its socket */
                uv_poll_stop(&l->poll);
                uv_close((uv_handle_t *)&l->poll, on_poll_closed);
        }
        if (l->setup.easy)
                curl_multi_remove_handle(l->multi, l->setup.easy);
        http_setup_release(&l->setup);
        curl_multi_cleanup(l->multi);
        curl_watches_stop(&l->watches);
        curl_global_cleanup();
        timer_free(l->timer);
        unref(l);
}

void line_want(struct line *l, bool read, bool write)
{
        int events = (read ? UV_READABLE : 0) | (write ? UV_WRITABLE : 0);

        if (!l->polling)
                return;
        if (events)
                uv_poll_start(&l->poll, events, on_poll);
        else
                uv_poll_stop(&l->poll);
}

static ssize_t outcome(struct line *l, CURLcode code, size_t done, struct error *err)
{
        if (code == CURLE_OK)
                return (ssize_t)done;
        if (code == CURLE_AGAIN)
                return LINE_AGAIN;
        error_set(err, ERR_NET, "the connection to '%s' broke: %s", l->setup.host,
                  l->curl_error[0] ? l->curl_error : curl_easy_strerror(code));
        return -1;
}

ssize_t line_read(struct line *l, void *out, size_t n, struct error *err)
{
        size_t done = 0;
        CURLcode code;

        l->curl_error[0] = '\0';
        code = curl_easy_recv(l->setup.easy, out, n, &done);
        return outcome(l, code, done, err);
}

ssize_t line_write(struct line *l, const void *bytes, size_t n, struct error *err)
{
        size_t done = 0;
        CURLcode code;

        l->curl_error[0] = '\0';
        code = curl_easy_send(l->setup.easy, bytes, n, &done);
        return outcome(l, code, done, err);
}

const char *line_host(const struct line *l)
{
        return l->setup.host ? l->setup.host : "";
}
