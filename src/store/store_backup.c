/* Runs one backup at a time, on a thread and a connection of its own. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/store_private.h"

struct store_backup {
        struct store *store;
        pthread_t thread;
        char *to_path;
        void (*progress)(void *arg, int percent);
        void *arg;
        struct store_job *job; /* its completion */
        atomic_int percent;
        atomic_bool cancel, finished;
        int reported;
};

static int copy_database(struct store_backup *b, struct store_conn *conn, struct error *err)
{
        void *state = NULL;
        int percent = 0;
        int rc;

        while ((rc = conn->driver->backup_step(conn, b->to_path, &state, &percent, err)) == 1) {
                atomic_store(&b->percent, percent);
                store_jobs_wake(b->store);
                if (!atomic_load(&b->cancel))
                        continue;
                conn->driver->backup_abort(conn, &state);
                return error_set(err, ERR_CANCELLED,
                                 "backup '%s' was given up: the store is closing", b->to_path);
        }
        return rc;
}

static void *run_backup(void *arg)
{
        struct store_backup *b = arg;
        struct error err = { 0 };
        struct store_conn *conn = b->store->driver->open(&b->store->options, STORE_READ, &err);

        if (!conn || copy_database(b, conn, &err) != 0)
                store_job_fail(b->job, &err);
        else
                atomic_store(&b->percent, 100);
        if (conn)
                conn->driver->close(conn);
        atomic_store(&b->finished, true);
        store_jobs_wake(b->store);
        return NULL;
}

static void end_backup(struct store_backup *b)
{
        struct store *s = b->store;

        if (s->backup == b) {
                pthread_join(b->thread, NULL);
                s->backup = NULL;
        }
        store_jobs_finish(s, &b->job, 1);
        free(b->to_path);
        free(b);
}

void store_backup_look(struct store *s)
{
        struct store_backup *b = s->backup;
        bool finished;
        int percent;

        if (!b)
                return;
        finished = atomic_load(&b->finished); /* before the last progress is read */
        percent = atomic_load(&b->percent);
        if (percent != b->reported && b->progress)
                b->progress(b->arg, percent);
        b->reported = percent;
        if (finished)
                end_backup(b);
}

void store_backup(struct store *s, const char *to_path, void (*progress)(void *arg, int percent),
                  store_done_fn *done, void *arg)
{
        struct store_backup *b = mem_zalloc(sizeof(*b));
        struct error err = { 0 };

        b->store = s;
        b->to_path = mem_strdup(to_path);
        b->progress = progress;
        b->arg = arg;
        b->job = store_job_new(s, NULL, done, arg);
        if (s->closing) {
                error_set(&err, ERR_CANCELLED, "the store is closing");
        } else if (s->backup) {
                error_set(&err, ERR_BUSY, "another backup is running");
        } else if (!s->driver->backup_step) {
                error_set(&err, ERR_REFUSED,
                          "cannot back up a '%s' store: use the database's own tools",
                          s->driver->scheme);
        } else if (store_worker_thread(&b->thread, run_backup, b, &err) == 0) {
                s->backup = b;
                return;
        }
        store_job_fail(b->job, &err);
        end_backup(b);
}

void store_backup_cancel(struct store *s)
{
        if (!s->backup)
                return;
        atomic_store(&s->backup->cancel, true);
        end_backup(s->backup);
}
