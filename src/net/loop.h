/*
 * loop: the one thread that owns all state machines.
 *
 * A thin layer over libuv: timers, deferred calls, posts from other threads, work on the pool.
 * Callbacks are short and never block. A callback never fires before the call that registered it
 * has returned.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct loop;
struct timer;
typedef void loop_fn(void *arg);

struct loop *loop_new(void);
/*
 * Everything registered must be gone (timers freed, clients closed); runs pending close callbacks.
 */
void loop_free(struct loop *l);
uv_loop_t *loop_uv(struct loop *l);
/* Runs until loop_stop, or until nothing is left to wait for. */
void loop_run(struct loop *l);
/*
 * Runs one round; waits for an event, a timer among them, when `wait`. Returns false when nothing
 * is left to wait for.
 */
bool loop_step(struct loop *l, bool wait);
/* Leaves loop_run after the current callback. Loop thread only. */
void loop_stop(struct loop *l);
/* Monotonic milliseconds as of this round of the loop; cheap. */
int64_t loop_now_ms(const struct loop *l);

/*
 * Calls fn(arg) soon, from the loop, after the current callback. Order is kept. Loop thread only.
 */
void loop_defer(struct loop *l, loop_fn *fn, void *arg);
/* The same from any thread. Order per thread is kept. */
void loop_post(struct loop *l, loop_fn *fn, void *arg);
/* Runs work(arg) on a pool thread, then done(arg) on the loop. */
void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg);

struct timer *timer_new(struct loop *l, loop_fn *fn, void *arg);
/* (Re)starts: fires once after ms. */
void timer_start(struct timer *t, int64_t ms);
/* (Re)starts: fires every ms. */
void timer_repeat(struct timer *t, int64_t ms);
void timer_stop(struct timer *t);
bool timer_active(const struct timer *t);
/* Stops and frees; fn is not called any more. NULL is fine. Allowed inside fn. */
void timer_free(struct timer *t);
/* A timer that does not keep loop_run alive by itself. */
void timer_unref(struct timer *t);

#endif
