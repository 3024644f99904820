/*
 * connecting (tls_connection.c) ──► asking (ws_handshake.c) ──► open (wslay) ──► closing ──► ended
 *
 * `enter` and `leave` bracket every callback; `end` ends the connection, and `leave` reports it
 * once the stack is empty. A deferred call may come after the owner has freed the websocket: hence
 * the reference count.
 */
#include "net/websocket.h"

#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/http_client_private.h"
#include "net/ws_handshake.h"

#define OPEN_MS     20000
#define CLOSE_MS    5000
#define STALL_MS    30000
#define MAX_MESSAGE ((size_t)16 << 20)
#define MAX_QUEUED  ((size_t)1 << 20)
#define MAX_CONTROL 64                  /* queued answers to pings */
#define MAX_PIECES  16384               /* of one message: wslay allocates each */
#define READ_ROUND  ((size_t)256 << 10) /* bytes read before other callbacks run */
#define REASON_MAX  123

enum ws_state { WS_CONNECTING, WS_ASKING, WS_OPEN, WS_CLOSING, WS_ENDED };

struct websocket {
        struct loop *loop;
        struct websocket_handlers on;
        void *arg;
        enum ws_state state;
        struct tls_connection *conn;
        struct ws_target target;
        struct buf request; /* rest to be sent */
        struct buf head;    /* the answer, then frames that came with it */
        char key[WS_KEY_SIZE];
        wslay_event_context_ptr frames;
        struct timer *timer; /* until open; until the peer has answered our close */
        struct timer *stall; /* runs while bytes wait to be sent */
        int64_t open_ms, close_ms, stall_ms;
        size_t max_message, max_queued, round;
        unsigned pieces; /* of the current message */
        struct error error;
        struct websocket_end result;
        char *reason;
        bool paused, opened;
        bool conn_broke; /* as opposed to bytes that make no sense */
        bool more;       /* on_more is deferred */
        unsigned depth;  /* > 0: wslay or a handler is on the stack */
        unsigned refs;   /* the owner, deferred calls, callbacks */
        bool freed;
};

static void proceed(struct websocket *ws, bool readable, bool writable);

/* ---- memory ---- */

static void unref(struct websocket *ws)
{
        if (--ws->refs > 0)
                return;
        if (ws->frames)
                wslay_event_context_free(ws->frames);
        tls_connection_free(ws->conn);
        timer_free(ws->timer);
        timer_free(ws->stall);
        ws_target_release(&ws->target);
        buf_release(&ws->request);
        buf_release(&ws->head);
        free(ws->reason);
        free(ws);
}

/* ---- the end ---- */

static void report(struct websocket *ws)
{
        struct websocket_end *r = &ws->result;

        r->opened = ws->opened;
        r->reason = ws->reason ? ws->reason : "";
        if (r->code == 0)
                r->code = WEBSOCKET_ABNORMAL;
        r->kind = ws->error.kind;
        r->why = ws->error.text;
        if (ws->error.kind == ERR_NONE) {
                if (r->code == WEBSOCKET_ABNORMAL)
                        error_set(&ws->error, ERR_NONE, "the connection was closed");
                else
                        error_set(&ws->error, ERR_NONE, "the peer closed with code %d%s%s", r->code,
                                  *r->reason ? ": " : "", r->reason);
        }
        ws->on.on_closed(ws->arg, r);
}

/* Drops the connection at once; `leave` reports it. */
static void end(struct websocket *ws)
{
        if (ws->state == WS_ENDED)
                return;
        ws->state = WS_ENDED;
        tls_connection_free(ws->conn);
        ws->conn = NULL;
        timer_stop(ws->timer);
        timer_stop(ws->stall);
}

static void fail(struct websocket *ws)
{
        bool asked = ws->state == WS_CLOSING && ws->result.sent != 0;

        if (asked)
                error_clear(&ws->error); /* we closed: a missing answer is no error */
        else if (ws->state != WS_ENDED && ws->error.kind == ERR_NONE)
                error_set(&ws->error, ERR_NET, "the connection to '%s' broke", ws->target.host);
        end(ws);
}

