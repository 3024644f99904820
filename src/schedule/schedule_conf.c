#include <stdlib.h>
#include <string.h>

#include "base/hours.h"
#include "base/mem.h"
#include "base/timezone.h"
#include "schedule/schedule.h"

#define AT(field) offsetof(struct schedule_conf, field)

static const char *const policies[] = { "once", "all", "skip", NULL };

const struct setting schedule_settings[] = {
        { "enabled", SETTING_BOOL, "true", .at = AT(enabled),
          .help = "Run what is due. When off, schedules are kept and nothing is started." },
        { "timezone", SETTING_STRING, "null", 1, 64, .at = AT(timezone),
          .help = "The time zone of people and event files without their own, such as "
                  "`Europe/Berlin`; without it the system's." },
        { "missed", SETTING_CHOICE, "\"once\"", .choices = policies, .at = AT(missed),
          .help = "What happens to times that passed while the daemon was down: `once` runs once "
                  "for all of them, `all` runs each (the last 100), `skip` none." },
        { "maxAgeSeconds", SETTING_INT, "86400", 0, 31536000, .at = AT(max_age_seconds),
          .help = "A run that is later than this is skipped; 0: never. Reminders have no such "
                  "limit." },
        { "pending", SETTING_INT, "200000", 1, 100000000, .at = AT(pending),
          .help = "How many schedules may be active, reminders included; further ones are "
                  "refused." },
        { "pendingPerPerson", SETTING_INT, "200", 1, 1000000, .at = AT(pending_per_person),
          .help = "How many of them may be one person's." },
        { "dailyCap", SETTING_INT, "20", 0, 100000, .at = AT(daily_cap),
          .help = "How many messages that they did not ask for a person gets in a day; 0: none." },
        { "fallbackSeconds", SETTING_INT, "300", 1, 86400, .at = AT(fallback_seconds),
          .help = "A message to a person that could not be sent for so long (the adapter is not "
                  "connected) goes to another chat of theirs." },
        { "quietHours", SETTING_STRINGS, "[]", .at = AT(quiet_hours),
          .help = "When people without quiet hours of their own get no message that they did not "
                  "ask for, such as `22:00-07:00` or `sat,sun 22:00-10:00`, in their time zone." },
        { "operator", SETTING_STRING, "null", 1, 200, .at = AT(operator),
          .help = "Who gets messages that reach nobody else: an account such as `telegram:42`, or "
                  "a person such as `per-1`." },
        SETTING_END,
};

void schedule_conf_check(const struct settings_source *src, const struct schedule_conf *conf)
{
        const char *who = conf->operator;
        struct error err = { 0 };
        struct time_zone *zone = NULL;
        struct hours hours;

        if (conf->timezone) {
                zone = timezone_new(conf->timezone, &err);
                if (!zone)
                        settings_error(src, "schedule.timezone", NULL, "%s", err.text);
                timezone_free(zone);
        }
        if (conf->quiet_hours.count > HOURS_LIST_MAX)
                settings_error(src, "schedule.quietHours", NULL, "too many (at most %d)",
                               HOURS_LIST_MAX);
        for (size_t i = 0; i < conf->quiet_hours.count; i++)
                if (hours_parse(conf->quiet_hours.items[i], &hours) < 0)
                        settings_error(src, "schedule.quietHours", NULL,
                                       "'%.60s': expected hours such as '22:00-07:00' or "
                                       "'sat,sun 22:00-10:00'",
                                       conf->quiet_hours.items[i]);
        if (who && strncmp(who, "per-", 4) != 0 && !strchr(who, ':'))
                settings_error(src, "schedule.operator", NULL,
                               "'%.60s': expected an account such as 'telegram:42', or a person "
                               "such as 'per-1'",
                               who);
}
