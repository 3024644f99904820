/*
 * The store's front end: opening, closing, and handing jobs to the threads.
 *
 *      loop thread                      writer thread                         reader thread
 *      store_write ── queue ──────────► takes the whole queue                 takes one job
 *      store_read  ── queue ───────────────────────────────────────────────►  at a time, in a
 *                                       BEGIN, every function, COMMIT         transaction each
 *      completions ◄─ finished list ────┘ (one wake-up for all)  ◄────────────┘
 *
 * store_private.h lists the files.
 */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/store_private.h"

#define DEFAULT_MAX_QUEUE 65536
#define DEFAULT_MAX_BATCH 1024
/* databases up to this size are checked at every start: a few milliseconds */
#define CHECK_CLEAN_BYTES (1024 * 1024)
/* and up to this size if the last writer did not close */
#define CHECK_KILLED_BYTES (64 * 1024 * 1024)

/* Blocks a thread until a job is done. */
struct store_waiter {
        pthread_mutex_t lock;
        pthread_cond_t wake;
        bool done;
};

static const struct store_driver *const drivers[] = { &store_sqlite };

/* --- jobs ---
 *
 * A worker puts finished jobs on one list, in commit order, and wakes the loop once; the loop runs
 * the completions. A blocked caller is woken directly.
 */

struct store_job *store_job_new(struct store *s, store_fn *fn, store_done_fn *done, void *arg)
{
        struct store_job *j = mem_zalloc(sizeof(*j));

        j->fn = fn;
        j->done = done;
        j->arg = arg;
        if (s->pending++ == 0)
                uv_ref((uv_handle_t *)&s->finished_wake);
        return j;
}

void store_job_fail(struct store_job *j, const struct error *err)
{
        j->err = mem_dup(err, sizeof(*err));
}

/*
 * Not by uv_async_send: if that wakes the loop before the sender has returned from the system call,
 * libuv 1.44 spins on the loop's thread until it has, and with two cores that is most of the time.
 */
void store_jobs_wake(struct store *s)
{
        uint64_t once = 1;

        while (write(s->finished_fd, &once, sizeof(once)) < 0 && errno == EINTR)
                ;
}

void store_jobs_finish(struct store *s, struct store_job **jobs, size_t n)
{
        bool wake = false;

        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < n; i++) {
                struct store_waiter *w = jobs[i]->waiter;

                if (w) {
                        pthread_mutex_lock(&w->lock);
                        w->done = true;
                        pthread_cond_signal(&w->wake);
                        pthread_mutex_unlock(&w->lock);
                        continue;
                }
                wake = wake || STAILQ_EMPTY(&s->finished);
                STAILQ_INSERT_TAIL(&s->finished, jobs[i], next);
        }
        pthread_mutex_unlock(&s->lock);
        if (wake)
                store_jobs_wake(s);
}

/* On the loop. */
static void run_completions(struct store *s)
{
        struct store_jobs jobs = STAILQ_HEAD_INITIALIZER(jobs);
        struct store_job *j;

        pthread_mutex_lock(&s->lock);
        STAILQ_CONCAT(&jobs, &s->finished);
        pthread_mutex_unlock(&s->lock);
        s->completing = true;
        while ((j = STAILQ_FIRST(&jobs))) {
                STAILQ_REMOVE_HEAD(&jobs, next);
                s->pending--;
                if (j->done)
                        j->done(j->arg, j->err);
                else if (j->err)
                        log_error("write without a completion failed",
                                  LOG_S("error", j->err->text));
                free(j->err);
                free(j);
        }
        s->completing = false;
        if (s->pending == 0)
                uv_unref((uv_handle_t *)&s->finished_wake);
}

static void on_finished(uv_poll_t *wake, int status, int events)
{
        struct store *s = wake->data;
        uint64_t times;
        ssize_t got = read(s->finished_fd, &times, sizeof(times));

        (void)got; /* a lost wake-up does no harm */
        (void)status;
        (void)events;
        store_backup_look(s);
        run_completions(s);
}

