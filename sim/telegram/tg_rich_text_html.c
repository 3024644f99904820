/*
 * parse_mode HTML, as strict as the real server and with its error texts, which clients match.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "sim/telegram/tg_rich_text.h"

#define MAX_NESTED 64

static const struct {
        const char *tag, *type;
} tags[] = {
        { "a", "text_link" },
        { "b", "bold" },
        { "strong", "bold" },
        { "i", "italic" },
        { "em", "italic" },
        { "s", "strikethrough" },
        { "strike", "strikethrough" },
        { "del", "strikethrough" },
        { "u", "underline" },
        { "ins", "underline" },
        { "tg-spoiler", "spoiler" },
        { "span", "spoiler" },
        { "tg-emoji", "custom_emoji" },
        { "pre", "pre" },
        { "code", "code" },
        { "blockquote", "blockquote" },
};

struct open_tag {
        size_t tag; /* row in tags */
        size_t offset, byte;
        char *argument;
};

struct html {
        struct rich_text *out;
        const char *text, *p;
        struct open_tag nested[MAX_NESTED];
        size_t depth;
        char *problem;
};

#define FAIL(h, ...) (snprintf((h)->problem, TG_RICH_TEXT_PROBLEM_SIZE, __VA_ARGS__), -1)

/* Reads "&amp;" or a number. Returns its length and the character, or 0. */
static size_t read_reference(const char *p, uint32_t *cp)
{
        static const struct {
                const char *name;
                uint32_t cp;
        } known[] = { { "&lt;", '<' }, { "&gt;", '>' }, { "&amp;", '&' }, { "&quot;", '"' } };
        char *end;
        unsigned long n;

        for (size_t i = 0; i < COUNT(known); i++) {
                if (strncmp(p, known[i].name, strlen(known[i].name)) == 0) {
                        *cp = known[i].cp;
                        return strlen(known[i].name);
                }
        }
        if (p[1] != '#' || !isxdigit((unsigned char)p[p[2] == 'x' ? 3 : 2]))
                return 0;
        n = p[2] == 'x' ? strtoul(p + 3, &end, 16) : strtoul(p + 2, &end, 10);
        if (*end != ';' || n == 0 || n > 0x10ffff)
                return 0;
        *cp = (uint32_t)n;
        return (size_t)(end + 1 - p);
}

/* ---- start tags ---- */

static void read_quoted(struct html *h, struct buf *value)
{
        char quote = *h->p++;

        while (*h->p && *h->p != quote) {
                uint32_t cp = 0;
                size_t n = *h->p == '&' ? read_reference(h->p, &cp) : 0;
                char bytes[4];

                if (n > 0) {
                        buf_add(value, bytes, utf8_encode(cp, bytes));
                        h->p += n;
                } else {
                        buf_addch(value, *h->p++);
                }
        }
        if (*h->p == quote)
                h->p++;
}

static int read_token(struct html *h, struct buf *value)
{
        const char *begin = h->p;

        while (isalnum((unsigned char)*h->p) || *h->p == '.' || *h->p == '-')
                buf_addch(value, (char)tolower((unsigned char)*h->p++));
        if (!isspace((unsigned char)*h->p) && *h->p != '>')
                return FAIL(h, "Unexpected end of name token at byte offset %zu",
                            (size_t)(begin - h->text));
        return 0;
}

/* Keeps the attribute that has a meaning for this tag. */
static void set_attribute(struct open_tag *t, const char *name, size_t name_n, const char *value)
{
        static const struct {
                const char *tag, *attribute, *prefix;
        } known[] = {
                { "a", "href", "" },
                { "code", "class", "language-" },
                { "span", "class", "tg-" },
                { "tg-emoji", "emoji-id", "" },
                { "blockquote", "expandable", "" },
        };

        for (size_t i = 0; i < COUNT(known); i++) {
                size_t n = strlen(known[i].prefix);

                if (strcmp(known[i].tag, tags[t->tag].tag) != 0 ||
                    strlen(known[i].attribute) != name_n ||
                    strncmp(known[i].attribute, name, name_n) != 0 ||
                    strncmp(value, known[i].prefix, n) != 0)
                        continue;
                free(t->argument);
                t->argument = mem_strdup(value + n);
        }
}

