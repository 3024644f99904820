/*
 * jsonw: writes JSON into a buf, without a tree.
 *
 *     jsonw_open(b, '{');
 *     jsonw_str(b, "text", text);
 *     jsonw_close(b, '}');
 *
 * Commas are automatic. After white space a new text begins. Invalid UTF-8 becomes U+FFFD, and
 * what could steer a terminal (utf8_is_control) is escaped. Inside arrays the key is NULL.
 */
#ifndef BASE_JSONW_H
#define BASE_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

void jsonw_open(struct buf *b, char bracket); /* as an element or the root */
void jsonw_open_member(struct buf *b, const char *key, char bracket);
void jsonw_close(struct buf *b, char bracket);
void jsonw_str(struct buf *b, const char *key, const char *text); /* NULL text writes null */
void jsonw_strn(struct buf *b, const char *key, const char *text, size_t n);
void jsonw_opt(struct buf *b, const char *key, const char *text); /* NULL text writes nothing */
void jsonw_int(struct buf *b, const char *key, int64_t n);
void jsonw_real(struct buf *b, const char *key, double x);
void jsonw_bool(struct buf *b, const char *key, bool yes);
void jsonw_null(struct buf *b, const char *key);
/* A value that is already JSON text. */
void jsonw_raw(struct buf *b, const char *key, const char *json);
/* The quoted and escaped string alone. */
void jsonw_quote(struct buf *b, const char *text, size_t n);

#endif
