/* Strangers with a code, and the operator's word about them. */
#include "dispatch/access/pairing.h"

#include <stdlib.h>

#include "api/core/api_private.h"
#include "base/clock.h"
#include "base/human_code.h"
#include "base/jsonw.h"
#include "dispatch/dispatch.h"
#include "road/report/row_json.h"

struct pairing_ask {
        int64_t limit, before;
};

struct word_ask {
        const char *code;
        int64_t until_ms;
};

/* clang-format off */
const struct field pairing_query[] = {
        { "cursor", FIELD_ID, .prefix = "pair-", .at = offsetof(struct pairing_ask, before), .help = "meta.cursor of the page before." },
        { "limit", FIELD_INT, .min = 1, .max = 100, .at = offsetof(struct pairing_ask, limit), .fallback = "50",
          .help = "How many at most." },
        FIELD_END,
};
#define CODE_FIELD                                                                                             \
        { "code", FIELD_STRING, .required = true, .min = 8, .max = 20, .at = offsetof(struct word_ask, code),   \
          .help = "What the stranger was told; case, spaces and dashes do not count." }
const struct field approve_fields[] = {
        CODE_FIELD,
        { "until", FIELD_TIME, .at = offsetof(struct word_ask, until_ms), .help = "How long he is let in; absent: until it is revoked." },
        FIELD_END,
};
const struct field deny_fields[] = { CODE_FIELD, FIELD_END };
/* clang-format on */

static struct pairings *pairing_of(const struct http_exchange *x)
{
        return dispatch_policy(api_of(x)->env.dispatch)->pairing;
}

static void show(struct buf *b, const struct pairing *r)
{
        char shown[HUMAN_CODE_TEXT_SIZE];

        jsonw_open(b, '{');
        show_id(b, "id", "pair-", r->id);
        jsonw_str(b, "state", r->state);
        jsonw_str(b, "code", r->code ? human_code_format(r->code, shown) : NULL);
        jsonw_str(b, "instanceId", r->adapter);
        jsonw_str(b, "platform", r->platform);
        jsonw_str(b, "platformUserId", r->sender);
        jsonw_str(b, "name", r->name);
        if (r->rule > 0)
                show_id(b, "ruleId", "acr-", r->rule);
        else
                jsonw_null(b, "ruleId");
        show_time(b, "createdAt", r->created_ms);
        show_time(b, "expiresAt", r->decided_ms ? 0 : r->expires_ms);
        show_time(b, "decidedAt", r->decided_ms);
        jsonw_str(b, "by", r->by);
        jsonw_close(b, '}');
}

/* ---- the list ---- */

struct listing {
        struct buf *json;
        int64_t left, last;
        bool more;
};

static void add(void *arg, const struct pairing *r)
{
        struct listing *l = arg;

        l->more = l->left == 0;
        if (l->more)
                return;
        l->left--;
        l->last = r->id;
        show(l->json, r);
}

static int list(struct store_tx *tx, struct read_job *l, struct error *err)
{
        const struct pairing_ask *ask = l->query;
        struct listing all = { .json = &l->json, .left = ask->limit };
        char cursor[40];

        page_begin(&l->json);
        if (pairing_each(tx, ask->before, ask->limit + 1, add, &all, err) < 0)
                return -1;
        snprintf(cursor, sizeof(cursor), "pair-%lld", (long long)all.last);
        page_end(&l->json, all.more, all.last > 0 ? cursor : NULL);
        return 0;
}

void pairing_list(struct http_exchange *x)
{
        struct pairing_ask ask = { .limit = 50, .before = INT64_MAX };
        struct read_job *l = read_job_new(x, &ask, sizeof(ask));

        if (l)
                read_job_run(l, list);
}

/* ---- the operator's word ---- */

static void on_word(void *arg, const struct pairing *r, const struct error *err)
{
        struct write_job *c = arg;

        if (!err)
                show(&c->data, r);
        write_job_done(c, err);
}

static void decide(struct http_exchange *x, bool deny)
{
        struct word_ask ask = { 0 };
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return;
        if (ask.until_ms != 0 && ask.until_ms <= clock_wall_ms()) {
                body_mistake(&b, "until", "is not in the future");
                reply_mistakes(x, &b);
        } else {
                pairing_decide(pairing_of(x),
                               &(struct pairing_decision){ .deny = deny,
                                                           .code = ask.code,
                                                           .by = caller_name(x),
                                                           .expires_ms = ask.until_ms },
                               on_word, write_job_new(x, 200));
        }
        body_release(&b);
}

void pairing_approve(struct http_exchange *x)
{
        decide(x, false);
}

void pairing_deny(struct http_exchange *x)
{
        decide(x, true);
}

static void on_withdrawn(void *arg, const struct pairing *r, const struct error *err)
{
        struct write_job *c = arg;

        jsonw_open(&c->data, '{');
        show_id(&c->data, "id", "pair-", r->id);
        jsonw_str(&c->data, "state", "revoked");
        jsonw_close(&c->data, '}');
        write_job_done(c, err);
}

void pairing_withdraw(struct http_exchange *x)
{
        int64_t id = request_id(x, "pair-", "pairing");

        if (id >= 0)
                pairing_revoke(pairing_of(x), id, on_withdrawn, write_job_new(x, 200));
}
