#include "platform/card_text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "platform/markdown/md_dialect.h"

#define ZERO_WIDTH "\xe2\x80\x8b" /* platforms refuse a field without a name or value */
#define CUT_MARK   " (only the beginning)"
#define REST_MAX   40 /* units of the field that counts the others */
#define OVERHEAD   24 /* units of markup around a part of a message */
#define TIME_SIZE  32

static size_t length(const char *text, const struct card_limits *l)
{
        return utf8_length(text, strlen(text), l->unit);
}

static char *render(const char *text, bool is_line, size_t max, const struct card_limits *l,
                    bool *is_cut)
{
        const struct markdown_limits limits = {
                .dialect = l->dialect, .unit = l->unit, .max = max, .notifies_nobody = true
        };

        return markdown_cut(text ? text : "", text ? strlen(text) : 0, is_line, &limits, is_cut);
}

static char *render_footer(const char *text, const struct card_limits *l)
{
        struct card_limits plain = *l;

        plain.dialect = l->plain_footer ? MARKDOWN_PLAIN : l->dialect;
        return render(text, true, l->footer, &plain, NULL);
}

static char *or_zero_width(char *shown)
{
        if (*shown)
                return shown;
        free(shown);
        return mem_strdup(ZERO_WIDTH);
}

static char *render_value(const char *value, size_t max, const struct card_limits *l, bool *is_cut)
{
        return or_zero_width(render(value, false, max, l, is_cut));
}

/* A reader must not take a part of a value for all of it, such as a command to approve. */
static char *render_name(const char *name, bool is_cut, const struct card_limits *l)
{
        const char *mark = is_cut ? CUT_MARK : "";
        char *shown = render(name, true, l->name - strlen(mark), l, NULL);
        char *marked = mem_printf("%s%s", shown, mark);

        free(shown);
        return or_zero_width(marked);
}

/* ---- the parts ---- */

static void add_field(struct card_text *t, char *name, char *value, bool is_inline)
{
        t->fields[t->field_count].name = name;
        t->fields[t->field_count].value = value;
        t->fields[t->field_count++].is_inline = is_inline;
}

static size_t field_length(const struct card_text *t, size_t i, const struct card_limits *l)
{
        return length(t->fields[i].name, l) + length(t->fields[i].value, l) + l->overhead;
}

/* Drops or cuts the last fields until all are within the budget. */
static void fit_fields(struct card_text *t, const struct card *c, size_t budget,
                       const struct card_limits *l)
{
        size_t count = t->field_count, used = 0, left, fit, room;
        char rest[REST_MAX];

        for (fit = 0; fit < count; fit++) {
                size_t n = field_length(t, fit, l);

                if (used + n > budget)
                        break;
                used += n;
        }
        if (fit == c->field_count)
                return;
        while (fit > 0 && used + REST_MAX + l->overhead > budget)
                used -= field_length(t, --fit, l);
        if (fit < count) {
                free(t->fields[fit].name);
                t->fields[fit].name = render_name(c->fields[fit].name, true, l);
        }
        room = budget - used;
        left = fit == count ? room
                            : length(t->fields[fit].name, l) + l->overhead + REST_MAX + l->overhead;
        if (room >= left + MARKDOWN_CUT_MIN) { /* a part of its value fits */
                free(t->fields[fit].value);
                t->fields[fit].value =
                        render_value(c->fields[fit].value,
                                     room - left < l->value ? room - left : l->value, l, NULL);
                fit++;
        }
        for (size_t i = fit; i < count; i++) {
                free(t->fields[i].name);
                free(t->fields[i].value);
        }
        t->field_count = fit;
        if (fit == c->field_count || room < REST_MAX + l->overhead)
                return;
        snprintf(rest, sizeof(rest), "%zu more", c->field_count - fit);
        add_field(t, mem_strdup("…"), mem_strdup(rest), false);
}

