/*
 * loop: the one thread that owns all state machines.
 *
 * A thin layer over libuv: timers, deferred calls, work on the pool. Callbacks are short and never
 * block. A callback never fires before the call that registered it has returned.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "net/timer.h"

struct loop;
typedef void loop_fn(void *arg);

struct loop *loop_new(void);
/* Runs pending close callbacks; whatever was registered must be gone (timers, clients). */
void loop_free(struct loop *l);
uv_loop_t *loop_uv(struct loop *l);
/* Runs until loop_stop, or until there is nothing left to wait for. */
void loop_run(struct loop *l);
/*
 * Runs one round, waiting for an event or a timer if `wait`. False when there is nothing left to
 * wait for.
 */
bool loop_step(struct loop *l, bool wait);
/* Leaves loop_run after the current callback. */
void loop_stop(struct loop *l);
/* Monotonic milliseconds as of this round; cheap. */
int64_t loop_now_ms(const struct loop *l);

/* Calls fn(arg) from the loop after the current callback. Keeps the order of calls. */
void loop_defer(struct loop *l, loop_fn *fn, void *arg);
/* Runs work(arg) on a pool thread, then done(arg) on the loop. */
void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg);

/* For timer.c: this round has had its event, a step must not wait for another one. */
void loop_timer_fired(struct loop *l);

#endif
