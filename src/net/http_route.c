#include "net/http_route.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

/* In place. -1 for a broken escape and for %00, which our strings cannot hold. */
static int decode(char *text, bool plus_is_space)
{
        char *out = text;

        for (const char *in = text; *in; in++) {
                int high, low;

                if (*in != '%') {
                        *out++ = *in == '+' && plus_is_space ? ' ' : *in;
                        continue;
                }
                high = hex_digit(in[1]);
                low = high < 0 ? -1 : hex_digit(in[2]);
                if (low < 0 || high + low == 0)
                        return -1;
                *out++ = (char)(high * 16 + low);
                in += 2;
        }
        *out = '\0';
        return 0;
}

int http_route_split(struct http_segments *s, char *path)
{
        s->count = 0;
        for (char *next = path; next;) {
                char *part = next + 1; /* after the slash */

                next = strchr(part, '/');
                if (next)
                        *next = '\0';
                if (s->count == HTTP_MAX_SEGMENTS)
                        return 0;
                if (decode(part, false) != 0)
                        return -1;
                s->part[s->count++] = part;
        }
        return 1;
}

/* Does the row's path match? *literal gets one bit per segment, the first segment highest. */
static bool path_matches(const char *path, const struct http_segments *s, unsigned *literal)
{
        *literal = 0;
        for (size_t i = 0; i < s->count; i++) {
                const char *part = path + 1, *given = s->part[i];

                if (*path != '/')
                        return false;
                *literal <<= 1;
                if (*part == ':') {
                        if (*given == '\0')
                                return false;
                        path = part + strcspn(part, "/");
                        continue;
                }
                /* by hand: every request is compared with every row, and most differ early */
                while (*part != '/' && *part != '\0' && *part == *given) {
                        part++;
                        given++;
                }
                if ((*part != '/' && *part != '\0') || *given != '\0')
                        return false;
                *literal |= 1;
                path = part;
        }
        return *path == '\0';
}

static void add_allowed(struct buf *allow, const char *method)
{
        if (strstr(allow->data, method))
                return;
        if (allow->len > 0)
                buf_addstr(allow, ", ");
        buf_addstr(allow, method);
        if (strcmp(method, "GET") == 0)
                buf_addstr(allow, ", HEAD");
}

int http_route_find(const struct http_route *routes, size_t count, const char *method,
                    const struct http_segments *s, struct http_match *m, struct buf *allow)
{
        unsigned best = 0, literal;
        const char *path;

        m->route = NULL;
        buf_clear(allow);
        for (size_t i = 0; i < count; i++) {
                if (!path_matches(routes[i].path, s, &literal))
                        continue;
                if (strcmp(routes[i].method, method) != 0 &&
                    (strcmp(method, "HEAD") != 0 || strcmp(routes[i].method, "GET") != 0)) {
                        add_allowed(allow, routes[i].method);
                        continue;
                }
                if (!m->route || literal > best ||
                    (literal == best && strcmp(routes[i].method, method) == 0)) {
                        m->route = &routes[i];
                        best = literal;
                }
        }
        if (!m->route)
                return allow->len > 0 ? -1 : 0;
        /* parameter names point into the route table and end at the next slash; see http_param */
        path = m->route->path;
        m->param_count = 0;
        for (size_t i = 0; i < s->count; i++) {
                const char *part = path + 1;

                if (*part == ':' && m->param_count < HTTP_MAX_PARAMS)
                        m->params[m->param_count++] = (struct http_pair){ part + 1, s->part[i] };
                path = part + strcspn(part, "/");
        }
        return 1;
}

int http_route_parse_query(char *query, struct http_pair **pairs, size_t *count)
{
        size_t room = 1;

        *pairs = NULL;
        *count = 0;
        if (!query || !*query)
                return 0;
        for (const char *p = query; *p; p++)
                room += *p == '&';
        *pairs = mem_array(room, sizeof(**pairs));
        for (char *next = query; next;) {
                char *name = next, *value;

                next = strchr(name, '&');
                if (next)
                        *next++ = '\0';
                if (!*name)
                        continue;
                value = strchr(name, '=');
                if (value)
                        *value++ = '\0';
                else
                        value = name + strlen(name);
                if (decode(name, true) != 0 || (*value && decode(value, true) != 0))
                        goto bad;
                (*pairs)[(*count)++] = (struct http_pair){ name, value };
        }
        return 0;
bad:
        free(*pairs);
        *pairs = NULL;
        *count = 0;
        return -1;
}
