/*
 * utf8: text from outside is bytes with a length; here it becomes valid UTF-8 and is measured.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the character at p (n > 0 bytes left). Returns its length in bytes and sets *cp; an
 * invalid byte counts as one byte long and gives U+FFFD.
 */
size_t utf8_decode(const char *p, size_t n, uint32_t *cp);
/* Writes at most 4 bytes, returns how many. Surrogates and values past U+10FFFF give U+FFFD. */
size_t utf8_encode(uint32_t cp, char out[4]);
bool utf8_valid(const char *p, size_t n);

/* Platforms count length differently. */
enum utf8_unit { UTF8_BYTES, UTF8_CODE_POINTS, UTF8_UTF16 };
size_t utf8_length(const char *p, size_t n, enum utf8_unit unit);
/*
 * The largest prefix of p, in bytes, that is at most `units` long and does not end inside a
 * character as people see it (combining marks, ZWJ sequences, variation selectors, flags and skin
 * tones stay together where that is possible; a single such cluster longer than the limit is cut at
 * a code point). 0 when not even the first code point fits.
 */
size_t utf8_prefix(const char *p, size_t n, enum utf8_unit unit, size_t units);
/* A copy that is valid UTF-8 without NUL: bad bytes and NUL become U+FFFD. Yours to free. */
char *utf8_clean(const char *p, size_t n);

#endif
