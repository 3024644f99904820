#include "base/jsonw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/*
 * Adds a comma, unless this is the first thing inside a bracket or after a key. No value ends in
 * white space; after it a new text begins (the next line of NDJSON, the JSON after "data: ").
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

/* Bytes that stand for themselves inside a JSON string. */
static bool is_literal(unsigned char c)
{
        return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/*
 * Checks eight bytes at once. A carry into the neighbouring byte occurs only when one of them is
 * not literal.
 */
static bool are_literal(const char *text)
{
        const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
        uint64_t w, quotes, slashes;

        memcpy(&w, text, sizeof(w));
        quotes = w ^ (ones * '"');
        slashes = w ^ (ones * '\\');
        return ((w | (w + ones) | (w - ones * 0x20) | (quotes - ones) | (slashes - ones)) & tops) ==
               0;
}

static size_t literal_run(const char *text, size_t n)
{
        size_t i = 0;

        while (n - i >= sizeof(uint64_t) && are_literal(text + i))
                i += sizeof(uint64_t);
        while (i < n && is_literal((unsigned char)text[i]))
                i++;
        return i;
}

static void add_escaped(struct buf *b, unsigned char c)
{
        static const char shorts[] = "\bb\tt\nn\ff\rr\"\"\\\\";
        const char *s = c ? strchr(shorts, c) : NULL;

        if (s && (s - shorts) % 2 == 0) {
                buf_addch(b, '\\');
                buf_addch(b, s[1]);
        } else {
                buf_addf(b, "\\u%04x", c);
        }
}

void jsonw_quote(struct buf *b, const char *text, size_t n)
{
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
                        add_escaped(b, (unsigned char)text[i++]);
                } else {
                        char utf8[4];
                        size_t len = utf8_decode(text + i, n - i, &cp);

                        /* escape C1 controls: they can move a terminal's cursor */
                        if (cp < 0xa0)
                                buf_addf(b, "\\u%04x", (unsigned)cp);
                        else
                                buf_add(b, utf8, utf8_encode(cp, utf8));
                        i += len;
                }
        }
        buf_addch(b, '"');
}
