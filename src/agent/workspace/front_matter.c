#include "agent/workspace/front_matter.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

struct front_matter_reader {
        const char *p, *end; /* the rest */
        unsigned line;       /* number of the line at p */
        struct buf key, value;
};

/* ---- lines ---- */

static struct slice peek_line(const struct front_matter_reader *r)
{
        const char *nl = memchr(r->p, '\n', (size_t)(r->end - r->p)), *end = nl ? nl : r->end;
        struct slice s = { r->p, (size_t)(end - r->p) };

        if (s.n > 0 && s.p[s.n - 1] == '\r')
                s.n--;
        return s;
}

static void next_line(struct front_matter_reader *r)
{
        const char *nl = memchr(r->p, '\n', (size_t)(r->end - r->p));

        r->p = nl ? nl + 1 : r->end;
        r->line++;
}

static size_t indent_of(struct slice s)
{
        size_t i = 0;

        while (i < s.n && s.p[i] == ' ')
                i++;
        return i;
}

static struct slice trim(struct slice s)
{
        while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
                s.p++;
                s.n--;
        }
        while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
                s.n--;
        return s;
}

/* Is the line empty or, within a block, further right than its key? */
static bool continues(const struct front_matter_reader *r)
{
        struct slice s = peek_line(r);

        return r->p < r->end && (trim(s).n == 0 || indent_of(s) > 0);
}

/* ---- values ---- */

/* "|" or ">", with what may follow: how to treat the last line breaks, and the indentation. */
static bool is_block_head(struct slice s)
{
        if (s.n == 0 || (s.p[0] != '|' && s.p[0] != '>'))
                return false;
        for (size_t i = 1; i < s.n && s.p[i] != ' '; i++)
                if (!strchr("+-123456789", s.p[i]))
                        return false;
        return true;
}

/*
 * Lines at the same indentation. Folded: a single line break becomes a space, unless one of its
 * lines is indented further.
 */
static void read_block(struct front_matter_reader *r, bool folded)
{
        size_t indent = 0, blank = 0, cut;
        bool was_deeper = false;

        for (; continues(r); next_line(r)) {
                struct slice s = peek_line(r);
                bool deeper;

                if (trim(s).n == 0) {
                        blank++;
                        continue;
                }
                if (indent == 0)
                        indent = indent_of(s);
                deeper = indent_of(s) > indent;
                if (r->value.len > 0 && blank == 0)
                        buf_addch(&r->value, folded && !deeper && !was_deeper ? ' ' : '\n');
                else if (r->value.len > 0)
                        for (size_t i = 0; i < blank + (folded ? 0 : 1); i++)
                                buf_addch(&r->value, '\n');
                blank = 0;
                was_deeper = deeper;
                cut = deeper || indent_of(s) == indent ? indent : indent_of(s);
                buf_add(&r->value, s.p + cut, s.n - cut);
        }
}

static bool read_hex(const char *p, const char *end, size_t digits, uint32_t *out)
{
        *out = 0;
        if ((size_t)(end - p) < digits)
                return false;
        for (size_t i = 0; i < digits; i++) {
                const char *hex = "0123456789abcdef", *at = strchr(hex, p[i] | 0x20);

                if (p[i] == '\0' || !at || (p[i] < '0'))
                        return false;
                *out = *out * 16 + (uint32_t)(at - hex);
        }
        return true;
}

/* After a backslash; returns how many bytes it took, 0 if there is no such escape. */
static size_t read_escape(struct front_matter_reader *r, const char *p)
{
        static const char from[] = "nrtabfv0e\"\\/ ", to[] = "\n\r\t    \0 \"\\/ ";
        const char *at = p < r->end && *p ? strchr(from, *p) : NULL;
        size_t digits = p < r->end ? (*p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0) : 0;
        uint32_t cp;
        char utf8[4];

        if (at) {
                char c = to[at - from];

                buf_addch(&r->value, c ? c : ' ');
                return 1;
        }
        if (digits == 0 || !read_hex(p + 1, r->end, digits, &cp))
                return 0;
        if (cp == 0)
                cp = 0xfffd;
        buf_add(&r->value, utf8, utf8_encode(cp, utf8));
        return digits + 1;
}

/* A line break in a quoted text: one is a space, more are one less. */
static const char *fold_breaks(struct front_matter_reader *r, const char *p)
{
        size_t breaks = 0;

        while (r->value.len > 0 && r->value.data[r->value.len - 1] == ' ')
                buf_truncate(&r->value, r->value.len - 1);
        for (; p < r->end && strchr(" \t\r\n", *p) && *p; p++)
                if (*p == '\n') {
                        breaks++;
                        r->line++;
                }
        if (breaks == 1)
                buf_addch(&r->value, ' ');
        for (; breaks > 1; breaks--)
                buf_addch(&r->value, '\n');
        return p;
}

