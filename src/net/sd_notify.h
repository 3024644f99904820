/*
 * notify: tells the service manager how we are, when it asked to be told (NOTIFY_SOCKET).
 */
#ifndef NET_SD_NOTIFY_H
#define NET_SD_NOTIFY_H

/* "READY=1", "STOPPING=1". Never blocks; that nobody listens is no failure. */
void sd_notify_send(const char *state);

#endif
