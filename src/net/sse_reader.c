#include "net/sse_reader.h"

#include <string.h>

#define BOM "\xef\xbb\xbf"

void sse_reader_init(struct sse_reader *r, size_t max, sse_event_fn *on_event, void *arg)
{
        memset(r, 0, sizeof(*r));
        buf_init(&r->line, max);
        buf_init(&r->event, max);
        buf_init(&r->data, max);
        buf_init(&r->id, max);
        r->at_start = true;
        r->retry_ms = -1;
        r->on_event = on_event;
        r->arg = arg;
}

void sse_reader_release(struct sse_reader *r)
{
        buf_release(&r->line);
        buf_release(&r->event);
        buf_release(&r->data);
        buf_release(&r->id);
}

static int take_field(struct sse_reader *r, struct slice name, struct slice value)
{
        if (slice_is(name, "data")) {
                if (r->has_data && buf_addch(&r->data, '\n'))
                        return -1;
                r->has_data = true;
                return buf_add(&r->data, value.p, value.n);
        }
        if (slice_is(name, "event")) {
                buf_clear(&r->event);
                return buf_add(&r->event, value.p, value.n);
        }
        if (slice_is(name, "id") && !memchr(value.p, '\0', value.n)) {
                buf_clear(&r->id);
                return buf_add(&r->id, value.p, value.n);
        }
        if (slice_is(name, "retry") && value.n > 0 && value.n < 10) {
                int64_t ms = 0;
                size_t i = 0;

                for (; i < value.n && value.p[i] >= '0' && value.p[i] <= '9'; i++)
                        ms = ms * 10 + (value.p[i] - '0');
                if (i == value.n)
                        r->retry_ms = ms;
        }
        return 0;
}

static int take_line(struct sse_reader *r, struct slice line)
{
        const char *colon;
        struct slice name, value;

        if (r->at_start && line.n >= 3 && memcmp(line.p, BOM, 3) == 0)
                line = (struct slice){ line.p + 3, line.n - 3 };
        r->at_start = false;
        if (line.n == 0) { /* the end of an event; the id stays, as the standard says */
                if (r->has_data)
                        r->on_event(r->arg, r->event.data, r->id.data, r->data.data, r->data.len);
                r->has_data = false;
                buf_clear(&r->event);
                buf_clear(&r->data);
                return 0;
        }
        colon = memchr(line.p, ':', line.n);
        if (!colon)
                return take_field(r, line, (struct slice){ "", 0 });
        name = (struct slice){ line.p, (size_t)(colon - line.p) };
        value = (struct slice){ colon + 1, line.n - name.n - 1 };
        if (value.n > 0 && value.p[0] == ' ')
                value = (struct slice){ value.p + 1, value.n - 1 };
        /* a comment is a field without a name: unknown */
        return take_field(r, name, value);
}

int sse_reader_feed(struct sse_reader *r, const char *bytes, size_t n)
{
        if (r->line.overflow || r->data.overflow)
                return -1; /* the rest of an event that was too large */
        while (n > 0) {
                size_t piece = 0;

                if (r->after_cr && *bytes == '\n') {
                        bytes++;
                        n--;
                }
                r->after_cr = false;
                while (piece < n && bytes[piece] != '\n' && bytes[piece] != '\r')
                        piece++;
                if (buf_add(&r->line, bytes, piece))
                        return -1;
                if (piece == n)
                        break;
                r->after_cr = bytes[piece] == '\r';
                bytes += piece + 1;
                n -= piece + 1;
                if (take_line(r, (struct slice){ r->line.data, r->line.len }))
                        return -1;
                buf_clear(&r->line);
        }
        return 0;
}
