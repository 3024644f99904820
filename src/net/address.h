/*
 * address: addresses as people write them, and whose they are.
 */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/error.h"

/*
 * Splits "127.0.0.1:80", "[::1]:0" or "localhost:8420"; *host is yours to free. -1, ERR_INVALID:
 * malformed, or no such port. host and port may be NULL.
 */
int address_split(const char *text, char **host, int *port, struct error *err);
/* "localhost", or an address that only this machine reaches. */
bool address_is_loopback(const char *host);
/*
 * Does a URL such as "ws://10.0.0.1:80/x" send its requests unencrypted to another machine? Other
 * schemes than http and ws: no.
 */
bool address_is_exposed(const char *url);
/* Does it belong to the Internet, rather than to this machine or a private network? */
bool address_is_public(const struct sockaddr *address);

#endif
