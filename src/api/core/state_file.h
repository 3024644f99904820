/*
 * state_file: small files in the state directory, written whole or not at all.
 */
#ifndef API_CORE_STATE_FILE_H
#define API_CORE_STATE_FILE_H

#include "base/error.h"

/*
 * Replaces the file by this text and a newline, 0600, durable: a reader sees the old one or the new
 * one.
 */
int state_file_write(const char *path, const char *text, struct error *err);
/* Makes a directory (0700) with those above it. An existing one is left as it is. */
int state_dir_make(const char *path, struct error *err);

#endif
