#include "platform/discord/dc_route.h"

#include <stdlib.h>
#include <string.h>

bool dc_is_id(const char *text)
{
        size_t n = text ? strspn(text, "0123456789") : 0;

        return n > 0 && n <= 20 && text[n] == '\0';
}

int dc_route_fill(const struct dc_request *q, struct buf *path, struct buf *major,
                  struct error *err)
{
        const char *at = q->route, *open;
        size_t n = 0;

        for (; (open = strchr(at, '{')); n++) {
                const char *close = strchr(open, '}'), *arg = n < DC_ARGS_MAX ? q->args[n] : NULL;
                bool is_id = strncmp(close - 3, "_id", 3) == 0;
                char *escaped;

                buf_add(path, at, (size_t)(open - at));
                if (!arg || !*arg || strcmp(arg, ".") == 0 || strcmp(arg, "..") == 0 ||
                    (is_id && !dc_is_id(arg)))
                        return error_set(err, ERR_INVALID, "'%.40s' is no %.*s of Discord%s",
                                         arg ? arg : "", (int)(close - open - 1), open + 1,
                                         is_id ? ": ids are digits" : "");
                escaped = http_escape(arg);
                buf_addstr(path, escaped);
                if (n == 0 || (n == 1 && strncmp(q->route, "/webhooks/", 10) == 0))
                        buf_addf(major, "%s%s", n ? "/" : "", escaped);
                free(escaped);
                at = close + 1;
        }
        buf_addstr(path, at);
        if (q->query)
                buf_addf(path, "?%s", q->query);
        return 0;
}

void dc_route_of(const char *path, struct buf *route, char ids[DC_ARGS_MAX][DC_ID_SIZE],
                 const char *args[DC_ARGS_MAX])
{
        struct slice before = { "", 0 };
        size_t n = 0;

        while (*path == '/') {
                size_t length = strcspn(path + 1, "/?"), digits = strspn(path + 1, "0123456789");

                if (length > 0 && digits == length && length <= 20 && n < DC_ARGS_MAX) {
                        memcpy(ids[n], path + 1, length);
                        ids[n][length] = '\0';
                        args[n] = ids[n];
                        n++;
                        /* "channels" without its s */
                        buf_addf(route, "/{%.*s_id}", before.n > 0 ? (int)before.n - 1 : 0,
                                 before.p);
                } else {
                        buf_add(route, path, length + 1);
                }
                before = (struct slice){ path + 1, length };
                path += length + 1;
        }
}
