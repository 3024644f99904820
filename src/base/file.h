/*
 * file: small files of ours, read whole and replaced whole. Both block; a writer that must not do
 * so runs them on the pool.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <jansson.h>

/*
 * The JSON in it; NULL when there is no such file, or it is larger than max bytes or no JSON.
 * Yours.
 */
json_t *file_read_json(const char *path, size_t max);
/*
 * Whoever reads it finds the old text or the new one, also after a crash; nobody but us may read
 * it. 0, or -1 with errno set: the old one is still there.
 */
int file_replace(const char *path, const char *text);

#endif
