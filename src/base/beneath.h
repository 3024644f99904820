/*
 * beneath: files below a folder in which another program may change names at any time.
 *
 * Paths are relative, without "..", and no component may be a link. A check of the name can be out
 * of date when the file is opened: these functions open first, then check the descriptor.
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
 * Opens a regular file for reading; never blocks, not even on a pipe. -1 with an error: it is
 * missing, a link, no regular file, has a second name, or is larger than max bytes. `place` names
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
