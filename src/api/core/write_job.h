/*
 * write_job: a change, answered once committed.
 */
#ifndef API_CORE_WRITE_JOB_H
#define API_CORE_WRITE_JOB_H

#include "api/core/request.h"

struct write_job {
        struct api_job job;
        int status;
        struct buf data; /* for {"data": data}; fill it before write_job_done */
};

struct write_job *write_job_new(struct http_exchange *x, int status);
/* First member of a struct, malloc'd as a whole. */
void write_job_init(struct write_job *j, struct http_exchange *x, int status);
/* A store_done_fn: answers and frees the job. */
void write_job_done(void *write_job, const struct error *err);

#endif
