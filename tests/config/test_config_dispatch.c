/* Settings handed to dispatch: defaults of the platform, and overrides of the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/scratch.h"
#include "config/config.h"

static struct dispatch *dispatch_by(const char *adapters)
{
        char *dir = scratch_new(), *path = scratch_path(dir, "config.json");
        FILE *f = fopen(path, "w");
        struct dispatch *d = dispatch_new();
        struct config *c = NULL;
        struct error err = { 0 };

        assert_non_null(f);
        fprintf(f, "{\"adapters\": %s, \"agents\": {\"echo\": {\"type\": \"echo\"}}}", adapters);
        fclose(f);
        if (config_load(dir, &c, &err) < 0)
                fail_msg("%s", err.text);
        config_dispatch_apply(c, d);
        config_free(c);
        free(path);
        scratch_free(dir);
        return d;
}

static struct decision decided(struct dispatch *d, const char *adapter, const char *text,
                               enum chat_kind chat)
{
        struct incoming in = { .adapter = adapter,
                               .channel = "7",
                               .chat = chat,
                               .sender_id = "7",
                               .text = text,
                               .is_mention = true };
        struct decision out;

        dispatch_decide(d, &in, NULL, &out);
        if (out.extra.fn)
                out.extra.done(out.extra.arg, NULL);
        return out;
}

static void commands_are_for_people_by_default(void **state)
{
        struct dispatch *d =
                dispatch_by("{\"programs\": {\"type\": \"api\"}, \"bridge\": {\"type\": \"api\", "
                            "\"chatCommands\": true}, \"people\": {\"type\": \"cli\"}, "
                            "\"plain\": {\"type\": \"cli\", \"chatCommands\": false}}");

        (void)state;
        assert_true(decided(d, "programs", "/stop", CHAT_DM).trigger);
        assert_int_equal(decided(d, "bridge", "/stop", CHAT_DM).command, COMMAND_STOP);
        assert_int_equal(decided(d, "people", "/stop", CHAT_DM).command, COMMAND_STOP);
        assert_true(decided(d, "plain", "/stop", CHAT_DM).trigger);
        dispatch_free(d);
}

static void conversations_follow_the_platform_by_default(void **state)
{
        struct dispatch *d = dispatch_by(
                "{\"dc\": {\"type\": \"discord\", \"botToken\": \"secret\", \"allow\": \"*\"}, "
                "\"off\": {\"type\": \"discord\", \"botToken\": \"secret2\", \"allow\": \"*\",     "
                "      "
                "\"conversationSeconds\": 0, \"dmConversationSeconds\": 0}, \"on\": {\"type\": "
                "\"cli\", \"conversationSeconds\": 60, \"dmConversationSeconds\": 60}, \"tty\": "
                "{\"type\": \"cli\"}}");

        (void)state;
        assert_int_equal(strncmp(decided(d, "dc", "hi", CHAT_DM).session, "discord-dm:", 11), 0);
        assert_int_equal(
                strncmp(decided(d, "dc", "hi", CHAT_GROUP).session, "discord-channel-7:", 18), 0);
        assert_null(decided(d, "off", "hi", CHAT_DM).session);
        assert_null(decided(d, "off", "hi", CHAT_GROUP).session);
        assert_int_equal(strncmp(decided(d, "on", "hi", CHAT_GROUP).session, "cli-channel-7:", 14),
                         0);
        assert_null(decided(d, "tty", "hi", CHAT_DM).session);
        dispatch_free(d);
}

static void long_and_slow_answers_follow_the_adapter_in_groups(void **state)
{
        struct dispatch *d = dispatch_by(
                "{\"tty\": {\"type\": \"cli\", \"autoThreadChars\": 700, \"slowReactionMs\": 1500, "
                "\"partDelayMs\": 400}, \"api\": {\"type\": \"api\"}}");
        struct reply_policy group = decided(d, "tty", "hi", CHAT_GROUP).policy,
                            dm = decided(d, "tty", "hi", CHAT_DM).policy,
                            plain = decided(d, "api", "hi", CHAT_GROUP).policy;

        (void)state;
        assert_int_equal(group.thread_chars, 700);
        assert_int_equal(group.slow_ms, 1500);
        assert_int_equal(group.part_delay_ms, 400);
        assert_int_equal(dm.thread_chars + dm.slow_ms, 0);
        assert_int_equal(dm.part_delay_ms, 400);
        assert_int_equal(plain.part_delay_ms, 0);
        assert_int_equal(plain.thread_chars + plain.slow_ms, 0);
        dispatch_free(d);
}

static void assert_rate(struct decision out, int64_t turns, int64_t seconds)
{
        assert_int_equal(out.turns, turns);
        assert_int_equal(out.turns_seconds, seconds);
}

static void five_turns_a_minute_by_default(void **state)
{
        struct dispatch *d = dispatch_by(
                "{\"tg\": {\"type\": \"telegram\", \"botToken\": \"1:secret\", \"allow\": "
                "\"*\"}, \"own\": {\"type\": \"telegram\", \"botToken\": \"2:secret\", "
                "\"allow\": \"*\",           \"rateLimit\": {\"turns\": 9, \"seconds\": 10}}, "
                "\"tty\": {\"type\": \"cli\"}}");

        (void)state;
        assert_rate(decided(d, "tg", "hi", CHAT_DM), 5, 60);
        assert_rate(decided(d, "own", "hi", CHAT_DM), 9, 10);
        assert_rate(decided(d, "tty", "hi", CHAT_DM), 0, 60);
        dispatch_free(d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(commands_are_for_people_by_default),
                cmocka_unit_test(conversations_follow_the_platform_by_default),
                cmocka_unit_test(long_and_slow_answers_follow_the_adapter_in_groups),
                cmocka_unit_test(five_turns_a_minute_by_default),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
