#include "api/resources/retry.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/core/request.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road.h"
#include "store/store.h"

struct retry_ask {
        bool force;
};

const struct field retry_fields[] = {
        { "force", FIELD_BOOL, FIELD_AT(retry_ask, force), .fallback = "false",
          .help = "Also when it is not known whether it arrived: it may then arrive twice." },
        FIELD_END,
};

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

struct retry_job {
        struct api_job job;
        const char *type; /* "turn", "delivery" */
        const char *find; /* finds a row by number */
        int64_t number;
        char id[40];
        const char *status; /* when it worked */
        struct error refusal;
        bool known;
};

static int find(struct store_tx *tx, void *arg, struct error *err)
{
        struct retry_job *j = arg;
        struct store_stmt *s = store_prepare(tx, j->find);
        int rc;

        store_bind_int(s, 1, j->number);
        rc = store_step(s, err);
        j->known = rc == 1;
        if (j->known)
                store_reset(s);
        return rc < 0 ? -1 : 0;
}

static void on_found(void *arg, const struct error *err)
{
        struct retry_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && err)
                reply_failed(x, err);
        else if (x && !j->known)
                reply_missing(x, j->type, j->id);
        else if (x)
                reply_error(x, 409, "CONFLICT", NULL, "%s", j->refusal.text);
        free(j);
}

/* The road refuses a missing row like one in the wrong state: look which it is. */
static void on_changed(void *arg, const struct error *err)
{
        struct retry_job *j = arg;
        struct http_exchange *x;
        struct buf data;

        if (err && j->job.api && (err->kind == ERR_CONFLICT || err->kind == ERR_MISSING)) {
                j->refusal = *err;
                store_read(j->job.api->env.store, find, on_found, j);
                return;
        }
        x = api_job_end(&j->job);
        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                buf_init(&data, 0);
                jsonw_open(&data, '{');
                jsonw_str(&data, "id", j->id);
                jsonw_str(&data, "status", j->status);
                jsonw_close(&data, '}');
                reply_data(x, 202, &data);
        }
        free(j);
}

static struct retry_job *delivery_job(struct http_exchange *x, int64_t number)
{
        struct retry_job *j = mem_zalloc(sizeof(*j));

        api_job_begin(&j->job, x);
        j->type = "delivery";
        j->find = "SELECT 1 FROM deliveries WHERE id = ?1";
        j->number = number;
        snprintf(j->id, sizeof(j->id), "dlv-%lld", (long long)number);
        j->status = "queued";
        return j;
}

static struct retry_job *turn_job(struct http_exchange *x, int64_t number, const char *status)
{
        struct retry_job *j = mem_zalloc(sizeof(*j));

        api_job_begin(&j->job, x);
        j->type = "turn";
        j->find = "SELECT 1 FROM turns WHERE id = ?1";
        j->number = number;
        snprintf(j->id, sizeof(j->id), "trn-%lld", (long long)number);
        j->status = status;
        return j;
}

void retry_delivery(struct http_exchange *x, int64_t id, bool force)
{
        outbox_retry(api_of(x)->env.road, id, force, on_changed, delivery_job(x, id));
}

void retry_turn(struct http_exchange *x, int64_t id)
{
        turn_retry(api_of(x)->env.road, id, on_changed, turn_job(x, id, "queued"));
}

void retry_cancel_turn(struct http_exchange *x, int64_t id, const char *why)
{
        turn_cancel(api_of(x)->env.road, id, why, on_changed, turn_job(x, id, "cancelled"));
}
