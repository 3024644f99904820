#include "base/spawn_thread.h"

#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static struct {
        pthread_mutex_t turn; /* held by the caller that waits */
        pthread_mutex_t lock; /* of the rest */
        pthread_cond_t wake;  /* something changed */
        pthread_t thread;
        bool runs, stop;
        void (*fn)(void *arg); /* NULL: nothing to do */
        void *arg;
} spawner = { .turn = PTHREAD_MUTEX_INITIALIZER,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .wake = PTHREAD_COND_INITIALIZER };

static void *serve(void *arg)
{
        (void)arg;
        pthread_mutex_lock(&spawner.lock);
        while (!spawner.stop) {
                if (spawner.fn) {
                        /* the caller waits, so nothing changes meanwhile; fn may fork */
                        pthread_mutex_unlock(&spawner.lock);
                        spawner.fn(spawner.arg);
                        pthread_mutex_lock(&spawner.lock);
                        spawner.fn = NULL;
                        pthread_cond_broadcast(&spawner.wake);
                } else {
                        pthread_cond_wait(&spawner.wake, &spawner.lock);
                }
        }
        pthread_mutex_unlock(&spawner.lock);
        return NULL;
}

int spawn_thread_start(struct error *err)
{
        sigset_t all, before;
        int rc;

        /* signals are for the loop; fn empties the mask in the child */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        rc = pthread_create(&spawner.thread, NULL, serve, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (rc != 0)
                return error_set(err, ERR_IO, "cannot start a thread: %s", strerror(rc));
        spawner.runs = true;
        return 0;
}

void spawn_thread_stop(void)
{
        if (!spawner.runs)
                return;
        pthread_mutex_lock(&spawner.lock);
        spawner.stop = true;
        pthread_cond_broadcast(&spawner.wake);
        pthread_mutex_unlock(&spawner.lock);
        pthread_join(spawner.thread, NULL);
        spawner.runs = spawner.stop = false;
}

void spawn_thread_run(void (*fn)(void *arg), void *arg)
{
        (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
        if (!spawner.runs) {
                fn(arg);
                return;
        }
        pthread_mutex_lock(&spawner.turn);
        pthread_mutex_lock(&spawner.lock);
        spawner.fn = fn;
        spawner.arg = arg;
        pthread_cond_broadcast(&spawner.wake);
        while (spawner.fn)
                pthread_cond_wait(&spawner.wake, &spawner.lock);
        pthread_mutex_unlock(&spawner.lock);
        pthread_mutex_unlock(&spawner.turn);
}