void card_text_init(struct card_text *t, const struct card *c, const struct card_limits *l)
{
        size_t budget = l->total, body, fields = 0;

        *t = (struct card_text){ .title = render(c->title, true, l->title, l, NULL),
                                 .body = render(c->body, false, l->body, l, NULL),
                                 .footer = render_footer(c->footer, l) };
        for (size_t i = 0; i < c->field_count && fields <= budget; i++) { /* more cannot fit */
                const struct card_field *f = &c->fields[i];
                bool is_cut;
                char *value = render_value(f->value, l->value, l, &is_cut);

                add_field(t, render_name(f->name, is_cut, l), value, f->is_inline);
                fields += field_length(t, i, l);
        }
        budget -= length(t->title, l) + length(t->footer, l);
        body = length(t->body, l) + l->overhead;
        if (body + fields > budget && body > budget / 2) {
                /* the body gives way to the fields, down to a half */
                size_t most = budget > fields + budget / 2 ? budget - fields : budget / 2;

                assert(most >= l->overhead + MARKDOWN_CUT_MIN);
                free(t->body);
                t->body = render(c->body, false,
                                 most - l->overhead < l->body ? most - l->overhead : l->body, l,
                                 NULL);
                body = length(t->body, l) + l->overhead;
        }
        fit_fields(t, c, budget - body, l);
}

void card_text_release(struct card_text *t)
{
        free(t->title);
        free(t->body);
        free(t->footer);
        for (size_t i = 0; i < t->field_count; i++) {
                free(t->fields[i].name);
                free(t->fields[i].value);
        }
        *t = (struct card_text){ 0 };
}

/* ---- as a message ---- */

static void add_marked(struct buf *out, struct md_pair pair, const char *text)
{
        buf_addf(out, "%s%s%s", pair.open ? pair.open : "", text, pair.close ? pair.close : "");
}

/* A blank line between blocks, none between fields. */
static void begin_block(struct buf *out, bool apart)
{
        if (out->len > 0)
                buf_addstr(out, apart ? "\n\n" : "\n");
}

static const char *time_text(int64_t ms, char out[TIME_SIZE])
{
        time_t seconds = (time_t)(ms / 1000);
        struct tm tm;

        if (ms <= 0 || !gmtime_r(&seconds, &tm))
                return "";
        strftime(out, TIME_SIZE, "%Y-%m-%d %H:%M UTC", &tm);
        return out;
}

/* "name: value" on one line, or a value of several lines below its name. */
static void add_value(struct buf *out, struct md_pair bold, const char *name, const char *value,
                      bool below)
{
        add_marked(out, bold, name);
        buf_addf(out, "%s%s", below ? "\n" : ": ", value);
}

static void add_footer(struct buf *out, struct md_pair italic, const char *footer, int64_t time_ms)
{
        char time[TIME_SIZE], text[TIME_SIZE * 2] = "";
        const char *when = time_text(time_ms, time);
        struct buf line;

        if (!*footer && !*when)
                return;
        snprintf(text, sizeof(text), "%s%s", *footer && *when ? " · " : "", when);
        buf_init(&line, 0);
        buf_addf(&line, "%s%s", footer, text);
        begin_block(out, true);
        add_marked(out, italic, line.data);
        buf_release(&line);
}

char *card_text_message(const struct card *c, const struct markdown_limits *limits)
{
        const struct md_dialect *d = &md_dialects[limits->dialect];
        size_t max = limits->max ? limits->max : MARKDOWN_INPUT_MAX;
        struct card_limits l = { .dialect = limits->dialect,
                                 .unit = limits->unit,
                                 .title = MARKDOWN_CUT_MIN,
                                 .body = max,
                                 .name = MARKDOWN_CUT_MIN,
                                 .value = 1024,
                                 .footer = MARKDOWN_CUT_MIN,
                                 .total = max - 2 * OVERHEAD - TIME_SIZE,
                                 .overhead = OVERHEAD };
        struct card_text t;
        struct buf out;

        card_text_init(&t, c, &l);
        buf_init(&out, 0);
        if (*t.title)
                add_marked(&out, d->bold, t.title);
        if (*t.body) {
                begin_block(&out, false);
                buf_addstr(&out, t.body);
        }
        for (size_t i = 0; i < t.field_count; i++) {
                begin_block(&out, i == 0 && *t.body);
                add_value(&out, d->bold, t.fields[i].name, t.fields[i].value,
                          i < c->field_count && strchr(c->fields[i].value, '\n'));
        }
        add_footer(&out, d->italic, t.footer, c->time_ms);
        card_text_release(&t);
        return buf_take(&out);
}

