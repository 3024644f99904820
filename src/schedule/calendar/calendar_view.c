#include "schedule/calendar/calendar_view.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/timezone.h"
#include "base/utf8.h"

#define ANNOUNCEMENT_MAX  1900 /* characters: Discord takes 2000 in a message */
#define SHOWN_DESCRIPTION 600  /* bytes of it in the announcement */
#define SHOWN_NAME        40   /* bytes of a name */

int calendar_view_load(struct store_tx *tx, int64_t id, struct calendar_view *out,
                       struct error *err)
{
        struct calendar_member_row m;
        struct store_stmt *s;
        int rc;

        *out = (struct calendar_view){ 0 };
        rc = calendar_row_get(tx, id, &out->row, err);
        if (rc != 1)
                return rc;
        s = calendar_member_row_list(tx, id);
        while ((rc = calendar_member_row_next(s, &m, err)) == 1) {
                out->members = mem_realloc(out->members, (out->count + 1) * sizeof(*out->members));
                out->members[out->count++] = calendar_member_row_dup(&m);
        }
        return rc < 0 ? -1 : 1;
}

void calendar_view_release(struct calendar_view *v)
{
        for (size_t i = 0; i < v->count; i++)
                free(v->members[i]);
        free(v->members);
        free(v->row);
        *v = (struct calendar_view){ 0 };
}

size_t calendar_view_answers(const struct calendar_view *v, enum calendar_answer answer)
{
        size_t n = 0;

        for (size_t i = 0; i < v->count; i++)
                n += v->members[i]->answer == answer;
        return n;
}

/* ---- Markdown ---- */

void calendar_view_escape(const char *text, struct buf *out)
{
        for (; *text; text++) {
                if (strchr("\\`*_~[]<>|#", *text))
                        buf_addch(out, '\\');
                buf_addch(out, *text == '\n' || *text == '\r' || *text == '\t' ? ' ' : *text);
        }
}

static void add_short(const char *text, size_t max, struct buf *out)
{
        size_t n = utf8_prefix(text, strlen(text), UTF8_BYTES, max);
        char *part = mem_strndup(text, n);

        calendar_view_escape(part, out);
        if (text[n])
                buf_addstr(out, "…");
        free(part);
}

void calendar_view_title(const struct calendar_event_row *row, struct buf *out)
{
        buf_addstr(out, "**");
        calendar_view_escape(row->title, out);
        buf_addstr(out, "**");
}

static void add_time(const struct time_zone *zone, int64_t ms, bool date, struct buf *out)
{
        int64_t seconds = ms / 1000;
        time_t local = (time_t)(seconds + (zone ? timezone_offset(zone, seconds) : 0));
        struct tm tm;
        char text[64];

        gmtime_r(&local, &tm);
        if (date) {
                strftime(text, sizeof(text), "%a %-d %b %Y, ", &tm);
                buf_addstr(out, text);
        }
        strftime(text, sizeof(text), "%H:%M", &tm);
        buf_addstr(out, text);
}

void calendar_view_time(const struct calendar_event_row *row, struct buf *out)
{
        struct time_zone *zone = timezone_new(row->timezone, NULL);
        bool long_one = row->ends_ms - row->starts_ms >= (int64_t)20 * 3600 * 1000;

        add_time(zone, row->starts_ms, true, out);
        if (row->ends_ms > row->starts_ms) {
                buf_addstr(out, " to ");
                add_time(zone, row->ends_ms, long_one, out);
        }
        buf_addf(out, " (%s)", zone ? row->timezone : "UTC");
        timezone_free(zone);
}

void calendar_view_name(const struct calendar_event_row *row, struct buf *out)
{
        calendar_view_title(row, out);
        buf_addf(out, " (`cal-%lld`), ", (long long)row->id);
        calendar_view_time(row, out);
}

void calendar_view_member(const struct calendar_member_row *m, struct buf *out)
{
        if (!m->display_name)
                buf_addf(out, "%s:", m->external_source);
        add_short(m->display_name ? m->display_name : m->external_id, SHOWN_NAME, out);
}

void calendar_view_names(const struct calendar_view *v, enum calendar_answer answer, size_t most,
                         struct buf *out)
{
        size_t shown = 0, all = calendar_view_answers(v, answer);

        for (size_t i = 0; i < v->count && shown < most; i++) {
                const struct calendar_member_row *m = v->members[i];

                if (m->answer != answer)
                        continue;
                buf_addstr(out, shown++ > 0 ? ", " : "");
                calendar_view_member(m, out);
        }
        if (all > shown)
                buf_addf(out, " and %zu more", all - shown);
}

