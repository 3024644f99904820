/* Approvals: what agents ask before they do it, the decision, and the rules it may leave behind. */
#include <stdlib.h>

#include "api/core/read_job.h"
#include "api/core/write_job.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"
#include "road/turn/approval.h"

struct approvals_ask {
        int64_t before, limit, turn;
        const char *state;
};

static const char *const states[] = { "open", "approved", "refused", "expired", "cancelled", NULL };

static const struct field approvals_query[] = {
        { "cursor", FIELD_ID, .prefix = "apr-", FIELD_AT(approvals_ask, before),
          .help = "meta.cursor of the previous page." },
        PAGE_LIMIT_FIELD(approvals_ask),
        { "state", FIELD_CHOICE, .choices = states, FIELD_AT(approvals_ask, state),
          .help = "Only approvals in this state." },
        { "turnId", FIELD_ID, .prefix = "trn-", FIELD_AT(approvals_ask, turn),
          .help = "Only approvals of this turn." },
        FIELD_END,
};

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct approvals_ask *ask = j->query;
        enum approval_state state;
        struct approval_filter filter = { .before = ask->before,
                                          .turn = ask->turn,
                                          .adapters = j->caller->adapters,
                                          .limit = ask->limit + 1 };
        struct store_stmt *s;
        struct approval_row row;
        struct page p;
        int rc;

        if (ask->state && approval_state_parse(ask->state, &state))
                filter.state = &state;
        s = approval_row_list(tx, &filter);
        page_begin(&p, &j->json, ask->limit);
        while ((rc = approval_row_next(s, &row, err)) == 1)
                if (page_add(&p, row.id))
                        row_json_approval(p.json, NULL, &row);
        page_end(&p, "apr-");
        return rc;
}

static void list(struct http_exchange *x)
{
        struct approvals_ask ask = { .limit = 50 };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

static int read_one(struct store_tx *tx, struct read_job *j, struct error *err)
{
        struct approval_row *row;
        int rc = approval_row_get(tx, j->id, &row, err);

        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no approval 'apr-%lld'",
                                 (long long)j->id);
        jsonw_open(&j->json, '{');
        row_json_approval(&j->json, "data", row);
        jsonw_close(&j->json, '}');
        free(row);
        return 0;
}

static void show(struct http_exchange *x)
{
        read_job_show(x, "apr-", "approval", read_one);
}

/* ---- deciding ---- */

struct verdict_ask {
        const char *note;
        bool always;
};

/* clang-format off */
#define NOTE_FIELD                                                                               \
        { "note", FIELD_STRING, .min = 1, .max = 300, FIELD_AT(verdict_ask, note),               \
          .help = "For the agent and the record." }
/* clang-format on */
static const struct field approve_fields[] = {
        NOTE_FIELD,
        { "always", FIELD_BOOL, FIELD_AT(verdict_ask, always), .fallback = "false",
          .help = "Also write the approval's `rule`, which allows it in this channel in future." },
        FIELD_END,
};
static const struct field refuse_fields[] = { NOTE_FIELD, FIELD_END };

static void on_decided(void *arg, const struct approval_row *row, const struct error *err)
{
        struct write_job *j = arg;

        if (row && !err)
                row_json_approval(&j->data, NULL, row);
        write_job_done(j, err);
}

static void decide(struct http_exchange *x, bool approve)
{
        struct verdict_ask ask = { 0 };
        int64_t id = request_id(x, "apr-", "approval");
        struct body b;

        if (id < 0 || request_body(x, &b, &ask) < 0)
                return;
        approval_decide(api_of(x)->env.road,
                        &(struct approval_verdict){ .id = id,
                                                    .approve = approve,
                                                    .always = ask.always,
                                                    .by = caller_name(x),
                                                    .note = ask.note,
                                                    .adapters = caller_of(x)->adapters },
                        on_decided, write_job_new(x, 200));
        body_release(&b);
}

static void approve(struct http_exchange *x)
{
        decide(x, true);
}

static void refuse(struct http_exchange *x)
{
        decide(x, false);
}

/* ---- rules ---- */

