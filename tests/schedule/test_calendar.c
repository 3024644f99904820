/* Events that people plan together: seats, waiting list, who may do what, who is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/rows.h"
#include "../lib/rows_rig.h"
#include "../lib/scratch.h"
#include "base/buf.h"
#include "base/mem.h"
#include "rows/person_row.h"
#include "schedule/calendar/calendar_private.h"

#define NOW     (1794823200LL * 1000) /* Monday 2026-11-16 10:00 UTC */
#define HOUR_MS 3600000LL

struct world {
        char *dir;
        struct store *store;
        struct schedule_conf conf;
        /* who speaks, and where */
        struct chat_caller by;
        const char *username;
        int64_t now_ms, answered_ms;
        bool withdraws;
        struct calendar_request *q; /* the last */
        char said[2000];
};

static int setup(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->dir = scratch_new();
        w->store = rows_rig_open(w->dir);
        w->conf.timezone = mem_strdup("Europe/Berlin");
        w->now_ms = NOW;
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        calendar_request_free(w->q);
        store_close(w->store);
        scratch_free(w->dir);
        free(w->conf.timezone);
        free(w);
        return 0;
}

static void speak_as(struct world *w, const char *user, const char *name)
{
        w->by = (struct chat_caller){ .adapter = "dc",
                                      .platform = "discord",
                                      .channel = "games",
                                      .chat = CHAT_GROUP,
                                      .sender_id = user,
                                      .sender_name = name };
        w->username = NULL;
}

static int run_request(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        return calendar_request_run(tx, w->q, err);
}

/* Parses "/event ARGS"; false: refused already, and `said` says why. */
static bool prepare(struct world *w, const char *args)
{
        struct error wrong;

        calendar_request_free(w->q);
        w->q = calendar_command_parse(&w->conf, args, &wrong);
        snprintf(w->said, sizeof(w->said), "%s", wrong.text);
        if (!w->q)
                return false;
        calendar_request_set_by(w->q, &w->by);
        w->q->by.username = w->username;
        w->q->now_ms = w->q->said_ms = w->now_ms;
        w->q->answered_ms = w->answered_ms;
        w->q->withdraws = w->withdraws;
        return true;
}

static void carry_out(struct world *w)
{
        struct error err = { 0 };

        if (store_write_now(w->store, run_request, w, &err) < 0)
                fail_msg("%s", err.text);
        snprintf(w->said, sizeof(w->said), "%s",
                 calendar_request_is_refused(w->q) ? w->q->refusal.text
                 : w->q->text.data                 ? w->q->text.data
                                                   : "");
}

/* "/event ARGS" by who speaks; the answer. */
static const char *ask(struct world *w, const char *args)
{
        if (prepare(w, args))
                carry_out(w);
        return w->said;
}

static void expect(struct world *w, const char *args, const char *part)
{
        const char *said = ask(w, args);

        if (!strstr(said, part))
                fail_msg("/event %s: \"%s\" is not in \"%s\"", args, part, said);
}

/* Ann plans cal-1, and goes on speaking. */
static void plan_catan(struct world *w)
{
        speak_as(w, "1", "Ann");
        ask(w, "new friday 20:00 Catan");
}

struct new_person {
        const char *platform, *user, *name;
        int64_t person;
};

static int write_person(struct store_tx *tx, void *arg, struct error *err)
{
        struct new_person *p = arg;
        struct person_sighting s = { .identity = { p->platform, p->user },
                                     .name = p->name,
                                     .username = p->name,
                                     .adapter = p->platform,
                                     .dm_channel = "dm",
                                     .now_ms = NOW };
        int64_t id;

        if (p->person == 0 && person_row_insert(tx, NOW, &p->person, err) < 0)
                return -1;
        return person_row_add_identity(tx, &s.identity, p->person, NOW, &id, err) < 0 ||
                               person_row_update_identity(tx, id, &s, err) < 0
                       ? -1
                       : 0;
}

/* *person 0: a new one. */
static void add_person(struct world *w, const char *platform, const char *user, const char *name,
                       int64_t *person)
{
        struct new_person p = { platform, user, name, *person };
        struct error err = { 0 };

        if (store_write_now(w->store, write_person, &p, &err) < 0)
                fail_msg("%s", err.text);
        *person = p.person;
}

