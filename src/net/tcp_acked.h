/*
 * tcp_acked: how far a peer has come. A file of its own because the kernel's and the C library's
 * tcp headers exclude each other, and only the kernel's knows the counter.
 */
#ifndef NET_TCP_ACKED_H
#define NET_TCP_ACKED_H

#include <stdint.h>

/*
 * How many bytes the peer has acknowledged since the connection began; 0 when that cannot be found
 * out.
 */
uint64_t tcp_acked(int fd);

#endif
