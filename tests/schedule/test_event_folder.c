/* Folders of events: what is read, set aside and kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "schedule/event_folder.h"

#define GOOD "{\"type\":\"immediate\",\"text\":\"x\"}"

struct world {
        char *dir;
        struct event_folder folder;
};

static int setup(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->dir = scratch_new();
        w->folder = (struct event_folder){ open(w->dir, O_RDONLY | O_DIRECTORY), "events", false };
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        close(w->folder.root);
        scratch_free(w->dir);
        free(w);
        return 0;
}

/* Last changed that many ms before now. */
static void set_age(const struct world *w, const char *name, int64_t ms)
{
        char *path = scratch_path(w->dir, name);
        int64_t at = clock_wall_ms() - ms;
        const struct timespec t = { at / 1000, at % 1000 * 1000000 }, times[2] = { t, t };

        assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
        free(path);
}

static void put_old(const struct world *w, const char *name, const char *text)
{
        scratch_put(w->dir, name, text);
        set_age(w, name, 3600000);
}

static struct event_listing list(const struct world *w, const char *only)
{
        struct event_listing l;
        struct error err = { 0 };

        if (event_folder_read(&w->folder, only, clock_wall_ms(), &l, &err) < 0)
                fail_msg("%s", err.text);
        return l;
}

static char *get(const struct world *w, const char *name)
{
        char *path = scratch_path(w->dir, name);
        struct buf text;

        buf_init(&text, 0);
        if (file_read(path, 1 << 20, &text, NULL) < 0)
                buf_addstr(&text, "(none)");
        free(path);
        return buf_take(&text);
}

static void check_file(const struct world *w, const char *name, const char *expected)
{
        char *text = get(w, name);

        assert_string_equal(text, expected);
        free(text);
}

static void events_are_read_by_name(void **state)
{
        struct world *w = *state;
        struct event_listing l = list(w, NULL);

        assert_int_equal(l.count, 0); /* no folder is an empty one */
        put_old(w, "events/b.json", GOOD);
        put_old(w, "events/a.json", GOOD);
        put_old(w, "events/note.txt", "x");
        put_old(w, "events/.c.json", GOOD);
        put_old(w, "events/done/d.json", GOOD);
        l = list(w, NULL);
        assert_int_equal(l.count, 2);
        assert_string_equal(l.items[0].name, "a.json");
        assert_int_equal(l.items[0].state, EVENT_ENTRY_READ);
        assert_string_equal(l.items[0].file.text, "x");
        assert_true(event_listing_has(&l, "b.json"));
        assert_false(event_listing_has(&l, "c.json"));
        event_listing_release(&l);
        l = list(w, "b.json");
        assert_int_equal(l.count, 1);
        event_listing_release(&l);
        l = list(w, "../etc.json");
        assert_int_equal(l.count, 0);
        event_listing_release(&l);
}

static void a_file_is_known_by_its_bytes_and_their_time(void **state)
{
        struct world *w = *state;
        struct event_listing a, b, c, d;

        put_old(w, "events/a.json", GOOD);
        a = list(w, NULL);
        b = list(w, NULL);
        set_age(w, "events/a.json", 1800000); /* written again */
        c = list(w, NULL);
        scratch_put(w->dir, "events/a.json", GOOD " ");
        d = list(w, NULL);
        assert_string_equal(a.items[0].mark, b.items[0].mark);
        assert_string_not_equal(a.items[0].mark, c.items[0].mark);
        assert_string_not_equal(c.items[0].mark, d.items[0].mark);
        event_listing_release(&a);
        event_listing_release(&b);
        event_listing_release(&c);
        event_listing_release(&d);
}

static void a_file_that_is_being_written_settles_first(void **state)
{
        struct world *w = *state;
        struct event_listing l;

        scratch_put(w->dir, "events/a.json", "{\"type\":");
        set_age(w, "events/a.json", EVENT_FOLDER_SETTLE / -2); /* just now, on any machine */
        l = list(w, NULL);
        assert_int_equal(l.items[0].state, EVENT_ENTRY_SETTLING);
        assert_true(l.settling);
        event_listing_release(&l);
        set_age(w, "events/a.json", EVENT_FOLDER_SETTLE);
        l = list(w, NULL);
        assert_int_equal(l.items[0].state, EVENT_ENTRY_BROKEN);
        assert_non_null(strstr(l.items[0].problem.data, "events/a.json:1: "));
        assert_false(l.settling);
        event_listing_release(&l);
        set_age(w, "events/a.json", -3600000); /* a clock that is wrong */
        l = list(w, NULL);
        assert_int_equal(l.items[0].state, EVENT_ENTRY_BROKEN);
        event_listing_release(&l);
}

static void links_and_large_files_are_refused(void **state)
{
        struct world *w = *state;
        char *large = mem_zalloc(EVENT_FILE_MAX + 2),
             *path = scratch_path(w->dir, "events/link.json"),
             *fifo = scratch_path(w->dir, "events/pipe.json");
        struct event_listing l;

        memset(large, ' ', EVENT_FILE_MAX + 1);
        put_old(w, "events/large.json", large);
        put_old(w, "secret", GOOD);
        assert_int_equal(symlink("../secret", path), 0);
        set_age(w, "events/link.json", 3600000);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        set_age(w, "events/pipe.json", 3600000);
        l = list(w, NULL);
        assert_int_equal(l.count, 3);
        for (size_t i = 0; i < l.count; i++)
                assert_int_equal(l.items[i].state, EVENT_ENTRY_BROKEN);
        assert_non_null(strstr(l.items[0].problem.data, "large.json"));
        assert_non_null(strstr(l.items[1].problem.data, "link"));
        event_listing_release(&l);
        free(large);
        free(path);
        free(fifo);
}

