/*
 * file: small files, read whole and replaced whole. All calls block; on the loop, run them on the
 * pool.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * Appends the file to out, which has no maximum of its own. -1: ERR_IO, or ERR_INVALID when the
 * file is larger than max bytes. To leave no copy of a secret in freed memory, reserve max +
 * FILE_PIECE bytes beforehand.
 */
int file_read(const char *path, size_t max, struct buf *out, struct error *err);
/* As file_read, from an open file; `name` is for the error. */
int file_read_fd(int fd, const char *name, size_t max, struct buf *out, struct error *err);
#define FILE_PIECE ((size_t)4096)

/* The JSON in the file, yours; NULL when it is missing, larger than max bytes or malformed. */
json_t *file_read_json(const char *path, size_t max);
/*
 * Replaces the file atomically, also across a crash, and makes it readable by its owner alone. 0,
 * or -1 with errno set and the old file in place.
 */
int file_replace(const char *path, const char *text);
/* As file_replace, with a newline after the line; also syncs the directory. */
int file_write_line(const char *path, const char *line, struct error *err);
/* Makes a directory (0700) and those above it. An existing one is left as it is. */
int file_make_dirs(const char *path, struct error *err);

#endif
