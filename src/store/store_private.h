/*
 * What the files of the store's front end share. For the store alone.
 *
 *      store.c           opening, closing, jobs and their completions
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

#include "store/store_driver.h"

/* --- store_tx.c --- */

LIST_HEAD(store_stmts, store_stmt);

/*
 * A connection with its prepared statements. A statement that fails fails the function that ran it:
 * after some errors databases roll back or block the transaction.
 */
struct store_tx {
        const struct store_driver *driver;
        struct store_conn *conn;   /* owned */
        struct store_stmt **slots; /* statements by the address of their text; open addressing */
        size_t cap, count;         /* cap is a power of two, or 0 */
        struct store_stmts touched;
        struct store_stmt broken; /* stands for a statement that could not be prepared */
        struct error failed;      /* the first statement error of this call */
        struct error damage;      /* a statement found the database damaged, in any call */
};

/* Takes over the connection. */
void store_tx_init(struct store_tx *tx, struct store_conn *conn);
/* Finalizes the statements and closes; fine if conn is NULL. */
void store_tx_release(struct store_tx *tx);
/* Finalizes the statements; none may be in use. */
void store_tx_forget(struct store_tx *tx);
/* Runs fn inside the open transaction. */
int store_tx_call(struct store_tx *tx, store_fn *fn, void *arg, struct error *err);
/* Begins, runs fn, commits; rolls back if one of them fails. */
int store_tx_run(struct store_tx *tx, store_fn *fn, void *arg, struct error *err);

/* The statement for this text, reset; &tx->broken, with tx->failed set, if it is malformed. */
struct store_stmt *store_tx_prepare(struct store_tx *tx, const char *sql);
/* Before binding and stepping, so that the statement is reset when the call ends. */
void store_tx_touch(struct store_stmt *s);
void store_tx_reset(struct store_stmt *s);
/* A statement has failed. Copies why to err (may be NULL) and returns -1. */
int store_tx_fail(struct store_tx *tx, const struct error *why, struct error *err);

/* --- store.c --- */

struct store_job {
        store_fn *fn;
        store_done_fn *done;
        void *arg;
        struct error *err;           /* NULL: it worked */
        struct store_waiter *waiter; /* a thread blocks for it; no completion on the loop */
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

/* A job whose completion the loop stays alive for. */
struct store_job *store_job_new(struct store *s, store_fn *fn, store_done_fn *done, void *arg);
void store_job_fail(struct store_job *j, const struct error *err);
/* Any thread: completes finished jobs in this order; they are no longer the caller's. */
void store_jobs_finish(struct store *s, struct store_job **jobs, size_t n);
/* Any thread: makes the loop look after completions and the backup. */
void store_jobs_wake(struct store *s);

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

/* --- store_migrate.c --- */

/* The table store_info: the schema's version, and whether the last writer closed in order. */
struct store_state {
        int version;  /* 0: new */
        bool unclean; /* the last writer did not close */
        bool create;  /* in: create the table if it is missing */
};

/* ERR_MISSING if there is no table and `create` is not set. */
int store_migrate_read_state(struct store_tx *tx, struct store_state *state, struct error *err);
/* false: a writer is active; true: it has closed in order. */
int store_migrate_mark_clean(struct store_tx *tx, bool clean, struct error *err);
/* 1: there are steps after `version`; 0: none; -1: it is newer than the program (ERR_INVALID). */
int store_migrate_check(const struct store_migration *steps, int version, struct error *err);
/* Applies the steps after `version` in one transaction. */
int store_migrate(struct store_tx *tx, const struct store_migration *steps, int version,
                  struct error *err);
/* The step's SQL with AUTOKEY, INTKEY and TEXT in the driver's spelling; yours to free. */
char *store_migrate_spell(const struct store_driver *driver, const char *sql);

#endif
