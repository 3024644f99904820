/* Dispatch may refuse a new turn, with a notice; messages that join a turn need no admission. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../lib/road_rig.h"
#include "base/mem.h"

static struct rig *rig_with(unsigned turns, const char *notice)
{
        struct rig *g = rig_new();

        g->counts_turns = true;
        g->turns_left = turns;
        g->notice = notice;
        return g;
}

static void a_refused_turn_is_skipped_with_its_reason(void **state)
{
        struct rig *g = rig_with(1, NULL);

        (void)state;
        g->auto_answer = g->auto_send = true;
        rig_say(g, "j", "c", "echo", "one", NULL);
        rig_until_idle(g);
        rig_say(g, "j", "c", "echo", "two", NULL);
        rig_until(g, &g->acks, 2);
        rig_until_idle(g);
        assert_int_equal(g->run_count, 1);
        assert_int_equal(rig_count(g, "turns"), 1);
        assert_string_equal(
                rig_text(g, "status || ': ' || reason FROM trigger_log WHERE status = 'skipped'"),
                "skipped: too many turns");
        assert_int_equal(rig_count(g, "deliveries"), 1);
        rig_free(g);
}

static void messages_that_join_a_waiting_turn_are_not_counted(void **state)
{
        struct rig *g = rig_with(1, NULL);

        (void)state;
        g->auto_answer = g->auto_send = true;
        g->debounce_ms = 200;
        g->debounce_max_ms = 5000;
        for (int i = 0; i < 7; i++)
                rig_say(g, "j", "c", "batch", "piece", NULL);
        rig_until(g, &g->run_count, 1);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "turns"), 1);
        assert_int_equal(rig_count(g, "trigger_log WHERE status = 'done'"), 7);
        rig_free(g);
}

static void a_notice_is_an_ordinary_delivery(void **state)
{
        struct rig *g = rig_with(0, "not so fast");

        (void)state;
        g->auto_send = true;
        rig_say(g, "x", "c", "echo", "one", "k1");
        rig_until(g, &g->sent_count, 1);
        rig_until_idle(g);
        assert_string_equal(g->sent[0].text, "not so fast");
        assert_string_equal(g->sent[0].channel, "c");
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sent");
        assert_string_equal(rig_text(g, "trace FROM deliveries"), g->last_trace);
        assert_non_null(strstr(rig_text(g, "payload FROM deliveries"), "\"replyTo\":\"k1\""));
        rig_free(g);
}

/* Where the platform can show it to one person, the others of a group do not see it. */
static void a_notice_in_a_group_is_for_its_sender(void **state)
{
        static const struct {
                const char *adapter;
                enum chat_kind chat;
                bool for_one;
        } rows[] = {
                { "whisper", CHAT_GROUP, true },
                { "whisper", CHAT_DM, false },
                { "x", CHAT_GROUP, false },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct rig *g = rig_with(0, "not so fast");

                g->auto_send = true;
                rig_receive(g, &(struct incoming){ .adapter = rows[i].adapter,
                                                   .chat = rows[i].chat,
                                                   .sender_id = "ann",
                                                   .id = "m1",
                                                   .text = "hi" });
                rig_until(g, &g->sent_count, 1);
                rig_until_idle(g);
                if (rows[i].for_one)
                        assert_non_null(strstr(rig_text(g, "payload FROM deliveries"),
                                               "\"onlyFor\":\"ann\""));
                else
                        assert_null(strstr(rig_text(g, "payload FROM deliveries"), "onlyFor"));
                rig_free(g);
        }
}

static void a_journaled_notice_is_sent_by_its_commit(void **state)
{
        struct rig *g = rig_with(0, "not so fast");

        (void)state;
        rig_say(g, "j", "c", "echo", "one", NULL);
        rig_until(g, &g->acks, 1);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "journal WHERE type = 'message.sent'"), 1);
        assert_string_equal(rig_text(g, "state FROM deliveries"), "sent");
        rig_free(g);
}

static void a_notice_survives_a_restart_and_is_sent_once(void **state)
{
        struct rig *g = rig_with(0, "not so fast");

        (void)state;
        g->adapters_down = true;
        rig_say(g, "x", "c", "echo", "one", NULL);
        rig_until(g, &g->acks, 1);
        rig_settle(g);
        assert_int_equal(rig_count(g, "deliveries WHERE state = 'queued'"), 1);
        rig_restart(g);
        g->adapters_down = false;
        g->auto_send = true;
        outbox_wake(g->road, "x");
        rig_until(g, &g->sent_count, 1);
        rig_until_idle(g);
        assert_int_equal(g->sent_count, 1);
        assert_int_equal(rig_count(g, "deliveries"), 1);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_refused_turn_is_skipped_with_its_reason),
                cmocka_unit_test(messages_that_join_a_waiting_turn_are_not_counted),
                cmocka_unit_test(a_notice_is_an_ordinary_delivery),
                cmocka_unit_test(a_notice_in_a_group_is_for_its_sender),
                cmocka_unit_test(a_journaled_notice_is_sent_by_its_commit),
                cmocka_unit_test(a_notice_survives_a_restart_and_is_sent_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
