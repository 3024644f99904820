#include "cli/event_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/sse_reader.h"

#define GIVE_UP_MS 30000
#define SILENCE_MS 45000 /* the daemon says something every 15 s */
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
        int64_t give_up_ms, lost_since_ms; /* 0: a connection stands */
        int64_t pause_ms;
        bool inside, gone; /* a handler runs; free when it returns */
};

static void connect_now(void *arg);

static void release(struct event_reader *f)
{
        http_abort(f->call);
        timer_free(f->timer);
        sse_reader_release(&f->reader);
        free(f->path);
        free(f->last_id);
        free(f);
}

void event_reader_free(struct event_reader *f)
{
        if (!f)
                return;
        f->gone = true;
        if (!f->inside)
                release(f);
}

/* ---- what arrives ---- */

static void on_event(void *arg, const char *event, const char *id, const char *data, size_t n)
{
        struct event_reader *f = arg;
        json_t *json;

        if (f->gone)
                return;
        if (id[0] && (!f->last_id || strcmp(id, f->last_id) != 0)) {
                free(f->last_id);
                f->last_id = mem_strdup(id);
        }
        json = json_loadb(data, n, 0, NULL);
        if (json_is_object(json))
                f->on.on_event(f->arg, event, json);
        json_decref(json);
}

static void on_head(void *arg, struct http_call *call, int status)
{
        struct event_reader *f = arg;

        (void)call;
        if (status != 200)
                return;
        f->lost_since_ms = 0;
        f->pause_ms = PAUSE_MS;
        f->inside = true;
        if (f->on.on_open)
                f->on.on_open(f->arg);
        f->inside = false;
        if (f->gone)
                release(f);
}

static void restart_reader(struct event_reader *f)
{
        sse_reader_release(&f->reader);
        sse_reader_init(&f->reader, EVENT_MAX, on_event, f);
}

static void on_data(void *arg, const char *bytes, size_t n)
{
        struct event_reader *f = arg;

        f->inside = true;
        if (sse_reader_feed(&f->reader, bytes, n) < 0)
                restart_reader(f);
        f->inside = false;
        if (f->gone)
                release(f);
}

/* ---- coming back ---- */

static void fail(struct event_reader *f, const struct error *err)
{
        f->inside = true;
        f->on.on_failed(f->arg, err);
        f->inside = false;
        if (f->gone)
                release(f);
}

static void come_back(struct event_reader *f, const struct error *err)
{
        int64_t now = loop_now_ms(client_loop(f->client));

        if (f->lost_since_ms == 0) {
                f->lost_since_ms = now;
                f->inside = true;
                if (f->on.on_lost)
                        f->on.on_lost(f->arg);
                f->inside = false;
                if (f->gone) {
                        release(f);
                        return;
                }
        }
        if (now - f->lost_since_ms >= f->give_up_ms) {
                fail(f, err);
                return;
        }
        timer_start(f->timer, f->pause_ms);
        f->pause_ms = f->pause_ms * 2 < PAUSE_MAX ? f->pause_ms * 2 : PAUSE_MAX;
}

static bool is_final(const struct error *err)
{
        return err->kind == ERR_INVALID || err->kind == ERR_REFUSED || err->kind == ERR_MISSING;
}

static void on_done(void *arg, const struct http_result *result)
{
        struct event_reader *f = arg;
        struct error err = { 0 };
        json_t *json = NULL;

        f->call = NULL;
        if (client_result(f->client, result, &json, &err) == 0)
                error_set(&err, ERR_NET, "the event stream ended");
        json_decref(json);
        if (is_final(&err))
                fail(f, &err);
        else
                come_back(f, &err);
}

static void connect_now(void *arg)
{
        static const struct http_handlers handlers = { .on_head = on_head,
                                                       .on_data = on_data,
                                                       .on_done = on_done };
        struct event_reader *f = arg;
        struct client_request request = { .path = f->path,
                                          .last_event_id = f->last_id,
                                          .total_ms = -1,
                                          .silence_ms = SILENCE_MS };
        struct error err = { 0 };

        restart_reader(f);
        f->call = client_start(f->client, &request, &handlers, f, &err);
        if (!f->call)
                come_back(f, &err);
}

struct event_reader *event_reader_new(struct client *c, const struct event_reader_options *o,
                                      const struct event_reader_handlers *handlers, void *arg)
{
        struct event_reader *f = mem_zalloc(sizeof(*f));

        f->client = c;
        f->on = *handlers;
        f->arg = arg;
        f->path = mem_printf("/api/v2/events/stream%s%s", o->query ? "?" : "",
                             o->query ? o->query : "");
        f->last_id = mem_strdup(o->after);
        f->give_up_ms = o->give_up_ms > 0 ? o->give_up_ms : GIVE_UP_MS;
        f->lost_since_ms = loop_now_ms(client_loop(c));
        f->pause_ms = PAUSE_MS;
        sse_reader_init(&f->reader, EVENT_MAX, on_event, f);
        f->timer = timer_new(client_loop(c), connect_now, f);
        timer_start(f->timer, 0);
        return f;
}
