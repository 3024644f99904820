/* Messages of ticks: which address gets them, once, and what becomes of those that fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "base/clock.h"
#include "base/mem.h"
#include "rows/person_row.h"
#include "rows/schedule_row.h"
#include "schedule/schedule.h"

struct world {
        struct rig *g;
        struct schedule *schedule;
        struct schedule_conf conf;
        int64_t ann, boss;
        struct schedule_row row; /* to be added */
};

/* ---- people ---- */

static void add_account(struct store_tx *tx, int64_t person, const char *adapter, const char *user,
                        const char *name, int64_t seen_ms)
{
        char *chat = mem_printf("dm-%s", user);
        struct person_sighting s = { .identity = { adapter, user },
                                     .name = name,
                                     .adapter = adapter,
                                     .dm_channel = chat,
                                     .now_ms = seen_ms };
        int64_t id;

        assert_int_equal(person_row_add_identity(tx, &s.identity, person, seen_ms, &id, NULL), 0);
        assert_int_equal(person_row_update_identity(tx, id, &s, NULL), 0);
        free(chat);
}

/* Ann was seen last on "nonce", before that on "x"; the boss is an admin. */
static int add_people(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;

        (void)err;
        assert_int_equal(person_row_insert(tx, 1, &w->ann, NULL), 0);
        assert_int_equal(person_row_insert(tx, 1, &w->boss, NULL), 0);
        add_account(tx, w->ann, "nonce", "ann", "Ann", 2000);
        add_account(tx, w->ann, "x", "ann7", "Ann", 1000);
        add_account(tx, w->boss, "look", "admin", "Boss", 1000);
        return 0;
}

/* ---- the schedule ---- */

static int64_t person_of(void *arg, const char *platform, const char *user)
{
        (void)arg;
        (void)platform;
        (void)user;
        return 0;
}

static bool adapter_at(void *arg, size_t i, const char **name, const char **platform)
{
        static const char *const names[] = { "j", "x", "nonce", "look", "named", "plans" };

        (void)arg;
        if (i >= COUNT(names))
                return false;
        *name = *platform = names[i];
        return true;
}

static void open_schedule(struct world *w)
{
        struct schedule_env env = { .loop = w->g->loop,
                                    .store = w->g->store,
                                    .bus = w->g->bus,
                                    .road = w->g->road,
                                    .dir = w->g->dir,
                                    .person_of = person_of,
                                    .adapter_at = adapter_at };
        struct error err = { 0 };

        w->schedule = schedule_open(&env, &w->conf, &err);
        if (!w->schedule)
                fail_msg("%s", err.text);
        schedule_start(w->schedule);
}

static void run(struct world *w, store_fn *fn)
{
        struct error err = { 0 };

        if (store_write_now(w->g->store, fn, w, &err) != 0)
                fail_msg("%s", err.text);
}

static int setup(void **state)
{
        static char missed[] = "once", zone[] = "UTC";
        struct world *w = mem_zalloc(sizeof(*w));

        w->g = rig_new();
        w->conf = (struct schedule_conf){ .enabled = true,
                                          .timezone = zone,
                                          .missed = missed,
                                          .pending = 1000,
                                          .pending_per_person = 100,
                                          .daily_cap = 2,
                                          .fallback_seconds = 600 };
        run(w, add_people);
        open_schedule(w);
        w->row = (struct schedule_row){ .source = "notice",
                                        .name = "news",
                                        .kind = SCHEDULE_IMMEDIATE,
                                        .action = SCHEDULE_MESSAGE,
                                        .person = w->ann,
                                        .text = "the build is red",
                                        .state = SCHEDULE_ACTIVE };
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        schedule_close(w->schedule);
        rig_free(w->g);
        free(w);
        return 0;
}

static void restart(struct world *w)
{
        schedule_close(w->schedule);
        rig_restart(w->g);
        open_schedule(w);
}

static int add_row(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;
        int64_t id;

        w->row.created_ms = w->row.next_ms = clock_wall_ms();
        return schedule_row_insert(tx, &w->row, &id, err) < 0 ? -1 : 0;
}

static void add(struct world *w)
{
        run(w, add_row);
        schedule_wake(w->schedule);
}

static void expect_sent(const struct world *w, unsigned i, const char *adapter, const char *channel,
                        const char *text)
{
        const struct rig_sent *s = &w->g->sent[i];

        assert_string_equal(s->adapter, adapter);
        assert_string_equal(s->channel, channel);
        if (text)
                assert_string_equal(s->text, text);
}

/* ---- tests ---- */

