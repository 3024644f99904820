/*
 * sd_notify: reports the daemon's state to systemd if it set NOTIFY_SOCKET.
 */
#ifndef NET_SD_NOTIFY_H
#define NET_SD_NOTIFY_H

#include "net/loop.h"

/* "READY=1", "STOPPING=1". Never blocks; ignores errors. */
void sd_notify_send(const char *state);
/*
 * Reports from the loop, twice in each WATCHDOG_USEC, that the loop runs: a loop that hangs falls
 * silent, and systemd restarts the daemon. Yours to free; NULL: nobody wants to know.
 */
struct timer *sd_notify_watchdog(struct loop *l);

#endif
