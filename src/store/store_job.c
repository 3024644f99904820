/*
 * Jobs and their completions. A worker puts finished jobs on one list, in commit order, and wakes
 * the loop once; the loop runs the completions. A blocked caller is woken directly.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/store_private.h"

struct store_job *store_job_new(store_fn *fn, store_done_fn *done, void *arg)
{
        struct store_job *j = mem_zalloc(sizeof(*j));

        j->fn = fn;
        j->done = done;
        j->arg = arg;
        return j;
}

void store_job_fail(struct store_job *j, const struct error *err)
{
        j->err = mem_dup(err, sizeof(*err));
}

void store_job_wait(struct store_waiter *w)
{
        pthread_mutex_lock(&w->lock);
        while (!w->done)
                pthread_cond_wait(&w->wake, &w->lock);
        pthread_mutex_unlock(&w->lock);
}

void store_jobs_expect(struct store *s)
{
        if (s->pending++ == 0)
                uv_ref((uv_handle_t *)&s->finished_wake);
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

void store_jobs_complete(struct store *s)
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
        store_jobs_complete(s);
}

void store_jobs_listen(struct store *s)
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
