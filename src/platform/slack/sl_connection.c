/*
 *     opening ──► up ──► draining ──► closing        hello, a replacement is up, all acks are sent
 *
 * Slack pings; when it stops, the connection is dead although TCP does not say so. Our own pings
 * find that out sooner.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/json_queue.h"
#include "net/websocket.h"
#include "platform/slack/sl_socket.h"

#define CLOSE_MS       2000
#define MESSAGE_MAX    ((size_t)8 << 20)
#define QUEUE_MAX      ((size_t)16 << 20) /* bytes that wait for a large message */
#define DRAIN_CHECK_MS 10
#define RETRY_MAX      1000
#define ID_MAX         200 /* bytes of an envelope's id */

/* An envelope that is being stored. */
struct sl_envelope {
        struct sl_connection *c; /* NULL: it has ended */
        char *id;
        bool accepts_response;
        LIST_ENTRY(sl_envelope) next;
};

struct sl_connection {
        struct sl_order_source source; /* first */
        struct sl_connection_options o;
        const struct sl_connection_handlers *on;
        void *arg;
        enum { OPENING, UP, DRAINING, CLOSING } state;
        struct websocket *ws; /* NULL: a fuzzer's */
        struct json_queue *queue;
        LIST_HEAD(, sl_envelope) unstored;
        struct timer *deadline; /* of hello, of draining */
        struct timer *beat;     /* our pings; when draining: is everything sent? */
        int64_t asked_ms;       /* our ping without an answer; -1: none */
        int64_t pinged_ms;      /* by Slack; -1: not yet */
        unsigned paused;        /* enum sl_pause */
        unsigned refs;          /* the owner, handlers on the stack */
        bool freed;
};

static void unref(struct sl_connection *c)
{
        if (--c->refs == 0)
                free(c);
}

static void end(struct sl_connection *c, const char *why, int64_t retry_after_ms)
{
        if (!c->freed)
                c->on->closed(c->arg, c, why, retry_after_ms);
}

/* ---- acknowledging ---- */

static void send_ack(struct sl_connection *c, const char *id, const json_t *response)
{
        char *payload = response ? json_text(response) : NULL;
        struct error err = { 0 };
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "envelope_id", id);
        if (payload)
                jsonw_raw(&b, "payload", payload);
        jsonw_close(&b, '}');
        if (c->ws && websocket_send(c->ws, false, b.data, b.len, &err) < 0)
                log_debug("slack acknowledgement not sent; the event comes again",
                          LOG_S("adapter", c->o.name), LOG_S("why", err.text));
        buf_release(&b);
        free(payload);
}

/* Not before the acknowledgements are out: a close frame would overtake them. */
static void close_drained(struct sl_connection *c, bool late)
{
        if (!late && (!LIST_EMPTY(&c->unstored) || (c->ws && websocket_queued(c->ws) > 0)))
                return;
        c->state = CLOSING;
        timer_stop(c->deadline);
        timer_stop(c->beat);
        if (c->ws)
                websocket_close(c->ws, WEBSOCKET_NORMAL, NULL);
}

static void on_stored(void *arg, bool stored, const json_t *response)
{
        struct sl_envelope *e = arg;
        struct sl_connection *c = e->c;

        if (c) {
                LIST_REMOVE(e, next);
                if (stored)
                        send_ack(c, e->id, e->accepts_response ? response : NULL);
        }
        free(e->id);
        free(e);
}

void sl_connection_drain(struct sl_connection *c)
{
        if (c->state != UP)
                return;
        c->state = DRAINING;
        timer_start(c->deadline, c->o.times.drain_ms);
        timer_repeat(c->beat, DRAIN_CHECK_MS);
        close_drained(c, false);
}

/* ---- receiving ---- */

static void on_envelope(struct sl_connection *c, const json_t *frame, const char *id)
{
        static const struct {
                const char *type;
                enum sl_arrival kind;
        } kinds[] = { { "events_api", SL_EVENT },
                      { "interactive", SL_INTERACTIVE },
                      { "slash_commands", SL_COMMAND } };
        const char *type = json_str(frame, "type", "");
        json_t *payload = json_object_get(frame, "payload");
        int64_t retry = json_int(frame, "retry_attempt", 0);
        struct sl_envelope *e;
        size_t i = 0;

        while (i < COUNT(kinds) && strcmp(kinds[i].type, type) != 0)
                i++;
        if (i == COUNT(kinds) || !json_is_object(payload)) {
                log_debug("slack envelope ignored", LOG_S("adapter", c->o.name),
                          LOG_S("type", type));
                send_ack(c, id, NULL); /* there is nothing to store */
                return;
        }
        e = mem_zalloc(sizeof(*e));
        e->c = c;
        e->id = mem_strdup(id);
        e->accepts_response = json_flag(frame, "accepts_response_payload", false);
        LIST_INSERT_HEAD(&c->unstored, e, next);
        c->on->envelope(c->arg, c, kinds[i].kind, payload,
                        retry > 0 && retry < RETRY_MAX ? (int)retry : 0, on_stored, e);
}

