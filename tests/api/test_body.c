/* Bodies and queries are read by tables; names that are not in the table are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/core/body.h"
#include "base/json.h"
#include "base/mem.h"

struct person {
        const char *id;
        bool is_bot;
};
struct letter {
        const char *text, *mood;
        int64_t copies, time_ms, answers;
        bool loud;
        struct person sender;
        const json_t *extra;
        struct field_list readers;
};

static const char *const moods[] = { "kind", "stern", NULL };
static const struct field person_fields[] = {
        { "id", FIELD_STRING, .required = true, .min = 1, .max = 5, FIELD_AT(person, id) },
        { "isBot", FIELD_BOOL, FIELD_AT(person, is_bot) },
        FIELD_END,
};
static const struct field letter_fields[] = {
        { "text", FIELD_STRING, .required = true, .min = 1, .max = 10, FIELD_AT(letter, text) },
        { "mood", FIELD_CHOICE, .choices = moods, FIELD_AT(letter, mood) },
        { "copies", FIELD_INT, .min = 1, .max = 9, .fallback = "3", FIELD_AT(letter, copies) },
        { "time", FIELD_TIME, FIELD_AT(letter, time_ms) },
        { "answers", FIELD_ID, .prefix = "ltr-", FIELD_AT(letter, answers) },
        { "loud", FIELD_BOOL, FIELD_AT(letter, loud) },
        { "sender", FIELD_GROUP, .group = person_fields, FIELD_AT(letter, sender) },
        { "extra", FIELD_OBJECT, FIELD_AT(letter, extra) },
        { "readers", FIELD_LIST, .group = person_fields, .item_size = sizeof(struct person),
          .max = 2, FIELD_AT(letter, readers) },
        FIELD_END,
};

/* The mistake reported for `path` when this body is read; yours to free. NULL: none. */
static char *mistake_at(const char *json, const char *path)
{
        struct letter l = { .copies = 3 };
        struct body b;
        json_t *fields;
        char *text, *what;

        body_init(&b);
        body_read(&b, json, strlen(json), letter_fields, &l);
        text = mem_printf("{%s}", b.mistakes.data);
        fields = json_loads(text, 0, NULL);
        assert_non_null(fields);
        what = mem_strdup(json_string_value(json_array_get(json_object_get(fields, path), 0)));
        json_decref(fields);
        free(text);
        body_release(&b);
        return what;
}

static void expect_mistake(const char *json, const char *path, const char *what)
{
        char *mistake = mistake_at(json, path);

        assert_non_null(mistake);
        assert_string_equal(mistake, what);
        free(mistake);
}

static void absent_fields_keep_their_default(void **state)
{
        static const char json[] =
                "{\"text\":\"hello\",\"mood\":\"stern\",\"time\":\"1970-01-01T00:00:01Z\","
                "\"answers\":\"ltr-7\",\"loud\":true,\"sender\":{\"id\":\"ann\","
                "\"isBot\":true},\"extra\":{\"a\":[1]},\"readers\":[{\"id\":\"x\"},"
                "{\"id\":\"y\"}]}";
        struct letter l = { .copies = 3 };
        struct body b;

        (void)state;
        body_init(&b);
        assert_int_equal(body_read(&b, json, strlen(json), letter_fields, &l), 0);
        assert_string_equal(l.text, "hello");
        assert_string_equal(l.mood, "stern");
        assert_int_equal(l.copies, 3);
        assert_int_equal(l.time_ms, 1000);
        assert_int_equal(l.answers, 7);
        assert_true(l.loud);
        assert_string_equal(l.sender.id, "ann");
        assert_true(l.sender.is_bot);
        assert_int_equal(json_object_size(l.extra), 1);
        assert_int_equal(l.readers.count, 2);
        assert_string_equal(((struct person *)l.readers.items)[1].id, "y");
        body_release(&b);
}

static void null_counts_as_absent(void **state)
{
        struct letter l = { .copies = 3 };
        struct body b;

        (void)state;
        body_init(&b);
        assert_int_equal(body_read(&b, "{\"text\":\"a\",\"copies\":null}", 26, letter_fields, &l),
                         0);
        assert_int_equal(l.copies, 3);
        body_release(&b);
        expect_mistake("{\"text\":null}", "text", "is required");
}

