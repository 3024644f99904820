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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/store_migrate.h"
#include "store/store_private.h"

#define DEFAULT_MAX_QUEUE 65536
#define DEFAULT_MAX_BATCH 1024
/* databases up to this size are checked at every start: a few milliseconds */
#define CHECK_CLEAN_BYTES (1024 * 1024)
/* and up to this size if the last writer did not close */
#define CHECK_KILLED_BYTES (64 * 1024 * 1024)

static const struct store_driver *const drivers[] = { &store_sqlite };

/* --- submitting --- */

static int check_open(const struct store *s, const struct store_worker *w, struct error *err)
{
        if (s->closing)
                return error_set(err, ERR_CANCELLED, "the store is closing");
        if (!w->running)
                return error_set(err, ERR_REFUSED, "the store was opened for reading only");
        return 0;
}

static void submit(struct store *s, struct store_worker *w, struct store_job *j)
{
        struct error err = { 0 };

        store_jobs_expect(s);
        if (check_open(s, w, &err) == 0 && store_worker_push(w, j, &err) == 0)
                return;
        store_job_fail(j, &err);
        store_jobs_finish(s, &j, 1);
}

void store_write(struct store *s, store_fn *fn, store_done_fn *done, void *arg)
{
        submit(s, &s->writer, store_job_new(fn, done, arg));
}

void store_read(struct store *s, store_fn *fn, store_done_fn *done, void *arg)
{
        submit(s, &s->reader, store_job_new(fn, done, arg));
}

static int run_now(struct store *s, struct store_worker *w, store_fn *fn, void *arg,
                   struct error *err)
{
        struct store_waiter waiter = { .lock = PTHREAD_MUTEX_INITIALIZER,
                                       .wake = PTHREAD_COND_INITIALIZER };
        struct store_job j = { .fn = fn, .arg = arg, .waiter = &waiter };

        if (check_open(s, w, err) != 0 || store_worker_push(w, &j, err) != 0)
                return -1;
        store_job_wait(&waiter);
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

        if (store_worker_connect(&s->reader, err) != 0 ||
            store_migrate_peek_state(&s->reader.tx, &state, err) != 0 ||
            store_migrate_check(s->options.migrations, state.version, err) != 0)
                return -1;
        if (store_migrate_is_pending(s->options.migrations, state.version))
                return error_set(err, ERR_CONFLICT,
                                 "the store has an older schema: start the daemon once to "
                                 "bring it up to date");
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
        if (store_migrate_read_state(tx, &state, err) != 0 ||
            store_migrate_check(s->options.migrations, state.version, err) != 0)
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
                store_jobs_listen(s);
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
                store_jobs_complete(s);
        /* a damaged store stays marked as unclean, so that the next start checks it thoroughly */
        if (s->writer.tx.conn && !store_health_is_damaged(s, &err) &&
            store_migrate_mark_clean(&s->writer.tx, true, &err) != 0)
                log_warn("cannot mark the store as closed", LOG_S("error", err.text));
        store_free(s);
}
