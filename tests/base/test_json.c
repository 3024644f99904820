#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/utf8.h"

static void members_and_elements_get_their_commas(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "a", "x:");
        jsonw_str(&b, "b", NULL);
        jsonw_opt(&b, "left out", NULL);
        jsonw_open_member(&b, "list", '[');
        jsonw_int(&b, NULL, INT64_MIN);
        jsonw_bool(&b, NULL, true);
        jsonw_real(&b, NULL, 0.5);
        jsonw_real(&b, NULL, NAN);
        jsonw_open(&b, '[');
        jsonw_close(&b, ']');
        jsonw_open(&b, '{');
        jsonw_close(&b, '}');
        jsonw_close(&b, ']');
        jsonw_raw(&b, "raw", "{\"q\":1}\n");
        jsonw_strn(&b, "n", "abcdef", 3);
        jsonw_close(&b, '}');
        assert_string_equal(
                b.data,
                "{\"a\":\"x:\",\"b\":null,\"list\":[-9223372036854775808,true,0.5,null,[],{}],"
                "\"raw\":{\"q\":1},\"n\":\"abc\"}");
        buf_release(&b);
}

static void lines_of_json_share_a_buf(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        buf_addstr(&b, "data: ");
        jsonw_open(&b, '[');
        jsonw_close(&b, ']');
        buf_addch(&b, '\n');
        jsonw_open(&b, '{');
        jsonw_close(&b, '}');
        assert_string_equal(b.data, "data: []\n{}");
        buf_release(&b);
}

static void control_characters_are_escaped(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        jsonw_quote(&b, "\"\\\b\f\n\r\t\x01\0\x7f\xc2\x9b", 12);
        assert_string_equal(b.data, "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u0000\\u007f\\u009b\"");
        buf_release(&b);
}

/* Random bytes with many partial characters, quotes and backslashes. */
static size_t random_bytes(char *out, size_t max)
{
        static const char spice[] = "\"\\\n\xc3\xe2\x80\xf0\x9f\xff\xed\xa0";
        size_t n = (size_t)random() % max;

        for (size_t i = 0; i < n; i++) {
                out[i] = (char)(random() % 255 + 1);
                if (random() % 2)
                        out[i] = spice[random() % (long)(sizeof(spice) - 1)];
        }
        return n;
}

static void any_bytes_become_a_json_string_that_parses(void **state)
{
        unsigned seed = (unsigned)id_random_below(UINT32_MAX);

        (void)state;
        print_message("seed %u\n", seed);
        srandom(seed);
        for (int i = 0; i < 2000; i++) {
                char bytes[64];
                size_t n = random_bytes(bytes, sizeof(bytes));
                char *clean = utf8_clean(bytes, n);
                struct error err;
                struct buf b;
                json_t *value;

                buf_init(&b, 0);
                jsonw_quote(&b, bytes, n);
                value = json_read(b.data, b.len, &err);
                if (!value)
                        fail_msg("%s", err.text);
                assert_string_equal(json_string_value(value), clean);
                json_decref(value);
                buf_release(&b);
                free(clean);
        }
}

/* The writer checks long runs eight bytes at a time. */
static void a_byte_is_escaped_at_any_position(void **state)
{
        (void)state;
        for (int c = 0; c < 0x80; c++) {
                struct buf alone;

                buf_init(&alone, 0);
                jsonw_quote(&alone, &(char){ (char)c }, 1);
                for (size_t at = 0; at < 20; at++) {
                        char text[21] = "abcdefghijklmnopqrst";
                        struct buf b, expected;

                        buf_init(&b, 0);
                        buf_init(&expected, 0);
                        buf_addch(&expected, '"');
                        buf_add(&expected, text, at);
                        buf_add(&expected, alone.data + 1, alone.len - 2);
                        buf_add(&expected, text + at + 1, 19 - at);
                        buf_addch(&expected, '"');
                        text[at] = (char)c;
                        jsonw_quote(&b, text, 20);
                        assert_string_equal(b.data, expected.data);
                        buf_release(&b);
                        buf_release(&expected);
                }
                buf_release(&alone);
        }
}

static void reading_is_strict(void **state)
{
        static const char *const rows[] = {
                "",
                "{",
                "{\"a\":1,}",
                "[1] x",
                "{\"a\":1,\"a\":2}",
                "\"\xff\"",
                "\"a\\u0000b\"",
                "01",
                "nul",
                "'a'",
        };
        struct error err;

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                if (json_read(rows[i], strlen(rows[i]), &err))
                        fail_msg("accepted '%s'", rows[i]);
                assert_int_equal(err.kind, ERR_INVALID);
                assert_non_null(strstr(err.text, "line 1"));
        }
}

