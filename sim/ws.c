#include "sim/ws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <wslay/wslay.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/ws_handshake.h"

#define MAX_HEAD        16384
#define MAX_UNSENT      ((size_t)64 << 20)
#define CLOSE_MS        1000
#define DEFAULT_MESSAGE 65536
#define READ_SIZE       65536

enum state { WS_HANDSHAKE, WS_OPEN, WS_CLOSING, WS_GONE };

struct ws {
        struct ws_server *server;
        uv_tcp_t tcp;
        enum state state;
        SSL *ssl;           /* NULL: plain */
        struct buf head;    /* of the handshake */
        struct buf in, out; /* frames that came, frames to send */
        size_t in_at;
        wslay_event_context_ptr frames;
        struct timer *close_timer;
        void *owner;
        int code;   /* the peer's */
        bool muted; /* reads and writes nothing more */
        LIST_ENTRY(ws) next;
};

LIST_HEAD(ws_list, ws);

struct ws_server {
        struct loop *loop;
        uv_tcp_t *listener; /* on the heap: it outlives us until its close callback */
        char address[80];
        SSL_CTX *tls;
        size_t max_message;
        struct ws_hooks hooks;
        void *arg;
        struct ws_list all;
        char read_buffer[READ_SIZE];
};

struct write {
        uv_write_t request;
        char *data;
};

/* ---- closing ---- */

static void on_closed(uv_handle_t *handle)
{
        struct ws *ws = handle->data;

        if (ws->frames)
                wslay_event_context_free(ws->frames);
        SSL_free(ws->ssl);
        buf_release(&ws->head);
        buf_release(&ws->in);
        buf_release(&ws->out);
        free(ws);
}

/* Calls on_gone if on_open was called; the close callback frees. */
static void finish(struct ws *ws)
{
        bool opened = ws->state == WS_OPEN || ws->state == WS_CLOSING;

        if (ws->state == WS_GONE)
                return;
        ws->state = WS_GONE;
        LIST_REMOVE(ws, next);
        timer_free(ws->close_timer);
        ws->close_timer = NULL;
        uv_close((uv_handle_t *)&ws->tcp, on_closed);
        if (opened)
                ws->server->hooks.on_gone(ws->owner, ws->code);
}

static void on_close_timer(void *arg)
{
        finish(arg);
}

static void finish_in(struct ws *ws, int64_t ms)
{
        if (!ws->close_timer)
                ws->close_timer = timer_new(ws->server->loop, on_close_timer, ws);
        timer_start(ws->close_timer, ms);
}

/* ---- sending ---- */

static void on_written(uv_write_t *request, int status)
{
        struct write *w = (struct write *)request;

        (void)status; /* reading reports failures */
        free(w->data);
        free(w);
}

static void write_bytes(struct ws *ws, const char *bytes, size_t n)
{
        struct write *w;
        uv_buf_t piece;

        if (n == 0 || ws->state == WS_GONE || ws->muted)
                return;
        if (uv_stream_get_write_queue_size((uv_stream_t *)&ws->tcp) > MAX_UNSENT) {
                finish_in(ws, 0); /* the peer does not read */
                return;
        }
        w = mem_alloc(sizeof(*w));
        w->data = mem_dup(bytes, n);
        piece = uv_buf_init(w->data, (unsigned)n);
        if (uv_write(&w->request, (uv_stream_t *)&ws->tcp, &piece, 1, on_written) != 0)
                on_written(&w->request, -1);
}

static void flush_tls(struct ws *ws)
{
        BIO *bio = SSL_get_wbio(ws->ssl);
        char piece[16384];
        int n;

        while ((n = BIO_read(bio, piece, sizeof(piece))) > 0)
                write_bytes(ws, piece, (size_t)n);
}

static void send_bytes(struct ws *ws, const char *bytes, size_t n)
{
        if (!ws->ssl) {
                write_bytes(ws, bytes, n);
                return;
        }
        ERR_clear_error();
        if (n > 0)
                SSL_write(ws->ssl, bytes, (int)n); /* into memory: always whole */
        flush_tls(ws);
}

