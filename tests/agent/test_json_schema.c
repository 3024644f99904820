#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tools/json_schema.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

struct row {
        const char *schema, *value;
        const char *error; /* NULL: accepted */
};

static int check(const char *schema, const char *value, struct error *err)
{
        json_t *s = json_loads(schema, JSON_DECODE_ANY, NULL);
        json_t *v = json_loads(value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        int rc;

        assert_non_null(s);
        assert_non_null(v);
        rc = json_schema_check(s, v, err);
        json_decref(s);
        json_decref(v);
        return rc;
}

static void check_rows(const struct row *rows, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                struct error err = { 0 };
                int rc = check(rows[i].schema, rows[i].value, &err);

                if (rc == 0 && rows[i].error)
                        fail_msg("%s accepted %s", rows[i].schema, rows[i].value);
                if (rc < 0 && !rows[i].error)
                        fail_msg("%s refused %s: %s", rows[i].schema, rows[i].value, err.text);
                if (rows[i].error)
                        assert_string_equal(err.text, rows[i].error);
        }
}

static void values_are_checked_and_errors_say_what_is_accepted(void **state)
{
        static const struct row rows[] = {
                { "{\"type\":\"string\"}", "\"a\"", NULL },
                { "{\"type\":\"string\"}", "7", "must be of type string, but is integer 7" },
                { "{\"type\":[\"string\",\"null\"]}", "null", NULL },
                { "{\"type\":[\"string\",\"null\"]}", "true",
                  "must be of type [\"string\",\"null\"], but is boolean true" },
                { "{\"type\":\"integer\"}", "3.0", NULL },
                { "{\"type\":\"integer\"}", "3.5", "must be of type integer, but is number 3.5" },
                { "{\"type\":\"number\"}", "3", NULL },
                { "{\"enum\":[\"a\",2]}", "2.0", NULL },
                { "{\"enum\":[\"a\",2]}", "\"b\"", "is \"b\", but must be one of [\"a\",2]" },
                { "{\"const\":{\"a\":1}}", "{\"a\":1}", NULL },
                { "{\"const\":1}", "2", "is 2, but must be 1" },
                { "{\"minimum\":1,\"maximum\":5}", "5", NULL },
                { "{\"minimum\":1}", "0", "is 0, but must be at least 1" },
                { "{\"maximum\":5}", "6", "is 6, but must be at most 5" },
                { "{\"exclusiveMinimum\":1}", "1", "is 1, but must be greater than 1" },
                { "{\"exclusiveMaximum\":1}", "1", "is 1, but must be less than 1" },
                { "{\"multipleOf\":0.1}", "0.3", NULL },
                { "{\"multipleOf\":2}", "3", "is 3, but must be a multiple of 2" },
                { "{\"maxLength\":2}", "\"\xc3\xa4\xc3\xb6\"", NULL },
                { "{\"minLength\":1}", "\"\"", "has 0 characters, but needs at least 1" },
                { "{\"maxLength\":2}", "\"abc\"", "has 3 characters, but may have at most 2" },
                { "{\"pattern\":\"^a\\\\d+$\"}", "\"a12\"", NULL },
                { "{\"pattern\":\"^a\\\\d+$\"}", "\"a12\\n\"",
                  "does not match the pattern ^a\\d+$" },
                { "{\"pattern\":\"(\"}", "\"not a pattern we can read\"", NULL },
                { "{\"unknown\":{\"keyword\":1}}", "1", NULL },
                { "false", "1", "is not accepted here" },
        };

        (void)state;
        check_rows(rows, COUNT(rows));
}

static void objects_and_arrays_are_checked_by_path(void **state)
{
        static const struct row rows[] = {
                { "{\"required\":[\"a\",\"b\",\"c\"]}", "{\"b\":1}",
                  "required members are missing: 'a', 'c'" },
                { "{\"properties\":{\"a\":{\"properties\":{\"b\":{\"type\":\"string\"}}}}}",
                  "{\"a\":{\"b\":1}}", "'a.b' must be of type string, but is integer 1" },
                { "{\"properties\":{\"a\":{\"required\":[\"b\"]}}}", "{\"a\":{}}",
                  "'a' has members missing: 'b'" },
                { "{\"properties\":{\"path\":{}},\"additionalProperties\":false}", "{\"paht\":1}",
                  "unknown member 'paht' (did you mean 'path'?); it may have 'path'" },
                { "{\"properties\":{\"a\":{}},\"additionalProperties\":{\"type\":\"string\"}}",
                  "{\"b\":2}", "'b' must be of type string, but is integer 2" },
                { "{\"patternProperties\":{\"^x\":{\"type\":\"string\"}},"
                  "\"additionalProperties\":false}",
                  "{\"x1\":\"\"}", NULL },
                { "{\"items\":{\"type\":\"string\"}}", "[\"a\",2]",
                  "'[1]' must be of type string, but is integer 2" },
                { "{\"properties\":{\"e\":{\"items\":{\"required\":[\"x\"]}}}}",
                  "{\"e\":[{\"x\":1},{}]}", "'e[1]' has members missing: 'x'" },
                { "{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\"]", NULL },
                { "{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\",1]",
                  "'[1]' is not accepted here" },
                { "{\"items\":[{\"type\":\"string\"}],\"additionalItems\":false}", "[\"a\",1]",
                  "'[1]' is not accepted here" },
                { "{\"minItems\":1}", "[]", "has 0 items, but needs at least 1" },
                { "{\"uniqueItems\":true}", "[1,2,1.0]",
                  "has equal items at 0 and 2; each may occur once" },
        };

        (void)state;
        check_rows(rows, COUNT(rows));
}

