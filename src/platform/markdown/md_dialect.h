/* md_dialect: how each platform writes markup, and what it would mistake for markup. */
#ifndef PLATFORM_MARKDOWN_MD_DIALECT_H
#define PLATFORM_MARKDOWN_MD_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "platform/markdown/markdown.h"
#include "platform/markdown/md_atoms.h"

struct md_pair {
        const char *open, *close; /* NULL: the dialect has no such markup */
};

struct md_dialect {
        struct md_pair bold, italic, strike, mono;
        /* for code that contains a backtick; NULL: it is written as text */
        struct md_pair mono_ticks;
        struct md_pair pre;      /* a code block; \n in its markup begins a new, quoted, line */
        struct md_pair pre_lang; /* with "%s" for the language; NULL: the dialect names none */
        struct md_pair quote;
        const char *quote_line; /* begins each quoted line; NULL: the quote is a span */
        unsigned quote_depth;   /* deepest nesting the platform can show */
        bool quote_code;        /* a code block may stand in a quote */
        bool headings;          /* "# " to "### "; else headings are bold */
        bool mono_alone;        /* code cannot be bold */
        bool line_marks;        /* markup does not reach over a line end */
        bool broadcast;         /* @everyone would ping */
        bool names_ping;        /* @name does, without markup */
        enum md_joint joint;
        const char *bullet, *todo, *done, *rule;

        /* Adds one ASCII character, escaped; its neighbours are '\n' at a line's edge. */
        void (*escape)(struct buf *out, char c, char before, char after, bool code);
        /* Adds the markup around a link's label; false: the platform cannot link there. */
        bool (*link)(struct buf *open, struct buf *close, struct slice url);
        /* The platform makes links of bare addresses itself, and rejects them as labels. */
        bool bare_links;
};

extern const struct md_dialect md_dialects[]; /* by enum markdown_dialect */
/* Adds an address; white space and what could be markup is percent-encoded. */
void md_dialect_add_url(struct buf *out, struct slice url);
/* Does the address name a person, who is notified of the link? */
bool md_dialect_is_person(struct slice url);

#endif
