/*
 * parse_mode MarkdownV2 and Markdown, with the real server's error texts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/telegram/tg_rich_text.h"

#define MAX_NESTED 64

static const struct mark {
        const char *sign; /* longer ones first */
        const char *type;
        const char *name; /* in errors */
} marks[] = {
        { "__", "underline", "Underline" },
        { "_", "italic", "Italic" },
        { "*", "bold", "Bold" },
        { "~", "strikethrough", "Strikethrough" },
        { "||", "spoiler", "Spoiler" },
        { "[", "text_link", "TextUrl" },
};

struct open_mark {
        const struct mark *mark;
        size_t offset, byte;
};

struct md {
        struct rich_text *out;
        const char *text, *p;
        struct open_mark nested[MAX_NESTED];
        size_t depth;
        bool quote; /* in lines that begin with > */
        size_t quote_offset;
        char *problem;
};

#define FAIL(m, ...) (snprintf((m)->problem, TG_RICH_TEXT_PROBLEM_SIZE, __VA_ARGS__), -1)

static size_t at(const struct md *m)
{
        return (size_t)(m->p - m->text);
}

/* Copies text up to `stop`; a backslash escapes the next character. False: no stop. */
static bool copy_until(struct md *m, const char *stop)
{
        size_t n = strlen(stop);

        while (*m->p && strncmp(m->p, stop, n) != 0) {
                if (*m->p == '\\' && m->p[1])
                        m->p++;
                tg_rich_text_add(m->out, m->p++, 1);
        }
        if (!*m->p)
                return false;
        m->p += n;
        return true;
}

static char *member(const char *key, const char *value, size_t n)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_strn(&b, key, value, n);
        return buf_take(&b);
}

/* `code` and ```language\nlines```. */
static int read_code(struct md *m)
{
        size_t begin = at(m), offset = m->out->units, n;
        const char *language;

        if (strncmp(m->p, "```", 3) != 0) {
                m->p++;
                if (!copy_until(m, "`"))
                        return FAIL(m, "Can't find end of Code entity at byte offset %zu", begin);
                tg_rich_text_mark(m->out, "code", offset, NULL);
                return 0;
        }
        language = m->p += 3;
        n = strcspn(language, " \t\r\n`");
        if (language[n] == '\n')
                m->p += n + 1;
        else
                n = 0;
        if (!copy_until(m, "```"))
                return FAIL(m, "Can't find end of %s entity at byte offset %zu",
                            n ? "PreCode" : "Pre", begin);
        tg_rich_text_mark(m->out, "pre", offset, n ? member("language", language, n) : NULL);
        return 0;
}

/* Reads the "(address)" of a link. */
static int finish_link(struct md *m, const struct open_mark *o)
{
        struct buf url;
        unsigned long long id;

        if (*m->p != '(')
                return 0; /* plain text, or a URL that is detected later */
        buf_init(&url, 0);
        for (m->p++; *m->p && *m->p != ')'; m->p++) {
                if (*m->p == '\\' && m->p[1])
                        m->p++;
                buf_addch(&url, *m->p);
        }
        if (*m->p != ')') {
                buf_release(&url);
                return FAIL(m, "Can't find end of a URL at byte offset %zu", o->byte);
        }
        m->p++;
        if (sscanf(url.data, "tg://user?id=%llu", &id) == 1)
                tg_rich_text_mark(
                        m->out, "text_mention", o->offset,
                        mem_printf(
                                "\"user\":{\"id\":%llu,\"is_bot\":false,\"first_name\":\"User\"}",
                                id));
        else if (strchr(url.data, '.') || strncmp(url.data, "http", 4) == 0)
                tg_rich_text_mark(m->out, "text_link", o->offset, member("url", url.data, url.len));
        buf_release(&url);
        return 0;
}

static const char *closing(const struct open_mark *o)
{
        return o->mark->sign[0] == '[' ? "]" : o->mark->sign;
}

static int close_mark(struct md *m)
{
        struct open_mark o = m->nested[--m->depth];

        m->p += strlen(closing(&o));
        if (o.mark->sign[0] == '[')
                return finish_link(m, &o);
        tg_rich_text_mark(m->out, o.mark->type, o.offset, NULL);
        return 0;
}

