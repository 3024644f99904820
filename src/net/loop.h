/*
 * loop: the one thread that owns all state machines; a thin layer over libuv.
 *
 * Callbacks are short and never block. A callback never fires before the call that registered it
 * has returned.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct loop;
typedef void loop_fn(void *arg);

struct loop *loop_new(void);
/* Runs pending close callbacks; timers and clients must be freed before. */
void loop_free(struct loop *l);
uv_loop_t *loop_uv(struct loop *l);
/* Runs until loop_stop, or until there is nothing left to wait for. */
void loop_run(struct loop *l);
/* Runs one round; `wait`: for an event or a timer. False when there is nothing left to wait for. */
bool loop_step(struct loop *l, bool wait);
/* Leaves loop_run after the current callback. */
void loop_stop(struct loop *l);
/* Monotonic milliseconds as of this round; cheap. */
int64_t loop_now_ms(const struct loop *l);

/* Calls fn(arg) from the loop after the current callback. Keeps the order of calls. */
void loop_defer(struct loop *l, loop_fn *fn, void *arg);
/* Runs work(arg) on a pool thread, then done(arg) on the loop. */
void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg);

/* Timers never fire early, and at the earliest a millisecond after their start. */
struct timer;

struct timer *timer_new(struct loop *l, loop_fn *fn, void *arg);
/* (Re)starts: fires once after ms. */
void timer_start(struct timer *t, int64_t ms);
/* (Re)starts: fires every ms. */
void timer_repeat(struct timer *t, int64_t ms);
void timer_stop(struct timer *t);
bool timer_active(const struct timer *t);
/* No callback follows. NULL is fine. Allowed inside the callback. */
void timer_free(struct timer *t);
/* The timer no longer keeps loop_run from returning. */
void timer_unref(struct timer *t);

/* For timer.c: this round has had its event, so a step must not wait for another one. */
void loop_timer_fired(struct loop *l);

#endif