static void mistakes_are_reported_by_path(void **state)
{
        (void)state;
        expect_mistake("{}", "text", "is required");
        expect_mistake("[]", "", "must be an object");
        expect_mistake("{\"text\":\"\"}", "text", "must not be empty");
        expect_mistake("{\"text\":\"12345678901\"}", "text", "must have at most 10 bytes");
        expect_mistake("{\"text\":5}", "text", "must be a string");
        expect_mistake("{\"text\":\"a\",\"loud\":\"true\"}", "loud", "must be true or false");
        expect_mistake("{\"text\":\"a\",\"loud\":1}", "loud", "must be true or false");
        expect_mistake("{\"text\":\"a\",\"copies\":10}", "copies", "must be between 1 and 9");
        expect_mistake("{\"text\":\"a\",\"copies\":1.5}", "copies", "must be a whole number");
        expect_mistake("{\"text\":\"a\",\"mood\":\"odd\"}", "mood", "must be one of kind, stern");
        expect_mistake("{\"text\":\"a\",\"answers\":\"evt-7\"}", "answers",
                       "must be an id such as ltr-42");
        expect_mistake("{\"text\":\"a\",\"time\":9223372036854775807}", "time",
                       "must be a time in milliseconds, or RFC 3339 text");
        expect_mistake("{\"text\":\"a\",\"sender\":{}}", "sender.id", "is required");
        expect_mistake("{\"text\":\"a\",\"sender\":7}", "sender", "must be an object");
        expect_mistake("{\"text\":\"a\",\"extra\":[]}", "extra", "must be an object");
        expect_mistake("{\"text\":\"a\",\"readers\":[{\"id\":\"x\"},{\"id\":\"toolong\"}]}",
                       "readers[1].id", "must have at most 5 bytes");
        expect_mistake("{\"text\":\"a\",\"readers\":[{},{},{}]}", "readers",
                       "must have at most 2 elements");
}

static void an_unknown_field_is_refused_with_the_nearest_name(void **state)
{
        (void)state;
        expect_mistake("{\"text\":\"a\",\"copys\":1}", "copys",
                       "unknown field (did you mean 'copies'?)");
        expect_mistake("{\"text\":\"a\",\"zzzzzzzzz\":1}", "zzzzzzzzz", "unknown field");
        expect_mistake("{\"text\":\"a\",\"sender\":{\"id\":\"a\",\"qqqqqqqq\":1}}",
                       "sender.qqqqqqqq", "unknown field");
}

static void malformed_json_is_reported_with_its_position(void **state)
{
        struct letter l = { 0 };
        struct body b;

        (void)state;
        body_init(&b);
        assert_int_equal(body_read(&b, "{\n  \"text\": oops}", 18, letter_fields, &l), -1);
        assert_non_null(strstr(b.error.text, "line 2"));
        assert_int_equal(b.mistake_count, 0);
        body_release(&b);
}

static void a_flood_of_mistakes_is_reported_in_part(void **state)
{
        struct buf json;
        struct letter l = { 0 };
        struct body b;

        (void)state;
        buf_init(&json, 0);
        buf_addstr(&json, "{\"text\":\"a\"");
        for (int i = 0; i < 500; i++)
                buf_addf(&json, ",\"field%d\":1", i);
        buf_addstr(&json, "}");
        body_init(&b);
        assert_int_equal(body_read(&b, json.data, json.len, letter_fields, &l), -1);
        assert_int_equal(b.mistake_count, 500);
        assert_true(b.mistakes.len < 2000);
        body_release(&b);
        buf_release(&json);
}

struct search {
        const char *channel;
        int64_t limit, since_ms;
        bool open;
};
static const struct field search_fields[] = {
        { "channel", FIELD_STRING, .required = true, FIELD_AT(search, channel) },
        { "limit", FIELD_INT, .min = 1, .max = 100, FIELD_AT(search, limit) },
        { "since", FIELD_TIME, FIELD_AT(search, since_ms) },
        { "open", FIELD_BOOL, FIELD_AT(search, open) },
        FIELD_END,
};

