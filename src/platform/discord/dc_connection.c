/*
 * One connection to the gateway: a WebSocket, its frames as JSON, the heartbeat, and how much may
 * be sent.
 *
 * It dies once and is never mended: whoever has it makes another one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/discord/dc_gateway_private.h"
#include "platform/discord/dc_rest.h"

#define API_VERSION   10
#define OUR_CLOSE     4000 /* anything but 1000 and 1001, which would end the session */
#define CLOSE_MS      2000
#define FRAMES_MINUTE 120
#define FRAMES_SPARE  10 /* of them, for heartbeats of our own and the beginning of a session */
#define INTERVAL_MIN  10
#define INTERVAL_MAX  3600000
#define MESSAGE_MAX   ((size_t)32 << 20)

struct dc_link {
        struct dc_gateway *g;
        const struct dc_link_handlers *on;
        void *arg;
        struct websocket *ws;
        struct dc_frames *frames;
        struct timer *beat;
        bool busy, held; /* reading is paused: a large payload is parsed; the owner wants it */
        bool acked;      /* the last heartbeat */
        int64_t interval_ms, beat_ms, ping_ms;
        int64_t minute_ms; /* when the counted minute began */
        unsigned frames_sent;
};

/* ---- sending ---- */

static bool may_send(struct dc_link *l)
{
        int64_t now = dc_gateway_now(l->g);

        if (now - l->minute_ms >= 60000) {
                l->minute_ms = now;
                l->frames_sent = 0;
        }
        return l->frames_sent + FRAMES_SPARE < FRAMES_MINUTE;
}

void dc_link_send(struct dc_link *l, struct buf *b)
{
        struct error err = { 0 };

        if (b->len > DC_FRAME_MAX) {
                log_error("a frame for Discord is larger than it takes; it is not sent",
                          LOG_S("adapter", l->g->o.name), LOG_I("bytes", b->len));
        } else {
                l->frames_sent++;
                if (websocket_send(l->ws, false, b->data, b->len, &err) < 0)
                        log_debug("a frame could not be sent", LOG_S("why", err.text));
        }
        explicit_bzero(b->data, b->len);
        buf_release(b);
}

/* ---- heartbeats ---- */

static void beat(struct dc_link *l)
{
        struct buf b;

        buf_init(&b, 0);
        dc_say_heartbeat(&b, l->on->heartbeat(l->arg));
        l->acked = false;
        l->beat_ms = dc_gateway_now(l->g);
        dc_link_send(l, &b);
}

static void on_beat(void *arg)
{
        struct dc_link *l = arg;

        if (!l->acked && !l->busy && !l->held) {
                l->on->silent(l->arg);
                return;
        }
        beat(l);
        timer_start(l->beat, l->interval_ms);
}

void dc_link_beat_every(struct dc_link *l, int64_t ms)
{
        l->interval_ms = ms < INTERVAL_MIN ? INTERVAL_MIN : ms > INTERVAL_MAX ? INTERVAL_MAX : ms;
        l->acked = true; /* there is nothing to be answered yet on this connection */
        timer_start(l->beat, (int64_t)id_random_below((uint64_t)l->interval_ms));
}

void dc_link_beat_now(struct dc_link *l)
{
        if (may_send(l))
                beat(l);
}

void dc_link_acked(struct dc_link *l)
{
        l->acked = true;
        if (l->beat_ms >= 0)
                l->ping_ms = dc_gateway_now(l->g) - l->beat_ms;
}

int64_t dc_link_ping_ms(const struct dc_link *l)
{
        return l ? l->ping_ms : -1;
}

/* ---- receiving ---- */

static void set_pause(struct dc_link *l)
{
        websocket_pause(l->ws, l->busy || l->held);
}

void dc_link_hold(struct dc_link *l, bool held)
{
        if (!l || l->held == held)
                return;
        l->held = held;
        set_pause(l);
}

static void on_payload(void *arg, json_t *payload)
{
        struct dc_link *l = arg;

        l->on->payload(l->arg, payload);
}

static void on_busy(void *arg, bool busy)
{
        struct dc_link *l = arg;

        l->busy = busy;
        set_pause(l);
        if (!busy)
                dc_gateway_was_large(l->g);
}

static void on_unreadable(void *arg, const char *why)
{
        struct dc_link *l = arg;

        l->on->unreadable(l->arg, why);
}

static void on_open(void *arg)
{
        struct dc_link *l = arg;

        l->on->opened(l->arg);
}

static void on_message(void *arg, bool binary, const char *bytes, size_t n)
{
        struct dc_link *l = arg;

        dc_frames_feed(l->frames, binary, bytes, n);
}

static void on_closed(void *arg, const struct websocket_end *end)
{
        struct dc_link *l = arg;

        l->on->closed(l->arg, end);
}

/* ---- life ---- */

static char *full_url(const char *base, const char *compress)
{
        bool squeezed = compress && strcmp(compress, "none") != 0;
        size_t n = strlen(base);

        return mem_printf("%s%s?v=%d&encoding=json%s%s", base,
                          n > 0 && base[n - 1] == '/' ? "" : "/", API_VERSION,
                          squeezed ? "&compress=" : "", squeezed ? compress : "");
}

struct dc_link *dc_link_open(struct dc_gateway *g, const char *base,
                             const struct dc_link_handlers *handlers, void *arg)
{
        static const struct websocket_handlers on_socket = { .on_open = on_open,
                                                             .on_message = on_message,
                                                             .on_closed = on_closed };
        static const struct dc_frames_handlers on_frames = { .payload = on_payload,
                                                             .busy = on_busy,
                                                             .failed = on_unreadable };
        static const char *const headers[] = { DC_AGENT, NULL };
        struct dc_link *l = mem_zalloc(sizeof(*l));
        char *url = full_url(base, g->o.compress);

        l->g = g;
        l->on = handlers;
        l->arg = arg;
        l->beat_ms = l->ping_ms = -1;
        l->beat = timer_new(g->o.loop, on_beat, l);
        l->frames = dc_frames_new(g->o.loop, g->o.compress, &on_frames, l);
        l->ws = websocket_open(g->o.loop, g->o.http,
                               &(struct websocket_options){ .url = url,
                                                            .headers = headers,
                                                            .close_ms = CLOSE_MS,
                                                            .max_message = MESSAGE_MAX },
                               &on_socket, l);
        free(url);
        return l;
}

void dc_link_close(struct dc_link *l)
{
        timer_stop(l->beat);
        websocket_close(l->ws, OUR_CLOSE, NULL);
}

void dc_link_free(struct dc_link *l)
{
        if (!l)
                return;
        timer_free(l->beat);
        websocket_free(l->ws);
        dc_frames_free(l->frames);
        free(l);
}
