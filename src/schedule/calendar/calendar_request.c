#include "schedule/calendar/calendar_request.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "rows/person_row.h"
#include "schedule/reach.h"
#include "schedule/reminder_text.h"

#define TITLE_MAX       100 /* characters, as on Discord */
#define PLACE_MAX       100
#define DESCRIPTION_MAX 1000
#define CAPACITY_MAX    1000
#define EVENTS_MAX      1000 /* planned at the same time */
#define LISTED          10
#define MINUTE_MS       ((int64_t)60 * 1000)
#define HOUR_MS         (60 * MINUTE_MS)
#define LENGTH_MS       (2 * HOUR_MS) /* unless it is said */
#define LENGTH_MAX_MS   (14 * 24 * HOUR_MS)
#define REMINDER_MS     HOUR_MS
#define REMINDER_MAX_MS (30 * 24 * HOUR_MS)
#define AHEAD_MAX_MS    (5 * 366 * 24 * HOUR_MS)

struct calendar_request *calendar_request_new(enum calendar_action action,
                                              const struct schedule_conf *conf)
{
        struct calendar_request *q = mem_zalloc(sizeof(*q));

        q->action = action;
        q->conf = conf;
        q->now_ms = q->said_ms = clock_wall_ms();
        q->fields.capacity = q->fields.reminder_ms = -1;
        arena_init(&q->arena);
        buf_init(&q->text, 0);
        return q;
}

void calendar_request_free(struct calendar_request *q)
{
        if (!q)
                return;
        calendar_view_release(&q->view);
        buf_release(&q->text);
        bus_batch_release(&q->batch);
        arena_release(&q->arena);
        free(q);
}

void calendar_request_set_by(struct calendar_request *q, const struct chat_caller *by)
{
        struct arena *a = &q->arena;

        q->by = (struct calendar_by){
                .adapter = arena_strdup(a, by->adapter),
                .platform = arena_strdup(a, by->platform),
                .channel = arena_strdup(a, by->channel),
                .thread = arena_strdup(a, by->thread),
                .guild = arena_strdup(a, by->guild),
                .chat = by->chat,
                .user = arena_strdup(a, by->sender_id),
                .name = arena_strdup(a, by->sender_name),
                .trace = arena_strdup(a, by->trace),
                .admin = by->is_admin,
                .everywhere = by->everywhere,
        };
}

void calendar_request_add_person(struct calendar_request *q, const char *text, size_t n)
{
        char *clean;

        if (q->people_count == COUNT(q->people))
                return;
        clean = utf8_clean(text, n);
        q->people[q->people_count++] = arena_strdup(&q->arena, clean);
        free(clean);
}

int calendar_request_refuse(struct calendar_request *q, enum error_kind kind, const char *fmt, ...)
{
        va_list ap;

        q->refusal.kind = kind;
        va_start(ap, fmt);
        vsnprintf(q->refusal.text, sizeof(q->refusal.text), fmt, ap);
        va_end(ap);
        return 0;
}

bool calendar_request_is_refused(const struct calendar_request *q)
{
        return q->refusal.kind != ERR_NONE;
}

int calendar_request_journal(struct store_tx *tx, struct calendar_request *q, const char *type,
                             const struct calendar_event_row *row,
                             const struct calendar_member_row *m, struct error *err)
{
        char name[40], id[40], iso[CLOCK_ISO_SIZE], own[ID_TRACE_SIZE];
        const char *trace = q->by.trace ? q->by.trace : row->trace;
        struct buf payload;
        int64_t seq;
        int rc;

        snprintf(name, sizeof(name), "calendar.%s", type);
        snprintf(id, sizeof(id), "cal-%lld", (long long)row->id);
        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "eventId", id);
        jsonw_str(&payload, "title", row->title);
        jsonw_str(&payload, "startsAt", clock_iso(row->starts_ms, iso));
        jsonw_str(&payload, "endsAt", clock_iso(row->ends_ms, iso));
        jsonw_opt(&payload, "place", row->place);
        jsonw_int(&payload, "sequence", row->sequence);
        if (m)
                calendar_view_member_json(&payload, "member", m);
        jsonw_close(&payload, '}');
        rc = bus_append(tx, &q->batch,
                        &(struct bus_event){ .type = name,
                                             .adapter = row->adapter,
                                             .channel = row->channel,
                                             .thread = row->thread,
                                             .trace = trace ? trace : id_trace(own),
                                             .payload = payload.data },
                        &seq, err);
        buf_release(&payload);
        return rc < 0 ? -1 : 0;
}