static ssize_t on_send_frame(wslay_event_context_ptr ctx, const uint8_t *data, size_t n, int flags,
                             void *arg)
{
        struct ws *ws = arg;

        (void)ctx;
        (void)flags;
        buf_add(&ws->out, data, n);
        return (ssize_t)n;
}

/* Sends what wslay has queued. */
static void flush(struct ws *ws)
{
        if (wslay_event_want_write(ws->frames) && wslay_event_send(ws->frames) != 0) {
                finish_in(ws, 0);
                return;
        }
        send_bytes(ws, ws->out.data, ws->out.len);
        buf_clear(&ws->out);
}

/* ---- receiving ---- */

static ssize_t on_want_bytes(wslay_event_context_ptr ctx, uint8_t *to, size_t n, int flags,
                             void *arg)
{
        struct ws *ws = arg;
        size_t left = ws->in.len - ws->in_at;

        (void)flags;
        if (left == 0) {
                wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
                return -1;
        }
        n = n < left ? n : left;
        memcpy(to, ws->in.data + ws->in_at, n);
        ws->in_at += n;
        return (ssize_t)n;
}

static void on_frame(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *m,
                     void *arg)
{
        struct ws *ws = arg;

        (void)ctx;
        if (m->opcode == WSLAY_CONNECTION_CLOSE)
                ws->code = m->status_code ? m->status_code : 1005;
        else if (!wslay_is_ctrl_frame(m->opcode) && ws->state == WS_OPEN)
                ws->server->hooks.on_message(ws->owner, (const char *)m->msg, m->msg_length,
                                             m->opcode == WSLAY_BINARY_FRAME);
}

static void read_frames(struct ws *ws)
{
        int rc = wslay_event_recv(ws->frames);

        buf_clear(&ws->in);
        ws->in_at = 0;
        if (ws->state == WS_GONE)
                return;
        if (rc != 0) {
                finish(ws);
                return;
        }
        flush(ws);
        if (wslay_event_get_close_received(ws->frames) && !wslay_event_want_write(ws->frames))
                finish_in(ws, 0);
}

/* ---- the handshake ---- */

/* Copies the trimmed value of a request header to out; false: absent. */
static bool header(const char *head, const char *name, char *out, size_t room)
{
        size_t name_n = strlen(name);

        for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
                const char *from = line + 2, *to = strstr(from, "\r\n");

                if (strncasecmp(from, name, name_n) != 0 || from[name_n] != ':' || !to)
                        continue;
                for (from += name_n + 1; *from == ' ' || *from == '\t';)
                        from++;
                while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
                        to--;
                snprintf(out, room, "%.*s", (int)(to - from), from);
                return true;
        }
        return false;
}

