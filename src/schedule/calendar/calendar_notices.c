/*
 * calendar_notices: what members are told, and the reminders before an event begins.
 *
 * Each is a row of schedules, written with the change that causes it; the schedule sends it, and
 * finds out where a person is reached. People on the event's platform read its chat; others, and
 * everybody if it has no chat, get a message of their own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "rows/schedule_row.h"
#include "schedule/calendar/calendar_request.h"

#define NOTICE_AGE_MS ((int64_t)24 * 3600 * 1000) /* older ones are of no use */

/* Are they told in the event's chat? */
static bool is_in_chat(const struct calendar_event_row *row, const struct calendar_member_row *m)
{
        return row->channel && row->platform && strcmp(row->platform, m->external_source) == 0;
}

static bool is_interested(const struct calendar_member_row *m)
{
        return m->answer == ANSWER_YES || m->answer == ANSWER_MAYBE || m->answer == ANSWER_WAITING;
}

struct notice {
        const char *key, *text;
        int64_t person;      /* 0: the event's chat */
        const char *mention; /* in the chat, which is the last address of a person; may be NULL */
        const char *buttons; /* may be NULL */
        int64_t at_ms;       /* 0: now */
        bool asked;          /* they wanted it, at that time */
};

static char *options_json(const struct calendar_event_row *row, const struct notice *n)
{
        struct buf b;

        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_int(&b, "calendar", row->id);
        jsonw_opt(&b, "mention", n->mention);
        if (n->mention && n->person > 0)
                jsonw_bool(&b, "chatLast", true);
        if (n->buttons)
                jsonw_raw(&b, "buttons", n->buttons);
        if (n->asked)
                jsonw_bool(&b, "askedBySelf", true);
        jsonw_close(&b, '}');
        return buf_take(&b);
}

static struct schedule_row make_row(const struct calendar_request *q,
                                    const struct calendar_event_row *row, const struct notice *n,
                                    const char *options)
{
        bool chat = n->person == 0 || n->mention;
        int64_t at_ms = n->at_ms > 0 ? n->at_ms : q->now_ms;

        return (struct schedule_row){
                .source = "calendar",
                .name = row->title,
                .request_key = n->key,
                .kind = n->at_ms > 0 ? SCHEDULE_ONE_SHOT : SCHEDULE_IMMEDIATE,
                .action = SCHEDULE_MESSAGE,
                .adapter = chat ? row->adapter : NULL,
                .channel = chat ? row->channel : NULL,
                .thread = chat ? row->thread : NULL,
                .person = n->person,
                .text = n->text,
                .options = options,
                .at_ms = at_ms,
                .timezone = row->timezone,
                .missed = MISSED_ONCE,
                /* a reminder is of no use once it has begun */
                .max_age_ms = n->at_ms > 0 ? row->starts_ms - n->at_ms : NOTICE_AGE_MS,
                .state = SCHEDULE_ACTIVE,
                .next_ms = at_ms,
                .created_ms = q->now_ms,
                .created_by = row->organizer,
                .trace = q->by.trace ? q->by.trace : row->trace,
        };
}

static int send_notice(struct store_tx *tx, const struct calendar_request *q,
                       const struct calendar_event_row *row, const struct notice *n,
                       struct error *err)
{
        char *options = options_json(row, n);
        struct schedule_row s = make_row(q, row, n, options);
        int64_t id;
        int rc = schedule_row_insert(tx, &s, &id, err);

        free(options);
        return rc < 0 ? -1 : 0;
}

int calendar_notices_not_shown(struct store_tx *tx, const struct calendar_event_row *row,
                               const char *why, struct error *err)
{
        struct calendar_request q = { .now_ms = clock_wall_ms() };
        struct buf text;
        char key[60];
        int rc;

        if (!row->channel)
                return 0;
        snprintf(key, sizeof(key), "cal:%lld:not-shown", (long long)row->id);
        buf_init(&text, 0);
        buf_addstr(&text, "📅 ");
        calendar_view_title(row, &text);
        buf_addf(&text,
                 " (`cal-%lld`) is planned, but not shown among the events of the server: %s.",
                 (long long)row->id, why);
        rc = send_notice(tx, &q, row, &(struct notice){ .key = key, .text = text.data }, err);
        buf_release(&text);
        return rc;
}

int calendar_notices_tell(struct store_tx *tx, struct calendar_request *q,
                          const struct calendar_event_row *row, const struct calendar_member_row *m,
                          const char *text, const char *buttons, struct error *err)
{
        struct notice n = { .text = text, .person = m->person, .buttons = buttons };

        if (q->quiet)
                return 0;
        if (m->person == 0 && !is_in_chat(row, m))
                return 0; /* nobody knows where they are */
        if (is_in_chat(row, m))
                n.mention = m->external_id;
        return send_notice(tx, q, row, &n, err);
}

