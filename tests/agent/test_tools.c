#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/tools/truncation.h"
#include "tool_rig.h"

/* ---- the table ---- */

static void tools_are_sorted_and_their_schemas_are_objects(void **state)
{
        struct tool_rig *b = *state;
        struct tool_set *set = tool_set_new(&b->scope, NULL);
        json_t *list = tool_set_describe(set), *one;
        size_t i;

        for (size_t at = 1; tools[at]; at++)
                assert_true(strcmp(tools[at - 1]->name, tools[at]->name) < 0);
        assert_true(json_array_size(list) >= 3);
        json_array_foreach(list, i, one) {
                const json_t *schema = json_object_get(one, "parameters");

                assert_string_equal(json_str(schema, "type", ""), "object");
                assert_non_null(json_object_get(json_object_get(schema, "properties"), "label"));
                assert_string_equal(
                        json_string_value(json_array_get(json_object_get(schema, "required"), 0)),
                        "label");
                assert_true(strlen(json_str(one, "description", "")) > 20);
                assert_ptr_equal(tool_set_find(set, json_str(one, "name", "")),
                                 tool_find(json_str(one, "name", "")));
        }
        assert_null(tool_set_find(set, "no_such_tool"));
        json_decref(list);
        tool_set_free(set);
}

static void a_set_may_be_limited_to_names(void **state)
{
        struct tool_rig *b = *state;
        char *name = mem_strdup("read");
        struct setting_list only = { &name, 1, true }, none = { NULL, 0, true };
        struct tool_set *set = tool_set_new(&b->scope, &only);

        assert_non_null(tool_set_find(set, "read"));
        assert_null(tool_set_find(set, "write"));
        tool_set_free(set);
        set = tool_set_new(&b->scope, &none);
        assert_null(tool_set_find(set, "read"));
        tool_set_free(set);
        free(name);
}

static void expect_refusal(const char *arguments, const char *error)
{
        json_t *given = json_loads(arguments, JSON_DECODE_ANY, NULL);
        struct error err = { 0 };

        assert_int_equal(tool_check(tool_find("read"), given, &err), -1);
        assert_string_equal(err.text, error);
        json_decref(given);
}

static void wrong_arguments_are_explained(void **state)
{
        (void)state;
        expect_refusal("{\"path\":\"a\"}",
                       "wrong arguments for 'read': required members are missing: 'label'. "
                       "Received: {\"path\":\"a\"}");
        expect_refusal("{\"label\":\"l\",\"path\":\"a\",\"ofset\":1}",
                       "wrong arguments for 'read': unknown member 'ofset' (did you mean "
                       "'offset'?); it may have 'path', 'offset', 'limit', 'label'. Received: "
                       "{\"label\":\"l\",\"path\":\"a\",\"ofset\":1}");
        expect_refusal("{\"label\":\"l\",\"path\":\"a\",\"offset\":0}",
                       "wrong arguments for 'read': 'offset' is 0, but must be at least 1. "
                       "Received: {\"label\":\"l\",\"path\":\"a\",\"offset\":0}");
        expect_refusal("[1]", "wrong arguments for 'read': they must be a JSON object. Received: "
                              "[1]");
}

/* ---- cleaning ---- */

static void expect_clean(const char *bytes, size_t n, const char *text)
{
        /* whole, and in pieces of one byte */
        for (int piecewise = 0; piecewise < 2; piecewise++) {
                struct text_cleaner t = { 0 };
                struct buf out;

                buf_init(&out, 0);
                for (size_t i = 0; i < n; i += piecewise ? 1 : n)
                        text_cleaner_add(&t, bytes + i, piecewise ? 1 : n, &out);
                text_cleaner_end(&t, &out);
                assert_string_equal(out.data, text);
                buf_release(&out);
        }
}