/* ---- who may ---- */

int calendar_request_person(struct store_tx *tx, const char *platform, const char *user,
                            int64_t *person, struct error *err)
{
        struct identity_row row;
        int rc = 0;

        if (platform && user)
                rc = person_row_get_identity(tx, &(struct identity){ platform, user }, &row, err);
        *person = rc == 1 ? row.person : 0;
        return rc < 0 ? -1 : 0;
}

static bool same(const char *a, const char *b)
{
        return a && b && strcmp(a, b) == 0;
}

int calendar_request_may_change(struct store_tx *tx, const struct calendar_request *q,
                                const struct calendar_event_row *row, struct error *err)
{
        const char *colon = row->organizer ? strchr(row->organizer, ':') : NULL;
        int64_t organizer = 0, asker = 0;
        char *platform;
        int rc;

        if (q->by.trusted || (q->by.admin && same(q->by.adapter, row->adapter)))
                return 1;
        if (!colon || !q->by.user || !q->by.platform)
                return 0;
        platform = mem_strndup(row->organizer, (size_t)(colon - row->organizer));
        if (strcmp(platform, q->by.platform) == 0 && strcmp(colon + 1, q->by.user) == 0) {
                free(platform);
                return 1;
        }
        rc = calendar_request_person(tx, platform, colon + 1, &organizer, err);
        if (rc == 0)
                rc = calendar_request_person(tx, q->by.platform, q->by.user, &asker, err);
        free(platform);
        return rc < 0 ? -1 : organizer > 0 && organizer == asker;
}

/* Is it an event of this chat, or one they belong to? Numbers are easily guessed. 1; 0; -1. */
static int may_see(struct store_tx *tx, const struct calendar_request *q,
                   const struct calendar_event_row *row, struct error *err)
{
        const struct calendar_by *by = &q->by;
        struct calendar_member_row *m;
        int64_t person;
        int rc;

        if (by->trusted || (same(by->adapter, row->adapter) &&
                            (by->admin || by->everywhere || same(by->channel, row->channel) ||
                             (row->thread && same(by->channel, row->thread)) ||
                             (!row->channel && same(by->guild, row->guild)))))
                return 1;
        if (calendar_request_person(tx, by->platform, by->user, &person, err) < 0)
                return -1;
        rc = calendar_member_row_find(tx, row->id, person, by->platform, by->user, &m, err);
        free(m);
        return rc != 0 ? rc : calendar_request_may_change(tx, q, row, err);
}

static int open_view(struct store_tx *tx, struct calendar_request *q, int64_t id, struct error *err)
{
        int rc = calendar_view_load(tx, id, &q->view, err);

        if (rc == 1)
                rc = may_see(tx, q, q->view.row, err);
        if (rc == 0)
                calendar_request_refuse(q, ERR_MISSING, "there is no event 'cal-%lld' here",
                                        (long long)id);
        return rc < 0 ? -1 : 0;
}

/* The views of the chat's next events. */
static int list_here(struct store_tx *tx, const struct calendar_request *q,
                     struct calendar_view *views, size_t max, size_t *count, struct error *err)
{
        enum calendar_state planned = CALENDAR_PLANNED;
        struct calendar_filter filter = { .adapter = q->by.adapter,
                                          .channel = q->by.channel,
                                          .state = &planned,
                                          .ends_after_ms = q->now_ms,
                                          .limit = (int64_t)max };
        struct store_stmt *s = calendar_row_list(tx, &filter);
        struct calendar_event_row row;
        int64_t ids[LISTED];
        size_t n = 0;
        int rc;

