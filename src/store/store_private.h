/*
 * What the files of the store's front end share. For the store alone.
 *
 *      store.c           opening, closing, submitting
 *      store_job.c       jobs and their completions
 *      store_worker.c    the writer and reader threads
 *      store_tx.c        a connection with its statements
 *      store_health.c    trouble and damage
 *      store_backup.c    a copy of the database while it is in use
 *      store_migrate.c   the steps of the schema
 *
 * A job is created, completed and freed on the loop thread; in between it belongs to one worker.
 */
#ifndef STORE_STORE_PRIVATE_H
#define STORE_STORE_PRIVATE_H

#include <pthread.h>
#include <sys/queue.h>
#include <uv.h>

#include "store/store.h"
#include "store/store_tx.h"

struct store_job {
        store_fn *fn;
        store_done_fn *done;
        void *arg;
        struct error *err;           /* NULL: it worked */
        struct store_waiter *waiter; /* blocks for it, instead of a completion on the loop */
        STAILQ_ENTRY(store_job) next;
};
STAILQ_HEAD(store_jobs, store_job);

struct store_worker {
        struct store *store;
        const char *name; /* of the thread, as top and perf show it */
        void (*run)(struct store_worker *w, struct store_jobs *taken);
        struct store_tx tx;
        pthread_t thread;
        bool running;

        pthread_mutex_t lock; /* guards what follows */
        pthread_cond_t wake;
        struct store_jobs queue;
        size_t unfinished; /* queued or running */
        bool asleep, stopping;
};

struct store {
        struct loop *loop; /* NULL for tools that only use the _now calls */
        const struct store_driver *driver;
        struct store_options options; /* its strings are ours */
        struct store_worker writer, reader;
        struct store_job **batch; /* the writer's, max_batch of them */
        struct store_backup *backup;
        bool closing;
        bool completing; /* completions are running */

        uv_poll_t finished_wake; /* keeps the loop alive while pending > 0 */
        int finished_fd;         /* an eventfd, see store_jobs_wake */
        size_t pending;          /* jobs whose completion has not run; the loop's */
        pthread_mutex_t lock;    /* guards what follows */
        struct store_jobs finished;
        struct store_health health;
        struct error damage; /* kind ERR_NONE: none was found */
};

/* --- store_job.c --- */

struct store_job *store_job_new(store_fn *fn, store_done_fn *done, void *arg);
void store_job_fail(struct store_job *j, const struct error *err);
/* On the loop: keeps it alive until one more completion has run. */
void store_jobs_expect(struct store *s);
/* Any thread: completes finished jobs in this order; they are no longer the caller's. */
void store_jobs_finish(struct store *s, struct store_job **jobs, size_t n);
/* On the loop: runs the completions of finished jobs. */
void store_jobs_complete(struct store *s);
/* Any thread: makes the loop look after completions and the backup. */
void store_jobs_wake(struct store *s);
/* Prepares the loop for that. */
void store_jobs_listen(struct store *s);

/* Blocks a thread until a job is done. */
struct store_waiter {
        pthread_mutex_t lock;
        pthread_cond_t wake;
        bool done;
};
void store_job_wait(struct store_waiter *w);

/* --- store_worker.c --- */

void store_worker_init(struct store_worker *w, struct store *s, bool writes);
int store_worker_start(struct store_worker *w, struct error *err);
/* Returns when everything that was queued is done. Fine if it never started. */
void store_worker_stop(struct store_worker *w);
void store_worker_release(struct store_worker *w);
/* ERR_LIMIT if too many jobs are queued. */
int store_worker_push(struct store_worker *w, struct store_job *j, struct error *err);
/* Opens the reader's connection unless it is open. */
int store_worker_connect(struct store_worker *reader, struct error *err);
int store_worker_thread(pthread_t *thread, void *(*fn)(void *), void *arg, struct error *err);

/* --- store_health.c, any thread --- */

void store_health_committed(struct store *s, size_t writes, int64_t took_us);
void store_health_failed(struct store *s, const struct error *err);
/* Damage was found: ends all writing. Logged once. */
void store_health_damaged(struct store *s, const struct error *err);
/* Was damage found? Then sets *err. */
bool store_health_is_damaged(struct store *s, struct error *err);

/* --- store_backup.c --- */

/* On the loop, after a wake-up: reports progress, and ends a finished backup. */
void store_backup_look(struct store *s);
/* Gives up the running backup, if any. */
void store_backup_cancel(struct store *s);

#endif
