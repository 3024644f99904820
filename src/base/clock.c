#include "base/clock.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fault.h"

int64_t clock_wall_ms(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_REALTIME, &ts);
        return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + fault_clock_offset_ms();
}

uint64_t clock_mono_ns(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int64_t clock_mono_ms(void)
{
        return (int64_t)(clock_mono_ns() / 1000000u);
}

int64_t clock_boot_ms(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_BOOTTIME, &ts);
        return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

char *clock_iso(int64_t wall_ms, char out[CLOCK_ISO_SIZE])
{
        time_t seconds = (time_t)(wall_ms / 1000);
        int ms = (int)(wall_ms % 1000);
        struct tm tm;

        if (ms < 0) {
                ms += 1000;
                seconds--;
        }
        gmtime_r(&seconds, &tm);
        /* strftime stays inside the buffer for any year */
        if (strftime(out, CLOCK_ISO_SIZE, "%Y-%m-%dT%H:%M:%S", &tm) == 19)
                snprintf(out + 19, CLOCK_ISO_SIZE - 19, ".%03uZ", (unsigned)ms % 1000);
        else
                snprintf(out, CLOCK_ISO_SIZE, "9999-12-31T23:59:59.999Z");
        return out;
}

static bool digits(const char **p, int n, int *value)
{
        *value = 0;
        for (int i = 0; i < n; i++, (*p)++) {
                if (!isdigit((unsigned char)**p))
                        return false;
                *value = *value * 10 + (**p - '0');
        }
        return true;
}

static bool literal(const char **p, const char *choices)
{
        if (**p == '\0' || !strchr(choices, **p))
                return false;
        (*p)++;
        return true;
}

/* "Z", "+02:00" or "-0530", as minutes east of UTC. */
static bool offset_from_utc(const char **p, int *minutes)
{
        int sign = **p == '-' ? -1 : 1;
        int h, m;

        *minutes = 0;
        if (literal(p, "Zz"))
                return true;
        if (!literal(p, "+-") || !digits(p, 2, &h))
                return false;
        if (**p == ':')
                (*p)++;
        if (!digits(p, 2, &m) || h > 23 || m > 59)
                return false;
        *minutes = sign * (h * 60 + m);
        return true;
}

int clock_parse_iso(const char *text, int64_t *wall_ms)
{
        static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        struct tm tm = { 0 };
        const char *p = text;
        int ms = 0, offset;
        bool leap;

        if (!digits(&p, 4, &tm.tm_year) || !literal(&p, "-") || !digits(&p, 2, &tm.tm_mon) ||
            !literal(&p, "-") || !digits(&p, 2, &tm.tm_mday) || !literal(&p, "Tt ") ||
            !digits(&p, 2, &tm.tm_hour) || !literal(&p, ":") || !digits(&p, 2, &tm.tm_min) ||
            !literal(&p, ":") || !digits(&p, 2, &tm.tm_sec))
                return -1;
        leap = (tm.tm_year % 4 == 0 && tm.tm_year % 100 != 0) || tm.tm_year % 400 == 0;
        if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
            tm.tm_mday > days[tm.tm_mon - 1] + (leap && tm.tm_mon == 2) || tm.tm_hour > 23 ||
            tm.tm_min > 59 || tm.tm_sec > 60)
                return -1;
        if (literal(&p, ".")) {
                int scale = 100;

                if (!isdigit((unsigned char)*p))
                        return -1;
                for (; isdigit((unsigned char)*p); p++, scale /= 10)
                        ms += (*p - '0') * scale;
        }
        if (!offset_from_utc(&p, &offset) || *p != '\0')
                return -1;
        tm.tm_year -= 1900;
        tm.tm_mon -= 1;
        *wall_ms = ((int64_t)timegm(&tm) - (int64_t)offset * 60) * 1000 + ms;
        return 0;
}

int clock_parse_span(const char *text, int64_t *ms)
{
        static const struct {
                char unit;
                int64_t ms;
        } units[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 }, { 'd', 86400000 } };
        int64_t n = 0;
        const char *p = text;

        for (; isdigit((unsigned char)*p) && n <= 100000; p++)
                n = n * 10 + (*p - '0');
        if (p == text || n < 1 || n > 100000 || p[0] == '\0' || p[1] != '\0')
                return -1;
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
                if (units[i].unit == *p) {
                        *ms = n * units[i].ms;
                        return 0;
                }
        }
        return -1;
}