        while ((rc = calendar_row_next(s, &row, err)) == 1 && n < max && n < LISTED)
                ids[n++] = row.id;
        if (rc == 1)
                rows_end(s);
        *count = 0;
        for (size_t i = 0; rc >= 0 && i < n; i++) {
                rc = calendar_view_load(tx, ids[i], &views[*count], err);
                if (rc == 1)
                        ++*count;
                else
                        calendar_view_release(&views[*count]);
        }
        return rc < 0 ? -1 : 0;
}

/* Finds the event that is meant. */
static int find_event(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        struct calendar_view views[LISTED] = { 0 };
        size_t count = 0;
        struct buf names;
        int rc;

        if (q->event > 0)
                return open_view(tx, q, q->event, err);
        rc = list_here(tx, q, views, LISTED, &count, err);
        if (rc == 0 && count == 1) {
                q->view = views[0];
                return 0;
        }
        buf_init(&names, 0);
        for (size_t i = 0; i < count; i++) {
                buf_addf(&names, "%s`cal-%lld` ", i > 0 ? ", " : "", (long long)views[i].row->id);
                calendar_view_escape(views[i].row->title, &names);
                calendar_view_release(&views[i]);
        }
        if (rc == 0 && count == 0)
                calendar_request_refuse(q, ERR_MISSING,
                                        "no event is planned here; `/event new friday 20:00 Chess` "
                                        "plans one");
        else if (rc == 0)
                calendar_request_refuse(q, ERR_CONFLICT,
                                        "several events are planned, say which: %.300s",
                                        names.data);
        buf_release(&names);
        return rc;
}

/* ---- what is asked for ---- */

/* Bounded and clean; NULL: not given; "": none. */
static const char *clean_text(struct calendar_request *q, const char *what, const char *text,
                              size_t max)
{
        char *clean;
        const char *kept;
        size_t n;

        if (!text)
                return NULL;
        clean = utf8_clean(text, strlen(text));
        text = clean + strspn(clean, " \t\r\n");
        for (n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]);)
                n--;
        clean[(size_t)(text - clean) + n] = '\0';
        if (utf8_length(text, n, UTF8_CODE_POINTS) > max)
                calendar_request_refuse(q, ERR_INVALID,
                                        "the %s has %zu characters, %zu are possible", what,
                                        utf8_length(text, n, UTF8_CODE_POINTS), max);
        kept = arena_strdup(&q->arena, text);
        free(clean);
        return kept;
}

/* The zone's name in which times are meant: that given, the event's, the person's. */
static int zone_of(struct store_tx *tx, struct calendar_request *q, const char *current,
                   const char **name, struct time_zone **zone, struct error *err)
{
        const char *given = q->fields.timezone ? q->fields.timezone : current;
        struct error wrong = { 0 };
        char *own = NULL;
        int64_t person;

        if (!given) {
                if (calendar_request_person(tx, q->by.platform, q->by.user, &person, err) < 0 ||
                    reach_zone_name(tx, q->conf, person, &own, err) < 0)
                        return -1;
                if (!own)
                        own = timezone_system_name();
        }
        *name = arena_strdup(&q->arena, given ? given : own);
        free(own);
        *zone = timezone_new(*name, &wrong);
        if (!*zone && q->fields.timezone)
                return calendar_request_refuse(q, ERR_INVALID, "%s", wrong.text);
        if (!*zone) { /* a zone that was removed from the system since */
                *name = "UTC";
                *zone = timezone_new(*name, err);
        }
        return 0;
}

/* When it begins and ends. `row` has what it was; 0: a new one. */
static int read_times(struct store_tx *tx, struct calendar_request *q,
                      struct calendar_event_row *row, struct error *err)
{
        const struct calendar_fields *f = &q->fields;
        int64_t length = row->ends_ms > 0 ? row->ends_ms - row->starts_ms : LENGTH_MS;
        int64_t before = row->starts_ms, span;
        struct error wrong = { 0 };
        struct time_zone *zone = NULL;
        struct reminder_text last = { 0 };
        struct when w;

