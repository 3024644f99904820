/*
 * file_content: the bytes, name and type of a file that a simulated person sends.
 */
#ifndef SIM_FILE_CONTENT_H
#define SIM_FILE_CONTENT_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

#define FILE_CONTENT_MAX ((size_t)200 << 20)

/* {"content":"text"}, {"base64":"..."} or {"size":n}; default: a tiny picture. Appends to out. */
int file_content_read(const json_t *request, struct buf *out, struct error *err);
/* A name for an address: special characters become underscores. Yours to free. */
char *file_content_name(const char *name);
/* By the name's ending, which *suffix gets without its dot; NULL: unknown. Constants. */
const char *file_content_type(const char *name, const char **suffix);

#endif
