/*
 * The writer and the reader: threads that take all queued jobs at once. The writer runs them in one
 * transaction. It needs no commit timer: while one commit waits for the disk the next batch
 * gathers.
 */
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "store/store_private.h"

#define STACK_BYTES (512 * 1024)

/* On the worker's thread. */
static void finish(struct store_worker *w, struct store_job **jobs, size_t n)
{
        pthread_mutex_lock(&w->lock);
        w->unfinished -= n;
        pthread_mutex_unlock(&w->lock);
        store_jobs_finish(w->store, jobs, n);
}

/* --- the writer --- */

static int commit(struct store_worker *w, size_t writes, struct error *err)
{
        uint64_t start = clock_mono_ns();

        fault_point("store.before_commit");
        if (w->tx.driver->commit(w->tx.conn, err) != 0)
                return -1;
        fault_point("store.after_commit");
        store_health_committed(w->store, writes, (int64_t)((clock_mono_ns() - start) / 1000));
        return 0;
}

static void fail_all(struct store_worker *w, struct store_job **jobs, size_t n,
                     const struct error *err)
{
        w->tx.driver->rollback(w->tx.conn);
        store_health_failed(w->store, err);
        if (err->kind == ERR_CORRUPT)
                store_health_damaged(w->store, err);
        for (size_t i = 0; i < n; i++)
                store_job_fail(jobs[i], err);
}

/*
 * Runs one transaction for all as long as all succeed. If one fails, rolls back and repeats those
 * before it without it; then tries it again as the first of the rest, where a failure is its own.
 * So commits keep the order of writes, and a failure costs its neighbours two more commits instead
 * of a savepoint each.
 */
static void run_batch(struct store_worker *w, struct store_job **jobs, size_t n)
{
        size_t together = n; /* how many of the rest to try at once */

        while (n > 0) {
                struct error err = { 0 };
                size_t good = 0;

                if (store_health_is_damaged(w->store, &err) ||
                    w->tx.driver->begin(w->tx.conn, &err) != 0) {
                        fail_all(w, jobs, n, &err);
                        return;
                }
                while (good < together &&
                       store_tx_call(&w->tx, jobs[good]->fn, jobs[good]->arg, &err) == 0)
                        good++;
                if (good == together) {
                        if (commit(w, good, &err) != 0)
                                fail_all(w, jobs, good, &err);
                } else {
                        w->tx.driver->rollback(w->tx.conn);
                        if (good > 0) {
                                together = good;
                                continue;
                        }
                        if (err.kind == ERR_FULL || err.kind == ERR_IO || err.kind == ERR_BUSY ||
                            err.kind == ERR_CORRUPT)
                                store_health_failed(w->store, &err);
                        if (w->tx.damage.kind != ERR_NONE)
                                store_health_damaged(w->store, &w->tx.damage);
                        store_job_fail(jobs[0], &err);
                        good = 1;
                }
                jobs += good;
                n -= good;
                together = n;
        }
}

static void run_writes(struct store_worker *w, struct store_jobs *taken)
{
        struct store *s = w->store;

        while (!STAILQ_EMPTY(taken)) {
                size_t n = 0;

                while (n < s->options.max_batch && !STAILQ_EMPTY(taken)) {
                        s->batch[n++] = STAILQ_FIRST(taken);
                        STAILQ_REMOVE_HEAD(taken, next);
                }
                run_batch(w, s->batch, n);
                finish(w, s->batch, n);
        }
}

/* --- the reader --- */

/* The first read connects: many runs never need the reader. */
int store_worker_connect(struct store_worker *reader, struct error *err)
{
        struct store_conn *conn;

        if (reader->tx.conn)
                return 0;
        conn = reader->store->driver->open(&reader->store->options, STORE_READ, err);
        if (!conn)
                return -1;
        store_tx_init(&reader->tx, conn);
        return 0;
}

static void run_reads(struct store_worker *w, struct store_jobs *taken)
{
        struct store_job *j;

        while ((j = STAILQ_FIRST(taken))) {
                struct error err = { 0 };

                STAILQ_REMOVE_HEAD(taken, next);
                if (store_worker_connect(w, &err) != 0 ||
                    store_tx_run(&w->tx, j->fn, j->arg, &err) != 0)
                        store_job_fail(j, &err);
                if (w->tx.damage.kind != ERR_NONE)
                        store_health_damaged(w->store, &w->tx.damage);
                finish(w, &j, 1);
        }
}

/* --- threads --- */

static void *work(void *arg)
{
        struct store_worker *w = arg;
        struct store_jobs taken = STAILQ_HEAD_INITIALIZER(taken);

        pthread_setname_np(pthread_self(), w->name);
        for (;;) {
                pthread_mutex_lock(&w->lock);
                while (STAILQ_EMPTY(&w->queue) && !w->stopping) {
                        w->asleep = true;
                        pthread_cond_wait(&w->wake, &w->lock);
                }
                w->asleep = false;
                STAILQ_CONCAT(&taken, &w->queue);
                pthread_mutex_unlock(&w->lock);
                if (STAILQ_EMPTY(&taken))
                        return NULL; /* stopping, and nothing is left */
                w->run(w, &taken);
        }
}

int store_worker_push(struct store_worker *w, struct store_job *j, struct error *err)
{
        size_t max = w->store->options.max_queue;
        bool asleep;

        pthread_mutex_lock(&w->lock);
        if (w->unfinished >= max) {
                pthread_mutex_unlock(&w->lock);
                return error_set(err, ERR_LIMIT, "the store's queue is full (%zu waiting)", max);
        }
        w->unfinished++;
        STAILQ_INSERT_TAIL(&w->queue, j, next);
        asleep = w->asleep;
        w->asleep = false; /* one signal is enough */
        pthread_mutex_unlock(&w->lock);
        if (asleep)
                pthread_cond_signal(&w->wake);
        return 0;
}

void store_worker_init(struct store_worker *w, struct store *s, bool writes)
{
        w->name = writes ? "store-writer" : "store-reader";
        w->run = writes ? run_writes : run_reads;
        w->store = s;
        STAILQ_INIT(&w->queue);
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->wake, NULL);
}

int store_worker_thread(pthread_t *thread, void *(*fn)(void *), void *arg, struct error *err)
{
        pthread_attr_t attr;
        int rc;

        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, STACK_BYTES);
        rc = pthread_create(thread, &attr, fn, arg);
        pthread_attr_destroy(&attr);
        if (rc != 0)
                return error_set(err, ERR_LIMIT, "cannot start a thread of the store: %s",
                                 strerror(rc));
        return 0;
}

int store_worker_start(struct store_worker *w, struct error *err)
{
        if (store_worker_thread(&w->thread, work, w, err) != 0)
                return -1;
        w->running = true;
        return 0;
}

void store_worker_stop(struct store_worker *w)
{
        if (!w->running)
                return;
        pthread_mutex_lock(&w->lock);
        w->stopping = true;
        pthread_mutex_unlock(&w->lock);
        pthread_cond_signal(&w->wake);
        pthread_join(w->thread, NULL);
        w->running = false;
}

void store_worker_release(struct store_worker *w)
{
        store_tx_release(&w->tx);
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->wake);
}
