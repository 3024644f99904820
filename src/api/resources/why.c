/* The trace report of a message. */
#include <string.h>

#include "api/core/read_job.h"
#include "road/report/trace_report.h"

#define ID_LONGEST 300

static int read_report(struct store_tx *tx, struct read_job *j, struct error *err)
{
        buf_addstr(&j->json, "{\"data\":");
        if (trace_report_write(tx, j->query, &j->json, err) < 0)
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
        { "GET", "/api/v2/why/:id", SCOPE_READ, show, REACH_ROW, row_scope_trace,
          .summary = "The trace report of a message: event, decision, turn, deliveries, and one "
                     "sentence. The id is an event, turn, delivery, trace, or the platform's own "
                     "key.",
          .status = 200,
          .answer = "{\"data\": {\"summary\", \"event\", \"decision\", \"turn\", "
                    "\"deliveries\"}}" },
        ROUTE_END,
};
