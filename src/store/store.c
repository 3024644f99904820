/*
 * The store's front end: who waits for whom.
 *
 *      loop thread                      writer thread                         reader thread
 *      store_write ── queue ──────────► takes the whole queue                 one read at a time, each
 *      store_read  ── queue ───────────────────────────────────────────────►  in its transaction
 *                                       BEGIN, every function, COMMIT
 *      completions ◄─ finished list ────┘ (one wake-up for all)  ◄────────────┘
 *
 * There is no commit timer: while one commit waits for the disk the next batch gathers by itself. One
 * writer alone pays one sync per write, a thousand writers share it. A job is made, completed and freed
 * on the loop thread; in between it belongs to one worker.
 */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/migrate.h"
#include "store/tx.h"

#define DEFAULT_MAX_QUEUE  65536
#define DEFAULT_MAX_BATCH  1024
#define STACK_BYTES        (512 * 1024)
#define CHECK_CLEAN_BYTES  (1024 * 1024)      /* looked through at every start: a few milliseconds */
#define CHECK_KILLED_BYTES (64 * 1024 * 1024) /* looked through when the last writer did not close */

static const struct store_driver *const drivers[] = { &store_sqlite };

/* Somebody who blocks until a job is done. */
struct waiter {
        pthread_mutex_t lock;
        pthread_cond_t wake;
        bool done;
};

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

/* One backup at a time, on a thread of its own. */
struct backup {
        struct store *store;
        pthread_t thread;
        char *to_path;
        void (*progress)(void *arg, int percent);
        void *arg;
        struct job *job; /* what completes it */
        atomic_int percent;
        atomic_bool cancel, finished;
        int reported;
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
        int finished_fd;         /* an eventfd; see knock */
        size_t pending;          /* jobs whose completion has not run; the loop's */
        pthread_mutex_t lock;    /* guards what follows */
        struct jobs finished;
        struct store_health health;
};

/* --- completions --- */

static struct job *job_new(store_fn *fn, store_done_fn *done, void *arg)
{
        struct job *j = mem_zalloc(sizeof(*j));

        j->fn = fn;
        j->done = done;
        j->arg = arg;
        return j;
}

static void job_fail(struct job *j, const struct error *err)
{
        j->err = mem_dup(err, sizeof(*err));
}

static void job_complete(struct job *j)
{
        if (j->done)
                j->done(j->arg, j->err);
        else if (j->err)
                log_error("a write nobody waits for has failed", LOG_S("error", j->err->text));
        free(j->err);
        free(j);
}

static void complete_finished(struct store *s)
{
        struct jobs jobs = STAILQ_HEAD_INITIALIZER(jobs);
        struct job *j;

        pthread_mutex_lock(&s->lock);
        STAILQ_CONCAT(&jobs, &s->finished);
        pthread_mutex_unlock(&s->lock);
        s->completing = true;
        while ((j = STAILQ_FIRST(&jobs))) {
                STAILQ_REMOVE_HEAD(&jobs, next);
                s->pending--;
                job_complete(j);
        }
        s->completing = false;
        if (s->pending == 0)
                uv_unref((uv_handle_t *)&s->finished_wake);
}

static void tell_waiter(struct waiter *w)
{
        pthread_mutex_lock(&w->lock);
        w->done = true;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
}

/*
 * Wakes the loop. Not with uv_async_send: when that wakes a loop which then runs before the sender has returned from the
 * system call, libuv 1.44 spins on the loop's thread until it has, and with two cores that is most of the time.
 */
static void knock(struct store *s)
{
        uint64_t once = 1;

        while (write(s->finished_fd, &once, sizeof(once)) < 0 && errno == EINTR)
                ;
}

/* Hands finished jobs to those who wait for them, in this order; they are theirs from then on. */
static void finish(struct store *s, struct job **jobs, size_t n)
{
        bool first = false;

        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < n; i++) {
                if (jobs[i]->waiter) {
                        tell_waiter(jobs[i]->waiter);
                        continue;
                }
                first = first || STAILQ_EMPTY(&s->finished);
                STAILQ_INSERT_TAIL(&s->finished, jobs[i], next);
        }
        pthread_mutex_unlock(&s->lock);
        if (first)
                knock(s);
}

/* --- workers --- */