/* ---- as Markdown ---- */

/* Text as Markdown that shows it as it is. */
static char *escaped(const char *text)
{
        struct buf out;

        buf_init(&out, 0);
        for (const char *p = text + strspn(text, " \t\r\n"); *p; p++) {
                if (*p == '\n' || *p == '\r')
                        buf_addch(&out, ' ');
                else if (strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", *p))
                        buf_addf(&out, "\\%c", *p);
                else
                        buf_addch(&out, *p);
        }
        while (out.len > 0 && strchr(" \t", out.data[out.len - 1]))
                buf_truncate(&out, out.len - 1);
        return buf_take(&out);
}

static void add_escaped(struct buf *out, struct md_pair pair, const char *text)
{
        char *shown = escaped(text);

        if (*shown)
                add_marked(out, pair, shown);
        free(shown);
}

/* The marks that begin or end fenced code in this line; 0: none. *bare: nothing follows. */
static size_t fence_of(const char *line, size_t n, char *mark, bool *bare)
{
        size_t indent = strspn(line, " "), ticks = 0;

        if (indent > 3 || indent >= n || !strchr("`~", line[indent]))
                return 0;
        while (indent + ticks < n && line[indent + ticks] == line[indent])
                ticks++;
        *mark = line[indent];
        if (*mark == '`' && memchr(line + indent + ticks, '`', n - indent - ticks))
                return 0;
        *bare = strspn(line + indent + ticks, " \t\r") >= n - indent - ticks;
        return ticks >= 3 ? ticks : 0;
}

/* Adds Markdown, closing code that is left open. */
static void add_closed(struct buf *out, const char *text)
{
        char mark = 0, open_mark = 0;
        size_t open = 0;
        bool bare = false;

        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n"), ticks = fence_of(line, n, &mark, &bare);

                if (ticks > 0 && open == 0) {
                        open = ticks;
                        open_mark = mark;
                } else if (ticks >= open && ticks > 0 && mark == open_mark && bare) {
                        open = 0;
                }
                line += n + (line[n] == '\n');
        }
        buf_addstr(out, text);
        if (open > 0 && out->len > 0 && out->data[out->len - 1] != '\n')
                buf_addch(out, '\n');
        for (; open > 0; open--)
                buf_addch(out, open_mark);
}

char *card_text_markdown(const struct card *c)
{
        static const struct md_pair bold = { "**", "**" }, italic = { "*", "*" };
        char time[TIME_SIZE];
        struct buf out;

        buf_init(&out, 0);
        if (c->title)
                add_escaped(&out, bold, c->title);
        if (c->body) {
                begin_block(&out, true);
                add_closed(&out, c->body);
        }
        for (size_t i = 0; i < c->field_count; i++) {
                const struct card_field *f = &c->fields[i];

                begin_block(&out, true);
                add_escaped(&out, bold, f->name);
                buf_addstr(&out, strchr(f->value, '\n') ? "\n\n" : ": ");
                add_closed(&out, f->value);
        }
        if (c->footer || c->time_ms > 0) {
                const char *when = time_text(c->time_ms, time);

                begin_block(&out, true);
                if (c->footer)
                        add_escaped(&out, italic, c->footer);
                buf_addf(&out, "%s%s", c->footer && *when ? " · " : "", when);
        }
        return buf_take(&out);
}
