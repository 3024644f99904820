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

/*
 * A zone that follows a time, as in "18:00 Europe/Paris tea". 1; 0: there is none; -1: it is
 * misspelt, or a short name that several zones share.
 */
static int read_zone(struct arena *a, const char *text, const char **name, struct time_zone **zone,
                     struct error *err)
{
        static const char *const shared[] = { "EST", "EDT", "CST", "CDT",  "MST", "MDT",
                                              "PST", "PDT", "CET", "CEST", "EET", "BST",
                                              "IST", "JST", "WET", "AEST", "AEDT" };
        struct error unknown = { 0 };

        *name = arena_printf(a, "%.*s", (int)strcspn(text, SPACE), text);
        for (size_t i = 0; i < COUNT(shared); i++)
                if (strcmp(*name, shared[i]) == 0)
                        return error_set(err, ERR_INVALID,
                                         "'%s' is not the name of a time zone; expected one such "
                                         "as 'Europe/Berlin' or 'America/New_York'",
                                         *name);
        if (strlen(*name) > 60 || (!strchr(*name, '/') && strcmp(*name, "UTC") != 0))
                return 0;
        *zone = timezone_new(*name, &unknown);
        if (*zone)
                return 1;
        /* "and/or" resembles no zone */
        return strstr(unknown.text, "did you mean")
                       ? error_set(err, ERR_INVALID, "%s", unknown.text)
                       : 0;
}

/* The time is first: "30m tea", "18:00 Europe/Paris tea". */
static int read_first(const char *all, const struct time_zone *zone, int64_t now_ms,
                      struct arena *a, struct reminder_text *out, struct error *err)
{
        const char *name = NULL;
        struct time_zone *other = NULL;
        int rc = when_parse(all, zone, now_ms, &out->when, err);

        out->timezone = NULL;
        if (rc == 0) {
                out->text = all + out->when.used;
                rc = read_zone(a, out->text, &name, &other, err);
        }
        if (rc == 1) {
                rc = when_parse(all, other, now_ms, &out->when, err);
                out->timezone = name;
                out->text += strlen(name);
        }
        timezone_free(other);
        if (rc == 0)
                out->text = skip_binding(out->text);
        return rc;
}

int reminder_text_read_last(const char *all, const struct time_zone *zone, int64_t now_ms,
                            struct arena *a, struct reminder_text *out, struct error *err)
{
        const char *starts[WORDS_BACK] = { NULL }, *end = all + strlen(all);
        size_t count = 0;

        while (end > all && strchr(SPACE, end[-1]))
                end--;
        for (const char *p = end; p > all && count < WORDS_BACK; p--)
                if (strchr(SPACE, p[-1]) && !strchr(SPACE, *p))
                        starts[count++] = p;
        for (size_t i = count; i-- > 0;) {
                const char *p = starts[i], *before = i + 1 < count ? starts[i + 1] : all;
                size_t n = (size_t)(p - all);

                if (read_first(p, zone, now_ms, a, out, NULL) < 0 || *out->text)
                        continue;
                /* "every 90 minutes" is not "90 minutes" */
                if (skip_word(before, "every") == p || skip_word(before, "each") == p)
                        return when_parse(before, zone, now_ms, &out->when, err);
                while (n > 0 && strchr(SPACE ",:;", all[n - 1]))
                        n--;
                out->text = arena_printf(a, "%.*s", (int)n, all);
                return 1;
        }
        return 0;
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
        return reminder_text_read_last(skip_binding(all), zone, now_ms, a, out, err) == 1 ? 0 : -1;
}
