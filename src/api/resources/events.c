/*
 * The journal, in pages and one by one. Newest first, or oldest first after a place; the cursor is
 * an event's number, so no row is skipped or seen twice.
 */
#include <stdio.h>
#include <string.h>

#include "api/core/api_private.h"
#include "base/jsonw.h"
#include "bus/bus.h"

struct events_ask {
        int64_t after, before, limit, since_ms, until_ms;
        const char *type, *stream, *instance, *channel, *trace;
};

static const char *const stream_names[] = { "MESSAGE", "REACTION", "TURN",   "DELIVERY", "SESSION",
                                            "ADAPTER", "SCHEDULE", "CUSTOM", NULL };

/* clang-format off */
const struct field events_query[] = {
        { "after", FIELD_ID, .prefix = "evt-", .at = offsetof(struct events_ask, after),
          .help = "Events after this one, oldest first." },
        { "before", FIELD_ID, .prefix = "evt-", .at = offsetof(struct events_ask, before),
          .help = "Events before this one, newest first. Without after and before: the newest." },
        { "limit", FIELD_INT, .min = 1, .max = 100, .at = offsetof(struct events_ask, limit), .fallback = "50",
          .help = "How many at most." },
        { "type", FIELD_STRING, .min = 1, .max = 100, .at = offsetof(struct events_ask, type),
          .help = "Only this event type; a `*` at the end stands for anything." },
        { "stream", FIELD_CHOICE, .choices = stream_names, .at = offsetof(struct events_ask, stream),
          .help = "Only events of this stream." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, .at = offsetof(struct events_ask, instance),
          .help = "Only events of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, .at = offsetof(struct events_ask, channel),
          .help = "Only events of this channel." },
        { "traceId", FIELD_STRING, .min = 32, .max = 32, .at = offsetof(struct events_ask, trace),
          .help = "Only events of this trace." },
        { "since", FIELD_TIME, .at = offsetof(struct events_ask, since_ms), .help = "Not older than this." },
        { "until", FIELD_TIME, .at = offsetof(struct events_ask, until_ms), .help = "Not newer than this." },
        FIELD_END,
};
/* clang-format on */

struct listing {
        struct buf *json;
        int64_t limit, count;
        int64_t last; /* the last one shown */
        bool more;    /* one beyond the limit was there */
};

static void on_row(void *arg, const struct bus_event *e)
{
        struct listing *l = arg;

        if (l->count == l->limit) {
                l->more = true;
                return;
        }
        l->count++;
        l->last = e->seq;
        bus_event_json(e, l->json);
}

static unsigned stream_mask(const char *name)
{
        for (unsigned i = 0; name && i < STREAM_COUNT; i++)
                if (strcmp(name, bus_stream_name((enum bus_stream)i)) == 0)
                        return 1u << i;
        return 0;
}

/* Where the journal ends in the direction we read. */
static int journal_end(struct store_tx *tx, bool newest, int64_t *seq, struct error *err)
{
        struct store_stmt *s =
                newest ? store_prepare(tx, "SELECT coalesce(max(seq), 0) FROM journal")
                       : store_prepare(tx, "SELECT coalesce(min(seq), 0) FROM journal");
        int rc = store_step(s, err);

        if (rc == 1) {
                *seq = store_col_int(s, 0);
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
}

static int list(struct store_tx *tx, struct read_job *l, struct error *err)
{
        const struct events_ask *ask = l->query;
        struct listing page = { .json = &l->json, .limit = ask->limit };
        struct bus_filter f = {
                .after = ask->after > 0 ? ask->after : 0,
                .before = ask->after >= 0   ? 0
                          : ask->before > 0 ? ask->before
                                            : INT64_MAX,
                .streams = stream_mask(ask->stream),
                .type = ask->type,
                .adapter = ask->instance,
                .channel = ask->channel,
                .trace = ask->trace,
                .since_ms = ask->since_ms,
                .until_ms = ask->until_ms,
                .may = l->caller->adapters ? key_may_see : NULL,
                .may_arg = l->caller,
        };
        int64_t scanned = 0, end = 0, cursor;
        char id[BUS_ID_SIZE];

        page_begin(&l->json);
        if (bus_read(tx, &f, (unsigned)ask->limit + 1, on_row, &page, &scanned, err) < 0 ||
            journal_end(tx, f.before == 0, &end, err) < 0)
                return -1;
        /*
         * reading stops after many rows that do not fit the filter: then the next page begins there
         */
        cursor = page.more ? page.last : scanned;
        if (!page.more && scanned > 0)
                page.more = f.before == 0 ? scanned < end : scanned > end;
        if (f.before == 0 && cursor < f.after)
                cursor = f.after; /* nothing new: ask again from the same place */
        page_end(&l->json, page.more, cursor > 0 ? bus_event_id(cursor, id) : NULL);
        return 0;
}

void events_list(struct http_exchange *x)
{
        struct events_ask ask = { .limit = 50, .after = -1, .before = -1 };
        struct read_job *l = read_job_new(x, &ask, sizeof(ask));

        if (l)
                read_job_run(l, list);
}

static void show_row(void *arg, const struct bus_event *e)
{
        struct read_job *l = arg;

        if (e->seq != l->id)
                return;
        buf_addstr(&l->json, "{\"data\":");
        bus_event_json(e, &l->json);
        buf_addch(&l->json, '}');
}

static int show(struct store_tx *tx, struct read_job *l, struct error *err)
{
        struct bus_filter f = { .after = l->id - 1 };

        if (bus_read(tx, &f, 1, show_row, l, NULL, err) < 0)
                return -1;
        if (l->json.len == 0)
                return error_set(err, ERR_MISSING,
                                 "there is no event 'evt-%lld'; it may be older than what is kept",
                                 (long long)l->id);
        return 0;
}

void events_show(struct http_exchange *x)
{
        int64_t id = request_id(x, "evt-", "event");
        struct read_job *l = id < 0 ? NULL : read_job_new(x, NULL, 0);

        if (!l)
                return;
        l->id = id;
        read_job_run(l, show);
}
