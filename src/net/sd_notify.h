/*
 * sd_notify: reports the daemon's state to systemd if it set NOTIFY_SOCKET.
 */
#ifndef NET_SD_NOTIFY_H
#define NET_SD_NOTIFY_H

/* "READY=1", "STOPPING=1". Never blocks; ignores errors. */
void sd_notify_send(const char *state);

#endif
