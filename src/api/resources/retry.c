#include "api/resources/retry.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/core/api_private.h"
#include "base/jsonw.h"
#include "base/mem.h"

struct retry_ask {
        bool force;
};

/* clang-format off */
const struct field retry_fields[] = {
        { "force", FIELD_BOOL, .at = offsetof(struct retry_ask, force), .fallback = "false",
          .help = "Also when it is not known whether it arrived: it may then arrive twice." },
        FIELD_END,
};
/* clang-format on */

/* What can be put back or stopped. */
struct subject {
        const char *name, *prefix;
        const char *find; /* one row when there is one with this number */
};

static const struct subject a_delivery = { "delivery", "dlv-",
                                           "SELECT 1 FROM deliveries WHERE id = ?1" };
static const struct subject a_turn = { "turn", "trn-", "SELECT 1 FROM turns WHERE id = ?1" };

struct change {
        struct api_job job;
        const struct subject *subject;
        int64_t number;
        char id[40];
        const char *status;
        struct error refusal;
        bool known;
};

static void answer_changed(struct http_exchange *x, const struct change *c)
{
        struct buf data;

        buf_init(&data, 0);
        jsonw_open(&data, '{');
        jsonw_str(&data, "id", c->id);
        jsonw_str(&data, "status", c->status);
        jsonw_close(&data, '}');
        reply_data(x, 202, &data);
}

static int find(struct store_tx *tx, void *arg, struct error *err)
{
        struct change *c = arg;
        struct store_stmt *s = store_prepare(tx, c->subject->find);
        int rc;

        store_bind_int(s, 1, c->number);
        rc = store_step(s, err);
        c->known = rc == 1;
        if (c->known)
                store_reset(s);
        return rc < 0 ? -1 : 0;
}

static void on_found(void *arg, const struct error *err)
{
        struct change *c = arg;
        struct http_exchange *x = api_job_end(&c->job);

        if (x && err)
                reply_failed(x, err);
        else if (x && !c->known)
                reply_missing(x, c->subject->name, c->id);
        else if (x)
                reply_error(x, 409, "CONFLICT", NULL, "%s", c->refusal.text);
        free(c);
}

/* The road refuses what it cannot do, whether or not there is such a thing: the rows tell which. */
static void on_changed(void *arg, const struct error *err)
{
        struct change *c = arg;
        struct http_exchange *x;

        if (err && c->job.api && (err->kind == ERR_CONFLICT || err->kind == ERR_MISSING)) {
                c->refusal = *err;
                store_read(c->job.api->env.store, find, on_found, c);
                return;
        }
        x = api_job_end(&c->job);
        if (x && err)
                reply_failed(x, err);
        else if (x)
                answer_changed(x, c);
        free(c);
}

static struct change *change_new(struct http_exchange *x, const struct subject *subject,
                                 int64_t number, const char *status)
{
        struct change *c = mem_zalloc(sizeof(*c));

        api_job_begin(&c->job, x);
        c->subject = subject;
        c->number = number;
        snprintf(c->id, sizeof(c->id), "%s%lld", subject->prefix, (long long)number);
        c->status = status;
        return c;
}

int retry_read(struct http_exchange *x, bool *force)
{
        struct retry_ask ask = { 0 };
        struct body b;

        if (request_body(x, &b, &ask) < 0)
                return -1;
        body_release(&b);
        *force = ask.force;
        return 0;
}

void retry_delivery(struct http_exchange *x, int64_t id, bool force)
{
        outbox_retry(api_of(x)->env.road, id, force, on_changed,
                     change_new(x, &a_delivery, id, "queued"));
}

void retry_turn(struct http_exchange *x, int64_t id)
{
        turn_retry(api_of(x)->env.road, id, on_changed, change_new(x, &a_turn, id, "queued"));
}

void cancel_turn(struct http_exchange *x, int64_t id, const char *why)
{
        turn_cancel(api_of(x)->env.road, id, why, on_changed,
                    change_new(x, &a_turn, id, "cancelled"));
}
