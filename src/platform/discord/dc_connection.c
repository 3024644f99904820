#include "platform/discord/dc_shard.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/inflate.h"
#include "net/json_offload.h"
#include "net/json_queue.h"
#include "platform/discord/dc_rest.h"

#define API_VERSION   10
#define CLOSE_CODE    4000 /* 1000 and 1001 would end the session */
#define CLOSE_MS      2000
#define MESSAGE_MAX   ((size_t)32 << 20)
#define PAYLOAD_MAX   ((size_t)32 << 20) /* inflated */
#define QUEUE_MAX     ((size_t)16 << 20) /* bytes queued after a large payload */
#define FRAME_MAX     4096               /* Discord's limit for what we send */
#define FRAMES_MINUTE 120                /* the same */
#define FRAMES_SPARE  10                 /* reserved for heartbeats and IDENTIFY */
#define INTERVAL_MIN  10
#define INTERVAL_MAX  3600000

struct dc_connection {
        const struct dc_gateway_options *o;
        const struct dc_session *session;
        const struct dc_connection_handlers *on;
        void *arg;
        struct websocket *ws;
        unsigned refs; /* the owner, callbacks on the stack */
        bool freed;

        struct inflate *inflate; /* NULL: not compressed */
        struct buf inflated;
        struct json_queue *queue;
        bool held;   /* the session is full */
        bool failed; /* unreadable */

        struct timer *beat;
        int64_t interval_ms, beat_ms, ping_ms;
        bool acked;

        int64_t minute_ms;
        unsigned frames_sent;
};

/* ---- sending ---- */

/* Releases b, and wipes it because of the token. */
static void send_frame(struct dc_connection *c, struct buf *b)
{
        struct error err = { 0 };

        if (b->len > FRAME_MAX) {
                log_error("gateway frame exceeds Discord's limit; not sent",
                          LOG_S("adapter", c->o->name), LOG_I("bytes", b->len));
        } else {
                c->frames_sent++;
                if (websocket_send(c->ws, false, b->data, b->len, &err) < 0)
                        log_debug("cannot send gateway frame", LOG_S("why", err.text));
        }
        explicit_bzero(b->data, b->len);
        buf_release(b);
}

void dc_connection_begin(struct dc_connection *c, bool resumes, unsigned shard, unsigned shards)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_int(&b, "op", resumes ? DC_OP_RESUME : DC_OP_IDENTIFY);
        jsonw_open_member(&b, "d", '{');
        jsonw_str(&b, "token", secret_reveal(c->o->token));
        if (resumes) {
                jsonw_str(&b, "session_id", c->session->id);
                jsonw_int(&b, "seq", c->session->seq);
        } else {
                jsonw_int(&b, "intents", c->o->intents);
                jsonw_open_member(&b, "properties", '{');
                jsonw_str(&b, "os", "linux");
                jsonw_str(&b, "browser", "dragoman");
                jsonw_str(&b, "device", "dragoman");
                jsonw_close(&b, '}');
                jsonw_open_member(&b, "shard", '[');
                jsonw_int(&b, NULL, shard);
                jsonw_int(&b, NULL, shards);
                jsonw_close(&b, ']');
        }
        jsonw_close(&b, '}');
        jsonw_close(&b, '}');
        send_frame(c, &b);
}

/* ---- heartbeats ---- */

static void send_heartbeat(struct dc_connection *c)
{
        int64_t seq = dc_session_heartbeat(c->session);
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_int(&b, "op", DC_OP_HEARTBEAT);
        if (seq < 0)
                jsonw_null(&b, "d");
        else
                jsonw_int(&b, "d", seq);
        jsonw_close(&b, '}');
        c->acked = false;
        c->beat_ms = loop_now_ms(c->o->loop);
        send_frame(c, &b);
}

static void on_beat(void *arg)
{
        struct dc_connection *c = arg;

        if (!c->acked && !json_queue_busy(c->queue) && !c->held) {
                c->on->event(c->arg, DC_CONNECTION_SILENT, NULL);
                return;
        }
        send_heartbeat(c);
        timer_start(c->beat, c->interval_ms);
}

void dc_connection_beat_every(struct dc_connection *c, int64_t ms)
{
        c->interval_ms = ms < INTERVAL_MIN ? INTERVAL_MIN : ms > INTERVAL_MAX ? INTERVAL_MAX : ms;
        c->acked = true;
        timer_start(c->beat, (int64_t)id_random_below((uint64_t)c->interval_ms));
}

void dc_connection_beat(struct dc_connection *c)
{
        int64_t now = loop_now_ms(c->o->loop);

        if (now - c->minute_ms >= 60000) {
                c->minute_ms = now;
                c->frames_sent = 0;
        }
        if (c->frames_sent + FRAMES_SPARE < FRAMES_MINUTE)
                send_heartbeat(c);
}

void dc_connection_acked(struct dc_connection *c)
{
        c->acked = true;
        if (c->beat_ms >= 0)
                c->ping_ms = loop_now_ms(c->o->loop) - c->beat_ms;
}

