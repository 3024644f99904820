#include "api/retry.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/api_private.h"
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

struct change {
        struct job job;
        char id[40];
        const char *status;
};

static void on_changed(void *arg, const struct error *err)
{
        struct change *c = arg;
        struct http_exchange *x = job_end(&c->job);
        struct buf data;

        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                buf_init(&data, 0);
                jsonw_open(&data, '{');
                jsonw_str(&data, "id", c->id);
                jsonw_str(&data, "status", c->status);
                jsonw_close(&data, '}');
                reply_data(x, 202, &data);
        }
        free(c);
}

static struct change *change_new(struct http_exchange *x, const char *prefix, int64_t id, const char *status)
{
        struct change *c = mem_zalloc(sizeof(*c));

        job_begin(&c->job, x);
        snprintf(c->id, sizeof(c->id), "%s%lld", prefix, (long long)id);
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
        outbox_retry(api_of(x)->env.road, id, force, on_changed, change_new(x, "dlv-", id, "queued"));
}

void retry_turn(struct http_exchange *x, int64_t id)
{
        turn_retry(api_of(x)->env.road, id, on_changed, change_new(x, "trn-", id, "queued"));
}

void cancel_turn(struct http_exchange *x, int64_t id, const char *why)
{
        turn_cancel(api_of(x)->env.road, id, why, on_changed, change_new(x, "trn-", id, "cancelled"));
}