        if (zone_of(tx, q, row->timezone, &row->timezone, &zone, err) < 0)
                return -1;
        if (calendar_request_is_refused(q))
                return 0;
        if (f->starts_ms > 0) {
                row->starts_ms = f->starts_ms;
        } else if (f->when) {
                int rc = when_parse(f->when, zone, q->said_ms, &w, &wrong);

                if (rc == 0 && f->title_follows) {
                        row->title = f->when + w.used;
                } else if (f->title_follows &&
                           reminder_text_read_last(f->when, zone, q->said_ms, &q->arena, &last,
                                                   NULL) == 1) { /* "Chess friday 20:00" */
                        row->title = last.text;
                        w = last.when;
                        rc = 0;
                }
                if (rc < 0)
                        calendar_request_refuse(q, wrong.kind, "%s", wrong.text);
                else if (w.at_ms == 0)
                        calendar_request_refuse(q, ERR_INVALID,
                                                "an event happens once, '%.60s' is "
                                                "more than one time",
                                                f->when);
                else
                        row->starts_ms = w.at_ms;
        }
        if (f->ends_ms > 0)
                length = f->ends_ms - row->starts_ms;
        if (!calendar_request_is_refused(q) && f->until && clock_parse_span(f->until, &span) == 0)
                length = span;
        else if (!calendar_request_is_refused(q) && f->until) {
                if (when_parse(f->until, zone, row->starts_ms, &w, &wrong) < 0 || w.at_ms == 0)
                        calendar_request_refuse(
                                q, ERR_INVALID,
                                "'%.60s' is no end: say a time after it begins, such "
                                "as 23:00, or how long it takes, such as 3h",
                                f->until);
                else
                        length = w.at_ms - row->starts_ms;
        }
        row->ends_ms = row->starts_ms + length;
        timezone_free(zone);
        if (calendar_request_is_refused(q))
                return 0;
        if (row->starts_ms != before && row->starts_ms <= q->now_ms)
                return calendar_request_refuse(q, ERR_INVALID, "that time is past");
        if (row->starts_ms != before && row->starts_ms > q->now_ms + AHEAD_MAX_MS)
                return calendar_request_refuse(q, ERR_INVALID,
                                               "that is more than five years ahead");
        if (length <= 0 || length > LENGTH_MAX_MS)
                return calendar_request_refuse(q, ERR_INVALID,
                                               "it must end after it begins, and within 14 days");
        return 0;
}

/* Takes what is given over into the row, checked. */
static int read_fields(struct store_tx *tx, struct calendar_request *q,
                       struct calendar_event_row *row, struct error *err)
{
        const struct calendar_fields *f = &q->fields;
        int rc = read_times(tx, q, row, err);
        const char *title = clean_text(
                q, "title", f->title_follows && rc == 0 ? row->title : f->title, TITLE_MAX);
        const char *place = clean_text(q, "place", f->place, PLACE_MAX);
        const char *description = clean_text(q, "description", f->description, DESCRIPTION_MAX);

        if (rc < 0 || calendar_request_is_refused(q))
                return rc;
        if ((title && !*title) || (!title && !row->title))
                return calendar_request_refuse(q, ERR_INVALID,
                                               "it needs a title: `/event new friday 20:00 Chess`");
        if (f->capacity > CAPACITY_MAX)
                return calendar_request_refuse(
                        q, ERR_INVALID, "it may have up to %d seats; 0: no limit", CAPACITY_MAX);
        if (f->reminder_ms > REMINDER_MAX_MS)
                return calendar_request_refuse(q, ERR_INVALID,
                                               "a reminder comes up to 30 days before it begins");
        row->title = title ? title : row->title;
        if (place)
                row->place = *place ? place : NULL;
        if (description)
                row->description = *description ? description : NULL;
        if (f->capacity >= 0)
                row->capacity = f->capacity;
        if (f->reminder_ms >= 0)
                row->reminder_ms = f->reminder_ms;
        return 0;
}

/* Loads what was written, brings reminders into line, and journals it. */
static int finish_change(struct store_tx *tx, struct calendar_request *q, int64_t id,
                         const char *type, struct error *err)
{
        q->changed = true;
        calendar_view_release(&q->view);
        if (calendar_view_load(tx, id, &q->view, err) < 0 ||
            calendar_notices_remind(tx, q, &q->view, err) < 0)
                return -1;
        return calendar_request_journal(tx, q, type, q->view.row, NULL, err);
}

