#include "base/utf8.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define REPLACEMENT 0xfffd
#define ZWJ         0x200d

/* The length by the first byte, and the lowest code point that is not overlong. */
static size_t sequence_length(unsigned char first, uint32_t *lowest)
{
        if (first >= 0xc2 && first <= 0xdf) {
                *lowest = 0x80;
                return 2;
        }
        if (first >= 0xe0 && first <= 0xef) {
                *lowest = 0x800;
                return 3;
        }
        if (first >= 0xf0 && first <= 0xf4) {
                *lowest = 0x10000;
                return 4;
        }
        return 0;
}

static bool is_surrogate(uint32_t cp)
{
        return cp >= 0xd800 && cp <= 0xdfff;
}

bool utf8_is_control(uint32_t cp)
{
        return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x061c || cp == 0x200e ||
               cp == 0x200f || (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x206f);
}

/* 0 for an invalid byte. */
static size_t decode_strict(const char *p, size_t n, uint32_t *cp)
{
        unsigned char first = (unsigned char)p[0];
        uint32_t lowest, value;
        size_t len;

        if (first < 0x80) {
                *cp = first;
                return 1;
        }
        len = sequence_length(first, &lowest);
        if (len == 0 || len > n)
                return 0;
        value = first & (0x7fu >> len);
        for (size_t i = 1; i < len; i++) {
                unsigned char c = (unsigned char)p[i];

                if ((c & 0xc0) != 0x80)
                        return 0;
                value = value << 6 | (c & 0x3fu);
        }
        if (value < lowest || value > 0x10ffff || is_surrogate(value))
                return 0;
        *cp = value;
        return len;
}

size_t utf8_decode(const char *p, size_t n, uint32_t *cp)
{
        size_t len = decode_strict(p, n, cp);

        if (len > 0)
                return len;
        *cp = REPLACEMENT;
        return 1;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
        if (is_surrogate(cp) || cp > 0x10ffff)
                cp = REPLACEMENT;
        if (cp < 0x80) {
                out[0] = (char)cp;
                return 1;
        }
        if (cp < 0x800) {
                out[0] = (char)(0xc0 | cp >> 6);
                out[1] = (char)(0x80 | (cp & 0x3f));
                return 2;
        }
        if (cp < 0x10000) {
                out[0] = (char)(0xe0 | cp >> 12);
                out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
                out[2] = (char)(0x80 | (cp & 0x3f));
                return 3;
        }
        out[0] = (char)(0xf0 | cp >> 18);
        out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
        out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[3] = (char)(0x80 | (cp & 0x3f));
        return 4;
}

bool utf8_valid(const char *p, size_t n)
{
        uint64_t eight;
        uint32_t cp;
        size_t i = 0;

        for (; i + sizeof(eight) <= n; i += sizeof(eight)) { /* skip a start of ASCII */
                memcpy(&eight, p + i, sizeof(eight));
                if (eight & UINT64_C(0x8080808080808080))
                        break;
        }
        for (size_t len; i < n; i += len) {
                len = decode_strict(p + i, n - i, &cp);
                if (len == 0)
                        return false;
        }
        return true;
}

static size_t units_of(uint32_t cp, size_t bytes, enum utf8_unit unit)
{
        switch (unit) {
        case UTF8_BYTES:
                return bytes;
        case UTF8_UTF16:
                return cp > 0xffff ? 2 : 1;
        case UTF8_CODE_POINTS:
                break;
        }
        return 1;
}

size_t utf8_length(const char *p, size_t n, enum utf8_unit unit)
{
        size_t total = 0;
        uint32_t cp;

        if (unit == UTF8_BYTES)
                return n;
        for (size_t i = 0, len; i < n; i += len) {
                len = utf8_decode(p + i, n - i, &cp);
                total += units_of(cp, len, unit);
        }
        return total;
}

static bool is_mark(uint32_t cp)
{
        static const struct {
                uint32_t first, last;
        } marks[] = {
#include "base/utf8_marks.inc"
        };
        size_t low = 0, high = COUNT(marks);

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (cp > marks[middle].last)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < COUNT(marks) && cp >= marks[low].first;
}

static bool is_regional(uint32_t cp)
{
        return cp >= 0x1f1e6 && cp <= 0x1f1ff;
}

enum hangul { HANGUL_NONE, HANGUL_L, HANGUL_V, HANGUL_T, HANGUL_LV, HANGUL_LVT };

static enum hangul hangul_of(uint32_t cp)
{
        if ((cp >= 0x1100 && cp <= 0x115f) || (cp >= 0xa960 && cp <= 0xa97c))
                return HANGUL_L;
        if ((cp >= 0x1160 && cp <= 0x11a7) || (cp >= 0xd7b0 && cp <= 0xd7c6))
                return HANGUL_V;
        if ((cp >= 0x11a8 && cp <= 0x11ff) || (cp >= 0xd7cb && cp <= 0xd7fb))
                return HANGUL_T;
        if (cp >= 0xac00 && cp <= 0xd7a3)
                return (cp - 0xac00) % 28 == 0 ? HANGUL_LV : HANGUL_LVT;
        return HANGUL_NONE;
}

static bool hangul_joins(uint32_t before, uint32_t cp)
{
        enum hangul a = hangul_of(before), b = hangul_of(cp);

        if (a == HANGUL_L)
                return b == HANGUL_L || b == HANGUL_V || b == HANGUL_LV || b == HANGUL_LVT;
        if (a == HANGUL_V || a == HANGUL_LV)
                return b == HANGUL_V || b == HANGUL_T;
        return (a == HANGUL_T || a == HANGUL_LVT) && b == HANGUL_T;
}

/*
 * Does cp belong to the grapheme cluster of `before`? `flags`: regional indicators directly before
 * cp. UAX #29 without prepended marks; anything joins a zero width joiner, for Indic conjuncts.
 */
static bool joins(uint32_t before, size_t flags, uint32_t cp)
{
        if (before < 0x80 && cp < 0x80)
                return before == '\r' && cp == '\n';
        if (before == '\r' || before == '\n')
                return false;
        if (before == ZWJ || is_mark(cp))
                return true;
        if (is_regional(cp))
                return flags % 2 == 1;
        return hangul_joins(before, cp);
}

size_t utf8_prefix(const char *p, size_t n, enum utf8_unit unit, size_t units)
{
        size_t i = 0, used = 0, flags = 0;
        size_t whole = 0; /* end of the last complete cluster */
        uint32_t before = 0, cp;

        if (unit == UTF8_BYTES && n <= units)
                return n;
        while (i < n) {
                size_t len = utf8_decode(p + i, n - i, &cp);
                size_t cost = units_of(cp, len, unit);

                if (i > 0 && !joins(before, flags, cp))
                        whole = i;
                if (cost > units - used)
                        return whole > 0 ? whole : i;
                flags = is_regional(cp) ? flags + 1 : 0;
                before = cp;
                used += cost;
                i += len;
        }
        return n;
}

char *utf8_clean(const char *p, size_t n)
{
        struct buf out;
        uint32_t cp;

        buf_init(&out, 0);
        for (size_t i = 0, len; i < n; i += len) {
                char bytes[4];

                len = utf8_decode(p + i, n - i, &cp);
                buf_add(&out, bytes, utf8_encode(cp ? cp : REPLACEMENT, bytes));
        }
        return buf_take(&out);
}
