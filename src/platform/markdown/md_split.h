/*
 * md_split: atoms become messages of limited length.
 */
#ifndef PLATFORM_MARKDOWN_MD_SPLIT_H
#define PLATFORM_MARKDOWN_MD_SPLIT_H

#include <stddef.h>

#include "platform/markdown/markdown.h"
#include "platform/markdown/md_atoms.h"

/*
 * Fills *out. `max` is in the atoms' unit, 0 for no limit. Whoever made the atoms promises that
 * from any allowed cut to the next one everything fits into a part of its own, markup included.
 * `caption` is a further limit of the first part (see markdown.h), for which nobody promises that:
 * when nothing fits into it, it stays empty.
 */
void md_split(const struct md_atoms *atoms, size_t max, size_t caption, struct markdown_parts *out);

#endif
