/*
 * sd_notify: reports the daemon's state to systemd if it set NOTIFY_SOCKET.
 */
#ifndef NET_SD_NOTIFY_H
#define NET_SD_NOTIFY_H

#include "net/loop.h"

/* "READY=1", "STOPPING=1". Never blocks; ignores errors. */
void sd_notify_send(const char *state);
/*
 * Sends WATCHDOG=1 from a timer of the loop, twice per WATCHDOG_USEC, so that systemd restarts a
 * daemon whose loop hangs. Yours to free; NULL: the service manager did not ask for it.
 */
struct timer *sd_notify_watchdog(struct loop *l);

#endif