/* ---- planning ---- */

static void an_event_is_planned_as_people_write_it(void **state)
{
        struct world *w = *state;

        speak_as(w, "1", "Ann");
        expect(w, "new friday 20:00 Catan *night*; place Ann's; seats 4; until 23:00; remind 2h",
               "**Catan \\*night\\*** is planned: Fri 20 Nov 2026, 20:00 to 23:00 (Europe/Berlin)");
        assert_string_equal(rows_text(w->store, "title FROM calendar_events"), "Catan *night*");
        assert_int_equal(rows_number(w->store, "starts_ms FROM calendar_events"),
                         1795201200LL * 1000);
        assert_int_equal(rows_number(w->store, "ends_ms - starts_ms FROM calendar_events"),
                         3 * HOUR_MS);
        assert_int_equal(rows_number(w->store, "reminder_ms FROM calendar_events"), 2 * HOUR_MS);
        assert_string_equal(rows_text(w->store, "organizer FROM calendar_events"), "discord:1");
        /* who plans it comes */
        assert_string_equal(rows_text(w->store, "display_name FROM calendar_members"), "Ann");
        expect(w, "list", "`cal-1` **Catan \\*night\\***");
        expect(w, "", "1 of 4 seats taken");
        expect(w, "cal-1", "✅ Coming (1 of 4): Ann");
        assert_string_equal(rows_list(w->store, "type FROM journal"), "calendar.created");
}

static void the_title_may_come_before_the_time(void **state)
{
        struct world *w = *state;

        speak_as(w, "1", "Ann");
        expect(w, "new To Catan friday 20:00; seats 4",
               "**To Catan** is planned: Fri 20 Nov 2026, 20:00");
        assert_string_equal(rows_text(w->store, "title FROM calendar_events"), "To Catan");
        assert_int_equal(rows_number(w->store, "starts_ms FROM calendar_events"),
                         1795201200LL * 1000);
        expect(w, "new Catan every friday 20:00", "happens once");
}

static void mistakes_are_explained(void **state)
{
        struct world *w = *state;

        speak_as(w, "1", "Ann");
        expect(w, "nwe friday 20:00 Catan", "perhaps it means `new`");
        expect(w, "new Catan", "friday"); /* examples of times */
        expect(w, "new friday 20:00", "it needs a title");
        expect(w, "new 2020-01-01 20:00 Catan", "past");
        expect(w, "new friday 20:00 Catan; plce here", "perhaps it means place");
        expect(w, "new friday 20:00 Catan; seats many", "no number");
        expect(w, "new friday 20:00 Catan; until yesterday", "is no end");
        expect(w, "new every monday 20:00 Catan", "happens once");
        expect(w, "yes", "no event is planned here");
        expect(w, "yes cal-7", "there is no event 'cal-7' here");
        assert_int_equal(rows_count(w->store, "calendar_events"), 0);
        ask(w, "new friday 20:00 Catan");
        ask(w, "new saturday 20:00 Go");
        expect(w, "yes", "say which: `cal-1` Catan, `cal-2` Go");
}

static void the_same_request_plans_one_event(void **state)
{
        struct world *w = *state;

        speak_as(w, "1", "Ann");
        for (int i = 0; i < 2; i++) {
                assert_true(prepare(w, "new friday 20:00 Catan"));
                w->q->request_key = "k";
                carry_out(w);
                assert_int_equal(w->q->duplicate, i == 1);
                assert_int_equal(w->q->view.row->id, 1);
        }
        assert_int_equal(rows_count(w->store, "calendar_events"), 1);
        assert_int_equal(rows_count(w->store, "journal"), 1);
}

/* ---- who may ---- */

