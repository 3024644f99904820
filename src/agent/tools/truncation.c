#include "agent/tools/truncation.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* A tail keeps this much, so that lines may be cut and there is still enough to show. */
#define TAIL_KEPT (128 << 10)

/* ---- cleaning ---- */

enum escape { ESC_NONE, ESC_BEGUN, ESC_CSI, ESC_STRING, ESC_STRING_ESC, ESC_CHARSET };

/* True: the byte belongs to an escape. ECMA-48, with what terminals add to it. */
static bool in_escape(struct text_cleaner *t, unsigned char c)
{
        switch (t->escape) {
        case ESC_BEGUN:
                if (c == '[')
                        t->escape = ESC_CSI;
                else if (c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X')
                        t->escape = ESC_STRING;
                else if (c >= 0x20 && c <= 0x2f)
                        t->escape = ESC_CHARSET;
                else
                        t->escape = ESC_NONE;
                return c >= 0x20;
        case ESC_CSI: /* ends with @ to ~; a control shows that it never was one */
                if (c >= 0x20 && c < 0x40)
                        return true;
                t->escape = ESC_NONE;
                return c >= 0x40 && c < 0x7f;
        case ESC_STRING: /* a title or link, up to BEL or ESC \ */
                if (c == 0x1b)
                        t->escape = ESC_STRING_ESC;
                else if (c == 0x07 || c == '\n')
                        t->escape = ESC_NONE;
                return c != '\n';
        case ESC_STRING_ESC:
                t->escape = c == '\\' ? ESC_NONE : ESC_STRING;
                return c == '\\' || in_escape(t, c);
        case ESC_CHARSET:
                if (c < 0x20 || c > 0x2f)
                        t->escape = ESC_NONE;
                return c >= 0x20;
        default:
                return false;
        }
}

/* How many bytes a character with this first byte has; 0: none begins so. */
static size_t sequence_length(unsigned char c)
{
        if (c < 0x80)
                return 1;
        return c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? (c < 0xf0 ? 3 : 0) : c >= 0xc2 ? 2 : 0;
}

static void add_invalid(struct text_cleaner *t, struct buf *out)
{
        t->invalid++;
        buf_addstr(out, "\xef\xbf\xbd");
}

/* The bytes held back are no character after all. */
static void flush_part(struct text_cleaner *t, struct buf *out)
{
        if (t->part_n > 0)
                add_invalid(t, out);
        t->part_n = 0;
}

static void add_wide(struct text_cleaner *t, unsigned char c, struct buf *out)
{
        uint32_t cp;

        if (t->part_n > 0 && (c & 0xc0) != 0x80)
                flush_part(t, out);
        if (t->part_n == 0 && sequence_length(c) == 0) {
                add_invalid(t, out);
                return;
        }
        t->part[t->part_n++] = (char)c;
        if (t->part_n < sequence_length((unsigned char)t->part[0]))
                return;
        if (utf8_decode(t->part, t->part_n, &cp) != t->part_n)
                add_invalid(t, out);
        else if (cp >= 0xa0) /* not a C1 control */
                buf_add(out, t->part, t->part_n);
        t->part_n = 0;
}

void text_cleaner_add(struct text_cleaner *t, const char *bytes, size_t n, struct buf *out)
{
        t->bytes += (int64_t)n;
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)bytes[i];

                if (t->escape != ESC_NONE && in_escape(t, c))
                        continue;
                if (c >= 0x80) {
                        if (t->cr)
                                buf_addch(out, '\n');
                        t->cr = false;
                        add_wide(t, c, out);
                        continue;
                }
                flush_part(t, out);
                if (t->cr)
                        buf_addch(out, '\n');
                if (t->cr && c == '\n') {
                        t->cr = false;
                        continue;
                }
                t->cr = c == '\r';
                if (c == 0x1b)
                        t->escape = ESC_BEGUN;
                else if (c == '\0')
                        t->nuls++;
                else if (c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7f))
                        buf_addch(out, (char)c);
        }
}

