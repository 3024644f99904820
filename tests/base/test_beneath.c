/* Files are opened beneath a folder, whatever happens to the names in it meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/name_swap.h"
#include "../lib/scratch.h"
#include "base/beneath.h"
#include "base/mem.h"

/* A folder "in" to look into, and a secret beside it. */
struct place {
        char *dir;
        int fd; /* of "in" */
};

static int begin(void **state)
{
        struct place *p = mem_zalloc(sizeof(*p));
        char *in, *sub;

        p->dir = scratch_new();
        in = scratch_path(p->dir, "in");
        sub = scratch_path(p->dir, "in/sub");
        assert_int_equal(mkdir(in, 0755), 0);
        assert_int_equal(mkdir(sub, 0755), 0);
        p->fd = open(in, O_PATH | O_DIRECTORY);
        scratch_put(p->dir, "secret", "secret");
        scratch_put(p->dir, "in/sub/file", "mine");
        free(in);
        free(sub);
        *state = p;
        return 0;
}

static int end(void **state)
{
        struct place *p = *state;

        close(p->fd);
        scratch_free(p->dir);
        free(p);
        return 0;
}

static void add_link(const struct place *p, const char *target, const char *name)
{
        assert_int_equal(symlinkat(target, p->fd, name), 0);
}

static void only_names_beneath_are_opened(void **state)
{
        static const struct {
                const char *path;
                bool opens;
        } rows[] = {
                { "sub/file", true },
                { "./sub//file", true },
                { "../secret", false },
                { "sub/../../secret", false },
                { "sub/../sub/file", false },
                { "/etc/passwd", false },
                { "/sub/file", false },
                { "/", false },
                { "", false },
                { "sub/file/", false },
                { "link", false },
                { "dir/secret", false },
                { "self/sub/file", false },
                { "missing", false },
                { "fd", false },
        };
        static int (*const ways[])(int, const char *, int, mode_t) = { beneath_open, beneath_walk };
        const struct place *p = *state;

        add_link(p, "../secret", "link");
        add_link(p, "..", "dir");
        add_link(p, ".", "self");
        add_link(p, "/proc/self/fd/0", "fd");
        for (size_t way = 0; way < COUNT(ways); way++)
                for (size_t i = 0; i < COUNT(rows); i++) {
                        int fd = ways[way](p->fd, rows[i].path, O_RDONLY | O_NONBLOCK, 0);

                        if ((fd >= 0) != rows[i].opens)
                                fail_msg("way %zu: '%s'", way, rows[i].path);
                        if (fd >= 0)
                                close(fd);
                }
}

static void only_regular_files_with_one_name_are_taken(void **state)
{
        static const struct {
                const char *path, *why;
        } rows[] = {
                { "pipe", "'pipe' in the box is a pipe or device; only regular files are taken" },
                { "socket",
                  "'socket' in the box is a socket, pipe or device; only regular files are taken" },
                { "sub", "'sub' in the box is a folder; only regular files are taken" },
                { "link",
                  "'link' in the box is a link or lies behind one; only regular files are taken" },
                { "twice", "'twice' in the box has a second name (a hard link), or none any more; "
                           "copy it and use the copy" },
                { "big", "'big' in the box has 11 bytes; at most 10 are taken" },
                { "../secret", "there is no file '../secret' in the box" },
                { "none", "there is no file 'none' in the box" },
        };
        const struct place *p = *state;
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        char *secret = scratch_path(p->dir, "secret");
        int s = socket(AF_UNIX, SOCK_STREAM, 0), fd;
        struct error err;
        int64_t size = 0;

        assert_int_equal(mkfifoat(p->fd, "pipe", 0600), 0);
        snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/socket", p->fd);
        assert_int_equal(bind(s, (struct sockaddr *)&to, sizeof(to)), 0);
        add_link(p, "../secret", "link");
        assert_int_equal(linkat(AT_FDCWD, secret, p->fd, "twice", 0), 0);
        scratch_put(p->dir, "in/big", "eleven byte");
        for (size_t i = 0; i < COUNT(rows); i++) {
                fd = beneath_open_file(p->fd, "the box", rows[i].path, 10, &size, &err);
                assert_int_equal(fd, -1);
                assert_string_equal(err.text, rows[i].why);
        }
        fd = beneath_open_file(p->fd, "the box", "sub/file", 10, &size, &err);
        assert_true(fd >= 0);
        assert_int_equal(size, 4);
        close(fd);
        close(s);
        free(secret);
}

/* Each opening finds our file or nothing; the secret of the same name never. */
static void a_link_swapped_in_meanwhile_is_not_followed(void **state)
{
        static int (*const ways[])(int, const char *, int, mode_t) = { beneath_open, beneath_walk };
        const struct place *p = *state;
        struct name_swap *s;
        unsigned found = 0, refused = 0;

        scratch_put(p->dir, "file", "secret");
        add_link(p, "..", "other"); /* other/file is the secret */
        s = name_swap_start(p->fd, "sub", "other");
        for (int i = 0; i < 20000 || ((found == 0 || refused == 0) && i < 5000000); i++) {
                int fd = ways[i % 2](p->fd, "sub/file", O_RDONLY | O_NONBLOCK, 0);
                char text[8] = "";

                refused += fd < 0;
                if (fd < 0)
                        continue;
                found++;
                assert_int_equal(read(fd, text, sizeof(text) - 1), 4);
                assert_string_equal(text, "mine");
                close(fd);
        }
        name_swap_stop(s);
        assert_true(found > 0 && refused > 0);
}

static void folders_are_made_and_links_among_them_refused(void **state)
{
        const struct place *p = *state;
        const char *name;
        int fd = beneath_make_folder(p->fd, "a/b/file", &name);

        assert_true(fd >= 0);
        assert_string_equal(name, "file");
        close(fd);
        add_link(p, "..", "out");
        assert_int_equal(beneath_make_folder(p->fd, "out/b/file", &name), -1);
        assert_int_equal(beneath_make_folder(p->fd, "../b/file", &name), -1);
        assert_int_equal(beneath_make_folder(p->fd, "/b/file", &name), -1);
        assert_int_equal(faccessat(p->fd, "../b", F_OK, 0), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(only_names_beneath_are_opened, begin, end),
                cmocka_unit_test_setup_teardown(only_regular_files_with_one_name_are_taken, begin,
                                                end),
                cmocka_unit_test_setup_teardown(a_link_swapped_in_meanwhile_is_not_followed, begin,
                                                end),
                cmocka_unit_test_setup_teardown(folders_are_made_and_links_among_them_refused,
                                                begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
