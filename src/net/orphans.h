/*
 * orphans: adopts the processes that descendants leave behind, and collects each when it ends.
 *
 * A sandbox that is killed leaves its inner process, and programs leave what they detached. Without
 * an adopter these go to process 1, which in a container may be Dragoman or a program that
 * collects nothing: each would stay as a zombie.
 *
 * Only for a process whose children are started on the spawn thread (base/spawn_thread.h): all
 * children of the main thread, which runs the loop, are then adopted ones.
 */
#ifndef NET_ORPHANS_H
#define NET_ORPHANS_H

#include "net/loop.h"

struct orphans;

struct orphans *orphans_adopt(struct loop *l);
/* They are adopted on, but no longer collected. NULL is fine. */
void orphans_free(struct orphans *o);

#endif
