/*
 * utf8: decodes, validates, measures and cuts UTF-8.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the character at p (n > 0) and returns its length. An invalid byte gives U+FFFD, length
 * 1.
 */
size_t utf8_decode(const char *p, size_t n, uint32_t *cp);
/* Returns the length. Surrogates and values past U+10FFFF give U+FFFD. */
size_t utf8_encode(uint32_t cp, char out[4]);
bool utf8_valid(const char *p, size_t n);
/*
 * Can it steer a terminal or reorder what is shown there? C0 (newline and tab as well), DEL, C1,
 * the bidirectional controls of Unicode, and its line and paragraph separators.
 */
bool utf8_is_control(uint32_t cp);

/* Platforms measure length in different units. */
enum utf8_unit { UTF8_BYTES, UTF8_CODE_POINTS, UTF8_UTF16 };
size_t utf8_length(const char *p, size_t n, enum utf8_unit unit);
/*
 * The bytes of the longest prefix of at most `units` that splits no grapheme cluster (combining
 * marks, ZWJ sequences, flags). A longer cluster is cut at a code point; 0: not even one fits.
 */
size_t utf8_prefix(const char *p, size_t n, enum utf8_unit unit, size_t units);
/* Yours to free; invalid bytes and NUL become U+FFFD. */
char *utf8_clean(const char *p, size_t n);

#endif
