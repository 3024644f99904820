#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/multipart.h"

#define TYPE "multipart/form-data; boundary=xyz"

static int parse(struct multipart *m, const char *type, const char *body)
{
        struct error err = { 0 };

        return multipart_init(m, type, body, strlen(body), &err);
}

static void fields_and_files_are_distinguished(void **state)
{
        struct multipart m;
        const struct multipart_part *file;

        (void)state;
        assert_int_equal(parse(&m, TYPE,
                               "--xyz\r\n"
                               "Content-Disposition: form-data; name=\"chat_id\"\r\n"
                               "\r\n"
                               "42\r\n"
                               "--xyz\r\n"
                               "Content-Disposition: form-data; name=\"photo\"; filename=\"a "
                               "\\\"b\\\".png\"\r\n"
                               "Content-Type: image/png\r\n"
                               "\r\n"
                               "\r\n"
                               "--xy\r\n"
                               "--xyz--\r\n"),
                         0);
        assert_int_equal(m.count, 2);
        assert_string_equal(m.parts[0].name, "chat_id");
        assert_null(m.parts[0].file_name);
        assert_memory_equal(m.parts[0].data, "42", 2);
        file = multipart_find(&m, "photo");
        assert_string_equal(file->file_name, "a \"b\".png");
        assert_string_equal(file->content_type, "image/png");
        assert_int_equal(file->n, 6); /* a near-boundary is data */
        assert_memory_equal(file->data, "\r\n--xy", 6);
        multipart_release(&m);
}

static void an_empty_part_is_empty(void **state)
{
        struct multipart m;

        (void)state;
        assert_int_equal(
                parse(&m, "Multipart/Form-Data; charset=utf-8; boundary=\"xyz\"",
                      "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n--xyz--\r\n"),
                0);
        assert_int_equal(m.parts[0].n, 0);
        multipart_release(&m);
}

static void malformed_bodies_are_refused(void **state)
{
        static const struct {
                const char *type, *body;
        } rows[] = {
                { "multipart/form-data", "--xyz--\r\n" },
                { "multipart/form-data; boundary=", "--xyz--\r\n" },
                { "application/json; boundary=xyz", "--xyz--\r\n" },
                { TYPE, "" },
                { TYPE, "--xyz" },
                { TYPE, "junk\r\n--xyz--\r\n" },
                { TYPE, "--xyz\r\n\r\nno name\r\n--xyz--\r\n" },
                { TYPE, "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nno end" },
                { TYPE,
                  "--xyz\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\nx\r\n--xyz--\r\n" },
                { TYPE,
                  "--xyz\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--xyz--\r\n" },
                { TYPE, "--xyz\r\nbroken header\r\n\r\nx\r\n--xyz--\r\n" },
        };
        struct multipart m;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                assert_int_equal(parse(&m, rows[i].type, rows[i].body), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(fields_and_files_are_distinguished),
                cmocka_unit_test(an_empty_part_is_empty),
                cmocka_unit_test(malformed_bodies_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
