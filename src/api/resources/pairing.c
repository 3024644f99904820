/* Pairing codes of strangers, and the operator's decision. */
#include <stdlib.h>

#include "api/core/read_job.h"
#include "api/core/write_job.h"
#include "base/clock.h"
#include "base/human_code.h"
#include "base/jsonw.h"
#include "dispatch/dispatch.h"
#include "road/report/row_json.h"

struct pairing_ask {
        int64_t limit, before;
};

struct pairing_verdict_ask {
        const char *code;
        int64_t until_ms;
};

static const struct field pairing_query[] = {
        { "cursor", FIELD_ID, .prefix = "pair-", FIELD_AT(pairing_ask, before),
          .help = "meta.cursor of the previous page." },
        PAGE_LIMIT_FIELD(pairing_ask),
        FIELD_END,
};
/* clang-format off */
#define CODE_FIELD                                                                              \
        { "code", FIELD_STRING, .required = true, .min = 8, .max = 20,                          \
          FIELD_AT(pairing_verdict_ask, code),                                                 \
          .help = "The code the stranger got; case, spaces and dashes do not matter." }
/* clang-format on */
static const struct field approve_fields[] = {
        CODE_FIELD,
        { "until", FIELD_TIME, FIELD_AT(pairing_verdict_ask, until_ms),
          .help = "How long they are admitted; absent: until revoked." },
        FIELD_END,
};
static const struct field deny_fields[] = { CODE_FIELD, FIELD_END };

static struct pairings *pairing_of(const struct http_exchange *x)
{
        return dispatch_policy(api_of(x)->env.dispatch)->pairings;
}

static void write_pairing(struct buf *b, const struct pairing *r)
{
        char shown[HUMAN_CODE_TEXT_SIZE];

        jsonw_open(b, '{');
        row_json_id(b, "id", "pair-", r->id);
        jsonw_str(b, "state", r->state);
        jsonw_str(b, "code", r->code ? human_code_format(r->code, shown) : NULL);
        jsonw_str(b, "instanceId", r->adapter);
        jsonw_str(b, "platform", r->platform);
        jsonw_str(b, "platformUserId", r->sender);
        jsonw_str(b, "name", r->name);
        if (r->rule > 0)
                row_json_id(b, "ruleId", "acr-", r->rule);
        else
                jsonw_null(b, "ruleId");
        row_json_time(b, "createdAt", r->created_ms);
        row_json_time(b, "expiresAt", r->decided_ms ? 0 : r->expires_ms);
        row_json_time(b, "decidedAt", r->decided_ms);
        jsonw_str(b, "by", r->by);
        jsonw_close(b, '}');
}

static int read_list(struct store_tx *tx, struct read_job *j, struct error *err)
{
        const struct pairing_ask *ask = j->query;
        struct store_stmt *s = pairing_row_list(tx, ask->before, ask->limit + 1, clock_wall_ms());
        struct pairing r;
        struct page p;
        int rc;

        page_begin(&p, &j->json, ask->limit);
        while ((rc = pairing_row_next(s, &r, err)) == 1) {
                if (page_add(&p, r.id))
                        write_pairing(&j->json, &r);
        }
        if (rc < 0)
                return -1;
        page_end(&p, "pair-");
        return 0;
}

static void list(struct http_exchange *x)
{
        struct pairing_ask ask = { .limit = 50, .before = INT64_MAX };

        read_job_list(x, &ask, sizeof(ask), read_list);
}

/* ---- deciding ---- */

static void on_decided(void *arg, const struct pairing *r, const struct error *err)
{
        struct write_job *j = arg;

        if (!err)
                write_pairing(&j->data, r);
        write_job_done(j, err);
}

static void decide(struct http_exchange *x, bool deny)
{
        struct pairing_verdict_ask ask = { 0 };
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        if (ask.until_ms != 0 && ask.until_ms <= clock_wall_ms()) {
                body_mistake(&b, "until", "is not in the future");
                reply_mistakes(x, &b);
        } else {
                pairing_decide(pairing_of(x),
                               &(struct pairing_verdict){ .deny = deny,
                                                          .code = ask.code,
                                                          .by = caller_name(x),
                                                          .expires_ms = ask.until_ms },
                               on_decided, write_job_new(x, 200));
        }
        body_release(&b);
}

static void approve(struct http_exchange *x)
{
        decide(x, false);
}

static void deny(struct http_exchange *x)
{
        decide(x, true);
}

static void on_revoked(void *arg, const struct pairing *r, const struct error *err)
{
        struct write_job *j = arg;

        jsonw_open(&j->data, '{');
        row_json_id(&j->data, "id", "pair-", r->id);
        jsonw_str(&j->data, "state", "revoked");
        jsonw_close(&j->data, '}');
        write_job_done(j, err);
}

static void revoke_pairing(struct http_exchange *x)
{
        int64_t id = request_id(x, "pair-", "pairing");

        if (id >= 0)
                pairing_revoke(pairing_of(x), id, on_revoked, write_job_new(x, 200));
}

const struct route pairing_routes[] = {
        { "GET", "/api/v2/pairing", SCOPE_READ, list, REACH_ALL,
          .summary = "Strangers waiting with a code, and earlier decisions; newest first.",
          .query = pairing_query, .status = 200,
          .answer = ROUTE_PAGE " of {\"id\", \"code\", \"state\": \"waiting\", \"approved\" or "
                               "\"denied\", \"instanceId\", \"platformUserId\", \"name\", "
                               "\"ruleId\", ...}." },
        { "POST", "/api/v2/pairing/approve", SCOPE_ADMIN, approve, REACH_ALL,
          .summary = "Admit the stranger with this code: creates an access rule for their direct "
                     "messages.",
          .body = approve_fields, .status = 200, .answer = "{\"data\": pairing}",
          .example = ROUTE_JSON({ "code" : "ABCD-2345" }) },
        { "POST", "/api/v2/pairing/deny", SCOPE_ADMIN, deny, REACH_ALL,
          .summary = "Deny the stranger with this code.", .body = deny_fields, .status = 200,
          .answer = "{\"data\": pairing}", .example = ROUTE_JSON({ "code" : "ABCD-2345" }) },
        { "DELETE", "/api/v2/pairing/:id", SCOPE_ADMIN, revoke_pairing, REACH_ALL,
          .summary = "Revoke a decision with its access rule, or a waiting code.", .status = 200,
          .answer = "{\"data\": {\"id\", \"state\": \"revoked\"}}" },
        ROUTE_END,
};
