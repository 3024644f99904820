#include "base/timezone.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/settings.h"

#define ZONE_DIR    "/usr/share/zoneinfo"
#define ZONE_LIST   ZONE_DIR "/tzdata.zi" /* all names, among other things */
#define LIST_MAX    (1 << 20)
#define ZONES_MAX   2000
#define FILE_MAX    65536
#define HEADER_SIZE 44
#define DAY_SECONDS 86400

/* "the last Sunday in March at 02:00", in local time before the change. */
struct zone_change {
        int month, week, day; /* week 5: the last */
        int64_t seconds;
};

struct time_zone {
        int64_t *at;     /* when the offset changes, ascending */
        int64_t *offset; /* from then on */
        size_t count;
        int64_t before; /* the offset before the first change */
        /* the rule after the last change */
        bool has_rule, rule_summer;
        int64_t standard, summer;
        struct zone_change to_summer, to_standard;
};

/* ---- binary part ---- */

/* Numbers of entries, from the header. */
struct zone_counts {
        size_t utc, standard, leap, times, types, chars;
};

static uint32_t read32(const unsigned char *p)
{
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static bool read_header(const unsigned char *p, size_t n, struct zone_counts *c)
{
        if (n < HEADER_SIZE || memcmp(p, "TZif", 4) != 0)
                return false;
        *c = (struct zone_counts){ read32(p + 20), read32(p + 24), read32(p + 28),
                                   read32(p + 32), read32(p + 36), read32(p + 40) };
        return c->utc <= FILE_MAX && c->standard <= FILE_MAX && c->leap <= FILE_MAX &&
               c->times <= FILE_MAX && c->types > 0 && c->types <= 256 && c->chars <= FILE_MAX;
}

static size_t block_size(const struct zone_counts *c, size_t time_size)
{
        return c->times * (time_size + 1) + c->types * 6 + c->chars + c->leap * (time_size + 4) +
               c->standard + c->utc;
}

/* The times, the type of each time, the types. */
static bool read_block(struct time_zone *z, const unsigned char *p, const struct zone_counts *c)
{
        const unsigned char *indexes = p + c->times * 8, *types = indexes + c->times;

        z->at = mem_array(c->times, sizeof(*z->at));
        z->offset = mem_array(c->times, sizeof(*z->offset));
        z->before = (int32_t)read32(types);
        for (; z->count < c->times; z->count++, p += 8) {
                if (indexes[z->count] >= c->types)
                        return false;
                z->at[z->count] = (int64_t)((uint64_t)read32(p) << 32 | read32(p + 4));
                z->offset[z->count] = (int32_t)read32(types + (size_t)indexes[z->count] * 6);
        }
        return true;
}

/* ---- footer: a POSIX rule such as "CET-1CEST,M3.5.0,M10.5.0/3" ---- */

static bool skip_name(const char **p)
{
        const char *start = *p;

        if (**p == '<') {
                *p = strchr(*p, '>');
                if (!*p)
                        return false;
                ++*p;
                return true;
        }
        while (isalpha((unsigned char)**p))
                ++*p;
        return *p - start >= 3;
}

static bool read_number(const char **p, int max, int *out)
{
        int n = 0;

        if (!isdigit((unsigned char)**p))
                return false;
        for (; isdigit((unsigned char)**p) && n <= max; ++*p)
                n = n * 10 + (**p - '0');
        *out = n;
        return n <= max;
}

/* "-1", "5:45", "02:00:00". */
static bool read_seconds(const char **p, int64_t *out)
{
        int sign = 1, parts[3] = { 0 };

        if (**p == '-' || **p == '+')
                sign = *(*p)++ == '-' ? -1 : 1;
        for (size_t i = 0; i < COUNT(parts); i++) {
                if (!read_number(p, i == 0 ? 167 : 59, &parts[i]))
                        return false;
                if (**p != ':')
                        break;
                ++*p;
        }
        *out = sign * ((int64_t)parts[0] * 3600 + (int64_t)parts[1] * 60 + parts[2]);
        return true;
}

static bool read_change(const char **p, struct zone_change *c)
{
        if (strncmp(*p, ",M", 2) != 0)
                return false;
        *p += 2;
        if (!read_number(p, 12, &c->month) || *(*p)++ != '.' || !read_number(p, 5, &c->week) ||
            *(*p)++ != '.' || !read_number(p, 6, &c->day) || c->month < 1 || c->week < 1)
                return false;
        c->seconds = 7200;
        if (**p != '/')
                return true;
        ++*p;
        return read_seconds(p, &c->seconds);
}

static bool read_rule(struct time_zone *z, const char *p)
{
        int64_t west;

        if (!skip_name(&p) || !read_seconds(&p, &west))
                return false;
        z->standard = -west;
        if (*p == '\0')
                return true;
        if (!skip_name(&p))
                return false;
        z->summer = z->standard + 3600;
        if (*p != ',') {
                if (!read_seconds(&p, &west))
                        return false;
                z->summer = -west;
        }
        z->rule_summer = true;
        return read_change(&p, &z->to_summer) && read_change(&p, &z->to_standard) && *p == '\0';
}

/* Days since 1970. */
static int64_t days_of(int64_t year, int month, int day)
{
        int64_t y = month <= 2 ? year - 1 : year, era = (y >= 0 ? y : y - 399) / 400,
                of_era = y - era * 400;
        int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

        return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* The local time of the change, in seconds since 1970 as if it were UTC. */
static int64_t change_at(const struct zone_change *c, int64_t year)
{
        int64_t first = days_of(year, c->month, 1);
        int64_t next = c->month == 12 ? days_of(year + 1, 1, 1) : days_of(year, c->month + 1, 1);
        int64_t weekday = ((first + 4) % 7 + 7) % 7;
        int64_t day = first + (c->day - weekday + 7) % 7 + (int64_t)(c->week - 1) * 7;

        while (day >= next)
                day -= 7;
        return day * DAY_SECONDS + c->seconds;
}

static int64_t offset_by_rule(const struct time_zone *z, int64_t t)
{
        int64_t local = t + z->standard, days = local / DAY_SECONDS - (local % DAY_SECONDS < 0);
        int64_t year = 1970 + days * 400 / 146097, begin, end;
        bool summer;

        if (!z->rule_summer)
                return z->standard;
        while (days_of(year + 1, 1, 1) <= days)
                year++;
        while (days_of(year, 1, 1) > days)
                year--;
        begin = change_at(&z->to_summer, year) - z->standard;
        end = change_at(&z->to_standard, year) - z->summer;
        summer = begin < end ? t >= begin && t < end : t >= begin || t < end;
        return summer ? z->summer : z->standard;
}

struct time_zone *timezone_parse(const unsigned char *bytes, size_t n)
{
        const unsigned char *end;
        struct zone_counts c;
        struct time_zone *z;
        size_t skip;

        if (!read_header(bytes, n, &c) || bytes[4] < '2')
                return NULL;
        skip = HEADER_SIZE + block_size(&c, 4); /* the 32-bit block comes first */
        if (skip > n || !read_header(bytes + skip, n - skip, &c))
                return NULL;
        bytes += skip + HEADER_SIZE;
        n -= skip + HEADER_SIZE;
        if (block_size(&c, 8) > n)
                return NULL;
        z = mem_zalloc(sizeof(*z));
        if (!read_block(z, bytes, &c)) {
                timezone_free(z);
                return NULL;
        }
        bytes += block_size(&c, 8);
        n -= block_size(&c, 8);
        end = n > 2 && *bytes == '\n' ? memchr(bytes + 1, '\n', n - 1) : NULL;
        if (end && end > bytes + 1) {
                char *rule = mem_strndup((const char *)bytes + 1, (size_t)(end - bytes) - 1);

                z->has_rule = read_rule(z, rule);
                free(rule);
        }
        return z;
}

void timezone_free(struct time_zone *z)
{
        if (!z)
                return;
        free(z->at);
        free(z->offset);
        free(z);
}

int64_t timezone_offset(const struct time_zone *z, int64_t t)
{
        size_t low = 0, high = z->count;

        if (z->has_rule && (z->count == 0 || t >= z->at[z->count - 1]))
                return offset_by_rule(z, t);
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (z->at[middle] <= t)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low == 0 ? z->before : z->offset[low - 1];
}

int64_t timezone_change(const struct time_zone *z, int64_t from, int64_t to)
{
        int64_t before = timezone_offset(z, from);

        if (to <= from || timezone_offset(z, to) == before)
                return 0;
        while (to - from > 1) {
                int64_t middle = from + (to - from) / 2;

                if (timezone_offset(z, middle) == before)
                        from = middle;
                else
                        to = middle;
        }
        return to;
}

int64_t timezone_instant(const struct time_zone *z, int64_t local)
{
        /* offsets are between -15 and +15 hours */
        int64_t from = local - 15 * 3600, to = local + 15 * 3600;
        int64_t earlier = local - timezone_offset(z, from), later = local - timezone_offset(z, to);

        if (earlier + timezone_offset(z, earlier) == local)
                return earlier;
        if (later + timezone_offset(z, later) == local)
                return later;
        return timezone_change(z, from, to);
}

/* ---- names ---- */

/* It must not lead out of the directory. */
static bool is_name(const char *name)
{
        return isalpha((unsigned char)*name) && strlen(name) < 100 && !strstr(name, "..") &&
               strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") ==
                       strlen(name);
}

/* The names in lines "Z NAME ..." and "L TARGET NAME"; cuts the text into them. */
static void list_names(char *text, const char **names)
{
        size_t count = 0;

        for (char *rest, *line = strtok_r(text, "\n", &rest); line && count + 1 < ZONES_MAX;
             line = strtok_r(NULL, "\n", &rest)) {
                char *after, *kind = strtok_r(line, " ", &after);
                char *name = kind ? strtok_r(NULL, " ", &after) : NULL;

                if (name && strcmp(kind, "L") == 0)
                        name = strtok_r(NULL, " ", &after);
                if (name && (strcmp(kind, "Z") == 0 || strcmp(kind, "L") == 0))
                        names[count++] = name;
        }
        names[count] = NULL;
}

/* The zone of that city, or the one that is spelled most like it; NULL: none. */
static const char *nearest_name(const char *name, const char *const *names)
{
        char spelled[100];
        size_t n = 0;

        for (; name[n] && n + 1 < sizeof(spelled); n++)
                spelled[n] = name[n] == ' ' ? '_' : name[n];
        spelled[n] = '\0';
        for (size_t i = 0; names[i]; i++) {
                const char *city = strrchr(names[i], '/');

                if (strcasecmp(spelled, names[i]) == 0 ||
                    (city && strcasecmp(spelled, city + 1) == 0))
                        return names[i];
        }
        return settings_nearest(spelled, names);
}

static void unknown_name(const char *name, struct error *err)
{
        const char **names = mem_array(ZONES_MAX, sizeof(*names)), *near = NULL;
        struct buf text;

        buf_init(&text, 0);
        if (file_read(ZONE_LIST, LIST_MAX, &text, NULL) == 0) {
                list_names(text.data, names);
                near = nearest_name(name, names);
        }
        if (near)
                error_set(err, ERR_INVALID, "unknown time zone '%.60s' (did you mean '%s'?)", name,
                          near);
        else
                error_set(err, ERR_INVALID,
                          "unknown time zone '%.60s'; expected a name such as 'Europe/Berlin'",
                          name);
        buf_release(&text);
        free(names);
}

struct time_zone *timezone_new(const char *name, struct error *err)
{
        struct time_zone *z = NULL;
        struct buf bytes;
        char *path;

        if (strcmp(name, "UTC") == 0)
                return mem_zalloc(sizeof(*z));
        path = mem_printf("%s/%s", ZONE_DIR, name);
        buf_init(&bytes, 0);
        if (is_name(name) && file_read(path, FILE_MAX, &bytes, NULL) == 0)
                z = timezone_parse((const unsigned char *)bytes.data, bytes.len);
        buf_release(&bytes);
        free(path);
        if (!z && err)
                unknown_name(name, err);
        return z;
}

char *timezone_system_name(void)
{
        const char *name = getenv("TZ"), *dir;
        struct time_zone *z;
        char target[200];
        ssize_t n;

        if (name && *name == ':')
                name++;
        if (!name || !*name) {
                n = readlink("/etc/localtime", target, sizeof(target) - 1);
                target[n > 0 ? n : 0] = '\0';
                dir = strstr(target, "zoneinfo/");
                name = dir ? dir + strlen("zoneinfo/") : "";
        }
        z = timezone_new(name, NULL);
        if (!z)
                name = "UTC";
        timezone_free(z);
        return mem_strdup(name);
}
