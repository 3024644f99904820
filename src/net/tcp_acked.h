/*
 * tcp_acked: how much a peer has received. A file of its own because the kernel's and the C
 * library's tcp headers exclude each other, and only the kernel's has the counter.
 */
#ifndef NET_TCP_ACKED_H
#define NET_TCP_ACKED_H

#include <stdint.h>

/* Bytes the peer has acknowledged since the connection began; 0: unknown. */
uint64_t tcp_acked(int fd);

#endif
