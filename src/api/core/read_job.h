/*
 * read_job: answers a request from the store. The reader thread writes the response, the loop sends
 * it.
 */
#ifndef API_CORE_READ_JOB_H
#define API_CORE_READ_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "api/core/page.h"
#include "api/core/request.h"
#include "store/store.h"

struct read_job;
/* Writes the whole response body to j->json. */
typedef int read_job_fn(struct store_tx *tx, struct read_job *j, struct error *err);

struct read_job {
        struct api_job job;
        struct body body; /* owns the strings of the query */
        struct buf json;  /* the answer */
        read_job_fn *fn;
        struct key *caller; /* a reference: lists show only what it reaches */
        void *query;        /* allocated after the struct */
        int64_t id;         /* of read_job_show */
};

/* Reads the query by the route's table into a copy of `defaults`, then runs fn. */
void read_job_list(struct http_exchange *x, const void *defaults, size_t size, read_job_fn *fn);
/* Reads ":id" of the path, then runs fn. */
void read_job_show(struct http_exchange *x, const char *prefix, const char *what, read_job_fn *fn);

/* The two steps of read_job_list. NULL: answered with 400. */
struct read_job *read_job_new(struct http_exchange *x, const void *defaults, size_t size);
/* Takes j. */
void read_job_run(struct read_job *j, read_job_fn *fn);

#endif