static void others_neither_see_nor_change_it(void **state)
{
        struct world *w = *state;

        plan_catan(w);
        speak_as(w, "2", "Ben");
        expect(w, "cancel cal-1", "only who planned");
        expect(w, "change cal-1 seats 2", "only who planned");
        expect(w, "remove cal-1 Ann", "only who planned");
        expect(w, "no cal-1 discord:1", "others answer for themselves");
        expect(w, "no cal-1 ann", "others answer for themselves");
        w->by.channel = "elsewhere";
        expect(w, "cal-1", "there is no event 'cal-1' here");
        expect(w, "yes cal-1", "there is no event 'cal-1' here");
        expect(w, "list", "No event is planned here");
        w->by.is_admin = true;
        expect(w, "cal-1", "Catan");
        speak_as(w, "1", "Ann"); /* belongs to it, wherever they are */
        w->by.channel = "elsewhere";
        expect(w, "cancel cal-1", "Cancelled");
        expect(w, "yes cal-1", "was cancelled");
        assert_string_equal(rows_list(w->store, "type FROM journal"),
                            "calendar.created, calendar.cancelled");
}

static void an_account_of_the_same_person_has_the_same_rights(void **state)
{
        struct world *w = *state;
        int64_t ann = 0;

        add_person(w, "discord", "1", "Ann", &ann);
        add_person(w, "telegram", "42", "ann_t", &ann);
        plan_catan(w);
        speak_as(w, "42", "Ann T");
        w->by.adapter = "tg";
        w->by.platform = "telegram";
        expect(w, "maybe cal-1", "You may come");
        assert_int_equal(rows_count(w->store, "calendar_members"), 1);
        expect(w, "change cal-1 seats 3", "Changed");
}

/* ---- seats ---- */

static void the_waiting_list_is_first_come_first_served(void **state)
{
        struct world *w = *state;
        int64_t cleo = 0;

        add_person(w, "discord", "3", "Cleo", &cleo);
        speak_as(w, "1", "Ann");
        ask(w, "new friday 20:00 Catan; seats 2");
        speak_as(w, "2", "Ben");
        expect(w, "yes", "You are coming");
        speak_as(w, "3", "Cleo");
        expect(w, "yes", "number 1 on the waiting list");
        expect(w, "yes", "number 1 on the waiting list");
        speak_as(w, "4", "Dan");
        expect(w, "yes", "number 2 on the waiting list");
        assert_int_equal(rows_count(w->store, "schedules WHERE kind = 'immediate'"), 0);
        speak_as(w, "2", "Ben");
        expect(w, "no", "You are not coming");
        assert_string_equal(rows_list(w->store,
                                      "display_name FROM calendar_members WHERE status = 'yes'"
                                      " ORDER BY id"),
                            "Ann, Cleo");
        /* and hears of it, wherever they are reached */
        assert_int_equal(rows_number(w->store, "person FROM schedules WHERE kind = 'immediate'"),
                         cleo);
        assert_non_null(strstr(rows_text(w->store, "text FROM schedules WHERE kind = 'immediate'"),
                               "A seat is free"));
        /* the chat, if nowhere else */
        assert_non_null(strstr(rows_text(w->store, "options FROM schedules WHERE person = 1"
                                                   " AND channel IS NOT NULL"),
                               "\"mention\":\"3\",\"chatLast\":true"));
        /* more seats: Dan comes, too, and is told in the chat, being nobody we know */
        speak_as(w, "1", "Ann");
        ask(w, "change seats 3");
        assert_string_equal(
                rows_text(w->store, "status FROM calendar_members WHERE external_id = '4'"), "yes");
        assert_non_null(strstr(rows_text(w->store, "options FROM schedules WHERE person IS NULL"
                                                   " AND kind = 'immediate'"),
                               "\"mention\":\"4\""));
        expect(w, "change seats 2", "3 people have a seat already");
        expect(w, "remove cal-1 discord:4", "Removed");
        expect(w, "change seats 2", "Changed");
}

/* Every rule of seats and waiting list, in whatever order people answer. */
static void check_seats(struct world *w)
{
        int64_t seats = rows_number(w->store, "capacity FROM calendar_events");
        int64_t yes = rows_count(w->store, "calendar_members WHERE status = 'yes'");
        int64_t waiting = rows_count(w->store, "calendar_members WHERE status = 'waiting'");

        if (seats > 0 && yes > seats)
                fail_msg("%lld people in %lld seats", (long long)yes, (long long)seats);
        if (waiting > 0 && (seats == 0 || yes < seats))
                fail_msg("%lld wait, and %lld of %lld seats are taken", (long long)waiting,
                         (long long)yes, (long long)seats);
        assert_int_equal(rows_count(w->store, "calendar_members WHERE status = 'waiting'"
                                              " AND queue_no IS NULL"),
                         0);
        assert_int_equal(rows_count(w->store, "calendar_members WHERE status <> 'waiting'"
                                              " AND queue_no IS NOT NULL"),
                         0);
        assert_int_equal(rows_number(w->store, "count(*) - count(DISTINCT queue_no)"
                                               " FROM calendar_members WHERE status = 'waiting'"),
                         0);
}

