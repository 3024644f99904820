/* What was decided about each inbound event, and why. */
#include <stdio.h>

#include "api/core/api_private.h"
#include "bus/bus.h"
#include "road/report/row_json.h"

struct logs_ask {
        int64_t before, limit;
        const char *status, *instance, *channel, *agent, *trace;
};

static const char *const statuses[] = { "queued", "skipped",   "expired", "done",
                                        "failed", "cancelled", NULL };

/* clang-format off */
const struct field trigger_logs_query[] = {
        { "before", FIELD_ID, .prefix = "evt-", .at = offsetof(struct logs_ask, before),
          .help = "Decisions about events before this one; newest first." },
        { "limit", FIELD_INT, .min = 1, .max = 100, .at = offsetof(struct logs_ask, limit), .fallback = "50",
          .help = "How many at most." },
        { "status", FIELD_CHOICE, .choices = statuses, .at = offsetof(struct logs_ask, status),
          .help = "Only decisions that ended so." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, .at = offsetof(struct logs_ask, instance),
          .help = "Only events of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, .at = offsetof(struct logs_ask, channel),
          .help = "Only events of this channel." },
        { "agent", FIELD_STRING, .min = 1, .max = 128, .at = offsetof(struct logs_ask, agent),
          .help = "Only decisions for this agent." },
        { "traceId", FIELD_STRING, .min = 32, .max = 32, .at = offsetof(struct logs_ask, trace),
          .help = "Only events of this trace." },
        FIELD_END,
};
/* clang-format on */

/* clang-format off */
#define FILTERED                                                                                             \
        " AND l.event < ?1 AND (CAST(?2 AS TEXT) IS NULL OR l.status = ?2)"                                  \
        " AND (CAST(?3 AS TEXT) IS NULL OR l.adapter = ?3) AND (CAST(?4 AS TEXT) IS NULL OR l.channel = ?4)" \
        " AND (CAST(?5 AS TEXT) IS NULL OR l.agent = ?5)" ONLY_REACHED("l.adapter", "?7")                    \
        " ORDER BY l.event DESC LIMIT ?6"
/* clang-format on */

static int list(struct store_tx *tx, struct read_job *l, struct error *err)
{
        const struct logs_ask *ask = l->query;
        struct store_stmt *s =
                ask->trace ? store_prepare(tx, SHOW_DECISION "WHERE l.trace = ?8" FILTERED)
                           : store_prepare(tx, SHOW_DECISION "WHERE 1 = 1" FILTERED);

        store_bind_int(s, 1, ask->before > 0 ? ask->before : INT64_MAX);
        store_bind_text(s, 2, ask->status);
        store_bind_text(s, 3, ask->instance);
        store_bind_text(s, 4, ask->channel);
        store_bind_text(s, 5, ask->agent);
        store_bind_int(s, 6, ask->limit + 1);
        store_bind_text(s, 7, l->caller->adapters);
        if (ask->trace)
                store_bind_text(s, 8, ask->trace);
        return page_rows(&l->json, s, ask->limit, "evt", show_decision, err);
}

void trigger_logs_list(struct http_exchange *x)
{
        struct logs_ask ask = { .limit = 50 };
        struct read_job *l = read_job_new(x, &ask, sizeof(ask));

        if (l)
                read_job_run(l, list);
}
