#include "net/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define PORT_MAX 65535

/* -1: not a port. */
static long parse_port(const char *text)
{
        size_t n = strspn(text, "0123456789");
        long port = n > 0 && n <= 9 && text[n] == '\0' ? strtol(text, NULL, 10) : -1;

        return port <= PORT_MAX ? port : -1;
}

int address_split(const char *text, char **host, int *port, struct error *err)
{
        const char *colon = strrchr(text, ':');
        const char *from = text, *to = colon ? colon : text;
        long number = colon ? parse_port(colon + 1) : -1;

        if (colon && isdigit((unsigned char)colon[1]) && number < 0)
                return error_set(err, ERR_INVALID,
                                 "'%.100s' has no valid port: expected 0 to %d after the colon",
                                 text, PORT_MAX);
        if (*from == '[' && to > from + 1 && to[-1] == ']') {
                from++;
                to--;
        } else if (memchr(from, ':', (size_t)(to - from)) || *from == '[') {
                to = from; /* an IPv6 address without brackets is ambiguous */
        }
        if (number < 0 || to == from)
                return error_set(err, ERR_INVALID,
                                 "'%.100s' is not an address and port such as '127.0.0.1:8420' or "
                                 "'[::1]:8420'",
                                 text);
        if (host)
                *host = mem_strndup(from, (size_t)(to - from));
        if (port)
                *port = (int)number;
        return 0;
}

bool address_is_loopback(const char *host)
{
        struct in6_addr v6;
        struct in_addr v4;

        if (strcasecmp(host, "localhost") == 0)
                return true;
        if (inet_pton(AF_INET, host, &v4) == 1)
                return (ntohl(v4.s_addr) >> 24) == 127;
        if (inet_pton(AF_INET6, host, &v6) != 1)
                return false;
        if (IN6_IS_ADDR_V4MAPPED(&v6))
                return v6.s6_addr[12] == 127;
        return IN6_IS_ADDR_LOOPBACK(&v6);
}

bool address_is_exposed(const char *url)
{
        const char *at = strstr(url, "://");
        char *host;
        size_t n;
        bool local;

        if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "ws://", 5) != 0)
                return false;
        at += 3;
        n = *at == '[' ? strcspn(at + 1, "]/?#") : strcspn(at, ":/?#");
        host = mem_strndup(*at == '[' ? at + 1 : at, n);
        local = address_is_loopback(host);
        free(host);
        return !local;
}

/* ---- the Internet ---- */

struct range4 {
        uint32_t first;
        int bits;
};

/* RFC 6890 and its successors: whatever is not on the Internet. */
static const struct range4 private4[] = {
        { 0x00000000, 8 },  { 0x0a000000, 8 },  { 0x64400000, 10 }, { 0x7f000000, 8 },
        { 0xa9fe0000, 16 }, { 0xac100000, 12 }, { 0xc0000000, 24 }, { 0xc0000200, 24 },
        { 0xc0586300, 24 }, { 0xc0a80000, 16 }, { 0xc6120000, 15 }, { 0xc6336400, 24 },
        { 0xcb007100, 24 }, { 0xe0000000, 4 },  { 0xf0000000, 4 },
};

static bool is_public4(uint32_t address)
{
        for (size_t i = 0; i < COUNT(private4); i++)
                if (address >> (32 - private4[i].bits) ==
                    private4[i].first >> (32 - private4[i].bits))
                        return false;
        return true;
}

/*
 * Only 2000::/3 is given out. Within it, 6to4 (2002::/16), Teredo (2001::/32), documentation
 * (2001:db8::/32) and other special ones (2001::/23) can lead elsewhere.
 */
static bool is_public6(const uint8_t a[16])
{
        if (a[0] >> 5 != 1)
                return false;
        if (a[0] == 0x20 && a[1] == 0x02)
                return false;
        if (a[0] == 0x20 && a[1] == 0x01 && (a[2] < 0x02 || (a[2] == 0x0d && a[3] == 0xb8)))
                return false;
        return !(a[0] == 0x3f && a[1] == 0xff); /* 3fff::/20, documentation, and its neighbours */
}

bool address_is_public(const struct sockaddr *address)
{
        if (address->sa_family == AF_INET) {
                struct sockaddr_in in;

                memcpy(&in, address, sizeof(in));
                return is_public4(ntohl(in.sin_addr.s_addr));
        }
        if (address->sa_family == AF_INET6) {
                struct sockaddr_in6 in;

                memcpy(&in, address, sizeof(in));
                return is_public6(in.sin6_addr.s6_addr);
        }
        return false;
}
