/* Dead letters: failed or unconfirmed deliveries, then failed turns; each newest first. */
#include <string.h>

#include "api/core/read_job.h"
#include "api/core/row_scope.h"
#include "api/resources/retry.h"
#include "base/jsonw.h"
#include "road/report/row_json.h"

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

/* clang-format off */
#define DEAD_DELIVERIES                                                                    \
        SHOW_DELIVERY "WHERE d.state IN ('failed', 'unknown') AND d.id < ?1"               \
        ONLY_REACHED("d.adapter", "?3") " ORDER BY d.id DESC LIMIT ?2"
#define DEAD_TURNS                                                                         \
        SHOW_TURN "WHERE t.state = 'failed' AND t.id < ?1"                                 \
        ONLY_REACHED("coalesce(c.adapter, '')", "?3") " ORDER BY t.id DESC LIMIT ?2"
/* clang-format on */

/* Adds the rows of one kind before this number. */
static int add_rows(struct store_stmt *s, const struct read_job *j, int64_t before, bool turns,
                    struct page *p, struct error *err)
{
        const char *kind = turns ? "turn" : "delivery";
        int rc;

        store_bind_int(s, 1, before);
        store_bind_int(s, 2, p->limit - p->count + 1);
        store_bind_text(s, 3, j->caller->adapters);
        while ((rc = store_step(s, err)) == 1) {
                if (!page_add(p, store_col_int(s, 0)))
                        continue;
                jsonw_open(p->json, '{');
                row_json_id(p->json, "id", turns ? "trn-" : "dlv-", p->last);
                jsonw_str(p->json, "kind", kind);
                if (turns) {
                        show_turn(p->json, kind, s);
                } else {
                        show_delivery_begin(p->json, kind, s);
                        show_delivery_end(p->json);
                }
                jsonw_close(p->json, '}');
        }
        return rc;
}

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct dead_letters_ask *ask = j->query;
        bool in_turns = ask->cursor && strncmp(ask->cursor, "trn-", 4) == 0;
        int64_t before =
                ask->cursor ? field_id(in_turns ? "trn-" : "dlv-", ask->cursor) : INT64_MAX;
        bool wants_turns = !ask->kind || strcmp(ask->kind, "turn") == 0;
        const char *prefix = in_turns ? "trn-" : "dlv-";
        struct page p;

        if (before < 0)
                return error_set(err, ERR_INVALID, "'%s' is no cursor of a previous page",
                                 ask->cursor);
        page_begin(&p, &j->json, ask->limit);
        if (!in_turns && (!ask->kind || strcmp(ask->kind, "delivery") == 0) &&
            add_rows(store_prepare(tx, DEAD_DELIVERIES), j, before, false, &p, err) < 0)
                return -1;
        if (wants_turns && !p.more) {
                int64_t count = p.count;

                if (add_rows(store_prepare(tx, DEAD_TURNS), j, in_turns ? before : INT64_MAX, true,
                             &p, err) < 0)
                        return -1;
                if (p.count > count)
                        prefix = "trn-";
        }
        page_end(&p, prefix);
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
