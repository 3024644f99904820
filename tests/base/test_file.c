/* Small files are read whole and replaced whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "base/file.h"
#include "base/mem.h"

static char *dir, *path, *fresh;

static int make_dir(void **state)
{
        (void)state;
        dir = scratch_new();
        path = scratch_path(dir, "a.json");
        fresh = scratch_path(dir, "a.json.new");
        return 0;
}

static int drop_dir(void **state)
{
        (void)state;
        free(path);
        free(fresh);
        scratch_free(dir);
        return 0;
}

static void a_replaced_file_is_read_back_and_private(void **state)
{
        struct stat st;
        json_t *value;

        (void)state;
        assert_int_equal(file_replace(path, "[1]"), 0);
        assert_int_equal(file_replace(path, "[1, 2]"), 0);
        value = file_read_json(path, 100);
        assert_int_equal(json_array_size(value), 2);
        json_decref(value);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(access(fresh, F_OK), -1);
}

static void a_failed_replacement_keeps_the_old_file(void **state)
{
        json_t *value;

        (void)state;
        assert_int_equal(file_replace(path, "[1]"), 0);
        assert_int_equal(mkdir(fresh, 0700), 0); /* in the way */
        assert_int_equal(file_replace(path, "[1, 2]"), -1);
        assert_int_equal(errno, EISDIR);
        assert_int_equal(rmdir(fresh), 0);
        value = file_read_json(path, 100);
        assert_int_equal(json_array_size(value), 1);
        json_decref(value);
}

static void missing_large_or_malformed_json_gives_null(void **state)
{
        (void)state;
        assert_null(file_read_json(fresh, 100));
        assert_int_equal(file_replace(path, "[1,"), 0);
        assert_null(file_read_json(path, 100));
        assert_int_equal(file_replace(path, "[1,2]"), 0);
        assert_null(file_read_json(path, 4));
}

static void a_file_is_read_whole_up_to_its_maximum(void **state)
{
        struct error err = { 0 };
        struct buf text;

        (void)state;
        assert_int_equal(file_replace(path, "12345"), 0);
        buf_init(&text, 0);
        buf_addstr(&text, "0");
        assert_int_equal(file_read(path, 5, &text, &err), 0);
        assert_string_equal(text.data, "012345");
        assert_int_equal(file_read(path, 4, &text, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_int_equal(file_read(fresh, 5, &text, &err), -1);
        assert_int_equal(err.kind, ERR_IO);
        buf_release(&text);
}

static void a_file_may_fill_a_limited_buffer(void **state)
{
        struct error err = { 0 };
        struct buf text;

        (void)state;
        assert_int_equal(file_replace(path, "12345"), 0);
        buf_init(&text, 6);
        buf_addstr(&text, "0");
        assert_int_equal(file_read(path, 100, &text, &err), 0);
        assert_string_equal(text.data, "012345");
        buf_truncate(&text, 2);
        assert_int_equal(file_read(path, 100, &text, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.text, "larger than 4 bytes"));
        buf_release(&text);
}

static void a_line_is_written_with_its_newline(void **state)
{
        struct error err = { 0 };
        struct buf text;

        (void)state;
        assert_int_equal(file_write_line(path, "one line", &err), 0);
        buf_init(&text, 0);
        assert_int_equal(file_read(path, 100, &text, &err), 0);
        assert_string_equal(text.data, "one line\n");
        buf_release(&text);
        assert_int_equal(file_write_line("/nowhere/at/all", "x", &err), -1);
        assert_non_null(strstr(err.text, "cannot write '/nowhere/at/all'"));
}

static void directories_are_made_with_those_above(void **state)
{
        char *deep = mem_printf("%s.d/a/b", path), *blocked = mem_printf("%s/a", path);
        struct error err = { 0 };
        struct stat st;

        (void)state;
        assert_int_equal(file_make_dirs(deep, &err), 0);
        assert_int_equal(file_make_dirs(deep, &err), 0);
        assert_int_equal(stat(deep, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_int_equal(file_replace(path, "a file"), 0);
        assert_int_equal(file_make_dirs(blocked, &err), -1);
        assert_non_null(strstr(err.text, "cannot make directory"));
        free(deep);
        free(blocked);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_replaced_file_is_read_back_and_private),
                cmocka_unit_test(a_failed_replacement_keeps_the_old_file),
                cmocka_unit_test(missing_large_or_malformed_json_gives_null),
                cmocka_unit_test(a_file_is_read_whole_up_to_its_maximum),
                cmocka_unit_test(a_file_may_fill_a_limited_buffer),
                cmocka_unit_test(a_line_is_written_with_its_newline),
                cmocka_unit_test(directories_are_made_with_those_above),
        };

        return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
