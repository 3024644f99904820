#include "schedule/when.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "schedule/cron.h"

#define MINUTE_MS   INT64_C(60000)
#define HOUR_MS     (60 * MINUTE_MS)
#define DAY_MS      (24 * HOUR_MS)
#define MORNING     (9 * 60) /* of a day without a time, in minutes */
#define AFTERNOON   (15 * 60)
#define EVENING     (20 * 60)
#define AHEAD_YEARS 100

/* A text that is read from its beginning. What does not fit stays unread. */
struct scan {
        const char *p;
        const struct time_zone *zone;
        int64_t now_ms;
        struct tm now; /* on the zone's clocks */
        struct error *err;
        bool failed; /* err says why; nothing else is tried */
};

/* How a day was said, and so what is meant when that time has passed. */
enum day_kind {
        DAY_NONE,    /* not at all: tomorrow */
        DAY_DATE,    /* nothing else */
        DAY_WEEKDAY, /* a week later */
        DAY_OF_YEAR, /* a year later */
};

struct moment {
        enum day_kind kind;
        struct tm day; /* tm_year, tm_mon, tm_mday */
        int minute;    /* of the day; -1: not said */
        int second;
        bool late; /* "at 8" is in the evening */
};

static const char *const months[] = { "january",   "february", "march",    "april",
                                      "may",       "june",     "july",     "august",
                                      "september", "october",  "november", "december" };
static const char *const weekdays[] = { "sunday",   "monday", "tuesday", "wednesday",
                                        "thursday", "friday", "saturday" };

/* ---- words ---- */

static void skip_space(struct scan *s)
{
        while (isspace((unsigned char)*s->p))
                s->p++;
}

static bool ends_word(char c)
{
        return c == '\0' || isspace((unsigned char)c) || c == ',' || c == ';' || c == ':';
}

static bool fail(struct scan *s, const char *text)
{
        if (!s->failed)
                error_set(s->err, ERR_INVALID, "%s", text);
        s->failed = true;
        return false;
}

/* The word and the space after it. */
static bool read_word(struct scan *s, const char *expected)
{
        size_t n = strlen(expected);

        if (strncasecmp(s->p, expected, n) != 0 || !ends_word(s->p[n]))
                return false;
        s->p += n;
        skip_space(s);
        return true;
}

/* One of the names, perhaps cut to three letters or more, or in the plural; -1: none. */
static int read_name(struct scan *s, const char *const *names, size_t count)
{
        size_t n = 0;

        while (isalpha((unsigned char)s->p[n]))
                n++;
        for (size_t i = 0; n >= 3 && i < count; i++) {
                size_t full = strlen(names[i]);
                bool plural = n == full + 1 && tolower((unsigned char)s->p[full]) == 's';
                const char *end = s->p + n + (s->p[n] == '.');

                if ((n > full && !plural) || !ends_word(*end) ||
                    strncasecmp(s->p, names[i], plural ? full : n) != 0)
                        continue;
                s->p = end;
                return (int)i;
        }
        return -1;
}

static bool read_number(struct scan *s, int digits, int *out)
{
        const char *start = s->p;

        for (*out = 0; isdigit((unsigned char)*s->p) && s->p - start < digits; s->p++)
                *out = *out * 10 + (*s->p - '0');
        return s->p > start && !isdigit((unsigned char)*s->p);
}

/* ---- times of day ---- */

/* "am", "pm", also "p.m." */
static bool read_half(struct scan *s, int *half)
{
        const char *p = s->p;

        while (*p == ' ')
                p++;
        *half = tolower((unsigned char)*p);
        if (*half != 'a' && *half != 'p')
                return false;
        p += p[1] == '.' ? 2 : 1;
        if (tolower((unsigned char)*p) != 'm')
                return false;
        p += p[1] == '.' ? 2 : 1;
        if (!ends_word(*p))
                return false;
        s->p = p;
        return true;
}

