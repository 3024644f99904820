/*
 * secret: a value that cannot be printed by accident.
 *
 * The configuration holds handles, not secrets: "env:NAME", "file:PATH" or "cmd:PROGRAM ARG...".
 * The type is opaque and secret_reveal is the only way to the bytes, so every use can be found.
 * Making a secret registers it with the log writer; freeing it wipes the memory.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct secret;

/*
 * Resolves a handle. Blocks: call it at start-up or on a worker thread. One trailing newline of a
 * file is removed. A command gets 10 s and no standard input; the first line of its output is the
 * secret. Text that is not a handle is the secret itself and sets *literal, so that the operator
 * can be warned. Relative paths start at dir (NULL: the current directory).
 */
int secret_resolve(const char *handle, const char *dir, struct secret **out, bool *literal,
                   struct error *err);
struct secret *secret_new(const char *bytes, size_t n);
struct secret *secret_dup(const struct secret *s);
void secret_free(struct secret *s);
/* Borrowed, NUL-terminated; keep it in local variables only. */
const char *secret_reveal(const struct secret *s);
size_t secret_length(const struct secret *s);
/* Compares in constant time for equal lengths. NULL equals only NULL. */
bool secret_equals(const struct secret *s, const char *bytes, size_t n);

#endif
