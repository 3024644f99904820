/*
 * secret: a value that cannot be printed by accident.
 *
 * The configuration holds handles: "env:NAME", "file:PATH" or "cmd:PROGRAM ARG...". secret_reveal
 * is the only way to the bytes. The log stars them out; freeing wipes them.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct secret;

/*
 * Resolves a handle; blocks. A file loses one trailing newline. A command gets 10 s, no standard
 * input, and PATH and HOME; its first line of output is the secret. Any other text is the secret
 * itself and sets *literal. Relative paths start at dir (may be NULL).
 */
int secret_resolve(const char *handle, const char *dir, struct secret **out, bool *literal,
                   struct error *err);
struct secret *secret_new(const char *bytes, size_t n);
struct secret *secret_dup(const struct secret *s);
void secret_free(struct secret *s);
/* Borrowed; keep it in local variables only. */
const char *secret_reveal(const struct secret *s);
size_t secret_length(const struct secret *s);
/* In constant time for equal lengths. NULL equals only NULL. */
bool secret_equals(const struct secret *s, const char *bytes, size_t n);

/*
 * Splits the line of a "cmd:" handle at spaces outside of quotes. NULL with an error: a quote is
 * left open, or there is no word.
 */
char **secret_split_command(const char *line, struct error *err);
void secret_free_words(char **words);

#endif