static void a_folder_behind_a_link_is_not_read(void **state)
{
        struct world *w = *state;
        struct event_listing l;
        struct error err = { 0 };
        char *path = scratch_path(w->dir, "events");

        put_old(w, "other/a.json", GOOD);
        assert_int_equal(symlink("other", path), 0);
        assert_int_equal(event_folder_read(&w->folder, NULL, clock_wall_ms(), &l, &err), -1);
        assert_int_equal(event_folder_move(&w->folder, "a.json", "done", NULL, &err), -1);
        check_file(w, "other/a.json", GOOD);
        free(path);
}

static void files_are_moved_and_never_replaced(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };

        for (int i = 0; i < 3; i++) {
                char *text = mem_printf("%d", i), *note = mem_printf("note %d\n", i);

                scratch_put(w->dir, "events/a.json", text);
                assert_int_equal(event_folder_move(&w->folder, "a.json", "broken", note, &err), 1);
                free(text);
                free(note);
        }
        check_file(w, "events/a.json", "(none)");
        check_file(w, "events/broken/a.json", "0");
        check_file(w, "events/broken/a.json.txt", "note 0\n");
        check_file(w, "events/broken/a-2.json", "1");
        check_file(w, "events/broken/a-3.json", "2");
        check_file(w, "events/broken/a-3.json.txt", "note 2\n");
        assert_int_equal(event_folder_move(&w->folder, "a.json", "done", NULL, &err), 0);
}

static void what_cannot_be_moved_stays_and_says_why(void **state)
{
        struct world *w = *state;
        struct error err = { 0 };
        char *path = scratch_path(w->dir, "events/done");

        put_old(w, "elsewhere/x", "x");
        put_old(w, "events/a.json", GOOD);
        assert_int_equal(symlink("../elsewhere", path), 0);
        assert_int_equal(event_folder_move(&w->folder, "a.json", "done", NULL, &err), -1);
        assert_non_null(strstr(err.text, "cannot move 'events/a.json' to 'done'"));
        check_file(w, "events/a.json", GOOD);
        check_file(w, "elsewhere/a.json", "(none)");
        free(path);
}

static void done_files_are_pruned_by_age_and_number(void **state)
{
        struct world *w = *state;
        struct event_listing l;

        for (int i = 0; i < 5; i++) {
                char *name = mem_printf("events/done/%d.json", i);

                scratch_put(w->dir, name, "x");
                free(name);
        }
        put_old(w, "events/a.json", GOOD);
        put_old(w, "events/broken/b.json", "x");
        assert_int_equal(event_folder_prune(&w->folder, 0, 5), 0);
        assert_int_equal(event_folder_prune(&w->folder, 0, 3), 2);
        assert_int_equal(event_folder_prune(&w->folder, clock_wall_ms() + 60000, 3), 3);
        l = list(w, NULL);
        assert_int_equal(l.count, 1);
        check_file(w, "events/broken/b.json", "x");
        event_listing_release(&l);
}

static void too_many_files_are_read_in_part(void **state)
{
        struct world *w = *state;
        struct event_listing l;

        for (int i = 0; i <= EVENT_FOLDER_MOST; i++) {
                char *name = mem_printf("events/%d.json", i);

                scratch_put(w->dir, name, GOOD);
                free(name);
        }
        l = list(w, NULL);
        assert_int_equal(l.count, EVENT_FOLDER_MOST);
        assert_true(l.more);
        event_listing_release(&l);
}

static void on_found(void *arg, const char *adapter, const char *channel)
{
        buf_addf(arg, "%s/%s ", adapter, channel);
}

static void folders_of_chats_are_found(void **state)
{
        struct world *w = *state;
        struct buf found;
        char *link = scratch_path(w->dir, "channels/tg/43");

        buf_init(&found, 0);
        event_folder_find(w->folder.root, on_found, &found);
        assert_string_equal(found.data, "");
        put_old(w, "channels/tg/42/events/a.json", GOOD);
        put_old(w, "channels/tg/44/events/done/a.json", GOOD);
        put_old(w, "channels/tg/45/a.json", GOOD);
        assert_int_equal(symlink("42", link), 0);
        event_folder_find(w->folder.root, on_found, &found);
        assert_string_equal(found.data, "tg/42 ");
        buf_release(&found);
        free(link);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(events_are_read_by_name),
                TEST(a_file_is_known_by_its_bytes_and_their_time),
                TEST(a_file_that_is_being_written_settles_first),
                TEST(links_and_large_files_are_refused),
                TEST(a_folder_behind_a_link_is_not_read),
                TEST(files_are_moved_and_never_replaced),
                TEST(what_cannot_be_moved_stays_and_says_why),
                TEST(done_files_are_pruned_by_age_and_number),
                TEST(too_many_files_are_read_in_part),
                TEST(folders_of_chats_are_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
