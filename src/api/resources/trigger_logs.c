/* The decision about each inbound event, and its reason. */
#include "api/core/read_job.h"
#include "road/report/row_json.h"
#include "rows/trigger_log_row.h"

struct logs_ask {
        int64_t before, limit;
        const char *status, *adapter, *channel, *agent, *trace;
};

static const char *const statuses[] = { "queued", "skipped",   "expired", "done",
                                        "failed", "cancelled", NULL };

static const struct field logs_query[] = {
        { "before", FIELD_ID, .prefix = "evt-", FIELD_AT(logs_ask, before),
          .help = "Decisions about events before this one; newest first." },
        PAGE_LIMIT_FIELD(logs_ask),
        { "status", FIELD_CHOICE, .choices = statuses, FIELD_AT(logs_ask, status),
          .help = "Only decisions with this status." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(logs_ask, adapter),
          .help = "Only events of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(logs_ask, channel),
          .help = "Only events of this channel." },
        { "agent", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(logs_ask, agent),
          .help = "Only decisions for this agent." },
        { "traceId", FIELD_STRING, .min = 32, .max = 32, FIELD_AT(logs_ask, trace),
          .help = "Only events of this trace." },
        FIELD_END,
};

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct logs_ask *ask = j->query;
        enum trigger_status status;
        struct trigger_log_filter filter = { .adapter = ask->adapter,
                                             .channel = ask->channel,
                                             .agent = ask->agent,
                                             .trace = ask->trace,
                                             .adapters = j->caller->adapters,
                                             .before = ask->before,
                                             .limit = ask->limit + 1 };
        struct trigger_log_row row;
        struct store_stmt *s;
        struct page p;
        int rc;

        if (ask->status && trigger_status_parse(ask->status, &status))
                filter.status = &status;
        s = trigger_log_row_list(tx, &filter);
        page_begin(&p, &j->json, ask->limit);
        while ((rc = trigger_log_row_next(s, &row, err)) == 1)
                if (page_add(&p, row.event))
                        row_json_trigger_log(p.json, NULL, &row);
        page_end(&p, "evt-");
        return rc;
}

static void list(struct http_exchange *x)
{
        struct logs_ask ask = { .limit = 50 };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

const struct route trigger_logs_routes[] = {
        { "GET", "/api/v2/trigger-logs", SCOPE_READ, list, REACH_LIST,
          .summary = "The decision about each inbound event and its reason, newest first.",
          .query = logs_query, .status = 200, .answer = ROUTE_PAGE " of decisions." },
        ROUTE_END,
};
