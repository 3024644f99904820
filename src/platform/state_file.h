/*
 * state_file: mirrors state in memory to a file, so that a crash loses only the last changes.
 *
 * A pool thread replaces it atomically; an older text never overwrites a newer one.
 */
#ifndef PLATFORM_STATE_FILE_H
#define PLATFORM_STATE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"

#define STATE_FILE_MAX ((size_t)1 << 20) /* for file_read_json */

struct state_file;

/* The text the file should have now, handed over. */
typedef char *state_file_text_fn(void *arg);

/* Copies the path. delay_ms: how long a change may wait to be written. */
struct state_file *state_file_new(struct loop *l, const char *path, int64_t delay_ms,
                                  state_file_text_fn *text, void *arg);
/* Schedules a write; now: without the delay. NULL is fine. */
void state_file_changed(struct state_file *f, bool now);
/* Writes what is outstanding; blocks. NULL is fine. */
void state_file_close(struct state_file *f);

#endif
