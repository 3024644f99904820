#include "schedule/reach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/hours.h"
#include "base/mem.h"
#include "base/timezone.h"
#include "schedule/schedule.h"

#define DAY_SECONDS 86400
#define CANDIDATES  5

/* ---- finding persons ---- */

/* "per-3" → 3; 0: something else. */
static int64_t parse_person(const char *text)
{
        char *end;
        long long n;

        if (strncmp(text, "per-", 4) != 0 || text[4] < '1' || text[4] > '9')
                return 0;
        n = strtoll(text + 4, &end, 10);
        return *end == '\0' ? n : 0;
}

/* 1: *person is the one into which it was merged, or itself; 0: there is none; -1. */
static int follow(struct store_tx *tx, int64_t *person, struct error *err)
{
        int64_t into;
        int rc = person_row_get_alias(tx, *person, &into, err);

        if (rc == 1 && into > 0)
                *person = into;
        return rc;
}

/* "telegram:42". 1, 0 or -1. */
static int find_account(struct store_tx *tx, const char *text, int64_t *person, struct error *err)
{
        const char *colon = strchr(text, ':');
        struct identity_row row;
        char *platform;
        int rc;

        if (!colon || colon == text || colon[1] == '\0')
                return 0;
        platform = mem_strndup(text, (size_t)(colon - text));
        rc = person_row_get_identity(tx, &(struct identity){ platform, colon + 1 }, &row, err);
        free(platform);
        if (rc == 1)
                *person = row.person;
        return rc;
}

/* Lists persons with this name, or a similar one. How many, or -1. */
static int list_named(struct store_tx *tx, const char *name, bool similar, int64_t *person,
                      struct buf *list, struct error *err)
{
        struct store_stmt *s = person_row_list_named(tx, name, similar);
        struct identity_named n;
        int64_t last = 0;
        int count = 0, rc;

        while ((rc = person_row_next_named(s, &n, err)) == 1) {
                if (n.person == last)
                        continue;
                if (count++ < CANDIDATES)
                        buf_addf(list, "%s'per-%lld' (%.40s, %s:%.40s)", count > 1 ? ", " : "",
                                 (long long)n.person, n.name ? n.name : n.username,
                                 n.identity.platform, n.identity.user);
                *person = last = n.person;
        }
        return rc < 0 ? -1 : count;
}

static int find_named(struct store_tx *tx, const char *name, int64_t *person, struct error *err)
{
        struct buf list;
        int count;

        buf_init(&list, 0);
        count = list_named(tx, name, false, person, &list, err);
        if (count > 1) {
                error_set(err, ERR_CONFLICT, "several persons are named '%.60s': %.300s", name,
                          list.data);
        } else if (count == 0 && name[0]) {
                int similar = list_named(tx, name, true, person, &list, err);

                if (similar >= 0)
                        error_set(err, ERR_MISSING,
                                  "there is no person '%.60s'%s%.300s; expected 'per-3', "
                                  "'telegram:42' or a name",
                                  name, similar ? ", did you mean " : "", list.data);
                count = similar < 0 ? -1 : 0;
        } else if (count == 0) {
                error_set(err, ERR_MISSING, "expected 'per-3', 'telegram:42' or a name");
        }
        buf_release(&list);
        return count < 0 ? -1 : count == 1;
}

int reach_find_person(struct store_tx *tx, const char *text, int64_t *person, struct error *err)
{
        int rc;

        text += *text == '@';
        *person = parse_person(text);
        if (*person > 0)
                rc = follow(tx, person, err);
        else
                rc = find_account(tx, text, person, err);
        return rc != 0 ? rc : find_named(tx, text, person, err);
}

/* The person who gets what has no other address. 1, 0 or -1. */
static int find_operator(struct store_tx *tx, const struct schedule_conf *conf,
                         const struct reach_query *q, int64_t *person, struct error *err)
{
        struct person_address a;
        struct store_stmt *s;
        int rc = 0;

        if (conf->operator)
                return reach_find_person(tx, conf->operator, person, err);
        for (size_t i = 0; i < q->admin_count && rc == 0; i++) {
                *person = parse_person(q->admins[i]);
                rc = *person > 0 ? follow(tx, person, err)
                                 : find_account(tx, q->admins[i], person, err);
                if (rc != 1)
                        continue;
                s = person_row_list_addresses(tx, *person);
                rc = person_row_next_address(s, &a, err);
                rows_end(s);
        }
        return rc;
}

/* ---- time ---- */