static bool take_queue(struct worker *w, struct jobs *taken)
{
        pthread_mutex_lock(&w->lock);
        while (STAILQ_EMPTY(&w->queue) && !w->stopping) {
                w->asleep = true;
                pthread_cond_wait(&w->wake, &w->lock);
        }
        w->asleep = false;
        STAILQ_CONCAT(taken, &w->queue);
        pthread_mutex_unlock(&w->lock);
        return !STAILQ_EMPTY(taken);
}

static void *work(void *arg)
{
        struct worker *w = arg;
        struct jobs taken = STAILQ_HEAD_INITIALIZER(taken);

        pthread_setname_np(pthread_self(), w->name);
        while (take_queue(w, &taken))
                w->run(w, &taken);
        return NULL;
}

static void worker_finish(struct worker *w, struct job **jobs, size_t n)
{
        pthread_mutex_lock(&w->lock);
        w->unfinished -= n;
        pthread_mutex_unlock(&w->lock);
        finish(w->store, jobs, n);
}

static int worker_push(struct worker *w, struct job *j, struct error *err)
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

static void worker_init(struct worker *w, struct store *s, const char *name,
                        void (*run)(struct worker *, struct jobs *))
{
        w->name = name;
        w->store = s;
        w->run = run;
        STAILQ_INIT(&w->queue);
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->wake, NULL);
}

static int thread_start(pthread_t *thread, void *(*fn)(void *), void *arg, struct error *err)
{
        pthread_attr_t attr;
        int rc;

        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, STACK_BYTES);
        rc = pthread_create(thread, &attr, fn, arg);
        pthread_attr_destroy(&attr);
        if (rc != 0)
                return error_set(err, ERR_LIMIT, "cannot start a thread of the store: %s", strerror(rc));
        return 0;
}

static int worker_start(struct worker *w, struct error *err)
{
        if (thread_start(&w->thread, work, w, err) != 0)
                return -1;
        w->running = true;
        return 0;
}

/* Returns when everything that was queued is done. */
static void worker_stop(struct worker *w)
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

static void worker_release(struct worker *w)
{
        store_tx_release(&w->tx);
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->wake);
}

/* --- the writer --- */

static void note_commit(struct store *s, size_t writes, int64_t took_us)
{
        pthread_mutex_lock(&s->lock);
        s->health.ok = true;
        s->health.why[0] = '\0';
        s->health.writes += writes;
        s->health.commits++;
        s->health.last_commit_us = took_us;
        pthread_mutex_unlock(&s->lock);
}

static void note_failure(struct store *s, const struct error *err)
{
        pthread_mutex_lock(&s->lock);
        s->health.ok = false;
        snprintf(s->health.why, sizeof(s->health.why), "%.*s", (int)sizeof(s->health.why) - 1, err->text);
        s->health.failures++;
        pthread_mutex_unlock(&s->lock);
}

static bool is_disk_trouble(enum error_kind kind)
{
        return kind == ERR_FULL || kind == ERR_IO || kind == ERR_CORRUPT || kind == ERR_BUSY;
}

static int commit(struct worker *w, size_t writes, struct error *err)
{
        uint64_t start = clock_mono_ns();
        int rc;

        fault_point("store.before_commit");
        rc = w->tx.driver->commit(w->tx.conn, err);
        if (rc != 0)
                return -1;
        fault_point("store.after_commit");
        note_commit(w->store, writes, (int64_t)((clock_mono_ns() - start) / 1000));
        return 0;
}

static void fail_all(struct worker *w, struct job **jobs, size_t n, const struct error *err)
{
        w->tx.driver->rollback(w->tx.conn);
        note_failure(w->store, err);
        for (size_t i = 0; i < n; i++)
                job_fail(jobs[i], err);
}

/* Runs functions until one fails; returns how many went well. */
static size_t call_each(struct worker *w, struct job **jobs, size_t n, struct error *err)
{
        size_t i = 0;

        while (i < n && store_tx_call(&w->tx, jobs[i]->fn, jobs[i]->arg, err) == 0)
                i++;
        return i;
}

/*
 * One transaction for all, as long as all go well. When one fails the transaction is undone and those
 * before it are repeated without it; then it is tried again as the first of the rest, and a failure
 * there, with nobody before it, is its own. So the order of commits is the order of writes, and
 * neighbours cost two more commits, not a savepoint each.
 */
