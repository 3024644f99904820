/*
 * md_table: a table as aligned text, for platforms that have none.
 */
#ifndef PLATFORM_MARKDOWN_MD_TABLE_H
#define PLATFORM_MARKDOWN_MD_TABLE_H

#include "base/buf.h"
#include "platform/markdown/md_blocks.h"

/* Adds one line per row and a rule below the head; meant for a fixed-width font. */
void md_table_add(struct buf *out, const struct md_doc *doc, const struct md_block *table);

#endif
