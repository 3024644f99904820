/* Dead letters: failed or unconfirmed deliveries, then failed turns; each newest first. */
#include <string.h>

#include "api/core/read_job.h"
#include "api/resources/retry.h"
#include "road/report/row_json.h"
#include "rows/delivery_row.h"
#include "rows/turn_row.h"

struct dead_letters_ask {
        int64_t limit;
        const char *cursor, *kind;
};

static const char *const kinds[] = { "delivery", "turn", NULL };

static const struct field dead_letters_query[] = {
        { "cursor", FIELD_STRING, .min = 1, .max = 32, FIELD_AT(dead_letters_ask, cursor),
          .help = "meta.cursor of the previous page." },
        PAGE_LIMIT_FIELD(dead_letters_ask),
        { "kind", FIELD_CHOICE, .choices = kinds, FIELD_AT(dead_letters_ask, kind),
          .help = "Only deliveries or only turns." },
        FIELD_END,
};

static int add_deliveries(struct store_tx *tx, const struct read_job *j, int64_t before,
                          struct page *p, struct error *err)
{
        struct store_stmt *s =
                delivery_row_list(tx, &(struct delivery_filter){ .dead = true,
                                                                 .adapters = j->caller->adapters,
                                                                 .before = before,
                                                                 .limit = p->limit + 1 });
        struct delivery_row row;
        int rc;

        while ((rc = delivery_row_next(s, &row, err)) == 1)
                if (page_add(p, row.id))
                        row_json_dead_delivery(p->json, &row);
        return rc;
}

static int add_turns(struct store_tx *tx, const struct read_job *j, int64_t before, struct page *p,
                     struct error *err)
{
        static const enum turn_state failed = TURN_FAILED;
        struct store_stmt *s =
                turn_row_list(tx, &(struct turn_filter){ .state = &failed,
                                                         .adapters = j->caller->adapters,
                                                         .before = before,
                                                         .limit = p->limit - p->count + 1 });
        struct turn_row row;
        int rc;

        while ((rc = turn_row_next(s, &row, err)) == 1)
                if (page_add(p, row.id))
                        row_json_dead_turn(p->json, &row);
        return rc;
}

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct dead_letters_ask *ask = j->query;
        bool in_turns = ask->cursor && strncmp(ask->cursor, "trn-", 4) == 0;
        const char *prefix = in_turns ? "trn-" : "dlv-";
        int64_t before = ask->cursor ? field_id(prefix, ask->cursor) : 0, count;
        struct page p;

        if (before < 0)
                return error_set(err, ERR_INVALID, "'%s' is not the cursor of a previous page",
                                 ask->cursor);
        page_begin(&p, &j->json, ask->limit);
        if (!in_turns && (!ask->kind || strcmp(ask->kind, "delivery") == 0) &&
            add_deliveries(tx, j, before, &p, err) < 0)
                return -1;
        count = p.count;
        if (!p.more && (!ask->kind || strcmp(ask->kind, "turn") == 0) &&
            add_turns(tx, j, in_turns ? before : 0, &p, err) < 0)
                return -1;
        page_end(&p, p.count > count ? "trn-" : prefix);
        return 0;
}

static void list(struct http_exchange *x)
{
        struct dead_letters_ask ask = { .limit = 50 };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

static void retry(struct http_exchange *x)
{
        const char *id = http_param(x, "id");
        bool turn = id && strncmp(id, "trn-", 4) == 0, force;
        int64_t n = request_id(x, turn ? "trn-" : "dlv-", "dead letter");

        if (n < 0 || retry_read(x, &force) < 0)
                return;
        if (turn)
                retry_turn(x, n);
        else
                retry_delivery(x, n, force);
}

const struct route dead_letters_routes[] = {
        { "GET", "/api/v2/dead-letters", SCOPE_READ, list, REACH_LIST,
          .summary = "Deliveries that failed or whose outcome is unknown, then turns that failed; "
                     "newest first.",
          .query = dead_letters_query, .status = 200,
          .answer = ROUTE_PAGE " of {\"id\", \"kind\", \"delivery\" or \"turn\"}." },
        { "POST", "/api/v2/dead-letters/:id/retry", SCOPE_WRITE, retry, REACH_ROW,
          row_scope_dead_letter, .summary = "Queue a dead delivery (dlv-N) or turn (trn-N) again.",
          .body = retry_fields, .status = 202,
          .answer = "{\"data\": {\"id\", \"status\": \"queued\"}}",
          .example = ROUTE_JSON({ "force" : true }) },
        ROUTE_END,
};
