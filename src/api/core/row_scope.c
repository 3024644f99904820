#include <stdlib.h>
#include <string.h>

#include "api/core/request.h"
#include "base/mem.h"
#include "rows/approval_row.h"
#include "rows/calendar_row.h"
#include "rows/delivery_row.h"
#include "rows/journal_row.h"
#include "rows/schedule_row.h"
#include "rows/turn_row.h"
#include "store/store.h"

struct row_scope_job {
        struct api_job job;
        row_scope_fn *fn;
        char *id;
        struct buf adapters; /* result */
        int found;
};

static int on_reader(struct store_tx *tx, void *arg, struct error *err)
{
        struct row_scope_job *j = arg;

        buf_clear(&j->adapters);
        j->found = j->fn(tx, j->id, &j->adapters, err);
        return j->found < 0 ? -1 : 0;
}

/* Comma-separated; false for none. */
static bool reaches_each(const struct key *k, const char *names)
{
        const char *p = names;

        while (*p) {
                size_t n = strcspn(p, ",");
                char *name = mem_strndup(p, n);
                bool ok = key_reaches(k, name);

                free(name);
                if (!ok)
                        return false;
                p += n + (p[n] == ',');
        }
        return p > names;
}

static void on_read(void *arg, const struct error *err)
{
        struct row_scope_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && err && err->kind != ERR_MISSING)
                reply_failed(x, err);
        else if (x && (err || j->found == 0 || !reaches_each(caller_of(x), j->adapters.data)))
                reply_missing(x, "row", j->id);
        else if (x)
                request_run(x);
        buf_release(&j->adapters);
        free(j->id);
        free(j);
}

void row_scope_run(struct http_exchange *x)
{
        const char *id = http_param(x, "id");
        struct row_scope_job *j;

        if (!caller_of(x)->adapters || api_of(x)->closed) {
                request_run(x);
                return;
        }
        j = mem_zalloc(sizeof(*j));
        j->fn = request_route(x)->row_scope;
        j->id = mem_strdup(id ? id : "");
        buf_init(&j->adapters, 0);
        api_job_begin(&j->job, x);
        store_read(api_of(x)->env.store, on_reader, on_read, j);
}

/* ---- adapters of a row ---- */

int row_scope_turn(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err)
{
        int64_t n = field_id("trn-", id);
        struct turn_row *row = NULL;
        int rc = n < 0 ? 0 : turn_row_get(tx, n, &row, err);

        if (rc == 1 && !row->adapter)
                rc = 0; /* its conversation is gone */
        if (rc == 1)
                buf_addstr(adapter, row->adapter);
        free(row);
        return rc;
}

int row_scope_delivery(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err)
{
        int64_t n = field_id("dlv-", id);
        struct delivery_row *row = NULL;
        int rc = n < 0 ? 0 : delivery_row_get(tx, n, &row, err);

        if (rc == 1)
                buf_addstr(adapter, row->adapter);
        free(row);
        return rc;
}

int row_scope_approval(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err)
{
        int64_t n = field_id("apr-", id);
        struct approval_row *row = NULL;
        int rc = n < 0 ? 0 : approval_row_get(tx, n, &row, err);

        if (rc == 1)
                buf_addstr(adapter, row->adapter);
        free(row);
        return rc;
}

/* One that is for a person, wherever they are, is closed to restricted keys. */
int row_scope_schedule(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err)
{
        int64_t n = field_id("sch-", id);
        struct schedule_row *row = NULL;
        int rc = n < 0 ? 0 : schedule_row_get(tx, n, &row, err);

        if (rc == 1)
                buf_addstr(adapter, row->adapter ? row->adapter : "");
        free(row);
        return rc;
}

/* One without a chat is closed to restricted keys. */
int row_scope_calendar(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err)
{
        int64_t n = field_id("cal-", id);
        struct calendar_event_row *row = NULL;
        int rc = n < 0 ? 0 : calendar_row_get(tx, n, &row, err);

        if (rc == 1)
                buf_addstr(adapter, row->adapter ? row->adapter : "");
        free(row);
        return rc;
}

int row_scope_event(struct store_tx *tx, const char *id, struct buf *adapter, struct error *err)
{
        int64_t seq = field_id("evt-", id);
        struct journal_row *e;
        int rc = seq < 0 ? 0 : journal_row_get(tx, seq, &e, err);

        if (rc != 1)
                return rc;
        buf_addstr(adapter, e->adapter ? e->adapter : "");
        free(e);
        return 1;
}

int row_scope_dead_letter(struct store_tx *tx, const char *id, struct buf *adapter,
                          struct error *err)
{
        return strncmp(id, "trn-", 4) == 0 ? row_scope_turn(tx, id, adapter, err)
                                           : row_scope_delivery(tx, id, adapter, err);
}
