#include "schedule/cron.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"

#define TEXT_MAX     200
#define DAY_SECONDS  86400
#define HORIZON_DAYS 36525 /* 100 years */
#define LAST         5     /* the bit of nth_weekday for the last one */

/* ---- text ---- */

enum field { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const char *const month_names[] = { "jan", "feb", "mar", "apr", "may", "jun", "jul",
                                           "aug", "sep", "oct", "nov", "dec", NULL };
static const char *const weekday_names[] = {
        "sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL
};

static const struct {
        const char *name;
        int min, max;
        const char *const *words; /* the first one means min */
        const char *also;         /* for errors */
} fields[FIELDS] = {
        { "second", 0, 59, NULL, "" },
        { "minute", 0, 59, NULL, "" },
        { "hour", 0, 23, NULL, "" },
        { "day of month", 1, 31, NULL, " or L" },
        { "month", 1, 12, month_names, " or jan to dec" },
        { "day of week", 0, 7, weekday_names, " (0 and 7 are Sunday) or sun to sat" },
};

static const struct {
        const char *name, *fields;
} nicknames[] = {
        { "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },   { "@midnight", "0 0 * * *" },
        { "@weekly", "0 0 * * 0" },   { "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" },
        { "@annually", "0 0 1 1 *" },
};

/* One field while it is read. */
struct reader {
        enum field field;
        const char *p;
        uint64_t bits;
        struct cron *out;
};

static bool read_number(struct reader *r, int *out)
{
        const char *const *words = fields[r->field].words;

        for (int i = 0; words && words[i]; i++) {
                if (strncasecmp(r->p, words[i], 3) == 0) {
                        r->p += 3;
                        *out = fields[r->field].min + i;
                        return true;
                }
        }
        if (!isdigit((unsigned char)*r->p))
                return false;
        for (*out = 0; isdigit((unsigned char)*r->p) && *out < 1000; r->p++)
                *out = *out * 10 + (*r->p - '0');
        return *out >= fields[r->field].min && *out <= fields[r->field].max;
}

/* "#2" or "#L" after a day of the week, or "L": which ones of the month; 0: malformed. */
static uint8_t read_nth(struct reader *r)
{
        bool hash = *r->p == '#';

        r->p += hash;
        if (toupper((unsigned char)*r->p) == 'L') {
                r->p++;
                return 1 << LAST;
        }
        if (!hash || *r->p < '1' || *r->p > '5')
                return 0;
        return (uint8_t)(1 << (*r->p++ - '1'));
}

static bool add_range(struct reader *r, int from, int to, int step)
{
        uint8_t nth = 0;

        if (r->field == WEEKDAY && (*r->p == '#' || toupper((unsigned char)*r->p) == 'L')) {
                nth = read_nth(r);
                if (nth == 0)
                        return false;
        }
        for (int i = from; i <= to; i += step) {
                int n = r->field == WEEKDAY ? i % 7 : i;

                if (nth)
                        r->out->nth_weekday[n] |= nth;
                else
                        r->bits |= UINT64_C(1) << n;
        }
        return true;
}

/* One member of the list: "*", "5", "5-20", each perhaps with "/2", or "L". */
static bool read_item(struct reader *r)
{
        int from = fields[r->field].min, to = fields[r->field].max, step = 1;
        bool single = false;

        if (*r->p == '*' || *r->p == '?') {
                r->p++;
                if (r->field == WEEKDAY)
                        to = 6;
        } else if (r->field == DAY && toupper((unsigned char)*r->p) == 'L') {
                r->p++;
                return r->out->last_day = true;
        } else {
                if (!read_number(r, &from))
                        return false;
                single = *r->p != '-';
                if (!single) {
                        r->p++;
                        if (!read_number(r, &to))
                                return false;
                        if (r->field == WEEKDAY && to == 0 && from > 0)
                                to = 7; /* "sat-sun" */
                }
        }
        if (*r->p == '/') {
                int largest = fields[r->field].max;

                r->p++;
                for (step = 0; isdigit((unsigned char)*r->p) && step < 1000; r->p++)
                        step = step * 10 + (*r->p - '0');
                if (step < 1 || step > largest)
                        return false;
                if (single && r->field == WEEKDAY)
                        to = 6;
                single = false;
        }
        if (single)
                to = from;
        return from <= to && add_range(r, from, to, step);
}

static int read_field(enum field field, const char *text, struct cron *out, uint64_t *bits,
                      struct error *err)
{
        struct reader r = { field, text, 0, out };

        while (read_item(&r)) {
                if (*r.p == '\0') {
                        *bits = r.bits;
                        return 0;
                }
                if (*r.p++ != ',')
                        break;
        }
        return error_set(err, ERR_INVALID,
                         "the %s '%.40s' is not understood; it takes %d to %d%s, and lists (1,2), "
                         "ranges (1-5), steps (*/5) and *%s",
                         fields[field].name, text, fields[field].min, fields[field].max,
                         fields[field].also, field == WEEKDAY ? ", mon#2 and fri#L" : "");
}

static int read_fields(const char *const words[FIELDS], struct cron *out, struct error *err)
{
        uint64_t bits[FIELDS];

        for (enum field i = SECOND; i < FIELDS; i++) {
                if (read_field(i, words[i], out, &bits[i], err) < 0)
                        return -1;
        }
        out->seconds = bits[SECOND];
        out->minutes = bits[MINUTE];
        out->hours = (uint32_t)bits[HOUR];
        out->days = (uint32_t)bits[DAY];
        out->months = (uint16_t)bits[MONTH];
        out->weekdays = (uint8_t)bits[WEEKDAY];
        out->any_day = strcmp(words[DAY], "*") == 0 || strcmp(words[DAY], "?") == 0;
        out->any_weekday = strcmp(words[WEEKDAY], "*") == 0 || strcmp(words[WEEKDAY], "?") == 0;
        return 0;
}

/* ---- local times ---- */

static bool is_leap(int year)
{
        return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int month_days(int year, int month)
{
        static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

        return days[month - 1] + (month == 2 && is_leap(year));
}

static bool day_matches(const struct cron *c, int day, int days, int weekday)
{
        bool by_day = (c->days >> day & 1) || (c->last_day && day == days);
        bool by_weekday = (c->weekdays >> weekday & 1) ||
                          (c->nth_weekday[weekday] >> ((day - 1) / 7) & 1) ||
                          (c->nth_weekday[weekday] >> LAST & 1 && day + 7 > days);

        if (c->any_day || c->any_weekday)
                return (c->any_day || by_day) && (c->any_weekday || by_weekday);
        return by_day || by_weekday;
}

/* The lowest bit from `from` on; -1: none. */
static int next_bit(uint64_t bits, int from)
{
        bits = from < 64 ? bits >> from << from : 0;
        return bits ? __builtin_ctzll(bits) : -1;
}

/* The first matching second of a day from `from` on; -1: none. */
static int next_second(const struct cron *c, int from)
{
        int h = from / 3600, m = from / 60 % 60, s = from % 60;
        int hour = next_bit(c->hours, h), minute, second;

        if (hour == h) {
                minute = next_bit(c->minutes, m);
                if (minute == m) {
                        second = next_bit(c->seconds, s);
                        if (second >= 0)
                                return hour * 3600 + minute * 60 + second;
                        minute = next_bit(c->minutes, m + 1);
                }
                if (minute >= 0)
                        return hour * 3600 + minute * 60 + next_bit(c->seconds, 0);
                hour = next_bit(c->hours, h + 1);
        }
        if (hour < 0)
                return -1;
        return hour * 3600 + next_bit(c->minutes, 0) * 60 + next_bit(c->seconds, 0);
}

/* The first matching local time from `local` on; -1: none within 100 years. */
static int64_t next_local(const struct cron *c, int64_t local)
{
        time_t t = (time_t)local;
        int year, month, day, weekday, from, days;
        int64_t midnight;
        struct tm tm;

        if (!gmtime_r(&t, &tm))
                return -1;
        year = tm.tm_year + 1900;
        month = tm.tm_mon + 1;
        day = tm.tm_mday;
        weekday = tm.tm_wday;
        from = tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec;
        midnight = local - from;
        days = month_days(year, month);
        for (int i = 0; i < HORIZON_DAYS; i++) {
                int second = -1;

                if (c->months >> month & 1 && day_matches(c, day, days, weekday))
                        second = next_second(c, from);
                if (second >= 0)
                        return midnight + second;
                from = 0;
                midnight += DAY_SECONDS;
                weekday = (weekday + 1) % 7;
                if (++day > days) {
                        day = 1;
                        if (++month > 12) {
                                month = 1;
                                year++;
                        }
                        days = month_days(year, month);
                }
        }
        return -1;
}

int cron_parse(const char *text, struct cron *out, struct error *err)
{
        const char *words[FIELDS + 1];
        char *copy, *rest;
        size_t count = 0;
        int rc = -1;

        *out = (struct cron){ 0 };
        while (isspace((unsigned char)*text))
                text++;
        if (strlen(text) > TEXT_MAX)
                return error_set(err, ERR_INVALID, "a cron schedule has at most %d characters",
                                 TEXT_MAX);
        copy = mem_strdup(text);
        for (size_t i = 0; i < COUNT(nicknames); i++) {
                if (strcasecmp(text, nicknames[i].name) == 0) {
                        free(copy);
                        copy = mem_strdup(nicknames[i].fields);
                }
        }
        for (char *word = strtok_r(copy, " \t\r\n", &rest); word && count < FIELDS + 1;
             word = strtok_r(NULL, " \t\r\n", &rest))
                words[count++] = word;
        if (count == FIELDS - 1) {
                memmove(words + 1, words, count * sizeof(*words));
                words[0] = "0";
        }
        if (count != FIELDS - 1 && count != FIELDS)
                error_set(err, ERR_INVALID,
                          "'%.60s' is not a cron schedule; it has five fields (minute, hour, day "
                          "of month, month, day of week), or six with seconds first, or is "
                          "@hourly, @daily, @weekly, @monthly or @yearly",
                          text);
        else if (read_fields(words, out, err) == 0)
                rc = next_local(out, 0) >= 0
                             ? 0
                             : error_set(err, ERR_INVALID, "'%.60s' is never due", text);
        free(copy);
        return rc;
}

/* ---- the zone ---- */

/* Every matching time on the clock once, where they are turned back the first one. */
static int64_t next_on_the_clock(const struct cron *c, const struct time_zone *zone, int64_t after)
{
        int64_t local = after + timezone_offset(zone, after);

        for (;;) {
                int64_t at;

                local = next_local(c, local + 1);
                if (local < 0)
                        return 0;
                at = timezone_instant(zone, local);
                if (at > after)
                        return at;
        }
}

/* Every moment at which the clock shows a matching time. */
static int64_t next_elapsed(const struct cron *c, const struct time_zone *zone, int64_t after)
{
        int64_t at = after + 1;

        for (;;) {
                int64_t local = at + timezone_offset(zone, at), next = next_local(c, local);
                int64_t ahead = next - local, change;

                if (next < 0)
                        return 0;
                change =
                        timezone_change(zone, at, at + (ahead < DAY_SECONDS ? ahead : DAY_SECONDS));
                if (change)
                        at = change;
                else if (ahead <= DAY_SECONDS)
                        return at + ahead;
                else
                        at = timezone_instant(zone, next - DAY_SECONDS);
        }
}

int64_t cron_next(const struct cron *c, const struct time_zone *zone, int64_t after_ms)
{
        int64_t after = after_ms / 1000 - (after_ms % 1000 < 0);
        bool every_hour = c->hours == (1u << 24) - 1;

        return (every_hour ? next_elapsed : next_on_the_clock)(c, zone, after) * 1000;
}
