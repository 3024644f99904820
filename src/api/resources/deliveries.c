/* Deliveries and their outcome. */
#include <stdlib.h>

#include "api/core/read_job.h"
#include "api/resources/retry.h"
#include "base/jsonw.h"
#include "road/report/row_json.h"
#include "rows/delivery_row.h"

struct deliveries_ask {
        int64_t before, limit, turn;
        const char *state, *adapter, *channel;
};

static const char *const states[] = { "queued",  "sending", "sent", "failed",
                                      "unknown", "expired", NULL };

static const struct field deliveries_query[] = {
        { "before", FIELD_ID, .prefix = "dlv-", FIELD_AT(deliveries_ask, before),
          .help = "Deliveries before this one; newest first." },
        PAGE_LIMIT_FIELD(deliveries_ask),
        { "state", FIELD_CHOICE, .choices = states, FIELD_AT(deliveries_ask, state),
          .help = "Only deliveries in this state." },
        { "turnId", FIELD_ID, .prefix = "trn-", FIELD_AT(deliveries_ask, turn),
          .help = "Only deliveries of this turn." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(deliveries_ask, adapter),
          .help = "Only deliveries of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(deliveries_ask, channel),
          .help = "Only deliveries to this channel." },
        FIELD_END,
};

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct deliveries_ask *ask = j->query;
        enum delivery_state state;
        struct delivery_filter filter = { .turn = ask->turn,
                                          .adapter = ask->adapter,
                                          .channel = ask->channel,
                                          .adapters = j->caller->adapters,
                                          .before = ask->before,
                                          .limit = ask->limit + 1 };
        struct delivery_row row;
        struct store_stmt *s;
        struct page p;
        int rc;

        if (ask->state && delivery_state_parse(ask->state, &state))
                filter.state = &state;
        s = delivery_row_list(tx, &filter);
        page_begin(&p, &j->json, ask->limit);
        while ((rc = delivery_row_next(s, &row, err)) == 1) {
                if (page_add(&p, row.id))
                        row_json_delivery(p.json, NULL, &row);
        }
        page_end(&p, "dlv-");
        return rc;
}

static void list(struct http_exchange *x)
{
        struct deliveries_ask ask = { .limit = 50 };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

static int read_one(struct store_tx *tx, struct read_job *j, struct error *err)
{
        struct delivery_row *row;
        int rc = delivery_row_get(tx, j->id, &row, err);

        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no delivery 'dlv-%lld'",
                                 (long long)j->id);
        jsonw_open(&j->json, '{');
        rc = row_json_delivery_attempts(tx, &j->json, "data", row, err);
        free(row);
        jsonw_close(&j->json, '}');
        return rc;
}

static void show(struct http_exchange *x)
{
        read_job_show(x, "dlv-", "delivery", read_one);
}

static void retry(struct http_exchange *x)
{
        int64_t id = request_id(x, "dlv-", "delivery");
        bool force;

        if (id >= 0 && retry_read(x, &force) == 0)
                retry_delivery(x, id, force);
}

const struct route deliveries_routes[] = {
        { "GET", "/api/v2/deliveries", SCOPE_READ, list, REACH_LIST,
          .summary = "Deliveries, sent and queued, newest first.", .query = deliveries_query,
          .status = 200, .answer = ROUTE_PAGE " of deliveries." },
        { "GET", "/api/v2/deliveries/:id", SCOPE_READ, show, REACH_ROW, row_scope_delivery,
          .summary = "One delivery with its attempts.", .status = 200,
          .answer = "{\"data\": delivery}" },
        { "POST", "/api/v2/deliveries/:id/retry", SCOPE_WRITE, retry, REACH_ROW, row_scope_delivery,
          .summary = "Queue a failed delivery again.", .body = retry_fields, .status = 202,
          .answer = "{\"data\": {\"id\", \"status\": \"queued\"}}",
          .example = ROUTE_JSON({ "force" : false }) },
        ROUTE_END,
};
