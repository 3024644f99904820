#include "fake_ws.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <wslay/wslay.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/ws_handshake.h"

struct fake_ws_conn {
        uv_tcp_t tcp;
        struct fake_ws *server;
        struct buf in;
        wslay_event_context_ptr frames;
        char *path;
        bool closing, announced;
        LIST_ENTRY(fake_ws_conn) next;
};

struct fake_ws {
        struct loop *loop;
        uv_tcp_t listener;
        struct fake_ws_handlers on;
        void *arg;
        const char *answer;
        const char *greeting;
        size_t greeting_n;
        struct buf request;
        LIST_HEAD(, fake_ws_conn) conns;
        unsigned accepted, open, pongs;
        int port, last_close;
};

static void on_conn_closed(uv_handle_t *h)
{
        struct fake_ws_conn *c = h->data;

        if (c->frames)
                wslay_event_context_free(c->frames);
        buf_release(&c->in);
        free(c->path);
        free(c);
}

void fake_ws_cut(struct fake_ws_conn *c)
{
        if (c->closing)
                return;
        c->closing = true;
        c->server->open--;
        LIST_REMOVE(c, next);
        if (c->announced && c->server->on.on_gone)
                c->server->on.on_gone(c->server->arg, c);
        uv_close((uv_handle_t *)&c->tcp, on_conn_closed);
}

struct sending {
        uv_write_t uv;
        char bytes[];
};

static void on_written(uv_write_t *uv, int status)
{
        (void)status;
        free(uv->data);
}

void fake_ws_raw(struct fake_ws_conn *c, const void *bytes, size_t n)
{
        struct sending *s = mem_alloc(sizeof(*s) + n);
        uv_buf_t b = uv_buf_init(s->bytes, (unsigned)n);

        s->uv.data = s;
        memcpy(s->bytes, bytes, n);
        if (c->closing || uv_write(&s->uv, (uv_stream_t *)&c->tcp, &b, 1, on_written) != 0)
                free(s);
}

static ssize_t on_recv(wslay_event_context_ptr f, uint8_t *out, size_t n, int flags, void *arg)
{
        struct fake_ws_conn *c = arg;

        (void)flags;
        if (c->closing || c->in.len == 0) {
                wslay_event_set_error(f, WSLAY_ERR_WOULDBLOCK);
                return -1;
        }
        if (n > c->in.len)
                n = c->in.len;
        memcpy(out, c->in.data, n);
        buf_consume(&c->in, n);
        return (ssize_t)n;
}

static ssize_t on_send(wslay_event_context_ptr f, const uint8_t *bytes, size_t n, int flags,
                       void *arg)
{
        (void)f, (void)flags;
        fake_ws_raw(arg, bytes, n);
        return (ssize_t)n;
}

static void on_msg(wslay_event_context_ptr f, const struct wslay_event_on_msg_recv_arg *m,
                   void *arg)
{
        struct fake_ws_conn *c = arg;
        struct fake_ws *s = c->server;

        (void)f;
        if (c->closing)
                return;
        if (m->opcode == WSLAY_CONNECTION_CLOSE)
                s->last_close = m->status_code;
        else if (m->opcode == WSLAY_PONG)
                s->pongs++;
        else if (m->opcode != WSLAY_PING && s->on.on_message)
                s->on.on_message(s->arg, c, (const char *)m->msg, m->msg_length);
}

static void flush(struct fake_ws_conn *c)
{
        if (c->closing || !c->frames)
                return;
        wslay_event_send(c->frames);
        if (wslay_event_get_close_received(c->frames) && wslay_event_get_close_sent(c->frames))
                fake_ws_cut(c);
}

static char *word_after(const char *text, const char *what)
{
        const char *p = strcasestr(text, what);

        p = p ? p + strlen(what) : "";
        return mem_strndup(p, strcspn(p, " \r\n"));
}

static void switch_over(struct fake_ws_conn *c)
{
        static const struct wslay_event_callbacks callbacks = { .recv_callback = on_recv,
                                                                .send_callback = on_send,
                                                                .on_msg_recv_callback = on_msg };
        struct fake_ws *s = c->server;
        char *key = word_after(s->request.data, "Sec-WebSocket-Key: "), accept[WS_ACCEPT_SIZE];
        struct buf answer;

        buf_init(&answer, 0);
        buf_addf(&answer,
                 "HTTP/1.1 101 Switching Protocols\r\n"
                 "Upgrade: websocket\r\n"
                 "Connection: keep-alive, Upgrade\r\n"
                 "Sec-WebSocket-Accept: %s\r\n"
                 "\r\n",
                 ws_handshake_accept(key, accept));
        if (s->greeting)
                buf_add(&answer, s->greeting, s->greeting_n);
        fake_ws_raw(c, answer.data, answer.len);
        buf_release(&answer);
        free(key);
        wslay_event_context_server_init(&c->frames, &callbacks, c);
        c->announced = true;
        if (s->on.on_open)
                s->on.on_open(s->arg, c);
}