#define FIRST_WAITING "id FROM calendar_members WHERE status = 'waiting' ORDER BY queue_no LIMIT 1"

struct waits_query {
        int64_t id;
        bool waits;
};

static int read_waits(struct store_tx *tx, void *arg, struct error *err)
{
        struct waits_query *q = arg;
        struct calendar_member_row *m;
        int rc = calendar_member_row_get(tx, q->id, &m, err);

        q->waits = rc == 1 && m->answer == ANSWER_WAITING;
        free(m);
        return rc < 0 ? -1 : 0;
}

static bool still_waits(struct world *w, int64_t member)
{
        struct waits_query q = { .id = member };
        struct error err = { 0 };

        assert_int_equal(store_read_now(w->store, read_waits, &q, &err), 0);
        return q.waits;
}

static void seats_are_never_exceeded_in_any_order_of_answers(void **state)
{
        static const char *const says[] = { "yes", "yes", "yes", "no", "maybe" };
        struct world *w = *state;
        unsigned seed = 1;
        int64_t first_waiting = 0;

        speak_as(w, "0", "Ann");
        ask(w, "new friday 20:00 Catan; seats 3");
        for (int i = 0; i < 1500; i++) {
                unsigned dice = (unsigned)rand_r(&seed);
                char user[8], args[40];

                snprintf(user, sizeof(user), "%u", dice % 9);
                speak_as(w, user, user);
                w->withdraws = dice / 9 % 11 == 0;
                w->answered_ms = dice / 9 % 13 == 0 ? NOW : 0;
                snprintf(args, sizeof(args), "%s", says[dice / 100 % 5]);
                if (dice / 9 % 17 == 0) {
                        speak_as(w, "0", "Ann");
                        snprintf(args, sizeof(args), "change seats %u", dice / 100 % 6);
                }
                if (dice / 9 % 19 == 0)
                        snprintf(args, sizeof(args), "yes cal-1 Guest%u", dice / 100 % 4);
                first_waiting = rows_number(w->store, FIRST_WAITING);
                assert_true(prepare(w, args));
                if (dice / 7 % 3 == 0) { /* the report of another writer comes between */
                        w->q->dry = true;
                        carry_out(w);
                        w->q->dry = false;
                }
                carry_out(w);
                w->withdraws = false;
                w->answered_ms = 0;
                check_seats(w);
                /* nobody overtakes who waits longest */
                if (first_waiting > 0 && still_waits(w, first_waiting))
                        assert_int_equal(rows_number(w->store, FIRST_WAITING), first_waiting);
        }
        assert_true(rows_count(w->store, "journal WHERE type = 'calendar.answered'") > 100);
}

/* ---- people without an account, and those who get one ---- */

static void people_are_invited_by_any_name(void **state)
{
        struct world *w = *state;
        int64_t cleo = 0;

        add_person(w, "discord", "3", "cleo", &cleo);
        plan_catan(w);
        expect(w, "invite @cleo, <@7>, telegram:55, Bob Smith, @dora",
               "Invited: cleo, discord:7, telegram:55, Bob Smith, @dora.");
        expect(w, "invite per-1 bob", "Already known: cleo");
        assert_string_equal(
                rows_list(w->store, "external_source FROM calendar_members ORDER BY id"),
                "discord, discord, discord, telegram, name, name, name");
        assert_int_equal(rows_number(w->store, "user_id FROM calendar_members WHERE"
                                               " external_id = '3'"),
                         cleo);
        /* Cleo gets it with buttons; 7 is mentioned in the chat; nobody knows the others */
        assert_non_null(strstr(rows_text(w->store, "options FROM schedules WHERE person = 1"),
                               "say:/event yes cal-1"));
        assert_int_equal(rows_count(w->store, "schedules WHERE kind = 'immediate'"), 2);
        expect(w, "invite per-99", "there is no person 'per-99'");
        /* Dora has an account after all */
        speak_as(w, "9", "Dora");
        w->username = "dora";
        expect(w, "yes", "You are coming");
        assert_int_equal(rows_count(w->store, "calendar_members"), 7);
        assert_string_equal(rows_text(w->store, "external_source FROM calendar_members"
                                                " WHERE external_id = '9'"),
                            "discord");
        expect(w, "yes cal-1 Bob Smith", "Bob Smith is coming");
        expect(w, "cal-1", "✅ Coming (3): Ann, Bob Smith, Dora");
}

