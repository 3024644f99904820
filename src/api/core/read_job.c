/*
 * Jobs, and among them questions to the store: the reader's thread writes the answer, the loop
 * sends it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/api_private.h"
#include "base/jsonw.h"
#include "base/mem.h"

void api_job_begin(struct api_job *j, struct http_exchange *x)
{
        struct api *a = api_of(x);

        *j = (struct api_job){ .api = a, .x = x, .next = a->jobs };
        if (a->jobs)
                a->jobs->prev = j;
        a->jobs = j;
}

struct http_exchange *api_job_end(struct api_job *j)
{
        struct http_exchange *x = j->x;

        if (!j->api)
                return NULL;
        if (j->prev)
                j->prev->next = j->next;
        else
                j->api->jobs = j->next;
        if (j->next)
                j->next->prev = j->prev;
        *j = (struct api_job){ 0 };
        return x;
}

struct read_job *read_job_new(struct http_exchange *x, const void *defaults, size_t size)
{
        struct read_job *l = mem_zalloc(sizeof(*l) + size);

        l->query = l + 1;
        if (size > 0)
                memcpy(l->query, defaults, size);
        if (request_query(x, &l->body, l->query) < 0) {
                free(l);
                return NULL;
        }
        buf_init(&l->json, 0);
        l->caller = key_ref(caller_of(x));
        api_job_begin(&l->job, x);
        return l;
}

static int on_reader(struct store_tx *tx, void *arg, struct error *err)
{
        struct read_job *l = arg;

        buf_clear(&l->json);
        return l->fn(tx, l, err);
}

static void on_looked(void *arg, const struct error *err)
{
        struct read_job *l = arg;
        struct http_exchange *x = api_job_end(&l->job);

        if (x && err)
                reply_failed(x, err);
        else if (x)
                reply_json(x, 200, &l->json);
        buf_release(&l->json);
        body_release(&l->body);
        key_unref(l->caller);
        free(l);
}

void read_job_run(struct read_job *l, read_job_fn *fn)
{
        l->fn = fn;
        store_read(l->job.api->env.store, on_reader, on_looked, l);
}

void page_begin(struct buf *b)
{
        jsonw_open(b, '{');
        jsonw_open_member(b, "items", '[');
}

void page_end(struct buf *b, bool more, const char *cursor)
{
        jsonw_close(b, ']');
        jsonw_open_member(b, "meta", '{');
        jsonw_bool(b, "hasMore", more);
        jsonw_str(b, "cursor", cursor);
        jsonw_close(b, '}');
        jsonw_close(b, '}');
}

int page_rows(struct buf *b, struct store_stmt *s, int64_t limit, const char *prefix,
              page_row_fn *row, struct error *err)
{
        int64_t count = 0, last = 0;
        char id[40];
        int rc;

        page_begin(b);
        while ((rc = store_step(s, err)) == 1 && count < limit) {
                count++;
                last = store_col_int(s, 0);
                row(b, NULL, s);
        }
        if (rc == 1)
                store_reset(s);
        snprintf(id, sizeof(id), "%s-%lld", prefix, (long long)last);
        page_end(b, rc == 1, last > 0 ? id : NULL);
        return rc < 0 ? -1 : 0;
}
