#include "api/core/reply_stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "bus/bus.h"

#define PING_MS 15000
#define OUT_MAX (4 * 1024 * 1024) /* unread bytes before a client is dropped */

/* Freed when its stream closes. */
struct reply_stream {
        struct reply_streams *all;
        const struct reply_stream_ops *ops;
        void *arg;
        char event[BUS_ID_SIZE];
        bool live;                   /* gets live pieces */
        bool ended;                  /* the last event was sent */
        struct reply_waiter *waiter; /* NULL: the reply is here */
        struct http_stream *http;
        struct buf out;            /* unread by the client */
        struct buf sent;           /* the pieces so far */
        bool quiet;                /* nothing sent since the last ping */
        struct reply_stream *same; /* next live one of the same event */
        LIST_ENTRY(reply_stream) next;
};

struct reply_streams {
        struct api *api;
        struct timer *ping;
        LIST_HEAD(, reply_stream) list;
        struct map live; /* "evt-12" → struct reply_stream, first of a chain */
        struct bus_listener *listener;
};

/* ---- one stream ---- */

static void leave_live(struct reply_stream *s)
{
        struct reply_stream *first = map_get(&s->all->live, s->event), **at = &first;

        if (!s->live)
                return;
        s->live = false;
        while (*at != s)
                at = &(*at)->same;
        *at = s->same;
        if (first)
                map_put(&s->all->live, s->event, first);
        else
                map_remove(&s->all->live, s->event);
}

static ssize_t on_pull(void *arg, char *out, size_t max)
{
        struct reply_stream *s = arg;
        size_t n = s->out.len < max ? s->out.len : max;

        if (n == 0)
                return s->ended ? -1 : 0;
        memcpy(out, s->out.data, n);
        buf_consume(&s->out, n);
        return (ssize_t)n;
}

static void on_closed(void *arg)
{
        struct reply_stream *s = arg;

        if (s->waiter)
                reply_waiters_remove(s->waiter);
        leave_live(s);
        LIST_REMOVE(s, next);
        if (LIST_EMPTY(&s->all->list))
                timer_stop(s->all->ping);
        s->ops->free(s->arg);
        buf_release(&s->out);
        buf_release(&s->sent);
        free(s);
}

static const struct http_stream_ops stream_ops = { on_pull, on_closed };

void reply_stream_send(struct reply_stream *s, struct buf *data)
{
        if (s->out.len > OUT_MAX) {
                http_stream_cut(s->http);
        } else {
                buf_addstr(&s->out, "data: ");
                buf_add(&s->out, data->data, data->len);
                buf_addstr(&s->out, "\n\n");
                s->quiet = false;
                http_stream_wake(s->http);
        }
        buf_release(data);
}

void reply_stream_close(struct reply_stream *s)
{
        s->ended = true;
        if (s->waiter)
                reply_waiters_remove(s->waiter);
        s->waiter = NULL;
        http_stream_wake(s->http);
}

/* ---- pieces ---- */

static void send_piece(struct reply_stream *s, const char *text, size_t n)
{
        if (n == 0)
                return;
        buf_add(&s->sent, text, n);
        s->ops->piece(s, s->arg, text, n);
}

static void set_aside(struct reply_stream *s)
{
        buf_clear(&s->sent);
        s->ops->aside(s, s->arg);
}

/* The stored answer is trimmed, the streamed one is not. */
static const char *skip_blanks(const char *text)
{
        return text + strspn(text, " \t\r\n");
}

/* If the pieces are not the beginning of the answer (the agent restarted), sends it whole. */
static void send_rest(struct reply_stream *s, const char *text)
{
        const char *sent = skip_blanks(s->sent.data), *rest = skip_blanks(text);

        while (*sent && *sent == *rest) {
                sent++;
                rest++;
        }
        if (*skip_blanks(sent) != '\0') {
                set_aside(s);
                rest = text;
        }
        send_piece(s, rest, strlen(rest));
}

static void on_live_event(void *arg, const struct bus_event *e)
{
        struct reply_streams *all = arg;
        struct reply_stream *s, *next;
        const char *text;
        json_t *payload;

        if (all->live.count == 0 || strncmp(e->type, "turn.", 5) != 0)
                return;
        payload = json_loads(e->payload, 0, NULL);
        text = json_str(payload, "text", "");
        for (s = map_get(&all->live, json_str(payload, "eventId", "")); s; s = next) {
                next = s->same;
                if (s->ended)
                        continue;
                if (strcmp(e->type, "turn.delta") == 0)
                        send_piece(s, text, strlen(text));
                else if (strcmp(e->type, "turn.aside") == 0 && s->sent.len > 0)
                        set_aside(s);
                else if (strcmp(e->type, "turn.progress") == 0 && s->ops->progress)
                        s->ops->progress(s, s->arg, json_str(payload, "label", ""));
        }
        json_decref(payload);
}

/* A failed write reveals that a client has gone. */
static void on_ping(void *arg)
{
        struct reply_streams *all = arg;
        struct reply_stream *s;

        LIST_FOREACH(s, &all->list, next) {
                if (s->quiet) {
                        buf_addstr(&s->out, ": still working\n\n");
                        http_stream_wake(s->http);
                }
                s->quiet = true;
        }
}

/* ---- from begin to end ---- */

static void on_reply(void *arg, const struct awaited_reply *r)
{
        struct reply_stream *s = arg;

        s->waiter = NULL;
        leave_live(s);
        if (!s->ops->is_failure(r))
                send_rest(s, r->text ? r->text : "");
        s->ops->end(s, s->arg, r);
        reply_stream_close(s);
}

void reply_stream_open(struct http_exchange *x, int64_t event, bool live, bool now, int64_t ms,
                       const struct reply_stream_ops *ops, void *arg)
{
        struct reply_streams *all = api_of(x)->reply_streams;
        struct reply_stream *s;

        if (http_is_gone(x)) {
                http_answer(x, 200, "text/event-stream", "", 0);
                ops->free(arg);
                return;
        }
        s = mem_zalloc(sizeof(*s));
        s->all = all;
        s->ops = ops;
        s->arg = arg;
        bus_event_id(event, s->event);
        buf_init(&s->out, 0);
        buf_init(&s->sent, 0);
        if (LIST_EMPTY(&all->list))
                timer_repeat(all->ping, PING_MS);
        LIST_INSERT_HEAD(&all->list, s, next);
        if (live) {
                s->live = true;
                s->same = map_put(&all->live, s->event, s);
        }
        http_add_header(x, "X-Accel-Buffering", "no");
        http_answer_stream(x, "text/event-stream", &stream_ops, s, &s->http);
        s->ops->begin(s, s->arg);
        if (!s->ended)
                s->waiter = reply_waiters_add(all->api->waiters, event, now, ms, on_reply, s);
}

/* ---- opening and closing ---- */

struct reply_streams *reply_streams_new(struct api *a)
{
        struct reply_streams *all = mem_zalloc(sizeof(*all));

        all->api = a;
        all->ping = timer_new(a->env.loop, on_ping, all);
        timer_unref(all->ping);
        map_init(&all->live);
        LIST_INIT(&all->list);
        all->listener = bus_listen_live(a->env.bus, on_live_event, all);
        return all;
}

void reply_streams_free(struct reply_streams *all)
{
        if (!all)
                return;
        bus_unlisten(all->api->env.bus, all->listener);
        timer_free(all->ping);
        map_release(&all->live);
        free(all);
}
