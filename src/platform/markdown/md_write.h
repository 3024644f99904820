/*
 * md_write: a block list becomes atoms in a platform's dialect.
 */
#ifndef PLATFORM_MARKDOWN_MD_WRITE_H
#define PLATFORM_MARKDOWN_MD_WRITE_H

#include "platform/markdown/markdown.h"
#include "platform/markdown/md_atoms.h"
#include "platform/markdown/md_blocks.h"

/* Fills *atoms (not yet initialised); release them. */
void md_write(const struct md_doc *doc, const struct markdown_limits *limits,
              struct md_atoms *atoms);

#endif
