/* Changes of files, as editors and people make them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/filewatch.h"

struct world {
        struct loop *loop;
        struct filewatch *watch;
        char dir[40];
        unsigned calls;
        char name[64]; /* "" for NULL */
        bool free_in_call;
};

static void on_change(void *arg, const char *name)
{
        struct world *w = arg;

        w->calls++;
        snprintf(w->name, sizeof(w->name), "%s", name ? name : "");
        if (w->free_in_call) {
                filewatch_free(w->watch);
                w->watch = NULL;
        }
}

static void put(struct world *w, const char *name, const char *text)
{
        char path[128];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", w->dir, name);
        f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static void rename_over(struct world *w, const char *from, const char *to)
{
        char a[128], b[128];

        snprintf(a, sizeof(a), "%s/%s", w->dir, from);
        snprintf(b, sizeof(b), "%s/%s", w->dir, to);
        assert_int_equal(rename(a, b), 0);
}

static void open_world(struct world *w, const char *file, int64_t settle_ms)
{
        memset(w, 0, sizeof(*w));
        snprintf(w->dir, sizeof(w->dir), "/tmp/test_filewatch.XXXXXX");
        assert_non_null(mkdtemp(w->dir));
        put(w, "config.json", "{}");
        w->loop = loop_new();
        w->watch = filewatch_new(w->loop, w->dir, file, settle_ms, on_change, w, NULL);
        assert_non_null(w->watch);
}

static void close_world(struct world *w)
{
        static const char *const names[] = { "config.json", "other", "new" };

        filewatch_free(w->watch);
        loop_free(w->loop);
        for (size_t i = 0; i < COUNT(names); i++) {
                char path[128];

                snprintf(path, sizeof(path), "%s/%s", w->dir, names[i]);
                unlink(path);
        }
        rmdir(w->dir);
}

static void await_calls(struct world *w, unsigned n)
{
        while (w->calls < n)
                assert_true(loop_step(w->loop, true));
}

static void a_written_file_is_reported_once(void **state)
{
        struct world w;

        (void)state;
        open_world(&w, "config.json", 30);
        put(&w, "config.json", "{ }");
        put(&w, "config.json", "{  }");
        await_calls(&w, 1);
        assert_string_equal(w.name, "config.json");
        for (int i = 0; i < 3; i++)
                loop_step(w.loop, false);
        assert_int_equal(w.calls, 1);
        close_world(&w);
}

static void a_file_replaced_by_rename_stays_watched(void **state)
{
        struct world w;

        (void)state;
        open_world(&w, "config.json", 5);
        for (unsigned i = 1; i <= 3; i++) {
                put(&w, "new", "{}");
                rename_over(&w, "new", "config.json");
                await_calls(&w, i);
                assert_string_equal(w.name, "config.json");
        }
        put(&w, "config.json", "{}");
        await_calls(&w, 4);
        close_world(&w);
}

static void other_files_are_not_reported(void **state)
{
        struct world w;

        (void)state;
        open_world(&w, "config.json", 1);
        put(&w, "other", "x");
        put(&w, "config.json", "x");
        await_calls(&w, 1);
        assert_string_equal(w.name, "config.json");
        close_world(&w);
}

static void without_a_name_every_entry_is_reported(void **state)
{
        struct world w;

        (void)state;
        open_world(&w, NULL, 20);
        put(&w, "new", "x");
        await_calls(&w, 1);
        assert_string_equal(w.name, "new");
        put(&w, "other", "x");
        put(&w, "new", "x");
        put(&w, "other", "x");
        await_calls(&w, 2);
        assert_string_equal(w.name, "");
        close_world(&w);
}

static void a_watch_may_be_freed_in_its_callback(void **state)
{
        struct world w;

        (void)state;
        open_world(&w, NULL, 0);
        w.free_in_call = true;
        put(&w, "new", "x");
        await_calls(&w, 1);
        close_world(&w);
}

static void a_missing_directory_is_reported_at_once(void **state)
{
        struct loop *l = loop_new();
        struct error err;

        (void)state;
        assert_null(filewatch_new(l, "/nonexistent/dir", NULL, 0, on_change, NULL, &err));
        assert_int_equal(err.kind, ERR_MISSING);
        loop_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_written_file_is_reported_once),
                cmocka_unit_test(a_file_replaced_by_rename_stays_watched),
                cmocka_unit_test(other_files_are_not_reported),
                cmocka_unit_test(without_a_name_every_entry_is_reported),
                cmocka_unit_test(a_watch_may_be_freed_in_its_callback),
                cmocka_unit_test(a_missing_directory_is_reported_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
