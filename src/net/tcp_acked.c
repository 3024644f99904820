/*
 * A file of its own: the kernel's tcp header, which alone has this counter, excludes the C
 * library's, which libuv includes.
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

uint64_t tcp_acked(int fd); /* also in http_exchange.h, which cannot be included here */

uint64_t tcp_acked(int fd)
{
        struct tcp_info info;
        socklen_t n = sizeof(info);

        memset(&info, 0, sizeof(info));
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0)
                return 0;
        return info.tcpi_bytes_acked;
}
