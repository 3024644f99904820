#include "schedule/reminder_text.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define SPACE      " \t\r\n\v\f"
#define WORDS_BACK 8 /* of a time at the end of a text */

/* The word is skipped if it comes next, with what separates it. */
static const char *skip_word(const char *p, const char *word)
{
        size_t n = strlen(word);

        return strncasecmp(p, word, n) == 0 && p[n] && strchr(SPACE, p[n])
                       ? p + n + strspn(p + n, SPACE)
                       : p;
}

/* "to call mum" after a time; "me in 30 minutes" before it. */
static const char *skip_binding(const char *p)
{
        static const char *const words[] = { "to", "that", "about" };

        p += strspn(p, SPACE ",:;-");
        for (size_t i = 0; i < COUNT(words); i++) {
                const char *rest = skip_word(p, words[i]);

                if (rest != p)
                        return rest;
        }
        return p;
}

/* A zone that follows a time, as in "18:00 Europe/Paris tea"; NULL: there is none. */
static struct time_zone *read_zone(struct arena *a, const char *text, const char **name,
                                   size_t *used)
{
        size_t space = strspn(text, SPACE), n = strcspn(text + space, SPACE);
        struct time_zone *zone;
        struct error ignored = { 0 };

        *name = arena_printf(a, "%.*s", (int)(n < 60 ? n : 60), text + space);
        if (!strchr(*name, '/') && strcmp(*name, "UTC") != 0)
                return NULL;
        zone = timezone_new(*name, &ignored);
        *used = space + n;
        return zone;
}

/* The time is first: "30m tea". */
static int read_first(const char *all, const struct time_zone *zone, int64_t now_ms,
                      struct arena *a, struct reminder_text *out, struct error *err)
{
        const char *name;
        size_t used;
        struct time_zone *other;

        if (when_parse(all, zone, now_ms, &out->when, err) < 0)
                return -1;
        out->text = all + out->when.used;
        other = read_zone(a, out->text, &name, &used);
        if (other && when_parse(all, other, now_ms, &out->when, NULL) == 0) {
                out->timezone = name;
                out->text += used;
        }
        timezone_free(other);
        out->text = skip_binding(out->text);
        return 0;
}

/* The time is last: "call mum in 30 minutes". */
static bool read_last(const char *all, const struct time_zone *zone, int64_t now_ms,
                      struct arena *a, struct reminder_text *out)
{
        const char *starts[WORDS_BACK] = { NULL }, *end = all + strlen(all);
        size_t count = 0;

        while (end > all && strchr(SPACE, end[-1]))
                end--;
        for (const char *p = end; p > all && count < WORDS_BACK; p--)
                if (strchr(SPACE, p[-1]) && !strchr(SPACE, *p))
                        starts[count++] = p;
        while (count-- > 0) {
                const char *p = starts[count];
                size_t before = (size_t)(p - all);

                if (when_parse(p, zone, now_ms, &out->when, NULL) < 0 || p + out->when.used < end)
                        continue;
                while (before > 0 && strchr(SPACE ",:;", all[before - 1]))
                        before--;
                out->text = arena_printf(a, "%.*s", (int)before, all);
                return true;
        }
        return false;
}

/* The time alone, beside its text. A cron expression is all of it, of five or six fields. */
static int read_alone(const char *all, const struct time_zone *zone, int64_t now_ms,
                      struct when *out, struct error *err)
{
        const char *fields = skip_word(all, "cron");
        size_t n = strlen(fields);

        while (n > 0 && strchr(SPACE, fields[n - 1]))
                n--;
        if (fields != all && n < sizeof(out->cron)) {
                *out = (struct when){ .used = strlen(all) };
                memcpy(out->cron, fields, n);
                return 0;
        }
        if (when_parse(all, zone, now_ms, out, err) < 0)
                return -1;
        if (all[out->used + strspn(all + out->used, SPACE)] == '\0')
                return 0;
        return error_set(err, ERR_INVALID,
                         "'%.60s' follows the time; it must stand alone, such as '30m', 'tomorrow "
                         "9:00' or 'every monday 20:00'",
                         all + out->used);
}

int reminder_text_read(const char *when, const char *text, const struct time_zone *zone,
                       int64_t now_ms, struct arena *a, struct reminder_text *out,
                       struct error *err)
{
        const char *all = when + strspn(when, SPACE);

        *out = (struct reminder_text){ .text = text };
        if (text)
                return read_alone(all, zone, now_ms, &out->when, err);
        all = skip_word(all, "me");
        if (read_first(all, zone, now_ms, a, out, err) == 0)
                return 0;
        return read_last(skip_binding(all), zone, now_ms, a, out) ? 0 : -1;
}
