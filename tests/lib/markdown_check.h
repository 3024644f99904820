/*
 * Reads a rendered part as the platform would: is it well formed, and which text is visible?
 *
 * Functions are static so that tests and fuzzers share them without another object.
 */
#ifndef TESTS_MARKDOWN_CHECK_H
#define TESTS_MARKDOWN_CHECK_H

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "platform/markdown/markdown.h"

/* Adds a byte that is seen; white space may differ at cuts. */
static inline void see(struct buf *seen, char c)
{
        if (!strchr(" \t\n", c))
                buf_addch(seen, c);
}

static inline bool token(const char **p, const char *text)
{
        if (strncmp(*p, text, strlen(text)) != 0)
                return false;
        *p += strlen(text);
        return true;
}

static inline const char *see_plain(const char *p, struct buf *seen)
{
        for (; *p; p++) {
                if (*p != '>') /* may begin a quoted line */
                        see(seen, *p);
        }
        return NULL;
}

static inline bool see_entity(const char **p, struct buf *seen)
{
        static const struct {
                const char *name;
                char c;
        } entities[] = { { "&lt;", '<' }, { "&gt;", '>' }, { "&amp;", '&' }, { "&quot;", '"' } };

        for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
                if (token(p, entities[i].name)) {
                        see(seen, entities[i].c);
                        return true;
                }
        }
        return false;
}

/* One tag at *p, as strictly as Telegram: known names, closed in order, nothing inside code. */
static inline const char *telegram_tag(const char **p, char *stack, size_t *depth)
{
        static const struct {
                const char *open, *close;
                char id;
        } tags[] = {
                { "<b>", "</b>", 'b' },        { "<i>", "</i>", 'i' },
                { "<s>", "</s>", 's' },        { "<code>", "</code>", 'c' },
                { "<pre>", "</pre>", 'p' },    { "<blockquote>", "</blockquote>", 'q' },
                { "<a href=\"", "</a>", 'a' }, { "<code class=\"language-", "</code>", 'l' },
        };

        for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
                char top = *depth ? stack[*depth - 1] : 0;

                if (top == tags[i].id && token(p, tags[i].close)) {
                        --*depth;
                        return NULL;
                }
                if (!token(p, tags[i].open))
                        continue;
                if (memchr(stack, tags[i].id, *depth))
                        return "a tag inside itself";
                if (top == 'c' || top == 'l' || (top == 'p' && tags[i].id != 'l'))
                        return "a tag inside code";
                if (tags[i].id == 'l' && top != 'p')
                        return "a language outside pre";
                for (; strchr("al", tags[i].id) && **p != '"'; ++*p) {
                        if (!**p || strchr("<> \n", **p))
                                return "a bad attribute";
                }
                if (strchr("al", tags[i].id) && !token(p, "\">"))
                        return "an unfinished attribute";
                stack[(*depth)++] = tags[i].id;
                return NULL;
        }
        return "an unknown tag, or one closed out of order";
}

static inline const char *see_telegram(const char *p, struct buf *seen)
{
        char stack[16];
        size_t depth = 0;

        while (*p) {
                if (*p == '<') {
                        const char *why = telegram_tag(&p, stack, &depth);

                        if (why)
                                return why;
                } else if (*p == '&') {
                        if (!see_entity(&p, seen))
                                return "an unknown entity";
                } else if (*p == '>') {
                        return "a bare >";
                } else {
                        see(seen, *p++);
                }
        }
        return depth ? "an open tag" : NULL;
}

static inline const char *see_slack(const char *p, struct buf *seen)
{
        bool fence = false, link = false;

        while (*p) {
                if (token(&p, "```")) {
                        fence = !fence;
                } else if (token(&p, "<@")) {
                        for (; *p && *p != '>'; p++)
                                see(seen, *p);
                } else if (*p == '<') {
                        if (link || fence)
                                return "a link inside a link or code";
                        p += strcspn(p, "|>\n");
                        if (!token(&p, "|"))
                                return "a broken link";
                        link = true;
                } else if (*p == '>') {
                        link = false; /* or it begins a quoted line */
                        p++;
                } else if (*p == '&') {
                        if (!see_entity(&p, seen))
                                return "an unknown entity";
                } else {
                        if (!strchr("*_~`", *p)) /* marks, or text that looks like them */
                                see(seen, *p);
                        p++;
                }
        }
        if (link)
                return "an open link";
        return fence ? "an open code block" : NULL;
}

static inline size_t ticks_at(const char *p)
{
        return strspn(p, "`");
}

static inline const char *see_discord(const char *p, struct buf *seen)
{
        size_t code = 0, bold = 0, strike = 0; /* code: number of backticks it was opened with */

        while (*p) {
                size_t ticks = ticks_at(p);

                if (ticks > 0 && (!code || ticks == code)) {
                        if (ticks > 3)
                                return "too many backticks";
                        code = code ? 0 : ticks;
                        p += ticks;
                        if (code == 3)
                                p += strcspn(p, "\n");
                } else if (code) {
                        if (*p != '>' && *p != '`')
                                see(seen, *p);
                        p++;
                } else if (*p == '\\') {
                        if (!p[1])
                                return "an unfinished escape";
                        if (p[1] != '>')
                                see(seen, p[1]);
                        p += 2;
                } else if (token(&p, "](")) {
                        p += strcspn(p, ")\n");
                        if (!token(&p, ")"))
                                return "a broken link";
                } else {
                        bold += strncmp(p, "**", 2) == 0;
                        strike += strncmp(p, "~~", 2) == 0;
                        if (!strchr("*~[]#>", *p))
                                see(seen, *p);
                        p += *p == '*' || *p == '~' ? strspn(p, *p == '*' ? "*" : "~") : 1;
                }
        }
        if (code)
                return "open code";
        return bold % 2 || strike % 2 ? "an open span" : NULL;
}

/* Zero-width spaces are ours; they are not seen. */
static inline void drop_zero_width(struct buf *b)
{
        size_t n = 0;

        for (size_t i = 0; i < b->len; i++) {
                if (b->len - i >= 3 && memcmp(b->data + i, "\xe2\x80\x8b", 3) == 0)
                        i += 2;
                else
                        b->data[n++] = b->data[i];
        }
        buf_truncate(b, n);
}

/* Adds the visible text of a part to *seen; returns NULL, or what is wrong with the part. */
static inline const char *markdown_check(const char *part, const struct markdown_limits *l,
                                         struct buf *seen)
{
        static const char *(*const see_as[])(const char *, struct buf *) = {
                [MARKDOWN_PLAIN] = see_plain,
                [MARKDOWN_DISCORD] = see_discord,
                [MARKDOWN_SLACK] = see_slack,
                [MARKDOWN_TELEGRAM_HTML] = see_telegram,
        };
        bool pings = l->dialect == MARKDOWN_DISCORD || l->dialect == MARKDOWN_SLACK;

        if (!*part)
                return "an empty part";
        if (!utf8_valid(part, strlen(part)))
                return "bad UTF-8";
        if (l->max && utf8_length(part, strlen(part), l->unit) > l->max)
                return "a part over the limit";
        if (pings && (strcasestr(part, "@everyone") || strcasestr(part, "@here")))
                return "a ping for everybody";
        return see_as[l->dialect](part, seen);
}

#endif