/* p is behind the first quote. */
static int read_quoted(struct front_matter_reader *r, const char *p, char quote, struct error *err)
{
        unsigned first = r->line;

        while (p < r->end) {
                if (*p == '\'' && quote == '\'' && p + 1 < r->end && p[1] == '\'') {
                        buf_addch(&r->value, '\'');
                        p += 2;
                } else if (*p == quote) {
                        break;
                } else if (*p == '\n' || (*p == '\r' && p + 1 < r->end && p[1] == '\n')) {
                        p = fold_breaks(r, p);
                } else if (*p == '\\' && quote == '"') {
                        size_t n = read_escape(r, p + 1);

                        if (n == 0)
                                return error_set(err, ERR_INVALID,
                                                 "line %u: unknown escape in a quoted text; a "
                                                 "backslash is written \\\\",
                                                 r->line);
                        p += n + 1;
                } else {
                        buf_addch(&r->value, *p++);
                }
        }
        if (p >= r->end)
                return error_set(err, ERR_INVALID, "line %u: the quoted text has no end", first);
        r->p = p + 1;
        if (trim(peek_line(r)).n > 0 && trim(peek_line(r)).p[0] != '#')
                return error_set(err, ERR_INVALID, "line %u: text after the closing quote",
                                 r->line);
        next_line(r);
        return 0;
}

/* Without a comment. */
static void add_plain(struct front_matter_reader *r, struct slice s)
{
        size_t n = 0;

        s = trim(s);
        while (n < s.n && !(s.p[n] == '#' && (n == 0 || s.p[n - 1] == ' ' || s.p[n - 1] == '\t')))
                n++;
        s.n = n;
        s = trim(s);
        if (s.n > 0 && r->value.len > 0)
                buf_addch(&r->value, ' ');
        buf_add(&r->value, s.p, s.n);
}

/* Lists and nested keys are no values. */
static bool is_nested(const struct front_matter_reader *r)
{
        struct slice s = trim(peek_line(r));
        const char *colon = memchr(s.p, ':', s.n);

        if (s.n > 1 && s.p[0] == '-' && s.p[1] == ' ')
                return true;
        return colon && (colon + 1 == s.p + s.n || colon[1] == ' ');
}

static int read_value(struct front_matter_reader *r, struct slice s, struct error *err)
{
        s = trim(s);
        buf_clear(&r->value);
        if (s.n > 0 && (s.p[0] == '"' || s.p[0] == '\''))
                return read_quoted(r, s.p + 1, s.p[0], err);
        next_line(r);
        if (is_block_head(s)) {
                read_block(r, s.p[0] == '>');
                return 0;
        }
        add_plain(r, s);
        while (continues(r) && !(r->value.len == 0 && is_nested(r))) {
                add_plain(r, peek_line(r));
                next_line(r);
        }
        while (continues(r)) /* what is nested */
                next_line(r);
        return 0;
}

/* ---- the head ---- */

/* Finds the text between the lines "---". */
static bool find_head(const char *text, size_t n, struct front_matter_reader *r)
{
        struct slice line;

        if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
                text += 3;
                n -= 3;
        }
        *r = (struct front_matter_reader){ .p = text, .end = text + n, .line = 1 };
        line = peek_line(r);
        if (!slice_is(line, "---"))
                return false;
        next_line(r);
        for (struct front_matter_reader at = *r; at.p < at.end; next_line(&at)) {
                line = peek_line(&at);
                if (slice_is(trim(line), "---") && line.p[0] == '-') {
                        r->end = at.p;
                        return true;
                }
        }
        return false;
}

static int read_pair(struct front_matter_reader *r, front_matter_fn *fn, void *arg,
                     struct error *err)
{
        struct slice s = peek_line(r), t = trim(s);
        const char *colon = memchr(s.p, ':', s.n);

        if (t.n == 0 || t.p[0] == '#' || indent_of(s) > 0 || t.p[0] == '-') {
                next_line(r);
                return 0;
        }
        if (!colon || colon == s.p || (colon + 1 < s.p + s.n && colon[1] != ' '))
                return error_set(err, ERR_INVALID, "line %u: expected \"key: value\"", r->line);
        buf_clear(&r->key);
        t = trim((struct slice){ s.p, (size_t)(colon - s.p) });
        buf_add(&r->key, t.p, t.n);
        if (read_value(r, (struct slice){ colon + 1, (size_t)(s.p + s.n - colon - 1) }, err) < 0)
                return -1;
        fn(arg, r->key.data, r->value.data);
        return 0;
}

int front_matter_read(const char *text, size_t n, front_matter_fn *fn, void *arg, struct error *err)
{
        struct front_matter_reader r;
        char *clean;
        int rc = 0;

        if (n > FRONT_MATTER_MAX)
                n = FRONT_MATTER_MAX;
        clean = utf8_clean(text, n);
        if (find_head(clean, strlen(clean), &r)) {
                buf_init(&r.key, 0);
                buf_init(&r.value, 0);
                while (rc == 0 && r.p < r.end)
                        rc = read_pair(&r, fn, arg, err);
                buf_release(&r.key);
                buf_release(&r.value);
                rc = rc == 0 ? 1 : -1;
        }
        free(clean);
        return rc;
}
