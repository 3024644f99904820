/* What was decided about each inbound event, and why. */
#include "api/core/read_job.h"
#include "road/report/row_json.h"

struct logs_ask {
        int64_t before, limit;
        const char *status, *instance, *channel, *agent, *trace;
};

static const char *const statuses[] = { "queued", "skipped",   "expired", "done",
                                        "failed", "cancelled", NULL };

static const struct field logs_query[] = {
        { "before", FIELD_ID, .prefix = "evt-", FIELD_AT(logs_ask, before),
          .help = "Decisions about events before this one; newest first." },
        PAGE_LIMIT_FIELD(logs_ask),
        { "status", FIELD_CHOICE, .choices = statuses, FIELD_AT(logs_ask, status),
          .help = "Only decisions with this status." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(logs_ask, instance),
          .help = "Only events of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(logs_ask, channel),
          .help = "Only events of this channel." },
        { "agent", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(logs_ask, agent),
          .help = "Only decisions for this agent." },
        { "traceId", FIELD_STRING, .min = 32, .max = 32, FIELD_AT(logs_ask, trace),
          .help = "Only events of this trace." },
        FIELD_END,
};

/* clang-format off */
#define FILTERED                                                                                             \
        " AND l.event < ?1 AND (CAST(?2 AS TEXT) IS NULL OR l.status = ?2)"                                  \
        " AND (CAST(?3 AS TEXT) IS NULL OR l.adapter = ?3) AND (CAST(?4 AS TEXT) IS NULL OR l.channel = ?4)" \
        " AND (CAST(?5 AS TEXT) IS NULL OR l.agent = ?5)" ONLY_REACHED("l.adapter", "?7")                    \
        " ORDER BY l.event DESC LIMIT ?6"
/* clang-format on */

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct logs_ask *ask = j->query;
        struct store_stmt *s =
                ask->trace ? store_prepare(tx, SHOW_DECISION "WHERE l.trace = ?8" FILTERED)
                           : store_prepare(tx, SHOW_DECISION "WHERE 1 = 1" FILTERED);
        struct page p;
        int rc;

        store_bind_int(s, 1, ask->before > 0 ? ask->before : INT64_MAX);
        store_bind_text(s, 2, ask->status);
        store_bind_text(s, 3, ask->instance);
        store_bind_text(s, 4, ask->channel);
        store_bind_text(s, 5, ask->agent);
        store_bind_int(s, 6, ask->limit + 1);
        store_bind_text(s, 7, j->caller->adapters);
        if (ask->trace)
                store_bind_text(s, 8, ask->trace);
        page_begin(&p, &j->json, ask->limit);
        while ((rc = store_step(s, err)) == 1)
                if (page_add(&p, store_col_int(s, 0)))
                        show_decision(p.json, NULL, s);
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
          .summary = "What was decided about each inbound event and why, newest first.",
          .query = logs_query, .status = 200, .answer = ROUTE_PAGE " of decisions." },
        ROUTE_END,
};
