/* Looking for sends that may have arrived: what the exchanges with the simulator cannot show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/telegram/telegram.h"
#include "telegram_rig.h"

#define OWN     NO("400", "Bad Request: message is not modified: specified new message content")
#define NOTHING NO("400", "Bad Request: message to edit not found")
#define SENT                                                                         \
        "{\"ok\":true,\"result\":{\"message_id\":501,\"date\":1,\"chat\":{\"id\":7," \
        "\"type\":\"private\"}}}"
#define GROUP "-1001234567890"

/* As rig_connect; what was sent is looked for at once. */
static void connect_now(struct rig *g)
{
        static const char *const greeting[] = { ME, NO_HOOK, NONE, NULL };

        says_first(g, greeting, COUNT(greeting));
        rig_open(g, ",\"reconcileAfterMs\":0");
        for (int i = 0; i < 10000 && fake_server_requests(g->server) < 4; i++)
                loop_step(g->loop, true);
        assert_int_equal(rig_adapter(g)->state, ADAPTER_UP);
}

static struct telegram *telegram_of(struct rig *g)
{
        return rig_adapter(g)->self;
}

static const struct delivery hello = { .kind = DELIVER_SEND,
                                       .channel = "7",
                                       .payload = "{\"text\":\"a\"}" };

static void look(struct rig *g, const char *channel, const char *read_from)
{
        struct delivery d = hello;

        d.id = 42;
        d.fence = 5;
        d.adapter = g->name;
        d.channel = channel;
        d.read_from = read_from;
        d.reconcile_until_ms = loop_now_ms(g->loop) + 60000;
        adapters_reconcile(g->adapters, &d);
}

static void a_send_under_way_is_cut_before_it_is_looked_for(void **state)
{
        struct rig *g = *state;

        says(g, 200, NULL);
        says(g, 400, OWN);
        connect_now(g);
        rig_send(g, hello);
        rig_requests(g, 5);
        look(g, "7", "7:5");
        assert_true(TAILQ_EMPTY(&telegram_of(g)->sends));
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, "6");
}

static void an_answer_that_comes_too_late_is_not_taken_for_another_message(void **state)
{
        struct rig *g = *state;

        says(g, 200, SENT);
        connect_now(g);
        fake_road.ignores_results = true;
        rig_send(g, hello);
        rig_sent(g);
        assert_false(tg_ids_known(telegram_of(g), "7", 501));
}

static void a_find_that_comes_too_late_is_not_taken_for_another_message(void **state)
{
        struct rig *g = *state;

        says(g, 400, OWN);
        connect_now(g);
        fake_road.ignores_results = true;
        look(g, "7", "7:5");
        rig_sent(g);
        assert_false(tg_ids_known(telegram_of(g), "7", 6));
}

/* Message 6 was written before ours, but its update came after a poll without updates. */
static void a_late_update_is_no_proof_that_nothing_arrived(void **state)
{
        struct rig *g = *state;

        says(g, 400, OWN);
        connect_now(g);
        look(g, "7", "7:5:6");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_DONE);
        assert_string_equal(rig_sent(g)->platform_id, "7");
}

static void nothing_before_and_after_a_later_message_is_proof(void **state)
{
        struct rig *g = *state;

        for (int i = 0; i < 3; i++)
                says(g, 400, NOTHING);
        connect_now(g);
        look(g, "7", "7:5:6");
        assert_int_equal(rig_sent(g)->result.outcome, SEND_RETRY);
        assert_int_equal(fake_server_requests(g->server), 7);
}

/* In a supergroup, an own message may be newer than what is known, and not among the records. */
static void a_find_needs_the_newest_message_of_a_supergroup(void **state)
{
        static const struct message_record record = {
                .channel = GROUP, .id = "4", .own = true, .plain = true
        };
        static const struct {
                struct message_records records;
                enum send_outcome outcome;
        } rows[] = {
                { { .whole = true }, SEND_DONE },
                { { .items = &record, .count = 1 }, SEND_DONE },
                { { .whole = false }, SEND_UNSURE },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_new();

                says(g, 200, "{\"ok\":true,\"result\":{\"type\":\"supergroup\"}}");
                says(g, 400, OWN);
                connect_now(g);
                fake_road.records = &rows[i].records;
                look(g, GROUP, GROUP ":5");
                assert_int_equal(rig_sent(g)->result.outcome, rows[i].outcome);
                rig_free(g);
        }
}

static void many_supergroups_do_not_displace_the_ids_of_the_account(void **state)
{
        struct rig *g = *state;
        struct telegram *tg;
        char chat[24];

        connect_now(g);
        tg = telegram_of(g);
        tg_ids_note(tg, "7", 5, 0);
        for (int i = 0; i < 1000; i++) {
                snprintf(chat, sizeof(chat), "-100%010d", 1000000000 + i);
                tg_ids_note(tg, chat, 9, 0);
        }
        assert_true(tg_ids_known(tg, "8", 5));
        assert_int_equal(tg_ids_highest(tg, chat), 9);
        assert_true(tg->spaces.count <= 256);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_send_under_way_is_cut_before_it_is_looked_for,
                                                rig_begin, rig_end),
                cmocka_unit_test_setup_teardown(
                        an_answer_that_comes_too_late_is_not_taken_for_another_message, rig_begin,
                        rig_end),
                cmocka_unit_test_setup_teardown(
                        a_find_that_comes_too_late_is_not_taken_for_another_message, rig_begin,
                        rig_end),
                cmocka_unit_test_setup_teardown(a_late_update_is_no_proof_that_nothing_arrived,
                                                rig_begin, rig_end),
                cmocka_unit_test_setup_teardown(nothing_before_and_after_a_later_message_is_proof,
                                                rig_begin, rig_end),
                cmocka_unit_test(a_find_needs_the_newest_message_of_a_supergroup),
                cmocka_unit_test_setup_teardown(
                        many_supergroups_do_not_displace_the_ids_of_the_account, rig_begin,
                        rig_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