/* Yours; NULL: the system's, also when there is no such zone any more. */
static struct time_zone *zone_of(const struct schedule_conf *conf, const struct person_reach *p)
{
        const char *name = p->timezone ? p->timezone : conf->timezone;

        return name ? timezone_new(name, NULL) : NULL;
}

int reach_zone_name(struct store_tx *tx, const struct schedule_conf *conf, int64_t person,
                    char **out, struct error *err)
{
        struct person_reach *p = NULL;
        int rc = person > 0 ? person_row_get_reach(tx, person, &p, err) : 0;

        *out = rc < 0 ? NULL : mem_strdup(p && p->timezone ? p->timezone : conf->timezone);
        free(p);
        return rc < 0 ? -1 : 0;
}

/* Days since 1970 there. */
static int64_t local_day(const struct time_zone *zone, int64_t wall_ms)
{
        time_t t = (time_t)(wall_ms / 1000);
        struct tm tm;

        if (zone)
                return (t + timezone_offset(zone, t)) / DAY_SECONDS;
        localtime_r(&t, &tm);
        return (t + tm.tm_gmtoff) / DAY_SECONDS;
}

int reach_count(struct store_tx *tx, const struct schedule_conf *conf, int64_t person,
                int64_t now_ms, char why[200], struct error *err)
{
        struct person_reach *p;
        struct time_zone *zone;
        int64_t cap;
        int rc = person_row_get_reach(tx, person, &p, err);

        why[0] = '\0';
        if (rc == 0)
                snprintf(why, 200, "there is no person 'per-%lld'", (long long)person);
        if (rc != 1)
                return rc;
        cap = p->daily_cap >= 0 ? p->daily_cap : conf->daily_cap;
        zone = zone_of(conf, p);
        rc = person_row_count_notice(tx, person, local_day(zone, now_ms), cap, err);
        if (rc == 0)
                snprintf(why, 200, "'per-%lld' gets no more than %lld unasked messages a day (%s)",
                         (long long)person, (long long)cap,
                         p->daily_cap >= 0 ? "their dailyCap" : "schedule.dailyCap");
        timezone_free(zone);
        free(p);
        return rc;
}

/* ---- settings of a person ---- */

int reach_check(const struct person_reach *r, struct error *err)
{
        struct hours_list list;
        struct time_zone *zone;

        if (r->timezone) {
                zone = timezone_new(r->timezone, err);
                if (!zone)
                        return error_prefix(err, "timezone");
                timezone_free(zone);
        }
        if (r->quiet_hours && hours_list_parse(r->quiet_hours, &list) < 0)
                return error_set(err, ERR_INVALID,
                                 "quietHours: cannot read '%.60s'; expected hours such as "
                                 "'22:00-07:00' or 'mon-fri 22:00-07:00; sat,sun 23:00-10:00', or "
                                 "'off'",
                                 r->quiet_hours);
        if (r->quiet_hours && hours_list_end(&list, NULL, 0) == INT64_MAX)
                return error_set(err, ERR_INVALID,
                                 "quietHours: '%.60s' never end; a dailyCap of 0 means no unasked "
                                 "messages",
                                 r->quiet_hours);
        if (r->reach_at && (r->reach_at[0] == '\0' || r->reach_at[0] == '/'))
                return error_set(err, ERR_INVALID,
                                 "reachAt: expected an adapter ('telegram') or a chat of one "
                                 "('telegram/42'), not '%.60s'",
                                 r->reach_at);
        return 0;
}

/* ---- the plan ---- */

static bool same(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : a == b;
}

static void add_address(struct reach_plan *p, const struct reach_address *a)
{
        struct reach_address *to;

        for (size_t i = 0; i < p->count; i++) {
                if (same(p->items[i].adapter, a->adapter) &&
                    same(p->items[i].channel, a->channel) && same(p->items[i].thread, a->thread))
                        return;
        }
        p->items = mem_realloc(p->items, (p->count + 1) * sizeof(*p->items));
        to = &p->items[p->count++];
        *to = *a;
        to->adapter = mem_strdup(a->adapter);
        to->channel = mem_strdup(a->channel);
        to->thread = mem_strdup(a->thread);
}

/* "adapter/channel", or "adapter": the direct chat there. */
static int add_chosen(struct store_tx *tx, struct reach_plan *p, const char *reach_at,
                      struct error *err)
{
        const char *slash = strchr(reach_at, '/');
        char *adapter = mem_strndup(reach_at, strcspn(reach_at, "/")), *channel = NULL;
        int rc = 1;

