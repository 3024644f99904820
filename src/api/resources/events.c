/* The journal: pages, single events, and the stream. */
#include <string.h>

#include "api/core/event_stream.h"
#include "api/core/read_job.h"
#include "bus/bus.h"
#include "rows/journal_row.h"

/* ---- listing ---- */

struct events_ask {
        int64_t after, before, limit, since_ms, until_ms;
        const char *type, *stream, *adapter, *channel, *trace;
};

static const char *const stream_names[] = { "MESSAGE", "REACTION", "TURN",   "DELIVERY", "SESSION",
                                            "ADAPTER", "SCHEDULE", "CUSTOM", NULL };

static const struct field events_query[] = {
        { "after", FIELD_ID, .prefix = "evt-", FIELD_AT(events_ask, after),
          .help = "Events after this one, oldest first." },
        { "before", FIELD_ID, .prefix = "evt-", FIELD_AT(events_ask, before),
          .help = "Events before this one, newest first. Without after and before: the newest." },
        PAGE_LIMIT_FIELD(events_ask),
        { "type", FIELD_STRING, .min = 1, .max = 100, FIELD_AT(events_ask, type),
          .help = "Only this event type; a `*` at the end stands for anything." },
        { "stream", FIELD_CHOICE, .choices = stream_names, FIELD_AT(events_ask, stream),
          .help = "Only events of this stream." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(events_ask, adapter),
          .help = "Only events of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(events_ask, channel),
          .help = "Only events of this channel." },
        { "traceId", FIELD_STRING, .min = 32, .max = 32, FIELD_AT(events_ask, trace),
          .help = "Only events of this trace." },
        { "since", FIELD_TIME, FIELD_AT(events_ask, since_ms), .help = "Not older than this." },
        { "until", FIELD_TIME, FIELD_AT(events_ask, until_ms), .help = "Not newer than this." },
        FIELD_END,
};

static void on_row(void *arg, const struct bus_event *e)
{
        struct page *p = arg;

        if (page_add(p, e->seq))
                bus_event_json(e, p->json);
}

static unsigned stream_mask(const char *name)
{
        for (unsigned i = 0; name && i < STREAM_COUNT; i++)
                if (strcmp(name, bus_stream_name((enum bus_stream)i)) == 0)
                        return 1u << i;
        return 0;
}

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct events_ask *ask = j->query;
        struct bus_filter f = {
                .after = ask->after > 0 ? ask->after : 0,
                .before = ask->after >= 0   ? 0
                          : ask->before > 0 ? ask->before
                                            : INT64_MAX,
                .streams = stream_mask(ask->stream),
                .type = ask->type,
                .adapter = ask->adapter,
                .channel = ask->channel,
                .trace = ask->trace,
                .since_ms = ask->since_ms,
                .until_ms = ask->until_ms,
                .may = j->caller->adapters ? key_may_see : NULL,
                .may_arg = j->caller,
        };
        int64_t scanned = 0, first, last;
        struct page p;

        page_begin(&p, &j->json, ask->limit);
        if (bus_read(tx, &f, (unsigned)ask->limit + 1, on_row, &p, &scanned, err) < 0 ||
            journal_row_bounds(tx, &first, &last, err) < 0)
                return -1;
        /* the scan stops after many unmatched rows: the next page begins there */
        if (!p.more) {
                p.more = scanned > 0 && (f.before == 0 ? scanned < last : scanned > first);
                p.last = scanned;
        }
        if (f.before == 0 && p.last < f.after)
                p.last = f.after; /* nothing new: continue from the same place */
        page_end(&p, "evt-");
        return 0;
}

static void list(struct http_exchange *x)
{
        struct events_ask ask = { .limit = 50, .after = -1, .before = -1 };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

/* ---- single events ---- */

static void on_event(void *arg, const struct bus_event *e)
{
        struct read_job *j = arg;

        if (e->seq != j->id)
                return;
        buf_addstr(&j->json, "{\"data\":");
        bus_event_json(e, &j->json);
        buf_addch(&j->json, '}');
}

static int read_one(struct store_tx *tx, struct read_job *j, struct error *err)
{
        struct bus_filter f = { .after = j->id - 1 };

        if (bus_read(tx, &f, 1, on_event, j, NULL, err) < 0)
                return -1;
        if (j->json.len == 0)
                return error_set(err, ERR_MISSING,
                                 "there is no event 'evt-%lld'; it may have been pruned",
                                 (long long)j->id);
        return 0;
}

static void show(struct http_exchange *x)
{
        read_job_show(x, "evt-", "event", read_one);
}

/* ---- stream ---- */

struct stream_ask {
        int64_t after;
        const char *types, *adapter, *channel;
};

static const struct field stream_query[] = {
        { "after", FIELD_ID, .prefix = "evt-", FIELD_AT(stream_ask, after),
          .help = "Begin after this event, like the header Last-Event-ID. Absent: only new "
                  "events." },
        { "types", FIELD_STRING, .min = 1, .max = 1024, FIELD_AT(stream_ask, types),
          .help = "Only these event types, separated by commas; a `*` at the end stands for "
                  "anything." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(stream_ask, adapter),
          .help = "Only events of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(stream_ask, channel),
          .help = "Only events of this channel." },
        FIELD_END,
};

static void stream(struct http_exchange *x)
{
        const char *last = http_header(x, "Last-Event-ID");
        struct stream_ask ask = { .after = -1 };
        struct stream_filter *f;
        struct body b;

        if (request_query(x, &b, &ask) < 0)
                return;
        /* the header wins: a reconnecting client sends it with its first URL */
        if (last && last[0] != '\0' && (ask.after = field_id("evt-", last)) < 0)
                body_mistake(&b, "Last-Event-ID", "must be an event id such as evt-42");
        f = event_stream_filter_new(ask.types, ask.adapter, ask.channel, caller_of(x));
        if (!f)
                body_mistake(&b, "types", "must be 1 to %d event types separated by commas",
                             EVENT_STREAM_TYPES_MAX);
        if (b.mistake_count > 0) {
                reply_mistakes(x, &b);
                event_stream_filter_free(f);
        } else {
                event_stream_serve(api_of(x)->stream, x, f, ask.after);
        }
        body_release(&b);
}

const struct route events_routes[] = {
        { "GET", "/api/v2/events", SCOPE_READ, list, REACH_LIST,
          .summary = "The journal in pages: newest first, or oldest first with after. meta.cursor "
                     "is the next before or after.",
          .query = events_query, .status = 200, .answer = ROUTE_PAGE " of events." },
        { "GET", "/api/v2/events/stream", SCOPE_READ, stream, REACH_LIST,
          .summary = "The journal as server-sent events: those after Last-Event-ID, then live, "
                     "without gap or repetition. Streamed text and progress (turn.delta, "
                     "turn.aside, turn.progress) have no id. A client far behind gets a part and "
                     "reconnects for more.",
          .query = stream_query, .status = 200, .answer = "An event stream.",
          .content_type = "text/event-stream" },
        { "GET", "/api/v2/events/:id", SCOPE_READ, show, REACH_ROW, row_scope_event,
          .summary = "One event.", .status = 200, .answer = "{\"data\": event}" },
        ROUTE_END,
};
