#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/placement_stub.h"
#include "../lib/rule_list.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"
#include "dispatch/dry_run.h"
#include "dispatch/rules/pattern.h"
#include "dispatch/rules/rules.h"

static const char *const no_rules = "[]";

/* Lists that allow everyone. */
static struct access *open_access(void)
{
        char star[] = "*", *items[] = { star };
        struct setting_list everybody = { items, 1, true };

        return access_new(&(struct access_lists){ .dm = &everybody, .allow = &everybody });
}

/* A dispatch with an open chat platform, a trusted terminal, and the given rules. */
static struct dispatch *dispatch_with(const char *rules_json, const char *only_agent)
{
        struct dispatch_adapter *adapters = mem_array(2, sizeof(*adapters));
        struct dispatch *d = dispatch_new();
        size_t count;
        struct rule *rules = rule_list_read(rules_json, &count);

        adapters[0] = (struct dispatch_adapter){ .name = mem_strdup("discord-mybot"),
                                                 .platform = mem_strdup("discord"),
                                                 .debounce_ms = 3000,
                                                 .debounce_max_ms = 9000,
                                                 .access = open_access(),
                                                 .rate = { 2, 60 },
                                                 .max_hops = 3,
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
                assert_int_equal(pattern_glob(rows[i].pattern, rows[i].text), rows[i].match);
}

static void without_rules_dms_mentions_and_replies_are_answered(void **state)
{
        struct dispatch *d = dispatch_with(no_rules, "assistant");
        struct incoming in = message();
        struct decision out;

        (void)state;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(out.reason, "not addressed to the bot: neither DM, mention nor reply");

        in.is_mention = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        assert_string_equal(out.agent, "assistant");
        assert_null(out.reason);
        assert_int_equal(out.debounce_ms, 3000);
        assert_int_equal(out.debounce_max_ms, 9000);

        in.is_mention = false;
        in.is_reply = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);

        in.is_reply = false;
        in.chat = CHAT_DM;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        dispatch_free(d);
}

static void rules_are_recorded_with_why_they_do_not_match(void **state)
{
        static const char rules[] = "[{\"name\":\"others\",\"when\":{\"adapter\":\"elsewhere\"}},"
                                    "{\"name\":\"ops\",\"when\":{\"channel\":\"9\"}},"
                                    "{\"name\":\"asked\",\"when\":{\"mention\":true}}]";
        struct dispatch *d = dispatch_with(rules, "assistant");
        struct incoming in = message();
        struct decision out;

        (void)state;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(out.rules, "[{\"name\":\"ops\",\"matched\":false,"
                                       "\"why\":\"channel '456' is not '9'\"},"
                                       "{\"name\":\"asked\",\"matched\":false,"
                                       "\"why\":\"the message is not a mention\"}]");
        in.is_mention = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        assert_non_null(strstr(out.rules, "{\"name\":\"asked\",\"matched\":true,"));
        in.is_own = true; /* refused before any rule */
        dispatch_decide(d, &in, NULL, &out);
        assert_null(out.rules);
        dispatch_free(d);
}

/* Thousands of rules, or one with thousands of members, do not make long records. */
static void a_record_of_many_rules_is_short(void **state)
{
        struct incoming in = message();
        struct decision out;
        struct dispatch *d;
        struct buf rules;
        json_t *tried;

        (void)state;
        buf_init(&rules, 0);
        buf_addstr(&rules, "[{\"name\":\"long\",\"when\":{\"channel\":[\"x\"");
        for (int i = 0; i < 1000; i++)
                buf_addf(&rules, ",\"c%d\"", i);
        buf_addstr(&rules, "]}}");
        for (int i = 0; i < 500; i++)
                buf_addf(&rules, ",{\"name\":\"r%d\",\"when\":{\"channel\":\"c\"}}", i);
        buf_addch(&rules, ']');
        d = dispatch_with(rules.data, "assistant");
        dispatch_decide(d, &in, NULL, &out);
        assert_true(strlen(out.rules) < 5000);
        tried = json_loads(out.rules, 0, NULL);
        assert_true(json_array_size(tried) > 10);
        assert_non_null(strstr(out.rules, " more did not match either"));
        json_decref(tried);
        dispatch_free(d);
        buf_release(&rules);
}

