/*
 * session_text: texts of programs for people, cut, and as Markdown that shows them as they are.
 *
 * All results are yours to free.
 */
#ifndef REMOTE_SESSION_TEXT_H
#define REMOTE_SESSION_TEXT_H

#include <stddef.h>

#include "base/buf.h"

/* At most so many characters, with "…" if there were more. NULL and blank give NULL. */
char *session_text_short(const char *text, size_t chars);
/* The same of its first line. */
char *session_text_line(const char *text, size_t chars);
/*
 * What a tool is given, which is a text or arguments as JSON: all of it, easy to read; and its
 * first line, of arguments the most telling one.
 */
char *session_text_input(const char *content, size_t chars);
char *session_text_gist(const char *content, size_t chars);
/* A mark and a line of text that is not read as Markdown. */
char *session_text_note(const char *mark, const char *text, size_t chars);

/* Appends Markdown: plain text; a code span of one line; a code block. */
void session_text_add_plain(struct buf *out, const char *text);
void session_text_add_span(struct buf *out, const char *text);
void session_text_add_block(struct buf *out, const char *language, const char *text);

#endif