static void terminal_escapes_and_controls_are_removed(void **state)
{
        static const struct {
                const char *bytes, *text;
        } rows[] = {
                { "plain\ttext\n", "plain\ttext\n" },
                { "\x1b[1;31mred\x1b[0m", "red" },
                { "\x1b]0;title\x07x\x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\", "xlink" },
                { "\x1b(Bok\x1b=\x1b[?25l", "ok" },
                { "a\r\nb\rc\n", "a\nb\nc\n" },
                { "end\r", "end\n" },
                { "\x08\x07\x7f\xc2\x9bz", "z" },
                { "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80" },
                { "\xff\xc3(\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd" },
                { "\xed\xa0\x80", "\xef\xbf\xbd" },
                { "\x1b[31", "" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                expect_clean(rows[i].bytes, strlen(rows[i].bytes), rows[i].text);
        expect_clean("a\0b", 3, "ab");
}

static void binary_is_recognised(void **state)
{
        struct text_cleaner text = { 0 }, binary = { 0 };
        struct buf out;

        (void)state;
        buf_init(&out, 0);
        text_cleaner_add(&text, "some text with a NUL\0 in it", 27, &out);
        assert_false(text_cleaner_is_binary(&text));
        text_cleaner_add(&binary,
                         "\x7f"
                         "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0",
                         16, &out);
        assert_true(text_cleaner_is_binary(&binary));
        buf_release(&out);
}

/* ---- head and tail ---- */

static void add_numbers(struct buf *out, int from, int to)
{
        for (int i = from; i <= to; i++)
                buf_addf(out, "%d\n", i);
}

static void head_keeps_whole_lines_from_the_beginning(void **state)
{
        struct text_head h;
        struct buf all, want;

        (void)state;
        buf_init(&all, 0);
        buf_init(&want, 0);
        add_numbers(&all, 1, 2500);
        add_numbers(&want, 1, 2000);
        text_head_init(&h, 1, 0, 0);
        for (size_t i = 0; i < all.len; i += 7) /* in pieces */
                text_head_add(&h, all.data + i, all.len - i < 7 ? all.len - i : 7);
        text_head_end(&h);
        assert_string_equal(h.text.data, want.data);
        assert_string_equal(h.result.by, "lines");
        assert_int_equal(h.result.total_lines, 2500);
        assert_int_equal(h.result.output_lines, 2000);
        text_head_release(&h);

        text_head_init(&h, 3, 2, 0);
        text_head_add(&h, "a\nb\nc\nd\ne", 9);
        text_head_end(&h);
        assert_string_equal(h.text.data, "c\nd\n");
        assert_null(h.result.by);
        assert_int_equal(h.result.total_lines, 5);
        text_head_release(&h);
        buf_release(&all);
        buf_release(&want);
}

/* n lines of `width` characters; yours to release. */
static void add_wide_lines(struct buf *out, int n, int width)
{
        for (int i = 0; i < n; i++) {
                for (int j = 0; j < width; j++)
                        buf_addch(out, (char)('a' + i % 26));
                buf_addch(out, '\n');
        }
}

static void bytes_are_limited_too(void **state)
{
        struct text_head h;
        struct text_tail t;
        struct buf all;

        (void)state;
        buf_init(&all, 0);
        add_wide_lines(&all, 100, 1023);
        text_head_init(&h, 1, 0, 0);
        text_head_add(&h, all.data, all.len);
        text_head_end(&h);
        assert_string_equal(h.result.by, "bytes");
        assert_int_equal(h.result.output_lines, 50);
        assert_int_equal(h.result.output_bytes, 50 << 10);
        assert_memory_equal(h.text.data, all.data, 50 << 10);
        text_head_release(&h);

        text_tail_init(&t, 0);
        text_tail_add(&t, all.data, all.len);
        assert_true(text_tail_is_cut(&t));
        text_tail_end(&t);
        assert_string_equal(t.result.by, "bytes");
        assert_int_equal(t.result.output_lines, 50);
        assert_int_equal(t.result.first_line, 51);
        assert_memory_equal(t.text.data, all.data + (50 << 10), 50 << 10);
        text_tail_release(&t);

        /* of one of many calls */
        text_tail_init(&t, 10 << 10);
        text_tail_add(&t, all.data, 20 << 10);
        text_tail_end(&t);
        assert_int_equal(t.result.output_lines, 10);
        text_tail_release(&t);
        buf_release(&all);
}

static void tail_keeps_whole_lines_from_the_end(void **state)
{
        struct text_tail t;
        struct buf all, want;

        (void)state;
        buf_init(&all, 0);
        buf_init(&want, 0);
        add_numbers(&all, 1, 100000);
        add_numbers(&want, 98001, 100000);
        text_tail_init(&t, 0);
        for (size_t i = 0; i < all.len; i += 1000)
                text_tail_add(&t, all.data + i, all.len - i < 1000 ? all.len - i : 1000);
        text_tail_end(&t);
        assert_string_equal(t.text.data, want.data);
        assert_string_equal(t.result.by, "lines");
        assert_int_equal(t.result.total_lines, 100000);
        assert_int_equal(t.result.first_line, 98001);
        text_tail_release(&t);

        text_tail_init(&t, 0);
        text_tail_add(&t, "a\n\nb", 4);
        assert_false(text_tail_is_cut(&t));
        text_tail_end(&t);
        assert_string_equal(t.text.data, "a\n\nb");
        assert_int_equal(t.result.total_lines, 3);
        assert_null(t.result.by);
        text_tail_release(&t);
        buf_release(&all);
        buf_release(&want);
}

static void long_lines_are_cut_between_characters(void **state)
{
        struct text_head h;
        struct text_tail t;
        struct buf all;

        (void)state;
        buf_init(&all, 0);
        buf_addch(&all, 'x');
        for (int i = 0; i < 2000; i++)
                buf_addstr(&all, "\xc3\xa4");
        buf_addstr(&all, "\nshort\n");
        text_head_init(&h, 1, 0, 0);
        text_head_add(&h, all.data, all.len);
        text_head_end(&h);
        assert_int_equal(h.result.cut_lines, 1);
        assert_non_null(strstr(h.text.data, "\xc3\xa4 [1954 more bytes in this line]\nshort\n"));
        text_head_release(&h);
        text_tail_init(&t, 0);
        text_tail_add(&t, all.data, all.len);
        assert_true(text_tail_is_cut(&t));
        text_tail_end(&t);
        assert_int_equal(t.result.cut_lines, 1);
        assert_non_null(strstr(t.text.data, "\xc3\xa4 [1954 more bytes in this line]\nshort\n"));
        text_tail_release(&t);
        buf_release(&all);
}

static void of_one_endless_line_the_end_is_kept(void **state)
{
        struct text_tail t;
        json_t *details;

        (void)state;
        text_tail_init(&t, 0);
        for (int i = 0; i < 100000; i++)
                text_tail_add(&t, "abcdefghi\xc3\xa4", 11);
        text_tail_add(&t, "END", 3);
        text_tail_end(&t);
        assert_true(t.text.len <= LINE_MAX_BYTES);
        assert_string_equal(t.text.data + t.text.len - 5, "\xc3\xa4"
                                                          "END");
        details = truncation_json(&t.result);
        assert_true(json_is_true(json_object_get(details, "lastLinePartial")));
        assert_int_equal(json_int(details, "totalBytes", 0), 1100003);
        json_decref(details);
        text_tail_release(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(tools_are_sorted_and_their_schemas_are_objects,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(a_set_may_be_limited_to_names, setup, teardown),
                cmocka_unit_test(wrong_arguments_are_explained),
                cmocka_unit_test(terminal_escapes_and_controls_are_removed),
                cmocka_unit_test(binary_is_recognised),
                cmocka_unit_test(head_keeps_whole_lines_from_the_beginning),
                cmocka_unit_test(bytes_are_limited_too),
                cmocka_unit_test(tail_keeps_whole_lines_from_the_end),
                cmocka_unit_test(long_lines_are_cut_between_characters),
                cmocka_unit_test(of_one_endless_line_the_end_is_kept),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
