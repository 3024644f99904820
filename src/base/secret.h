/*
 * secret: a value that cannot be printed by accident.
 *
 * The configuration holds handles, not secrets: "env:NAME", "file:PATH" or "cmd:PROGRAM ARG...".
 * The type is opaque; secret_reveal is the only way to the bytes, so a reader can find every place
 * that uses one. Making a secret registers it with the log writer, freeing it wipes the memory.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct secret;

/*
 * Resolves a handle. A file may end in one newline; it is cut off. A command gets 10 s, no standard
 * input and its first line of output counts. Blocks: call it from start-up or a worker thread. Text
 * that is no handle is taken as the secret itself (*literal set, so that the operator can be
 * warned). Relative paths are relative to dir (NULL: the current directory).
 */
int secret_resolve(const char *handle, const char *dir, struct secret **out, bool *literal,
                   struct error *err);
struct secret *secret_new(const char *bytes, size_t n);
struct secret *secret_dup(const struct secret *s);
void secret_free(struct secret *s);
/* Borrowed, NUL-terminated. The one door: keep what comes out of it in a local variable. */
const char *secret_reveal(const struct secret *s);
size_t secret_length(const struct secret *s);
/* In constant time for equal lengths. NULL equals only NULL. */
bool secret_equals(const struct secret *s, const char *bytes, size_t n);

#endif