static void a_command_is_not_debounced(void **state)
{
        struct dispatch *d = dispatch_with("[{\"agent\": \"a\", \"debounceMs\": 500}]", NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.is_mention = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_int_equal(out.debounce_ms, 500);
        in.is_command = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        assert_int_equal(out.debounce_ms, 0);
        dispatch_free(d);
        d = dispatch_with("[{\"agent\": \"a\", \"when\": {\"event\": \"*\"}}]", NULL);
        in = message();
        dispatch_decide(d, &in, NULL, &out);
        assert_int_equal(out.debounce_ms, 3000);
        in.type = EVENT_REACTION_RECEIVED; /* nor is a reaction */
        in.id = "900";
        in.emoji = "👍";
        dispatch_decide(d, &in, NULL, &out);
        assert_int_equal(out.debounce_ms, 0);
        dispatch_free(d);
}

/* Discord shows a placeholder for a quarter of an hour. */
static void an_unanswered_command_gets_a_notice(void **state)
{
        struct dispatch *d = dispatch_with("[{\"agent\": \"a\", \"mode\": \"off\"}]", NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.is_mention = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_null(out.notice);
        in.is_command = in.is_awaited = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(out.notice, "I do not answer this here.");
        in.is_awaited = false;
        dispatch_decide(d, &in, NULL, &out);
        assert_null(out.notice);
        dispatch_free(d);
        d = dispatch_with("[{\"agent\": \"a\", \"rateLimit\": {\"turns\": 1}}]", NULL);
        in.is_awaited = true;
        dispatch_decide(d, &in, BEGINS_TURN, &out);
        assert_true(out.trigger);
        dispatch_decide(d, &in, BEGINS_TURN, &out); /* one notice is enough */
        assert_non_null(strstr(out.notice, "Please try again in"));
        assert_null(strstr(out.notice, "I do not answer"));
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
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        assert_string_equal(out.agent, "helper");
        dispatch_free(d);
}

static void rules_of_others_do_not_silence_a_trusted_adapter(void **state)
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
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        dispatch_decide(all, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(out.reason, "no rule matched: 1 tried");
        dispatch_free(d);
        dispatch_free(all);
}

static void the_first_rule_that_matches_wins(void **state)
{
        struct dispatch *d = dispatch_with(
                "[{\"name\": \"one\", \"when\": {\"channel\": [\"1\", \"2\"]}, \"agent\": "
                "\"a\"}, {\"name\": \"two\", \"when\": {\"channel\": \"45*\"}, \"agent\": \"b\",  "
                "\"debounceMs\": 5, \"debounceMaxMs\": 50}, {\"name\": \"three\", \"agent\": "
                "\"c\"}]",
                NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        assert_string_equal(out.rule, "two");
        assert_string_equal(out.agent, "b");
        assert_int_equal(out.debounce_ms, 5);
        assert_int_equal(out.debounce_max_ms, 50);
        dispatch_free(d);
}

static void a_channel_is_matched_by_its_name_too(void **state)
{
        struct dispatch *d = dispatch_with(
                "[{\"name\": \"team\", \"when\": {\"channel\": [\"#team-*\", \"#ops\"]}, "
                "\"agent\": \"a\"}]",
                NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.chat_name = "team-red";
        dispatch_decide(d, &in, NULL, &out);
        assert_string_equal(out.rule, "team");
        in.chat_name = "ops2";
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_non_null(strstr(out.rules, "channel '456' is not '#team-*' or '#ops'"));
        in.chat_name = NULL;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        dispatch_free(d);
}

static void dm_mention_and_reply_are_alternatives(void **state)
{
        struct dispatch *d = dispatch_with(
                "[{\"name\": \"people\", \"when\": {\"adapter\": \"discord-*\", \"dm\": true, "
                "\"mention\": true, \"sender\": [\"7\", \"8\"]}, \"agent\": \"a\"}]",
                NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.is_reply = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        in.is_mention = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        in.is_mention = false;
        in.chat = CHAT_DM;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        in.sender_id = "9";
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        dispatch_free(d);
}

static void a_rule_that_says_off_refuses_with_a_reason(void **state)
{
        struct dispatch *d = dispatch_with(
                "[{\"name\": \"quiet\", \"when\": {\"channel\": \"456\"}, \"mode\": \"off\"}, "
                "{\"name\": \"all\", \"agent\": \"a\"}]",
                NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(out.rule, "quiet");
        assert_string_equal(out.reason, "rule 'quiet' says off");
        dispatch_free(d);
}

static void other_events_trigger_only_by_name(void **state)
{
        struct dispatch *plain = dispatch_with(no_rules, "assistant");
        struct dispatch *d = dispatch_with(
                "[{\"name\": \"messages\", \"agent\": \"a\"}, {\"name\": \"reactions\", "
                "\"when\": {\"event\": \"reaction.*\"}, \"agent\": \"b\"}]",
                NULL);
        static const char *const changes[] = { EVENT_MESSAGE_EDITED, EVENT_MESSAGE_DELETED };
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.type = EVENT_REACTION_RECEIVED;
        in.emoji = "👍";
        in.chat = CHAT_DM;
        dispatch_decide(plain, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(out.reason,
                            "event 'reaction.received' triggers only by a rule that names it");
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        assert_string_equal(out.rule, "reactions");
        for (size_t i = 0; i < COUNT(changes); i++) {
                in = message();
                in.type = changes[i];
                in.chat = CHAT_DM;
                in.is_mention = true;
                dispatch_decide(plain, &in, NULL, &out);
                assert_false(out.trigger);
                dispatch_decide(d, &in, NULL,
                                &out); /* a rule without events accepts only messages */
                assert_false(out.trigger);
        }
        dispatch_free(plain);
        dispatch_free(d);
}

static void a_bot_triggers_only_where_a_rule_names_it(void **state)
{
        struct dispatch *plain = dispatch_with(no_rules, "assistant");
        struct dispatch *star =
                dispatch_with("[{\"when\": {\"sender\": \"*\"}, \"agent\": \"a\"}]", NULL);
        struct dispatch *named =
                dispatch_with("[{\"when\": {\"sender\": \"7\"}, \"agent\": \"a\"}]", NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.sender_is_bot = true;
        in.chat = CHAT_DM;
        dispatch_decide(plain, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(out.reason, "the sender is a bot");
        dispatch_decide(star, &in, NULL, &out);
        assert_false(out.trigger);
        dispatch_decide(named, &in, NULL, &out);
        assert_true(out.trigger);
        assert_string_equal(out.rule, "rule 1");
        dispatch_free(plain);
        dispatch_free(star);
        dispatch_free(named);
}

static void old_backlog_is_expired_unless_the_rule_allows_it(void **state)
{
        struct dispatch *d = dispatch_with("[{\"agent\": \"a\"}]", NULL);
        struct dispatch *patient =
                dispatch_with("[{\"agent\": \"a\", \"maxAgeSeconds\": 0}]", NULL);
        struct dispatch *hasty = dispatch_with(
                "[{\"name\": \"hasty\", \"agent\": \"a\", \"maxAgeSeconds\": 10}]", NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.time_ms = clock_wall_ms() - 61000;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_true(out.expired);
        assert_non_null(strstr(out.reason, "older than the 60 seconds"));
        dispatch_decide(patient, &in, NULL, &out);
        assert_true(out.trigger);
        dispatch_decide(hasty, &in, NULL, &out);
        assert_true(out.expired);
        assert_string_equal(out.reason, "it is older than the 10 seconds rule 'hasty' allows");
        in.time_ms = clock_wall_ms() + 61000; /* the platform's clock may be ahead */
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        dispatch_free(d);
        dispatch_free(patient);
        dispatch_free(hasty);
}

static void a_missing_agent_or_adapter_is_reported(void **state)
{
        struct dispatch *d = dispatch_with(no_rules, NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.chat = CHAT_DM;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(
                out.reason,
                "several agents are configured and neither a rule nor adapter 'discord-mybot' "
                "names one");
        in.adapter = "gone";
        dispatch_decide(d, &in, NULL, &out);
        assert_string_equal(out.reason, "adapter 'gone' is not configured");
        dispatch_free(d);
}

static void an_explanation_covers_each_rule(void **state)
{
        struct dispatch *d = dispatch_with(
                "[{\"name\": \"a\", \"when\": {\"adapter\": [\"x\", \"y-*\"]}, \"agent\": "
                "\"a\"}, {\"name\": \"b\", \"when\": {\"thread\": \"*\"}, \"agent\": \"a\"}, "
                "{\"name\": \"c\", \"when\": {\"dm\": true, \"reply\": true}, \"agent\": \"a\"}, "
                "{\"name\": \"d\", \"when\": {\"event\": []}, \"agent\": \"a\"}, {\"name\": "
                "\"e\", \"agent\": \"a\"}, {\"name\": \"f\", \"agent\": \"b\"}]",
                NULL);
        static const char *const whys[] = { "adapter 'discord-mybot' is not 'x' or 'y-*'",
                                            "there is no thread; expected '*'",
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
        dry_run_explain(d, &in, DRY_RUN_ALL_RULES, &text);
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

static void a_mistake_in_a_rule_has_its_line(void **state)
{
        static const char text[] = "[\n{},\n{ \"when\": {\n  \"chanel\": \"1\" } }]";
        struct error err = { 0 };
        struct settings_source *src =
                settings_source_new("config.json", NULL, text, strlen(text), &err);
        struct rule r;

        (void)state;
        assert_int_equal(
                rule_conf_read(src, 1, json_array_get(settings_source_root(src), 1), &r, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.text, "unknown key 'chanel' (did you mean 'channel'?)"));
        settings_source_free(src);
}

/* Expects a dispatch with this one rule to answer the event (why NULL), or the rule's reason. */
static void expect(const char *when, const struct incoming *in, const char *why_not)
{
        char *rules = mem_printf("[{\"when\": %s, \"agent\": \"a\"}]", when);
        struct dispatch *d = dispatch_with(rules, NULL);
        struct error err;
        struct buf text;
        json_t *j;

        buf_init(&text, 0);
        dry_run_explain(d, in, DRY_RUN_ALL_RULES, &text);
        j = json_read(text.data, text.len, &err);
        assert_non_null(j);
        assert_string_equal(json_str(json_array_get(json_object_get(j, "rules"), 0), "why", ""),
                            why_not ? why_not : "all conditions hold");
        assert_int_equal(json_flag(json_object_get(j, "decision"), "trigger", false),
                         why_not == NULL);
        json_decref(j);
        buf_release(&text);
        dispatch_free(d);
        free(rules);
}

static void a_guild_is_a_condition(void **state)
{
        struct incoming in = message();

        (void)state;
        expect("{\"guild\": \"g1\"}", &in, "there is no guild; expected 'g1'");
        in.guild = "g2";
        expect("{\"guild\": \"g1\"}", &in, "guild 'g2' is not 'g1'");
        in.guild = "g1";
        expect("{\"guild\": [\"g0\", \"g1\"]}", &in, NULL);
}

static void reactions_trigger_in_any_skin_tone(void **state)
{
        struct incoming in = message();

        (void)state;
        expect("{\"reaction\": \"🔬\"}", &in, "the rule does not name event 'message.received'");
        in.type = EVENT_REACTION_RECEIVED;
        in.emoji = "👍🏽";
        in.text = NULL;
        expect("{\"reaction\": \"🔬\"}", &in, "reaction '👍🏽' is not '🔬'");
        expect("{\"reaction\": []}", &in, "reaction '👍🏽' is not in an empty list");
        expect("{\"reaction\": [\"🔬\", \"👍\"]}", &in, NULL);
        expect("{\"reaction\": \"*\"}", &in, NULL);
        expect("{\"event\": \"reaction.removed\", \"reaction\": \"*\"}", &in,
               "event 'reaction.received' is not 'reaction.removed'");
        in.emoji = "❤️";
        expect("{\"reaction\": \"❤\"}", &in, NULL);
        in.emoji = "99";
        in.emoji_name = "party";
        expect("{\"reaction\": \"party\"}", &in, NULL);
}

static void emoji_are_compared_without_variants(void **state)
{
        (void)state;
        assert_true(rule_same_emoji("👍🏿", "👍"));
        assert_true(rule_same_emoji("❤️", "❤"));
        assert_false(rule_same_emoji("👍", "👎"));
        assert_false(rule_same_emoji("👍", ""));
        assert_true(rule_same_emoji("", ""));
}

static void a_text_pattern_must_match_the_raw_text(void **state)
{
        struct incoming in = message();

        (void)state;
        in.raw_text = "please DEPLOY 4.2 now";
        expect("{\"text\": \"\\\\bdeploy \\\\d+\"}", &in, NULL);
        expect("{\"text\": [\"^never$\", \"now$\"]}", &in, NULL);
        expect("{\"text\": \"(?-i)deploy\"}", &in, "the text matches no pattern of 'text'");
        expect("{\"text\": []}", &in, "the text matches no pattern of 'text'");
        in.raw_text = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";
        expect("{\"text\": \"^(a+)+$\"}", &in, "matching the patterns of 'text' took too long");
}

static void a_mention_pattern_counts_as_a_mention(void **state)
{
        struct incoming in = message();

        (void)state;
        in.text = "hey Robo, what is up";
        expect("{\"mention\": true, \"mentionPattern\": \"\\\\brobo\\\\b\"}", &in, NULL);
        expect("{\"mentionPattern\": \"jarvis\"}", &in,
               "the message is not a text with a 'mentionPattern'");
        in.is_mention = true;
        expect("{\"mention\": true, \"mentionPattern\": \"jarvis\"}", &in, NULL);
}

static void the_bot_policy_selects_bots(void **state)
{
        struct incoming in = message();

        (void)state;
        in.sender_is_bot = true;
        expect("{\"bots\": \"none\"}", &in, "the sender '7' is a bot that the rule does not name");
        expect("{\"bots\": \"mentions\"}", &in,
               "the sender '7' is a bot and does not address this one");
        expect("{\"bots\": \"all\"}", &in, NULL);
        expect("{\"bots\": \"all\", \"sender\": \"8\"}", &in, "sender '7' is not '8'");
        in.is_reply = true;
        expect("{\"bots\": \"mentions\"}", &in, NULL);
}

static void hours_follow_their_time_zone(void **state)
{
        struct incoming in = message();
        static const char rule[] =
                "{\"hours\": \"mon-fri 09:00-17:00\", \"timezone\": \"Europe/Berlin\"}";
        char *patient =
                mem_printf("[{\"when\": %s, \"agent\": \"a\", \"maxAgeSeconds\": 0}]", rule);
        struct dispatch *d = dispatch_with(patient, NULL);
        struct decision out;

        (void)state;
        clock_parse_iso("2026-07-15T07:30:00Z", &in.time_ms); /* a Wednesday, 09:30 in summer */
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        clock_parse_iso("2026-01-14T07:30:00Z", &in.time_ms); /* 08:30 in winter */
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        clock_parse_iso("2026-07-18T10:00:00Z", &in.time_ms); /* a Saturday */
        expect(rule, &in, "it was Saturday, 12:00, outside of 'hours'");
        dispatch_free(d);
        free(patient);
}

/* ---- guards ---- */

static void the_bots_own_message_is_not_answered(void **state)
{
        struct dispatch *d =
                dispatch_with("[{\"when\": {\"bots\": \"all\"}, \"agent\": \"a\"}]", NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.is_own = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(out.reason, "it is the bot's own message");
        dispatch_free(d);
}

static void a_message_without_content_is_not_answered(void **state)
{
        struct dispatch *d =
                dispatch_with("[{\"when\": {\"event\": \"*\"}, \"agent\": \"a\"}]", NULL);
        struct attachment photo = { .kind = "image" };
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.text = "";
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_non_null(strstr(out.reason, "nothing to answer"));
        in.attachments = &photo;
        in.attachment_count = 1;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        in = message();
        in.type = EVENT_REACTION_RECEIVED;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        in.type = EVENT_MESSAGE_DELETED;
        in.text = NULL;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        dispatch_free(d);
}

static void a_stranger_is_refused_before_the_rules(void **state)
{
        struct dispatch *d = dispatch_with(no_rules, "assistant");
        struct dispatch_adapter *closed = mem_array(1, sizeof(*closed));
        struct incoming in = message();
        struct decision out;

        (void)state;
        closed[0] = (struct dispatch_adapter){ .name = mem_strdup("discord-mybot"),
                                               .platform = mem_strdup("discord"),
                                               .access = access_new(&(struct access_lists){ 0 }) };
        dispatch_set(d, closed, 1, NULL, 0, "assistant");
        in.is_mention = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_string_equal(
                out.reason,
                "channel '456' is not in 'channels', and 'allow' names neither it nor the sender "
                "'7'");
        dispatch_free(d);
}

/* Decides as the road does, for a new turn. */
static bool admitted(struct dispatch *d, const struct incoming *in, struct decision *out)
{
        dispatch_decide(d, in, NULL, out);
        assert_true(out->trigger);
        dispatch_decide(d, in, BEGINS_TURN, out);
        return out->trigger;
}

static void a_message_with_too_many_hops_is_refused(void **state)
{
        struct dispatch *d =
                dispatch_with("[{\"when\": {\"bots\": \"all\"}, \"agent\": \"a\"}]", NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.hops = 3;
        assert_true(admitted(d, &in, &out));
        in.hops = 4;
        assert_false(admitted(d, &in, &out));
        assert_false(out.trigger);
        assert_string_equal(
                out.reason,
                "it has passed through 4 bots, adapter 'discord-mybot' allows 3 (maxHops)");
        dispatch_decide(d, &in, JOINS_TURN, &out); /* nor may it join a queued turn */
        assert_false(out.trigger);
        dispatch_free(d);
}

static void turns_beyond_the_rate_are_refused_with_one_notice(void **state)
{
        struct dispatch *d = dispatch_with("[{\"agent\": \"a\"}]", NULL);
        struct incoming in = message(), other = message();
        struct decision out;

        (void)state;
        assert_true(admitted(d, &in, &out));
        assert_true(admitted(d, &in, &out));
        assert_null(out.notice);
        assert_false(admitted(d, &in, &out));
        assert_false(out.trigger);
        assert_non_null(strstr(out.reason, "the sender caused 2 turns within 60 seconds here"));
        assert_non_null(strstr(out.notice, "Please try again in"));
        assert_false(admitted(d, &in, &out));
        assert_null(out.notice);
        other.sender_id = "8";
        assert_true(admitted(d, &other, &out));
        other = message();
        other.channel = "457";
        assert_true(admitted(d, &other, &out));
        dispatch_free(d);
}

static void a_rule_has_a_rate_of_its_own(void **state)
{
        struct dispatch *strict =
                dispatch_with("[{\"agent\": \"a\", \"rateLimit\": {\"turns\": 1}}]", NULL);
        struct dispatch *slow =
                dispatch_with("[{\"agent\": \"a\", \"rateLimit\": {\"seconds\": 3600}}]", NULL);
        struct dispatch *none =
                dispatch_with("[{\"agent\": \"a\", \"rateLimit\": {\"turns\": 0}}]", NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        assert_true(admitted(strict, &in, &out));
        assert_false(admitted(strict, &in, &out));
        assert_non_null(strstr(out.reason, "1 turns within 60 seconds"));
        assert_true(admitted(slow, &in, &out));
        assert_true(admitted(slow, &in, &out));
        assert_false(admitted(slow, &in, &out));
        assert_non_null(strstr(out.reason, "2 turns within 3600 seconds"));
        for (int i = 0; i < 100; i++)
                assert_true(admitted(none, &in, &out));
        dispatch_free(strict);
        dispatch_free(slow);
        dispatch_free(none);
}

static void a_bot_gets_no_rate_notice(void **state)
{
        struct dispatch *d = dispatch_with(
                "[{\"when\": {\"bots\": \"all\"}, \"agent\": \"a\", \"rateLimit\": {\"turns\": "
                "1}}]",
                NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        in.sender_is_bot = true;
        assert_true(admitted(d, &in, &out));
        assert_false(admitted(d, &in, &out));
        assert_null(out.notice);
        dispatch_free(d);
}

static void a_dry_run_counts_nothing(void **state)
{
        struct dispatch *d = dispatch_with("[{\"agent\": \"a\"}]", NULL);
        struct incoming in = message();
        struct decision out;
        struct buf text;

        (void)state;
        buf_init(&text, 0);
        for (int i = 0; i < 5; i++) {
                buf_clear(&text);
                dry_run_explain(d, &in, DRY_RUN_ALL_RULES, &text);
        }
        assert_non_null(
                strstr(text.data, "\"rateLimit\":{\"turns\":2,\"seconds\":60,\"waitMs\":0}"));
        assert_non_null(strstr(text.data, "\"access\":{\"allowed\":true"));
        assert_true(admitted(d, &in, &out));
        assert_true(admitted(d, &in, &out));
        assert_false(admitted(d, &in, &out));
        buf_release(&text);
        dispatch_free(d);
}

static void expect_mistake(const char *rule, const char *sentence)
{
        char *text = mem_printf("{ \"rules\": [\n%s] }", rule);
        struct error err = { 0 };
        struct settings_source *src =
                settings_source_new("config.json", NULL, text, strlen(text), &err);
        struct rule r;

        assert_non_null(src);
        assert_int_equal(
                rule_conf_read(
                        src, 0,
                        json_array_get(json_object_get(settings_source_root(src), "rules"), 0), &r,
                        &err),
                -1);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.text, sentence))
                fail_msg("'%s' does not say '%s'", err.text, sentence);
        settings_source_free(src);
        free(text);
}

static bool covers(const char *wide, const char *narrow)
{
        char *text = mem_printf("[{\"when\": %s}, {\"when\": %s}]", wide, narrow);
        size_t count;
        struct rule *r = rule_list_read(text, &count);
        bool result = rule_covers(&r[0], &r[1]);

        rule_conf_release(&r[0]);
        rule_conf_release(&r[1]);
        free(r);
        free(text);
        return result;
}

static void a_rule_covers_only_what_it_certainly_takes(void **state)
{
        static const struct {
                const char *wide, *narrow;
                bool covers;
        } rows[] = {
                { "{}", "{}", true },
                { "{}", "{\"dm\": true, \"text\": \"x\", \"hours\": \"09:00-10:00\"}", true },
                { "{\"channel\": [\"1\", \"2*\"]}", "{\"channel\": [\"1\", \"23\"]}", true },
                { "{\"channel\": \"2*\"}", "{\"channel\": \"*3\"}", false },
                { "{\"channel\": \"*\"}", "{\"channel\": \"*3\"}", true },
                { "{\"channel\": \"1\"}", "{}", false },
                { "{\"channel\": \"1\"}", "{\"channel\": []}", false },
                { "{\"adapter\": \"a\"}", "{\"platform\": \"api\"}", false },
                { "{\"dm\": true, \"mention\": true}", "{\"dm\": true}", true },
                { "{\"dm\": true}", "{\"dm\": true, \"reply\": true}", false },
                { "{\"dm\": true}", "{}", false },
                { "{\"mention\": true}", "{\"mentionPattern\": \"bot\"}", false },
                { "{\"text\": [\"a\", \"b\"]}", "{\"text\": \"a\"}", true },
                { "{\"text\": \"a\"}", "{\"text\": \"aa\"}", false },
                { "{\"hours\": \"00:00-24:00\"}", "{}", false },
                { "{}", "{\"bots\": \"mentions\"}", false },
                { "{}", "{\"sender\": \"7\"}", false }, /* it may be a bot */
                { "{\"bots\": \"all\"}", "{\"sender\": \"7\"}", true },
                { "{\"sender\": [\"7\", \"8\"]}", "{\"sender\": \"7\"}", true },
                { "{}", "{\"reaction\": \"*\"}", false },
                { "{}", "{\"event\": \"message.edited\"}", false },
                { "{\"event\": \"*\"}", "{\"reaction\": \"x\"}", true },
                { "{\"reaction\": \"*\"}", "{\"reaction\": \"x\"}", true },
                { "{\"reaction\": \"x\"}", "{\"reaction\": \"*\"}", false },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                if (covers(rows[i].wide, rows[i].narrow) != rows[i].covers)
                        fail_msg("row %zu", i);
        }
}

static struct reply_policy policy_of(struct dispatch *d, const char *text)
{
        struct incoming in = message();
        struct decision out;

        in.text = text;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        return out.policy;
}

static void a_rule_fixes_the_reply_policy(void **state)
{
        struct dispatch *d = dispatch_with(
                "[{\"when\": {\"text\": \"plain\"}, \"agent\": \"a\"}, {\"when\": {\"text\": "
                "\"thread\"}, \"agent\": \"a\", \"reply\": \"thread\", \"prompt\": \"be kind\"}, "
                "{\"mode\": \"ambient\", \"agent\": \"a\", \"when\": {\"text\": \"room\", "
                "\"channel\": \"456\"}}, {\"mode\": \"ambient\", \"agent\": \"a\", \"when\": "
                "{\"text\": \"own\", \"channel\": \"*\"}, \"history\": 7, \"prompt\": \"lurk\", "
                "\"silence\": [\"meh\"]}]",
                NULL);
        struct reply_policy t;

        (void)state;
        t = policy_of(d, "plain");
        assert_int_equal(t.mode, MODE_REPLY);
        assert_null(t.prompt);
        assert_int_equal(t.no_reply_count, 0);
        assert_int_equal(t.channel_messages, 0);
        t = policy_of(d, "thread");
        assert_int_equal(t.mode, MODE_THREAD);
        assert_string_equal(t.prompt, "be kind");
        t = policy_of(d, "room");
        assert_int_equal(t.mode, MODE_AMBIENT);
        assert_int_equal(t.channel_messages, 25);
        assert_non_null(strstr(t.prompt, "Read the room"));
        assert_non_null(strstr(t.prompt, "[SILENT]"));
        assert_string_equal(t.no_reply[0], "no action needed");
        t = policy_of(d, "own");
        assert_int_equal(t.channel_messages, 7);
        assert_string_equal(t.prompt, "lurk");
        assert_int_equal(t.no_reply_count, 1);
        dispatch_free(d);
}

static void an_ambient_rule_gets_all_messages_but_its_own(void **state)
{
        struct dispatch *d = dispatch_with("[{\"name\": \"room\", \"mode\": \"ambient\", "
                                           "\"when\": {\"channel\": \"456\"}, \"agent\": \"a\"}]",
                                           NULL);
        struct incoming in = message();
        struct decision out;

        (void)state;
        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        assert_false(out.per_person); /* the channel is one conversation */
        in.is_own = true;
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        in.is_own = false;
        in.channel = "457";
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        dispatch_free(d);
}

static void a_rule_may_require_a_role(void **state)
{
        struct incoming in = message();

        (void)state;
        expect("{\"role\": [\"40\", \"41\"]}", &in,
               "the sender '7' has none of the roles of 'role': none is known");
        in.metadata = "{\"roles\": [\"12\", \"13\"]}";
        expect("{\"role\": [\"40\", \"41\"]}", &in,
               "the sender '7' has none of the roles of 'role'");
        expect("{\"role\": [\"40\", \"13\"]}", &in, NULL);
        expect("{\"role\": \"1*\"}", &in, NULL);
        in.metadata = "no json";
        expect("{\"role\": \"*\"}", &in,
               "the sender '7' has none of the roles of 'role': none is known");
}

static void mistakes_in_patterns_and_hours_have_their_line(void **state)
{
        (void)state;
        expect_mistake(
                "{ \"when\": { \"text\": [\"fine\",\n \"(a|b\"] } }",
                "config.json:3: rules[0].when.text[1]: '(a|b': missing closing parenthesis at "
                "offset 4");
        expect_mistake("{ \"when\": { \"mentionPattern\": \"[\" } }",
                       "config.json:2: rules[0].when.mentionPattern: '[': missing terminating ]");
        expect_mistake("{ \"when\": { \"text\": \"\\\\C\" } }", "is disabled");
        expect_mistake("{ \"when\": { \"hours\": \"9-17\" } }",
                       "expected hours such as '09:00-17:00'");
        expect_mistake("{ \"when\": { \"timezone\": \"Mars/Base\" } }",
                       "unknown time zone 'Mars/Base'");
        expect_mistake("{ \"when\": { \"timezone\": \"../../etc/passwd\" } }", "unknown time zone");
        expect_mistake("{ \"mode\": \"ambient\" }", "name them in 'channel'");
        expect_mistake("{ \"mode\": \"of\" }", "did you mean 'off'?");
        expect_mistake("{ \"reply\": \"thrad\" }", "did you mean 'thread'?");
        expect_mistake("{ \"reply\": \"thread\", \"mode\": \"silent\" }",
                       "works only with mode 'reply' or 'thread'");
        expect_mistake("{ \"when\": { \"bots\": \"some\" } }",
                       "expected one of 'none', 'mentions' or 'all'");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_star_matches_any_run_of_bytes),
                cmocka_unit_test(without_rules_dms_mentions_and_replies_are_answered),
                cmocka_unit_test(rules_are_recorded_with_why_they_do_not_match),
                cmocka_unit_test(a_record_of_many_rules_is_short),
                cmocka_unit_test(a_command_is_not_debounced),
                cmocka_unit_test(an_unanswered_command_gets_a_notice),
                cmocka_unit_test(a_trusted_adapter_answers_everything_with_its_own_agent),
                cmocka_unit_test(rules_of_others_do_not_silence_a_trusted_adapter),
                cmocka_unit_test(the_first_rule_that_matches_wins),
                cmocka_unit_test(a_channel_is_matched_by_its_name_too),
                cmocka_unit_test(dm_mention_and_reply_are_alternatives),
                cmocka_unit_test(a_rule_that_says_off_refuses_with_a_reason),
                cmocka_unit_test(other_events_trigger_only_by_name),
                cmocka_unit_test(a_bot_triggers_only_where_a_rule_names_it),
                cmocka_unit_test(old_backlog_is_expired_unless_the_rule_allows_it),
                cmocka_unit_test(a_missing_agent_or_adapter_is_reported),
                cmocka_unit_test(an_explanation_covers_each_rule),
                cmocka_unit_test(a_mistake_in_a_rule_has_its_line),
                cmocka_unit_test(a_guild_is_a_condition),
                cmocka_unit_test(reactions_trigger_in_any_skin_tone),
                cmocka_unit_test(emoji_are_compared_without_variants),
                cmocka_unit_test(a_text_pattern_must_match_the_raw_text),
                cmocka_unit_test(a_mention_pattern_counts_as_a_mention),
                cmocka_unit_test(the_bot_policy_selects_bots),
                cmocka_unit_test(hours_follow_their_time_zone),
                cmocka_unit_test(the_bots_own_message_is_not_answered),
                cmocka_unit_test(a_message_without_content_is_not_answered),
                cmocka_unit_test(a_stranger_is_refused_before_the_rules),
                cmocka_unit_test(a_message_with_too_many_hops_is_refused),
                cmocka_unit_test(turns_beyond_the_rate_are_refused_with_one_notice),
                cmocka_unit_test(a_rule_has_a_rate_of_its_own),
                cmocka_unit_test(a_bot_gets_no_rate_notice),
                cmocka_unit_test(a_dry_run_counts_nothing),
                cmocka_unit_test(a_rule_fixes_the_reply_policy),
                cmocka_unit_test(an_ambient_rule_gets_all_messages_but_its_own),
                cmocka_unit_test(a_rule_may_require_a_role),
                cmocka_unit_test(mistakes_in_patterns_and_hours_have_their_line),
                cmocka_unit_test(a_rule_covers_only_what_it_certainly_takes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