static int read_attribute(struct html *h, struct open_tag *t, size_t begin)
{
        const char *tag = tags[t->tag].tag, *name = h->p;
        size_t name_n = strcspn(name, "= \t\r\n>");
        struct buf value;
        int rc = 0;

        if (name_n == 0)
                return FAIL(h, "Empty attribute name in the tag \"%s\" at byte offset %zu", tag,
                            begin);
        h->p += name_n;
        while (isspace((unsigned char)*h->p))
                h->p++;
        if (*h->p != '=' && strcmp(tag, "blockquote") == 0) {
                set_attribute(t, name, name_n, "");
                return 0;
        }
        if (*h->p != '=')
                return FAIL(
                        h,
                        "Expected equal sign in declaration of an attribute of the tag \"%s\" at "
                        "byte offset %zu",
                        tag, begin);
        for (h->p++; isspace((unsigned char)*h->p);)
                h->p++;
        if (!*h->p)
                return FAIL(h, "Unclosed start tag \"%s\" at byte offset %zu", tag, begin);
        buf_init(&value, 0);
        if (*h->p == '\'' || *h->p == '"')
                read_quoted(h, &value);
        else
                rc = read_token(h, &value);
        if (rc == 0)
                set_attribute(t, name, name_n, value.data);
        buf_release(&value);
        return rc;
}

static int start_tag(struct html *h)
{
        size_t begin = (size_t)(h->p - h->text), n = strcspn(h->p + 1, " \t\r\n>");
        struct open_tag *t = &h->nested[h->depth];
        size_t tag = 0;

        while (tag < COUNT(tags) &&
               (strlen(tags[tag].tag) != n || strncasecmp(tags[tag].tag, h->p + 1, n) != 0))
                tag++;
        if (!h->p[1 + n])
                return FAIL(h, "Unclosed start tag at byte offset %zu", begin);
        if (tag == COUNT(tags))
                return FAIL(h, "Unsupported start tag \"%.*s\" at byte offset %zu",
                            (int)(n < 60 ? n : 60), h->p + 1, begin);
        if (h->depth == MAX_NESTED)
                return FAIL(h, "Too many nested tags at byte offset %zu", begin);
        *t = (struct open_tag){ tag, h->out->units, h->out->text.len, NULL };
        h->depth++;
        h->p += 1 + n;
        while (*h->p != '>') {
                while (isspace((unsigned char)*h->p))
                        h->p++;
                if (*h->p == '>')
                        break;
                if (!*h->p)
                        return FAIL(h, "Unclosed start tag at byte offset %zu", begin);
                if (read_attribute(h, t, begin) != 0)
                        return -1;
                if (!*h->p)
                        return FAIL(h, "Unclosed start tag at byte offset %zu", begin);
        }
        h->p++;
        if (strcmp(tags[tag].tag, "span") == 0 &&
            (!t->argument || strcmp(t->argument, "spoiler") != 0))
                return FAIL(h, "Tag \"span\" must have class \"tg-spoiler\" at byte offset %zu",
                            begin);
        return 0;
}

/* ---- end tags ---- */

static char *member(const char *key, const char *value)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_str(&b, key, value);
        return buf_take(&b);
}

