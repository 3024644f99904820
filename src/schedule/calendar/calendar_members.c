/*
 * calendar_members: who is invited, who comes, who waits for a seat.
 *
 * There are never more people with a seat than seats, and nobody waits while one is free: every
 * change of a member ends with calendar_members_promote.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "rows/person_row.h"
#include "schedule/calendar/calendar_request.h"

#define MEMBERS_MAX 500 /* of an event */
#define NAME_BYTES  80  /* bytes */

/* ---- whom a text means ---- */

/* A name as its own id: without case, and without '@'. */
static const char *name_key(struct calendar_request *q, const char *name)
{
        char *key = arena_strdup(&q->arena, name + (*name == '@'));

        for (char *p = key; *p; p++)
                *p = (char)tolower((unsigned char)*p);
        return key;
}

/* An account: fills in person and name, if somebody knows them. */
static int read_account(struct store_tx *tx, struct calendar_request *q, const char *platform,
                        const char *user, struct calendar_member_row *out, struct error *err)
{
        struct identity_details d;
        struct store_stmt *s;
        int rc;

        out->external_source = arena_strdup(&q->arena, platform);
        out->external_id = arena_strdup(&q->arena, user);
        if (calendar_request_person(tx, platform, user, &out->person, err) < 0)
                return -1;
        if (out->person == 0)
                return 0;
        s = person_row_list_details(tx, out->person);
        while ((rc = person_row_next_details(s, &d, err)) == 1) {
                if (strcmp(d.identity.platform, platform) == 0 &&
                    strcmp(d.identity.user, user) == 0)
                        out->display_name = arena_strdup(&q->arena, d.name ? d.name : d.username);
        }
        return rc;
}

/* "per-3": their account on the event's platform, else any. */
static int read_person(struct store_tx *tx, struct calendar_request *q, int64_t person,
                       struct calendar_member_row *out, struct error *err)
{
        const char *here = q->view.row->platform;
        struct identity_details d;
        struct store_stmt *s;
        int64_t into = 0;
        int rc = person_row_get_alias(tx, person, &into, err);

        if (rc < 0)
                return -1;
        person = into > 0 ? into : person;
        s = person_row_list_details(tx, person);
        while ((rc = person_row_next_details(s, &d, err)) == 1) {
                bool better = here && strcmp(d.identity.platform, here) == 0;

                if (out->external_id && !better)
                        continue;
                out->person = person;
                out->external_source = arena_strdup(&q->arena, d.identity.platform);
                out->external_id = arena_strdup(&q->arena, d.identity.user);
                out->display_name = arena_strdup(&q->arena, d.name ? d.name : d.username);
        }
        if (rc == 0 && !out->external_id)
                calendar_request_refuse(q, ERR_MISSING, "there is no person 'per-%lld'",
                                        (long long)person);
        return rc;
}

/* "@ann": an account of the platform in which it is written, if it is clear which. */
static int read_mention(struct store_tx *tx, struct calendar_request *q, const char *name,
                        struct calendar_member_row *out, struct error *err)
{
        struct store_stmt *s = person_row_list_named(tx, name + 1, false);
        const char *user = NULL;
        struct identity_named n;
        size_t found = 0;
        int rc;

        while ((rc = person_row_next_named(s, &n, err)) == 1) {
                if (!q->by.platform || strcmp(n.identity.platform, q->by.platform) != 0)
                        continue;
                found++;
                user = arena_strdup(&q->arena, n.identity.user);
        }
        if (rc < 0)
                return -1;
        if (found == 1)
                return read_account(tx, q, q->by.platform, user, out, err);
        if (found > 1)
                return calendar_request_refuse(q, ERR_CONFLICT,
                                               "%zu people are called '%.60s'; mention one, or "
                                               "write %s:ID",
                                               found, name + 1, q->by.platform);
        out->external_source = "name"; /* counts as theirs once they answer */
        out->external_id = name_key(q, name);
        out->display_name = name;
        return 0;
}

static bool is_platform(const char *text, size_t n)
{
        static const char *const names[] = { "discord", "telegram", "slack", "api", "cli" };

        for (size_t i = 0; i < COUNT(names); i++)
                if (strlen(names[i]) == n && strncasecmp(names[i], text, n) == 0)
                        return true;
        return false;
}

