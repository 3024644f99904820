#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/http_client_private.h"

struct tls_connection {
        struct loop *loop;
        struct tls_connection_handlers on;
        void *arg;
        struct http_setup setup;
        CURLM *multi;
        struct curl_watches watches; /* while connecting */
        struct timer *timer;         /* curl's */
        uv_poll_t poll;              /* once connected */
        bool polling;
        struct error error;
        char curl_error[CURL_ERROR_SIZE];
        unsigned refs; /* the owner, the deferred start, each watch, the poll */
        bool freed;
};

static void unref(void *arg)
{
        struct tls_connection *c = arg;

        if (--c->refs == 0)
                free(c);
}

static void hold(void *arg)
{
        struct tls_connection *c = arg;

        c->refs++;
}

/* ---- connecting ---- */

static void fail(struct tls_connection *c)
{
        log_redact(c->error.text);
        c->on.on_connected(c->arg, &c->error);
}

/* Does not touch c after calling its owner. */
static void drive(struct tls_connection *c, curl_socket_t ready, int events)
{
        const char *why = c->curl_error;
        curl_socket_t fd = CURL_SOCKET_BAD;
        CURLMsg *message;
        CURLcode code;
        int running, left;

        curl_multi_socket_action(c->multi, ready, events, &running);
        while ((message = curl_multi_info_read(c->multi, &left)) && message->msg != CURLMSG_DONE)
                ;
        if (!message)
                return;
        code = message->data.result;
        if (code != CURLE_OK) {
                error_set(&c->error, code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_NET,
                          "cannot reach '%s': %s", c->setup.host,
                          *why ? why : curl_easy_strerror(code));
                fail(c);
                return;
        }
        curl_easy_getinfo(c->setup.easy, CURLINFO_ACTIVESOCKET, &fd);
        if (fd == CURL_SOCKET_BAD || uv_poll_init_socket(loop_uv(c->loop), &c->poll, fd)) {
                error_set(&c->error, ERR_INTERNAL, "the connection to '%s' cannot be watched",
                          c->setup.host);
                fail(c);
                return;
        }
        c->poll.data = c;
        c->polling = true;
        hold(c);
        c->on.on_connected(c->arg, NULL);
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
        struct tls_connection *c = arg;

        (void)multi;
        if (c->freed)
                return 0;
        if (ms < 0)
                timer_stop(c->timer);
        else
                timer_start(c->timer, ms);
        return 0;
}

static void on_start(void *arg)
{
        struct tls_connection *c = arg;

        if (!c->freed && c->error.kind != ERR_NONE)
                fail(c);
        else if (!c->freed)
                curl_multi_add_handle(c->multi, c->setup.easy);
        unref(c);
}

struct tls_connection *tls_connection_open(struct loop *loop, struct http_client *http,
                                           const char *url, int64_t connect_ms,
                                           const struct tls_connection_handlers *handlers,
                                           void *arg)
{
        struct tls_connection *c = mem_zalloc(sizeof(*c));
        CURL *easy;

        c->loop = loop;
        c->on = *handlers;
        c->arg = arg;
        c->refs = 2;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        c->multi = curl_multi_init();
        if (!c->multi)
                abort(); /* out of memory */
        c->timer = timer_new(loop, on_timer, c);
        c->watches = (struct curl_watches){ .uv = loop_uv(loop),
                                            .multi = c->multi,
                                            .ready = on_socket,
                                            .hold = hold,
                                            .gone = unref,
                                            .arg = c };
        curl_watches_start(&c->watches);
        curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_want_timer);
        curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
        if (http_setup_init(&c->setup, &(struct http_request){ .url = url }, &c->error) == 0) {
                easy = c->setup.easy;
                http_client_configure(http, easy);
                curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->curl_error);
                curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
                curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
                /* what follows is not HTTP/2, and no request that a proxy could forward */
                curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
                curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
        }
        loop_defer(loop, on_start, c);
        return c;
}

/* ---- connected ---- */

static void on_poll_closed(uv_handle_t *handle)
{
        unref(handle->data);
}

void tls_connection_free(struct tls_connection *c)
{
        if (!c)
                return;
        c->freed = true;
        if (c->polling) { /* before curl closes its socket */
                uv_poll_stop(&c->poll);
                uv_close((uv_handle_t *)&c->poll, on_poll_closed);
        }
        if (c->setup.easy)
                curl_multi_remove_handle(c->multi, c->setup.easy);
        http_setup_release(&c->setup);
        curl_multi_cleanup(c->multi);
        curl_watches_stop(&c->watches);
        curl_global_cleanup();
        timer_free(c->timer);
        unref(c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
        struct tls_connection *c = poll->data;

        /* errors are found by reading */
        c->on.on_ready(c->arg, status < 0 || (events & UV_READABLE), (events & UV_WRITABLE) != 0);
}

void tls_connection_want(struct tls_connection *c, bool read, bool write)
{
        int events = (read ? UV_READABLE : 0) | (write ? UV_WRITABLE : 0);

        if (!c->polling)
                return;
        if (events)
                uv_poll_start(&c->poll, events, on_poll);
        else
                uv_poll_stop(&c->poll);
}

static ssize_t outcome(struct tls_connection *c, CURLcode code, size_t done, struct error *err)
{
        if (code == CURLE_OK)
                return (ssize_t)done;
        if (code == CURLE_AGAIN)
                return TLS_CONNECTION_AGAIN;
        error_set(err, ERR_NET, "the connection to '%s' broke: %s", c->setup.host,
                  c->curl_error[0] ? c->curl_error : curl_easy_strerror(code));
        return -1;
}

ssize_t tls_connection_read(struct tls_connection *c, void *out, size_t n, struct error *err)
{
        size_t done = 0;
        CURLcode code;

        c->curl_error[0] = '\0';
        code = curl_easy_recv(c->setup.easy, out, n, &done);
        return outcome(c, code, done, err);
}

ssize_t tls_connection_write(struct tls_connection *c, const void *bytes, size_t n,
                             struct error *err)
{
        size_t done = 0;
        CURLcode code;

        c->curl_error[0] = '\0';
        code = curl_easy_send(c->setup.easy, bytes, n, &done);
        return outcome(c, code, done, err);
}