/* "18:30", "6pm", "6:30 pm"; a bare hour only after "at". */
static bool read_clock(struct scan *s, bool bare, struct moment *m)
{
        int hour, minute = 0, second = 0, half;
        bool colon, twelve, clock;

        if (!read_number(s, 2, &hour))
                return false;
        colon = *s->p == ':' && isdigit((unsigned char)s->p[1]) && isdigit((unsigned char)s->p[2]);
        if (colon) {
                s->p++;
                if (!read_number(s, 2, &minute))
                        return false;
                if (*s->p == ':' && isdigit((unsigned char)s->p[1])) {
                        s->p++;
                        if (!read_number(s, 2, &second))
                                return false;
                }
        }
        twelve = read_half(s, &half);
        clock = !twelve && *s->p == ' ' && read_word(s, " o'clock");
        if (!clock && ((!colon && !twelve && !bare) || !ends_word(*s->p)))
                return false;
        if (hour > 23 || minute > 59 || second > 59 || (twelve && (hour < 1 || hour > 12)))
                return fail(s, "there is no such time of day; expected 00:00 to 23:59, or 12am to "
                               "11:59pm");
        if (twelve)
                hour = hour % 12 + (half == 'p' ? 12 : 0);
        m->minute = hour * 60 + minute;
        m->second = second;
        skip_space(s);
        return true;
}

/* Perhaps with ", " or "at" before it. */
static bool read_time(struct scan *s, struct moment *m)
{
        const char *start = s->p;
        bool at;

        if (*s->p == ',') {
                s->p++;
                skip_space(s);
        }
        at = read_word(s, "at");
        if (read_word(s, "noon"))
                m->minute = 12 * 60;
        else if (read_word(s, "midnight"))
                m->minute = 0;
        else if (!read_clock(s, at, m))
                s->p = start;
        return s->p != start;
}

/* "evening", "in the afternoon", "morning at 8", or a time alone. */
static void read_time_of_day(struct scan *s, struct moment *m)
{
        static const struct {
                const char *name;
                int minute;
        } parts[] = { { "morning", MORNING },
                      { "afternoon", AFTERNOON },
                      { "evening", EVENING },
                      { "night", EVENING } };
        const char *start = s->p;

        read_word(s, "in the");
        for (size_t i = 0; i < COUNT(parts); i++) {
                if (!read_word(s, parts[i].name))
                        continue;
                m->minute = parts[i].minute;
                m->late = m->minute >= 12 * 60;
                read_time(s, m);
                return;
        }
        s->p = start;
        read_time(s, m);
}

/* ---- days ---- */

static bool is_day(const struct tm *day)
{
        struct tm copy = *day;

        timegm(&copy);
        return day->tm_mday >= 1 && copy.tm_mday == day->tm_mday && copy.tm_mon == day->tm_mon;
}

/* A year of 0 is this one. */
static bool set_day(struct scan *s, struct moment *m, int year, int month, int day)
{
        m->kind = year ? DAY_DATE : DAY_OF_YEAR;
        m->day = (struct tm){ .tm_year = year ? year - 1900 : s->now.tm_year,
                              .tm_mon = month - 1,
                              .tm_mday = day };
        for (int i = 0; year == 0 && month == 2 && day == 29 && i < 8 && !is_day(&m->day); i++)
                m->day.tm_year++;
        if (month < 1 || month > 12 || !is_day(&m->day))
                return fail(s, "there is no such day in the calendar");
        skip_space(s);
        return true;
}

static bool set_days_ahead(struct scan *s, struct moment *m, enum day_kind kind, int days)
{
        m->kind = kind;
        m->day = (struct tm){ .tm_year = s->now.tm_year,
                              .tm_mon = s->now.tm_mon,
                              .tm_mday = s->now.tm_mday + days };
        timegm(&m->day);
        return true;
}