/* "<@42>", "<@!42>" or "<@U1|ann>", as platforms write a mention; the id in the arena, or NULL. */
static char *tag_user(struct calendar_request *q, const char *text)
{
        size_t n;

        if (strncmp(text, "<@", 2) != 0 || text[strlen(text) - 1] != '>')
                return NULL;
        text += 2 + (text[2] == '!');
        n = strcspn(text, "|>");
        return n > 0 ? arena_printf(&q->arena, "%.*s", (int)n, text) : NULL;
}

/* "mem-7" */
static int read_member(struct store_tx *tx, struct calendar_request *q, int64_t id,
                       struct calendar_member_row *out, struct error *err)
{
        struct calendar_member_row *m;
        int rc = calendar_member_row_get(tx, id, &m, err);

        if (rc == 1 && m->event == q->view.row->id) {
                *out = *m;
                out->external_source = arena_strdup(&q->arena, m->external_source);
                out->external_id = arena_strdup(&q->arena, m->external_id);
                out->display_name = arena_strdup(&q->arena, m->display_name);
        } else if (rc >= 0) {
                calendar_request_refuse(q, ERR_MISSING, "there is no member 'mem-%lld'",
                                        (long long)id);
        }
        free(m);
        return rc < 0 ? -1 : 0;
}

static int read_who(struct store_tx *tx, struct calendar_request *q, const char *text,
                    struct calendar_member_row *out, struct error *err)
{
        const char *colon = strchr(text, ':');
        char *user = tag_user(q, text), *end;
        bool member = strncmp(text, "mem-", 4) == 0;
        long long number =
                member || strncmp(text, "per-", 4) == 0 ? strtoll(text + 4, &end, 10) : 0;

        *out = (struct calendar_member_row){ .event = q->view.row->id, .since_ms = q->now_ms };
        if (number > 0 && *end == '\0')
                return member ? read_member(tx, q, number, out, err)
                              : read_person(tx, q, number, out, err);
        if (user && q->by.platform)
                return read_account(tx, q, q->by.platform, user, out, err);
        if (colon && colon[1] && is_platform(text, (size_t)(colon - text))) {
                char *platform = arena_printf(&q->arena, "%.*s", (int)(colon - text), text);

                for (char *p = platform; *p; p++)
                        *p = (char)tolower((unsigned char)*p);
                return read_account(tx, q, platform, colon + 1, out, err);
        }
        if (!*text || strlen(text) > NAME_BYTES)
                return calendar_request_refuse(q, ERR_INVALID,
                                               "'%.40s' names nobody: write @name, discord:ID, "
                                               "per-3, or a name of up to %d bytes",
                                               text, NAME_BYTES);
        if (*text == '@' && text[1])
                return read_mention(tx, q, text, out, err);
        out->external_source = "name";
        out->external_id = name_key(q, text);
        out->display_name = text;
        return 0;
}

/* Who asks, as a member. */
static int read_asker(struct store_tx *tx, struct calendar_request *q,
                      struct calendar_member_row *out, struct error *err)
{
        *out = (struct calendar_member_row){ .event = q->view.row->id, .since_ms = q->now_ms };
        if (!q->by.platform || !q->by.user)
                return calendar_request_refuse(q, ERR_INVALID, "it is not clear who answers");
        if (read_account(tx, q, q->by.platform, q->by.user, out, err) < 0)
                return -1;
        if (q->by.name)
                out->display_name = q->by.name;
        return 0;
}

/* The member that this is, if there is one already; else *out is `who`. 1: there is; 0; -1. */
static int find_member(struct store_tx *tx, struct calendar_request *q,
                       const struct calendar_member_row *who, struct calendar_member_row **out,
                       struct error *err)
{
        int64_t event = q->view.row->id;
        int rc = calendar_member_row_find(tx, event, who->person, who->external_source,
                                          who->external_id, out, err);

        /* invited by their name before they were known */
        if (rc == 0 && q->by.username && q->people_count == 0)
                rc = calendar_member_row_find(tx, event, 0, "name", name_key(q, q->by.username),
                                              out, err);
        if (rc == 0 && strcmp(who->external_source, "name") == 0)
                rc = calendar_member_row_find_name(tx, event, who->display_name, out, err);
        if (rc == 0)
                *out = calendar_member_row_dup(who);
        return rc;
}

/* ---- writing ---- */

