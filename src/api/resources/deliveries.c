/* Deliveries: what is on its way out, and what became of it. */
#include <stdio.h>
#include <string.h>

#include "api/core/api_private.h"
#include "api/resources/retry.h"
#include "base/jsonw.h"
#include "road/report/row_json.h"

struct deliveries_ask {
        int64_t before, limit, turn;
        const char *state, *instance, *channel;
};

static const char *const states[] = { "queued",  "sending", "sent", "failed",
                                      "unknown", "expired", NULL };

/* clang-format off */
const struct field deliveries_query[] = {
        { "before", FIELD_ID, .prefix = "dlv-", .at = offsetof(struct deliveries_ask, before),
          .help = "Deliveries before this one; newest first." },
        { "limit", FIELD_INT, .min = 1, .max = 100, .at = offsetof(struct deliveries_ask, limit), .fallback = "50",
          .help = "How many at most." },
        { "state", FIELD_CHOICE, .choices = states, .at = offsetof(struct deliveries_ask, state),
          .help = "Only deliveries in this state." },
        { "turnId", FIELD_ID, .prefix = "trn-", .at = offsetof(struct deliveries_ask, turn),
          .help = "Only deliveries of this turn." },
        { "instanceId", FIELD_STRING, .min = 1, .max = 128, .at = offsetof(struct deliveries_ask, instance),
          .help = "Only deliveries of this adapter." },
        { "channel", FIELD_STRING, .min = 1, .max = 512, .at = offsetof(struct deliveries_ask, channel),
          .help = "Only deliveries to this channel." },
        FIELD_END,
};
/* clang-format on */

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

static void show_delivery(struct buf *b, const char *key, struct store_stmt *s)
{
        show_delivery_begin(b, key, s);
        show_delivery_end(b);
}

static int list(struct store_tx *tx, struct read_job *l, struct error *err)
{
        const struct deliveries_ask *ask = l->query;
        struct store_stmt *s = choose(tx, ask);

        store_bind_int(s, 1, ask->before > 0 ? ask->before : INT64_MAX);
        store_bind_text(s, 2, ask->state);
        store_bind_text(s, 3, ask->instance);
        store_bind_text(s, 4, ask->channel);
        store_bind_int(s, 5, ask->limit + 1);
        store_bind_text(s, 6, l->caller->adapters);
        return page_rows(&l->json, s, ask->limit, "dlv", show_delivery, err);
}

void deliveries_list(struct http_exchange *x)
{
        struct deliveries_ask ask = { .limit = 50 };
        struct read_job *l = read_job_new(x, &ask, sizeof(ask));

        if (l)
                read_job_run(l, list);
}

static int show(struct store_tx *tx, struct read_job *l, struct error *err)
{
        struct store_stmt *s = store_prepare(tx, SHOW_DELIVERY "WHERE d.id = ?1");
        int rc;

        store_bind_int(s, 1, l->id);
        rc = store_step(s, err);
        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no delivery 'dlv-%lld'",
                                 (long long)l->id);
        jsonw_open(&l->json, '{');
        show_delivery_begin(&l->json, "data", s);
        store_reset(s);
        if (show_attempts(tx, &l->json, l->id, err) < 0)
                return -1;
        show_delivery_end(&l->json);
        jsonw_close(&l->json, '}');
        return 0;
}

void deliveries_show(struct http_exchange *x)
{
        int64_t id = request_id(x, "dlv-", "delivery");
        struct read_job *l = id < 0 ? NULL : read_job_new(x, NULL, 0);

        if (!l)
                return;
        l->id = id;
        read_job_run(l, show);
}

void deliveries_retry(struct http_exchange *x)
{
        int64_t id = request_id(x, "dlv-", "delivery");
        bool force;

        if (id >= 0 && retry_read(x, &force) == 0)
                retry_delivery(x, id, force);
}
