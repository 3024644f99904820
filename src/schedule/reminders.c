#include "schedule/reminders.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "rows/person_row.h"
#include "schedule/cron.h"
#include "schedule/reach.h"
#include "schedule/reminder_text.h"
#include "schedule/when.h"

#define SPACE         " \t\r\n\v\f"
#define NAME_LENGTH   40
#define PERIOD_MIN_MS 60000 /* of what people ask for */

/* ---- making one ---- */

const char *reminder_zone(struct store_tx *tx, const struct schedule_conf *conf, int64_t person,
                          struct arena *a, struct error *err)
{
        const char *copy;
        char *name;

        if (reach_zone_name(tx, conf, person, &name, err) < 0)
                return NULL;
        if (!name)
                name = timezone_system_name();
        copy = arena_strdup(a, name);
        free(name);
        return copy;
}

/* Options as of struct schedule_row; NULL: none. */
static const char *make_options(const struct reminder_wish *w, struct arena *a)
{
        const char *text = NULL;
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_opt(&b, "agent", w->agent);
        jsonw_opt(&b, "mention", w->mention);
        jsonw_opt(&b, "requestHash", w->request_hash);
        if (w->asked_by_self)
                jsonw_bool(&b, "askedBySelf", true);
        jsonw_close(&b, '}');
        if (strcmp(b.data, "{}") != 0)
                text = arena_strdup(a, b.data);
        buf_release(&b);
        return text;
}

static int set_text(const struct reminder_wish *w, const char *text, struct arena *a,
                    struct schedule_row *out, struct error *err)
{
        char *clean = utf8_clean(text, strlen(text));
        size_t n = strlen(clean);

        while (n > 0 && strchr(SPACE, clean[n - 1]))
                clean[--n] = '\0';
        out->text = arena_strdup(a, clean + strspn(clean, SPACE));
        free(clean);
        n = strlen(out->text);
        if (n == 0)
                return error_set(err, ERR_INVALID,
                                 "there is a time but no text: say what it is about, as in "
                                 "'30m tea'");
        if (n > REMINDER_TEXT_MAX)
                return error_set(err, ERR_INVALID,
                                 "the text has %zu bytes, more than the %d a reminder may have", n,
                                 REMINDER_TEXT_MAX);
        if (w->name) {
                out->name = arena_strdup(a, w->name);
                return 0;
        }
        n = strcspn(out->text, "\r\n");
        n = utf8_prefix(out->text, n, UTF8_CODE_POINTS, NAME_LENGTH);
        out->name = arena_printf(a, "%.*s", (int)n, out->text);
        return 0;
}

static int set_periodic(const struct reminder_wish *w, const char *expression,
                        const struct time_zone *zone, struct arena *a, struct schedule_row *out,
                        struct error *err)
{
        struct cron cron;
        int64_t after;

        if (cron_parse(expression, &cron, err) < 0)
                return -1;
        out->kind = SCHEDULE_PERIODIC;
        out->cron = arena_strdup(a, expression);
        out->next_ms = cron_next(&cron, zone, w->now_ms);
        if (out->next_ms == 0)
                return error_set(err, ERR_INVALID, "'%s' is never due", expression);
        after = cron_next(&cron, zone, out->next_ms);
        if (strcmp(w->source, "reminder") == 0 && after > 0 && after - out->next_ms < PERIOD_MIN_MS)
                return error_set(err, ERR_INVALID,
                                 "'%s' is due every %lld seconds; once a minute is the most",
                                 expression, (long long)((after - out->next_ms) / 1000));
        return 0;
}

static int set_time(const struct reminder_wish *w, const struct when *when,
                    const struct time_zone *zone, const struct schedule_conf *conf, struct arena *a,
                    struct schedule_row *out, struct error *err)
{
        char iso[CLOCK_ISO_SIZE];

        if (w->max_age_seconds >= 0)
                out->max_age_ms = w->max_age_seconds * 1000;
        else if (strcmp(w->source, "reminder") != 0)
                out->max_age_ms = conf->max_age_seconds * 1000;
        if (when->cron[0])
                return set_periodic(w, when->cron, zone, a, out, err);
        out->kind = SCHEDULE_ONE_SHOT;
        out->at_ms = out->next_ms = when->at_ms;
        if (when->at_ms <= w->now_ms)
                return error_set(err, ERR_INVALID, "%s lies in the past",
                                 clock_iso(when->at_ms, iso));
        return 0;
}