static void forms_and_references_are_followed_within_the_schema(void **state)
{
        static const char tree[] =
                "{\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":{\"type\":\"object\","
                "\"properties\":{\"child\":{\"$ref\":\"#/%24defs/node\"}},"
                "\"additionalProperties\":false}}}";
        static const struct row rows[] = {
                { tree, "{\"child\":{\"child\":{}}}", NULL },
                { tree, "{\"child\":{\"child\":1}}",
                  "'child.child' must be of type object, but is integer 1" },
                { "{\"$ref\":\"https://example.org/schema.json\"}", "1", NULL },
                { "{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3}]}", "4", NULL },
                { "{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3}]}", "1",
                  "matches none of the 2 accepted forms (1: must be of type string, but is integer "
                  "1; 2: is 1, but must be at least 3)" },
                { "{\"oneOf\":[{\"minimum\":1},{\"minimum\":3}]}", "2", NULL },
                { "{\"oneOf\":[{\"minimum\":1},{\"minimum\":3}]}", "4",
                  "matches several of the 2 accepted forms, but only one may match" },
                { "{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "4",
                  "is 4, but must be at most 3" },
                { "{\"not\":{\"type\":\"string\"}}", "\"\"", "matches what the schema excludes" },
        };

        (void)state;
        check_rows(rows, COUNT(rows));
}

static void expect_limit(const char *schema, const char *value)
{
        struct error err = { 0 };

        assert_int_equal(check(schema, value, &err), -1);
        assert_int_equal(err.kind, ERR_LIMIT);
}

static void work_is_bounded(void **state)
{
        struct error err = { 0 };
        struct buf value;

        (void)state;
        expect_limit("{\"$ref\":\"#\"}", "1");
        expect_limit("{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}", "1");
        expect_limit("{\"not\":{\"$ref\":\"#\"}}", "1");
        buf_init(&value, 0);
        for (int i = 0; i < JSON_SCHEMA_NODES; i++)
                buf_addstr(&value, i == 0 ? "[0" : ",0");
        buf_addstr(&value, "]");
        expect_limit("{\"items\":{\"type\":\"integer\"}}", value.data);
        assert_int_equal(check("{\"type\":\"array\"}", value.data, &err), 0);
        buf_clear(&value);
        buf_addch(&value, '"');
        for (int i = 0; i < 50000; i++)
                buf_addch(&value, 'a');
        buf_addstr(&value, "!\"");
        assert_int_equal(check("{\"pattern\":\"^(a+)+$\"}", value.data, &err), -1);
        assert_non_null(strstr(err.text, "takes too long"));
        buf_release(&value);
}

/* PCRE2 limits the work at each position, not that of all positions. */
static void slow_patterns_share_one_time_limit(void **state)
{
        int64_t start = clock_mono_ms();
        struct error err = { 0 };
        struct buf value;

        (void)state;
        buf_init(&value, 0);
        buf_addch(&value, '"');
        for (int i = 0; i < 20000; i++)
                buf_addch(&value, 'a');
        buf_addstr(&value, "cb\"");
        assert_int_equal(check("{\"pattern\":\"(a|a){12}b\"}", value.data, &err), -1);
        assert_non_null(strstr(err.text, "takes too long"));
        expect_limit("{\"anyOf\":[{\"pattern\":\"(a|a){12}b\"},{\"type\":\"string\"}]}",
                     value.data);
        assert_true(clock_mono_ms() - start < 2000);
        buf_release(&value);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(values_are_checked_and_errors_say_what_is_accepted),
                cmocka_unit_test(objects_and_arrays_are_checked_by_path),
                cmocka_unit_test(forms_and_references_are_followed_within_the_schema),
                cmocka_unit_test(work_is_bounded),
                cmocka_unit_test(slow_patterns_share_one_time_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