int64_t dc_connection_ping_ms(const struct dc_connection *c)
{
        return c ? c->ping_ms : -1;
}

/* ---- receiving ---- */

static void unref(struct dc_connection *c)
{
        if (--c->refs > 0)
                return;
        inflate_free(c->inflate);
        buf_release(&c->inflated);
        free(c);
}

static void fail(struct dc_connection *c, const char *why)
{
        if (c->failed || c->freed)
                return;
        c->failed = true;
        c->on->event(c->arg, DC_CONNECTION_UNREADABLE, why);
}

static void set_pause(struct dc_connection *c)
{
        if (c->ws)
                websocket_pause(c->ws, json_queue_busy(c->queue) || c->held);
}

void dc_connection_adjust(struct dc_connection *c)
{
        if (!c || c->held == c->session->full)
                return;
        c->held = c->session->full;
        set_pause(c);
}

static void on_parsed(void *arg, json_t *payload)
{
        struct dc_connection *c = arg;

        if (c->failed)
                return;
        if (json_is_object(payload))
                c->on->payload(c->arg, payload);
        else
                fail(c, "Discord sent a payload that is not a JSON object");
}

static void on_busy(void *arg, bool busy)
{
        struct dc_connection *c = arg;

        set_pause(c);
        if (!busy && !c->failed)
                c->on->event(c->arg, DC_CONNECTION_WAS_LARGE, NULL);
}

static void take(struct dc_connection *c, const char *text, size_t n)
{
        if (json_queue_add(c->queue, text, n) < 0)
                fail(c, "Discord sends faster than payloads can be read");
}

void dc_connection_feed(void *connection, bool binary, const char *bytes, size_t n)
{
        struct dc_connection *c = connection;
        struct error err = { 0 };
        int rc;

        if (c->failed)
                return;
        c->refs++;
        if (!c->inflate || !binary) {
                take(c, bytes, n);
                unref(c);
                return;
        }
        rc = inflate_feed(c->inflate, bytes, n, &c->inflated, &err);
        if (rc < 0) {
                fail(c, err.text);
        } else if (rc > 0) {
                take(c, c->inflated.data, c->inflated.len);
                if (c->inflated.cap > JSON_OFFLOAD_MIN)
                        buf_release(&c->inflated);
                buf_clear(&c->inflated);
        }
        unref(c);
}

/* ---- the socket ---- */

static void on_open(void *arg)
{
        struct dc_connection *c = arg;

        c->on->event(c->arg, DC_CONNECTION_OPENED, NULL);
}

static void on_closed(void *arg, const struct websocket_end *end)
{
        struct dc_connection *c = arg;

        c->on->closed(c->arg, end);
}

struct dc_connection *dc_connection_open(const struct dc_gateway_options *o, const char *url,
                                         const struct dc_session *session,
                                         const struct dc_connection_handlers *handlers, void *arg)
{
        static const struct websocket_handlers socket_handlers = { .on_open = on_open,
                                                                   .on_message = dc_connection_feed,
                                                                   .on_closed = on_closed };
        static const struct json_queue_handlers queue_handlers = { .parsed = on_parsed,
                                                                   .busy = on_busy };
        static const char *const headers[] = { DC_AGENT, NULL };
        struct dc_connection *c = mem_zalloc(sizeof(*c));
        size_t n = url ? strlen(url) : 0;
        char *full;

        c->o = o;
        c->session = session;
        c->on = handlers;
        c->arg = arg;
        c->refs = 1;
        c->beat_ms = c->ping_ms = -1;
        c->beat = timer_new(o->loop, on_beat, c);
        c->queue = json_queue_new(o->loop, QUEUE_MAX, &queue_handlers, c);
        buf_init(&c->inflated, PAYLOAD_MAX);
        if (o->compress && strcmp(o->compress, "zlib-stream") == 0)
                c->inflate = inflate_new(INFLATE_ZLIB);
        else if (o->compress && strcmp(o->compress, "zstd-stream") == 0)
                c->inflate = inflate_new(INFLATE_ZSTD);
        if (!url)
                return c;
        full = mem_printf("%s%s?v=%d&encoding=json%s%s", url, n > 0 && url[n - 1] == '/' ? "" : "/",
                          API_VERSION, c->inflate ? "&compress=" : "",
                          c->inflate ? o->compress : "");
        c->ws = websocket_open(o->loop, o->http,
                               &(struct websocket_options){ .url = full,
                                                            .headers = headers,
                                                            .close_ms = CLOSE_MS,
                                                            .max_message = MESSAGE_MAX },
                               &socket_handlers, c);
        free(full);
        return c;
}

void dc_connection_close(struct dc_connection *c)
{
        timer_stop(c->beat);
        websocket_close(c->ws, CLOSE_CODE, NULL);
}

void dc_connection_free(struct dc_connection *c)
{
        if (!c)
                return;
        c->freed = true;
        timer_free(c->beat);
        websocket_free(c->ws);
        c->ws = NULL;
        json_queue_free(c->queue);
        unref(c);
}
