/*
 * The event stream: first what the journal has after the client's place, then live, without a gap
 * and without a repetition.
 *
 * The hub's ring only holds what was published while somebody listened (an idle daemon formats
 * nothing), so `complete_from` says after which event the ring is complete. A client whose place
 * lies before that, or before the ring's oldest event, is brought forward by reading the journal;
 * the reader sees committed rows, perhaps some that are not published yet, and the hub skips for
 * each client what it has already got.
 *
 * A client too far behind for one answer gets a slice of the journal and the end of the stream: it
 * comes back by itself with Last-Event-ID, as every reader of event streams does, and gets the next
 * slice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/api_private.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "net/sse.h"

#define SLICE_BYTES (1024 * 1024) /* of journal in one answer; a full slice ends the answer */
#define PAGE_EVENTS 500
#define TYPES_MAX   16

struct event_stream {
        struct api *api;
        struct sse_hub *hub;
        struct bus_listener *listener, *live_listener;
        unsigned arriving;     /* clients whose journal is being read */
        int64_t complete_from; /* every event after this one has been given to the hub */
        bool active;
};

/* What a client wants to see; "" or NULL: everything. */
struct filter {
        char *types[TYPES_MAX];
        unsigned type_count;
        char *instance, *channel;
        struct key *caller; /* a reference: only what it reaches, and only as long as it is valid */
};

struct stream_ask {
        int64_t after;
        const char *types, *instance, *channel;
};

/* clang-format off */
const struct field stream_query[] = {
        { "after", FIELD_ID, .prefix = "evt-", .at = offsetof(struct stream_ask, after),
          .help = "Begin after this event; the header Last-Event-ID does the same. Absent: only what happens from now on." },
        { "types", FIELD_STRING, .min = 1, .max = 1024, .at = offsetof(struct stream_ask, types),
          .help = "Only these event types, separated by commas; a `*` at the end stands for anything." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, .at = offsetof(struct stream_ask, instance),
          .help = "Only events of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, .at = offsetof(struct stream_ask, channel),
          .help = "Only events of this channel." },
        FIELD_END,
};
/* clang-format on */

/* ---- what a client wants ---- */

static void filter_free(void *arg)
{
        struct filter *f = arg;

        for (unsigned i = 0; i < f->type_count; i++)
                free(f->types[i]);
        free(f->instance);
        free(f->channel);
        key_unref(f->caller);
        free(f);
}

static bool add_type(struct filter *f, const char *name, size_t n)
{
        if (n == 0 || f->type_count == TYPES_MAX)
                return false;
        f->types[f->type_count++] = mem_strndup(name, n);
        return true;
}

/* NULL when the list of types makes no sense. */
static struct filter *filter_new(const struct stream_ask *ask, struct key *caller)
{
        struct filter *f = mem_zalloc(sizeof(*f));
        const char *p = ask->types;

        f->caller = key_ref(caller);
        f->instance = mem_strdup(ask->instance);
        f->channel = mem_strdup(ask->channel);
        while (p) {
                size_t n = strcspn(p, ",");

                if (!add_type(f, p, n)) {
                        filter_free(f);
                        return NULL;
                }
                p = p[n] == ',' ? p + n + 1 : NULL;
        }
        return f;
}

static bool type_matches(const char *pattern, const char *type)
{
        size_t n = strlen(pattern);

        if (pattern[n - 1] == '*')
                return strncmp(pattern, type, n - 1) == 0;
        return strcmp(pattern, type) == 0;
}

static bool wants_type(const struct filter *f, const char *type)
{
        for (unsigned i = 0; i < f->type_count; i++)
                if (type_matches(f->types[i], type))
                        return true;
        return f->type_count == 0;
}

static bool wants(const struct filter *f, const char *type, const char *adapter,
                  const char *channel)
{
        if (f->instance && (!adapter || strcmp(f->instance, adapter) != 0))
                return false;
        if (f->channel && (!channel || strcmp(f->channel, channel) != 0))
                return false;
        return key_reaches(f->caller, adapter) && wants_type(f, type);
}

/*
 * The hub knows one topic: adapter and channel with a line feed between them, which no name
 * contains.
 */
