/* Changes that are written first and answered when they are committed. */
#include <stdlib.h>

#include "api/core/api_private.h"
#include "base/mem.h"

void write_job_init(struct write_job *c, struct http_exchange *x, int status)
{
        api_job_begin(&c->job, x);
        c->status = status;
        buf_init(&c->data, 0);
}

struct write_job *write_job_new(struct http_exchange *x, int status)
{
        struct write_job *c = mem_zalloc(sizeof(*c));

        write_job_init(c, x, status);
        return c;
}

void write_job_done(void *amend, const struct error *err)
{
        struct write_job *c = amend;
        struct http_exchange *x = api_job_end(&c->job);

        if (x && err)
                reply_failed(x, err);
        else if (x)
                reply_data(x, c->status, &c->data);
        buf_release(&c->data);
        free(c);
}
