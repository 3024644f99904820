/*
 * spawn_thread: the thread that starts children.
 *
 * Confinement (base/confine.h) holds for a thread and everything it starts. Children need what the
 * daemon does not: commands for secrets write anywhere, agents run programs, and sandboxes for
 * tools mount file systems. So a thread that was started before confinement starts them.
 */
#ifndef BASE_SPAWN_THREAD_H
#define BASE_SPAWN_THREAD_H

#include "base/error.h"

/* Before confinement, and before any other thread. */
int spawn_thread_start(struct error *err);
/* Does nothing if it was not started. */
void spawn_thread_stop(void);
/*
 * Runs fn, which forks, on that thread and waits for it; on the caller's if there is none. Call it
 * from any thread. First it marks every descriptor but the standard ones close-on-exec, because
 * libcurl opens some without.
 */
void spawn_thread_run(void (*fn)(void *arg), void *arg);

#endif
