/*
 * Dead letters: deliveries that failed or whose fate is unknown, then turns that failed; each
 * newest first.
 */
#include <stdio.h>
#include <string.h>

#include "api/core/api_private.h"
#include "api/resources/retry.h"
#include "base/jsonw.h"
#include "road/report/row_json.h"

struct dead_ask {
        int64_t limit;
        const char *cursor, *kind;
};

static const char *const kinds[] = { "delivery", "turn", NULL };

/* clang-format off */
const struct field dead_letters_query[] = {
        { "cursor", FIELD_STRING, .min = 1, .max = 32, .at = offsetof(struct dead_ask, cursor),
          .help = "meta.cursor of the page before." },
        { "limit", FIELD_INT, .min = 1, .max = 100, .at = offsetof(struct dead_ask, limit), .fallback = "50",
          .help = "How many at most." },
        { "kind", FIELD_CHOICE, .choices = kinds, .at = offsetof(struct dead_ask, kind),
          .help = "Only deliveries or only turns." },
        FIELD_END,
};
/* clang-format on */

struct dead_page {
        struct buf *json;
        int64_t left; /* how many more may be shown */
        bool more;
        char cursor[40];
};

/* Shows rows of s until the page is full; 0 or -1. */
static int add_rows(struct store_stmt *s, const char *kind, const char *prefix, struct dead_page *p,
                    struct error *err)
{
        int rc;

        while ((rc = store_step(s, err)) == 1 && p->left > 0) {
                p->left--;
                snprintf(p->cursor, sizeof(p->cursor), "%s%lld", prefix,
                         (long long)store_col_int(s, 0));
                jsonw_open(p->json, '{');
                jsonw_str(p->json, "id", p->cursor);
                jsonw_str(p->json, "kind", kind);
                if (strcmp(kind, "turn") == 0) {
                        show_turn(p->json, kind, s);
                } else {
                        show_delivery_begin(p->json, kind, s);
                        show_delivery_end(p->json);
                }
                jsonw_close(p->json, '}');
        }
        if (rc == 1) {
                p->more = true;
                store_reset(s);
        }
        return rc < 0 ? -1 : 0;
}

/* clang-format off */
#define DEAD_DELIVERIES                                                                    \
        SHOW_DELIVERY "WHERE d.state IN ('failed', 'unknown') AND d.id < ?1"               \
        ONLY_REACHED("d.adapter", "?3") " ORDER BY d.id DESC LIMIT ?2"
#define DEAD_TURNS                                                                         \
        SHOW_TURN "WHERE t.state = 'failed' AND t.id < ?1"                                 \
        ONLY_REACHED("coalesce(c.adapter, '')", "?3") " ORDER BY t.id DESC LIMIT ?2"
/* clang-format on */

/* The letters of one kind before this number. */
static int add_letters(struct store_stmt *s, const struct read_job *l, int64_t before,
                       const char *kind, const char *prefix, struct dead_page *p, struct error *err)
{
        store_bind_int(s, 1, before);
        store_bind_int(s, 2, p->left + 1);
        store_bind_text(s, 3, l->caller->adapters);
        return add_rows(s, kind, prefix, p, err);
}

static int list(struct store_tx *tx, struct read_job *l, struct error *err)
{
        const struct dead_ask *ask = l->query;
        struct dead_page p = { .json = &l->json, .left = ask->limit };
        bool in_turns = ask->cursor && strncmp(ask->cursor, "trn-", 4) == 0;
        int64_t place = ask->cursor ? field_id(in_turns ? "trn-" : "dlv-", ask->cursor) : INT64_MAX;
        bool deliveries = !in_turns && (!ask->kind || strcmp(ask->kind, "delivery") == 0);
        bool turns = !ask->kind || strcmp(ask->kind, "turn") == 0;

        if (place < 0)
                return error_set(err, ERR_INVALID, "'%s' is no cursor of a page before",
                                 ask->cursor);
        page_begin(&l->json);
        if (deliveries && add_letters(store_prepare(tx, DEAD_DELIVERIES), l, place, "delivery",
                                      "dlv-", &p, err) < 0)
                return -1;
        if (turns && !p.more &&
            add_letters(store_prepare(tx, DEAD_TURNS), l, in_turns ? place : INT64_MAX, "turn",
                        "trn-", &p, err) < 0)
                return -1;
        page_end(&l->json, p.more, p.cursor[0] ? p.cursor : NULL);
        return 0;
}

void dead_letters_list(struct http_exchange *x)
{
        struct dead_ask ask = { .limit = 50 };
        struct read_job *l = read_job_new(x, &ask, sizeof(ask));

        if (l)
                read_job_run(l, list);
}

void dead_letters_retry(struct http_exchange *x)
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
