/* Dual emit: a reaction is also journaled as a message, which triggers nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/road_rig.h"

static void react(struct rig *g, const char *type, const char *key)
{
        unsigned before = g->acks;
        struct incoming in = { .type = type,
                               .key = key,
                               .id = "17",
                               .sender_id = "ann",
                               .emoji = "\xf0\x9f\x91\x8d" };

        rig_receive(g, &in);
        rig_until(g, &g->acks, before + 1);
        rig_until_idle(g);
}

#define COPIES                                    \
        "journal WHERE type = 'message.received'" \
        " AND payload LIKE '%\"type\":\"reaction\"%'"

static void a_reaction_is_journaled_twice_and_triggers_once(void **state)
{
        struct rig *g;
        int64_t decided;

        (void)state;
        setenv(ROAD_DUAL_EMIT, "true", 1);
        g = rig_new();
        unsetenv(ROAD_DUAL_EMIT);
        g->auto_answer = g->auto_send = true;
        react(g, EVENT_REACTION_RECEIVED, "k1");
        react(g, EVENT_REACTION_REMOVED, "k2");
        assert_int_equal(rig_count(g, "journal WHERE type LIKE 'reaction.%'"), 2);
        assert_int_equal(rig_count(g, COPIES), 2);
        assert_int_equal(rig_count(g, COPIES " AND payload LIKE '%\"removed\":true%'"), 1);
        assert_int_equal(rig_count(g, "journal WHERE type = 'message.received' AND stream = 0"
                                      " AND trace IS NOT NULL"),
                         2);
        decided = rig_count(g, "trigger_log");
        assert_int_equal(decided, 2);
        /* recovery does not decide about the copies either */
        rig_restart(g);
        rig_until_idle(g);
        assert_int_equal(rig_count(g, "trigger_log"), decided);
        assert_int_equal(rig_count(g, "trigger_log WHERE event_type = 'message.received'"), 0);
        rig_free(g);
}

static void a_reaction_names_sender_message_and_chat(void **state)
{
        static const char *const members[] = { "\"messageId\":\"17\"", "\"chatId\":\"c\"",
                                               "\"from\":\"ann\"",
                                               "\"emoji\":", "\"isCustomEmoji\":false" };
        struct rig *g = rig_new();
        const char *payload;

        (void)state;
        g->auto_answer = g->auto_send = true;
        react(g, EVENT_REACTION_RECEIVED, "k1");
        payload =
                rig_text(g, "payload FROM journal WHERE type = 'reaction.received' AND stream = 1");
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
                assert_non_null(strstr(payload, members[i]));
        rig_free(g);
}

static void without_dual_emit_a_reaction_is_journaled_once(void **state)
{
        struct rig *g;

        (void)state;
        setenv(ROAD_DUAL_EMIT, "1", 1);
        g = rig_new();
        unsetenv(ROAD_DUAL_EMIT);
        g->auto_answer = g->auto_send = true;
        react(g, EVENT_REACTION_RECEIVED, "k1");
        assert_int_equal(rig_count(g, COPIES), 0);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_reaction_is_journaled_twice_and_triggers_once),
                cmocka_unit_test(a_reaction_names_sender_message_and_chat),
                cmocka_unit_test(without_dual_emit_a_reaction_is_journaled_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