static void add_answers(const struct calendar_view *v, enum calendar_answer answer,
                        const char *label, size_t names, struct buf *out)
{
        size_t n = calendar_view_answers(v, answer);

        if (n == 0 && !(answer == ANSWER_YES && v->row->capacity > 0))
                return;
        buf_addf(out, "\n%s", label);
        if (answer == ANSWER_YES && v->row->capacity > 0)
                buf_addf(out, " (%zu of %lld)", n, (long long)v->row->capacity);
        else if (n > 1)
                buf_addf(out, " (%zu)", n);
        buf_addstr(out, n > 0 ? ": " : ": nobody yet");
        calendar_view_names(v, answer, names, out);
}

static void add_announcement(const struct calendar_view *v, size_t names, struct buf *out)
{
        const struct calendar_event_row *row = v->row;
        bool cancelled = row->state == CALENDAR_CANCELLED;

        buf_addstr(out, cancelled ? "🚫 Cancelled: " : "📅 ");
        calendar_view_title(row, out);
        buf_addf(out, " (`cal-%lld`)\n", (long long)row->id);
        calendar_view_time(row, out);
        if (row->place) {
                buf_addstr(out, "\nPlace: ");
                calendar_view_escape(row->place, out);
        }
        if (row->organizer_name) {
                buf_addstr(out, "\nPlanned by ");
                add_short(row->organizer_name, SHOWN_NAME, out);
        }
        if (cancelled)
                return;
        if (row->description) {
                buf_addstr(out, "\n\n");
                add_short(row->description, SHOWN_DESCRIPTION * names / CALENDAR_NAMES_SHOWN, out);
        }
        buf_addstr(out, "\n");
        add_answers(v, ANSWER_YES, "✅ Coming", names, out);
        add_answers(v, ANSWER_WAITING, "⏳ Waiting for a seat", names, out);
        add_answers(v, ANSWER_MAYBE, "❔ Maybe", names, out);
        add_answers(v, ANSWER_NO, "❌ Not coming", names, out);
        add_answers(v, ANSWER_INVITED, "✉️ Invited", names, out);
        buf_addf(out,
                 "\n\nAre you coming? Press a button, react with ✅ ❌ or ❔, or write"
                 " `/event yes cal-%lld`.",
                 (long long)row->id);
}

void calendar_view_announcement(const struct calendar_view *v, struct buf *out)
{
        static const size_t names[] = { CALENDAR_NAMES_SHOWN, 12, 5, 2 };
        size_t from = out->len;

        for (size_t i = 0; i < COUNT(names); i++) {
                buf_truncate(out, from);
                add_announcement(v, names[i], out);
                if (utf8_length(out->data + from, out->len - from, UTF8_CODE_POINTS) <=
                    ANNOUNCEMENT_MAX)
                        return;
        }
}

void calendar_view_line(const struct calendar_view *v, struct buf *out)
{
        const struct calendar_event_row *row = v->row;
        size_t coming = calendar_view_answers(v, ANSWER_YES);

        buf_addf(out, "`cal-%lld` ", (long long)row->id);
        calendar_view_title(row, out);
        buf_addstr(out, ", ");
        calendar_view_time(row, out);
        if (row->place) {
                buf_addstr(out, ", place: ");
                add_short(row->place, SHOWN_NAME, out);
        }
        if (row->state == CALENDAR_CANCELLED)
                buf_addstr(out, ": cancelled");
        else if (row->capacity > 0)
                buf_addf(out, ": %zu of %lld seats taken", coming, (long long)row->capacity);
        else
                buf_addf(out, ": %zu coming", coming);
}

void calendar_view_buttons(const struct calendar_event_row *row, struct buf *out)
{
        static const char *const labels[][2] = { { "✅ Yes", "yes" },
                                                 { "❔ Maybe", "maybe" },
                                                 { "❌ No", "no" } };

        jsonw_open(out, '[');
        for (size_t i = 0; row->state == CALENDAR_PLANNED && i < COUNT(labels); i++) {
                char data[48];

                if (i == 0)
                        jsonw_open(out, '[');
                snprintf(data, sizeof(data), "say:/event %s cal-%lld", labels[i][1],
                         (long long)row->id);
                jsonw_open(out, '{');
                jsonw_str(out, "text", labels[i][0]);
                jsonw_str(out, "data", data);
                jsonw_close(out, '}');
                if (i + 1 == COUNT(labels))
                        jsonw_close(out, ']');
        }
        jsonw_close(out, ']');
}

/* ---- for programs ---- */

