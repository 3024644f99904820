/*
 * timer: calls a function on the loop after a while, once or repeatedly.
 *
 * A timer never fires early, and at the earliest a millisecond after it was started.
 */
#ifndef NET_TIMER_H
#define NET_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct timer;

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg);
/* (Re)starts: fires once after ms. */
void timer_start(struct timer *t, int64_t ms);
/* (Re)starts: fires every ms. */
void timer_repeat(struct timer *t, int64_t ms);
void timer_stop(struct timer *t);
bool timer_active(const struct timer *t);
/* Stops and frees; fn is not called again. NULL is fine. Allowed inside fn. */
void timer_free(struct timer *t);
/* The timer no longer keeps loop_run from returning. */
void timer_unref(struct timer *t);

#endif
