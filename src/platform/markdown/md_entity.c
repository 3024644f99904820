#include "platform/markdown/md_entity.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* The names models use; the other two thousand stay readable as they are written. */
static const struct {
        const char *name;
        uint32_t cp;
} names[] = {
        { "amp", '&' },       { "lt", '<' },        { "gt", '>' },       { "quot", '"' },
        { "apos", '\'' },     { "nbsp", 0xa0 },     { "iexcl", 0xa1 },   { "cent", 0xa2 },
        { "pound", 0xa3 },    { "yen", 0xa5 },      { "sect", 0xa7 },    { "copy", 0xa9 },
        { "laquo", 0xab },    { "not", 0xac },      { "shy", 0xad },     { "reg", 0xae },
        { "deg", 0xb0 },      { "plusmn", 0xb1 },   { "sup2", 0xb2 },    { "sup3", 0xb3 },
        { "micro", 0xb5 },    { "para", 0xb6 },     { "middot", 0xb7 },  { "raquo", 0xbb },
        { "frac14", 0xbc },   { "frac12", 0xbd },   { "frac34", 0xbe },  { "iquest", 0xbf },
        { "Auml", 0xc4 },     { "Ouml", 0xd6 },     { "times", 0xd7 },   { "Uuml", 0xdc },
        { "szlig", 0xdf },    { "auml", 0xe4 },     { "eacute", 0xe9 },  { "ouml", 0xf6 },
        { "divide", 0xf7 },   { "uuml", 0xfc },     { "alpha", 0x3b1 },  { "beta", 0x3b2 },
        { "gamma", 0x3b3 },   { "delta", 0x3b4 },   { "lambda", 0x3bb }, { "mu", 0x3bc },
        { "pi", 0x3c0 },      { "sigma", 0x3c3 },   { "omega", 0x3c9 },  { "ensp", 0x2002 },
        { "emsp", 0x2003 },   { "thinsp", 0x2009 }, { "ndash", 0x2013 }, { "mdash", 0x2014 },
        { "lsquo", 0x2018 },  { "rsquo", 0x2019 },  { "ldquo", 0x201c }, { "rdquo", 0x201d },
        { "bull", 0x2022 },   { "hellip", 0x2026 }, { "prime", 0x2032 }, { "euro", 0x20ac },
        { "trade", 0x2122 },  { "larr", 0x2190 },   { "uarr", 0x2191 },  { "rarr", 0x2192 },
        { "darr", 0x2193 },   { "harr", 0x2194 },   { "rArr", 0x21d2 },  { "hArr", 0x21d4 },
        { "part", 0x2202 },   { "sum", 0x2211 },    { "minus", 0x2212 }, { "radic", 0x221a },
        { "infin", 0x221e },  { "int", 0x222b },    { "asymp", 0x2248 }, { "ne", 0x2260 },
        { "equiv", 0x2261 },  { "le", 0x2264 },     { "ge", 0x2265 },    { "check", 0x2713 },
        { "hearts", 0x2665 }, { "commat", '@' },    { "ast", '*' },      { "lowbar", '_' },
        { "num", '#' },       { "vert", '|' },      { "grave", '`' },    { "Tab", '\t' },
};

static void add_code_point(struct buf *out, uint32_t cp)
{
        char bytes[4];

        buf_add(out, bytes, utf8_encode(cp ? cp : 0xfffd, bytes));
}

static uint32_t numeric(const char *p, size_t n)
{
        uint32_t base = n > 0 && (*p == 'x' || *p == 'X') ? 16 : 10;
        uint32_t cp = 0;

        for (size_t i = base == 16; i < n && cp < 0x110000; i++) {
                uint32_t c = (unsigned char)p[i];

                cp = cp * base + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        }
        return cp < 0x110000 ? cp : 0xfffd;
}

void md_entity_add(struct buf *out, const char *entity, size_t n)
{
        const char *p = entity + 1;
        size_t len = n - 2; /* without & and ; */

        if (n > 3 && *p == '#') {
                add_code_point(out, numeric(p + 1, len - 1));
                return;
        }
        for (size_t i = 0; n > 2 && i < COUNT(names); i++) {
                if (strlen(names[i].name) == len && memcmp(names[i].name, p, len) == 0) {
                        add_code_point(out, names[i].cp);
                        return;
                }
        }
        buf_add(out, entity, n);
}