/* "2026-11-20"; a T may follow. */
static bool read_iso_day(struct scan *s, struct moment *m)
{
        const char *start = s->p;
        int year, month, day;

        if (!read_number(s, 4, &year) || s->p - start != 4 || *s->p++ != '-' ||
            !read_number(s, 2, &month) || *s->p++ != '-' || !read_number(s, 2, &day))
                return false;
        if (toupper((unsigned char)*s->p) == 'T')
                s->p++;
        else if (!ends_word(*s->p))
                return false;
        return set_day(s, m, year, month, day);
}

/* "20.11.", "20.11.2026" */
static bool read_dotted_day(struct scan *s, struct moment *m)
{
        int year = 0, month, day;

        if (!read_number(s, 2, &day) || *s->p++ != '.' || !read_number(s, 2, &month) ||
            *s->p++ != '.')
                return false;
        if (isdigit((unsigned char)*s->p) && (!read_number(s, 4, &year) || year < 1000))
                return false;
        return ends_word(*s->p) && set_day(s, m, year, month, day);
}

/* " 2026" or ", 2026"; 0: none. */
static int read_year_after(struct scan *s)
{
        const char *start = s->p;
        int year;

        s->p += *s->p == ',';
        skip_space(s);
        if (read_number(s, 4, &year) && year >= 1000 && *s->p != ':' && ends_word(*s->p))
                return year;
        s->p = start;
        return 0;
}

/* "20", "20th", "20." */
static bool read_ordinal(struct scan *s, int *day)
{
        static const char *const endings[] = { "st", "nd", "rd", "th", "." };

        if (!read_number(s, 2, day))
                return false;
        for (size_t i = 0; i < COUNT(endings); i++) {
                size_t n = strlen(endings[i]);

                if (strncasecmp(s->p, endings[i], n) == 0 && ends_word(s->p[n]))
                        s->p += n;
        }
        return *s->p != ':' && ends_word(*s->p);
}

/* "nov 20", "20 november 2027", "november 20th, 2027" */
static bool read_named_day(struct scan *s, struct moment *m)
{
        int month = read_name(s, months, COUNT(months)), day;

        skip_space(s);
        if (!read_ordinal(s, &day))
                return false;
        if (month < 0) {
                skip_space(s);
                month = read_name(s, months, COUNT(months));
        }
        return month >= 0 && set_day(s, m, read_year_after(s), month + 1, day);
}

static bool read_weekday(struct scan *s, struct moment *m)
{
        bool next = read_word(s, "next");
        int day = read_name(s, weekdays, COUNT(weekdays)), ahead;

        if (day < 0)
                return false;
        skip_space(s);
        ahead = (day - s->now.tm_wday + 7) % 7;
        return set_days_ahead(s, m, DAY_WEEKDAY, next && ahead == 0 ? 7 : ahead);
}

static bool read_relative_day(struct scan *s, struct moment *m)
{
        static const struct {
                const char *words;
                int days, minute;
        } names[] = { { "today", 0, 0 },
                      { "tonight", 0, EVENING },
                      { "this evening", 0, EVENING },
                      { "this afternoon", 0, AFTERNOON },
                      { "this morning", 0, MORNING },
                      { "tomorrow", 1, 0 },
                      { "the day after tomorrow", 2, 0 },
                      { "day after tomorrow", 2, 0 } };

        for (size_t i = 0; i < COUNT(names); i++) {
                if (!read_word(s, names[i].words))
                        continue;
                if (names[i].minute > 0 && m->minute < 0)
                        m->minute = names[i].minute;
                m->late = names[i].minute >= 12 * 60;
                return set_days_ahead(s, m, DAY_DATE, names[i].days);
        }
        return false;
}

static bool read_day(struct scan *s, struct moment *m)
{
        static bool (*const ways[])(struct scan *, struct moment *) = {
                read_relative_day, read_weekday, read_iso_day, read_dotted_day, read_named_day
        };
        const char *start = s->p, *first;

        read_word(s, "on");
        first = s->p;
        for (size_t i = 0; i < COUNT(ways) && !s->failed; i++) {
                s->p = first;
                if (ways[i](s, m))
                        return true;
        }
        s->p = start;
        return false;
}