/* `leave` may free ws. */
static void enter(struct websocket *ws)
{
        ws->depth++;
        ws->refs++;
}

static void leave(struct websocket *ws)
{
        if (--ws->depth == 0 && ws->state == WS_ENDED && !ws->freed)
                report(ws);
        unref(ws);
}

static void on_timer(void *arg)
{
        struct websocket *ws = arg;

        enter(ws);
        if (ws->state != WS_CLOSING) /* else we closed: a missing answer is no error */
                error_set(&ws->error, ERR_TIMEOUT, "no WebSocket from '%s' within %lld ms",
                          ws->target.host ? ws->target.host : "", (long long)ws->open_ms);
        end(ws);
        leave(ws);
}

static void on_stall(void *arg)
{
        struct websocket *ws = arg;

        enter(ws);
        error_set(&ws->error, ERR_TIMEOUT, "'%s' has read nothing for %lld ms", ws->target.host,
                  (long long)ws->stall_ms);
        end(ws);
        leave(ws);
}

/* ---- callbacks of wslay ---- */

static ssize_t no_bytes(struct websocket *ws, enum wslay_error why)
{
        wslay_event_set_error(ws->frames, why);
        return -1;
}

static void on_more(void *arg)
{
        struct websocket *ws = arg;

        ws->more = false;
        ws->depth++; /* instead of enter: a deferred call has its reference */
        if (!ws->freed && ws->state != WS_ENDED)
                proceed(ws, true, false);
        leave(ws);
}

/* Bytes that TLS has already read do not wake the loop: defer a call. */
static void want_more(struct websocket *ws)
{
        if (ws->more)
                return;
        ws->more = true;
        ws->refs++;
        loop_defer(ws->loop, on_more, ws);
}

static ssize_t on_recv(wslay_event_context_ptr frames, uint8_t *out, size_t n, int flags, void *arg)
{
        struct websocket *ws = arg;
        ssize_t got;

        (void)frames, (void)flags;
        if (ws->freed || ws->state == WS_ENDED)
                return no_bytes(ws, WSLAY_ERR_CALLBACK_FAILURE);
        if (ws->paused)
                return no_bytes(ws, WSLAY_ERR_WOULDBLOCK);
        if (ws->head.len > 0) {
                if (n > ws->head.len)
                        n = ws->head.len;
                memcpy(out, ws->head.data, n);
                buf_consume(&ws->head, n);
                return (ssize_t)n;
        }
        if (ws->round >= READ_ROUND) {
                want_more(ws);
                return no_bytes(ws, WSLAY_ERR_WOULDBLOCK);
        }
        got = tls_connection_read(ws->conn, out, n, &ws->error);
        if (got == TLS_CONNECTION_AGAIN)
                return no_bytes(ws, WSLAY_ERR_WOULDBLOCK);
        if (got <= 0) {
                ws->conn_broke = true;
                return no_bytes(ws, WSLAY_ERR_CALLBACK_FAILURE);
        }
        ws->round += (size_t)got;
        return got;
}

static ssize_t on_send(wslay_event_context_ptr frames, const uint8_t *bytes, size_t n, int flags,
                       void *arg)
{
        struct websocket *ws = arg;
        struct error err = { 0 };
        ssize_t done;

        (void)frames, (void)flags;
        if (ws->freed || ws->state == WS_ENDED)
                return no_bytes(ws, WSLAY_ERR_CALLBACK_FAILURE);
        done = tls_connection_write(ws->conn, bytes, n, &err);
        if (done == TLS_CONNECTION_AGAIN || done == 0)
                return no_bytes(ws, WSLAY_ERR_WOULDBLOCK);
        if (done < 0) {
                ws->error = err;
                return no_bytes(ws, WSLAY_ERR_CALLBACK_FAILURE);
        }
        timer_start(ws->stall, ws->stall_ms);
        return done;
}

