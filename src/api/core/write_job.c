#include "api/core/write_job.h"

#include <stdlib.h>

#include "base/mem.h"

void write_job_init(struct write_job *j, struct http_exchange *x, int status)
{
        api_job_begin(&j->job, x);
        j->status = status;
        buf_init(&j->data, 0);
}

struct write_job *write_job_new(struct http_exchange *x, int status)
{
        struct write_job *j = mem_zalloc(sizeof(*j));

        write_job_init(j, x, status);
        return j;
}

void write_job_done(void *write_job, const struct error *err)
{
        struct write_job *j = write_job;
        struct http_exchange *x = api_job_end(&j->job);

        if (x && err)
                reply_failed(x, err);
        else if (x)
                reply_data(x, j->status, &j->data);
        buf_release(&j->data);
        free(j);
}