/* Without a person, as in a turn that a schedule began, the chat has the limit of one. */
static int check_chat_limit(struct store_tx *tx, const struct schedule_conf *conf,
                            const struct reminder_wish *w, struct error *err)
{
        struct schedule_filter here = { .adapter = w->adapter,
                                        .channel = w->channel,
                                        .source = "reminder",
                                        .limit = conf->pending_per_person };
        struct store_stmt *s;
        struct schedule_row row;
        int64_t count = 0;
        int rc;

        if (w->person > 0 || strcmp(w->source, "reminder") != 0)
                return 0;
        s = schedule_row_list_next(tx, &here);
        while ((rc = schedule_row_next(s, &row, err)) == 1)
                count++;
        if (rc == 0 && count >= conf->pending_per_person)
                return error_set(err, ERR_LIMIT,
                                 "%lld of them are pending in this chat already "
                                 "(schedule.pendingPerPerson); cancel one first",
                                 (long long)count);
        return rc;
}

int reminder_make(struct store_tx *tx, const struct schedule_conf *conf,
                  const struct reminder_wish *w, struct arena *a, struct schedule_row *out,
                  struct error *err)
{
        const char *missed = w->missed ? w->missed : conf->missed;
        struct time_zone *zone;
        struct reminder_text said;
        int rc;

        *out = (struct schedule_row){
                .source = w->source,
                .request_key = arena_strdup(a, w->request_key),
                .action = w->action,
                .adapter = arena_strdup(a, w->adapter),
                .channel = arena_strdup(a, w->channel),
                .thread = arena_strdup(a, w->thread),
                .person = w->person,
                .options = make_options(w, a),
                .state = SCHEDULE_ACTIVE,
                .created_ms = w->now_ms,
                .created_by = arena_strdup(a, w->created_by),
                .trace = arena_strdup(a, w->trace),
        };
        if (missed && !schedule_missed_parse(missed, &out->missed))
                return error_set(err, ERR_INVALID,
                                 "missed is '%.40s', but must be once, all or "
                                 "skip",
                                 missed);
        if (schedule_check_limits(tx, conf, w->person, err) < 0 ||
            check_chat_limit(tx, conf, w, err) < 0)
                return -1;
        out->timezone = w->timezone ? arena_strdup(a, w->timezone)
                                    : reminder_zone(tx, conf, w->person, a, err);
        zone = out->timezone ? timezone_new(out->timezone, err) : NULL;
        if (!zone)
                return -1;
        rc = reminder_text_read(w->when, w->text, zone, w->now_ms, a, &said, err);
        if (rc == 0 && said.timezone) {
                timezone_free(zone);
                zone = timezone_new(said.timezone, err);
                out->timezone = said.timezone;
        }
        if (rc == 0 && (set_time(w, &said.when, zone, conf, a, out, err) < 0 ||
                        set_text(w, said.text, a, out, err) < 0))
                rc = -1;
        timezone_free(zone);
        return rc;
}

void reminder_describe_time(const struct schedule_row *row, int64_t now_ms, struct buf *out)
{
        struct error ignored = { 0 };
        struct time_zone *zone = timezone_new(row->timezone ? row->timezone : "UTC", &ignored);

        if (!zone)
                zone = timezone_new("UTC", &ignored);
        if (row->kind == SCHEDULE_PERIODIC) {
                when_describe_cron(row->cron, out);
                buf_addstr(out, ", next ");
        }
        when_describe(row->next_ms > 0 ? row->next_ms : row->at_ms, zone, now_ms, out);
        timezone_free(zone);
}

/* ---- who sees what ---- */

const char *reminder_identity(struct arena *a, const char *platform, const char *user)
{
        return platform && user ? arena_printf(a, "%s:%s", platform, user) : NULL;
}

int reminder_person(struct store_tx *tx, const char *platform, const char *user, int64_t *person,
                    struct error *err)
{
        struct identity_row row = { 0 };
        int rc = platform && user ? person_row_get_identity(
                                            tx, &(struct identity){ platform, user }, &row, err)
                                  : 0;

        *person = rc == 1 ? row.person : 0;
        return rc < 0 ? -1 : 0;
}

static bool is_equal(const char *a, const char *b)
{
        return a && b && strcmp(a, b) == 0;
}

static bool sees(const struct reminder_viewer *v, const struct schedule_row *row)
{
        bool own = (v->person > 0 && row->person == v->person) ||
                   is_equal(v->identity, row->created_by);
        bool here = is_equal(v->adapter, row->adapter) && is_equal(v->channel, row->channel);

        return v->everywhere || (here && v->shared) || (own && (here || v->direct));
}

/* Adds what the filter finds and they may see; what is there already is left out. */
static int add_rows(struct store_tx *tx, const struct reminder_viewer *v,
                    const struct schedule_filter *f, struct schedule_row *out[REMINDERS_SHOWN],
                    int count, bool *more, struct error *err)
{
        struct store_stmt *s = schedule_row_list_next(tx, f);
        struct schedule_row row;
        int before = count, rc;

        while ((rc = schedule_row_next(s, &row, err)) == 1) {
                bool known = false;

                for (int i = 0; i < before; i++)
                        known = known || out[i]->id == row.id;
                if (known || !sees(v, &row))
                        continue;
                if (count < REMINDERS_SHOWN)
                        out[count++] = schedule_row_dup(&row);
                else
                        *more = true;
        }
        if (rc == 0)
                return count;
        while (count > 0)
                free(out[--count]);
        return -1;
}