static void an_error_does_not_quote_the_text(void **state)
{
        const char *text = "{\n\"token\": \"hunter2hunter2\n}";
        struct error err;
        int line = 0;

        (void)state;
        assert_null(json_read_line(text, strlen(text), &line, &err));
        assert_int_equal(line, 2);
        assert_null(strstr(err.text, "hunter2"));
}

static void depth_has_a_limit(void **state)
{
        char text[2 * JSON_MAX_DEPTH + 2];
        struct error err;
        json_t *value;

        (void)state;
        memset(text, '[', JSON_MAX_DEPTH);
        memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
        value = json_read(text, 2 * JSON_MAX_DEPTH, &err);
        assert_non_null(value);
        json_decref(value);
        memset(text, '[', JSON_MAX_DEPTH + 1);
        memset(text + JSON_MAX_DEPTH + 1, ']', JSON_MAX_DEPTH + 1);
        assert_null(json_read(text, 2 * JSON_MAX_DEPTH + 2, &err));
        value = json_read("\"[[[\\\"[[\"", 9, &err);
        assert_non_null(value);
        json_decref(value);
}

static void text_after_a_nul_is_kept(void **state)
{
        static const char text[] = "{\"a\":\"one\\u0000two\\u0000\",\"b\":\"\\\\u0000\"}";
        json_t *value = json_read_lenient(text, strlen(text), NULL);

        (void)state;
        assert_string_equal(json_str(value, "a", ""), "one\xef\xbf\xbdtwo\xef\xbf\xbd");
        assert_string_equal(json_str(value, "b", ""), "\\u0000"); /* not an escape */
        json_decref(value);
}

static void lenient_reading_reports_only_what_it_cannot_read(void **state)
{
        static const char *const lax[] = { "{\"a\":\"x\\u0000\"}", "{\"a\":1,\"a\":\"x\"}" };
        struct error err = { 0 }, strict = { 0 };

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                json_t *value = json_read_lenient(lax[i], strlen(lax[i]), &err);

                assert_null(json_read(lax[i], strlen(lax[i]), NULL));
                assert_int_equal(json_str(value, "a", "")[0], 'x');
                assert_int_equal(err.kind, ERR_NONE);
                assert_string_equal(err.text, "");
                json_decref(value);
        }
        assert_null(json_read_lenient("{", 1, &err));
        assert_null(json_read("{", 1, &strict));
        assert_int_equal(err.kind, ERR_INVALID);
        assert_string_equal(err.text, strict.text);
        assert_null(json_read_lenient("{", 1, NULL));
}

static void lenient_reading_has_a_depth_limit_too(void **state)
{
        char text[2 * JSON_MAX_DEPTH + 20];
        struct error err = { 0 };
        json_t *value;
        size_t n = 0;

        (void)state;
        /* the NUL makes the strict reader fail, whatever the depth */
        for (int i = 0; i <= JSON_MAX_DEPTH; i++)
                text[n++] = '[';
        n += (size_t)snprintf(text + n, 12, "\"\\u0000\"");
        for (int i = 0; i <= JSON_MAX_DEPTH; i++)
                text[n++] = ']';
        assert_null(json_read_lenient(text, n, &err));
        assert_non_null(strstr(err.text, "nested deeper than"));
        value = json_read_lenient(text + 1, n - 2, &err);
        assert_non_null(value);
        json_decref(value);
}

static void getters_fall_back(void **state)
{
        const char *text = "{\"s\":\"x\",\"n\":7,\"b\":true}";
        json_t *o = json_read(text, strlen(text), NULL);
        char *again = json_text(o);

        (void)state;
        assert_string_equal(again, text);
        assert_string_equal(json_str(o, "s", "-"), "x");
        assert_string_equal(json_str(o, "n", "-"), "-");
        assert_int_equal(json_int(o, "n", 1), 7);
        assert_int_equal(json_int(o, "s", 1), 1);
        assert_true(json_flag(o, "b", false));
        assert_true(json_flag(o, "none", true));
        assert_string_equal(json_str(NULL, "s", "-"), "-");
        free(again);
        json_decref(o);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(members_and_elements_get_their_commas),
                cmocka_unit_test(lines_of_json_share_a_buf),
                cmocka_unit_test(control_characters_are_escaped),
                cmocka_unit_test(any_bytes_become_a_json_string_that_parses),
                cmocka_unit_test(a_byte_is_escaped_at_any_position),
                cmocka_unit_test(reading_is_strict),
                cmocka_unit_test(an_error_does_not_quote_the_text),
                cmocka_unit_test(depth_has_a_limit),
                cmocka_unit_test(text_after_a_nul_is_kept),
                cmocka_unit_test(lenient_reading_reports_only_what_it_cannot_read),
                cmocka_unit_test(lenient_reading_has_a_depth_limit_too),
                cmocka_unit_test(getters_fall_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
