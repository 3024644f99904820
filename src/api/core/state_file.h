/*
 * state_file: small files in the state directory.
 */
#ifndef API_CORE_STATE_FILE_H
#define API_CORE_STATE_FILE_H

#include "base/error.h"

/* Replaces the file by this text and a newline, durably; 0600. A reader sees the old or the new. */
int state_file_write(const char *path, const char *text, struct error *err);
/* Makes a directory (0700) and those above it. An existing one is left as it is. */
int state_file_make_dir(const char *path, struct error *err);

#endif