static int on_mask(wslay_event_context_ptr frames, uint8_t *out, size_t n, void *arg)
{
        (void)frames, (void)arg;
        id_random_bytes(out, n);
        return 0;
}

static void on_msg(wslay_event_context_ptr frames, const struct wslay_event_on_msg_recv_arg *m,
                   void *arg)
{
        struct websocket *ws = arg;

        if (ws->freed)
                return;
        if (m->opcode == WSLAY_CONNECTION_CLOSE) {
                ws->result.code = m->status_code ? m->status_code : WEBSOCKET_NO_STATUS;
                free(ws->reason);
                ws->reason = m->msg_length > 2
                                     ? utf8_clean((const char *)m->msg + 2, m->msg_length - 2)
                                     : NULL;
                if (ws->state == WS_OPEN) {
                        ws->state = WS_CLOSING;
                        timer_start(ws->timer, ws->close_ms);
                }
        } else if (ws->state != WS_OPEN) {
                return; /* we have closed */
        } else if (m->opcode == WSLAY_PONG) {
                if (ws->on.on_pong)
                        ws->on.on_pong(ws->arg);
        } else if (m->opcode == WSLAY_PING) {
                if (wslay_event_get_queued_msg_count(frames) > MAX_CONTROL) {
                        error_set(&ws->error, ERR_PROTOCOL,
                                  "'%s' sends pings and does not read the answers",
                                  ws->target.host);
                        end(ws);
                } else if (ws->on.on_ping) {
                        ws->on.on_ping(ws->arg);
                }
        } else {
                ws->on.on_message(ws->arg, m->opcode == WSLAY_BINARY_FRAME, (const char *)m->msg,
                                  m->msg_length);
        }
}

static void on_frame(wslay_event_context_ptr frames,
                     const struct wslay_event_on_frame_recv_start_arg *f, void *arg)
{
        struct websocket *ws = arg;

        (void)frames;
        if (f->opcode == WSLAY_TEXT_FRAME || f->opcode == WSLAY_BINARY_FRAME)
                ws->pieces = 0;
        if (f->opcode == WSLAY_CONTINUATION_FRAME && ++ws->pieces > MAX_PIECES) {
                error_set(&ws->error, ERR_PROTOCOL, "'%s' sends a message in more than %d pieces",
                          ws->target.host, MAX_PIECES);
                end(ws);
        }
}

static const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_recv,
        .send_callback = on_send,
        .genmask_callback = on_mask,
        .on_frame_recv_start_callback = on_frame,
        .on_msg_recv_callback = on_msg,
};

/* ---- reading and writing ---- */

static void set_wants(struct websocket *ws)
{
        bool write = ws->request.len > 0;

        if (ws->state == WS_ENDED || ws->state == WS_CONNECTING)
                return;
        if (ws->frames)
                write = wslay_event_want_write(ws->frames) != 0;
        tls_connection_want(ws->conn, !ws->paused, write);
        if (!write)
                timer_stop(ws->stall);
        else if (!timer_active(ws->stall))
                timer_start(ws->stall, ws->stall_ms);
}

/* Sets the error for which wslay has closed on its own. */
static void set_protocol_error(struct websocket *ws)
{
        int code = wslay_event_get_status_code_sent(ws->frames);

        if (ws->result.code != 0 || ws->result.sent != 0 || ws->error.kind != ERR_NONE)
                return;
        if (code == WSLAY_CODE_MESSAGE_TOO_BIG)
                error_set(&ws->error, ERR_LIMIT, "a message of '%s' is larger than %zu bytes",
                          ws->target.host, ws->max_message);
        else
                error_set(&ws->error, ERR_PROTOCOL, "'%s' does not speak WebSocket properly",
                          ws->target.host);
        ws->result.sent = code;
}

