/*
 * md_atoms: a rendered text, ready to be split into messages.
 *
 * An atom is never cut: a visible character with its escape, a mention, a space, a line break. The
 * markup between two atoms follows from their spans: close up to the common ancestor, write the
 * white space, open down to the new one.
 */
#ifndef PLATFORM_MARKDOWN_MD_ATOMS_H
#define PLATFORM_MARKDOWN_MD_ATOMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "platform/markdown/markdown.h"
#include "platform/markdown/md_doc.h"

/* The quality of a cut just before an atom; greater is better. */
enum md_cut {
        MD_CUT_NEVER,
        MD_CUT_LINK, /* inside the text of a link: last resort */
        MD_CUT_CLUSTER,
        MD_CUT_WORD,
        MD_CUT_SENTENCE,
        MD_CUT_LINE,
        MD_CUT_BLOCK,
        MD_CUTS
};

enum md_atom_kind { MD_GLYPH, MD_SPACE, MD_BREAK };

struct md_atom {
        uint32_t off; /* in md_atoms.bytes */
        /* of a glyph: innermost span; of a break: whose line prefix the new line has */
        uint32_t span;
        uint16_t len;   /* bytes */
        uint16_t units; /* length as the platform counts */
        uint16_t shown; /* the same without escapes */
        uint8_t kind;
        uint8_t cut;
};

/* A piece of md_atoms.bytes and its length as the platform counts. */
struct md_piece {
        uint32_t off, len, units;
};

struct md_span {
        uint32_t parent; /* the root, span 0, is its own */
        uint32_t depth;
        bool mark; /* inline markup that a neighbour could disturb, such as *bold* */
        struct md_piece open, close;
        struct md_piece line;               /* begins every line: "> " */
        uint32_t opens_units, closes_units; /* of this span and all around it */
};

enum md_joint {
        MD_JOINT_NONE,  /* markup may touch anything */
        MD_JOINT_MARKS, /* a closing mark must not touch an opening one */
        MD_JOINT_WORDS, /* marks must not touch a word from outside either */
};

struct md_atoms {
        enum utf8_unit unit;
        enum md_joint joint; /* where a zero-width space is needed */
        struct buf bytes;
        struct md_atom *items;
        size_t count, cap;
        struct md_span *spans;
        size_t span_count, span_cap;
};

#define MD_ZERO_WIDTH "\xe2\x80\x8b"

void md_atoms_init(struct md_atoms *a, enum utf8_unit unit, enum md_joint joint);
void md_atoms_release(struct md_atoms *a);
/* The text is at most UINT16_MAX long. When it contains escapes, set `shown` of the atom. */
struct md_atom *md_atoms_add(struct md_atoms *a, enum md_atom_kind kind, const char *text, size_t n,
                             uint32_t span, enum md_cut cut);
struct md_piece md_atoms_piece(struct md_atoms *a, const char *text, size_t n);
/* Returns the number of the new span; `line` is the line prefix of everything in it. */
uint32_t md_atoms_span(struct md_atoms *a, uint32_t parent, bool mark, const char *open,
                       const char *close, struct md_piece line);

/*
 * md_split.c: splits the text into parts.
 *
 * `max` is in the atoms' unit, 0 for no limit. The writer guarantees that the text between two
 * allowed cuts fits into a part. `caption` limits the first part without that guarantee: it may be
 * empty.
 */
void md_split(const struct md_atoms *atoms, size_t max, size_t caption, struct markdown_parts *out);

/* md_write.c: blocks become atoms in a platform's dialect; release them. */
void md_write(const struct md_doc *doc, const struct markdown_limits *limits,
              struct md_atoms *atoms);

#endif
