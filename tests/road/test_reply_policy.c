/* The reply policy as it is stored with a turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "road/turn/reply_policy.h"

static int begin(void **state)
{
        static struct arena arena;

        arena_init(&arena);
        *state = &arena;
        return 0;
}

static int end(void **state)
{
        arena_release(*state);
        return 0;
}

static void the_default_policy_is_stored_as_null(void **state)
{
        struct reply_policy p = { .slow_ms = 7 };

        assert_null(reply_policy_write(&(struct reply_policy){ 0 }));
        reply_policy_read(&p, NULL, *state);
        assert_int_equal(p.mode, MODE_REPLY);
        assert_null(p.prompt);
        assert_int_equal(p.slow_ms, 0);
}

static void other_policies_are_read_as_stored(void **state)
{
        static const char *const phrases[] = { "nothing", "\"quoted\"" };
        const struct reply_policy given = { .mode = MODE_AMBIENT,
                                            .prompt = "Read the room.",
                                            .channel_messages = 25,
                                            .no_reply = phrases,
                                            .no_reply_count = 2,
                                            .thread_chars = 700,
                                            .part_delay_ms = 400,
                                            .slow_ms = 4000 };
        struct reply_policy p;
        char *json = reply_policy_write(&given);

        reply_policy_read(&p, json, *state);
        free(json);
        assert_int_equal(p.mode, MODE_AMBIENT);
        assert_string_equal(p.prompt, "Read the room.");
        assert_int_equal(p.channel_messages, 25);
        assert_int_equal(p.no_reply_count, 2);
        assert_string_equal(p.no_reply[0], "nothing");
        assert_string_equal(p.no_reply[1], "\"quoted\"");
        assert_int_equal(p.thread_chars, 700);
        assert_int_equal(p.part_delay_ms, 400);
        assert_int_equal(p.slow_ms, 4000);
}

static void policies_of_older_versions_are_read(void **state)
{
        struct reply_policy p;

        reply_policy_read(&p,
                          "{\"mode\":\"ambient\",\"prompt\":\"p\",\"recall\":9,"
                          "\"silence\":[\"meh\"]}",
                          *state);
        assert_int_equal(p.mode, MODE_AMBIENT);
        assert_string_equal(p.prompt, "p");
        assert_int_equal(p.channel_messages, 9);
        assert_int_equal(p.no_reply_count, 1);
        assert_string_equal(p.no_reply[0], "meh");
}

static void an_unreadable_policy_is_a_plain_reply(void **state)
{
        static const char *const texts[] = { "", "{", "[]", "{\"mode\":\"loud\"}",
                                             "{\"mode\":7,\"noReply\":\"x\",\"slowMs\":\"y\"}" };

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                struct reply_policy p;

                reply_policy_read(&p, texts[i], *state);
                assert_int_equal(p.mode, MODE_REPLY);
                assert_int_equal(p.no_reply_count, 0);
                assert_int_equal(p.slow_ms, 0);
        }
}

static void a_copy_outlives_the_original(void **state)
{
        char prompt[] = "kind", phrase[] = "meh";
        const char *phrases[] = { phrase };
        struct reply_policy p,
                given = { .prompt = prompt, .no_reply = phrases, .no_reply_count = 1 };

        reply_policy_copy(&p, &given, *state);
        prompt[0] = phrase[0] = '?';
        phrases[0] = NULL;
        assert_string_equal(p.prompt, "kind");
        assert_string_equal(p.no_reply[0], "meh");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_default_policy_is_stored_as_null, begin, end),
                cmocka_unit_test_setup_teardown(other_policies_are_read_as_stored, begin, end),
                cmocka_unit_test_setup_teardown(policies_of_older_versions_are_read, begin, end),
                cmocka_unit_test_setup_teardown(an_unreadable_policy_is_a_plain_reply, begin, end),
                cmocka_unit_test_setup_teardown(a_copy_outlives_the_original, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
