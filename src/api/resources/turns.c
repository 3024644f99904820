/* Turns: listing and cancelling. */
#include <stdlib.h>

#include "api/core/read_job.h"
#include "api/resources/retry.h"
#include "base/jsonw.h"
#include "road/report/row_json.h"
#include "rows/turn_row.h"

struct turns_ask {
        int64_t before, limit, conversation;
        const char *state, *agent;
};

static const char *const states[] = { "queued",    "running", "done", "failed",
                                      "cancelled", "expired", NULL };

static const struct field turns_query[] = {
        { "before", FIELD_ID, .prefix = "trn-", FIELD_AT(turns_ask, before),
          .help = "Turns before this one; newest first." },
        PAGE_LIMIT_FIELD(turns_ask),
        { "state", FIELD_CHOICE, .choices = states, FIELD_AT(turns_ask, state),
          .help = "Only turns in this state." },
        { "agent", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(turns_ask, agent),
          .help = "Only turns of this agent." },
        { "conversationId", FIELD_ID, .prefix = "conv-", FIELD_AT(turns_ask, conversation),
          .help = "Only turns of this conversation." },
        FIELD_END,
};

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct turns_ask *ask = j->query;
        enum turn_state state;
        struct turn_filter filter = { .agent = ask->agent,
                                      .conversation = ask->conversation,
                                      .adapters = j->caller->adapters,
                                      .before = ask->before,
                                      .limit = ask->limit + 1 };
        struct store_stmt *s;
        struct turn_row row;
        struct page p;
        int rc;

        if (ask->state && turn_state_parse(ask->state, &state))
                filter.state = &state;
        s = turn_row_list(tx, &filter);
        page_begin(&p, &j->json, ask->limit);
        while ((rc = turn_row_next(s, &row, err)) == 1)
                if (page_add(&p, row.id))
                        row_json_turn(p.json, NULL, &row);
        page_end(&p, "trn-");
        return rc;
}

static void list(struct http_exchange *x)
{
        struct turns_ask ask = { .limit = 50 };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

static int read_one(struct store_tx *tx, struct read_job *j, struct error *err)
{
        struct turn_row *row;
        int rc = turn_row_get(tx, j->id, &row, err);

        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no turn 'trn-%lld'", (long long)j->id);
        jsonw_open(&j->json, '{');
        row_json_turn(&j->json, "data", row);
        jsonw_close(&j->json, '}');
        free(row);
        return 0;
}

static void show(struct http_exchange *x)
{
        read_job_show(x, "trn-", "turn", read_one);
}

struct cancel_ask {
        const char *reason;
};

static const struct field cancel_fields[] = {
        { "reason", FIELD_STRING, .min = 1, .max = 200, FIELD_AT(cancel_ask, reason),
          .fallback = "\"stopped by the operator\"", .help = "Why, for the record." },
        FIELD_END,
};

static void cancel(struct http_exchange *x)
{
        struct cancel_ask ask = { .reason = "stopped by the operator" };
        int64_t id = request_id(x, "trn-", "turn");
        struct body b;

        if (id < 0 || request_body(x, &b, &ask) < 0)
                return;
        retry_cancel_turn(x, id, ask.reason);
        body_release(&b);
}

const struct route turns_routes[] = {
        { "GET", "/api/v2/turns", SCOPE_READ, list, REACH_LIST,
          .summary = "Queued, running and ended turns, newest first.", .query = turns_query,
          .status = 200, .answer = ROUTE_PAGE " of turns." },
        { "GET", "/api/v2/turns/:id", SCOPE_READ, show, REACH_ROW, row_scope_turn,
          .summary = "One turn.", .status = 200, .answer = "{\"data\": turn}" },
        { "POST", "/api/v2/turns/:id/cancel", SCOPE_WRITE, cancel, REACH_ROW, row_scope_turn,
          .summary = "Stop a queued or running turn.", .body = cancel_fields, .status = 202,
          .answer = "{\"data\": {\"id\", \"status\": \"cancelled\"}}",
          .example = ROUTE_JSON({ "reason" : "asked by mistake" }) },
        ROUTE_END,
};