static void on_frame(void *arg, json_t *frame)
{
        struct sl_connection *c = arg;
        const char *type = json_str(frame, "type", ""), *id = json_str(frame, "envelope_id", NULL);

        if (c->state == CLOSING)
                return;
        if (id && *id && strlen(id) <= ID_MAX && c->state != OPENING) {
                on_envelope(c, frame, id);
        } else if (strcmp(type, "hello") == 0 && c->state == OPENING) {
                c->state = UP;
                timer_stop(c->deadline);
                timer_repeat(c->beat, c->o.times.ping_ms);
                c->on->hello(c->arg, c, frame);
        } else if (strcmp(type, "disconnect") == 0) {
                c->on->disconnect(c->arg, c, json_str(frame, "reason", "unknown"));
        } else {
                log_debug("slack frame ignored", LOG_S("adapter", c->o.name),
                          LOG_S("type", frame ? type : "not JSON"));
        }
}

static void set_pause(struct sl_connection *c)
{
        bool paused = c->paused || json_queue_busy(c->queue);

        c->asked_ms = -1; /* answers that we do not read are not missing */
        if (c->pinged_ms >= 0)
                c->pinged_ms = loop_now_ms(c->o.loop);
        if (c->ws)
                websocket_pause(c->ws, paused);
}

static void on_busy(void *connection, bool busy)
{
        (void)busy;
        set_pause(connection);
}

void sl_connection_pause(struct sl_connection *c, enum sl_pause why, bool paused)
{
        unsigned before = c->paused;

        c->paused = paused ? before | (unsigned)why : before & ~(unsigned)why;
        if (!before != !c->paused)
                set_pause(c);
}

struct sl_order_source *sl_connection_source(struct sl_connection *c)
{
        return &c->source;
}

struct sl_connection *sl_connection_of(struct sl_order_source *source)
{
        return (struct sl_connection *)source;
}

void sl_connection_feed(void *connection, bool binary, const char *bytes, size_t n)
{
        struct sl_connection *c = connection;

        if (binary)
                return;
        c->refs++;
        if (json_queue_add(c->queue, bytes, n) < 0)
                end(c, "Slack sends faster than messages can be read", -1);
        unref(c);
}

/* ---- liveness ---- */

static void on_beat(void *arg)
{
        struct sl_connection *c = arg;
        int64_t now = loop_now_ms(c->o.loop);

        if (c->state == DRAINING) {
                close_drained(c, false);
                return;
        }
        if (c->paused || json_queue_busy(c->queue))
                return;
        if (c->asked_ms >= 0 && now - c->asked_ms >= c->o.times.pong_ms) {
                end(c, "Slack does not answer pings", -1);
                return;
        }
        if (c->pinged_ms >= 0 && now - c->pinged_ms >= c->o.times.quiet_ms) {
                end(c, "Slack stopped sending pings", -1);
                return;
        }
        if (c->ws && websocket_ping(c->ws) == 0 && c->asked_ms < 0)
                c->asked_ms = now;
}

static void on_ping(void *arg)
{
        struct sl_connection *c = arg;

        c->pinged_ms = loop_now_ms(c->o.loop);
}

static void on_pong(void *arg)
{
        struct sl_connection *c = arg;

        c->asked_ms = -1;
}

static void on_deadline(void *arg)
{
        struct sl_connection *c = arg;

        if (c->state == DRAINING)
                close_drained(c, true); /* Slack sends again what was not acknowledged */
        else
                end(c, "Slack did not say hello", -1);
}

/* ---- the socket ---- */

static void on_open(void *arg)
{
        struct sl_connection *c = arg;

        timer_start(c->deadline, c->o.times.hello_ms);
}

static void on_closed(void *arg, const struct websocket_end *e)
{
        end(arg, e->why, e->retry_after_ms);
}

struct sl_connection *sl_connection_open(const struct sl_connection_options *o,
                                         const struct sl_connection_handlers *handlers, void *arg)
{
        static const struct json_queue_handlers queue_handlers = { .parsed = on_frame,
                                                                   .busy = on_busy };
        static const struct websocket_handlers socket_handlers = { .on_open = on_open,
                                                                   .on_message = sl_connection_feed,
                                                                   .on_ping = on_ping,
                                                                   .on_pong = on_pong,
                                                                   .on_closed = on_closed };
        struct sl_connection *c = mem_zalloc(sizeof(*c));

        c->o = *o;
        c->o.url = NULL;
        c->on = handlers;
        c->arg = arg;
        c->refs = 1;
        c->asked_ms = c->pinged_ms = -1;
        LIST_INIT(&c->unstored);
        c->queue = json_queue_new(o->loop, QUEUE_MAX, &queue_handlers, c);
        c->deadline = timer_new(o->loop, on_deadline, c);
        c->beat = timer_new(o->loop, on_beat, c);
        if (o->url)
                c->ws = websocket_open(o->loop, o->http,
                                       &(struct websocket_options){ .url = o->url,
                                                                    .open_ms = o->times.hello_ms,
                                                                    .close_ms = CLOSE_MS,
                                                                    .max_message = MESSAGE_MAX },
                                       &socket_handlers, c);
        return c;
}

void sl_connection_free(struct sl_connection *c)
{
        struct sl_envelope *e;

        if (!c || c->freed)
                return;
        c->freed = true;
        c->state = CLOSING;
        while ((e = LIST_FIRST(&c->unstored))) {
                LIST_REMOVE(e, next);
                e->c = NULL; /* on_stored frees it */
        }
        timer_free(c->deadline);
        timer_free(c->beat);
        websocket_free(c->ws);
        c->ws = NULL;
        json_queue_free(c->queue);
        unref(c);
}
