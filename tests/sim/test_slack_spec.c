/*
 * Checks of arguments against Slack's description of its methods.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "sim/slack/sl_spec.h"

static void problems_of_arguments_are_named(void **state)
{
        static const struct {
                const char *method, *args, *error, *problem;
        } rows[] = {
                { "chat.postMessage", "{\"channel\":\"C1\",\"text\":\"x\"}", NULL, "" },
                { "chat.postMessage", "{\"channel\":\"C1\",\"text\":null}", NULL, "" },
                { "chat.postMessage", "{\"text\":\"x\"}", "invalid_arguments",
                  "missing required field: channel" },
                { "chat.postMessage", "{\"channel\":\"C1\",\"colour\":\"x\"}", "invalid_arguments",
                  "no argument 'colour'" },
                { "chat.postMessage", "{\"channel\":\"C1\",\"blocks\":7}", "invalid_arguments",
                  "argument 'blocks' has a wrong type" },
                { "chat.postMessage", "{\"channel\":\"C1\",\"blocks\":\"[{\"}", "invalid_arguments",
                  "argument 'blocks' has a wrong type" },
                { "chat.postMessage", "{\"channel\":\"C1\",\"../x\":\"y\"}", "invalid_arg_name",
                  "argument '../x'" },
                { "conversations.history", "{\"channel\":\"C1\",\"limit\":\"ten\"}",
                  "invalid_arguments", "argument 'limit' has a wrong type" },
                { "chat.startStream", "{\"channel\":\"C1\",\"thread_ts\":\"1.2\"}", NULL, "" },
                { "files.completeUploadExternal", "{}", "invalid_arguments",
                  "missing required field: files" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *args = json_read(rows[i].args, strlen(rows[i].args), NULL);
                json_t *typed = json_object();
                char problem[SL_SPEC_PROBLEM_SIZE] = "";
                const char *error =
                        sl_spec_read(sl_spec_method(rows[i].method), args, false, typed, problem);

                assert_string_equal(error ? error : "", rows[i].error ? rows[i].error : "");
                assert_string_equal(problem, rows[i].problem);
                json_decref(args);
                json_decref(typed);
        }
}

static void texts_of_a_form_get_their_types(void **state)
{
        static const char text[] = "{\"channel\":\"C1\",\"limit\":\"7\",\"inclusive\":\"1\","
                                   "\"include_all_metadata\":\"false\",\"other\":\"x\"}";
        json_t *args = json_read(text, strlen(text), NULL), *typed = json_object();
        char problem[SL_SPEC_PROBLEM_SIZE];

        (void)state;
        assert_null(
                sl_spec_read(sl_spec_method("conversations.history"), args, true, typed, problem));
        assert_int_equal(json_int(typed, "limit", 0), 7);
        assert_true(json_flag(typed, "inclusive", false));
        assert_false(json_flag(typed, "include_all_metadata", true));
        assert_string_equal(json_str(typed, "other", ""), "x");
        json_decref(args);
        json_decref(typed);
}

/* Those that Slack added after its description are in our supplement. */
static void the_table_has_old_and_new_methods(void **state)
{
        (void)state;
        assert_true(sl_spec_count() > 170);
        assert_non_null(sl_spec_method("chat.appendStream"));
        assert_non_null(sl_spec_method("assistant.threads.setStatus"));
        assert_null(sl_spec_method("chat.sing"));
        assert_true(sl_spec_method("chat.postMessage")->json);
        assert_false(sl_spec_method("conversations.history")->json);
        assert_false(sl_spec_method("files.getUploadURLExternal")->json);
        for (size_t i = 1; i < sl_spec_count(); i++)
                assert_true(strcmp(sl_spec_at(i - 1)->name, sl_spec_at(i)->name) < 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(problems_of_arguments_are_named),
                cmocka_unit_test(texts_of_a_form_get_their_types),
                cmocka_unit_test(the_table_has_old_and_new_methods),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
