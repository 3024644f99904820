/*
 * What the files of the store's front end share. Inside the store room only.
 *
 *      store.c        opening, closing, asking, the reader
 *      store_job.c    jobs, and how their ends come back to whoever waits
 *      worker.c       a thread with a queue
 *      writer.c       what the writer does with its queue: one transaction for all that waits
 *      health.c       how it is
 *      backup.c       a copy of the database while everything goes on
 *
 * A job is made, completed and freed on the loop thread; in between it belongs to one worker.
 */
#ifndef STORE_STORE_PRIVATE_H
#define STORE_STORE_PRIVATE_H

#include <pthread.h>
#include <sys/queue.h>
#include <uv.h>

#include "store/store.h"
#include "store/store_tx.h"

struct waiter;
struct backup;

struct job {
        store_fn *fn;
        store_done_fn *done;
        void *arg;
        struct error *err;     /* NULL: it worked */
        struct waiter *waiter; /* told instead of the loop */
        STAILQ_ENTRY(job) next;
};
STAILQ_HEAD(jobs, job);

struct worker {
        struct store *store;
        const char *name; /* of the thread, as top and perf show it */
        void (*run)(struct worker *w, struct jobs *taken);
        struct store_tx tx;
        pthread_t thread;
        bool running;

        pthread_mutex_t lock; /* guards what follows */
        pthread_cond_t wake;
        struct jobs queue;
        size_t unfinished; /* waiting or being worked on */
        bool asleep, stopping;
};

struct store {
        struct loop *loop; /* NULL for tools that only use the _now calls */
        const struct store_driver *driver;
        struct store_options options; /* its strings are ours */
        struct worker writer, reader;
        struct job **batch; /* the writer's, max_batch of them */
        struct backup *backup;
        bool closing;
        bool completing; /* completions are running */

        uv_poll_t finished_wake; /* keeps the loop alive while pending > 0 */
        int finished_fd;         /* an eventfd; see store_knock */
        size_t pending;          /* jobs whose completion has not run; the loop's */
        pthread_mutex_t lock;    /* guards what follows */
        struct jobs finished;
        struct store_health health;
        struct error damage; /* kind ERR_NONE: none was found */
};

/* --- completion.c --- */

/* Somebody who blocks until a job is done. */
struct waiter {
        pthread_mutex_t lock;
        pthread_cond_t wake;
        bool done;
};
void store_wait(struct waiter *w);

struct job *store_job_new(store_fn *fn, store_done_fn *done, void *arg);
void store_job_fail(struct job *j, const struct error *err);
/* On the loop: a completion will come, until then the loop stays alive. */
void store_expect(struct store *s);
/*
 * Hands finished jobs to those who wait for them, in this order; they are theirs from then on. Any
 * thread.
 */
void store_finish(struct store *s, struct job **jobs, size_t n);
/* On the loop: runs the completions of what is finished. */
void store_complete(struct store *s);
/* Makes the loop look after completions and the backup. Any thread. */
void store_knock(struct store *s);
/* Listens for that. */
void store_listen(struct store *s);

/* --- worker.c --- */

void store_worker_init(struct worker *w, struct store *s, const char *name,
                       void (*run)(struct worker *, struct jobs *));
int store_worker_start(struct worker *w, struct error *err);
/* Returns when everything that was queued is done. Fine when it never started. */
void store_worker_stop(struct worker *w);
void store_worker_release(struct worker *w);
/* ERR_LIMIT when too many wait. */
int store_worker_push(struct worker *w, struct job *j, struct error *err);
/* On the worker's thread: these are done. */
void store_worker_finish(struct worker *w, struct job **jobs, size_t n);
int store_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg, struct error *err);

/* --- writer.c --- */

void store_run_writes(struct worker *w, struct jobs *taken);

/* --- health.c, any thread --- */

void store_note_commit(struct store *s, size_t writes, int64_t took_us);
void store_note_failure(struct store *s, const struct error *err);
/* The database itself says that it is damaged. Logged once. */
void store_note_damage(struct store *s, const struct error *err);
/* Was damage found? Then *err says so. */
bool store_is_damaged(struct store *s, struct error *err);

/* --- backup.c --- */

/* On the loop, after a knock: tells how far it is, and ends what is finished. */
void store_backup_look(struct store *s);
/* Gives up the backup that is running, if one is. */
void store_backup_cancel(struct store *s);

#endif