static void add_link(struct html *h, struct open_tag *t)
{
        const char *href = t->argument && *t->argument ? t->argument : h->out->text.data + t->byte;
        unsigned long long id;

        if (sscanf(href, "tg://user?id=%llu", &id) == 1) {
                tg_rich_text_mark(
                        h->out, "text_mention", t->offset,
                        mem_printf(
                                "\"user\":{\"id\":%llu,\"is_bot\":false,\"first_name\":\"User\"}",
                                id));
                return;
        }
        if (strchr(href, '.') || strncmp(href, "http", 4) == 0 || strncmp(href, "tg:", 3) == 0 ||
            strncmp(href, "mailto:", 7) == 0)
                tg_rich_text_mark(h->out, "text_link", t->offset, member("url", href));
}

static void finish_tag(struct html *h, struct open_tag *t)
{
        const char *type = tags[t->tag].type;
        struct rich_text *r = h->out;

        if (strcmp(type, "text_link") == 0) {
                add_link(h, t);
        } else if (strcmp(type, "custom_emoji") == 0) {
                tg_rich_text_mark(r, type, t->offset,
                                  member("custom_emoji_id", t->argument ? t->argument : "0"));
        } else if (strcmp(type, "blockquote") == 0) {
                tg_rich_text_mark(r, t->argument ? "expandable_blockquote" : type, t->offset, NULL);
        } else if (strcmp(type, "code") == 0 && h->depth > 0 &&
                   strcmp(tags[h->nested[h->depth - 1].tag].tag, "pre") == 0) {
                /* <pre><code class="language-x"> is one entity */
                struct open_tag *pre = &h->nested[h->depth - 1];

                if (t->argument && !pre->argument)
                        pre->argument = mem_strdup(t->argument);
        } else if (strcmp(type, "pre") == 0 && t->argument) {
                tg_rich_text_mark(r, type, t->offset, member("language", t->argument));
        } else {
                tg_rich_text_mark(r, type, t->offset, NULL);
        }
}

static int end_tag(struct html *h)
{
        size_t begin = (size_t)(h->p - h->text), n;
        const char *name = h->p + 2;
        struct open_tag *t;

        if (h->depth == 0)
                return FAIL(h, "Unexpected end tag at byte offset %zu", begin);
        n = strcspn(name, " \t\r\n>");
        for (h->p = name + n; isspace((unsigned char)*h->p);)
                h->p++;
        if (*h->p != '>')
                return FAIL(h, "Unclosed end tag at byte offset %zu", begin);
        h->p++;
        t = &h->nested[h->depth - 1];
        if (n > 0 && (strlen(tags[t->tag].tag) != n || strncasecmp(name, tags[t->tag].tag, n) != 0))
                return FAIL(h,
                            "Unmatched end tag at byte offset %zu, expected \"</%s>\", found "
                            "\"</%.*s>\"",
                            begin, tags[t->tag].tag, (int)(n < 40 ? n : 40), name);
        h->depth--;
        finish_tag(h, t);
        free(t->argument);
        return 0;
}

int tg_rich_text_html(struct rich_text *r, const char *html,
                      char problem[TG_RICH_TEXT_PROBLEM_SIZE])
{
        struct html h = { .out = r, .text = html, .p = html, .problem = problem };
        int rc = 0;

        while (rc == 0 && *h.p) {
                uint32_t cp = 0;
                char bytes[4];
                size_t n;

                if (*h.p == '<') {
                        rc = h.p[1] == '/' ? end_tag(&h) : start_tag(&h);
                        continue;
                }
                n = *h.p == '&' ? read_reference(h.p, &cp) : 0;
                if (n > 0) {
                        tg_rich_text_add(r, bytes, utf8_encode(cp, bytes));
                } else {
                        n = 1 + strcspn(h.p + 1, "<&");
                        tg_rich_text_add(r, h.p, n);
                }
                h.p += n;
        }
        if (rc == 0 && h.depth > 0)
                rc = FAIL(&h, "Can't find end tag corresponding to start tag \"%s\"",
                          tags[h.nested[h.depth - 1].tag].tag);
        while (h.depth > 0)
                free(h.nested[--h.depth].argument);
        return rc;
}
