/* Files of other users are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "base/mem.h"
#include "base/trust.h"

#define SELF 54321

static void files_of_others_and_files_others_may_write_are_refused(void **state)
{
        static const struct {
                uid_t owner;
                mode_t mode;
                const char *error; /* NULL: it is accepted */
        } rows[] = {
                { SELF, S_IFREG | 0600, NULL },
                { SELF, S_IFREG | 0644, NULL },
                { 0, S_IFREG | 0644, NULL },
                { 0, S_IFDIR | 0755, NULL },
                { SELF, S_IFLNK | 0777, NULL },
                { 0, S_IFLNK | 0777, NULL },
                { 12345, S_IFREG | 0600, "'/d/x' belongs to 12345 (user 12345)" },
                { 12345, S_IFDIR | 0755, "run as 12345, or" },
                { 12345, S_IFREG | 0644, "chown 54321 '/d/x'" },
                { 12345, S_IFLNK | 0777, "belongs to 12345" },
                { SELF, S_IFREG | 0664, "may be written by others (mode 664)" },
                { SELF, S_IFREG | 0602, "chmod go-w '/d/x'" },
                { 0, S_IFDIR | 0777, "mode 777" },
                { 0, S_IFDIR | S_ISVTX | 0777, "mode 777" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct stat st = { .st_uid = rows[i].owner, .st_mode = rows[i].mode };
                struct error err = { 0 };
                int rc = trust_judge(&st, "/d/x", SELF, &err);

                assert_int_equal(rc, rows[i].error ? -1 : 0);
                if (!rows[i].error)
                        continue;
                assert_int_equal(err.kind, ERR_REFUSED);
                if (!strstr(err.text, rows[i].error))
                        fail_msg("%s", err.text);
        }
}

static void only_root_is_believed_by_root(void **state)
{
        struct stat st = { .st_uid = SELF, .st_mode = S_IFREG | 0600 };
        struct error err = { 0 };

        (void)state;
        assert_int_equal(trust_judge(&st, "/d/x", 0, &err), -1);
        assert_int_equal(err.kind, ERR_REFUSED);
}

static void own_links_are_followed_where_they_may_be(void **state)
{
        char *dir = scratch_new(), *file = scratch_path(dir, "file"),
             *link = scratch_path(dir, "link");
        struct error err = { 0 };
        int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        (void)state;
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(symlink(file, link), 0);
        assert_int_equal(trust_open(link, TRUST_OWN_LINKS, &fd, &err), 1);
        close(fd);
        assert_int_equal(trust_check(link, TRUST_OWN_LINKS, &err), 0);
        assert_int_equal(trust_open(link, TRUST_NO_LINKS, &fd, &err), -1);
        assert_int_equal(fd, -1);
        assert_non_null(strstr(err.text, "is a symbolic link"));
        assert_int_equal(trust_check(link, TRUST_NO_LINKS, &err), -1);
        /* its target is checked */
        assert_int_equal(chmod(file, 0666), 0);
        assert_int_equal(trust_open(link, TRUST_OWN_LINKS, &fd, &err), -1);
        assert_non_null(strstr(err.text, "mode 666"));
        assert_int_equal(trust_check(link, TRUST_OWN_LINKS, &err), -1);
        /* and the link itself, because its owner chooses the target */
        assert_int_equal(chmod(file, 0600), 0);
        if (geteuid() == 0) { /* else nothing can be given away */
                assert_int_equal(lchown(link, 1, 1), 0);
                assert_int_equal(trust_open(link, TRUST_OWN_LINKS, &fd, &err), -1);
                assert_non_null(strstr(err.text, "belongs to"));
                assert_int_equal(trust_check(link, TRUST_OWN_LINKS, &err), -1);
        }
        free(link);
        free(file);
        scratch_free(dir);
}

static void a_missing_file_is_fine(void **state)
{
        char *dir = scratch_new(), *file = scratch_path(dir, "none");
        struct error err = { 0 };
        int fd;

        (void)state;
        assert_int_equal(trust_open(file, TRUST_OWN_LINKS, &fd, &err), 0);
        assert_int_equal(fd, -1);
        assert_int_equal(trust_check(file, TRUST_NO_LINKS, &err), 0);
        assert_int_equal(trust_check(dir, TRUST_NO_LINKS, &err), 0);
        free(file);
        scratch_free(dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(files_of_others_and_files_others_may_write_are_refused),
                cmocka_unit_test(only_root_is_believed_by_root),
                cmocka_unit_test(own_links_are_followed_where_they_may_be),
                cmocka_unit_test(a_missing_file_is_fine),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
