/*
 * console: sends each line typed in the terminal to the bot, from Ada (user 42).
 */
#ifndef SIM_CONSOLE_H
#define SIM_CONSOLE_H

#include "net/loop.h"
#include "sim/control.h"

struct console;

/* Each line becomes {"from":42,"text":"..."} for `send`. NULL unless stdin is a terminal. */
struct console *console_new(struct loop *l, struct world *w, control_fn *send);
void console_free(struct console *c);

#endif