/* ---- creating ---- */

static int add_organizer(struct store_tx *tx, struct calendar_request *q, int64_t event,
                         struct error *err)
{
        struct calendar_member_row m = { .event = event,
                                         .external_source = q->by.platform,
                                         .external_id = q->by.user,
                                         .display_name = q->by.name,
                                         .answer = ANSWER_YES,
                                         .since_ms = q->now_ms };
        int64_t id;

        if (!q->by.platform || !q->by.user || q->by.trusted || q->quiet)
                return 0;
        if (calendar_request_person(tx, q->by.platform, q->by.user, &m.person, err) < 0)
                return -1;
        return calendar_member_row_insert(tx, &m, &id, err);
}

static void make_uid(struct calendar_request *q, struct calendar_event_row *row)
{
        char text[33];

        row->uid = arena_printf(&q->arena, "%s@dragoman", id_trace(text));
}

static int create(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        const struct calendar_by *by = &q->by;
        struct calendar_event_row row = {
                .request_key = q->request_key,
                .adapter = by->adapter,
                .platform = by->platform,
                .channel = by->channel,
                .thread = by->thread,
                .guild = by->guild,
                .trace = by->trace,
                .reminder_ms = REMINDER_MS,
                .organizer = by->user && by->platform
                                     ? arena_printf(&q->arena, "%s:%s", by->platform, by->user)
                             : q->platform_event ? NULL
                                                 : "operator",
                .organizer_name = by->name,
                .version = 1,
                .platform_event = q->platform_event,
                .synced = q->platform_event ? 0 : -1,
                .created_ms = q->now_ms,
                .updated_ms = q->now_ms,
        };
        const struct calendar_fields *f = &q->fields;
        struct incoming *last;
        int64_t id = 0, open;
        size_t said;
        int rc;

        if (q->request_key) {
                rc = calendar_row_get_request(tx, q->request_key, &q->view.row, err);
                id = rc == 1 ? q->view.row->id : 0;
                calendar_view_release(&q->view);
                q->duplicate = rc == 1;
                if (rc != 0)
                        return rc < 0 ? -1 : calendar_view_load(tx, id, &q->view, err) < 0 ? -1 : 0;
        }
        if (!f->when && f->starts_ms == 0)
                return calendar_request_refuse(q, ERR_INVALID,
                                               "it needs a time: `/event new friday 20:00 Chess`");
        if (read_fields(tx, q, &row, err) < 0)
                return -1;
        if (by->trusted && by->channel && !row.guild) { /* a program need not know the server */
                if (schedule_fired_last(tx, by->adapter, by->channel, &last, err) < 0)
                        return -1;
                row.guild = last ? arena_strdup(&q->arena, last->guild) : NULL;
                incoming_free(last);
        }
        open = calendar_row_count_open(tx, q->now_ms, err);
        if (open < 0 || calendar_request_is_refused(q))
                return open < 0 ? -1 : 0;
        if (open >= EVENTS_MAX)
                return calendar_request_refuse(q, ERR_LIMIT, "%d events are planned already",
                                               EVENTS_MAX);
        calendar_view_title(&row, &q->text);
        buf_addstr(&q->text, " is planned: ");
        calendar_view_time(&row, &q->text);
        buf_addstr(&q->text, by->channel ? ". The invitation follows." : ".");
        said = q->text.len;
        make_uid(q, &row);
        if (q->people_count > 0) { /* is it clear who they are? */
                bool dry = q->dry;

                q->view.row = calendar_row_dup(&row);
                q->dry = true;
                rc = calendar_members_invite(tx, q, err);
                q->dry = dry;
                calendar_view_release(&q->view);
                if (rc < 0 || calendar_request_is_refused(q))
                        return rc;
                buf_truncate(&q->text, dry ? q->text.len : said);
        }
        if (q->dry)
                return 0;
        rc = calendar_row_insert(tx, &row, &id, err);
        if (rc != 1) /* the platform's event is known */
                return rc;
        if (add_organizer(tx, q, id, err) < 0)
                return -1;
        if (finish_change(tx, q, id, "created", err) < 0)
                return -1;
        return q->people_count > 0 ? calendar_members_invite(tx, q, err) : 0;
}