/* --- submitting --- */

static int check_open(const struct store *s, const struct store_worker *w, struct error *err)
{
        if (s->closing)
                return error_set(err, ERR_CANCELLED, "the store is closing");
        if (!w->running)
                return error_set(err, ERR_REFUSED, "the store was opened for reading only");
        return 0;
}

static void submit(struct store *s, struct store_worker *w, store_fn *fn, store_done_fn *done,
                   void *arg)
{
        struct store_job *j = store_job_new(s, fn, done, arg);
        struct error err = { 0 };

        if (check_open(s, w, &err) == 0 && store_worker_push(w, j, &err) == 0)
                return;
        store_job_fail(j, &err);
        store_jobs_finish(s, &j, 1);
}

void store_write(struct store *s, store_fn *fn, store_done_fn *done, void *arg)
{
        submit(s, &s->writer, fn, done, arg);
}

void store_read(struct store *s, store_fn *fn, store_done_fn *done, void *arg)
{
        submit(s, &s->reader, fn, done, arg);
}

static int run_now(struct store *s, struct store_worker *w, store_fn *fn, void *arg,
                   struct error *err)
{
        struct store_waiter waiter = { .lock = PTHREAD_MUTEX_INITIALIZER,
                                       .wake = PTHREAD_COND_INITIALIZER };
        struct store_job j = { .fn = fn, .arg = arg, .waiter = &waiter };

        if (check_open(s, w, err) != 0 || store_worker_push(w, &j, err) != 0)
                return -1;
        pthread_mutex_lock(&waiter.lock);
        while (!waiter.done)
                pthread_cond_wait(&waiter.wake, &waiter.lock);
        pthread_mutex_unlock(&waiter.lock);
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

static int check_whole(struct store_tx *tx, void *arg, struct error *err)
{
        (void)arg;
        return tx->driver->check(tx->conn, 0, err);
}

int store_check(struct store *s, struct error *err)
{
        return store_read_now(s, check_whole, NULL, err);
}

static int trim(struct store_tx *tx, void *arg, struct error *err)
{
        (void)arg;
        (void)err;
        store_tx_forget(tx);
        tx->driver->trim(tx->conn);
        return 0;
}

static void on_reader_trimmed(void *arg, const struct error *err)
{
        (void)arg;
        (void)err;
}

void store_trim(struct store *s, store_done_fn *done, void *arg)
{
        store_read(s, trim, on_reader_trimmed, NULL);
        store_write(s, trim, done, arg);
}

/* --- opening and closing --- */

static const struct store_driver *find_driver(const char *url, struct error *err)
{
        for (size_t i = 0; i < COUNT(drivers); i++) {
                size_t n = strlen(drivers[i]->scheme);

                if (strncmp(url, drivers[i]->scheme, n) == 0 && (url[n] == '\0' || url[n] == ':'))
                        return drivers[i];
        }
        error_set(err, ERR_INVALID, "unknown store '%s'; accepted: 'sqlite'", url);
        return NULL;
}

static int open_for_reading(struct store *s, struct error *err)
{
        struct store_state state = { 0 };
        int pending;

        if (store_worker_connect(&s->reader, err) != 0 ||
            store_migrate_read_state(&s->reader.tx, &state, err) != 0 ||
            (pending = store_migrate_check(s->options.migrations, state.version, err)) < 0)
                return -1;
        if (pending)
                return error_set(err, ERR_CONFLICT,
                                 "the store has an older schema: start the daemon once to "
                                 "bring it up to date");
        return 0;
}

static int open_for_writing(struct store *s, struct error *err)
{
        struct store_conn *conn = s->driver->open(&s->options, STORE_WRITE, err);
        struct store_tx *tx = &s->writer.tx;
        struct store_state state = { .create = true };

        if (!conn)
                return -1;
        store_tx_init(tx, conn);
        if (store_migrate_read_state(tx, &state, err) != 0 ||
            store_migrate_check(s->options.migrations, state.version, err) < 0)
                return -1;
        if (!s->options.skip_check &&
            s->driver->check(conn, state.unclean ? CHECK_KILLED_BYTES : CHECK_CLEAN_BYTES, err) !=
                    0)
                return -1;
        if (store_migrate(tx, s->options.migrations, state.version, err) != 0 ||
            store_migrate_mark_clean(tx, false, err) != 0)
                return -1;
        return store_worker_start(&s->writer, err);
}

static void on_wake_closed(uv_handle_t *h)
{
        struct store *s = h->data;

        close(s->finished_fd);
        free(s);
}

static void store_free(struct store *s)
{
        store_worker_release(&s->reader);
        store_worker_release(&s->writer);
        pthread_mutex_destroy(&s->lock);
        free(s->batch);
        free((char *)(uintptr_t)s->options.url);
        free((char *)(uintptr_t)s->options.dir);
        if (s->loop) /* which uses the handle until it is closed */
                uv_close((uv_handle_t *)&s->finished_wake, on_wake_closed);
        else
                free(s);
}

static void watch_finished(struct store *s)
{
        s->finished_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (s->finished_fd < 0 ||
            uv_poll_init(loop_uv(s->loop), &s->finished_wake, s->finished_fd) != 0) {
                perror("dragoman: the store cannot wake the loop");
                abort();
        }
        uv_poll_start(&s->finished_wake, UV_READABLE, on_finished);
        uv_unref((uv_handle_t *)&s->finished_wake);
        s->finished_wake.data = s;
}

struct store *store_open(struct loop *l, const struct store_options *options, struct error *err)
{
        const struct store_driver *driver = find_driver(options->url, err);
        struct store *s;
        int rc;

