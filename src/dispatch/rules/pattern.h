/*
 * pattern: globs and regular expressions from the configuration, applied to untrusted text.
 *
 * Regular expressions are PCRE2 with limits, so that neither a careless pattern nor a hostile text
 * can block the loop. They ignore case unless the pattern says (?-i).
 */
#ifndef DISPATCH_RULES_PATTERN_H
#define DISPATCH_RULES_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define PATTERN_MAX_BYTES 1000  /* of a pattern */
#define PATTERN_TEXT_MAX  16384 /* bytes of text searched */

struct pattern;

/* NULL with ERR_INVALID and the position: "missing closing parenthesis at offset 4". */
struct pattern *pattern_new(const char *text, struct error *err);
void pattern_free(struct pattern *p);
/* 1: found, 0: not found, -1: gave up, too slow. The text may be any bytes. */
int pattern_find(const struct pattern *p, const char *text);

/* Does the whole text match? `*` is any run of bytes, the rest literal. */
bool pattern_glob(const char *glob, const char *text);

#endif
