#include "api/core/page.h"

#include <stdio.h>

#include "base/jsonw.h"

void page_open(struct buf *json)
{
        jsonw_open(json, '{');
        jsonw_open_member(json, "items", '[');
}

void page_close(struct buf *json, bool more, const char *cursor)
{
        jsonw_close(json, ']');
        jsonw_open_member(json, "meta", '{');
        jsonw_bool(json, "hasMore", more);
        jsonw_str(json, "cursor", cursor);
        jsonw_close(json, '}');
        jsonw_close(json, '}');
}

void page_begin(struct page *p, struct buf *json, int64_t limit)
{
        *p = (struct page){ .json = json, .limit = limit };
        page_open(json);
}

bool page_add(struct page *p, int64_t number)
{
        if (p->count == p->limit) {
                p->more = true;
                return false;
        }
        p->count++;
        p->last = number;
        return true;
}

void page_end(struct page *p, const char *prefix)
{
        char cursor[40];

        snprintf(cursor, sizeof(cursor), "%s%lld", prefix, (long long)p->last);
        page_close(p->json, p->more, p->last > 0 ? cursor : NULL);
}