/* ---- once ---- */

/* "2026-11-20T18:00+01:00", with or without seconds */
static bool read_iso(struct scan *s, int64_t *at_ms)
{
        size_t n = 0;
        char text[48];

        while (s->p[n] && !isspace((unsigned char)s->p[n]))
                n++;
        if (n < 17 || n > 40)
                return false;
        snprintf(text, sizeof(text), "%.16s%s%.*s", s->p, s->p[16] == ':' ? "" : ":00", (int)n - 16,
                 s->p + 16);
        if (clock_parse_iso(text, at_ms) < 0)
                return false;
        s->p += n;
        skip_space(s);
        return true;
}

static const struct unit {
        const char *names; /* the first one is shown */
        int64_t ms;        /* 0: by the calendar */
        int days, months;
} units[] = {
        { "year years y yr yrs", 0, 0, 12 },
        { "month months mo", 0, 0, 1 },
        { "week weeks w wk wks", 0, 7, 0 },
        { "day days d", 0, 1, 0 },
        { "hour hours h hr hrs", HOUR_MS, 0, 0 },
        { "minute minutes m min mins", MINUTE_MS, 0, 0 },
        { "second seconds s sec secs", 1000, 0, 0 },
};

/* NULL: none. Digits may follow it, as in 1h30m. */
static const struct unit *read_unit(struct scan *s)
{
        size_t n = 0;

        while (isalpha((unsigned char)s->p[n]))
                n++;
        for (size_t i = 0; n > 0 && i < COUNT(units); i++) {
                for (const char *p = units[i].names; *p; p += strcspn(p, " "), p += *p == ' ') {
                        if (strcspn(p, " ") != n || strncasecmp(p, s->p, n) != 0 ||
                            (!ends_word(s->p[n]) && !isdigit((unsigned char)s->p[n])))
                                continue;
                        s->p += n;
                        return &units[i];
                }
        }
        return NULL;
}

/* "2", "1.5" (in tenths), "an" or "half an" before a unit */
static bool read_amount(struct scan *s, int *tenths)
{
        static const char *const numbers[] = {
                "one",   "two",   "three", "four", "five",   "six",
                "seven", "eight", "nine",  "ten",  "eleven", "twelve"
        };
        int n, fraction = 0;

        if (read_word(s, "half an") || read_word(s, "half a")) {
                *tenths = 5;
                return true;
        }
        if (read_word(s, "an") || read_word(s, "a")) {
                *tenths = 10;
                return true;
        }
        for (size_t i = 0; i < COUNT(numbers); i++) {
                if (!read_word(s, numbers[i]))
                        continue;
                *tenths = (int)(i + 1) * 10;
                return true;
        }
        if (!read_number(s, 6, &n))
                return false;
        if ((*s->p == '.' || *s->p == ',') && isdigit((unsigned char)s->p[1])) {
                s->p++;
                if (!read_number(s, 1, &fraction))
                        return false;
        }
        *tenths = n * 10 + fraction;
        if (*s->p == '-')
                s->p++;
        skip_space(s);
        return true;
}

/* Same time of day where the calendar counts; the last day of a month that is too short. */
static int64_t add_calendar(const struct scan *s, int64_t months_ahead, int64_t days)
{
        struct tm tm = s->now;
        int day = tm.tm_mday;

        tm.tm_mday = 1;
        tm.tm_mon += (int)months_ahead;
        timegm(&tm);
        for (tm.tm_mday = day; !is_day(&tm); tm.tm_mday--)
                ;
        tm.tm_mday += (int)days;
        return timezone_instant(s->zone, (int64_t)timegm(&tm)) * 1000 + s->now_ms % 1000;
}