static void take_request(struct fake_ws_conn *c)
{
        struct fake_ws *s = c->server;
        char *end = strstr(c->in.data, "\r\n\r\n");

        if (!end)
                return;
        buf_clear(&s->request);
        buf_add(&s->request, c->in.data, (size_t)(end + 4 - c->in.data));
        buf_consume(&c->in, (size_t)(end + 4 - c->in.data));
        c->path = word_after(s->request.data, "GET ");
        if (!s->answer)
                switch_over(c);
        else if (*s->answer)
                fake_ws_raw(c, s->answer, strlen(s->answer));
}

static void on_alloc(uv_handle_t *h, size_t n, uv_buf_t *out)
{
        (void)h;
        *out = uv_buf_init(mem_alloc(n), (unsigned)n);
}

static void on_read(uv_stream_t *tcp, ssize_t n, const uv_buf_t *b)
{
        struct fake_ws_conn *c = tcp->data;

        if (n > 0)
                buf_add(&c->in, b->base, (size_t)n);
        free(b->base);
        if (n < 0) {
                fake_ws_cut(c);
                return;
        }
        if (!c->frames)
                take_request(c);
        if (!c->frames || c->closing)
                return;
        wslay_event_recv(c->frames);
        flush(c);
}

static void on_connection(uv_stream_t *listener, int status)
{
        struct fake_ws *s = listener->data;
        struct fake_ws_conn *c = mem_zalloc(sizeof(*c));

        assert(status == 0);
        c->server = s;
        c->tcp.data = c;
        buf_init(&c->in, 0);
        uv_tcp_init(loop_uv(s->loop), &c->tcp);
        uv_accept(listener, (uv_stream_t *)&c->tcp);
        uv_tcp_nodelay(&c->tcp, 1);
        s->accepted++;
        s->open++;
        LIST_INSERT_HEAD(&s->conns, c, next);
        uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
}

struct fake_ws *fake_ws_new(struct loop *l, const struct fake_ws_handlers *handlers, void *arg)
{
        struct fake_ws *s = mem_zalloc(sizeof(*s));
        struct sockaddr_in at;
        int n = sizeof(at);

        s->loop = l;
        if (handlers)
                s->on = *handlers;
        s->arg = arg;
        s->listener.data = s;
        buf_init(&s->request, 0);
        uv_ip4_addr("127.0.0.1", 0, &at);
        uv_tcp_init(loop_uv(l), &s->listener);
        uv_tcp_bind(&s->listener, (struct sockaddr *)&at, 0);
        if (uv_listen((uv_stream_t *)&s->listener, 16, on_connection) != 0)
                abort();
        uv_tcp_getsockname(&s->listener, (struct sockaddr *)&at, &n);
        s->port = ntohs(at.sin_port);
        return s;
}

static void on_server_closed(uv_handle_t *h)
{
        struct fake_ws *s = h->data;

        buf_release(&s->request);
        free(s);
}

void fake_ws_free(struct fake_ws *s)
{
        struct fake_ws_conn *c;

        while ((c = LIST_FIRST(&s->conns))) {
                c->announced = false;
                fake_ws_cut(c);
        }
        uv_close((uv_handle_t *)&s->listener, on_server_closed);
}

int fake_ws_port(const struct fake_ws *s)
{
        return s->port;
}

char *fake_ws_url(const struct fake_ws *s, const char *path)
{
        return mem_printf("ws://127.0.0.1:%d%s", s->port, path);
}

void fake_ws_answer(struct fake_ws *s, const char *bytes)
{
        s->answer = bytes;
}

void fake_ws_greet(struct fake_ws *s, const char *bytes, size_t n)
{
        s->greeting = bytes;
        s->greeting_n = n;
}

unsigned fake_ws_accepted(const struct fake_ws *s)
{
        return s->accepted;
}

unsigned fake_ws_open(const struct fake_ws *s)
{
        return s->open;
}

const char *fake_ws_request(const struct fake_ws *s)
{
        return s->request.data;
}

int fake_ws_last_close(const struct fake_ws *s)
{
        return s->last_close;
}

unsigned fake_ws_pongs(const struct fake_ws *s)
{
        return s->pongs;
}

const char *fake_ws_path(const struct fake_ws_conn *c)
{
        return c->path;
}

static void queue(struct fake_ws_conn *c, uint8_t opcode, const void *bytes, size_t n)
{
        const struct wslay_event_msg m = { .opcode = opcode, .msg = bytes, .msg_length = n };

        if (c->closing)
                return;
        wslay_event_queue_msg(c->frames, &m);
        flush(c);
}

void fake_ws_text(struct fake_ws_conn *c, const char *text)
{
        queue(c, WSLAY_TEXT_FRAME, text, strlen(text));
}

void fake_ws_binary(struct fake_ws_conn *c, const void *bytes, size_t n)
{
        queue(c, WSLAY_BINARY_FRAME, bytes, n);
}

void fake_ws_ping(struct fake_ws_conn *c)
{
        queue(c, WSLAY_PING, "hello", 5);
}

void fake_ws_close(struct fake_ws_conn *c, int code, const char *reason)
{
        if (c->closing)
                return;
        wslay_event_queue_close(c->frames, (uint16_t)code, (const uint8_t *)reason,
                                reason ? strlen(reason) : 0);
        flush(c);
}

void fake_ws_deaf(struct fake_ws_conn *c)
{
        uv_read_stop((uv_stream_t *)&c->tcp);
}
