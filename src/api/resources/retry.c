#include "api/resources/retry.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/core/request.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/road.h"
#include "rows/delivery_row.h"
#include "rows/turn_row.h"
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
        bool is_turn;
        int64_t number;
        char id[40];
        const char *status; /* on success */
        struct error refusal;
        bool known;
};

static int find(struct store_tx *tx, void *arg, struct error *err)
{
        struct retry_job *j = arg;
        struct delivery_row *delivery = NULL;
        struct turn_row *turn = NULL;
        int rc = j->is_turn ? turn_row_get(tx, j->number, &turn, err)
                            : delivery_row_get(tx, j->number, &delivery, err);

        j->known = rc == 1;
        free(turn);
        free(delivery);
        return rc < 0 ? -1 : 0;
}

static void on_found(void *arg, const struct error *err)
{
        struct retry_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && err)
                reply_failed(x, err);
        else if (x && !j->known)
                reply_missing(x, j->is_turn ? "turn" : "delivery", j->id);
        else if (x)
                reply_error(x, 409, "CONFLICT", NULL, "%s", j->refusal.text);
        free(j);
}

/* The road refuses missing rows and those in the wrong state alike: find out which. */
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

static struct retry_job *job_new(struct http_exchange *x, bool is_turn, int64_t number,
                                 const char *status)
{
        struct retry_job *j = mem_zalloc(sizeof(*j));

        api_job_begin(&j->job, x);
        j->is_turn = is_turn;
        j->number = number;
        snprintf(j->id, sizeof(j->id), "%s%lld", is_turn ? "trn-" : "dlv-", (long long)number);
        j->status = status;
        return j;
}

void retry_delivery(struct http_exchange *x, int64_t id, bool force)
{
        outbox_retry(api_of(x)->env.road, id, force, on_changed, job_new(x, false, id, "queued"));
}

void retry_turn(struct http_exchange *x, int64_t id)
{
        turn_retry(api_of(x)->env.road, id, on_changed, job_new(x, true, id, "queued"));
}

void retry_cancel_turn(struct http_exchange *x, int64_t id, const char *why)
{
        turn_cancel(api_of(x)->env.road, id, why, on_changed, job_new(x, true, id, "cancelled"));
}