static void an_invitation_is_written_for_all_or_none(void **state)
{
        struct world *w = *state;

        speak_as(w, "1", "Ann");
        expect(w, "new friday 20:00 Catan; invite Bob, per-99", "there is no person 'per-99'");
        assert_int_equal(rows_count(w->store, "calendar_events"), 0);
        expect(w, "new friday 20:00 Catan; invite Bob", "Invited: Bob");
        expect(w, "invite Carl, per-99", "there is no person 'per-99'");
        expect(w,
               "invite a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7 8 9 0 aa"
               " ab ac ad ae af ag ah ai aj ak al am an ao ap",
               "up to 50 people");
        assert_int_equal(rows_count(w->store, "calendar_members"), 2);
}

/* ---- reminders and news ---- */

/* How many are still to come. */
static int64_t reminders(struct world *w)
{
        return rows_count(w->store, "schedules WHERE kind = 'one-shot' AND state = 'active'");
}

static void reminders_follow_the_event_and_its_members(void **state)
{
        struct world *w = *state;
        int64_t eve = 0;

        add_person(w, "telegram", "42", "Eve", &eve);
        plan_catan(w);
        assert_int_equal(rows_number(w->store, "next_ms FROM schedules"),
                         1795201200LL * 1000 - HOUR_MS);
        assert_string_equal(rows_text(w->store, "channel FROM schedules"), "games");
        ask(w, "invite telegram:42");
        speak_as(w, "42", "Eve");
        w->by.adapter = "tg";
        w->by.platform = "telegram";
        w->by.channel = "42";
        expect(w, "yes cal-1", "You are coming");
        /* not in the chat of the event: reminded on their own */
        assert_int_equal(reminders(w), 2);
        assert_non_null(strstr(rows_text(w->store, "text FROM schedules WHERE kind = 'one-shot'"
                                                   " AND person IS NULL"),
                               "Coming: Ann, Eve"));
        speak_as(w, "1", "Ann");
        ask(w, "move cal-1 saturday 20:00");
        assert_int_equal(reminders(w), 2);
        assert_int_equal(rows_number(w->store, "min(next_ms) FROM schedules"
                                               " WHERE kind = 'one-shot' AND state = 'active'"),
                         1795201200LL * 1000 + 23 * HOUR_MS);
        /* the chat and Eve hear of the new time: and Eve was invited */
        assert_int_equal(rows_count(w->store, "schedules WHERE kind = 'immediate'"), 3);
        ask(w, "change cal-1 remind off");
        assert_int_equal(reminders(w), 0);
        ask(w, "change cal-1 remind 1d");
        assert_int_equal(reminders(w), 2);
        ask(w, "cancel");
        assert_int_equal(reminders(w), 0);
        assert_int_equal(rows_count(w->store, "schedules WHERE kind = 'immediate'"), 5);
}

static const char *answer_of_ben(struct world *w)
{
        return rows_text(w->store, "status FROM calendar_members WHERE external_id = '2'");
}

static void an_answer_that_is_told_again_does_not_count_again(void **state)
{
        struct world *w = *state;

        plan_catan(w);
        speak_as(w, "2", "Ben");
        w->answered_ms = NOW + 1000;
        ask(w, "yes");
        w->answered_ms = 0;
        w->now_ms = NOW + 2000;
        ask(w, "no");
        w->answered_ms = NOW + 1000; /* the first once more */
        ask(w, "yes");
        assert_string_equal(answer_of_ben(w), "no");
        w->answered_ms = NOW + 3000; /* a reaction that is taken back, of an answer that is not */
        w->withdraws = true;
        ask(w, "yes");
        assert_string_equal(answer_of_ben(w), "no");
        ask(w, "no");
        assert_string_equal(answer_of_ben(w), "invited");
}

