/*
 * md_doc: Markdown as a flat list of blocks, each with styled runs of text.
 *
 * md4c reports nested callbacks; a writer wants lines, each with its quote, list depth and marker.
 * Entities are decoded; soft and hard breaks are '\n' in the text.
 */
#ifndef PLATFORM_MARKDOWN_MD_DOC_H
#define PLATFORM_MARKDOWN_MD_DOC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum md_kind { MD_PARAGRAPH, MD_HEADING, MD_CODE, MD_TABLE, MD_RULE };

enum { MD_BOLD = 1, MD_ITALIC = 2, MD_STRIKE = 4, MD_MONO = 8 };

struct md_run {
        size_t off, len; /* in md_doc.text */
        unsigned style;  /* MD_BOLD | ... */
        size_t link;     /* 1 + index in md_doc.links; 0: none */
};

struct md_link {
        size_t url, url_len;     /* in md_doc.urls */
        size_t label, label_len; /* in md_doc.text */
};

struct md_cell {
        size_t off, len; /* in md_doc.text */
        bool right;      /* aligned to the right */
};

struct md_block {
        enum md_kind kind;
        size_t quote;         /* number of the outermost quote it is in; 0: none */
        unsigned quote_depth; /* 0: none */
        unsigned list_depth;  /* 0: not in a list */
        bool blank;           /* an empty line stands before it */
        bool item;            /* first block of a list item: has a marker */
        bool ordered;         /* of the marker: ordinal, or a bullet */
        unsigned ordinal;
        char task;      /* ' ' or 'x'; 0: not a task */
        unsigned level; /* of a heading */
        char lang[21];  /* of a code block: only characters that are safe in every dialect */
        /* in md_doc.runs; of a table in md_doc.cells, row by row, head first */
        size_t first, count;
        size_t columns; /* of a table */
};

struct md_doc {
        struct buf text, urls;
        struct md_block *blocks;
        struct md_run *runs;
        struct md_link *links;
        struct md_cell *cells;
        size_t block_count, run_count, link_count, cell_count;
        size_t block_cap, run_cap, link_cap, cell_cap;
};

void md_doc_init(struct md_doc *doc);
void md_doc_release(struct md_doc *doc);
/* Valid UTF-8 without NUL. 0: too long, or expands too much; release *doc. */
int md_doc_parse(struct md_doc *doc, const char *text, size_t n);
/* The text without markup: a paragraph for each piece between empty lines. */
void md_doc_plain(struct md_doc *doc, const char *text, size_t n);

/* md_table.c: one line per row and a rule below the head, aligned for a fixed-width font. */
void md_table_add(struct buf *out, const struct md_doc *doc, const struct md_block *table);

#endif
