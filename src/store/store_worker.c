/*
 * A thread with a queue. It takes all that waits at once; how it is worked off is its own business
 * (`run`).
 */
#include <string.h>

#include "store/store_private.h"

#define STACK_BYTES (512 * 1024)

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

void store_worker_finish(struct worker *w, struct job **jobs, size_t n)
{
        pthread_mutex_lock(&w->lock);
        w->unfinished -= n;
        pthread_mutex_unlock(&w->lock);
        store_finish(w->store, jobs, n);
}

int store_worker_push(struct worker *w, struct job *j, struct error *err)
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

void store_worker_init(struct worker *w, struct store *s, const char *name,
                       void (*run)(struct worker *, struct jobs *))
{
        w->name = name;
        w->store = s;
        w->run = run;
        STAILQ_INIT(&w->queue);
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->wake, NULL);
}

int store_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg, struct error *err)
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

int store_worker_start(struct worker *w, struct error *err)
{
        if (store_thread_start(&w->thread, work, w, err) != 0)
                return -1;
        w->running = true;
        return 0;
}

void store_worker_stop(struct worker *w)
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

void store_worker_release(struct worker *w)
{
        store_tx_release(&w->tx);
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->wake);
}
