#include "base/hours.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"

#define DAY_MINUTES 1440
#define WEEK_DAYS   7
#define MINUTE_MS   60000
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
                for (*days |= 1u << to; from != to; from = (from + 1) % WEEK_DAYS)
                        *days |= 1u << from;
        } while (**text == ',');
        if (**text != ' ')
                return -1;
        *text += strspn(*text, " ");
        return 0;
}

/* "09:30" or "9:30" → 570; -1: syntax error. */
static int parse_minute(const char **text)
{
        const char *p = *text;
        int hour = 0, minute;

        if (!isdigit((unsigned char)*p))
                return -1;
        while (isdigit((unsigned char)*p) && p < *text + 2)
                hour = hour * 10 + (*p++ - '0');
        if (*p++ != ':' || !isdigit((unsigned char)p[0]) || !isdigit((unsigned char)p[1]))
                return -1;
        minute = (p[0] - '0') * 10 + (p[1] - '0');
        if (minute > 59 || hour * 60 + minute > DAY_MINUTES)
                return -1;
        *text = p + 2;
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
        bool today = h->days >> m.day & 1u,
             yesterday = h->days >> (m.day + WEEK_DAYS - 1) % WEEK_DAYS & 1u;

        if (h->from < h->to)
                return today && m.minute >= h->from && m.minute < h->to;
        return (today && m.minute >= h->from) || (yesterday && m.minute < h->to);
}

struct moment hours_moment(const struct time_zone *zone, int64_t wall_ms)
{
        time_t t = (time_t)(wall_ms / 1000);
        struct tm tm = { 0 };

        if (zone) {
                t += (time_t)timezone_offset(zone, t);
                gmtime_r(&t, &tm);
        } else {
                localtime_r(&t, &tm);
        }
        return (struct moment){ .day = tm.tm_wday, .minute = tm.tm_hour * 60 + tm.tm_min };
}

int hours_list_parse(const char *text, struct hours_list *out)
{
        char one[64];
        size_t n;

        *out = (struct hours_list){ 0 };
        if (strcasecmp(text, "off") == 0)
                return 0;
        do {
                text += strspn(text, " ");
                n = strcspn(text, ";");
                while (n > 0 && text[n - 1] == ' ')
                        n--;
                if (n >= sizeof(one) || out->count == HOURS_LIST_MAX)
                        return -1;
                memcpy(one, text, n);
                one[n] = '\0';
                if (hours_parse(one, &out->items[out->count++]) < 0)
                        return -1;
                text += strcspn(text, ";");
        } while (*text++ == ';');
        return 0;
}

int64_t hours_list_end(const struct hours_list *list, const struct time_zone *zone, int64_t wall_ms)
{
        int64_t at = wall_ms, last = wall_ms + (int64_t)(WEEK_DAYS + 1) * DAY_MINUTES * MINUTE_MS;

        /* by the minute: an offset that changes meanwhile needs no care */
        for (; at < last; at += MINUTE_MS - at % MINUTE_MS) {
                struct moment m = hours_moment(zone, at);
                size_t i = 0;

                while (i < list->count && !hours_hold(&list->items[i], m))
                        i++;
                if (i == list->count)
                        return at;
        }
        return INT64_MAX;
}