void text_cleaner_end(struct text_cleaner *t, struct buf *out)
{
        flush_part(t, out);
        if (t->cr)
                buf_addch(out, '\n');
        t->cr = false;
        t->escape = ESC_NONE;
}

bool text_cleaner_is_binary(const struct text_cleaner *t)
{
        return (t->nuls + t->invalid) * 10 > t->bytes;
}

/* ---- lines ---- */

/* Cuts the line that begins at `at` and is the last of the text, without its newline. */
static void cut_line(struct buf *text, size_t at, size_t line_bytes, int64_t *cut)
{
        size_t n;

        if (line_bytes <= LINE_MAX_BYTES)
                return;
        n = utf8_prefix(text->data + at, text->len - at, UTF8_BYTES, LINE_MAX_BYTES);
        buf_truncate(text, at + n);
        buf_addf(text, " [%zu more bytes in this line]", line_bytes - n);
        ++*cut;
}

void text_head_init(struct text_head *h, int64_t first, int64_t limit, size_t bytes_max)
{
        *h = (struct text_head){ .first = first,
                                 .limit = limit,
                                 .bytes_max = bytes_max > 0 ? bytes_max : TOOL_BYTES_MAX,
                                 .line = 1 };
        h->result.first_line = first;
        buf_init(&h->text, 0);
}

void text_head_release(struct text_head *h)
{
        buf_release(&h->text);
}

static bool is_wanted(const struct text_head *h)
{
        return !h->full && h->line >= h->first && (h->limit == 0 || h->line < h->first + h->limit);
}

static void end_line(struct text_head *h, bool newline)
{
        struct truncation *r = &h->result;

        if (is_wanted(h)) {
                cut_line(&h->text, h->line_at, h->line_bytes, &r->cut_lines);
                if (r->output_lines >= TOOL_LINES_MAX || h->text.len > h->bytes_max) {
                        r->by = r->output_lines >= TOOL_LINES_MAX ? "lines" : "bytes";
                        buf_truncate(&h->text, h->line_at);
                        h->full = true;
                } else {
                        r->output_lines++;
                        if (newline)
                                buf_addch(&h->text, '\n');
                }
        }
        h->line++;
        h->line_bytes = 0;
        h->line_at = h->text.len;
}

void text_head_add(struct text_head *h, const char *text, size_t n)
{
        const char *end = text + n;

        h->result.total_bytes += (int64_t)n;
        while (text < end) {
                const char *newline = memchr(text, '\n', (size_t)(end - text));
                size_t part = (size_t)((newline ? newline : end) - text);
                /* a character more, so that the cut finds whole ones */
                size_t room = h->text.len - h->line_at < LINE_MAX_BYTES + 4
                                      ? LINE_MAX_BYTES + 4 - (h->text.len - h->line_at)
                                      : 0;

                if (is_wanted(h))
                        buf_add(&h->text, text, part < room ? part : room);
                h->line_bytes += part;
                if (newline)
                        end_line(h, true);
                text += part + (newline ? 1 : 0);
        }
}

void text_head_end(struct text_head *h)
{
        if (h->line_bytes > 0)
                end_line(h, false);
        h->result.total_lines = h->line - 1;
        h->result.output_bytes = h->text.len;
}

void text_tail_init(struct text_tail *t, size_t bytes_max)
{
        *t = (struct text_tail){ .bytes_max = bytes_max > 0 ? bytes_max : TOOL_BYTES_MAX };
        buf_init(&t->text, 0);
}

void text_tail_release(struct text_tail *t)
{
        buf_release(&t->text);
}

