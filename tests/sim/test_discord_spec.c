/*
 * Checks of requests against Discord's own description.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/discord/dc_spec.h"

/* problem "": the body is valid. `at`, if not NULL, is the path of the error: "a/b/0". */
static void check_body(const char *op, const char *text, const char *problem, const char *at,
                       const char *code)
{
        json_t *body = json_read(text, strlen(text), NULL), *errors, *below;
        char first[DC_SPEC_PROBLEM_SIZE];
        char *path, *name, *rest;

        assert_non_null(body);
        errors = dc_spec_check_body(dc_spec_op(op), body, false, first);
        assert_string_equal(first, problem);
        json_decref(body);
        if (!at) {
                assert_null(errors);
                return;
        }
        below = errors;
        path = rest = mem_strdup(at);
        while ((name = strsep(&rest, "/")) && *name)
                below = json_object_get(below, name);
        below = json_array_get(json_object_get(below, "_errors"), 0);
        assert_string_equal(json_str(below, "code", ""), code);
        free(path);
        json_decref(errors);
}

static void valid_requests_pass(void **state)
{
        (void)state;
        check_body("create_message", "{\"content\":\"hi\",\"nonce\":7,\"enforce_nonce\":true}", "",
                   NULL, NULL);
        check_body("create_message", "{\"content\":null,\"embeds\":[{\"title\":\"t\"}]}", "", NULL,
                   NULL);
        check_body("create_message",
                   "{\"message_reference\":{\"message_id\":\"5\",\"fail_if_not_exists\":false},"
                   "\"allowed_mentions\":{\"parse\":[],\"replied_user\":false},\"content\":\"x\"}",
                   "", NULL, NULL);
        check_body("create_message",
                   "{\"components\":[{\"type\":1,\"components\":[{\"type\":2,\"style\":1,"
                   "\"label\":\"Yes\",\"custom_id\":\"y\"}]}]}",
                   "", NULL, NULL);
        check_body("bulk_set_application_commands",
                   "[{\"name\":\"ask\",\"description\":\"Asks\",\"options\":[{\"type\":3,"
                   "\"name\":\"q\",\"description\":\"What\",\"required\":true}]}]",
                   "", NULL, NULL);
        check_body("create_interaction_response", "{\"type\":5,\"data\":{\"flags\":64}}", "", NULL,
                   NULL);
}

static void errors_name_the_place_in_the_request(void **state)
{
        char *longer = mem_zalloc(2100), *body;

        (void)state;
        check_body("create_message", "{\"colour\":1}",
                   "body: \"colour\" is not in the description.", "colour", "UNKNOWN_FIELD");
        check_body("create_message", "{\"content\":5}",
                   "content: Could not interpret the value as string.", "content",
                   "STRING_TYPE_CONVERT");
        check_body("create_message", "{\"embeds\":[{\"title\":\"a\"},{\"color\":\"red\"}]}",
                   "embeds.1.color: Value is not int.", "embeds/1/color", "NUMBER_TYPE_COERCE");
        check_body("create_message", "{\"message_reference\":{\"message_id\":\"five\"}}",
                   "message_reference.message_id: Value \"five\" is not snowflake.",
                   "message_reference/message_id", "NUMBER_TYPE_COERCE");
        check_body("create_message", "{\"allowed_mentions\":{\"parse\":[\"all\"]}}",
                   "allowed_mentions.parse.0: Value \"all\" is not one of those allowed.",
                   "allowed_mentions/parse/0", "BASE_TYPE_CHOICES");
        check_body("create_thread_from_message", "{\"auto_archive_duration\":61,\"name\":\"x\"}",
                   "auto_archive_duration: Value 61 is not one of those allowed.",
                   "auto_archive_duration", "BASE_TYPE_CHOICES");
        check_body("create_thread_from_message", "{}", "body: This field is required (name)",
                   "name", "BASE_TYPE_REQUIRED");
        memset(longer, 'x', 2001);
        body = mem_printf("{\"content\":\"%s\"}", longer);
        check_body("create_message", body, "content: Must be 2000 or fewer in length.", "content",
                   "BASE_TYPE_MAX_LENGTH");
        free(body);
        free(longer);
}

static void lengths_are_counted_in_characters(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        buf_addstr(&b, "{\"content\":\"");
        for (int i = 0; i < 2000; i++)
                buf_addstr(&b, "é");
        buf_addstr(&b, "\"}");
        check_body("create_message", b.data, "", NULL, NULL);
        buf_release(&b);
}

static void queries_are_checked_too(void **state)
{
        char problem[DC_SPEC_PROBLEM_SIZE];
        json_t *query = json_pack("{s:s,s:s}", "limit", "100", "after", "5");
        json_t *errors = dc_spec_check_query(dc_spec_op("list_messages"), query, false, problem);

        (void)state;
        assert_null(errors);
        json_object_set_new(query, "limit", json_string("101"));
        errors = dc_spec_check_query(dc_spec_op("list_messages"), query, false, problem);
        assert_string_equal(problem, "limit: int value should be less than or equal to 100.");
        json_decref(errors);
        json_object_set_new(query, "limit", json_string("many"));
        errors = dc_spec_check_query(dc_spec_op("list_messages"), query, false, problem);
        assert_non_null(errors);
        json_decref(errors);
        json_decref(query);
}

static void lenient_checks_ignore_unknown_members(void **state)
{
        json_t *body = json_pack("{s:s,s:i}", "content", "x", "colour", 1);
        char problem[DC_SPEC_PROBLEM_SIZE];

        (void)state;
        assert_null(dc_spec_check_body(dc_spec_op("create_message"), body, true, problem));
        json_decref(body);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(valid_requests_pass),
                cmocka_unit_test(errors_name_the_place_in_the_request),
                cmocka_unit_test(lengths_are_counted_in_characters),
                cmocka_unit_test(queries_are_checked_too),
                cmocka_unit_test(lenient_checks_ignore_unknown_members),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
