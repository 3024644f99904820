/*
 * print: output for people, with colour on terminals only, and for programs.
 *
 * Text from outside must not control the terminal: print it with print_text or print_line.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GOOD, STYLE_WARN, STYLE_BAD };

/*
 * The sequence that begins a style (STYLE_PLAIN ends it). "" unless the stream is a terminal that
 * shows colour: neither NO_COLOR nor TERM=dumb is set.
 */
const char *print_style(FILE *to, enum style s);
/* On a terminal, replaces control characters other than newline and tab. */
void print_text(FILE *to, const char *text, size_t n);
/*
 * Prints on one line: replaces all control characters by spaces, and cuts to `max` bytes at a whole
 * character (0: no limit).
 */
void print_line(FILE *to, const char *text, size_t max);
/* Prints prefix and then the text as print_line; nothing for NULL. */
void print_field(FILE *to, const char *prefix, const char *text, size_t max);
/* Prints a JSON value, indented, and a newline. */
void print_json(const json_t *value);
/* Prints a Markdown document as it is, or as {"markdown": ...}. */
void print_markdown(const char *text, bool json);
/* Chooses the word that goes with a number: print_plural(1, "turn", "turns"). */
const char *print_plural(int64_t n, const char *one, const char *many);

#endif
