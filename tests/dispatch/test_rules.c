#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "dispatch/rules.h"

static const char *const no_rules = "[]";

/* A dispatch that knows a chat platform, a trusted terminal, and the given rules. */
static struct dispatch *dispatch_with(const char *rules_json, const char *only_agent)
{
        struct dispatch_adapter *adapters = mem_array(2, sizeof(*adapters));
        struct dispatch *d = dispatch_new();
        struct error err = { 0 };
        struct settings_source *src =
                settings_source_new("config.json", NULL, rules_json, strlen(rules_json), &err);
        size_t count;
        struct rule *rules;

        assert_non_null(src);
        count = json_array_size(settings_source_root(src));
        rules = mem_array(count, sizeof(*rules));
        for (size_t i = 0; i < count; i++)
                assert_int_equal(
                        rule_read(src, i, json_array_get(settings_source_root(src), i), &rules[i], &err), 0);
        settings_source_free(src);
        adapters[0] = (struct dispatch_adapter){ .name = mem_strdup("discord-mybot"),
                                                 .platform = mem_strdup("discord"),
                                                 .debounce_ms = 3000,
                                                 .debounce_max_ms = 9000,
                                                 .max_age_seconds = 60 };
        adapters[1] = (struct dispatch_adapter){ .name = mem_strdup("terminal"),
                                                 .platform = mem_strdup("cli"),
                                                 .agent = mem_strdup("helper"),
                                                 .trusted = true };
        dispatch_set(d, adapters, 2, rules, count, only_agent);
        return d;
}

static struct incoming message(void)
{
        return (struct incoming){ .adapter = "discord-mybot",
                                  .platform = "discord",
                                  .key = "k",
                                  .channel = "456",
                                  .chat = CHAT_GROUP,
                                  .sender_id = "7",
                                  .text = "hello" };
}

