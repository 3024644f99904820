/*
 * editor: reads lines from the terminal, with editing and history, while the loop runs.
 *
 * libedit asks for one character at a time; we run the loop until one is there. So editor_read
 * blocks its caller but not other events. Do not call it inside callbacks of the loop. Input typed
 * between two lines is kept, not echoed.
 */
#ifndef CLI_EDITOR_H
#define CLI_EDITOR_H

#include <stdbool.h>

#include "net/loop.h"

struct editor;

/* history is a file; NULL: none. */
struct editor *editor_new(struct loop *l, const char *prompt, const char *history);
void editor_free(struct editor *e);
/* A line without its newline, yours to free; NULL at the end of input or after editor_interrupt. */
char *editor_read(struct editor *e);
/* From a callback: makes editor_read return NULL. */
void editor_interrupt(struct editor *e);
/* From a callback while editor_read waits: hide and redraw the line around other output. */
void editor_hide(struct editor *e);
void editor_show(struct editor *e);
void editor_resized(struct editor *e);

#endif