static int by_time(const void *a, const void *b)
{
        const struct schedule_row *const *x = a, *const *y = b;

        return ((*x)->next_ms > (*y)->next_ms) - ((*x)->next_ms < (*y)->next_ms);
}

int reminders_list(struct store_tx *tx, const struct reminder_viewer *v,
                   struct schedule_row *out[REMINDERS_SHOWN], bool *more, struct error *err)
{
        struct schedule_filter here = { .adapter = v->adapter,
                                        .channel = v->channel,
                                        .limit = REMINDERS_SHOWN * 4 };
        struct schedule_filter own = { .person = v->person, .limit = REMINDERS_SHOWN * 4 };
        struct schedule_filter all = { .limit = REMINDERS_SHOWN + 1 };
        int count = 0;

        *more = false;
        if (v->everywhere)
                count = add_rows(tx, v, &all, out, 0, more, err);
        else if (v->adapter && v->channel)
                count = add_rows(tx, v, &here, out, 0, more, err);
        if (count >= 0 && !v->everywhere && v->person > 0)
                count = add_rows(tx, v, &own, out, count, more, err);
        if (count > 0)
                qsort(out, (size_t)count, sizeof(*out), by_time);
        return count;
}

/* Has it ended but for a tick that waits, as for the end of quiet hours? 1, 0 or -1. */
static int waits(struct store_tx *tx, const struct schedule_row *row, struct error *err)
{
        const enum tick_state pending = TICK_PENDING;
        struct store_stmt *s;
        struct tick_row tick;
        int rc;

        if (row->state != SCHEDULE_DONE)
                return 0;
        s = tick_row_list(
                tx, &(struct tick_filter){ .schedule = row->id, .state = &pending, .limit = 1 });
        rc = tick_row_next(s, &tick, err);
        rows_end(s);
        return rc;
}

int reminder_check_cancel(struct store_tx *tx, const struct reminder_viewer *v, int64_t id,
                          struct schedule_row **out, struct error *err)
{
        int rc = schedule_row_get(tx, id, out, err);

        if (rc < 0)
                return -1;
        if (rc == 1 && v && !sees(v, *out)) {
                free(*out);
                rc = 0;
        }
        if (rc == 0) {
                *out = NULL;
                return error_set(err, ERR_MISSING, "there is no 'sch-%lld'", (long long)id);
        }
        rc = waits(tx, *out, err);
        if (rc == 0 && (*out)->state != SCHEDULE_ACTIVE)
                error_set(err, ERR_CONFLICT, "'sch-%lld' is %s already", (long long)id,
                          schedule_state_name((*out)->state));
        else if (rc >= 0 && strcmp((*out)->source, "file") == 0)
                error_set(err, ERR_CONFLICT,
                          "'sch-%lld' is the file 'events/%s' of the workspace: delete that",
                          (long long)id, (*out)->name);
        else if (rc >= 0 && strcmp((*out)->source, "calendar") == 0)
                error_set(err, ERR_CONFLICT,
                          "'sch-%lld' belongs to an event: change or cancel that with `/event`",
                          (long long)id);
        else if (rc >= 0)
                return 0;
        free(*out);
        *out = NULL;
        return -1;
}

int reminder_run(struct store_tx *tx, int64_t id, int64_t now_ms, int64_t *tick, struct error *err)
{
        struct schedule_row *row;
        struct tick_row t = { .schedule = id,
                              .due_ms = now_ms,
                              .runs = 1,
                              .state = TICK_PENDING,
                              .not_before_ms = now_ms,
                              .note = TICK_BY_HAND };
        int rc = schedule_row_get(tx, id, &row, err);

        if (rc < 0)
                return -1;
        if (rc == 0)
                return error_set(err, ERR_MISSING, "there is no schedule 'sch-%lld'",
                                 (long long)id);
        rc = row->state == SCHEDULE_CANCELLED
                     ? error_set(err, ERR_CONFLICT, "'sch-%lld' is cancelled", (long long)id)
                     : tick_row_insert(tx, &t, tick, err);
        free(row);
        if (rc == 0)
                return error_set(err, ERR_CONFLICT, "'sch-%lld' is due at this moment anyway",
                                 (long long)id);
        return rc < 0 ? -1 : 0;
}

int64_t reminder_number(const char *text)
{
        char *end;
        long long n;

        if (strncasecmp(text, "sch-", 4) == 0)
                text += 4;
        if (!isdigit((unsigned char)*text))
                return 0;
        n = strtoll(text, &end, 10);
        return *end == '\0' || strchr(SPACE ",.!`", *end) ? n : 0;
}
