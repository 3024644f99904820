/*
 * markdown: renders an agent's Markdown for a platform, in messages the platform accepts.
 *
 * GitHub's Markdown is parsed into blocks (md_doc.c), written as atoms in the platform's dialect
 * (md_write.c, md_dialect.c) and split into parts (md_split.c). Each part is valid UTF-8, shows
 * something and is at most `max` long, markup included. No part ends inside a character, an escape,
 * a tag or a mention; markup open at a cut is closed and reopened. Raw HTML is text. Input that is
 * too long, or would expand too much, is written as plain paragraphs.
 */
#ifndef PLATFORM_MARKDOWN_MARKDOWN_H
#define PLATFORM_MARKDOWN_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/utf8.h"

#define MARKDOWN_PARSE_MAX ((size_t)64 * 1024)        /* bytes; longer input is not parsed */
#define MARKDOWN_INPUT_MAX ((size_t)16 * 1024 * 1024) /* bytes; longer input is an error */
#define MARKDOWN_PART_MIN  256 /* the smallest `max` in which all markup fits */

enum markdown_dialect { MARKDOWN_PLAIN, MARKDOWN_DISCORD, MARKDOWN_SLACK, MARKDOWN_TELEGRAM_HTML };

/*
 * Adds the platform's mention for an `@name` to *out, unescaped; false: the name stays text. Not
 * called in code and links, nor for @everyone, @here and @channel, which never ping.
 */
typedef bool markdown_mention_fn(void *arg, struct slice name, struct buf *out);

struct markdown_limits {
        enum markdown_dialect dialect;
        enum utf8_unit unit;
        size_t max; /* longest part in units: 0 = no limit, else >= MARKDOWN_PART_MIN */
        /* the first part is a file's caption of so many units, without markup; 0: no caption */
        size_t caption;
        markdown_mention_fn *mention; /* NULL: names stay text */
        void *mention_arg;
        bool notifies_nobody; /* no name and no link of somebody does; instead of `mention` */
};

struct markdown_parts {
        /* NUL-terminated; none is empty, except a caption into which nothing fits */
        char **items;
        size_t count; /* 0 when the input shows nothing */
};

/* The text may be any bytes. -1: ERR_INVALID for a limit that is too small, ERR_LIMIT. */
int markdown_render(const char *text, size_t n, const struct markdown_limits *limits,
                    struct markdown_parts *out, struct error *err);
void markdown_parts_release(struct markdown_parts *parts);

/* The least `max` of markdown_cut: of Markdown, and of text. */
#define MARKDOWN_CUT_MIN  (MARKDOWN_PART_MIN + 2)
#define MARKDOWN_LINE_MIN 64
/*
 * Renders what fits into one message, and "…" if there is more; "" when the text shows nothing.
 * is_line: it is no Markdown but text for one line. Yours to free. *is_cut: there is more; may be
 * NULL.
 */
char *markdown_cut(const char *text, size_t n, bool is_line, const struct markdown_limits *limits,
                   bool *is_cut);

#endif
