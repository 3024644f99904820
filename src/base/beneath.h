/*
 * beneath: files below a folder in which somebody else may change names at any time.
 *
 * Paths are relative, without "..", and no component may be a link. Checking a name and opening it
 * later is no check: these functions open first, and look at the descriptor.
 */
#ifndef BASE_BENEATH_H
#define BASE_BENEATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* As openat(2), close-on-exec; -1 with errno: ELOOP for a link, EXDEV for a path that leaves. */
int beneath_open(int folder, const char *path, int flags, mode_t mode);
/* The same one component at a time, for kernels and sandboxes without openat2. */
int beneath_walk(int folder, const char *path, int flags, mode_t mode);
/*
 * Opens a regular file for reading, without ever waiting for its other end. -1 with an error: it is
 * missing, a link, no regular file, known by a second name, or larger than max bytes. `place` names
 * the folder in errors.
 */
int beneath_open_file(int folder, const char *place, const char *path, int64_t max, int64_t *size,
                      struct error *err);
/*
 * Opens the folder of the file `path`, making missing ones (0700). -1 with errno; *name points at
 * the last component of path.
 */
int beneath_make_folder(int folder, const char *path, const char **name);

#endif