/* Ends a request that changed members. */
static int finish(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        struct calendar_event_row *row = q->view.row;
        int64_t id = row->id;

        q->changed = true;
        if (calendar_members_promote(tx, q, row, err) < 0 ||
            calendar_row_touch(tx, id, q->now_ms, err) < 0)
                return -1;
        calendar_view_release(&q->view);
        if (calendar_view_load(tx, id, &q->view, err) < 0)
                return -1;
        return calendar_notices_remind(tx, q, &q->view, err);
}

int calendar_members_promote(struct store_tx *tx, struct calendar_request *q,
                             const struct calendar_event_row *row, struct error *err)
{
        int64_t taken = calendar_member_row_count(tx, row->id, ANSWER_YES, err);
        struct calendar_member_row *m;
        struct buf text;
        int rc = taken < 0 ? -1 : 1;

        while (rc == 1 && (row->capacity == 0 || taken < row->capacity)) {
                rc = calendar_member_row_first_waiting(tx, row->id, &m, err);
                if (rc != 1)
                        break;
                m->answer = ANSWER_YES;
                m->queue_no = 0; /* since_ms stays: it is the time of their own answer */
                taken++;
                buf_init(&text, 0);
                buf_addstr(&text, "🎉 A seat is free, and it is yours: ");
                calendar_view_name(row, &text);
                if (calendar_member_row_update(tx, m, err) < 0 ||
                    calendar_request_journal(tx, q, "answered", row, m, err) < 0 ||
                    calendar_notices_tell(tx, q, row, m, text.data, NULL, err) < 0)
                        rc = -1;
                buf_release(&text);
                free(m);
        }
        return rc < 0 ? -1 : 0;
}

/* ---- inviting ---- */

static int tell_invited(struct store_tx *tx, struct calendar_request *q,
                        const struct calendar_member_row *m, struct error *err)
{
        const struct calendar_event_row *row = q->view.row;
        struct buf text, buttons;
        int rc;

        buf_init(&text, 0);
        buf_init(&buttons, 0);
        buf_addstr(&text, "✉️ ");
        calendar_view_escape(q->by.name ? q->by.name : "Somebody", &text);
        buf_addstr(&text, " invites you: ");
        calendar_view_name(row, &text);
        if (row->place) {
                buf_addstr(&text, ", place: ");
                calendar_view_escape(row->place, &text);
        }
        buf_addf(&text, ". Are you coming? Press a button, or write `/event yes cal-%lld`.",
                 (long long)row->id);
        calendar_view_buttons(row, &buttons);
        rc = calendar_notices_tell(tx, q, row, m, text.data, buttons.data, err);
        buf_release(&text);
        buf_release(&buttons);
        return rc;
}

static int invite_one(struct store_tx *tx, struct calendar_request *q, const char *text,
                      struct buf *known, struct buf *added, struct error *err)
{
        struct calendar_member_row who, *m = NULL;
        int rc = read_who(tx, q, text, &who, err);

        if (rc < 0 || calendar_request_is_refused(q))
                return rc;
        rc = find_member(tx, q, &who, &m, err);
        if (rc >= 0) {
                struct buf *to = rc == 1 ? known : added;

                buf_addstr(to, to->len > 0 ? ", " : "");
                calendar_view_member(m, to);
        }
        if (rc == 0 && !q->dry) {
                m->answer = ANSWER_INVITED;
                rc = calendar_member_row_insert(tx, m, &m->id, err);
                if (rc == 0)
                        rc = calendar_request_journal(tx, q, "invited", q->view.row, m, err);
                if (rc == 0)
                        rc = tell_invited(tx, q, m, err);
        }
        free(m);
        return rc < 0 ? -1 : 0;
}

/* All of them, or only who they are. */
static int invite_all(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        struct buf known, added;
        int rc = 0;

        buf_init(&known, 0);
        buf_init(&added, 0);
        for (size_t i = 0; rc == 0 && i < q->people_count && !calendar_request_is_refused(q); i++)
                rc = invite_one(tx, q, q->people[i], &known, &added, err);
        if (rc == 0 && added.len > 0)
                buf_addf(&q->text, "%sInvited: %s.", q->text.len > 0 ? " " : "", added.data);
        if (rc == 0 && known.len > 0)
                buf_addf(&q->text, "%sAlready known: %s.", q->text.len > 0 ? " " : "", known.data);
        if (rc == 0 && added.len > 0 && !q->dry)
                rc = finish(tx, q, err);
        buf_release(&known);
        buf_release(&added);
        return rc;
}

