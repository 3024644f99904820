/*
 * Jobs, and how their ends come back: a worker puts what is finished on one list, in the order of
 * the commits, and knocks once; the loop runs the completions. Whoever blocks instead is told
 * directly.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/store_private.h"

struct job *store_job_new(store_fn *fn, store_done_fn *done, void *arg)
{
        struct job *j = mem_zalloc(sizeof(*j));

        j->fn = fn;
        j->done = done;
        j->arg = arg;
        return j;
}

void store_job_fail(struct job *j, const struct error *err)
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

void store_complete(struct store *s)
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
 * Wakes the loop. Not with uv_async_send: when that wakes a loop which then runs before the sender
 * has returned from the system call, libuv 1.44 spins on the loop's thread until it has, and with
 * two cores that is most of the time.
 */
void store_knock(struct store *s)
{
        uint64_t once = 1;

        while (write(s->finished_fd, &once, sizeof(once)) < 0 && errno == EINTR)
                ;
}

void store_finish(struct store *s, struct job **jobs, size_t n)
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
                store_knock(s);
}

void store_wait(struct waiter *w)
{
        pthread_mutex_lock(&w->lock);
        while (!w->done)
                pthread_cond_wait(&w->wake, &w->lock);
        pthread_mutex_unlock(&w->lock);
}

void store_expect(struct store *s)
{
        if (s->pending++ == 0)
                uv_ref((uv_handle_t *)&s->finished_wake);
}

static void on_finished(uv_poll_t *wake, int status, int events)
{
        struct store *s = wake->data;
        uint64_t times;
        ssize_t got = read(s->finished_fd, &times, sizeof(times));

        (void)got; /* nothing to read: somebody was quicker, and so much the better */
        (void)status;
        (void)events;
        store_backup_look(s);
        store_complete(s);
}

void store_listen(struct store *s)
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
