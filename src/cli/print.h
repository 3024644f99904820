/*
 * style: colour on terminals only, and text of others that cannot play with the terminal.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GOOD, STYLE_WARN, STYLE_BAD };

/* May this stream be coloured? A terminal, and neither NO_COLOR nor TERM=dumb is set. */
bool print_is_styled(FILE *to);
/* The sequence that begins a style (STYLE_PLAIN ends it); "" when there is to be no colour. */
const char *print_style(FILE *to, enum style s);
/*
 * Foreign text: on a terminal, control characters other than newline and tab are shown as a
 * replacement.
 */
void print_text(FILE *to, const char *text, size_t n);
/*
 * Newlines too become a space: for one line of a table. At most `max` bytes, whole characters; 0:
 * all.
 */
void print_line(FILE *to, const char *text, size_t max);
/* The word that goes with a number: print_plural(1, "turn", "turns"). */
const char *print_plural(int64_t n, const char *one, const char *many);

#endif
