#include "agent/tools/text_edit.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

#define CONTEXT_LINES 4
#define MATCHES_MAX   20      /* counted; more are "more" */
#define COMPARED_MAX  1000000 /* lines, when nothing matches */
#define SHOWN_MAX     120     /* bytes of a line in an error */

static int64_t line_number(const char *text, size_t at)
{
        int64_t n = 1;

        for (const char *p = text; (p = memchr(p, '\n', at - (size_t)(p - text))); p++)
                n++;
        return n;
}

/* The line that begins at `at`, without its end; *next: where the next one begins. */
static struct slice line_at(struct slice text, size_t at, size_t *next)
{
        const char *p = text.p + at, *newline = memchr(p, '\n', text.n - at);
        size_t n = newline ? (size_t)(newline - p) : text.n - at;

        *next = at + n + (newline ? 1 : 0);
        return (struct slice){ p, n };
}

static struct slice trimmed(struct slice s)
{
        while (s.n > 0 && strchr(" \t\r", s.p[0])) {
                s.p++;
                s.n--;
        }
        while (s.n > 0 && strchr(" \t\r", s.p[s.n - 1]))
                s.n--;
        return s;
}

static bool is_same(struct slice a, struct slice b)
{
        return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* ---- hints ---- */

/* Does the old text begin here if blanks at both ends of lines are ignored? */
static bool matches_loosely(struct slice text, size_t at, struct slice old, int *budget)
{
        for (size_t o = 0; o < old.n;) {
                struct slice want = trimmed(line_at(old, o, &o));

                if (at >= text.n)
                        return want.n == 0 && o >= old.n;
                if (--*budget < 0 || !is_same(trimmed(line_at(text, at, &at)), want))
                        return false;
        }
        return true;
}

/* How alike two lines are, in percent: what they have in common at both ends. */
static size_t likeness(struct slice a, struct slice b)
{
        size_t least = a.n < b.n ? a.n : b.n, most = a.n < b.n ? b.n : a.n, head = 0, tail = 0;

        while (head < least && a.p[head] == b.p[head])
                head++;
        while (tail < least - head && a.p[a.n - 1 - tail] == b.p[b.n - 1 - tail])
                tail++;
        return most > 0 ? (head + tail) * 100 / most : 0;
}

static int no_match(struct slice text, struct slice old, struct error *err)
{
        struct slice first = { "", 0 }, best_line = { "", 0 };
        size_t best = 0, share;
        int64_t number = 1, best_number = 0;
        int budget = COMPARED_MAX;
        char *shown;

        for (size_t o = 0; o < old.n && first.n == 0;)
                first = trimmed(line_at(old, o, &o));
        for (size_t at = 0, next; at < text.n && budget > 0; at = next, number++) {
                struct slice line = trimmed(line_at(text, at, &next));

                budget--;
                if (is_same(line, trimmed(line_at(old, 0, &share))) &&
                    matches_loosely(text, at, old, &budget))
                        return error_set(err, ERR_MISSING,
                                         "the old text does not occur; what is at line %lld "
                                         "differs from it only in white space. Copy it exactly",
                                         (long long)number);
                share = likeness(line, first);
                if (share > best) {
                        best = share;
                        best_line = line;
                        best_number = number;
                }
        }
        if (best < 50)
                return error_set(err, ERR_MISSING,
                                 "the old text does not occur, and nothing like its first line "
                                 "does; read the file again");
        shown = utf8_clean(best_line.p,
                           utf8_prefix(best_line.p, best_line.n, UTF8_BYTES, SHOWN_MAX));
        error_set(err, ERR_MISSING,
                  "the old text does not occur; the line most like its first one is %lld: '%s'. "
                  "Read the file again and copy the old text exactly",
                  (long long)best_number, shown);
        free(shown);
        return -1;
}

/* ---- the diff ---- */

static void add_lines(struct buf *diff, char mark, struct slice text, size_t from, size_t to,
                      int64_t number)
{
        while (from < to) {
                struct slice line = line_at(text, from, &from);
                char *shown = utf8_clean(line.p, line.n);

                buf_addf(diff, "%c%lld %s\n", mark, (long long)number++, shown);
                free(shown);
        }
}

/* Where the last line of text[from, to) begins. */
static size_t last_line(struct slice text, size_t from, size_t to)
{
        const char *newline = to - from > 1 ? memrchr(text.p + from, '\n', to - from - 1) : NULL;

        return newline ? (size_t)(newline - text.p) + 1 : from;
}

/* The lines in which before[at, old_end) became after[at, new_end). */
static int64_t add_diff(struct buf *diff, struct slice before, struct slice after, size_t at,
                        size_t old_end, size_t new_end)
{
        size_t from = last_line(before, 0, at + 1), next, other, context, end;
        int64_t number = line_number(before.p, from);

        line_at(before, old_end, &old_end); /* to the ends of their lines */
        line_at(after, new_end, &new_end);
        while (from < old_end && from < new_end &&
               is_same(line_at(before, from, &next), line_at(after, from, &other)) &&
               next == other) {
                from = next;
                number++;
        }
        while (old_end > from && new_end > from) {
                next = last_line(before, from, old_end);
                other = last_line(after, from, new_end);
                if (!is_same((struct slice){ before.p + next, old_end - next },
                             (struct slice){ after.p + other, new_end - other }))
                        break;
                old_end = next;
                new_end = other;
        }
        context = from;
        for (int i = 0; i < CONTEXT_LINES && context > 0; i++)
                context = last_line(before, 0, context);
        if (context > 0)
                buf_addstr(diff, " ...\n");
        add_lines(diff, ' ', before, context, from, line_number(before.p, context));
        add_lines(diff, '-', before, from, old_end, number);
        add_lines(diff, '+', after, from, new_end, number);
        end = old_end;
        for (int i = 0; i < CONTEXT_LINES && end < before.n; i++)
                line_at(before, end, &end);
        add_lines(diff, ' ', before, old_end, end, line_number(before.p, old_end));
        if (end < before.n)
                buf_addstr(diff, " ...\n");
        return number;
}

/* ---- matching ---- */

/* The text with CR LF at its line ends; yours to release. */
static void add_crlf(struct buf *out, struct slice text)
{
        for (size_t i = 0; i < text.n; i++) {
                if (text.p[i] == '\n' && (i == 0 || text.p[i - 1] != '\r'))
                        buf_addch(out, '\r');
                buf_addch(out, text.p[i]);
        }
}

/* 0 with the place of the only match. */
static int find_once(struct slice text, struct slice old, size_t *at, struct error *err)
{
        const char *p = text.p;
        struct buf lines;
        size_t count = 0;

        buf_init(&lines, 0);
        while ((p = memmem(p, text.n - (size_t)(p - text.p), old.p, old.n))) {
                if (++count > MATCHES_MAX)
                        break;
                *at = (size_t)(p - text.p);
                buf_addf(&lines, "%s%lld", count > 1 ? ", " : "",
                         (long long)line_number(text.p, *at));
                p++;
        }
        if (count > 1)
                error_set(err, ERR_CONFLICT,
                          "the old text occurs %s%zu times, at lines %s%s; add lines around it so "
                          "that it occurs once",
                          count > MATCHES_MAX ? "more than " : "",
                          count > MATCHES_MAX ? (size_t)MATCHES_MAX : count, lines.data,
                          count > MATCHES_MAX ? " ..." : "");
        buf_release(&lines);
        if (count == 0)
                return no_match(text, old, err);
        return count == 1 ? 0 : -1;
}

int text_edit_apply(struct buf *text, const struct text_edit *edit, struct buf *diff, int64_t *line,
                    struct error *err)
{
        struct slice all = { text->data, text->len }, old = edit->old, new = edit->new;
        const char *newline = memchr(all.p, '\n', all.n);
        struct buf old_crlf, new_crlf, result;
        size_t at = 0;
        int rc = -1;

        buf_init(&old_crlf, 0);
        buf_init(&new_crlf, 0);
        buf_init(&result, 0);
        if (newline && newline > all.p && newline[-1] == '\r') {
                add_crlf(&old_crlf, old);
                add_crlf(&new_crlf, new);
                old = (struct slice){ old_crlf.data, old_crlf.len };
                new = (struct slice){ new_crlf.data, new_crlf.len };
        }
        if (old.n == 0) {
                error_set(err, ERR_INVALID, "the old text is empty; use write for a new file");
        } else if (is_same(old, new)) {
                error_set(err, ERR_INVALID,
                          "the old and the new text are identical, nothing would change");
        } else if (find_once(all, old, &at, err) == 0) {
                buf_add(&result, all.p, at);
                buf_add(&result, new.p, new.n);
                buf_add(&result, all.p + at + old.n, all.n - at - old.n);
                *line = add_diff(diff, all, (struct slice){ result.data, result.len }, at,
                                 at + old.n, at + new.n);
                buf_release(text);
                *text = result;
                buf_init(&result, 0);
                rc = 0;
        }
        buf_release(&old_crlf);
        buf_release(&new_crlf);
        buf_release(&result);
        return rc;
}