static void add_id(struct buf *b, const char *key, const char *prefix, int64_t id)
{
        char text[40];

        snprintf(text, sizeof(text), "%s%lld", prefix, (long long)id);
        jsonw_str(b, key, id > 0 ? text : NULL);
}

static void add_iso(struct buf *b, const char *key, int64_t ms)
{
        char iso[CLOCK_ISO_SIZE];

        jsonw_str(b, key, ms > 0 ? clock_iso(ms, iso) : NULL);
}

void calendar_view_member_json(struct buf *b, const char *key, const struct calendar_member_row *m)
{
        jsonw_open_member(b, key, '{');
        add_id(b, "id", "mem-", m->id);
        add_id(b, "userId", "per-", m->person);
        jsonw_str(b, "externalSource", m->external_source);
        jsonw_str(b, "externalId", m->external_id);
        jsonw_str(b, "displayName", m->display_name);
        jsonw_str(b, "status", calendar_answer_name(m->answer));
        add_iso(b, "since", m->since_ms);
        jsonw_close(b, '}');
}

void calendar_view_json(struct buf *b, const char *key, const struct calendar_view *v)
{
        const struct calendar_event_row *row = v->row;

        jsonw_open_member(b, key, '{');
        add_id(b, "id", "cal-", row->id);
        jsonw_str(b, "uid", row->uid);
        jsonw_str(b, "title", row->title);
        jsonw_str(b, "description", row->description);
        jsonw_str(b, "place", row->place);
        add_iso(b, "startsAt", row->starts_ms);
        add_iso(b, "endsAt", row->ends_ms);
        jsonw_str(b, "timezone", row->timezone);
        jsonw_int(b, "capacity", row->capacity);
        jsonw_int(b, "reminderMinutes", row->reminder_ms / 60000);
        jsonw_str(b, "state", calendar_state_name(row->state));
        jsonw_str(b, "instanceId", row->adapter);
        jsonw_str(b, "channelId", row->channel);
        jsonw_str(b, "threadId", row->thread);
        jsonw_str(b, "messageId", row->message);
        jsonw_str(b, "platformEventId", row->platform_event);
        jsonw_str(b, "organizer", row->organizer);
        jsonw_str(b, "organizerName", row->organizer_name);
        jsonw_int(b, "sequence", row->sequence);
        add_iso(b, "createdAt", row->created_ms);
        add_iso(b, "updatedAt", row->updated_ms);
        jsonw_open_member(b, "members", '[');
        for (size_t i = 0; i < v->count; i++)
                calendar_view_member_json(b, NULL, v->members[i]);
        jsonw_close(b, ']');
        jsonw_close(b, '}');
}

void calendar_view_ics(struct buf *out, enum ics_method method, const struct calendar_view *v)
{
        static const enum ics_answer answers[] = {
                [ANSWER_INVITED] = ICS_INVITED, [ANSWER_YES] = ICS_YES,
                [ANSWER_NO] = ICS_NO,           [ANSWER_MAYBE] = ICS_MAYBE,
                [ANSWER_WAITING] = ICS_WAITING,
        };
        const struct calendar_event_row *row = v->row;
        struct ics_person *people = mem_array(v->count + 1, sizeof(*people));
        const char *colon = row->organizer ? strchr(row->organizer, ':') : NULL;
        char *source = colon ? mem_strndup(row->organizer, (size_t)(colon - row->organizer)) : NULL;
        struct ics_person organizer = { .source = source,
                                        .id = colon ? colon + 1 : NULL,
                                        .name = row->organizer_name ? row->organizer_name
                                                                    : row->organizer };

        for (size_t i = 0; i < v->count; i++) {
                const struct calendar_member_row *m = v->members[i];
                bool named = strcmp(m->external_source, "name") == 0;

                people[i] = (struct ics_person){ .source = named ? NULL : m->external_source,
                                                 .id = named ? NULL : m->external_id,
                                                 .name = m->display_name,
                                                 .answer = answers[m->answer] };
        }
        calendar_ics_event(out, method,
                           &(struct ics_event){ .uid = row->uid,
                                                .sequence = row->sequence,
                                                .title = row->title,
                                                .description = row->description,
                                                .place = row->place,
                                                .starts_ms = row->starts_ms,
                                                .ends_ms = row->ends_ms,
                                                .created_ms = row->created_ms,
                                                .updated_ms = row->updated_ms,
                                                .cancelled = row->state == CALENDAR_CANCELLED,
                                                .reminder_ms = row->reminder_ms,
                                                .organizer = row->organizer ? &organizer : NULL,
                                                .members = people,
                                                .member_count = v->count });
        free(people);
        free(source);
}