/* ---- changing ---- */

static bool same_text(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Does a calendar show it otherwise? */
static bool is_visible_change(const struct calendar_event_row *a,
                              const struct calendar_event_row *b)
{
        return !same_text(a->title, b->title) || !same_text(a->place, b->place) ||
               !same_text(a->description, b->description) || a->starts_ms != b->starts_ms ||
               a->ends_ms != b->ends_ms || !same_text(a->timezone, b->timezone);
}

static int refuse_unless_planned(struct calendar_request *q, const struct calendar_event_row *row)
{
        if (row->state == CALENDAR_CANCELLED)
                calendar_request_refuse(q, ERR_CONFLICT, "'cal-%lld' was cancelled",
                                        (long long)row->id);
        else if (row->ends_ms <= q->now_ms)
                calendar_request_refuse(q, ERR_CONFLICT, "'cal-%lld' is over", (long long)row->id);
        return 0;
}

/* Nobody else changes it until the transaction ends, so that counted seats stay counted. */
static int lock_event(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        int64_t id = q->view.row->id;

        if (q->dry)
                return 0;
        calendar_view_release(&q->view);
        if (calendar_row_lock(tx, id, err) < 0)
                return -1;
        return calendar_view_load(tx, id, &q->view, err) == 1
                       ? 0
                       : error_set(err, ERR_CORRUPT, "event 'cal-%lld' is gone", (long long)id);
}

/* Finds the event and checks that who asks may change it. */
static int find_to_change(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        int rc = find_event(tx, q, err);

        if (rc < 0 || calendar_request_is_refused(q))
                return rc;
        if (lock_event(tx, q, err) < 0)
                return -1;
        rc = calendar_request_may_change(tx, q, q->view.row, err);
        if (rc == 0)
                return calendar_request_refuse(
                        q, ERR_REFUSED, "only who planned 'cal-%lld', and admins, may do that",
                        (long long)q->view.row->id);
        return rc < 0 ? -1 : refuse_unless_planned(q, q->view.row);
}

static int write_change(struct store_tx *tx, const struct calendar_request *q,
                        const struct calendar_event_row *row, struct error *err)
{
        if (calendar_row_update(tx, row, err) < 0)
                return -1;
        return q->from_platform ? calendar_row_set_put(tx, row->id, 0, row->sequence, 0, err) : 0;
}

static int change(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        struct calendar_event_row row;
        bool visible, moved;
        struct buf news;
        int64_t coming;
        int rc;

        if (find_to_change(tx, q, err) < 0)
                return -1;
        if (calendar_request_is_refused(q))
                return 0;
        row = *q->view.row;
        if (read_fields(tx, q, &row, err) < 0)
                return -1;
        coming = (int64_t)calendar_view_answers(&q->view, ANSWER_YES);
        if (!calendar_request_is_refused(q) && row.capacity > 0 && coming > row.capacity)
                calendar_request_refuse(
                        q, ERR_CONFLICT,
                        "%lld people have a seat already, so there cannot be only %lld",
                        (long long)coming, (long long)row.capacity);
        if (calendar_request_is_refused(q))
                return 0;
        visible = is_visible_change(&row, q->view.row);
        moved = row.starts_ms != q->view.row->starts_ms ||
                !same_text(row.place, q->view.row->place);
        if (!visible && row.capacity == q->view.row->capacity &&
            row.reminder_ms == q->view.row->reminder_ms) {
                buf_addstr(&q->text, "Nothing changed: ");
                calendar_view_name(&row, &q->text);
                buf_addstr(&q->text, " is as it was.");
                return 0;
        }
        row.sequence += visible;
        row.updated_ms = q->now_ms;
        buf_addstr(&q->text, "Changed: ");
        calendar_view_name(&row, &q->text);
        buf_addch(&q->text, '.');
        if (q->dry)
                return 0;
        if (write_change(tx, q, &row, err) < 0 || calendar_members_promote(tx, q, &row, err) < 0 ||
            finish_change(tx, q, row.id, "changed", err) < 0)
                return -1;
        if (!moved)
                return 0;
        buf_init(&news, 0);
        buf_addstr(&news, "📅 Changed: ");
        calendar_view_name(q->view.row, &news);
        if (q->view.row->place) {
                buf_addstr(&news, ", place: ");
                calendar_view_escape(q->view.row->place, &news);
        }
        rc = calendar_notices_tell_all(tx, q, &q->view, news.data, err);
        buf_release(&news);
        return rc;
}

static int cancel(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        struct calendar_event_row row;
        struct buf news;
        int rc;

        if (find_to_change(tx, q, err) < 0)
                return -1;
        if (calendar_request_is_refused(q))
                return 0;
        row = *q->view.row;
        row.state = CALENDAR_CANCELLED;
        row.sequence++;
        row.updated_ms = q->now_ms;
        buf_addstr(&q->text, "Cancelled: ");
        calendar_view_name(&row, &q->text);
        buf_addch(&q->text, '.');
        if (q->dry)
                return 0;
        if (write_change(tx, q, &row, err) < 0 ||
            finish_change(tx, q, row.id, "cancelled", err) < 0)
                return -1;
        buf_init(&news, 0);
        buf_addstr(&news, "🚫 Cancelled: ");
        calendar_view_name(q->view.row, &news);
        rc = calendar_notices_tell_all(tx, q, &q->view, news.data, err);
        buf_release(&news);
        return rc;
}

/* ---- looking ---- */

static int show(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        if (find_event(tx, q, err) < 0)
                return -1;
        if (!calendar_request_is_refused(q))
                calendar_view_announcement(&q->view, &q->text);
        return 0;
}

static int upcoming(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        struct calendar_view views[LISTED] = { 0 };
        size_t count = 0;
        int rc = list_here(tx, q, views, LISTED, &count, err);

        if (rc == 0 && count == 0)
                buf_addstr(&q->text, "No event is planned here. `/event new friday 20:00 Chess` "
                                     "plans one.");
        else if (rc == 0)
                buf_addstr(&q->text, "Planned here:");
        for (size_t i = 0; i < count; i++) {
                buf_addstr(&q->text, "\n- ");
                calendar_view_line(&views[i], &q->text);
                calendar_view_release(&views[i]);
        }
        return rc;
}

/* Members answer and are invited while it is planned. */
static int with_event(struct store_tx *tx, struct calendar_request *q,
                      int (*run)(struct store_tx *, struct calendar_request *, struct error *),
                      struct error *err)
{
        if (find_event(tx, q, err) < 0)
                return -1;
        if (!calendar_request_is_refused(q) && lock_event(tx, q, err) < 0)
                return -1;
        if (!calendar_request_is_refused(q))
                refuse_unless_planned(q, q->view.row);
        return calendar_request_is_refused(q) ? 0 : run(tx, q, err);
}

int calendar_request_run(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        int rc = -1;

        error_clear(&q->refusal);
        calendar_view_release(&q->view);
        buf_clear(&q->text);
        bus_batch_reset(&q->batch);
        q->changed = q->duplicate = false;
        switch (q->action) {
        case CALENDAR_CREATE:
                rc = create(tx, q, err);
                break;
        case CALENDAR_CHANGE:
                rc = change(tx, q, err);
                break;
        case CALENDAR_CANCEL:
                rc = cancel(tx, q, err);
                break;
        case CALENDAR_INVITE:
                rc = with_event(tx, q, calendar_members_invite, err);
                break;
        case CALENDAR_ANSWER:
                rc = with_event(tx, q, calendar_members_answer, err);
                break;
        case CALENDAR_REMOVE:
                rc = with_event(tx, q, calendar_members_remove, err);
                break;
        case CALENDAR_SHOW:
                rc = show(tx, q, err);
                break;
        case CALENDAR_UPCOMING:
                rc = upcoming(tx, q, err);
                break;
        }
        return rc;
}