static void run_batch(struct worker *w, struct job **jobs, size_t n)
{
        size_t together = n; /* how many of the rest to try at once */

        while (n > 0) {
                struct error err = { 0 };
                size_t good;

                if (w->tx.driver->begin(w->tx.conn, &err) != 0) {
                        fail_all(w, jobs, n, &err);
                        return;
                }
                good = call_each(w, jobs, together, &err);
                if (good == together) {
                        if (commit(w, good, &err) != 0)
                                fail_all(w, jobs, good, &err);
                } else {
                        w->tx.driver->rollback(w->tx.conn);
                        if (good > 0) {
                                together = good;
                                continue;
                        }
                        if (is_disk_trouble(err.kind))
                                note_failure(w->store, &err);
                        job_fail(jobs[0], &err);
                        good = 1;
                }
                jobs += good;
                n -= good;
                together = n;
        }
}

static void run_writes(struct worker *w, struct jobs *taken)
{
        struct store *s = w->store;

        while (!STAILQ_EMPTY(taken)) {
                size_t n = 0;

                while (n < s->options.max_batch && !STAILQ_EMPTY(taken)) {
                        s->batch[n++] = STAILQ_FIRST(taken);
                        STAILQ_REMOVE_HEAD(taken, next);
                }
                run_batch(w, s->batch, n);
                worker_finish(w, s->batch, n);
        }
}

/* --- the reader --- */

/* The connection is made by the first read: many runs never need it. */
static int reader_open(struct worker *w, struct error *err)
{
        struct store_conn *conn;

        if (w->tx.conn)
                return 0;
        conn = w->store->driver->open(&w->store->options, STORE_READ, err);
        if (!conn)
                return -1;
        store_tx_init(&w->tx, conn);
        return 0;
}

static void run_reads(struct worker *w, struct jobs *taken)
{
        struct job *j;

        while ((j = STAILQ_FIRST(taken))) {
                struct error err = { 0 };

                STAILQ_REMOVE_HEAD(taken, next);
                if (reader_open(w, &err) != 0 || store_tx_run(&w->tx, j->fn, j->arg, &err) != 0)
                        job_fail(j, &err);
                worker_finish(w, &j, 1);
        }
}

/* --- asking --- */

static int refuse(const struct store *s, const struct worker *w, struct error *err)
{
        if (s->closing)
                return error_set(err, ERR_CANCELLED, "the store is closing");
        if (!w->running)
                return error_set(err, ERR_REFUSED, "the store was opened for reading only");
        return 0;
}

static void add_pending(struct store *s)
{
        if (s->pending++ == 0)
                uv_ref((uv_handle_t *)&s->finished_wake);
}

static void submit(struct store *s, struct worker *w, struct job *j)
{
        struct error err = { 0 };

        add_pending(s);
        if (refuse(s, w, &err) == 0 && worker_push(w, j, &err) == 0)
                return;
        job_fail(j, &err);
        finish(s, &j, 1);
}

void store_write(struct store *s, store_fn *fn, store_done_fn *done, void *arg)
{
        submit(s, &s->writer, job_new(fn, done, arg));
}

void store_read(struct store *s, store_fn *fn, store_done_fn *done, void *arg)
{
        submit(s, &s->reader, job_new(fn, done, arg));
}

static void wait_for(struct waiter *w)
{
        pthread_mutex_lock(&w->lock);
        while (!w->done)
                pthread_cond_wait(&w->wake, &w->lock);
        pthread_mutex_unlock(&w->lock);
}

static int run_now(struct store *s, struct worker *w, store_fn *fn, void *arg, struct error *err)
{
        struct waiter waiter = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };
        struct job j = { .fn = fn, .arg = arg, .waiter = &waiter };

        if (refuse(s, w, err) != 0 || worker_push(w, &j, err) != 0)
                return -1;
        wait_for(&waiter);
        if (!j.err)
                return 0;
        if (err)
                *err = *j.err;
        free(j.err);
        return -1;
}

int store_write_now(struct store *s, store_fn *fn, void *arg, struct error *err)
{
        return run_now(s, &s->writer, fn, arg, err);
}

int store_read_now(struct store *s, store_fn *fn, void *arg, struct error *err)
{
        return run_now(s, &s->reader, fn, arg, err);
}