        if (!driver)
                return NULL;
        s = mem_zalloc(sizeof(*s));
        s->loop = l;
        s->driver = driver;
        s->options = *options;
        s->options.url = mem_strdup(options->url);
        s->options.dir = mem_strdup(options->dir);
        if (s->options.max_queue == 0)
                s->options.max_queue = DEFAULT_MAX_QUEUE;
        if (s->options.max_batch == 0)
                s->options.max_batch = DEFAULT_MAX_BATCH;
        s->batch = mem_array(s->options.max_batch, sizeof(struct store_job *));
        s->health = (struct store_health){ .driver = driver->scheme, .ok = true };
        pthread_mutex_init(&s->lock, NULL);
        STAILQ_INIT(&s->finished);
        store_worker_init(&s->writer, s, true);
        store_worker_init(&s->reader, s, false);
        if (l)
                watch_finished(s);
        rc = options->read_only ? open_for_reading(s, err) : open_for_writing(s, err);
        if (rc == 0 && store_worker_start(&s->reader, err) == 0)
                return s;
        store_worker_stop(&s->writer);
        store_free(s);
        return NULL;
}

int store_has_writer(const struct store_options *options)
{
        const struct store_driver *driver = find_driver(options->url, NULL);

        return driver ? driver->has_writer(options) : -1;
}

void store_close(struct store *s)
{
        struct error err = { 0 };

        if (!s)
                return;
        assert(!s->completing);
        s->closing = true;
        store_backup_cancel(s);
        store_worker_stop(&s->writer);
        store_worker_stop(&s->reader);
        /* completions may submit more jobs, which are refused */
        while (s->pending > 0)
                run_completions(s);
        /* a damaged store stays marked as unclean, so that the next start checks it thoroughly */
        if (s->writer.tx.conn && !store_health_is_damaged(s, &err) &&
            store_migrate_mark_clean(&s->writer.tx, true, &err) != 0)
                log_warn("cannot mark the store as closed", LOG_S("error", err.text));
        store_free(s);
}