static void write_rule(struct buf *b, const struct approval_rule_row *r)
{
        jsonw_open(b, '{');
        row_json_id(b, "id", "apl-", r->id);
        jsonw_str(b, "agent", r->agent);
        jsonw_str(b, "instanceId", r->adapter);
        jsonw_str(b, "channel", r->channel);
        jsonw_raw(b, "rule", r->rule);
        row_json_optional_id(b, "approvalId", "apr-", r->approval);
        jsonw_str(b, "by", r->by);
        row_json_time(b, "createdAt", r->created_ms);
        jsonw_close(b, '}');
}

static void list_rules(struct http_exchange *x)
{
        const struct road *r = api_of(x)->env.road;
        struct buf json;

        buf_init(&json, 0);
        page_open(&json);
        for (size_t i = 0; i < approval_rules_count(r); i++) {
                const struct approval_rule_row *rule = approval_rules_at(r, i);

                if (key_reaches(caller_of(x), rule->adapter))
                        write_rule(&json, rule);
        }
        page_close(&json, false, NULL);
        reply_json(x, 200, &json);
}

struct rule_removal {
        struct write_job job; /* first */
        int64_t id;
};

static void on_removed(void *arg, const struct error *err)
{
        struct rule_removal *v = arg;

        jsonw_open(&v->job.data, '{');
        row_json_id(&v->job.data, "id", "apl-", v->id);
        jsonw_str(&v->job.data, "state", "removed");
        jsonw_close(&v->job.data, '}');
        write_job_done(&v->job, err);
}

static void remove_rule(struct http_exchange *x)
{
        int64_t id = request_id(x, "apl-", "rule");
        struct rule_removal *v;

        if (id < 0)
                return;
        v = mem_zalloc(sizeof(*v));
        v->id = id;
        write_job_init(&v->job, x, 200);
        approval_rule_delete(api_of(x)->env.road, id, on_removed, v);
}

const struct route approvals_routes[] = {
        { "GET", "/api/v2/approvals", SCOPE_READ, list, REACH_LIST,
          .summary = "What agents asked before doing it, newest first.", .query = approvals_query,
          .status = 200, .answer = ROUTE_PAGE " of approvals." },
        { "GET", "/api/v2/approvals/:id", SCOPE_READ, show, REACH_ROW, row_scope_approval,
          .summary = "One approval, with exactly what was asked.", .status = 200,
          .answer = "{\"data\": {\"id\", \"state\", \"turnId\", \"agent\", \"tool\", \"title\", "
                    "\"detail\", \"subject\", \"reason\", \"rule\", \"approvers\", \"expiresAt\", "
                    "\"by\", \"note\", ...}}" },
        { "POST", "/api/v2/approvals/:id/approve", SCOPE_ADMIN, approve, REACH_ROW,
          row_scope_approval,
          .summary = "Allow what was asked. Exactly one decision counts: 409 says who decided "
                     "before, and what.",
          .body = approve_fields, .status = 200, .answer = "{\"data\": approval}",
          .example = ROUTE_JSON({ "note" : "go ahead" }) },
        { "POST", "/api/v2/approvals/:id/refuse", SCOPE_ADMIN, refuse, REACH_ROW,
          row_scope_approval, .summary = "Refuse what was asked.", .body = refuse_fields,
          .status = 200, .answer = "{\"data\": approval}",
          .example = ROUTE_JSON({ "note" : "not on this machine" }) },
        { "GET", "/api/v2/approval-rules", SCOPE_READ, list_rules, REACH_LIST,
          .summary = "Rules that an answer \"always\" left behind.", .status = 200,
          .answer = ROUTE_PAGE " of {\"id\", \"agent\", \"instanceId\", \"channel\", \"rule\", "
                               "\"approvalId\", \"by\", \"createdAt\"}." },
        { "DELETE", "/api/v2/approval-rules/:id", SCOPE_ADMIN, remove_rule, REACH_ALL,
          .summary = "Remove such a rule: the agent asks again.", .status = 200,
          .answer = "{\"data\": {\"id\", \"state\": \"removed\"}}" },
        ROUTE_END,
};
