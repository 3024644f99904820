/*
 * editor: reads lines from the terminal, with editing and history.
 *
 * Runs the loop until libedit's next character is there: editor_read blocks its caller but not
 * other events. Not for callbacks. Input typed between two lines is kept, not echoed.
 */
#ifndef CLI_EDITOR_H
#define CLI_EDITOR_H

#include <stdbool.h>

#include "net/loop.h"

struct editor;

/* history: a file, or NULL. */
struct editor *editor_new(struct loop *l, const char *history);
void editor_free(struct editor *e);
/* Yours to free; NULL at the end of input or after editor_interrupt or editor_stop. */
char *editor_read(struct editor *e, const char *prompt);
/* From a callback: reads no further line. */
void editor_interrupt(struct editor *e);
/* From a callback: drops the line that is being read, if any; the next one can be read. */
void editor_stop(struct editor *e);
/* Did the last editor_read end so? */
bool editor_stopped(const struct editor *e);
/* From a callback while editor_read waits, around other output. */
void editor_hide(struct editor *e);
void editor_show(struct editor *e);
void editor_resized(struct editor *e);

#endif