void store_health(const struct store *s, struct store_health *out)
{
        struct store *shared =
                (struct store *)(uintptr_t)s; /* looking takes the lock, which is no change to the store */

        pthread_mutex_lock(&shared->lock);
        *out = s->health;
        pthread_mutex_unlock(&shared->lock);
        pthread_mutex_lock(&shared->writer.lock);
        out->queued = s->writer.unfinished;
        pthread_mutex_unlock(&shared->writer.lock);
}

/* --- backup --- */

static int copy_database(struct backup *b, struct store_conn *conn, struct error *err)
{
        void *state = NULL;
        int percent = 0;
        int rc;

        while ((rc = conn->driver->backup_step(conn, b->to_path, &state, &percent, err)) == 1) {
                atomic_store(&b->percent, percent);
                knock(b->store);
                if (!atomic_load(&b->cancel))
                        continue;
                conn->driver->backup_abort(conn, &state);
                return error_set(err, ERR_CANCELLED, "backup '%s' was given up: the store is closing",
                                 b->to_path);
        }
        return rc;
}

static void *run_backup(void *arg)
{
        struct backup *b = arg;
        struct error err = { 0 };
        struct store_conn *conn = b->store->driver->open(&b->store->options, STORE_READ, &err);

        if (!conn || copy_database(b, conn, &err) != 0)
                job_fail(b->job, &err);
        else
                atomic_store(&b->percent, 100);
        if (conn)
                conn->driver->close(conn);
        atomic_store(&b->finished, true);
        knock(b->store);
        return NULL;
}

static void report_progress(struct backup *b)
{
        int percent = atomic_load(&b->percent);

        if (percent == b->reported)
                return;
        b->reported = percent;
        if (b->progress)
                b->progress(b->arg, percent);
}

static void end_backup(struct store *s)
{
        struct backup *b = s->backup;

        pthread_join(b->thread, NULL);
        s->backup = NULL;
        finish(s, &b->job, 1);
        free(b->to_path);
        free(b);
}

static void look_after_backup(struct store *s)
{
        bool finished;

        if (!s->backup)
                return;
        finished = atomic_load(&s->backup->finished);
        report_progress(s->backup);
        if (finished)
                end_backup(s);
}

static int start_backup(struct store *s, struct backup *b, struct error *err)
{
        if (s->closing)
                return error_set(err, ERR_CANCELLED, "the store is closing");
        if (s->backup)
                return error_set(err, ERR_BUSY, "a backup is running already");
        if (!s->driver->backup_step)
                return error_set(err, ERR_REFUSED, "a '%s' store is backed up with the database's own tools",
                                 s->driver->scheme);
        return thread_start(&b->thread, run_backup, b, err);
}

void store_backup(struct store *s, const char *to_path, void (*progress)(void *arg, int percent),
                  store_done_fn *done, void *arg)
{
        struct backup *b = mem_zalloc(sizeof(*b));
        struct error err = { 0 };

        b->store = s;
        b->to_path = mem_strdup(to_path);
        b->progress = progress;
        b->arg = arg;
        b->job = job_new(NULL, done, arg);
        add_pending(s);
        if (start_backup(s, b, &err) == 0) {
                s->backup = b;
                return;
        }
        job_fail(b->job, &err);
        finish(s, &b->job, 1);
        free(b->to_path);
        free(b);
}

/* --- opening and closing --- */

static void on_finished(uv_poll_t *wake, int status, int events)
{
        struct store *s = wake->data;
        uint64_t times;
        ssize_t got = read(s->finished_fd, &times, sizeof(times));

        (void)got; /* nothing to read: somebody was quicker, and so much the better */
        (void)status;
        (void)events;
        look_after_backup(s);
        complete_finished(s);
}

static const struct store_driver *find_driver(const char *url, struct error *err)
{
        for (size_t i = 0; i < COUNT(drivers); i++) {
                size_t n = strlen(drivers[i]->scheme);

                if (strncmp(url, drivers[i]->scheme, n) == 0 && (url[n] == '\0' || url[n] == ':'))
                        return drivers[i];
        }
        error_set(err, ERR_INVALID, "no kind of store is called '%s'; there is 'sqlite'", url);
        return NULL;
}

static int open_for_reading(struct store *s, struct error *err)
{
        struct store_state state = { 0 };

        if (reader_open(&s->reader, err) != 0 || store_state_peek(&s->reader.tx, &state, err) != 0)
                return -1;
        if (store_migrate_check(s->options.migrations, state.version, err) != 0)
                return -1;
        if (store_migrate_pending(s->options.migrations, state.version))
                return error_set(
                        err, ERR_CONFLICT,
                        "the store has an older schema: start the daemon once to bring it up to date");
        return 0;
}

