/*
 * http_guard: refuses requests that two programs could read in two ways.
 *
 * libmicrohttpd at our version accepts requests that can be smuggled past a proxy.
 */
#ifndef NET_HTTP_GUARD_H
#define NET_HTTP_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct http_guard_header {
        const char *name;
        size_t name_n;
        const char *value;
        size_t value_n;
        bool folded; /* continued on another line */
};

/* In any case. */
bool http_guard_is_named(const struct http_guard_header *h, const char *name);
/* NULL: the request is fine; else the reason, a constant text for the answer. */
const char *http_guard_check(const char *method, const char *target, const char *version,
                             const struct http_guard_header *headers, size_t count);

#endif
