#include "rows/totals.h"

#include "store/sql.h"

int totals_get(struct store_tx *tx, struct totals *out, struct error *err)
{
        int rc = sql_first(
                sql_query(tx, "SELECT"
                              " (SELECT count(*) FROM journal),"
                              " (SELECT count(*) FROM turns WHERE state IN ('queued', 'running')),"
                              " (SELECT count(*) FROM deliveries"
                              "   WHERE state IN ('queued', 'sending')),"
                              " (SELECT count(*) FROM turns WHERE state = 'failed')"
                              " + (SELECT count(*) FROM deliveries"
                              "   WHERE state IN ('failed', 'unknown'))"),
                err, OUT_INT(&out->events), OUT_INT(&out->open_turns),
                OUT_INT(&out->open_deliveries), OUT_INT(&out->dead_letters));

        return rc == 1 ? 0 : -1;
}

int totals_newest_event_ms(struct store_tx *tx, int64_t *out, struct error *err)
{
        return sql_number(tx, 0, out, err,
                          "SELECT max(time_ms)"
                          " FROM (SELECT time_ms FROM journal ORDER BY seq DESC LIMIT 100)"
                          " AS latest");
}
