#include "dispatch/rules/rules.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define DAY_MINUTES 1440
#define EVERY_DAY   0x7fu

static const char *const day_names[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat" };

/* "mon"; -1: no day. */
static int parse_day(const char **text)
{
        for (int i = 0; i < (int)COUNT(day_names); i++) {
                if (strncasecmp(*text, day_names[i], 3) == 0) {
                        *text += 3;
                        return i;
                }
        }
        return -1;
}

/* "mon-fri,sun ", up to the time. */
static int parse_days(const char **text, unsigned *days)
{
        int from, to;

        do {
                *text += **text == ',';
                from = to = parse_day(text);
                if (from >= 0 && **text == '-') {
                        ++*text;
                        to = parse_day(text);
                }
                if (from < 0 || to < 0)
                        return -1;
                for (*days |= 1u << to; from != to; from = (from + 1) % 7)
                        *days |= 1u << from;
        } while (**text == ',');
        if (**text != ' ')
                return -1;
        *text += strspn(*text, " ");
        return 0;
}

static int two_digits(const char *text)
{
        if (!isdigit((unsigned char)text[0]) || !isdigit((unsigned char)text[1]))
                return -1;
        return (text[0] - '0') * 10 + (text[1] - '0');
}

/* "09:30" → 570; -1: syntax error. */
static int parse_minute(const char **text)
{
        int hour = two_digits(*text),
            minute = hour >= 0 && (*text)[2] == ':' ? two_digits(*text + 3) : -1;

        if (minute < 0 || minute > 59 || hour * 60 + minute > DAY_MINUTES)
                return -1;
        *text += 5;
        return hour * 60 + minute;
}

int hours_parse(const char *text, struct hours *out)
{
        *out = (struct hours){ 0 };
        if (isalpha((unsigned char)*text) && parse_days(&text, &out->days) < 0)
                return -1;
        if (out->days == 0)
                out->days = EVERY_DAY;
        out->from = parse_minute(&text);
        if (out->from < 0 || *text++ != '-')
                return -1;
        out->to = parse_minute(&text);
        return out->to < 0 || *text || out->from == out->to ? -1 : 0;
}

bool hours_hold(const struct hours *h, struct moment m)
{
        bool today = h->days >> m.day & 1u, yesterday = h->days >> (m.day + 6) % 7 & 1u;

        if (h->from < h->to)
                return today && m.minute >= h->from && m.minute < h->to;
        return (today && m.minute >= h->from) || (yesterday && m.minute < h->to);
}