static void topic_of(struct buf *topic, const char *adapter, const char *channel)
{
        buf_clear(topic);
        buf_addstr(topic, adapter ? adapter : "");
        buf_addch(topic, '\n');
        buf_addstr(topic, channel ? channel : "");
}

static bool reaches_topic(const struct key *k, const char *topic, size_t n)
{
        char *adapter;
        bool yes;

        if (!k->adapters)
                return true;
        adapter = mem_strndup(topic, n);
        yes = key_reaches(k, adapter);
        free(adapter);
        return yes;
}

static bool hub_wants(const void *filter, const char *type, const char *topic)
{
        const struct filter *f = filter;
        const char *channel;
        size_t n;

        if (!key_is_live(f->caller, clock_wall_ms()))
                return false;
        if (!f->instance && !f->channel && !f->caller->adapters)
                return wants_type(f, type);
        if (!topic)
                topic = "";
        n = strcspn(topic, "\n");
        if (!reaches_topic(f->caller, topic, n))
                return false;
        channel = topic[n] == '\n' ? topic + n + 1 : "";
        if (f->instance && (strlen(f->instance) != n || strncmp(f->instance, topic, n) != 0))
                return false;
        if (f->channel && strcmp(f->channel, channel) != 0)
                return false;
        return wants_type(f, type);
}

static bool hub_over(const void *filter)
{
        const struct filter *f = filter;

        return !key_is_live(f->caller, clock_wall_ms());
}

/* ---- live ---- */

static bool somebody(const struct event_stream *s)
{
        return s->arriving > 0 || sse_clients(s->hub) > 0;
}

static void on_event(void *arg, const struct bus_event *e)
{
        struct event_stream *s = arg;
        struct buf json, topic;

        if (!somebody(s)) {
                s->active = false;
                return;
        }
        buf_init(&json, 0);
        buf_init(&topic, 0);
        bus_event_json(e, &json);
        topic_of(&topic, e->adapter, e->channel);
        sse_publish(s->hub, e->seq, e->type, topic.data, json.data, json.len);
        buf_release(&topic);
        buf_release(&json);
}

/* From here on every event goes to the hub. */
static void activate(struct event_stream *s)
{
        if (!s->active)
                s->complete_from = bus_head(s->api->env.bus);
        s->active = true;
}

static void on_live_event(void *arg, const struct bus_event *e)
{
        struct event_stream *s = arg;
        struct buf data, topic;

        if (sse_clients(s->hub) == 0)
                return;
        buf_init(&data, 0);
        buf_init(&topic, 0);
        jsonw_open(&data, '{');
        jsonw_str(&data, "type", e->type);
        jsonw_int(&data, "timestamp", e->time_ms);
        jsonw_str(&data, "instanceId", e->adapter);
        jsonw_str(&data, "channel", e->channel);
        jsonw_raw(&data, "payload", e->payload);
        jsonw_close(&data, '}');
        topic_of(&topic, e->adapter, e->channel);
        sse_publish(s->hub, 0, e->type, topic.data, data.data, data.len);
        buf_release(&topic);
        buf_release(&data);
}

/* ---- bringing a client forward ---- */

struct catch_up {
        struct api_job job;
        struct event_stream *stream; /* NULL once the stream is gone: see job.api */
        struct filter *filter;
        int64_t after;
        int64_t head;    /* published when the reading began: these are surely committed */
        struct buf text; /* events as they go over the wire */
        bool full;
};