static void exchange(struct websocket *ws, bool readable)
{
        ws->round = 0;
        if (readable && wslay_event_want_read(ws->frames) && wslay_event_recv(ws->frames) != 0) {
                if (!ws->conn_broke)
                        set_protocol_error(ws);
                if (ws->result.code == 0)
                        fail(ws); /* the peer left without a close frame */
        }
        if (ws->state == WS_ENDED || ws->freed)
                return;
        if (wslay_event_want_write(ws->frames) && wslay_event_send(ws->frames) != 0) {
                if (ws->result.code != 0)
                        error_clear(&ws->error); /* the peer closed first */
                else
                        fail(ws);
                end(ws);
                return;
        }
        if (!wslay_event_get_read_enabled(ws->frames) && !wslay_event_want_write(ws->frames)) {
                set_protocol_error(ws);
                end(ws);
        }
}

static void send_request(struct websocket *ws)
{
        while (ws->request.len > 0) {
                ssize_t done = tls_connection_write(ws->conn, ws->request.data, ws->request.len,
                                                    &ws->error);

                if (done == TLS_CONNECTION_AGAIN)
                        return;
                if (done < 0) {
                        fail(ws);
                        return;
                }
                buf_consume(&ws->request, (size_t)done);
        }
}

static void read_answer(struct websocket *ws)
{
        struct ws_handshake_answer answer;
        char bytes[4096];
        int rc = 0;

        while (rc == 0) {
                ssize_t got = tls_connection_read(ws->conn, bytes, sizeof(bytes), &ws->error);

                if (got == TLS_CONNECTION_AGAIN)
                        return;
                if (got <= 0) {
                        fail(ws);
                        return;
                }
                buf_add(&ws->head, bytes, (size_t)got);
                rc = ws_handshake_read(&answer, ws->head.data, ws->head.len, ws->key, &ws->error);
        }
        ws->result.status = answer.status == 101 ? 0 : answer.status;
        ws->result.retry_after_ms = answer.retry_after_ms;
        if (rc < 0) {
                end(ws);
                return;
        }
        buf_consume(&ws->head, answer.length);
        if (wslay_event_context_client_init(&ws->frames, &callbacks, ws) != 0)
                abort(); /* out of memory */
        wslay_event_config_set_max_recv_msg_length(ws->frames, ws->max_message);
        ws->state = WS_OPEN;
        ws->opened = true;
        timer_stop(ws->timer);
        if (ws->on.on_open)
                ws->on.on_open(ws->arg);
        if (!ws->freed && ws->state != WS_ENDED)
                exchange(ws, true);
}

static void proceed(struct websocket *ws, bool readable, bool writable)
{
        if (ws->state == WS_ASKING && writable)
                send_request(ws);
        if (ws->state == WS_ASKING && readable)
                read_answer(ws);
        else if (ws->frames && (ws->state == WS_OPEN || ws->state == WS_CLOSING))
                exchange(ws, readable);
        else if (ws->state == WS_CLOSING)
                end(ws); /* closed before it was open */
        if (!ws->freed)
                set_wants(ws);
}

static void on_ready(void *arg, bool readable, bool writable)
{
        struct websocket *ws = arg;

        enter(ws);
        proceed(ws, readable, writable);
        leave(ws);
}

static void on_connected(void *arg, const struct error *err)
{
        struct websocket *ws = arg;

        enter(ws);
        if (err)
                ws->error = *err;
        if (err || ws->state == WS_CLOSING) {
                end(ws);
        } else {
                ws->state = WS_ASKING;
                set_wants(ws);
        }
        leave(ws);
}

/* ---- the owner's side ---- */

static void on_bad_request(void *arg)
{
        struct websocket *ws = arg;

        ws->depth++;
        if (!ws->freed)
                end(ws);
        leave(ws);
}