/* ---- what it looks like ---- */

static int load_first(struct store_tx *tx, void *arg, struct error *err)
{
        return calendar_view_load(tx, 1, arg, err) == 1 ? 0 : -1;
}

static void long_lists_fit_into_one_message(void **state)
{
        struct world *w = *state;
        struct calendar_view v;
        struct error err = { 0 };
        struct buf b;

        speak_as(w, "1", "Ann");
        assert_true(prepare(w, "new friday 20:00 Catan"));
        w->q->fields.description = mem_strdup("");
        carry_out(w);
        free((char *)(uintptr_t)w->q->fields.description);
        for (int i = 0; i < 60; i++) {
                char user[20], name[200];

                snprintf(user, sizeof(user), "%d", 100 + i);
                snprintf(name, sizeof(name), "%s%d", "A name with *stars* and more of the same ",
                         i);
                speak_as(w, user, name);
                ask(w, i % 2 ? "yes" : "maybe");
        }
        assert_int_equal(store_read_now(w->store, load_first, &v, &err), 0);
        buf_init(&b, 0);
        calendar_view_announcement(&v, &b);
        assert_non_null(strstr(b.data, "and 19 more"));
        assert_true(b.len < 2000); /* Discord's limit; an edit in parts would send new messages */
        buf_clear(&b);
        calendar_view_buttons(v.row, &b);
        assert_non_null(strstr(b.data, "\"data\":\"say:/event maybe cal-1\""));
        buf_clear(&b);
        calendar_view_ics(&b, ICS_STORED, &v);
        assert_non_null(strstr(b.data, "SUMMARY:Catan"));
        buf_release(&b);
        calendar_view_release(&v);
}

static int check_feed(struct store_tx *tx, void *arg, struct error *err)
{
        char first[CALENDAR_TOKEN_SIZE], second[CALENDAR_TOKEN_SIZE];
        struct buf b;

        (void)arg;
        assert_int_equal(calendar_feed_check(tx, "", err), 0);
        assert_int_equal(calendar_feed_renew(tx, first, err), 0);
        assert_int_equal(calendar_feed_check(tx, first, err), 1);
        assert_int_equal(calendar_feed_renew(tx, second, err), 0);
        assert_int_equal(calendar_feed_check(tx, first, err), 0);
        assert_int_equal(calendar_feed_check(tx, second, err), 1);
        assert_int_equal(calendar_feed_disable(tx, err), 0);
        assert_int_equal(calendar_feed_check(tx, second, err), 0);
        assert_int_equal(calendar_feed_check(tx, "", err), 0);
        buf_init(&b, 0);
        assert_int_equal(calendar_feed_write(tx, NOW, &b, err), 0);
        assert_non_null(strstr(b.data, "SUMMARY:Catan"));
        assert_non_null(strstr(b.data, "STATUS:CANCELLED"));
        buf_release(&b);
        return 0;
}

static void the_feed_has_one_token_that_can_be_renewed(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };

        plan_catan(w);
        ask(w, "cancel");
        assert_int_equal(store_write_now(w->store, check_feed, w, &err), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(an_event_is_planned_as_people_write_it),
                TEST(the_title_may_come_before_the_time),
                TEST(mistakes_are_explained),
                TEST(the_same_request_plans_one_event),
                TEST(others_neither_see_nor_change_it),
                TEST(an_account_of_the_same_person_has_the_same_rights),
                TEST(the_waiting_list_is_first_come_first_served),
                TEST(seats_are_never_exceeded_in_any_order_of_answers),
                TEST(people_are_invited_by_any_name),
                TEST(an_invitation_is_written_for_all_or_none),
                TEST(reminders_follow_the_event_and_its_members),
                TEST(an_answer_that_is_told_again_does_not_count_again),
                TEST(long_lists_fit_into_one_message),
                TEST(the_feed_has_one_token_that_can_be_renewed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
