#include "schedule/event_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hours.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/timezone.h"
#include "schedule/cron.h"

static const char *const types[] = { "immediate", "one-shot", "periodic", NULL };
static const char *const policies[] = { "once", "all", "skip", NULL };

#define AT(field) offsetof(struct event_file, field)
static const struct setting settings[] = {
        { "type", SETTING_CHOICE, NULL, .choices = types, .at = AT(type) },
        { "channelId", SETTING_STRING, "null", 1, 300, .at = AT(channel_id) },
        { "text", SETTING_STRING, NULL, 1, EVENT_FILE_TEXT_MAX, .at = AT(text) },
        { "at", SETTING_STRING, "null", 1, 60, .at = AT(at) },
        { "schedule", SETTING_STRING, "null", 1, 120, .at = AT(schedule) },
        { "timezone", SETTING_STRING, "null", 1, 60, .at = AT(timezone) },
        { "thread", SETTING_STRING, "null", 1, 200, .at = AT(thread) },
        { "agent", SETTING_STRING, "null", 1, 100, .at = AT(agent) },
        { "missed", SETTING_CHOICE, "null", .choices = policies, .at = AT(missed) },
        { "maxAgeSeconds", SETTING_INT, "null", 0, 31622400, .at = AT(max_age_seconds) },
        { "quietHours", SETTING_STRINGS, "[]", .at = AT(quiet_hours) },
        { "check", SETTING_STRING, "null", 1, 8192, .at = AT(check) },
        { "checkSeconds", SETTING_INT, "60", 1, 3600, .at = AT(check_seconds) },
        { "enabled", SETTING_BOOL, "true", .at = AT(enabled) },
        SETTING_END
};
#undef AT
static const struct setting *const tables[] = { settings, NULL };
static const char *const also[] = { "$schema", NULL };

bool event_file_is_name(const char *name)
{
        size_t n = strlen(name);

        return n > 5 && n <= EVENT_FILE_NAME_MAX && name[0] != '.' &&
               strcmp(name + n - 5, ".json") == 0;
}

/* Seconds may be left out, as JavaScript permits: mom's files come from there. */
static int parse_time(const char *text, int64_t *ms)
{
        char *whole;
        int rc;

        if (clock_parse_iso(text, ms) == 0)
                return 0;
        if (strlen(text) < 17 || text[13] != ':' || text[16] == ':')
                return -1;
        whole = mem_printf("%.16s:00%s", text, text + 16);
        rc = clock_parse_iso(whole, ms);
        free(whole);
        return rc;
}

static int check_time(const struct settings_source *src, struct event_file *f, struct error *err)
{
        static const char expected[] =
                "expected a time with its offset from UTC, such as \"2026-12-15T09:00:00+01:00\" "
                "or \"2026-12-15T08:00:00Z\"";

        if (f->kind != SCHEDULE_ONE_SHOT)
                return f->at ? settings_error(src, "at", err,
                                              "only an event of type 'one-shot' has it, and this "
                                              "one is '%s'",
                                              f->type)
                             : 0;
        if (!f->at)
                return settings_member_error(src, "", "at", err, "missing; %s", expected);
        if (parse_time(f->at, &f->at_ms) < 0)
                return settings_error(src, "at", err, "'%.40s' is no such time; %s", f->at,
                                      expected);
        if (f->at_ms <= 0)
                return settings_error(src, "at", err, "'%.40s' is before 1970", f->at);
        return 0;
}

static int check_cron(const struct settings_source *src, const struct event_file *f,
                      struct error *err)
{
        struct error why;
        struct cron cron;

        if (f->kind != SCHEDULE_PERIODIC)
                return f->schedule ? settings_error(src, "schedule", err,
                                                    "only an event of type 'periodic' has it, and "
                                                    "this one is '%s'",
                                                    f->type)
                                   : 0;
        if (!f->schedule)
                return settings_member_error(src, "", "schedule", err,
                                             "missing; expected five or six cron fields, such as "
                                             "\"0 9 * * 1-5\"");
        if (cron_parse(f->schedule, &cron, &why) < 0)
                return settings_error(src, "schedule", err, "%s", why.text);
        return 0;
}

