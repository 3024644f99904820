/*
 * editor: reads lines from the terminal, with editing and history, while the loop goes on.
 *
 * libedit asks for one character at a time; our answer runs the loop until one is there. So
 * editor_read looks as if it blocked, but whatever else arrives is served meanwhile. Not inside
 * callbacks of the loop. What is typed between two lines is not shown but kept.
 */
#ifndef CLI_EDITOR_H
#define CLI_EDITOR_H

#include <stdbool.h>

#include "net/loop.h"

struct editor;

/* history: the file lines are remembered in; NULL: none. */
struct editor *editor_new(struct loop *l, const char *prompt, const char *history);
/* Saves the history. */
void editor_free(struct editor *e);
/* A line without its newline, yours to free; NULL at the end of input or after editor_interrupt. */
char *editor_read(struct editor *e);
/* From a callback: makes editor_read return NULL. */
void editor_interrupt(struct editor *e);
/*
 * From a callback while editor_read waits: around something that is printed above the line being
 * edited.
 */
void editor_hide(struct editor *e);
void editor_show(struct editor *e);
bool editor_reading(const struct editor *e);
/* The terminal's size changed. */
void editor_resized(struct editor *e);

#endif
