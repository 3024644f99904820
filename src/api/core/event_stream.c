#include "api/core/event_stream.h"

#include <stdlib.h>
#include <string.h>

#include "api/core/reply.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "net/sse.h"
#include "rows/journal_row.h"
#include "store/store.h"

#define SLICE_BYTES (1024 * 1024) /* of journal; a full slice ends the response */
#define PAGE_EVENTS 500

struct event_stream {
        struct api *api;
        struct sse_hub *hub;
        struct bus_listener *listener, *live_listener;
        unsigned catching_up;  /* clients whose journal is being read */
        int64_t complete_from; /* the hub has every event after this one */
        bool active;
};

/* ---- filters ---- */

struct stream_filter {
        char *types[EVENT_STREAM_TYPES_MAX];
        unsigned type_count;
        char *adapter, *channel;
        struct key *caller; /* a reference; may expire meanwhile */
};

void event_stream_filter_free(void *filter)
{
        struct stream_filter *f = filter;

        if (!f)
                return;
        for (unsigned i = 0; i < f->type_count; i++)
                free(f->types[i]);
        free(f->adapter);
        free(f->channel);
        key_unref(f->caller);
        free(f);
}

struct stream_filter *event_stream_filter_new(const char *types, const char *adapter,
                                              const char *channel, struct key *caller)
{
        struct stream_filter *f = mem_zalloc(sizeof(*f));

        f->caller = key_ref(caller);
        f->adapter = mem_strdup(adapter);
        f->channel = mem_strdup(channel);
        for (const char *p = types; p;) {
                size_t n = strcspn(p, ",");

                if (n == 0 || f->type_count == EVENT_STREAM_TYPES_MAX) {
                        event_stream_filter_free(f);
                        return NULL;
                }
                f->types[f->type_count++] = mem_strndup(p, n);
                p = p[n] == ',' ? p + n + 1 : NULL;
        }
        return f;
}

static bool wants_type(const struct stream_filter *f, const char *type)
{
        for (unsigned i = 0; i < f->type_count; i++) {
                const char *pattern = f->types[i];
                size_t n = strlen(pattern);

                if (pattern[n - 1] == '*' ? strncmp(pattern, type, n - 1) == 0
                                          : strcmp(pattern, type) == 0)
                        return true;
        }
        return f->type_count == 0;
}

static bool wants(const struct stream_filter *f, const char *type, const char *adapter,
                  const char *channel)
{
        if (f->adapter && (!adapter || strcmp(f->adapter, adapter) != 0))
                return false;
        if (f->channel && (!channel || strcmp(f->channel, channel) != 0))
                return false;
        return key_reaches(f->caller, adapter) && wants_type(f, type);
}

/* A topic is "adapter\nchannel"; names contain no line feed. */
static bool hub_wants(const void *filter, const char *type, const char *topic)
{
        const struct stream_filter *f = filter;
        const char *feed;
        char *adapter;
        bool yes;

        if (!key_is_live(f->caller, clock_wall_ms()) || !wants_type(f, type))
                return false;
        if (!f->adapter && !f->channel && !f->caller->adapters)
                return true;
        topic = topic ? topic : "";
        feed = topic + strcspn(topic, "\n");
        adapter = mem_strndup(topic, (size_t)(feed - topic));
        yes = wants(f, type, adapter, *feed ? feed + 1 : "");
        free(adapter);
        return yes;
}

static bool hub_over(const void *filter)
{
        const struct stream_filter *f = filter;

        return !key_is_live(f->caller, clock_wall_ms());
}

/* ---- live ---- */

static void publish(struct event_stream *s, int64_t seq, const char *type, const char *adapter,
                    const char *channel, const struct buf *json)
{
        char *topic = mem_printf("%s\n%s", adapter ? adapter : "", channel ? channel : "");

        sse_publish(s->hub, seq, type, topic, json->data, json->len);
        free(topic);
}

static void on_event(void *arg, const struct bus_event *e)
{
        struct event_stream *s = arg;
        struct buf json;

        if (s->catching_up == 0 && sse_clients(s->hub) == 0) {
                s->active = false;
                return;
        }
        buf_init(&json, 0);
        bus_event_json(e, &json);
        publish(s, e->seq, e->type, e->adapter, e->channel, &json);
        buf_release(&json);
}

/* Live events have no id and are not journaled. */
static void on_live_event(void *arg, const struct bus_event *e)
{
        struct event_stream *s = arg;
        struct buf data;

        if (sse_clients(s->hub) == 0)
                return;
        buf_init(&data, 0);
        jsonw_open(&data, '{');
        jsonw_str(&data, "type", e->type);
        jsonw_int(&data, "timestamp", e->time_ms);
        jsonw_str(&data, "instanceId", e->adapter);
        jsonw_str(&data, "channel", e->channel);
        jsonw_raw(&data, "payload", e->payload);
        jsonw_close(&data, '}');
        publish(s, 0, e->type, e->adapter, e->channel, &data);
        buf_release(&data);
}

/* ---- catching up ---- */

struct stream_catch_up {
        struct api_job job;
        struct event_stream *stream; /* valid while job.api is set */
        struct stream_filter *filter;
        int64_t after;
        int64_t head;    /* published when the read began, so committed */
        struct buf text; /* formatted events */
        bool full;
};