struct websocket *websocket_open(struct loop *l, struct http_client *http,
                                 const struct websocket_options *o,
                                 const struct websocket_handlers *handlers, void *arg)
{
        static const struct tls_connection_handlers on = { .on_connected = on_connected,
                                                           .on_ready = on_ready };
        struct websocket *ws = mem_zalloc(sizeof(*ws));

        ws->loop = l;
        ws->on = *handlers;
        ws->arg = arg;
        ws->refs = 1;
        ws->open_ms = o->open_ms > 0 ? o->open_ms : OPEN_MS;
        ws->close_ms = o->close_ms > 0 ? o->close_ms : CLOSE_MS;
        ws->stall_ms = o->stall_ms > 0 ? o->stall_ms : STALL_MS;
        ws->max_message = o->max_message ? o->max_message : MAX_MESSAGE;
        ws->max_queued = o->max_queued ? o->max_queued : MAX_QUEUED;
        ws->result.retry_after_ms = -1;
        ws->timer = timer_new(l, on_timer, ws);
        ws->stall = timer_new(l, on_stall, ws);
        buf_init(&ws->request, 0);
        buf_init(&ws->head, 0);
        ws_handshake_key(ws->key);
        if (ws_target_init(&ws->target, o->url, &ws->error) ||
            ws_handshake_request(&ws->request, &ws->target, ws->key, o->headers, &ws->error)) {
                ws->refs++;
                loop_defer(l, on_bad_request, ws);
                return ws;
        }
        ws->conn = tls_connection_open(l, http, ws->target.origin, ws->open_ms, &on, ws);
        timer_start(ws->timer, ws->open_ms);
        return ws;
}

void websocket_free(struct websocket *ws)
{
        if (!ws || ws->freed)
                return;
        ws->freed = true;
        end(ws);
        unref(ws);
}

size_t websocket_queued(const struct websocket *ws)
{
        return ws->frames ? wslay_event_get_queued_msg_length(ws->frames) : 0;
}

static int queue(struct websocket *ws, uint8_t opcode, const char *bytes, size_t n)
{
        const struct wslay_event_msg m = { .opcode = opcode,
                                           .msg = (const uint8_t *)bytes,
                                           .msg_length = n };

        if (wslay_event_queue_msg(ws->frames, &m) != 0)
                return -1;
        set_wants(ws);
        return 0;
}

int websocket_send(struct websocket *ws, bool binary, const char *bytes, size_t n,
                   struct error *err)
{
        if (ws->state != WS_OPEN)
                return error_set(err, ERR_NET, "the WebSocket is not open");
        if (n > ws->max_queued || websocket_queued(ws) > ws->max_queued - n)
                return error_set(err, ERR_LIMIT, "more than %zu bytes wait to be sent",
                                 ws->max_queued);
        if (queue(ws, binary ? WSLAY_BINARY_FRAME : WSLAY_TEXT_FRAME, bytes, n))
                return error_set(err, ERR_NET, "the WebSocket takes no more messages");
        return 0;
}

int websocket_ping(struct websocket *ws)
{
        if (ws->state != WS_OPEN || wslay_event_get_queued_msg_count(ws->frames) > MAX_CONTROL)
                return -1;
        return queue(ws, WSLAY_PING, "", 0);
}

void websocket_close(struct websocket *ws, int code, const char *reason)
{
        size_t n = reason ? utf8_prefix(reason, strlen(reason), UTF8_BYTES, REASON_MAX) : 0;

        if (ws->state == WS_CLOSING || ws->state == WS_ENDED)
                return;
        ws->result.sent = code;
        ws->paused = false;
        if (ws->state == WS_OPEN)
                wslay_event_queue_close(ws->frames, (uint16_t)code, (const uint8_t *)reason, n);
        else
                ws->request.len = 0; /* not open yet: the peer expects nothing */
        timer_start(ws->timer, ws->state == WS_OPEN ? ws->close_ms : 0);
        ws->state = WS_CLOSING;
        if (ws->frames)
                set_wants(ws);
}

void websocket_pause(struct websocket *ws, bool paused)
{
        if (ws->paused == paused || ws->state != WS_OPEN)
                return;
        ws->paused = paused;
        set_wants(ws);
        if (!paused)
                want_more(ws); /* TLS may hold bytes */
}
