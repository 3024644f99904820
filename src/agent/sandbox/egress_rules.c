#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/sandbox/egress.h"
#include "base/mem.h"

#define NAME_MAX_BYTES 253

/* ---- entries ---- */

static bool is_literal(const char *host)
{
        struct in6_addr any;

        return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

/* Splits "host", "host:8080", "[::1]:8080"; *port 0: none given. -1: malformed. */
static int split_entry(const char *entry, char host[256], int *port)
{
        const char *end = entry[0] == '[' ? strchr(entry, ']') : strrchr(entry, ':');
        const char *colon = entry[0] == '[' && end ? end + 1 : end;
        size_t n;

        *port = 0;
        if (entry[0] == '[') {
                if (!end || (*colon != '\0' && *colon != ':'))
                        return -1;
                entry++;
                n = (size_t)(end - entry);
        } else {
                n = end ? (size_t)(end - entry) : strlen(entry);
        }
        if (n == 0 || n > NAME_MAX_BYTES)
                return -1;
        memcpy(host, entry, n);
        host[n] = '\0';
        if (colon && *colon == ':') {
                char *rest;
                long number = strtol(colon + 1, &rest, 10);

                if (*rest || rest == colon + 1 || number < 1 || number > 65535)
                        return -1;
                *port = (int)number;
        }
        return 0;
}

int egress_check_entry(const char *entry, struct error *err)
{
        char host[256];
        int port;
        bool fine = split_entry(entry, host, &port) == 0;
        const char *name = strncmp(host, "*.", 2) == 0 ? host + 2 : host;

        if (fine && strcmp(host, "*") != 0 && !is_literal(host))
                for (const char *c = name; *c && fine; c++)
                        fine = isalnum((unsigned char)*c) || *c == '-' || *c == '.' || *c == '_';
        if (fine)
                return 0;
        return error_set(err, ERR_INVALID,
                         "'%s' is no host: write \"example.org\", \"*.example.org\", "
                         "\"example.org:8080\", \"192.0.2.7:80\" or \"*\"",
                         entry);
}

static bool matches(const char *pattern, const char *host)
{
        size_t n = strlen(host), tail = strlen(pattern) - 1;

        if (is_literal(host)) /* addresses are listed as such */
                return strcasecmp(pattern, host) == 0;
        if (strcmp(pattern, "*") == 0)
                return true;
        if (strncmp(pattern, "*.", 2) == 0)
                return n > tail && strcasecmp(host + n - tail, pattern + 1) == 0;
        return strcasecmp(pattern, host) == 0;
}

bool egress_lists(const struct setting_list *hosts, const char *host, int port, bool *literal)
{
        for (size_t i = 0; i < hosts->count; i++) {
                char pattern[256];
                int only;

                if (split_entry(hosts->items[i], pattern, &only) < 0 || !matches(pattern, host))
                        continue;
                if (only == port || (only == 0 && (port == 80 || port == 443))) {
                        *literal = is_literal(host);
                        return true;
                }
        }
        return false;
}

/* ---- requests ---- */

static bool take_host(struct egress_target *to, const char *p, size_t n, int fallback)
{
        char text[300];
        size_t len;

        if (n == 0 || n >= sizeof(text) || memchr(p, '@', n) || memchr(p, '\0', n))
                return false;
        memcpy(text, p, n);
        text[n] = '\0';
        if (split_entry(text, to->host, &to->port) < 0)
                return false;
        len = strlen(to->host);
        if (len > 1 && to->host[len - 1] == '.')
                to->host[len - 1] = '\0';
        for (char *c = to->host; *c; c++) {
                if (!isalnum((unsigned char)*c) && !strchr("-._:", *c))
                        return false;
                *c = (char)tolower((unsigned char)*c);
        }
        if (to->port == 0)
                to->port = fallback;
        return to->port > 0;
}

int egress_read(const char *bytes, size_t n, struct egress_target *to)
{
        const char *end = memmem(bytes, n, "\r\n\r\n", 4);
        const char *eol, *target, *version, *slash;
        size_t len;

        memset(to, 0, sizeof(*to));
        if (!end)
                return 0;
        eol = memmem(bytes, n, "\r\n", 2);
        to->head = (size_t)(end - bytes) + 4;
        to->line = (size_t)(eol - bytes);
        target = memchr(bytes, ' ', to->line);
        if (!target || target == bytes)
                return -1;
        target++;
        version = memchr(target, ' ', (size_t)(eol - target));
        if (!version || (size_t)(eol - version) != strlen(" HTTP/1.1") ||
            memcmp(version, " HTTP/1.", 8) != 0)
                return -1;
        len = (size_t)(version - target);
        if (memcmp(bytes, "CONNECT ", 8) == 0) {
                to->tunnel = true;
                return take_host(to, target, len, 0) ? 1 : -1;
        }
        if (len <= 7 || strncasecmp(target, "http://", 7) != 0)
                return -1;
        slash = memchr(target + 7, '/', len - 7);
        if (slash)
                to->path = (size_t)(slash - bytes);
        return take_host(to, target + 7, slash ? (size_t)(slash - target - 7) : len - 7, 80) ? 1
                                                                                             : -1;
}