        if (slash && slash[1])
                channel = mem_strdup(slash + 1);
        else
                rc = person_row_get_chat(tx, p->person, adapter, &channel, err);
        if (rc == 1)
                add_address(p, &(struct reach_address){ .adapter = adapter, .channel = channel });
        free(adapter);
        free(channel);
        return rc < 0 ? -1 : 0;
}

static int add_own(struct store_tx *tx, struct reach_plan *p, const struct person_reach *settings,
                   struct error *err)
{
        struct person_address a;
        struct store_stmt *s;
        int rc;

        if (settings->reach_at && add_chosen(tx, p, settings->reach_at, err) < 0)
                return -1;
        s = person_row_list_addresses(tx, p->person);
        while ((rc = person_row_next_address(s, &a, err)) == 1)
                add_address(p, &(struct reach_address){ .adapter = (char *)a.adapter,
                                                        .channel = (char *)a.channel,
                                                        .by_user = a.by_user });
        return rc;
}

/* Those of the person, else of everybody. What cannot be read has no effect. */
static void quiet_hours(const struct schedule_conf *conf, const struct person_reach *settings,
                        struct hours_list *out)
{
        if (settings->quiet_hours && hours_list_parse(settings->quiet_hours, out) == 0)
                return;
        *out = (struct hours_list){ 0 };
        for (size_t i = 0; i < conf->quiet_hours.count && out->count < HOURS_LIST_MAX; i++)
                out->count += hours_parse(conf->quiet_hours.items[i], &out->items[out->count]) == 0;
}

static void apply_quiet_hours(const struct schedule_conf *conf, const struct person_reach *settings,
                              int64_t now_ms, struct reach_plan *p)
{
        struct time_zone *zone = zone_of(conf, settings);
        struct hours_list list;

        quiet_hours(conf, settings, &list);
        p->not_before_ms = hours_list_end(&list, zone, now_ms);
        timezone_free(zone);
        if (p->not_before_ms == now_ms)
                return;
        p->verdict = p->not_before_ms == INT64_MAX ? REACH_NEVER : REACH_LATER;
        snprintf(p->why, sizeof(p->why), "quiet hours of 'per-%lld'%s", (long long)p->person,
                 p->verdict == REACH_NEVER ? " never end" : "");
}

static int find_recipient(struct store_tx *tx, const struct schedule_conf *conf,
                          const struct reach_query *q, struct reach_plan *p, struct error *err)
{
        int rc = 1;

        p->person = q->person;
        if (q->person > 0) {
                rc = follow(tx, &p->person, err);
                if (rc == 0)
                        snprintf(p->why, sizeof(p->why), "there is no person 'per-%lld'",
                                 (long long)q->person);
        } else if (!q->adapter) {
                rc = find_operator(tx, conf, q, &p->person, err);
                if (rc == 0)
                        snprintf(p->why, sizeof(p->why),
                                 "it has no address, and no operator can be reached "
                                 "(schedule.operator, or an admin who has written directly)");
        }
        return rc;
}

int reach_plan_make(struct store_tx *tx, const struct schedule_conf *conf,
                    const struct reach_query *q, struct reach_plan *out, struct error *err)
{
        const struct reach_address chat = { .adapter = (char *)q->adapter,
                                            .channel = (char *)q->channel,
                                            .thread = (char *)q->thread };
        struct person_reach *settings = NULL;
        int rc;

        *out = (struct reach_plan){ .verdict = REACH_NOW };
        rc = find_recipient(tx, conf, q, out, err);
        if (rc == 1 && q->adapter && !q->chat_last)
                add_address(out, &chat);
        if (rc == 1 && out->person > 0) {
                rc = person_row_get_reach(tx, out->person, &settings, err);
                if (rc == 1 && add_own(tx, out, settings, err) < 0)
                        rc = -1;
                if (rc == 1 && q->adapter && q->chat_last)
                        add_address(out, &chat);
                if (rc == 1 && !q->asked)
                        apply_quiet_hours(conf, settings, q->now_ms, out);
        }
        free(settings);
        if (rc < 0) {
                reach_plan_release(out);
                return -1;
        }
        if (out->count == 0) {
                out->verdict = REACH_NEVER;
                if (!out->why[0])
                        snprintf(out->why, sizeof(out->why),
                                 "'per-%lld' has never written to the bot directly",
                                 (long long)out->person);
        }
        return 0;
}

void reach_plan_release(struct reach_plan *p)
{
        for (size_t i = 0; i < p->count; i++) {
                free(p->items[i].adapter);
                free(p->items[i].channel);
                free(p->items[i].thread);
        }
        free(p->items);
        *p = (struct reach_plan){ 0 };
}
