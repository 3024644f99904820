/*
 * file: small files, read whole and replaced whole. All calls block.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * Appends the file to out. -1: ERR_IO, or ERR_INVALID beyond max bytes or beyond the maximum of
 * out. For a secret, reserve max + FILE_PIECE bytes beforehand: reallocation leaves copies in freed
 * memory.
 */
int file_read(const char *path, size_t max, struct buf *out, struct error *err);
/* `name` is for the error. */
int file_read_fd(int fd, const char *name, size_t max, struct buf *out, struct error *err);
#define FILE_PIECE ((size_t)4096)

/* Yours; NULL when the file is missing, larger than max bytes or malformed. */
json_t *file_read_json(const char *path, size_t max);
/*
 * Replaces the file atomically, also across a crash, with mode 0600. -1 with errno set: the old
 * file stays.
 */
int file_replace(const char *path, const char *text);
/* As file_replace, with a newline appended; also syncs the directory. */
int file_write_line(const char *path, const char *line, struct error *err);
/* Writes all of it. -1 with errno. */
int file_write(int fd, const void *bytes, size_t n);
/* Copies what follows in one file to another. -1 with errno. */
int file_copy(int from, int to);
/* Makes a directory (0700) and its parents, unless they exist. */
int file_make_dirs(const char *path, struct error *err);

#endif
