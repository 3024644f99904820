/* adapter_file: an adapter's lock on its token, its state outside the store, files to send. */
#ifndef PLATFORM_ADAPTER_FILE_H
#define PLATFORM_ADAPTER_FILE_H

#include <jansson.h>

#include "base/error.h"
#include "base/secret.h"
#include "platform/platform.h"

/* A descriptor; -1: another adapter or process of this data directory has the token. */
int adapter_file_lock(const struct adapter *a, const struct secret *token, struct error *err);
void adapter_file_unlock(int lock); /* -1 is fine */
/* The object in state/<platform>-<adapter>.json, or an empty one. Yours. */
json_t *adapter_file_read(const struct adapter *a);
/* Replaces the file; a failure is only logged. */
void adapter_file_write(const struct adapter *a, const json_t *state);
/* A text in a table of the state, borrowed. NULL: none. */
const char *adapter_file_get(const json_t *state, const char *table, const char *key);
/* Sets it, and writes the file if that changes something. */
void adapter_file_set(const struct adapter *a, json_t *state, const char *table, const char *key,
                      const char *value);
/*
 * Opens a regular file of the workspace; adapter_file_close ends it. -1 with an error: missing,
 * outside, behind a link, of another kind, or too large for the platform.
 */
int adapter_file_to_send(const struct adapter *a, const char *path, struct http_file *out,
                         struct error *err);
void adapter_file_close(struct http_file *file); /* closed ones (-1) are fine */

#endif