/* "30m", "in 2 hours", "1h30m", "an hour and 5 minutes" */
static bool read_span(struct scan *s, int64_t *at_ms)
{
        const char *start = s->p, *end = NULL;
        bool in = read_word(s, "in");
        const struct unit *last = NULL, *unit;
        int64_t ms = 0, days = 0, months_ahead = 0;
        int tenths, minutes;

        while (read_amount(s, &tenths) && (unit = read_unit(s)) && (!last || unit > last)) {
                if (unit->ms == 0 && tenths % 10 != 0)
                        return fail(s,
                                    "days, weeks, months and years are counted in whole numbers");
                ms += unit->ms / 10 * tenths;
                days += unit->days * (tenths / 10);
                months_ahead += unit->months * (tenths / 10);
                last = unit;
                end = s->p;
                if (unit->ms == HOUR_MS && read_number(s, 2, &minutes) && ends_word(*s->p)) {
                        ms += minutes * MINUTE_MS; /* 2h30 */
                        end = s->p;
                        break;
                }
                s->p = end;
                skip_space(s);
                if (*s->p == ',')
                        s->p++;
                skip_space(s);
                read_word(s, "and");
        }
        s->p = end ? end : start;
        if (!end)
                return in && fail(s, "'in' needs a duration such as 30 minutes, 2 hours, 3 days or "
                                     "1h30m");
        if (days > AHEAD_YEARS * 366 || months_ahead > AHEAD_YEARS * 12)
                return fail(s, "that is too far ahead; at most 100 years");
        *at_ms = (days || months_ahead ? add_calendar(s, months_ahead, days) : s->now_ms) + ms;
        skip_space(s);
        return true;
}

/* "tonight at 8" is 20:00. */
static int minute_of(const struct moment *m)
{
        if (m->minute < 0)
                return MORNING;
        return m->minute + (m->late && m->minute >= 5 * 60 && m->minute < 12 * 60 ? 12 * 60 : 0);
}

static int64_t instant_of(const struct scan *s, const struct moment *m)
{
        struct tm tm = m->day;

        tm.tm_min = minute_of(m);
        tm.tm_sec = m->second;
        return timezone_instant(s->zone, (int64_t)timegm(&tm)) * 1000;
}

static int64_t resolve(struct scan *s, struct moment *m)
{
        int64_t at_ms;

        if (m->kind == DAY_NONE)
                set_days_ahead(s, m, DAY_NONE, 0);
        at_ms = instant_of(s, m);
        if (at_ms > s->now_ms || m->kind == DAY_DATE)
                return at_ms;
        if (m->kind == DAY_OF_YEAR) {
                do
                        m->day.tm_year++;
                while (!is_day(&m->day));
        } else {
                m->day.tm_mday += m->kind == DAY_WEEKDAY ? 7 : 1;
        }
        return instant_of(s, m);
}

/* ---- again and again ---- */

/* Days of the week, of the month and month, as cron fields. */
struct pattern {
        char days[16], month[8], weekdays[32];
};

static bool read_weekdays(struct scan *s, struct pattern *p)
{
        const char *end = NULL;
        size_t n = 0;
        int day;

        while (n + 2 < sizeof(p->weekdays) &&
               (day = read_name(s, weekdays, COUNT(weekdays))) >= 0) {
                n += (size_t)snprintf(p->weekdays + n, sizeof(p->weekdays) - n, "%s%d",
                                      n ? "," : "", day);
                end = s->p;
                skip_space(s);
                if (*s->p == ',')
                        s->p++;
                skip_space(s);
                read_word(s, "and");
        }
        if (end)
                s->p = end;
        skip_space(s);
        return end;
}

