/* Deliveries: what is being sent, and its outcome. */
#include <string.h>

#include "api/core/read_job.h"
#include "api/core/row_scope.h"
#include "api/resources/retry.h"
#include "base/jsonw.h"
#include "road/report/row_json.h"

struct deliveries_ask {
        int64_t before, limit, turn;
        const char *state, *instance, *channel;
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
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, FIELD_AT(deliveries_ask, instance),
          .help = "Only deliveries of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, FIELD_AT(deliveries_ask, channel),
          .help = "Only deliveries to this channel." },
        FIELD_END,
};

/* clang-format off */
#define FILTERED                                                                                             \
        " AND d.id < ?1 AND (CAST(?2 AS TEXT) IS NULL OR d.state = ?2)"                                      \
        " AND (CAST(?3 AS TEXT) IS NULL OR d.adapter = ?3) AND (CAST(?4 AS TEXT) IS NULL OR d.channel = ?4)" \
        ONLY_REACHED("d.adapter", "?6") " ORDER BY d.id DESC LIMIT ?5"
/* clang-format on */

/* One text for each index that can serve. */
static struct store_stmt *choose(struct store_tx *tx, const struct deliveries_ask *ask)
{
        const char *state = ask->state ? ask->state : "";
        struct store_stmt *s;

        if (ask->turn > 0) {
                s = store_prepare(tx, SHOW_DELIVERY "WHERE d.turn = ?7" FILTERED);
                store_bind_int(s, 7, ask->turn);
                return s;
        }
        if (strcmp(state, "queued") == 0 || strcmp(state, "sending") == 0)
                return store_prepare(tx, SHOW_DELIVERY
                                     "WHERE d.state IN ('queued', 'sending')" FILTERED);
        if (strcmp(state, "failed") == 0 || strcmp(state, "unknown") == 0)
                return store_prepare(tx, SHOW_DELIVERY
                                     "WHERE d.state IN ('failed', 'unknown')" FILTERED);
        return store_prepare(tx, SHOW_DELIVERY "WHERE 1 = 1" FILTERED);
}

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct deliveries_ask *ask = j->query;
        struct store_stmt *s = choose(tx, ask);
        struct page p;
        int rc;

        store_bind_int(s, 1, ask->before > 0 ? ask->before : INT64_MAX);
        store_bind_text(s, 2, ask->state);
        store_bind_text(s, 3, ask->instance);
        store_bind_text(s, 4, ask->channel);
        store_bind_int(s, 5, ask->limit + 1);
        store_bind_text(s, 6, j->caller->adapters);
        page_begin(&p, &j->json, ask->limit);
        while ((rc = store_step(s, err)) == 1)
                if (page_add(&p, store_col_int(s, 0))) {
                        show_delivery_begin(p.json, NULL, s);
                        show_delivery_end(p.json);
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
        struct store_stmt *s = store_prepare(tx, SHOW_DELIVERY "WHERE d.id = ?1");
        int rc;

        store_bind_int(s, 1, j->id);
        rc = store_step(s, err);
        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no delivery 'dlv-%lld'",
                                 (long long)j->id);
        jsonw_open(&j->json, '{');
        show_delivery_begin(&j->json, "data", s);
        store_reset(s);
        if (show_attempts(tx, &j->json, j->id, err) < 0)
                return -1;
        show_delivery_end(&j->json);
        jsonw_close(&j->json, '}');
        return 0;
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
