/*
 * console: in a terminal, what is typed is written to the bot by Ada, user 42.
 */
#ifndef SIM_CONSOLE_H
#define SIM_CONSOLE_H

#include "net/loop.h"
#include "sim/control.h"

struct console;

/*
 * Each line becomes a request {"from":42,"text":"..."} for `send`. NULL when standard input is no
 * terminal.
 */
struct console *console_new(struct loop *l, struct world *w, control_fn *send);
void console_free(struct console *c);

#endif