static void on_row(void *arg, const struct bus_event *e)
{
        struct stream_catch_up *c = arg;
        struct buf json;

        if (c->text.len >= SLICE_BYTES || !wants(c->filter, e->type, e->adapter, e->channel))
                return;
        buf_init(&json, 0);
        bus_event_json(e, &json);
        sse_format(&c->text, e->seq, e->type, json.data, json.len);
        buf_release(&json);
        if (c->text.len >= SLICE_BYTES) {
                c->full = true;
                c->after = e->seq;
        }
}

static int read_slice(struct store_tx *tx, void *arg, struct error *err)
{
        struct stream_catch_up *c = arg;
        struct bus_filter f = { .adapter = c->filter->adapter, .channel = c->filter->channel };
        int64_t first, end, to;

        if (journal_row_bounds(tx, &first, &end, err) < 0)
                return -1;
        if (end < c->head)
                end = c->head; /* the newest were pruned */
        if (c->after > end)
                c->after = end; /* an id of another database */
        while (c->after < end && !c->full) {
                f.after = to = c->after;
                if (bus_read(tx, &f, PAGE_EVENTS, on_row, c, &to, err) < 0)
                        return -1;
                if (c->full)
                        break;
                c->after = to > c->after ? to : end;
        }
        return 0;
}

static void catch_up_free(struct stream_catch_up *c)
{
        event_stream_filter_free(c->filter);
        buf_release(&c->text);
        free(c);
}

/* From this event on the hub alone can serve a client. */
static int64_t hub_from(const struct event_stream *s)
{
        int64_t oldest = sse_oldest_after(s->hub);

        /* an empty ring has lost nothing */
        return oldest == INT64_MAX || oldest < s->complete_from ? s->complete_from : oldest;
}

static void attach(struct event_stream *s, struct http_exchange *x, struct stream_catch_up *c)
{
        size_t n = c->text.len;

        sse_attach(s->hub, x, c->after, n > 0 ? buf_take(&c->text) : NULL, n, c->filter,
                   event_stream_filter_free);
        c->filter = NULL;
}

static void read_on(struct stream_catch_up *c);

static void on_slice(void *arg, const struct error *err)
{
        struct stream_catch_up *c = arg;
        struct event_stream *s = c->stream;
        struct http_exchange *x;

        if (!c->job.api) {
                catch_up_free(c);
                return;
        }
        /* the ring may have moved past this event meanwhile */
        if (!err && !c->full && c->after < hub_from(s)) {
                read_on(c);
                return;
        }
        s->catching_up--;
        x = api_job_end(&c->job);
        if (err) {
                reply_failed(x, err);
        } else if (c->full) {
                struct buf whole;
                size_t n;

                buf_init(&whole, 0);
                buf_addstr(&whole, "retry: 50\n\n");
                buf_add(&whole, c->text.data, c->text.len);
                n = whole.len;
                http_answer_take(x, 200, "text/event-stream", buf_take(&whole), n);
        } else {
                attach(s, x, c);
        }
        catch_up_free(c);
}

static void read_on(struct stream_catch_up *c)
{
        struct api *a = c->stream->api;

        c->head = bus_head(a->env.bus);
        store_read(a->env.store, read_slice, on_slice, c);
}

void event_stream_serve(struct event_stream *s, struct http_exchange *x, struct stream_filter *f,
                        int64_t after)
{
        int64_t head = bus_head(s->api->env.bus);
        struct stream_catch_up *c;

        /* clients that catch up will also need room */
        if (s->catching_up >= sse_room(s->hub)) {
                http_add_header(x, "Retry-After", "10");
                http_refuse(x, 503, "UNAVAILABLE", "there are already %u event streams",
                            sse_clients(s->hub) + s->catching_up);
                event_stream_filter_free(f);
                return;
        }
        if (!s->active)
                s->complete_from = head;
        s->active = true;
        c = mem_zalloc(sizeof(*c));
        c->stream = s;
        c->filter = f;
        c->after = after < 0 ? head : after;
        buf_init(&c->text, 0);
        if (c->after >= hub_from(s) && c->after <= head) {
                attach(s, x, c);
                catch_up_free(c);
                return;
        }
        s->catching_up++;
        api_job_begin(&c->job, x);
        read_on(c);
}

/* ---- opening and closing ---- */

struct event_stream *event_stream_new(struct api *a, unsigned max_clients)
{
        struct sse_options options = { .max_clients = max_clients, .over = hub_over };
        struct event_stream *s = mem_zalloc(sizeof(*s));

        s->api = a;
        s->hub = sse_hub_new(a->env.loop, &options, hub_wants);
        s->listener = bus_listen(a->env.bus, BUS_ALL_STREAMS, on_event, s);
        s->live_listener = bus_listen_live(a->env.bus, on_live_event, s);
        return s;
}

void event_stream_free(struct event_stream *s)
{
        if (!s)
                return;
        bus_unlisten(s->api->env.bus, s->listener);
        bus_unlisten(s->api->env.bus, s->live_listener);
        sse_hub_free(s->hub);
        free(s);
}

unsigned event_stream_clients(const struct event_stream *s)
{
        return sse_clients(s->hub);
}