static void a_star_matches_any_run_of_bytes(void **state)
{
        /* clang-format off */
        static const struct {
                const char *pattern, *text;
                bool match;
        } rows[] = {
                { "", "", true },          { "", "a", false },      { "*", "", true },
                { "*", "anything", true }, { "a*", "abc", true },   { "a*", "ba", false },
                { "*c", "abc", true },     { "*c", "abcd", false }, { "a*c", "ac", true },
                { "a*c", "abcabc", true }, { "a**c", "abc", true }, { "a*b*c", "a-c-b-c", true },
                { "a*b*c", "acb", false }, { "?", "x", false },     { "[a]", "a", false },
                { "ü*", "über", true },    { "discord-*", "discord-", true },
                { "*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
        };
        /* clang-format on */

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                assert_int_equal(glob_match(rows[i].pattern, rows[i].text), rows[i].match);
}

static void without_rules_dms_mentions_and_replies_are_answered(void **state)
{
        struct dispatch *d = dispatch_with(no_rules, "assistant");
        struct incoming in = message();
        struct decision out;

        (void)state;
        dispatch_decide(d, &in, &out);
        assert_false(out.trigger);
        assert_string_equal(out.reason, "not addressed to the bot: neither DM, mention nor reply");

        in.is_mention = true;
        dispatch_decide(d, &in, &out);
        assert_true(out.trigger);
        assert_string_equal(out.agent, "assistant");
        assert_null(out.reason);
        assert_int_equal(out.debounce_ms, 3000);
        assert_int_equal(out.debounce_max_ms, 9000);

        in.is_mention = false;
        in.is_reply = true;
        dispatch_decide(d, &in, &out);
        assert_true(out.trigger);

        in.is_reply = false;
        in.chat = CHAT_DM;
        dispatch_decide(d, &in, &out);
        assert_true(out.trigger);
        dispatch_free(d);
}

static void a_trusted_adapter_answers_everything_with_its_own_agent(void **state)
{
        struct dispatch *d = dispatch_with(no_rules, "assistant");
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.adapter = "terminal";
        in.platform = "cli";
        dispatch_decide(d, &in, &out);
        assert_true(out.trigger);
        assert_string_equal(out.agent, "helper");
        dispatch_free(d);
}

static void rules_about_others_do_not_silence_a_trusted_adapter(void **state)
{
        struct dispatch *d =
                dispatch_with("[{\"when\": {\"adapter\": \"discord-*\"}, \"agent\": \"a\"}]", NULL);
        struct dispatch *all =
                dispatch_with("[{\"when\": {\"channel\": \"nowhere\"}, \"agent\": \"a\"}]", NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.adapter = "terminal";
        in.platform = "cli";
        dispatch_decide(d, &in, &out);
        assert_true(out.trigger);
        dispatch_decide(all, &in, &out);
        assert_false(out.trigger);
        assert_string_equal(out.reason, "no rule matched: 1 tried");
        dispatch_free(d);
        dispatch_free(all);
}

static void the_first_rule_that_matches_wins(void **state)
{
        struct dispatch *d = dispatch_with(
                "[{\"name\": \"one\", \"when\": {\"channel\": [\"1\", \"2\"]}, \"agent\": \"a\"},"
                " {\"name\": \"two\", \"when\": {\"channel\": \"45*\"}, \"agent\": \"b\","
                "  \"debounceMs\": 5},"
                " {\"name\": \"three\", \"agent\": \"c\"}]",
                NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        dispatch_decide(d, &in, &out);
        assert_true(out.trigger);
        assert_string_equal(out.rule, "two");
        assert_string_equal(out.agent, "b");
        assert_int_equal(out.debounce_ms, 5);
        dispatch_free(d);
}

static void dm_mention_and_reply_are_alternatives_and_the_rest_holds_together(void **state)
{
        struct dispatch *d =
                dispatch_with("[{\"name\": \"people\", \"when\": {\"adapter\": \"discord-*\", \"dm\": true,"
                              " \"mention\": true, \"sender\": [\"7\", \"8\"]}, \"agent\": \"a\"}]",
                              NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.is_reply = true;
        dispatch_decide(d, &in, &out);
        assert_false(out.trigger);
        in.is_mention = true;
        dispatch_decide(d, &in, &out);
        assert_true(out.trigger);
        in.is_mention = false;
        in.chat = CHAT_DM;
        dispatch_decide(d, &in, &out);
        assert_true(out.trigger);
        in.sender_id = "9";
        dispatch_decide(d, &in, &out);
        assert_false(out.trigger);
        dispatch_free(d);
}

static void a_rule_that_says_off_is_silent_and_says_so(void **state)
{
        struct dispatch *d =
                dispatch_with("[{\"name\": \"quiet\", \"when\": {\"channel\": \"456\"}, \"mode\": \"off\"},"
                              " {\"name\": \"all\", \"agent\": \"a\"}]",
                              NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        dispatch_decide(d, &in, &out);
        assert_false(out.trigger);
        assert_string_equal(out.rule, "quiet");
        assert_string_equal(out.reason, "rule 'quiet' says off");
        dispatch_free(d);
}

static void other_events_trigger_only_by_a_rule_that_names_them(void **state)
{
        struct dispatch *plain = dispatch_with(no_rules, "assistant");
        struct dispatch *d = dispatch_with(
                "[{\"name\": \"messages\", \"agent\": \"a\"},"
                " {\"name\": \"reactions\", \"when\": {\"event\": \"reaction.*\"}, \"agent\": \"b\"}]",
                NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.type = EVENT_REACTION_RECEIVED;
        in.chat = CHAT_DM;
        dispatch_decide(plain, &in, &out);
        assert_false(out.trigger);
        assert_string_equal(out.reason, "event 'reaction.received' triggers only by a rule that names it");
        dispatch_decide(d, &in, &out);
        assert_true(out.trigger);
        assert_string_equal(out.rule, "reactions");
        dispatch_free(plain);
        dispatch_free(d);
}

static void a_bot_is_heard_only_where_a_rule_names_it(void **state)
{
        struct dispatch *plain = dispatch_with(no_rules, "assistant");
        struct dispatch *star = dispatch_with("[{\"when\": {\"sender\": \"*\"}, \"agent\": \"a\"}]", NULL);
        struct dispatch *named = dispatch_with("[{\"when\": {\"sender\": \"7\"}, \"agent\": \"a\"}]", NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.sender_is_bot = true;
        in.chat = CHAT_DM;
        dispatch_decide(plain, &in, &out);
        assert_false(out.trigger);
        assert_string_equal(out.reason, "the sender is a bot");
        dispatch_decide(star, &in, &out);
        assert_false(out.trigger);
        dispatch_decide(named, &in, &out);
        assert_true(out.trigger);
        assert_string_equal(out.rule, "rule 1");
        dispatch_free(plain);
        dispatch_free(star);
        dispatch_free(named);
}

static void old_backlog_is_expired_before_any_rule_is_asked(void **state)
{
        struct dispatch *d = dispatch_with("[{\"agent\": \"a\"}]", NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.time_ms = clock_wall_ms() - 61000;
        dispatch_decide(d, &in, &out);
        assert_false(out.trigger);
        assert_true(out.expired);
        assert_non_null(strstr(out.reason, "older than the 60 seconds"));
        in.time_ms = clock_wall_ms() + 61000; /* a platform's clock may be ahead */
        dispatch_decide(d, &in, &out);
        assert_true(out.trigger);
        dispatch_free(d);
}

static void a_missing_agent_or_adapter_is_a_reason(void **state)
{
        struct dispatch *d = dispatch_with(no_rules, NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.chat = CHAT_DM;
        dispatch_decide(d, &in, &out);
        assert_false(out.trigger);
        assert_string_equal(
                out.reason,
                "several agents are configured and neither a rule nor adapter 'discord-mybot' names one");
        in.adapter = "gone";
        dispatch_decide(d, &in, &out);
        assert_string_equal(out.reason, "adapter 'gone' is not configured");
        dispatch_free(d);
}

static void an_explanation_says_why_each_rule_did_or_did_not_match(void **state)
{
        struct dispatch *d = dispatch_with(
                "[{\"name\": \"a\", \"when\": {\"adapter\": [\"x\", \"y-*\"]}, \"agent\": \"a\"},"
                " {\"name\": \"b\", \"when\": {\"thread\": \"*\"}, \"agent\": \"a\"},"
                " {\"name\": \"c\", \"when\": {\"dm\": true, \"reply\": true}, \"agent\": \"a\"},"
                " {\"name\": \"d\", \"when\": {\"event\": []}, \"agent\": \"a\"},"
                " {\"name\": \"e\", \"agent\": \"a\"}, {\"name\": \"f\", \"agent\": \"b\"}]",
                NULL);
        static const char *const whys[] = { "adapter 'discord-mybot' is not 'x' or 'y-*'",
                                            "there is no thread, wanted is '*'",
                                            "the message is not a DM or a reply",
                                            "event 'message.received' is not in an empty list",
                                            "all conditions hold",
                                            "all conditions hold, but an earlier rule came first" };
        struct incoming in = message();
        struct error err;
        struct buf text;
        json_t *j, *rules;

        (void)state;
        buf_init(&text, 0);
        dispatch_explain(d, &in, &text);
        j = json_read(text.data, text.len, &err);
        assert_non_null(j);
        assert_string_equal(json_str(json_object_get(j, "decision"), "rule", ""), "e");
        assert_true(json_flag(json_object_get(j, "decision"), "trigger", false));
        rules = json_object_get(j, "rules");
        assert_int_equal(json_array_size(rules), COUNT(whys));
        for (size_t i = 0; i < COUNT(whys); i++) {
                assert_string_equal(json_str(json_array_get(rules, i), "why", ""), whys[i]);
                assert_int_equal(json_flag(json_array_get(rules, i), "matched", false), i >= 4);
        }
        json_decref(j);
        buf_release(&text);
        dispatch_free(d);
}

static void a_mistake_in_a_rule_is_told_with_its_line(void **state)
{
        static const char text[] = "[\n{},\n{ \"when\": {\n  \"chanel\": \"1\" } }]";
        struct error err = { 0 };
        struct settings_source *src = settings_source_new("config.json", NULL, text, strlen(text), &err);
        struct rule r;

        (void)state;
        assert_int_equal(rule_read(src, 1, json_array_get(settings_source_root(src), 1), &r, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.text, "unknown key 'chanel' (did you mean 'channel'?)"));
        settings_source_free(src);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_star_matches_any_run_of_bytes),
                cmocka_unit_test(without_rules_dms_mentions_and_replies_are_answered),
                cmocka_unit_test(a_trusted_adapter_answers_everything_with_its_own_agent),
                cmocka_unit_test(rules_about_others_do_not_silence_a_trusted_adapter),
                cmocka_unit_test(the_first_rule_that_matches_wins),
                cmocka_unit_test(dm_mention_and_reply_are_alternatives_and_the_rest_holds_together),
                cmocka_unit_test(a_rule_that_says_off_is_silent_and_says_so),
                cmocka_unit_test(other_events_trigger_only_by_a_rule_that_names_them),
                cmocka_unit_test(a_bot_is_heard_only_where_a_rule_names_it),
                cmocka_unit_test(old_backlog_is_expired_before_any_rule_is_asked),
                cmocka_unit_test(a_missing_agent_or_adapter_is_a_reason),
                cmocka_unit_test(an_explanation_says_why_each_rule_did_or_did_not_match),
                cmocka_unit_test(a_mistake_in_a_rule_is_told_with_its_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