/* "on the 1st", "on the last day"; else this day of the month */
static bool read_month_day(struct scan *s, struct pattern *p)
{
        const char *start = s->p;
        int day = s->now.tm_mday;

        if (read_word(s, "on the last day") || read_word(s, "on the last")) {
                snprintf(p->days, sizeof(p->days), "L");
                return true;
        }
        if ((read_word(s, "on the") || read_word(s, "on")) && !read_ordinal(s, &day)) {
                s->p = start;
                day = s->now.tm_mday;
        }
        if (day < 1 || day > 31)
                return fail(s, "there is no such day of the month; expected 1 to 31, or the last");
        snprintf(p->days, sizeof(p->days), "%d", day);
        skip_space(s);
        return true;
}

static bool read_year_day(struct scan *s, struct pattern *p)
{
        struct moment m = { .minute = -1 };

        if (!read_day(s, &m) || m.kind != DAY_OF_YEAR)
                return fail(s, "'every year' needs a day, such as: every year on nov 20 9:00");
        snprintf(p->days, sizeof(p->days), "%d", m.day.tm_mday % 32);
        snprintf(p->month, sizeof(p->month), "%d", m.day.tm_mon % 12 + 1);
        return true;
}

/* What follows "every" and takes a time of day. */
static bool read_pattern(struct scan *s, struct pattern *p)
{
        *p = (struct pattern){ "*", "*", "*" };
        if (read_word(s, "day"))
                return true;
        if (read_word(s, "weekday")) {
                snprintf(p->weekdays, sizeof(p->weekdays), "1-5");
                return true;
        }
        if (read_word(s, "weekend")) {
                snprintf(p->weekdays, sizeof(p->weekdays), "0,6");
                return true;
        }
        if (read_word(s, "week")) {
                read_word(s, "on");
                if (!read_weekdays(s, p))
                        snprintf(p->weekdays, sizeof(p->weekdays), "%d", s->now.tm_wday % 7);
                return true;
        }
        if (read_word(s, "month"))
                return read_month_day(s, p);
        if (read_word(s, "year"))
                return read_year_day(s, p);
        return read_weekdays(s, p);
}

/* "every 2 hours", "every 15 minutes": counted from now, so the first one is that far ahead. */
static bool read_interval(struct scan *s, struct when *out)
{
        const char *start = s->p;
        const struct unit *unit;
        int n = 1, minute = s->now.tm_min, hour = s->now.tm_hour;

        if (isdigit((unsigned char)*s->p) && !read_number(s, 6, &n))
                return fail(s, "'every' needs a smaller number");
        skip_space(s);
        unit = read_unit(s);
        skip_space(s);
        if (unit && unit->ms == MINUTE_MS && n > 0 && n < 60 && 60 % n == 0) {
                snprintf(out->cron, sizeof(out->cron), "%d/%d * * * *", minute % n, n);
                if (n == 1)
                        snprintf(out->cron, sizeof(out->cron), "* * * * *");
                return true;
        }
        if (unit && unit->ms == HOUR_MS && n > 0 && n < 24 && 24 % n == 0) {
                snprintf(out->cron, sizeof(out->cron), "%d %d/%d * * *", minute, hour % n, n);
                if (n == 1)
                        snprintf(out->cron, sizeof(out->cron), "%d * * * *", minute);
                return true;
        }
        if (unit && (isdigit((unsigned char)*start) || unit->ms))
                return fail(s, "'every' takes minutes that divide an hour (1, 2, 3, 4, 5, 6, 10, "
                               "12, 15, 20, 30), hours that divide a day (1, 2, 3, 4, 6, 8, 12), "
                               "or a day, weekday, weekend, week, month, year or days of the week");
        s->p = start;
        return false;
}

static bool set_pattern(const struct pattern *p, const struct moment *m, struct when *out)
{
        int minute = minute_of(m);

        snprintf(out->cron, sizeof(out->cron), "%d %d %s %s %s", minute % 60, minute / 60, p->days,
                 p->month, p->weekdays);
        return true;
}