int calendar_notices_tell_all(struct store_tx *tx, struct calendar_request *q,
                              const struct calendar_view *v, const char *text, struct error *err)
{
        int rc = 0;

        if (q->quiet)
                return 0;
        if (v->row->channel)
                rc = send_notice(tx, q, v->row, &(struct notice){ .text = text }, err);
        for (size_t i = 0; rc == 0 && i < v->count; i++) {
                const struct calendar_member_row *m = v->members[i];

                if (m->person > 0 && is_interested(m) && !is_in_chat(v->row, m))
                        rc = send_notice(tx, q, v->row,
                                         &(struct notice){ .text = text, .person = m->person },
                                         err);
        }
        return rc;
}

int calendar_notices_correct(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        char *text = mem_printf("Correction, because something changed meanwhile: %s",
                                calendar_request_is_refused(q) ? q->refusal.text : q->text.data);
        const struct calendar_event_row *event = q->view.row;
        struct calendar_event_row row = { .id = event ? event->id : 0,
                                          .title = event ? event->title : "event",
                                          .timezone = event ? event->timezone : NULL,
                                          .adapter = q->by.adapter,
                                          .channel = q->by.channel,
                                          .thread = q->by.thread,
                                          .trace = event ? event->trace : NULL };
        int rc = send_notice(tx, q, &row, &(struct notice){ .text = text, .mention = q->by.user },
                             err);

        free(text);
        return rc;
}

/* ---- reminders ---- */

/* Changes, makes or ends a reminder, so that *id is the one that is wanted (NULL: none). */
static int put_reminder(struct store_tx *tx, const struct calendar_request *q,
                        const struct calendar_event_row *row, const struct notice *wanted,
                        int64_t *id, struct error *err)
{
        int64_t old = *id;
        char *options;
        struct schedule_row s;
        int rc = 0;

        *id = 0;
        if (!wanted)
                return old > 0 && schedule_row_cancel(tx, old, "it is not needed any more",
                                                      q->now_ms, err) < 0
                               ? -1
                               : 0;
        options = options_json(row, wanted);
        s = make_row(q, row, wanted, options);
        s.id = old;
        if (old > 0)
                rc = schedule_row_update(tx, &s, err);
        if (rc == 1)
                *id = old;
        else if (rc == 0)
                rc = schedule_row_insert(tx, &s, id, err);
        free(options);
        return rc < 0 ? -1 : 0;
}

static void reminder_text(const struct calendar_view *v, bool chat, struct buf *text)
{
        buf_addstr(text, "⏰ ");
        calendar_view_name(v->row, text);
        if (v->row->place) {
                buf_addstr(text, ", place: ");
                calendar_view_escape(v->row->place, text);
        }
        if (chat && calendar_view_answers(v, ANSWER_YES) > 0) {
                buf_addstr(text, "\nComing: ");
                calendar_view_names(v, ANSWER_YES, CALENDAR_NAMES_SHOWN, text);
        }
}

int calendar_notices_remind(struct store_tx *tx, struct calendar_request *q,
                            const struct calendar_view *v, struct error *err)
{
        struct calendar_event_row *row = v->row;
        int64_t at_ms = row->starts_ms - row->reminder_ms;
        bool reminds = row->state == CALENDAR_PLANNED && row->reminder_ms > 0 && at_ms > q->now_ms;
        int64_t chat = row->reminder;
        struct buf text, own;
        int rc;

        buf_init(&text, 0);
        buf_init(&own, 0);
        reminder_text(v, true, &text);
        reminder_text(v, false, &own);
        rc = put_reminder(tx, q, row,
                          reminds && row->channel
                                  ? &(struct notice){ .text = text.data, .at_ms = at_ms }
                                  : NULL,
                          &chat, err);
        if (rc == 0 && chat != row->reminder)
                rc = calendar_row_set_reminder(tx, row->id, chat, err);
        row->reminder = chat;
        for (size_t i = 0; rc == 0 && i < v->count; i++) {
                struct calendar_member_row *m = v->members[i];
                bool wanted = reminds && m->person > 0 && !is_in_chat(row, m) &&
                              (m->answer == ANSWER_YES || m->answer == ANSWER_MAYBE);
                int64_t before = m->reminder;

                rc = put_reminder(tx, q, row,
                                  wanted ? &(struct notice){ .text = own.data,
                                                             .person = m->person,
                                                             .at_ms = at_ms,
                                                             .asked = true }
                                         : NULL,
                                  &m->reminder, err);
                if (rc == 0 && before != m->reminder && calendar_member_row_update(tx, m, err) < 0)
                        rc = -1;
        }
        buf_release(&text);
        buf_release(&own);
        return rc;
}

int calendar_notices_forget(struct store_tx *tx, struct calendar_request *q,
                            const struct calendar_member_row *m, struct error *err)
{
        int64_t id = m->reminder;

        return put_reminder(tx, q, q->view.row, NULL, &id, err);
}
