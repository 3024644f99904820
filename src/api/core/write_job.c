/* Changes that are written first and answered when they are committed. */
#include <stdlib.h>

#include "api/core/api_private.h"
#include "base/mem.h"

void amend_init(struct amend *c, struct http_exchange *x, int status)
{
        job_begin(&c->job, x);
        c->status = status;
        buf_init(&c->data, 0);
}

struct amend *amend_begin(struct http_exchange *x, int status)
{
        struct amend *c = mem_zalloc(sizeof(*c));

        amend_init(c, x, status);
        return c;
}

void amend_done(void *amend, const struct error *err)
{
        struct amend *c = amend;
        struct http_exchange *x = job_end(&c->job);

        if (x && err)
                reply_failed(x, err);
        else if (x)
                reply_data(x, c->status, &c->data);
        buf_release(&c->data);
        free(c);
}
