/*
 * console: in a terminal, what is typed is written to the bot by Ada, user 42.
 */
#ifndef SIM_TELEGRAM_CONSOLE_H
#define SIM_TELEGRAM_CONSOLE_H

struct world;
struct console;

/* NULL when standard input is no terminal. */
struct console *console_new(struct world *w);
void console_free(struct console *c);

#endif