void text_tail_add(struct text_tail *t, const char *text, size_t n)
{
        t->result.total_bytes += (int64_t)n;
        for (const char *p = text, *end = text + n; p < end;) {
                const char *newline = memchr(p, '\n', (size_t)(end - p));

                t->line_bytes += (size_t)((newline ? newline : end) - p);
                if (t->line_bytes > t->longest)
                        t->longest = t->line_bytes;
                if (newline) {
                        t->result.total_lines++;
                        t->line_bytes = 0;
                }
                p = newline ? newline + 1 : end;
        }
        buf_add(&t->text, text, n);
        if (t->text.len > (size_t)TAIL_KEPT * 2) {
                buf_consume(&t->text, t->text.len - TAIL_KEPT);
                t->dropped = true;
        }
}

static int64_t lines_of(const struct text_tail *t)
{
        return t->result.total_lines + (t->line_bytes > 0 ? 1 : 0);
}

bool text_tail_is_cut(const struct text_tail *t)
{
        return t->dropped || t->result.total_bytes > (int64_t)t->bytes_max ||
               t->longest > LINE_MAX_BYTES || lines_of(t) > TOOL_LINES_MAX;
}

/* Where the line begins whose newline, or end of text, is at `end`. */
static size_t line_start(const char *text, size_t end)
{
        const char *before = end > 0 ? memrchr(text, '\n', end) : NULL;

        return before ? (size_t)(before - text) + 1 : 0;
}

void text_tail_end(struct text_tail *t)
{
        struct truncation *r = &t->result;
        struct buf *all = &t->text, out;
        size_t end = all->len, from, shown = 0;
        bool newline = end > 0 && all->data[end - 1] == '\n';

        r->total_lines = lines_of(t);
        if (newline)
                end--;
        from = end + (newline ? 1 : 0);
        /* lines from the end on, as long as they fit */
        while (all->len > 0) {
                size_t at = line_start(all->data, end), n = end - at;
                size_t cost = (n > LINE_MAX_BYTES ? LINE_MAX_BYTES + 40 : n) + 1;

                if (at == 0 && t->dropped && r->output_lines > 0)
                        break; /* the rest of a line whose beginning is gone */
                if (r->output_lines >= TOOL_LINES_MAX || shown + cost > t->bytes_max + 1)
                        break;
                if (at == 0 && t->dropped)
                        r->first_line_partial = true;
                shown += cost;
                from = at;
                r->output_lines++;
                if (at == 0)
                        break;
                end = at - 1;
        }
        if (r->output_lines < r->total_lines || r->first_line_partial)
                r->by = r->output_lines >= TOOL_LINES_MAX ? "lines" : "bytes";
        r->first_line = r->total_lines - r->output_lines + 1;
        buf_init(&out, 0);
        while (from < all->len) {
                const char *p = all->data + from, *nl = memchr(p, '\n', all->len - from);
                size_t n = nl ? (size_t)(nl - p) : all->len - from, at = out.len;

                if (r->first_line_partial && n > LINE_MAX_BYTES) { /* its end matters */
                        size_t skip = n - LINE_MAX_BYTES;

                        while (skip < n && ((unsigned char)p[skip] & 0xc0) == 0x80)
                                skip++;
                        buf_add(&out, p + skip, n - skip);
                        r->cut_lines++;
                } else {
                        buf_add(&out, p, n);
                        cut_line(&out, at, n, &r->cut_lines);
                }
                if (nl)
                        buf_addch(&out, '\n');
                from += n + (nl ? 1 : 0);
        }
        buf_release(&t->text);
        t->text = out;
        r->output_bytes = out.len;
}

json_t *truncation_json(const struct truncation *t)
{
        return json_pack("{s:b, s:s?, s:I, s:I, s:I, s:I, s:b, s:b, s:I}", "truncated",
                         t->by != NULL || t->cut_lines > 0, "truncatedBy",
                         t->by ? t->by : (t->cut_lines > 0 ? "bytes" : NULL), "totalLines",
                         (json_int_t)t->total_lines, "totalBytes", (json_int_t)t->total_bytes,
                         "outputLines", (json_int_t)t->output_lines, "outputBytes",
                         (json_int_t)t->output_bytes, "lastLinePartial", t->first_line_partial,
                         "firstLineExceedsLimit", 0, "cutLines", (json_int_t)t->cut_lines);
}
