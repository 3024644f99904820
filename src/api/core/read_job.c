#include "api/core/read_job.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct read_job *read_job_new(struct http_exchange *x, const void *defaults, size_t size)
{
        struct read_job *j = mem_zalloc(sizeof(*j) + size);

        j->query = j + 1;
        if (size > 0)
                memcpy(j->query, defaults, size);
        if (request_query(x, &j->body, j->query) < 0) {
                free(j);
                return NULL;
        }
        buf_init(&j->json, 0);
        j->caller = key_ref(caller_of(x));
        api_job_begin(&j->job, x);
        return j;
}

static int on_reader(struct store_tx *tx, void *arg, struct error *err)
{
        struct read_job *j = arg;

        buf_clear(&j->json);
        return j->fn(tx, j, err);
}

static void on_read(void *arg, const struct error *err)
{
        struct read_job *j = arg;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && err)
                reply_failed(x, err);
        else if (x)
                reply_json(x, 200, &j->json);
        buf_release(&j->json);
        body_release(&j->body);
        key_unref(j->caller);
        free(j);
}

void read_job_run(struct read_job *j, read_job_fn *fn)
{
        j->fn = fn;
        store_read(j->job.api->env.store, on_reader, on_read, j);
}

void read_job_list(struct http_exchange *x, const void *defaults, size_t size, read_job_fn *fn)
{
        struct read_job *j = read_job_new(x, defaults, size);

        if (j)
                read_job_run(j, fn);
}

void read_job_show(struct http_exchange *x, const char *prefix, const char *what, read_job_fn *fn)
{
        int64_t id = request_id(x, prefix, what);
        struct read_job *j = id < 0 ? NULL : read_job_new(x, NULL, 0);

        if (!j)
                return;
        j->id = id;
        read_job_run(j, fn);
}
