#include "base/jsonw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/*
 * Adds a comma, unless at the start of a bracket or after a key. After white space, which no value
 * ends in, a new text begins.
 */
static void separate(struct buf *b)
{
        char last = b->len > 0 ? b->data[b->len - 1] : '\0';

        switch (last) {
        case '\0':
        case '{':
        case '[':
        case ':':
        case ' ':
        case '\n':
                break;
        default:
                buf_addch(b, ',');
        }
}

static void begin(struct buf *b, const char *key)
{
        separate(b);
        if (key) {
                jsonw_quote(b, key, strlen(key));
                buf_addch(b, ':');
        }
}

void jsonw_open(struct buf *b, char bracket)
{
        separate(b);
        buf_addch(b, bracket);
}

void jsonw_open_member(struct buf *b, const char *key, char bracket)
{
        begin(b, key);
        buf_addch(b, bracket);
}

void jsonw_close(struct buf *b, char bracket)
{
        buf_addch(b, bracket);
}

void jsonw_str(struct buf *b, const char *key, const char *text)
{
        if (text)
                jsonw_strn(b, key, text, strlen(text));
        else
                jsonw_null(b, key);
}

void jsonw_strn(struct buf *b, const char *key, const char *text, size_t n)
{
        begin(b, key);
        jsonw_quote(b, text, n);
}

void jsonw_opt(struct buf *b, const char *key, const char *text)
{
        if (text)
                jsonw_str(b, key, text);
}

void jsonw_int(struct buf *b, const char *key, int64_t n)
{
        begin(b, key);
        buf_addint(b, n);
}

void jsonw_real(struct buf *b, const char *key, double x)
{
        char text[40];

        begin(b, key);
        if (!isfinite(x)) {
                buf_addstr(b, "null");
                return;
        }
        /* LC_NUMERIC is never set, so the decimal point is a point */
        snprintf(text, sizeof(text), "%.17g", x);
        buf_addstr(b, text);
}

void jsonw_bool(struct buf *b, const char *key, bool yes)
{
        begin(b, key);
        buf_addstr(b, yes ? "true" : "false");
}

void jsonw_null(struct buf *b, const char *key)
{
        begin(b, key);
        buf_addstr(b, "null");
}

void jsonw_raw(struct buf *b, const char *key, const char *json)
{
        size_t n = strlen(json);

        while (n > 0 && strchr(" \t\r\n", json[n - 1]))
                n--;
        begin(b, key);
        buf_add(b, json, n);
}

/* The number of bytes that need no escape. */
static size_t literal_run(const char *text, size_t n)
{
        const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
        size_t i = 0;

        /* eight at once: a byte that needs one sets a top bit, perhaps its neighbour's */
        for (uint64_t w; n - i >= sizeof(w); i += sizeof(w)) {
                uint64_t quotes, slashes;

                memcpy(&w, text + i, sizeof(w));
                quotes = w ^ (ones * '"');
                slashes = w ^ (ones * '\\');
                if ((w | (w + ones) | (w - ones * 0x20) | (quotes - ones) | (slashes - ones)) &
                    tops)
                        break;
        }
        while (i < n && text[i] >= 0x20 && text[i] < 0x7f && text[i] != '"' && text[i] != '\\')
                i++;
        return i;
}

void jsonw_quote(struct buf *b, const char *text, size_t n)
{
        static const char shorts[] = "\bb\tt\nn\ff\rr\"\"\\\\";
        size_t i = 0;

        buf_addch(b, '"');
        while (i < n) {
                size_t run = literal_run(text + i, n - i);
                uint32_t cp;

                buf_add(b, text + i, run);
                i += run;
                if (i >= n)
                        break;
                if ((unsigned char)text[i] < 0x80) {
                        char c = text[i++];
                        const char *s = c ? strchr(shorts, c) : NULL;

                        if (s && (s - shorts) % 2 == 0) {
                                buf_addch(b, '\\');
                                buf_addch(b, s[1]);
                        } else {
                                buf_addf(b, "\\u%04x", (unsigned)c);
                        }
                } else {
                        char utf8[4];
                        size_t len = utf8_decode(text + i, n - i, &cp);

                        /* they can move a terminal's cursor or reorder the line */
                        if (utf8_is_control(cp))
                                buf_addf(b, "\\u%04x", (unsigned)cp);
                        else
                                buf_add(b, utf8, utf8_encode(cp, utf8));
                        i += len;
                }
        }
        buf_addch(b, '"');
}