int calendar_members_invite(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        int64_t all = calendar_member_row_count_all(tx, q->view.row->id, err);
        size_t said = q->text.len;
        bool dry = q->dry;
        int rc;

        if (all < 0)
                return -1;
        if (q->people_count == 0)
                return calendar_request_refuse(q, ERR_INVALID,
                                               "say whom: `/event invite cal-%lld @ann, Bob`",
                                               (long long)q->view.row->id);
        if (q->people_count > CALENDAR_PEOPLE_MAX || all + (int64_t)q->people_count > MEMBERS_MAX)
                return calendar_request_refuse(q, ERR_LIMIT,
                                               "up to %d people can be invited at once, and an "
                                               "event has up to %d members",
                                               CALENDAR_PEOPLE_MAX, MEMBERS_MAX);
        q->dry = true; /* nothing is written unless all are known */
        rc = invite_all(tx, q, err);
        q->dry = dry;
        if (rc < 0 || dry || calendar_request_is_refused(q))
                return rc;
        buf_truncate(&q->text, said);
        return invite_all(tx, q, err);
}

/* ---- answering ---- */

static void describe(struct calendar_request *q, const struct calendar_member_row *m, bool self,
                     int64_t before)
{
        const struct calendar_event_row *row = q->view.row;

        if (self)
                buf_addstr(&q->text, m->answer == ANSWER_YES       ? "You are coming: "
                                     : m->answer == ANSWER_NO      ? "You are not coming: "
                                     : m->answer == ANSWER_MAYBE   ? "You may come: "
                                     : m->answer == ANSWER_INVITED ? "You have not answered yet: "
                                                                   : "All seats are taken. ");
        else
                calendar_view_member(m, &q->text);
        if (!self)
                buf_addf(&q->text, " %s: ",
                         m->answer == ANSWER_WAITING ? "waits for a seat"
                         : m->answer == ANSWER_YES   ? "is coming"
                         : m->answer == ANSWER_NO    ? "is not coming"
                         : m->answer == ANSWER_MAYBE ? "may come"
                                                     : "has not answered yet");
        if (self && m->answer == ANSWER_WAITING)
                buf_addf(&q->text,
                         "You are number %lld on the waiting list, and will hear when a seat is "
                         "free: ",
                         (long long)before + 1);
        calendar_view_name(row, &q->text);
        buf_addch(&q->text, '.');
}

/* The seat, or the place in the waiting list, that a yes gets. */
static int take_seat(struct store_tx *tx, struct calendar_request *q, struct calendar_member_row *m,
                     int64_t *before, struct error *err)
{
        const struct calendar_event_row *row = q->view.row;
        int64_t taken = calendar_member_row_count(tx, row->id, ANSWER_YES, err);
        int64_t waiting = calendar_member_row_count(tx, row->id, ANSWER_WAITING, err);

        if (taken < 0 || waiting < 0)
                return -1;
        if (row->capacity == 0 || (taken < row->capacity && waiting == 0)) {
                m->answer = ANSWER_YES;
                return 0;
        }
        m->answer = ANSWER_WAITING;
        m->queue_no = calendar_member_row_next_queue_no(tx, row->id, err);
        *before = waiting;
        return m->queue_no < 0 ? -1 : 0;
}

/* Is there nothing to do? Also for what is told again, or was overtaken by another answer. */
static bool is_settled(const struct calendar_request *q, const struct calendar_member_row *m,
                       bool known)
{
        bool yes = m->answer == ANSWER_YES || m->answer == ANSWER_WAITING;

        if (known && q->answered_ms > 0 && m->since_ms > q->answered_ms)
                return true;
        if (q->withdraws)
                return !known || (q->answer == ANSWER_YES ? !yes : m->answer != q->answer);
        return known && (q->answer == ANSWER_YES ? yes : m->answer == q->answer);
}

static int write_answer(struct store_tx *tx, struct calendar_request *q,
                        struct calendar_member_row *m, const struct calendar_member_row *who,
                        bool known, struct error *err)
{
        struct calendar_member_row row = *m;

        row.since_ms = q->answered_ms > 0 ? q->answered_ms : q->now_ms;
        if (strcmp(m->external_source, "name") == 0) { /* it is clear now who that is */
                row.external_source = who->external_source;
                row.external_id = who->external_id;
        }
        row.person = who->person > 0 ? who->person : m->person;
        row.display_name = who->display_name ? who->display_name : m->display_name;
        if (known ? calendar_member_row_update(tx, &row, err) < 0
                  : calendar_member_row_insert(tx, &row, &row.id, err) < 0)
                return -1;
        return calendar_request_journal(tx, q, "answered", q->view.row, &row, err);
}

