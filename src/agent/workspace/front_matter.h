/*
 * front_matter: the head of a Markdown file, between two lines "---".
 *
 * A small part of YAML: "key: value" at the left margin, plain, quoted, folded (>) or literal (|).
 * What is nested below a key, and lists, are skipped.
 */
#ifndef AGENT_WORKSPACE_FRONT_MATTER_H
#define AGENT_WORKSPACE_FRONT_MATTER_H

#include <stddef.h>

#include "base/error.h"

#define FRONT_MATTER_MAX 16384 /* bytes, the lines "---" included */

/* Both are borrowed; value is "" if the key has none, or nested ones. */
typedef void front_matter_fn(void *arg, const char *key, const char *value);
/*
 * Calls fn for each key in turn. 1; 0: the text has no front matter; -1: ERR_INVALID with the line,
 * perhaps after some calls.
 */
int front_matter_read(const char *text, size_t n, front_matter_fn *fn, void *arg,
                      struct error *err);

#endif
