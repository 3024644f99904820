#include "sim/slack/sl_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sl_page_read(struct slack_call *c, int64_t fallback, int64_t most, int64_t *from,
                 int64_t *limit)
{
        const char *cursor = sl_call_text(c, "cursor");
        int64_t most_now = c->world->settings.page_max;
        char *end;

        *limit = sl_call_int(c, "limit", fallback);
        *from = 0;
        if (*limit < 1 || *limit > most)
                return sl_call_fail(c, "invalid_limit");
        /* a page may have fewer than asked for, also when more follow */
        if (most_now > 0 && *limit > most_now)
                *limit = most_now;
        if (!cursor)
                return 0;
        if (strncmp(cursor, "next:", 5) != 0)
                return sl_call_fail(c, "invalid_cursor");
        *from = strtoll(cursor + 5, &end, 10);
        return *from > 0 && strcmp(end, "==") == 0 ? 0 : sl_call_fail(c, "invalid_cursor");
}

void sl_page_set(struct slack_call *c, int64_t next)
{
        char cursor[40] = "";

        if (next > 0)
                snprintf(cursor, sizeof(cursor), "next:%" PRId64 "==", next);
        sl_call_set_new(c, "response_metadata", json_pack("{s:s}", "next_cursor", cursor));
}