static void on_row(void *arg, const struct bus_event *e)
{
        struct catch_up *c = arg;
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

static int newest(struct store_tx *tx, int64_t *seq, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, "SELECT coalesce(max(seq), 0) FROM journal");
        int rc = store_step(s, err);

        if (rc == 1) {
                *seq = store_col_int(s, 0);
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
}

static int read_slice(struct store_tx *tx, void *arg, struct error *err)
{
        struct catch_up *c = arg;
        struct bus_filter f = { .adapter = c->filter->instance, .channel = c->filter->channel };
        int64_t end = 0, to;

        if (newest(tx, &end, err) < 0)
                return -1;
        if (end < c->head)
                end = c->head; /* the newest were pruned already */
        if (c->after > end)
                c->after = end; /* from another life of the database */
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

static void catch_up_free(struct catch_up *c)
{
        if (c->filter)
                filter_free(c->filter);
        buf_release(&c->text);
        free(c);
}

/* From here on a client can be served by the hub alone. */
static int64_t hub_from(const struct event_stream *s)
{
        int64_t oldest = sse_oldest_after(s->hub);

        /* an empty ring has lost nothing */
        return oldest == INT64_MAX || oldest < s->complete_from ? s->complete_from : oldest;
}

static void attach(struct event_stream *s, struct http_exchange *x, struct catch_up *c)
{
        size_t n = c->text.len;

        sse_attach(s->hub, x, c->after, n > 0 ? buf_take(&c->text) : NULL, n, c->filter,
                   filter_free);
        c->filter = NULL;
}

static void on_slice(void *arg, const struct error *err);

static void read_on(struct catch_up *c)
{
        struct event_stream *s = c->stream;

        c->head = bus_head(s->api->env.bus);
        store_read(s->api->env.store, read_slice, on_slice, c);
}

/* A slice is an answer that ends; the client returns with the id of its last event. */
static void answer_slice(struct http_exchange *x, struct catch_up *c)
{
        struct buf whole;
        size_t n;

        buf_init(&whole, 0);
        buf_addstr(&whole, "retry: 50\n\n");
        buf_add(&whole, c->text.data, c->text.len);
        n = whole.len;
        http_add_header(x, "Cache-Control", "no-store");
        http_answer_take(x, 200, "text/event-stream", buf_take(&whole), n);
}

static void on_slice(void *arg, const struct error *err)
{
        struct catch_up *c = arg;
        struct event_stream *s = c->stream;
        struct http_exchange *x;
        bool behind;

        if (!c->job.api) {
                catch_up_free(c);
                return;
        }
        /* while we read, the ring may have gone past the place where the reading ended */
        behind = !err && !c->full && c->after < hub_from(s);
        if (behind) {
                read_on(c);
                return;
        }
        s->arriving--;
        x = api_job_end(&c->job);
        if (err)
                reply_failed(x, err);
        else if (c->full)
                answer_slice(x, c);
        else
                attach(s, x, c);
        catch_up_free(c);
}

static void begin(struct event_stream *s, struct http_exchange *x, struct filter *f, int64_t after)
{
        struct catch_up *c = mem_zalloc(sizeof(*c));

        activate(s);
        c->stream = s;
        c->filter = f;
        c->after = after < 0 ? bus_head(s->api->env.bus) : after;
        buf_init(&c->text, 0);
        if (c->after >= hub_from(s) && c->after <= bus_head(s->api->env.bus)) {
                attach(s, x, c);
                catch_up_free(c);
                return;
        }
        s->arriving++;
        api_job_begin(&c->job, x);
        read_on(c);
}

/* Those whose journal is being read will need a place, and hold up to a slice of it each. */
static bool is_full(const struct event_stream *s)
{
        return s->arriving >= sse_room(s->hub);
}

static void refuse_one_more(const struct event_stream *s, struct http_exchange *x)
{
        http_add_header(x, "Retry-After", "10");
        http_refuse(x, 503, "UNAVAILABLE", "there are already %u event streams",
                    sse_clients(s->hub) + s->arriving);
}

void events_stream(struct http_exchange *x)
{
        const char *last = http_header(x, "Last-Event-ID");
        struct event_stream *s = api_of(x)->stream;
        struct stream_ask ask = { .after = -1 };
        struct filter *f;
        struct body b;

        if (request_query(x, &b, &ask) < 0)
                return;
        /*
         * a client that comes back sends the header, and it knows better than the address it was
         * given at first
         */
        if (last && last[0] != '\0' && (ask.after = field_id("evt-", last)) < 0)
                body_mistake(&b, "Last-Event-ID", "must be an event id such as evt-42");
        f = filter_new(&ask, caller_of(x));
        if (!f)
                body_mistake(&b, "types", "must be 1 to %d event types separated by commas",
                             TYPES_MAX);
        if (b.mistake_count > 0) {
                reply_mistakes(x, &b);
        } else if (is_full(s)) {
                refuse_one_more(s, x);
        } else {
                begin(s, x, f, ask.after);
                f = NULL; /* the client's now */
        }
        if (f)
                filter_free(f);
        body_release(&b);
}

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
