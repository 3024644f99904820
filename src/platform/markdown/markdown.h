/*
 * markdown: what an agent writes becomes what a platform shows, in messages the platform accepts.
 *
 * The input is CommonMark with tables, strikethrough, task lists and autolinks, as models write it.
 * It is parsed into a block list (md_blocks.h), written as a stream of atoms in the platform's
 * dialect (md_write.h) and assembled into parts (md_split.h). What always holds for the parts:
 *
 *  - each is valid UTF-8, shows something, and is at most `max` long in the platform's own unit,
 *    markup included;
 *  - none ends inside a character, an entity, an escape, a tag or a mention, and a link is cut only
 *    when its text alone is longer than a part;
 *  - what is open at a cut (code block with its language, quote, bold, ...) is closed there and
 *    opened again in the next part;
 *  - together they show the text of the unsplit rendering; only white space at the cuts is gone.
 *
 * Raw HTML in the input is text. Control characters become U+FFFD. Input over MARKDOWN_PARSE_MAX,
 * or one that is built to explode (huge sparse tables, a long address referenced a thousand times),
 * is not parsed: it is written as plain paragraphs, and nothing is lost.
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
 * Asked for every `@name` outside code and links. Adds the platform's own mention of that person to
 * *out, ready to send (it is not escaped again), and returns true; false leaves the name as text. A
 * mention longer than a quarter of a part stays text as well.
 *
 * @everyone, @here and @channel are never asked for and never ping.
 */
typedef bool markdown_mention_fn(void *arg, struct slice name, struct buf *out);

struct markdown_limits {
        enum markdown_dialect dialect;
        enum utf8_unit unit;
        size_t max;     /* longest part in units: 0 = no limit, else >= MARKDOWN_PART_MIN */
        size_t caption; /* the first part stands below a file: so many units of it are shown at
                           most, markup aside; 0: it is a part like the others */
        markdown_mention_fn *mention; /* NULL: names stay text */
        void *mention_arg;
};

struct markdown_parts {
        /*
         * NUL-terminated, none empty; a caption is when nothing short enough can be cut off for it
         */
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
