/*
 * print: output for people and programs; colour on terminals only.
 *
 * Text from outside must not control the terminal: use print_text or print_line.
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
 * Begins a style (STYLE_PLAIN ends it). "" unless the stream is a terminal, and neither NO_COLOR
 * nor TERM=dumb is set.
 */
const char *print_style(FILE *to, enum style s);
/* On a terminal, replaces what utf8_is_control names, but newline and tab. */
void print_text(FILE *to, const char *text, size_t n);
/*
 * On one line, with spaces for control characters, cut to `max` bytes at a whole character (0: no
 * limit).
 */
void print_line(FILE *to, const char *text, size_t max);
/* Prefix and print_line; nothing for NULL. */
void print_field(FILE *to, const char *prefix, const char *text, size_t max);
/* As print_field, in single quotes: " by rule 'night'". */
void print_quoted(FILE *to, const char *prefix, const char *text);
/* Prefix, print_text and a newline, on standard error. */
void print_stderr(const char *prefix, const char *text);
/* Indented, with a newline. */
void print_json(const json_t *value);
/* On one line. */
void print_json_line(const json_t *value);
/* As it is, or as {"markdown": ...}. */
void print_markdown(const char *text, bool json);
/* print_plural(1, "turn", "turns") */
const char *print_plural(int64_t n, const char *one, const char *many);

#endif
