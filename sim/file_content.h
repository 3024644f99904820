/*
 * contents: the bytes of a file that somebody who plays a user wants to send.
 */
#ifndef SIM_FILE_CONTENT_H
#define SIM_FILE_CONTENT_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

#define FILE_CONTENT_MAX ((size_t)200 << 20)

/*
 * {"content":"text"}, {"base64":"..."} or {"size":n}; nothing of it gives a tiny picture. Adds to
 * out; -1 with an error.
 */
int file_content_read(const json_t *request, struct buf *out, struct error *err);

#endif
