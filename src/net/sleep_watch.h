/*
 * sleep_watch: notices that the machine was asleep: connections that look open are dead then.
 *
 * The wall clock advances during sleep, the monotonic one does not.
 */
#ifndef NET_SLEEP_WATCH_H
#define NET_SLEEP_WATCH_H

#include <stdint.h>

#include "net/loop.h"

struct sleep_watch;

/*
 * Calls fn when the clocks moved apart by more than suspend_ms, checking every quarter of it.
 * wall_ms NULL: the wall clock.
 */
struct sleep_watch *sleep_watch_new(struct loop *l, int64_t suspend_ms, int64_t (*wall_ms)(void),
                                    loop_fn *fn, void *arg);
/* NULL is fine. Allowed inside fn. */
void sleep_watch_free(struct sleep_watch *w);
void sleep_watch_stop(struct sleep_watch *w);

#endif