static int check_quiet_hours(const struct settings_source *src, const struct event_file *f,
                             struct error *err)
{
        struct hours_list list = { .count = f->quiet_hours.count };

        if (f->quiet_hours.count > HOURS_LIST_MAX)
                return settings_error(src, "quietHours", err, "at most %d of them", HOURS_LIST_MAX);
        for (size_t i = 0; i < f->quiet_hours.count; i++)
                if (hours_parse(f->quiet_hours.items[i], &list.items[i]) < 0)
                        return settings_error(src, "quietHours", err,
                                              "'%.60s': expected hours such as '22:00-07:00' or "
                                              "'sat,sun 22:00-10:00'",
                                              f->quiet_hours.items[i]);
        if (list.count > 0 && hours_list_end(&list, NULL, clock_wall_ms()) == INT64_MAX)
                return settings_error(src, "quietHours", err,
                                      "they never end; \"enabled\": false switches an event off");
        return 0;
}

static int check_zone(const struct settings_source *src, const struct event_file *f,
                      struct error *err)
{
        struct time_zone *zone;
        struct error why;

        if (!f->timezone)
                return 0;
        zone = timezone_new(f->timezone, &why);
        if (!zone)
                return settings_error(src, "timezone", err, "%s", why.text);
        timezone_free(zone);
        return 0;
}

static int check(const struct settings_source *src, struct event_file *f, struct error *err)
{
        int rc = check_time(src, f, err);

        if (check_cron(src, f, rc < 0 ? NULL : err) < 0)
                rc = -1;
        if (check_zone(src, f, rc < 0 ? NULL : err) < 0)
                rc = -1;
        if (check_quiet_hours(src, f, rc < 0 ? NULL : err) < 0)
                rc = -1;
        return rc;
}

int event_file_parse(const char *name, const char *text, size_t n, struct event_file *out,
                     struct buf *mistakes, struct error *err)
{
        struct settings_source *src;
        int rc;

        *out = (struct event_file){ .max_age_seconds = -1 };
        src = settings_source_new(name, NULL, text, n, err);
        if (!src) {
                if (mistakes)
                        buf_addf(mistakes, "%s\n", err->text);
                return -1;
        }
        rc = settings_read(src, "", settings_source_root(src), tables, also, out, err);
        if (rc == 0) {
                schedule_kind_parse(out->type, &out->kind);
                rc = check(src, out, err);
                if (rc < 0)
                        event_file_release(out);
        }
        if (rc < 0 && mistakes)
                settings_source_mistakes(src, mistakes);
        settings_source_free(src);
        return rc;
}

void event_file_release(struct event_file *f)
{
        settings_release(tables, f);
        *f = (struct event_file){ 0 };
}

char *event_file_options(const struct event_file *f, bool is_dm, const char *check_agent)
{
        struct buf out;

        buf_init(&out, 0);
        jsonw_open(&out, '{');
        if (is_dm)
                jsonw_str(&out, "chat", "dm");
        jsonw_opt(&out, "agent", f->agent);
        jsonw_opt(&out, "at", f->at);
        if (f->check) {
                jsonw_str(&out, "check", f->check);
                jsonw_int(&out, "checkSeconds", f->check_seconds);
                jsonw_opt(&out, "checkAgent", check_agent);
        }
        if (f->quiet_hours.count > 0) {
                jsonw_open_member(&out, "quietHours", '[');
                for (size_t i = 0; i < f->quiet_hours.count; i++)
                        jsonw_str(&out, NULL, f->quiet_hours.items[i]);
                jsonw_close(&out, ']');
                jsonw_opt(&out, "quietZone", f->timezone);
        }
        jsonw_close(&out, '}');
        return buf_take(&out);
}
