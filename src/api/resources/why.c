/* Trace reports: what happened to a message, and to the last ones. */
#include <string.h>

#include "api/core/read_job.h"
#include "road/report/trace_report.h"

#define ID_LONGEST 1000 /* an adapter, a chat and an id */

struct recent_ask {
        int64_t before, limit;
        const char *adapter, *channel;
};

static const struct field recent_query[] = {
        { "before", FIELD_ID, .prefix = "evt-", FIELD_AT(recent_ask, before),
          .help = "Messages before this event; newest first." },
        { "limit", FIELD_INT, .min = 1, .max = 100, FIELD_AT(recent_ask, limit), .fallback = "10",
          .help = "Largest number of messages." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(recent_ask, adapter),
          .help = "Only messages of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(recent_ask, channel),
          .help = "Only messages of this channel." },
        FIELD_END,
};

static int read_recent(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct recent_ask *ask = j->query;
        const struct trace_filter filter = { .adapter = ask->adapter,
                                             .channel = ask->channel,
                                             .adapters = j->caller->adapters,
                                             .before = ask->before,
                                             .limit = ask->limit };
        struct page p;

        page_begin(&p, &j->json, ask->limit);
        if (trace_report_recent(tx, &filter, p.json, &p.last, &p.more, err) < 0)
                return -1;
        page_end(&p, "evt-");
        return 0;
}

static void list(struct http_exchange *x)
{
        struct recent_ask ask = { .limit = 10 };

        read_job_list(x, &ask, sizeof(ask), read_recent);
}

static int read_report(struct store_tx *tx, struct read_job *j, struct error *err)
{
        buf_addstr(&j->json, "{\"data\":");
        if (trace_report_write(tx, j->query, j->caller->adapters, &j->json, err) < 0)
                return -1;
        buf_addch(&j->json, '}');
        return 0;
}

static void show(struct http_exchange *x)
{
        const char *id = http_param(x, "id");

        if (id && id[0] != '\0' && strlen(id) <= ID_LONGEST)
                read_job_list(x, id, strlen(id) + 1, read_report);
        else
                reply_missing(x, "message", id ? id : "");
}

const struct route why_routes[] = {
        { "GET", "/api/v2/why", SCOPE_READ, list, REACH_LIST,
          .summary = "The last messages of people, newest first, each with its outcome as one "
                     "sentence.",
          .query = recent_query, .status = 200,
          .answer = ROUTE_PAGE " of {\"id\", \"at\", \"instanceId\", \"channel\", \"messageId\", "
                               "\"sender\", \"text\", \"status\", \"agent\", \"summary\"}." },
        { "GET", "/api/v2/why/:id", SCOPE_READ, show, REACH_LIST,
          .summary = "The trace report of a message: event, decision with the rules that were "
                     "tried, turn with the agents that failed, steps of the built-in agent, "
                     "approvals, deliveries, and one sentence. The id is an event, turn, delivery "
                     "or trace, the platform's own id of a message, or ADAPTER/CHAT/ID. For a "
                     "message of the bot, answerTo is the message it answers; remoteTask is what "
                     "an agent of type a2a was asked. If several messages have the id, candidates "
                     "lists them.",
          .status = 200,
          .answer = "{\"data\": {\"summary\", \"event\", \"decision\", \"rules\", \"turn\", "
                    "\"steps\", \"approvals\", \"deliveries\", \"answerTo\", \"remoteTask\", "
                    "\"traceId\"}} or "
                    "{\"data\": {\"summary\", \"candidates\"}}" },
        ROUTE_END,
};
