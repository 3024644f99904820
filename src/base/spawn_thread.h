/*
 * spawn_thread: the thread that starts children.
 *
 * Confinement (base/confine.h) holds for a thread and everything it starts. Children need what the
 * daemon does not: commands for secrets write where they like, agents run programs, and sandboxes
 * for tools mount file systems. So they are started by a thread that was made before.
 */
#ifndef BASE_SPAWN_THREAD_H
#define BASE_SPAWN_THREAD_H

#include "base/error.h"

/* Before confinement, and before any other thread. */
int spawn_thread_start(struct error *err);
/* NULL-safe counterpart: does nothing if it was not started. */
void spawn_thread_stop(void);
/*
 * Runs fn, which forks, on that thread and waits for it; on the caller's if there is none. From any
 * thread. Before, every descriptor but the standard ones is closed on exec: libcurl makes some that
 * are not.
 */
void spawn_thread_run(void (*fn)(void *arg), void *arg);

#endif