static void a_message_goes_to_the_latest_chat(void **state)
{
        struct world *w = *state;

        w->g->auto_send = true;
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        assert_int_equal(w->g->sent_count, 1);
        expect_sent(w, 0, "nonce", "dm-ann", "the build is red");
        assert_string_equal(rig_text(w->g, "note FROM ticks"), "sent to nonce/dm-ann");
        assert_string_equal(rig_text(w->g, "request_key FROM deliveries"), "tick:1:0");
}

static void a_chat_that_refuses_leads_to_the_next_once(void **state)
{
        struct world *w = *state;

        add(w);
        rig_until(w->g, &w->g->sent_count, 1);
        rig_result(w->g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until(w->g, &w->g->sent_count, 2);
        expect_sent(w, 1, "x", "dm-ann7", "the build is red");
        rig_result(w->g, 1, SEND_DONE, ERR_NONE, -1);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        rig_settle(w->g);
        assert_int_equal(w->g->sent_count, 2);
        assert_int_equal(rig_number(w->g, "address FROM ticks"), 2);
        /* the first is no dead letter: it would be sent twice */
        assert_string_equal(rig_list(w->g, "state FROM deliveries ORDER BY id"),
                            "superseded, sent");
        assert_int_equal(rig_count(w->g, "journal WHERE type = 'schedule.failed'"), 0);
}

static void a_message_in_parts_is_done_when_all_have_arrived(void **state)
{
        struct world *w = *state;

        w->row.text = "one|two|three";
        add(w);
        for (unsigned i = 0; i < 2; i++) {
                rig_until(w->g, &w->g->sent_count, i + 1);
                rig_result(w->g, i, SEND_DONE, ERR_NONE, -1);
        }
        rig_until(w->g, &w->g->sent_count, 3);
        rig_settle(w->g);
        assert_string_equal(rig_text(w->g, "state FROM ticks"), "running");
        restart(w); /* the last part is sent again with its number */
        rig_until(w->g, &w->g->sent_count, 4);
        expect_sent(w, 3, "nonce", "dm-ann", "three");
        rig_settle(w->g);
        assert_string_equal(rig_text(w->g, "state FROM ticks"), "running");
        rig_result(w->g, 3, SEND_DONE, ERR_NONE, -1);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        assert_string_equal(rig_text(w->g, "note FROM ticks"), "sent to nonce/dm-ann");
}

/* What has begun to arrive goes nowhere else, and its end is not sent without its middle. */
static void a_part_that_is_refused_fails_the_tick(void **state)
{
        struct world *w = *state;

        w->row.text = "one|two|three";
        add(w);
        rig_until(w->g, &w->g->sent_count, 1);
        rig_result(w->g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until(w->g, &w->g->sent_count, 2);
        rig_result(w->g, 1, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_count(w->g, "ticks WHERE state = 'failed'", 1);
        assert_string_equal(rig_text(w->g, "note FROM ticks"),
                            "part 2 of 3: nonce/dm-ann: the test says so");
        rig_settle(w->g);
        assert_int_equal(rig_count(w->g, "journal WHERE type = 'schedule.failed'"), 1);
        assert_int_equal(rig_count(w->g, "deliveries WHERE adapter != 'nonce'"), 0);
        assert_int_equal(rig_count(w->g, "deliveries WHERE state = 'failed'"), 1);
}

static void parts_wait_for_an_adapter_that_stops_in_between(void **state)
{
        struct world *w = *state;

        w->conf.fallback_seconds = 1;
        schedule_set_conf(w->schedule, &w->conf);
        w->row.text = "one|two";
        add(w);
        rig_until(w->g, &w->g->sent_count, 1);
        w->g->down = "nonce";
        rig_result(w->g, 0, SEND_DONE, ERR_NONE, -1);
        rig_run_for(w->g, 1500);
        assert_string_equal(rig_text(w->g, "state FROM ticks"), "running");
        w->g->auto_send = true;
        w->g->down = NULL;
        outbox_wake(w->g->road, "nonce");
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        expect_sent(w, 1, "nonce", "dm-ann", "two");
        assert_int_equal(w->g->sent_count, 2);
}

static void an_adapter_that_is_stopped_leads_to_the_next(void **state)
{
        struct world *w = *state;

        w->g->auto_send = true;
        w->g->down = "nonce";
        w->conf.fallback_seconds = 1;
        schedule_set_conf(w->schedule, &w->conf);
        w->row.text = "one|two";
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        assert_int_equal(w->g->sent_count, 2);
        expect_sent(w, 0, "x", "dm-ann7", "one");
        expect_sent(w, 1, "x", "dm-ann7", "two");
        /* it is back, and sends nothing */
        w->g->down = NULL;
        outbox_wake(w->g->road, "nonce");
        rig_settle(w->g);
        assert_int_equal(w->g->sent_count, 2);
        assert_string_equal(rig_list(w->g, "state FROM deliveries ORDER BY id"),
                            "expired, expired, sent, sent");
}

static void without_another_address_a_message_waits(void **state)
{
        struct world *w = *state;

        w->g->auto_send = true;
        w->g->down = "look";
        w->row.person = w->boss;
        w->conf.fallback_seconds = 1;
        schedule_set_conf(w->schedule, &w->conf);
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'running' AND delivery IS NOT NULL", 1);
        rig_run_for(w->g, 1500);
        assert_string_equal(rig_text(w->g, "state FROM deliveries"), "queued");
        w->g->down = NULL;
        outbox_wake(w->g->road, "look");
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        assert_int_equal(w->g->sent_count, 1);
}

static void what_may_have_arrived_goes_nowhere_else(void **state)
{
        struct world *w = *state;

        rig_update(w->g, "persons SET reach_at = 'x' WHERE id = ?1", w->ann, 0);
        add(w);
        rig_until(w->g, &w->g->sent_count, 1);
        expect_sent(w, 0, "x", "dm-ann7", NULL);
        rig_result(w->g, 0, SEND_UNSURE, ERR_NET, -1);
        rig_until_count(w->g, "ticks WHERE state = 'failed'", 1);
        rig_settle(w->g);
        assert_int_equal(w->g->sent_count, 1);
        assert_non_null(strstr(rig_text(w->g, "note FROM ticks"), "it may have arrived at x/"));
        assert_int_equal(rig_count(w->g, "journal WHERE type = 'schedule.failed'"), 1);
}

static void a_message_under_way_at_a_restart_is_waited_for(void **state)
{
        struct world *w = *state;

        add(w);
        rig_until(w->g, &w->g->sent_count, 1);
        rig_until_count(w->g, "ticks WHERE delivery IS NOT NULL", 1);
        restart(w); /* "nonce" is idempotent: it is sent again with its number */
        rig_until(w->g, &w->g->sent_count, 2);
        assert_int_equal(w->g->sent[1].delivery, w->g->sent[0].delivery);
        rig_result(w->g, 1, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until(w->g, &w->g->sent_count, 3);
        expect_sent(w, 2, "x", "dm-ann7", NULL);
        rig_result(w->g, 2, SEND_DONE, ERR_NONE, -1);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
}

/* The process ends after the send was stored, and before the tick knows. */
static void a_message_that_was_sent_before_a_restart_is_done(void **state)
{
        struct world *w = *state;

        add(w);
        rig_until(w->g, &w->g->sent_count, 1);
        rig_until_count(w->g, "ticks WHERE delivery IS NOT NULL", 1);
        schedule_close(w->schedule);
        rig_result(w->g, 0, SEND_DONE, ERR_NONE, -1);
        rig_until_count(w->g, "deliveries WHERE state = 'sent'", 1);
        rig_restart(w->g);
        assert_string_equal(rig_text(w->g, "state FROM ticks"), "running");
        /* as if the delivery were not known either: the request key finds it */
        rig_update(w->g, "ticks SET delivery = NULL, address = 0", 0, 0);
        open_schedule(w);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        assert_int_equal(w->g->sent_count, 1);
        assert_int_equal(rig_count(w->g, "deliveries"), 1);
}

static void quiet_hours_defer_a_notice_and_not_what_was_asked_for(void **state)
{
        struct world *w = *state;
        int64_t now = clock_wall_ms();
        int minute = (int)(now / 60000 % 1440);
        char range[40], *list[] = { range };

        snprintf(range, sizeof(range), "%02d:%02d-%02d:%02d", (minute + 1380) % 1440 / 60,
                 minute % 60, (minute + 60) % 1440 / 60, minute % 60);
        w->conf.quiet_hours = (struct setting_list){ list, 1, true };
        schedule_set_conf(w->schedule, &w->conf);
        w->g->auto_send = true;
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'pending' AND not_before_ms > due_ms", 1);
        assert_string_equal(rig_text(w->g, "note FROM ticks"), "quiet hours of 'per-1'");
        assert_in_range(rig_number(w->g, "not_before_ms FROM ticks"), now + 59 * 60000,
                        now + 60 * 60000);
        w->row.options = "{\"askedBySelf\":true}";
        w->row.source = "reminder";
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        assert_int_equal(w->g->sent_count, 1);
        expect_sent(w, 0, "nonce", "dm-ann", "⏰ the build is red");
}

static void the_daily_cap_ends_what_nobody_asked_for(void **state)
{
        struct world *w = *state;
        char zone[20]; /* in which it is about noon: no day ends during the test */

        snprintf(zone, sizeof(zone), "Etc/GMT%+d", (int)(clock_wall_ms() / 3600000 % 24) - 12);
        w->conf.timezone = zone;
        schedule_set_conf(w->schedule, &w->conf);
        w->g->auto_send = true;
        w->row.source = "api";
        for (int i = 0; i < 3; i++)
                add(w);
        rig_until_count(w->g, "ticks WHERE state = 'failed'", 1);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 2);
        assert_string_equal(rig_text(w->g, "note FROM ticks WHERE state = 'failed'"),
                            "nobody was reached: 'per-1' gets no more than 2 unasked messages a "
                            "day (schedule.dailyCap)");
        assert_int_equal(w->g->sent_count, 2);
}

static void another_attempt_is_not_counted(void **state)
{
        struct world *w = *state;

        w->conf.daily_cap = 1;
        schedule_set_conf(w->schedule, &w->conf);
        w->g->auto_send = true;
        w->g->down = "nonce";
        w->g->limits.open_deliveries = 1;
        road_set_limits(w->g->road, &w->g->limits);
        w->row.options = "{\"askedBySelf\":true}";
        add(w);
        rig_until_count(w->g, "deliveries", 1);
        w->row.options = NULL;
        w->row.source = "api";
        add(w); /* there is no room for it */
        rig_until_count(w->g, "persons WHERE notice_count = 1", 1);
        rig_settle(w->g);
        assert_int_equal(rig_count(w->g, "deliveries"), 1);
        w->g->down = NULL;
        outbox_wake(w->g->road, "nonce");
        rig_until_count(w->g, "ticks WHERE state IN ('done', 'failed')", 2);
        assert_string_equal(rig_text(w->g, "note FROM ticks WHERE schedule = 2"),
                            "sent to nonce/dm-ann");
}

static int add_carl(struct store_tx *tx, void *arg, struct error *err)
{
        struct world *w = arg;
        struct person_sighting s = {
                .identity = { "plans", "carl" }, .name = "Carl", .adapter = "plans", .now_ms = 1000
        };
        int64_t id;

        if (person_row_insert(tx, 1, &w->row.person, err) < 0 ||
            person_row_add_identity(tx, &s.identity, w->row.person, 1000, &id, err) < 0)
                return -1;
        return person_row_update_identity(tx, id, &s, err);
}

static void somebody_seen_only_in_groups_is_reached_directly(void **state)
{
        struct world *w = *state;

        run(w, add_carl);
        add(w);
        rig_until(w->g, &w->g->sent_count, 1);
        expect_sent(w, 0, "plans", "user:carl", "the build is red");
        rig_result(w->g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_count(w->g, "ticks WHERE state = 'failed'", 1);
        assert_int_equal(rig_count(w->g, "deliveries WHERE adapter = 'plans'"), 1);
}

static void the_operator_hears_who_was_not_reached(void **state)
{
        struct world *w = *state;

        rig_update(w->g, "identity_chats SET channel = 'gone' WHERE adapter = 'x'", 0, 0);
        add(w);
        for (unsigned i = 0; i < 2; i++) {
                rig_until(w->g, &w->g->sent_count, i + 1);
                rig_result(w->g, i, SEND_REJECTED, ERR_REFUSED, -1);
        }
        rig_until(w->g, &w->g->sent_count, 3);
        expect_sent(w, 2, "look", "dm-admin",
                    "I could not reach Ann (per-1) with `sch-1`: x/gone: the test says so.");
        rig_result(w->g, 2, SEND_DONE, ERR_NONE, -1);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        assert_string_equal(rig_text(w->g, "note FROM ticks WHERE state = 'failed'"),
                            "nobody was reached: x/gone: the test says so");
        rig_settle(w->g);
        assert_int_equal(w->g->sent_count, 3);
}

static void what_is_for_nobody_is_for_the_operator(void **state)
{
        struct world *w = *state;

        w->g->auto_send = true;
        w->row.person = 0;
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        expect_sent(w, 0, "look", "dm-admin", "the build is red");
}

static void a_chat_is_named_where_it_was_asked(void **state)
{
        struct world *w = *state;

        w->g->auto_send = true;
        w->row.source = "reminder";
        w->row.adapter = "x";
        w->row.channel = "group";
        w->row.options = "{\"askedBySelf\":true,\"mention\":\"ann7\"}";
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        expect_sent(w, 0, "x", "group", "⏰ @ann7: the build is red");
        /* committing is sending */
        w->row.adapter = "j";
        w->row.person = 0;
        w->row.options = NULL;
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 2);
        assert_int_equal(w->g->sent_count, 1);
}

/* A seat that becomes free: for the person, else in the chat of the event. */
static void the_chat_of_an_event_is_the_last_address(void **state)
{
        struct world *w = *state;

        w->row.source = "calendar";
        w->row.adapter = "x";
        w->row.channel = "group";
        w->row.options = "{\"mention\":\"ann7\",\"chatLast\":true}";
        add(w);
        for (unsigned i = 0; i < 2; i++) {
                rig_until(w->g, &w->g->sent_count, i + 1);
                rig_result(w->g, i, SEND_REJECTED, ERR_REFUSED, -1);
        }
        rig_until(w->g, &w->g->sent_count, 3);
        expect_sent(w, 0, "nonce", "dm-ann", "the build is red");
        expect_sent(w, 1, "x", "dm-ann7", "the build is red");
        expect_sent(w, 2, "x", "group", "@ann7: the build is red");
        rig_result(w->g, 2, SEND_DONE, ERR_NONE, -1);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
}

static void who_never_wrote_directly_is_named(void **state)
{
        struct world *w = *state;

        w->g->auto_send = true;
        rig_update(w->g, "identity_chats SET identity = 3", 0, 0); /* the boss's */
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'failed'", 1);
        assert_string_equal(rig_text(w->g, "note FROM ticks WHERE state = 'failed'"),
                            "nobody was reached: they have not written to the bot directly on "
                            "'nonce'");
}

static void a_chat_that_is_gone_ends_the_tick(void **state)
{
        struct world *w = *state;

        w->row.person = 0;
        w->row.adapter = "missing";
        w->row.channel = "c";
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'failed'", 1);
        assert_string_equal(rig_text(w->g, "note FROM ticks"),
                            "nobody was reached: there is no adapter 'missing'");
        w->row.adapter = "x";
        add(w);
        rig_until(w->g, &w->g->sent_count, 1);
        rig_result(w->g, 0, SEND_REJECTED, ERR_REFUSED, -1);
        rig_until_count(w->g, "ticks WHERE state = 'failed'", 2);
        /* a dead letter, which can be sent again */
        assert_string_equal(rig_text(w->g, "state FROM deliveries"), "failed");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Slack keeps "/event" for itself; what a person wrote stays as it is. */
static void an_invitation_names_commands_that_work_there(void **state)
{
        struct world *w = *state;

        w->g->auto_send = true;
        w->row.person = 0;
        w->row.adapter = "named";
        w->row.channel = "c";
        w->row.source = "calendar";
        w->row.text = "write `/event yes cal-3`";
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 1);
        expect_sent(w, 0, "named", "c", "write `/dragoman event yes cal-3`");
        w->row.source = "api";
        w->row.text = "clean `/tmp`";
        add(w);
        rig_until_count(w->g, "ticks WHERE state = 'done'", 2);
        expect_sent(w, 1, "named", "c", "clean `/tmp`");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_message_goes_to_the_latest_chat),
                TEST(a_chat_that_refuses_leads_to_the_next_once),
                TEST(a_message_in_parts_is_done_when_all_have_arrived),
                TEST(a_part_that_is_refused_fails_the_tick),
                TEST(parts_wait_for_an_adapter_that_stops_in_between),
                TEST(an_adapter_that_is_stopped_leads_to_the_next),
                TEST(without_another_address_a_message_waits),
                TEST(what_may_have_arrived_goes_nowhere_else),
                TEST(a_message_under_way_at_a_restart_is_waited_for),
                TEST(a_message_that_was_sent_before_a_restart_is_done),
                TEST(quiet_hours_defer_a_notice_and_not_what_was_asked_for),
                TEST(the_daily_cap_ends_what_nobody_asked_for),
                TEST(another_attempt_is_not_counted),
                TEST(somebody_seen_only_in_groups_is_reached_directly),
                TEST(the_operator_hears_who_was_not_reached),
                TEST(what_is_for_nobody_is_for_the_operator),
                TEST(a_chat_is_named_where_it_was_asked),
                TEST(the_chat_of_an_event_is_the_last_address),
                TEST(who_never_wrote_directly_is_named),
                TEST(a_chat_that_is_gone_ends_the_tick),
                TEST(an_invitation_names_commands_that_work_there),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