static void a_query_is_read_by_the_same_table(void **state)
{
        struct search s = { .limit = 50, .open = true };
        struct body b;

        (void)state;
        body_init(&b);
        body_query_add(&b, search_fields, &s, "channel", "c1");
        body_query_add(&b, search_fields, &s, "since", "1500");
        body_query_add(&b, search_fields, &s, "open", "false");
        assert_int_equal(body_query_done(&b, search_fields), 0);
        assert_string_equal(s.channel, "c1");
        assert_int_equal(s.limit, 50);
        assert_int_equal(s.since_ms, 1500);
        assert_false(s.open);
        body_release(&b);
}

static void a_query_refuses_unknown_parameters(void **state)
{
        static const char *const bad[][2] = {
                { "limit", "0" },  { "limit", "ten" },
                { "limit", "" },   { "limit", "99999999999999999999" },
                { "open", "1" },   { "open", "" },
                { "apiKey", "x" }, { "since", "yesterday" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(bad); i++) {
                struct search s = { 0 };
                struct body b;

                body_init(&b);
                body_query_add(&b, search_fields, &s, "channel", "c1");
                body_query_add(&b, search_fields, &s, bad[i][0], bad[i][1]);
                assert_int_equal(body_query_done(&b, search_fields), -1);
                assert_int_equal(b.mistake_count, 1);
                body_release(&b);
        }
}

static void a_query_parameter_is_given_once(void **state)
{
        struct search s = { 0 };
        struct body b;

        (void)state;
        body_init(&b);
        body_query_add(&b, search_fields, &s, "limit", "5");
        body_query_add(&b, search_fields, &s, "limit", "6");
        body_query_add(&b, search_fields, &s, "limit", "7");
        assert_int_equal(body_query_done(&b, search_fields), -1);
        assert_int_equal(b.mistake_count, 2);
        assert_non_null(strstr(b.mistakes.data, "more than once"));
        assert_non_null(strstr(b.mistakes.data, "is required"));
        body_release(&b);
}

static void ids_have_a_prefix_or_none(void **state)
{
        (void)state;
        assert_int_equal(field_id("dlv-", "dlv-42"), 42);
        assert_int_equal(field_id("dlv-", "42"), 42);
        assert_int_equal(field_id("dlv-", "trn-42"), -1);
        assert_int_equal(field_id("dlv-", "dlv-"), -1);
        assert_int_equal(field_id("dlv-", "-42"), -1);
        assert_int_equal(field_id("dlv-", "dlv-042"), -1);
        assert_int_equal(field_id("dlv-", "042"), -1);
        assert_int_equal(field_id("dlv-", "0"), 0);
        assert_int_equal(field_id("dlv-", "dlv-99999999999999999999"), -1);
}

static void the_schema_is_valid_json_and_names_every_field(void **state)
{
        struct buf b;
        json_t *schema;

        (void)state;
        buf_init(&b, 0);
        field_table_schema(&b, NULL, letter_fields);
        schema = json_loads(b.data, 0, NULL);
        assert_non_null(schema);
        assert_int_equal(json_object_size(json_object_get(schema, "properties")),
                         COUNT(letter_fields) - 1);
        assert_int_equal(json_array_size(json_object_get(schema, "required")), 1);
        json_decref(schema);
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(absent_fields_keep_their_default),
                cmocka_unit_test(null_counts_as_absent),
                cmocka_unit_test(mistakes_are_reported_by_path),
                cmocka_unit_test(an_unknown_field_is_refused_with_the_nearest_name),
                cmocka_unit_test(malformed_json_is_reported_with_its_position),
                cmocka_unit_test(a_flood_of_mistakes_is_reported_in_part),
                cmocka_unit_test(a_query_is_read_by_the_same_table),
                cmocka_unit_test(a_query_refuses_unknown_parameters),
                cmocka_unit_test(a_query_parameter_is_given_once),
                cmocka_unit_test(ids_have_a_prefix_or_none),
                cmocka_unit_test(the_schema_is_valid_json_and_names_every_field),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
