/*
 * blobs: the bytes of images in steps, in DIR/state/blobs, named by their SHA-256.
 *
 * A stored block has {"type": "image", "mimeType", "blob"}; in memory it also has "data" (base64),
 * as the model gets it. Documents are stored the same way. All functions work on files and run on a
 * store or pool thread.
 */
#ifndef AGENT_BUILTIN_BLOBS_H
#define AGENT_BUILTIN_BLOBS_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

#define BLOBS_SHOWN \
        ((size_t)24 << 20) /* of all images in a conversation; older ones are left out */

/*
 * Stores the images of a message. Blocks with "file" (below the workspace) are read first; what
 * cannot be shown becomes a text. 0 or -1: they cannot be stored.
 */
int blobs_save(json_t *message, const char *dir, struct error *err);
/* The message as a row has it: without the bytes of stored images. Yours to free. */
char *blobs_row_text(const json_t *message);
/* Reads images of a stored message back, while *room lasts; others stay without "data". */
void blobs_load(json_t *message, const char *dir, size_t *room);
/* Deletes files that no step since before_ms uses. */
void blobs_sweep(const char *dir, int64_t before_ms);

#endif
