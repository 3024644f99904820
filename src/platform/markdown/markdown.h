/*
 * markdown: renders an agent's Markdown for a platform, in messages the platform accepts.
 *
 * The input is CommonMark with tables, strikethrough, task lists and autolinks, as models write it.
 * It is parsed into blocks (md_doc.c), written as atoms in the platform's dialect (md_write.c,
 * md_dialect.c) and split into parts (md_atoms.c). For the parts always holds:
 *
 *  - each is valid UTF-8, shows something, and is at most `max` long in the platform's unit, markup
 *    included;
 *  - none ends inside a character, an entity, an escape, a tag or a mention; a link is cut only if
 *    its text alone is longer than a part;
 *  - markup open at a cut (a code block with its language, a quote, bold) is closed there and
 *    reopened in the next part;
 *  - together they show the text of the unsplit rendering, except white space at the cuts.
 *
 * Raw HTML in the input is text. Control characters become U+FFFD. Input over MARKDOWN_PARSE_MAX,
 * or built to explode (huge sparse tables, a long address referenced a thousand times), is not
 * parsed but written as plain paragraphs.
 */
#ifndef PLATFORM_MARKDOWN_MARKDOWN_H
#define PLATFORM_MARKDOWN_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/utf8.h"

/* bytes; longer input is not parsed as Markdown */
#define MARKDOWN_PARSE_MAX ((size_t)64 * 1024)
#define MARKDOWN_INPUT_MAX ((size_t)16 * 1024 * 1024) /* bytes; longer input is an error */
/* the smallest `max` in which all markup fits */
#define MARKDOWN_PART_MIN 256

enum markdown_dialect { MARKDOWN_PLAIN, MARKDOWN_DISCORD, MARKDOWN_SLACK, MARKDOWN_TELEGRAM_HTML };

/*
 * Called for every `@name` outside code and links. Adds the platform's mention of that person to
 * *out, unescaped, and returns true; false leaves the name as text. A mention longer than a quarter
 * of a part stays text as well. @everyone, @here and @channel are never looked up and never ping.
 */
typedef bool markdown_mention_fn(void *arg, struct slice name, struct buf *out);

struct markdown_limits {
        enum markdown_dialect dialect;
        enum utf8_unit unit;
        size_t max; /* longest part in units: 0 = no limit, else >= MARKDOWN_PART_MIN */
        /* the first part is a file's caption of so many units, without markup; 0: it is none */
        size_t caption;
        markdown_mention_fn *mention; /* NULL: names stay text */
        void *mention_arg;
};

struct markdown_parts {
        /* NUL-terminated; none is empty, except a caption for which nothing short enough exists */
        char **items;
        size_t count; /* 0 when the input shows nothing */
};

/*
 * Renders and splits. Returns 0 with *out filled (release it), or -1: ERR_INVALID for a limit that
 * is too small, ERR_LIMIT for input over MARKDOWN_INPUT_MAX. The text may be any bytes.
 */
int markdown_render(const char *text, size_t n, const struct markdown_limits *limits,
                    struct markdown_parts *out, struct error *err);
void markdown_parts_release(struct markdown_parts *parts);

#endif
