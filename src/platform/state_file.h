/*
 * dc_file: a small file that follows something in memory, so that a crash loses at most the last
 * moment of it.
 *
 * Written on a pool thread, as a whole and in one step; an older text never replaces a newer one. A
 * failure is logged, and the next change tries again.
 */
#ifndef PLATFORM_DISCORD_DC_FILE_H
#define PLATFORM_DISCORD_DC_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"

struct dc_file;

/* What is to be in it now; the file's to free. */
typedef char *dc_file_text_fn(void *arg);

/* The path is copied. delay_ms: how late it may be. */
struct dc_file *dc_file_new(struct loop *l, const char *path, int64_t delay_ms,
                            dc_file_text_fn *text, void *arg);
/* It is not up to date any more; now: no delay this time. NULL is fine. */
void dc_file_changed(struct dc_file *f, bool now);
/* Writes what is still to be written; blocks. NULL is fine. */
void dc_file_close(struct dc_file *f);
/* NULL: there is none, or it is not to be read. Yours. */
json_t *dc_file_read(const char *path);

#endif