static bool read_every(struct scan *s, struct when *out)
{
        struct moment m = { .minute = -1 };
        struct pattern p = { "*", "*", "*" };

        if (read_word(s, "daily")) {
                read_time_of_day(s, &m);
                return !s->failed && set_pattern(&p, &m, out);
        }
        if (!read_word(s, "every") && !read_word(s, "each"))
                return false;
        if (read_interval(s, out))
                return true;
        if (s->failed || !read_pattern(s, &p))
                return fail(s, "'every' needs minutes, hours, day, weekday, weekend, week, month, "
                               "year or days of the week, such as: every 2 hours, every monday "
                               "20:00");
        read_time_of_day(s, &m);
        return !s->failed && set_pattern(&p, &m, out);
}

/* "cron" and five fields, or any number of them in quotes */
static bool read_cron(struct scan *s, struct when *out)
{
        const char *start;
        struct cron c;
        char quote;
        size_t n;

        if (!read_word(s, "cron"))
                return false;
        quote = *s->p == '"' || *s->p == '`' || *s->p == '\'' ? *s->p++ : '\0';
        start = s->p;
        if (quote) {
                s->p += strcspn(s->p, (char[]){ quote, '\0' });
        } else {
                for (int i = 0; i < 5 && *s->p && (*start != '@' || i == 0); i++) {
                        s->p += strspn(s->p, " \t");
                        s->p += strcspn(s->p, " \t\r\n");
                }
        }
        n = (size_t)(s->p - start);
        s->p += quote && *s->p;
        if (n >= sizeof(out->cron))
                return fail(s, "the cron schedule is too long");
        snprintf(out->cron, sizeof(out->cron), "%.*s", (int)n, start);
        s->failed = cron_parse(out->cron, &c, s->err) < 0;
        return !s->failed;
}

/* A day and perhaps a time, or a time and perhaps a day. */
static bool read_moment(struct scan *s, struct when *out)
{
        struct moment m = { .minute = -1 };
        struct pattern p;

        if (read_day(s, &m)) {
                read_time_of_day(s, &m);
        } else if (!s->failed && read_time(s, &m)) {
                if (read_word(s, "every")) {
                        if (read_pattern(s, &p))
                                return set_pattern(&p, &m, out);
                        return fail(s, "'every' after a time needs day, weekday, weekend, week, "
                                       "month, year or days of the week");
                }
                read_day(s, &m);
        } else {
                return false;
        }
        if (!s->failed)
                out->at_ms = resolve(s, &m);
        return !s->failed;
}

static int check_time(const struct scan *s, const struct when *w)
{
        struct buf shown;
        int rc = 0;

        if (*w->cron)
                return 0;
        if (w->at_ms > s->now_ms + AHEAD_YEARS * 366 * DAY_MS)
                return error_set(s->err, ERR_INVALID, "that is too far ahead; at most 100 years");
        buf_init(&shown, 0);
        when_describe(w->at_ms, s->zone, s->now_ms, &shown);
        if (w->at_ms <= s->now_ms)
                rc = error_set(s->err, ERR_INVALID, "%s is in the past", shown.data);
        buf_release(&shown);
        return rc;
}

static void local_time(const struct time_zone *zone, int64_t ms, struct tm *out)
{
        time_t t = (time_t)(ms / 1000 - (ms % 1000 < 0));

        t += (time_t)timezone_offset(zone, t);
        if (!gmtime_r(&t, out))
                *out = (struct tm){ .tm_mday = 1 };
}

int when_parse(const char *text, const struct time_zone *zone, int64_t now_ms, struct when *out,
               struct error *err)
{
        struct scan s = { .p = text, .zone = zone, .now_ms = now_ms, .err = err };

