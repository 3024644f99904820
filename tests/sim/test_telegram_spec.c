#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/telegram/tg_spec.h"

static json_t *object(const char *text)
{
        json_t *value = json_read(text, strlen(text), NULL);

        assert_non_null(value);
        return value;
}

static void methods_are_found_in_any_case(void **state)
{
        (void)state;
        assert_string_equal(tg_spec_method("SENDMESSAGE")->name, "sendMessage");
        assert_string_equal(tg_spec_method("getme")->name, "getMe");
        assert_null(tg_spec_method("sendNothing"));
        for (size_t i = 0; i < tg_spec_method_count(); i++)
                assert_ptr_equal(tg_spec_method(tg_spec_method_at(i)->name), tg_spec_method_at(i));
}

static void the_table_covers_the_whole_description(void **state)
{
        json_t *spec = json_load_file("tests/data/telegram_bot_api.json", 0, NULL), *method, *field;
        const char *name;
        size_t i;

        (void)state;
        assert_non_null(spec);
        assert_int_equal(json_object_size(json_object_get(spec, "methods")),
                         tg_spec_method_count());
        json_object_foreach(json_object_get(spec, "methods"), name, method) {
                const struct tg_spec_method *m = tg_spec_method(name);

                assert_non_null(m);
                json_array_foreach(json_object_get(method, "fields"), i, field) {
                        assert_true(tg_spec_has_parameter(m, json_str(field, "name", "")));
                }
        }
        json_decref(spec);
}

static void texts_are_converted_to_described_types(void **state)
{
        json_t *args =
                object("{\"chat_id\":\"42\",\"text\":\"hi\",\"disable_notification\":\"True\","
                       "\"message_thread_id\":null,"
                       "\"reply_markup\":\"{\\\"inline_keyboard\\\":[[{\\\"text\\\":\\\"a\\\","
                       "\\\"url\\\":\\\"b\\\"}]]}\"}");
        char problem[TG_SPEC_PROBLEM_SIZE];

        (void)state;
        assert_int_equal(tg_spec_check(tg_spec_method("sendMessage"), args, problem), 0);
        assert_int_equal(json_int(args, "chat_id", 0), 42);
        assert_true(json_flag(args, "disable_notification", false));
        assert_true(json_is_array(
                json_object_get(json_object_get(args, "reply_markup"), "inline_keyboard")));
        assert_null(json_object_get(args, "message_thread_id"));
        json_decref(args);
}

static void violations_of_the_description_are_named(void **state)
{
        static const struct {
                const char *method, *args, *problem;
        } rows[] = {
                { "sendMessage", "{\"chat_id\":1,\"text\":\"x\"}", "" },
                { "sendMessage", "{\"chat_id\":\"@name\",\"text\":\"x\"}", "" },
                { "sendMessage", "{\"chat_id\":1,\"text\":\"x\",\"reply_to_message_id\":3}", "" },
                { "sendMessage", "{\"text\":\"x\"}", "chat_id is empty" },
                { "sendMessage", "{\"chat_id\":1}", "message text is empty" },
                { "sendMessage", "{\"chat_id\":1,\"text\":\"x\",\"colour\":1}",
                  "unknown parameter \"colour\"" },
                { "sendMessage", "{\"chat_id\":1,\"text\":5}",
                  "can't parse parameter \"text\": expected String" },
                { "sendMessage",
                  "{\"chat_id\":1,\"text\":\"x\",\"reply_parameters\":{\"message_id\":\"y\"}}",
                  "can't parse parameter \"reply_parameters\": field \"message_id\" of "
                  "ReplyParameters has a wrong type" },
                { "sendMessage", "{\"chat_id\":1,\"text\":\"x\",\"reply_parameters\":{}}",
                  "can't parse parameter \"reply_parameters\": ReplyParameters has no field "
                  "\"message_id\"" },
                { "sendMessage",
                  "{\"chat_id\":1,\"text\":\"x\","
                  "\"reply_markup\":{\"inline_keyboard\":[[{\"text\":\"a\",\"hide\":false}]]}}",
                  "can't parse parameter \"reply_markup\": unknown field \"hide\" in "
                  "InlineKeyboardButton" },
                { "getUpdates", "{\"timeout\":1.5}",
                  "can't parse parameter \"timeout\": expected Integer" },
                { "setMessageReaction",
                  "{\"chat_id\":1,\"message_id\":2,\"reaction\":[{\"type\":\"emoji\","
                  "\"emoji\":\"👍\"}]}",
                  "" },
                { "setMessageReaction",
                  "{\"chat_id\":1,\"message_id\":2,\"reaction\":[{\"type\":\"emoji\"}]}",
                  "can't parse parameter \"reaction\": ReactionTypeEmoji has no field \"emoji\"" },
                { "sendMediaGroup",
                  "{\"chat_id\":1,\"media\":[{\"type\":\"photo\",\"media\":\"a\"},"
                  "{\"type\":\"video\",\"media\":\"b\"}]}",
                  "" },
        };
        char problem[TG_SPEC_PROBLEM_SIZE];

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *args = object(rows[i].args);

                assert_int_equal(tg_spec_check(tg_spec_method(rows[i].method), args, problem),
                                 *rows[i].problem ? -1 : 0);
                assert_string_equal(problem, rows[i].problem);
                json_decref(args);
        }
}

static void an_unknown_field_does_not_stop_the_conversion(void **state)
{
        json_t *args =
                object("{\"chat_id\":\"1\",\"text\":\"x\","
                       "\"reply_parameters\":\"{\\\"message_id\\\":\\\"7\\\",\\\"odd\\\":1}\"}");
        char problem[TG_SPEC_PROBLEM_SIZE];

        (void)state;
        assert_int_equal(tg_spec_check(tg_spec_method("sendMessage"), args, problem), -1);
        assert_int_equal(json_int(json_object_get(args, "reply_parameters"), "message_id", 0), 7);
        json_decref(args);
}

static void only_some_emoji_are_reactions(void **state)
{
        (void)state;
        assert_true(tg_spec_reaction_allowed("👍"));
        assert_true(tg_spec_reaction_allowed("❤"));
        assert_true(tg_spec_reaction_allowed("❤️")); /* with variation selector */
        assert_true(tg_spec_reaction_allowed("👨‍💻"));
        assert_false(tg_spec_reaction_allowed("✅"));
        assert_false(tg_spec_reaction_allowed(""));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(methods_are_found_in_any_case),
                cmocka_unit_test(the_table_covers_the_whole_description),
                cmocka_unit_test(texts_are_converted_to_described_types),
                cmocka_unit_test(violations_of_the_description_are_named),
                cmocka_unit_test(an_unknown_field_does_not_stop_the_conversion),
                cmocka_unit_test(only_some_emoji_are_reactions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