static bool closes(const struct md *m)
{
        const struct open_mark *o = m->depth > 0 ? &m->nested[m->depth - 1] : NULL;
        const char *sign = o ? closing(o) : NULL;

        if (!o || strncmp(m->p, sign, strlen(sign)) != 0)
                return false;
        /* "__" ends an underline rather than an italic */
        return strcmp(sign, "_") != 0 || m->p[1] != '_' || m->depth < 2 ||
               strcmp(m->nested[m->depth - 2].mark->sign, "__") != 0 || m->p[2] == '_';
}

static int open_mark(struct md *m)
{
        for (size_t i = 0; i < COUNT(marks); i++) {
                if (strncmp(m->p, marks[i].sign, strlen(marks[i].sign)) != 0)
                        continue;
                if (m->depth == MAX_NESTED)
                        return FAIL(m, "Too many nested entities at byte offset %zu", at(m));
                m->nested[m->depth++] = (struct open_mark){ &marks[i], m->out->units, at(m) };
                m->p += strlen(marks[i].sign);
                return 0;
        }
        return FAIL(m, "Character '%c' is reserved and must be escaped with the preceding '\\'",
                    *m->p);
}

static void end_quote(struct md *m)
{
        if (m->quote)
                tg_rich_text_mark(m->out, "blockquote", m->quote_offset, NULL);
        m->quote = false;
}

static int v2_step(struct md *m)
{
        if (m->p == m->text || m->p[-1] == '\n') {
                bool quoted = *m->p == '>';

                if (!quoted)
                        end_quote(m);
                else if (!m->quote) {
                        m->quote = true;
                        m->quote_offset = m->out->units;
                }
                if (quoted) {
                        m->p++;
                        return 0;
                }
        }
        if (*m->p == '\\' && m->p[1] > 0 && m->p[1] <= 126) {
                tg_rich_text_add(m->out, m->p + 1, 1);
                m->p += 2;
                return 0;
        }
        if (!strchr("_*[]()~`>#+-=|{}.!", *m->p)) {
                tg_rich_text_add(m->out, m->p++, 1);
                return 0;
        }
        if (*m->p == '`')
                return read_code(m);
        if (closes(m))
                return close_mark(m);
        return open_mark(m);
}

int tg_rich_text_markdown_v2(struct rich_text *r, const char *text,
                             char problem[TG_RICH_TEXT_PROBLEM_SIZE])
{
        struct md m = { .out = r, .text = text, .p = text, .problem = problem };
        int rc = 0;

        while (rc == 0 && *m.p)
                rc = v2_step(&m);
        if (rc != 0)
                return rc;
        end_quote(&m);
        if (m.depth > 0)
                return FAIL(&m, "Can't find end of %s entity at byte offset %zu",
                            m.nested[m.depth - 1].mark->name, m.nested[m.depth - 1].byte);
        return 0;
}

/* ---- the old Markdown: *bold* _italic_ `code` [text](address), not nested ---- */

static int v1_entity(struct md *m, char sign)
{
        struct open_mark o = { NULL, m->out->units, at(m) };
        char stop[2] = { sign == '[' ? ']' : sign, '\0' };

        m->p++;
        while (*m->p && *m->p != stop[0])
                tg_rich_text_add(m->out, m->p++, 1);
        if (!*m->p)
                return FAIL(m, "Can't find end of the entity starting at byte offset %zu", o.byte);
        m->p++;
        if (sign == '[')
                return finish_link(m, &o);
        tg_rich_text_mark(m->out, sign == '*' ? "bold" : "italic", o.offset, NULL);
        return 0;
}

static int v1_step(struct md *m)
{
        char c = *m->p;

        if (c == '\\' && m->p[1] && strchr("_*`[", m->p[1])) {
                tg_rich_text_add(m->out, m->p + 1, 1);
                m->p += 2;
                return 0;
        }
        if (c == '`') {
                size_t begin = at(m);

                return read_code(m) == 0
                               ? 0
                               : FAIL(m, "Can't find end of the entity starting at byte offset %zu",
                                      begin);
        }
        if (c == '_' || c == '*' || c == '[')
                return v1_entity(m, c);
        tg_rich_text_add(m->out, m->p++, 1);
        return 0;
}

int tg_rich_text_markdown(struct rich_text *r, const char *text,
                          char problem[TG_RICH_TEXT_PROBLEM_SIZE])
{
        struct md m = { .out = r, .text = text, .p = text, .problem = problem };
        int rc = 0;

        while (rc == 0 && *m.p)
                rc = v1_step(&m);
        return rc;
}