        *out = (struct when){ 0 };
        local_time(zone, now_ms, &s.now);
        skip_space(&s);
        if (!read_cron(&s, out) && !s.failed && !read_every(&s, out) && !s.failed &&
            !read_iso(&s, &out->at_ms) && !read_span(&s, &out->at_ms) && !s.failed &&
            !read_moment(&s, out) && !s.failed)
                fail(&s,
                     "no time is understood there; expected one such as 30m, in 2 hours, 18:30, "
                     "tomorrow 9:00, friday 8pm, 2026-11-20 18:00, 20.11. 18:00, every day "
                     "9:00, every monday 20:00, every 2 hours or cron 0 9 * * 1-5");
        if (s.failed || check_time(&s, out) < 0)
                return -1;
        if (*s.p == ',' || *s.p == ';' || *s.p == ':')
                s.p++;
        skip_space(&s);
        out->used = (size_t)(s.p - text);
        return 0;
}

/* ---- the other way ---- */

void when_describe(int64_t at_ms, const struct time_zone *zone, int64_t now_ms, struct buf *out)
{
        static const struct {
                int days;
                const char *name;
        } near[] = { { 0, "today" }, { 1, "tomorrow" }, { -1, "yesterday" } };
        struct tm at, now, day;
        char text[64];

        local_time(zone, at_ms, &at);
        local_time(zone, now_ms, &now);
        for (size_t i = 0; i < COUNT(near); i++) {
                day = (struct tm){ .tm_year = now.tm_year,
                                   .tm_mon = now.tm_mon,
                                   .tm_mday = now.tm_mday + near[i].days };
                timegm(&day);
                if (day.tm_year == at.tm_year && day.tm_yday == at.tm_yday) {
                        buf_addf(out, "%s %02d:%02d", near[i].name, at.tm_hour, at.tm_min);
                        return;
                }
        }
        strftime(text, sizeof(text),
                 at.tm_year == now.tm_year ? "%a %-d %b %H:%M" : "%a %-d %b %Y %H:%M", &at);
        buf_addstr(out, text);
}

void when_describe_cron(const char *cron, struct buf *out)
{
        char days[16], weekday[32];
        int minute, hour, used = 0;
        const char *p = weekday;

        if (sscanf(cron, "%d %d %15s * %31s%n", &minute, &hour, days, weekday, &used) != 4 ||
            cron[used] || strspn(weekday, "01234567,-*") != strlen(weekday) ||
            (strcmp(days, "*") != 0 && strcmp(weekday, "*") != 0) ||
            (strcmp(days, "*") != 0 && strspn(days, "0123456789") != strlen(days)) ||
            (strchr(weekday, '-') && strcmp(weekday, "1-5") != 0)) {
                buf_addf(out, "`%s`", cron);
                return;
        }
        if (strcmp(days, "*") != 0)
                buf_addf(out, "every month on day %s", days);
        else if (strcmp(weekday, "*") == 0)
                buf_addstr(out, "every day");
        else if (strcmp(weekday, "1-5") == 0)
                buf_addstr(out, "every weekday");
        else
                for (; *p; p += strcspn(p, ","), p += *p == ',') {
                        const char *name = weekdays[(*p - '0') % 7];

                        buf_addf(out, "%s%c%s", p == weekday ? "every " : ", ",
                                 toupper((unsigned char)*name), name + 1);
                }
        buf_addf(out, " %02d:%02d", hour, minute);
}

void when_describe_span(int64_t ms, struct buf *out)
{
        static const struct {
                const char *name;
                int64_t ms, up_to_ms;
        } sizes[] = { { "second", 1000, MINUTE_MS },
                      { "minute", MINUTE_MS, HOUR_MS },
                      { "hour", HOUR_MS, 2 * DAY_MS },
                      { "day", DAY_MS, INT64_MAX } };

        ms = ms < 0 ? 0 : ms;
        for (size_t i = 0; i < COUNT(sizes); i++) {
                int64_t n = ms / sizes[i].ms + (ms % sizes[i].ms >= sizes[i].ms / 2);

                /* 59.7 minutes are an hour */
                if (n * sizes[i].ms >= sizes[i].up_to_ms)
                        continue;
                buf_addf(out, "%lld %s%s", (long long)n, sizes[i].name, n == 1 ? "" : "s");
                return;
        }
}
