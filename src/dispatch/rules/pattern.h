/*
 * pattern: regular expressions from the configuration, on text from strangers.
 *
 * PCRE2 with limits: neither a careless pattern nor a hostile text can hold the loop. Case does not
 * count unless the pattern says (?-i).
 */
#ifndef DISPATCH_RULES_PATTERN_H
#define DISPATCH_RULES_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define PATTERN_MAX_BYTES 1000  /* of a pattern */
#define PATTERN_TEXT_MAX  16384 /* bytes of the text that are looked at */

struct pattern;

/*
 * NULL with ERR_INVALID and a sentence that says where: "missing closing parenthesis at offset 4".
 */
struct pattern *pattern_new(const char *text, struct error *err);
void pattern_free(struct pattern *p);
/*
 * 1: it is in the text, 0: it is not, -1: given up, for it would take too long. The text may be any
 * bytes.
 */
int pattern_find(const struct pattern *p, const char *text);

#endif
