/*
 * md_entity: HTML entities as they occur in Markdown.
 */
#ifndef PLATFORM_MARKDOWN_MD_ENTITY_H
#define PLATFORM_MARKDOWN_MD_ENTITY_H

#include <stddef.h>

#include "base/buf.h"

/* Adds what "&name;", "&#10;" or "&#xa;" stands for; an unknown name is added as it is written. */
void md_entity_add(struct buf *out, const char *entity, size_t n);

#endif