static int answer_for(struct store_tx *tx, struct calendar_request *q,
                      const struct calendar_member_row *who, bool self, struct error *err)
{
        struct calendar_member_row *m;
        int64_t before = 0, all = calendar_member_row_count_all(tx, q->view.row->id, err);
        int rc = all < 0 ? -1 : find_member(tx, q, who, &m, err);
        bool known = rc == 1;

        if (rc < 0)
                return -1;
        /* an account answers for itself, also if it is a member by the name that was said */
        rc = self || strcmp(m->external_source, "name") == 0
                     ? 1
                     : calendar_request_may_change(tx, q, q->view.row, err);
        if (rc == 0)
                calendar_request_refuse(q, ERR_REFUSED,
                                        "others answer for themselves; only who planned it may "
                                        "answer for them");
        else if (!known && all >= MEMBERS_MAX)
                calendar_request_refuse(q, ERR_LIMIT, "it has %d members, more are not possible",
                                        MEMBERS_MAX);
        if (rc < 0) {
                free(m);
                return -1;
        }
        if (calendar_request_is_refused(q) || is_settled(q, m, known)) {
                if (m->answer == ANSWER_WAITING)
                        before = calendar_member_row_count_before(tx, m->event, m->queue_no, err);
                if (before >= 0 && !calendar_request_is_refused(q))
                        describe(q, m, self, before);
                free(m);
                return before < 0 ? -1 : 0;
        }
        m->queue_no = 0;
        m->answer = q->withdraws ? ANSWER_INVITED : q->answer;
        rc = m->answer == ANSWER_YES ? take_seat(tx, q, m, &before, err) : 0;
        if (rc == 0)
                describe(q, m, self, before);
        if (rc == 0 && !q->dry)
                rc = write_answer(tx, q, m, who, known, err);
        if (rc == 0 && !q->dry)
                rc = finish(tx, q, err);
        free(m);
        return rc;
}

int calendar_members_answer(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        struct calendar_member_row who;
        int rc;

        if (q->people_count == 0) {
                rc = read_asker(tx, q, &who, err);
                return rc < 0 || calendar_request_is_refused(q)
                               ? rc
                               : answer_for(tx, q, &who, true, err);
        }
        if (q->people_count > 1)
                return calendar_request_refuse(q, ERR_INVALID, "one person answers at a time");
        rc = read_who(tx, q, q->people[0], &who, err);
        return rc < 0 || calendar_request_is_refused(q) ? rc : answer_for(tx, q, &who, false, err);
}

/* ---- removing ---- */

int calendar_members_remove(struct store_tx *tx, struct calendar_request *q, struct error *err)
{
        struct calendar_member_row who, *m = NULL;
        int rc = calendar_request_may_change(tx, q, q->view.row, err);

        if (rc == 0)
                return calendar_request_refuse(q, ERR_REFUSED,
                                               "only who planned it, and admins, may remove "
                                               "somebody");
        if (rc > 0 && q->people_count != 1)
                return calendar_request_refuse(q, ERR_INVALID, "say whom to remove, one person");
        if (rc < 0 || read_who(tx, q, q->people[0], &who, err) < 0)
                return -1;
        if (calendar_request_is_refused(q))
                return 0;
        rc = find_member(tx, q, &who, &m, err);
        if (rc == 0)
                calendar_request_refuse(q, ERR_MISSING, "'%.60s' is no member of 'cal-%lld'",
                                        q->people[0], (long long)q->view.row->id);
        if (rc == 1) {
                buf_addstr(&q->text, "Removed: ");
                calendar_view_member(m, &q->text);
                buf_addch(&q->text, '.');
        }
        if (rc == 1 && !q->dry) {
                m->answer = ANSWER_NO; /* ends their reminder */
                rc = calendar_notices_forget(tx, q, m, err);
                if (rc >= 0)
                        rc = calendar_member_row_delete(tx, m->id, err);
                if (rc >= 0)
                        rc = calendar_request_journal(tx, q, "removed", q->view.row, m, err);
                if (rc >= 0)
                        rc = finish(tx, q, err);
        }
        free(m);
        return rc < 0 ? -1 : 0;
}