/* Answers the request head in ws->head. */
static void upgrade(struct ws *ws)
{
        static const struct wslay_event_callbacks callbacks = {
                .recv_callback = on_want_bytes,
                .send_callback = on_send_frame,
                .on_msg_recv_callback = on_frame,
        };
        static const char refusal[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
                                      "Content-Length: 14\r\n\r\nWebSocket only";
        struct ws_server *s = ws->server;
        char target[2048] = "/", key[128], accept[WS_ACCEPT_SIZE];
        char *text;

        if (sscanf(ws->head.data, "GET %2047s HTTP/1.1", target) != 1 ||
            !header(ws->head.data, "Sec-WebSocket-Key", key, sizeof(key))) {
                send_bytes(ws, refusal, strlen(refusal));
                finish_in(ws, 100);
                return;
        }
        text = mem_printf("HTTP/1.1 101 Switching Protocols\r\n"
                          "Upgrade: websocket\r\n"
                          "Connection: Upgrade\r\n"
                          "Sec-WebSocket-Accept: %s\r\n"
                          "\r\n",
                          ws_handshake_accept(key, accept));
        send_bytes(ws, text, strlen(text));
        free(text);
        wslay_event_context_server_init(&ws->frames, &callbacks, ws);
        wslay_event_config_set_max_recv_msg_length(ws->frames, s->max_message);
        ws->state = WS_OPEN;
        s->hooks.on_open(s->arg, ws, target);
}

static void read_handshake(struct ws *ws)
{
        char *end;
        size_t used;

        buf_add(&ws->head, ws->in.data, ws->in.len);
        end = strstr(ws->head.data, "\r\n\r\n");
        buf_clear(&ws->in);
        if (!end) {
                if (ws->head.len > MAX_HEAD)
                        finish(ws);
                return;
        }
        used = (size_t)(end - ws->head.data) + 4;
        /* frames may follow the head at once */
        buf_add(&ws->in, ws->head.data + used, ws->head.len - used);
        buf_truncate(&ws->head, used);
        upgrade(ws);
        if (ws->state == WS_OPEN && ws->in.len > 0)
                read_frames(ws);
}

static void on_bytes(struct ws *ws)
{
        if (ws->in.len == 0)
                return;
        if (ws->state == WS_HANDSHAKE)
                read_handshake(ws);
        else
                read_frames(ws);
}

static void read_tls(struct ws *ws, const char *bytes, size_t n)
{
        int got;

        ERR_clear_error();
        BIO_write(SSL_get_rbio(ws->ssl), bytes, (int)n);
        if (!SSL_is_init_finished(ws->ssl))
                SSL_accept(ws->ssl);
        for (;;) {
                char *room = buf_reserve(&ws->in, 16384);

                got = SSL_read(ws->ssl, room, 16384);
                if (got <= 0)
                        break;
                buf_grew(&ws->in, (size_t)got);
        }
        flush_tls(ws);
        got = SSL_get_error(ws->ssl, got);
        if (got == SSL_ERROR_SSL || got == SSL_ERROR_SYSCALL)
                finish(ws);
        else
                on_bytes(ws);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece)
{
        struct ws *ws = stream->data;

        if (n == 0)
                return;
        if (n < 0)
                finish(ws);
        else if (ws->ssl)
                read_tls(ws, piece->base, (size_t)n);
        else {
                buf_add(&ws->in, piece->base, (size_t)n);
                on_bytes(ws);
        }
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
        struct ws *ws = handle->data;

        (void)wanted;
        *out = uv_buf_init(ws->server->read_buffer, READ_SIZE);
}

/* ---- the server ---- */

static void on_connection(uv_stream_t *listener, int status)
{
        struct ws_server *s = listener->data;
        struct ws *ws;

        if (status != 0)
                return;
        ws = mem_zalloc(sizeof(*ws));
        ws->server = s;
        ws->code = WS_CODE_GONE;
        buf_init(&ws->head, 0);
        buf_init(&ws->in, 0);
        buf_init(&ws->out, 0);
        uv_tcp_init(loop_uv(s->loop), &ws->tcp);
        ws->tcp.data = ws;
        LIST_INSERT_HEAD(&s->all, ws, next);
        if (uv_accept(listener, (uv_stream_t *)&ws->tcp) != 0) {
                finish(ws);
                return;
        }
        uv_tcp_nodelay(&ws->tcp, 1);
        if (s->tls) {
                ws->ssl = SSL_new(s->tls);
                SSL_set_bio(ws->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
                SSL_set_accept_state(ws->ssl);
        }
        uv_read_start((uv_stream_t *)&ws->tcp, on_alloc, on_read);
}

static int listen_at(struct ws_server *s, const char *address, struct error *err)
{
        const char *colon = strrchr(address, ':');
        char host[64] = "";
        struct sockaddr_storage bound;
        struct sockaddr_in in;
        int n = sizeof(bound), rc;

        if (!colon)
                return error_set(err, ERR_INVALID, "cannot listen at '%s': expected address:port",
                                 address);
        snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
        rc = uv_ip4_addr(host, (int)strtol(colon + 1, NULL, 10), &in);
        if (rc == 0)
                rc = uv_tcp_bind(s->listener, (const struct sockaddr *)&in, 0);
        if (rc == 0)
                rc = uv_listen((uv_stream_t *)s->listener, 512, on_connection);
        if (rc == 0)
                rc = uv_tcp_getsockname(s->listener, (struct sockaddr *)&bound, &n);
        if (rc != 0)
                return error_set(err, ERR_NET, "cannot listen at '%s': %s", address,
                                 uv_strerror(rc));
        snprintf(s->address, sizeof(s->address), "%s:%d", host,
                 ntohs(((struct sockaddr_in *)&bound)->sin_port));
        return 0;
}

struct ws_server *ws_server_new(struct loop *l, const struct ws_options *o,
                                const struct ws_hooks *hooks, void *arg, struct error *err)
{
        struct ws_server *s = mem_zalloc(sizeof(*s));
        bool ok = true;

        s->loop = l;
        s->hooks = *hooks;
        s->arg = arg;
        s->max_message = o->max_message ? o->max_message : DEFAULT_MESSAGE;
        LIST_INIT(&s->all);
        s->listener = mem_zalloc(sizeof(*s->listener));
        uv_tcp_init(loop_uv(l), s->listener);
        s->listener->data = s;
        if (o->tls_cert_file) {
                s->tls = SSL_CTX_new(TLS_server_method());
                ok = SSL_CTX_use_certificate_chain_file(s->tls, o->tls_cert_file) == 1 &&
                     SSL_CTX_use_PrivateKey_file(s->tls, o->tls_key_file, SSL_FILETYPE_PEM) == 1;
        }
        if (!ok)
                error_set(err, ERR_INVALID, "cannot use certificate '%s'", o->tls_cert_file);
        if (!ok || listen_at(s, o->listen, err) != 0) {
                ws_server_free(s);
                return NULL;
        }
        return s;
}

static void on_listener_closed(uv_handle_t *handle)
{
        free(handle);
}

void ws_server_free(struct ws_server *s)
{
        if (!s)
                return;
        while (!LIST_EMPTY(&s->all))
                finish(LIST_FIRST(&s->all));
        uv_close((uv_handle_t *)s->listener, on_listener_closed);
        SSL_CTX_free(s->tls);
        free(s);
}

const char *ws_server_address(const struct ws_server *s)
{
        return s->address;
}

/* ---- one connection ---- */

void ws_set_owner(struct ws *ws, void *owner)
{
        ws->owner = owner;
}

void ws_send(struct ws *ws, const char *bytes, size_t n, bool binary)
{
        struct wslay_event_msg m = { binary ? WSLAY_BINARY_FRAME : WSLAY_TEXT_FRAME,
                                     (const uint8_t *)bytes, n };

        if (ws->state != WS_OPEN)
                return;
        wslay_event_queue_msg(ws->frames, &m);
        flush(ws);
}

void ws_ping(struct ws *ws, const char *text)
{
        struct wslay_event_msg m = { WSLAY_PING, (const uint8_t *)text, strlen(text) };

        if (ws->state != WS_OPEN)
                return;
        wslay_event_queue_msg(ws->frames, &m);
        flush(ws);
}

void ws_mute(struct ws *ws)
{
        if (ws->state == WS_GONE)
                return;
        ws->muted = true;
        uv_read_stop((uv_stream_t *)&ws->tcp);
}

void ws_close(struct ws *ws, int code, const char *reason)
{
        if (ws->state != WS_OPEN)
                return;
        wslay_event_queue_close(ws->frames, (uint16_t)code, (const uint8_t *)reason,
                                strlen(reason));
        flush(ws);
        ws->state = WS_CLOSING;
        finish_in(ws, CLOSE_MS);
}

void ws_cut(struct ws *ws)
{
        if (ws->state == WS_GONE)
                return;
        if (ws->state == WS_OPEN)
                ws->state = WS_CLOSING;
        finish_in(ws, 0);
}