static int open_for_writing(struct store *s, struct error *err)
{
        struct store_conn *conn = s->driver->open(&s->options, STORE_WRITE, err);
        struct store_tx *tx = &s->writer.tx;
        struct store_state state = { 0 };

        if (!conn)
                return -1;
        store_tx_init(tx, conn);
        if (store_state_read(tx, &state, err) != 0 ||
            store_migrate_check(s->options.migrations, state.version, err) != 0)
                return -1;
        if (!s->options.skip_check &&
            s->driver->check(conn, state.unclean ? CHECK_KILLED_BYTES : CHECK_CLEAN_BYTES, err) != 0)
                return -1;
        if (store_migrate(tx, s->options.migrations, state.version, err) != 0 ||
            store_state_mark(tx, false, err) != 0)
                return -1;
        return worker_start(&s->writer, err);
}

static void listen_for_knocks(struct store *s)
{
        s->finished_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (s->finished_fd < 0 || uv_poll_init(loop_uv(s->loop), &s->finished_wake, s->finished_fd) != 0) {
                perror("dragoman: the store cannot wake the loop");
                abort();
        }
        uv_poll_start(&s->finished_wake, UV_READABLE, on_finished);
        uv_unref((uv_handle_t *)&s->finished_wake);
        s->finished_wake.data = s;
}

static struct store *store_new(struct loop *l, const struct store_options *options)
{
        struct store *s = mem_zalloc(sizeof(*s));

        s->loop = l;
        s->options = *options;
        s->options.url = mem_strdup(options->url);
        s->options.dir = mem_strdup(options->dir);
        if (s->options.max_queue == 0)
                s->options.max_queue = DEFAULT_MAX_QUEUE;
        if (s->options.max_batch == 0)
                s->options.max_batch = DEFAULT_MAX_BATCH;
        s->batch = mem_array(s->options.max_batch, sizeof(struct job *));
        s->health.ok = true;
        pthread_mutex_init(&s->lock, NULL);
        STAILQ_INIT(&s->finished);
        worker_init(&s->writer, s, "store-writer", run_writes);
        worker_init(&s->reader, s, "store-reader", run_reads);
        if (l)
                listen_for_knocks(s);
        return s;
}

static void store_free(struct store *s)
{
        worker_release(&s->reader);
        worker_release(&s->writer);
        pthread_mutex_destroy(&s->lock);
        free(s->batch);
        free((char *)(uintptr_t)s->options.url);
        free((char *)(uintptr_t)s->options.dir);
}

static void on_wake_closed(uv_handle_t *h)
{
        struct store *s = h->data;

        close(s->finished_fd);
        free(s);
}

/* The memory of the handle goes when the loop has let go of it. */
static void forget(struct store *s)
{
        store_free(s);
        if (s->loop)
                uv_close((uv_handle_t *)&s->finished_wake, on_wake_closed); /* stops the poll first */
        else
                free(s);
}

struct store *store_open(struct loop *l, const struct store_options *options, struct error *err)
{
        const struct store_driver *driver = find_driver(options->url, err);
        struct store *s;
        int rc;

        if (!driver)
                return NULL;
        s = store_new(l, options);
        s->driver = driver;
        rc = options->read_only ? open_for_reading(s, err) : open_for_writing(s, err);
        if (rc == 0 && worker_start(&s->reader, err) == 0)
                return s;
        worker_stop(&s->writer);
        forget(s);
        return NULL;
}

static void mark_closed(struct store *s)
{
        struct error err = { 0 };

        if (s->writer.tx.conn && store_state_mark(&s->writer.tx, true, &err) != 0)
                log_warn("the store could not note that it closed in order", LOG_S("error", err.text));
}

void store_close(struct store *s)
{
        if (!s)
                return;
        assert(!s->completing);
        s->closing = true;
        if (s->backup) {
                atomic_store(&s->backup->cancel, true);
                end_backup(s);
        }
        worker_stop(&s->writer);
        worker_stop(&s->reader);
        /* completions may ask for more; they are told that it is too late */
        while (s->pending > 0)
                complete_finished(s);
        mark_closed(s);
        forget(s);
}
