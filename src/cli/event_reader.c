#include "cli/event_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/backoff.h"
#include "net/sse_reader.h"

#define GIVE_UP_MS 30000
#define SILENCE_MS 45000 /* the daemon sends a comment every 15 s */
#define PAUSE_MS   50
#define PAUSE_MAX  2000
#define EVENT_MAX  (4u << 20)

struct event_reader {
        struct client *client;
        struct event_reader_handlers on;
        void *arg;
        char *path, *last_id;
        struct http_call *call;
        struct timer *timer;
        struct sse_reader reader;
        int64_t give_up_ms, lost_since_ms; /* 0: connected */
        unsigned failures;
        bool inside, gone; /* inside a handler; free when it returns */
};

static void release(struct event_reader *r)
{
        http_call_abort(r->call);
        timer_free(r->timer);
        sse_reader_release(&r->reader);
        free(r->path);
        free(r->last_id);
        free(r);
}

void event_reader_free(struct event_reader *r)
{
        if (!r)
                return;
        r->gone = true;
        if (!r->inside)
                release(r);
}

/* ---- incoming ---- */

static void on_event(void *arg, const char *event, const char *id, const char *data, size_t n)
{
        struct event_reader *r = arg;
        json_t *json;

        if (r->gone)
                return;
        if (id[0] && (!r->last_id || strcmp(id, r->last_id) != 0)) {
                free(r->last_id);
                r->last_id = mem_strdup(id);
        }
        json = json_loadb(data, n, 0, NULL);
        if (json_is_object(json))
                r->on.on_event(r->arg, event, json);
        json_decref(json);
}

static void on_head(void *arg, struct http_call *call, int status)
{
        struct event_reader *r = arg;

        (void)call;
        if (status != 200)
                return;
        r->lost_since_ms = 0;
        r->failures = 0;
        r->inside = true;
        if (r->on.on_open)
                r->on.on_open(r->arg);
        r->inside = false;
        if (r->gone)
                release(r);
}

static void restart_reader(struct event_reader *r)
{
        sse_reader_release(&r->reader);
        sse_reader_init(&r->reader, EVENT_MAX, on_event, r);
}

static void on_data(void *arg, const char *bytes, size_t n)
{
        struct event_reader *r = arg;

        r->inside = true;
        if (sse_reader_feed(&r->reader, bytes, n) < 0)
                restart_reader(r);
        r->inside = false;
        if (r->gone)
                release(r);
}

/* ---- reconnecting ---- */

static void fail(struct event_reader *r, const struct error *err)
{
        r->inside = true;
        r->on.on_failed(r->arg, err);
        r->inside = false;
        if (r->gone)
                release(r);
}

static void reconnect(struct event_reader *r, const struct error *err)
{
        int64_t now = loop_now_ms(client_loop(r->client));

        if (r->lost_since_ms == 0) {
                r->lost_since_ms = now;
                r->inside = true;
                if (r->on.on_lost)
                        r->on.on_lost(r->arg);
                r->inside = false;
                if (r->gone) {
                        release(r);
                        return;
                }
        }
        if (now - r->lost_since_ms >= r->give_up_ms) {
                fail(r, err);
                return;
        }
        timer_start(r->timer, backoff_ms(r->failures++, PAUSE_MS, PAUSE_MAX));
}

static void on_done(void *arg, const struct http_result *result)
{
        struct event_reader *r = arg;
        struct error err = { 0 };
        json_t *json = NULL;

        r->call = NULL;
        if (client_result(r->client, result, &json, &err) == 0)
                error_set(&err, ERR_NET, "the event stream ended");
        json_decref(json);
        if (err.kind == ERR_INVALID || err.kind == ERR_REFUSED || err.kind == ERR_MISSING)
                fail(r, &err);
        else
                reconnect(r, &err);
}

static void connect_stream(void *arg)
{
        static const struct http_handlers handlers = { .on_head = on_head,
                                                       .on_data = on_data,
                                                       .on_done = on_done };
        struct event_reader *r = arg;
        struct client_request request = { .path = r->path,
                                          .last_event_id = r->last_id,
                                          .total_ms = -1,
                                          .silence_ms = SILENCE_MS };
        struct error err = { 0 };

        restart_reader(r);
        r->call = client_start(r->client, &request, &handlers, r, &err);
        if (!r->call)
                reconnect(r, &err);
}

struct event_reader *event_reader_new(struct client *c, const struct event_reader_options *o,
                                      const struct event_reader_handlers *handlers, void *arg)
{
        struct event_reader *r = mem_zalloc(sizeof(*r));

        r->client = c;
        r->on = *handlers;
        r->arg = arg;
        r->path = mem_printf("/api/v2/events/stream%s%s", o->query ? "?" : "",
                             o->query ? o->query : "");
        r->last_id = mem_strdup(o->after);
        r->give_up_ms = o->give_up_ms > 0 ? o->give_up_ms : GIVE_UP_MS;
        r->lost_since_ms = loop_now_ms(client_loop(c));
        sse_reader_init(&r->reader, EVENT_MAX, on_event, r);
        r->timer = timer_new(client_loop(c), connect_stream, r);
        timer_start(r->timer, 0);
        return r;
}
