/* Saved attachments: quotas, age, and files that are in use. */
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
#include <time.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "base/mem.h"
#include "platform/attachment_files.h"
#include "road/channel_folder.h"

#define MIB          1048576
#define IN(chat, id) "channels/tg/" chat "/attachments/" id "-a.bin"

struct rig {
        char *dir;
        struct loop *loop;
        struct attachment_files *files;
        struct attachment_limits limits;
        bool done;
        int64_t size;
        char why[200];
};

static int begin(void **state)
{
        struct rig *g = mem_zalloc(sizeof(*g));

        g->dir = scratch_new();
        g->loop = loop_new();
        g->files = attachment_files_new(g->loop, g->dir);
        g->limits = *attachment_files_limits(g->files);
        *state = g;
        return 0;
}

static int end(void **state)
{
        struct rig *g = *state;

        attachment_files_free(g->files);
        loop_free(g->loop);
        scratch_free(g->dir);
        free(g);
        return 0;
}

static void on_done(void *arg, int64_t size, const char *why)
{
        struct rig *g = arg;

        g->done = true;
        g->size = size;
        snprintf(g->why, sizeof(g->why), "%s", why ? why : "");
}

static int64_t await(struct rig *g)
{
        while (!g->done)
                loop_step(g->loop, true);
        g->done = false;
        return g->size;
}

static int64_t save(struct rig *g, const char *path, size_t n)
{
        attachment_files_save(g->files, path, mem_zalloc(n), n, on_done, g);
        return await(g);
}

static int64_t find(struct rig *g, const char *path, int64_t size)
{
        attachment_files_find(g->files, path, size, on_done, g);
        return await(g);
}

static void sweep(struct rig *g)
{
        attachment_files_sweep(g->files, on_done, g);
        await(g);
}

static char *real(struct rig *g, const char *path)
{
        char *workspace = scratch_path(g->dir, "workspace"), *whole = scratch_path(workspace, path);

        free(workspace);
        return whole;
}

static bool exists(struct rig *g, const char *path)
{
        char *whole = real(g, path);
        int rc = access(whole, F_OK);

        free(whole);
        return rc == 0;
}

/* Was it used so long ago? */
static void age(struct rig *g, const char *path, double days)
{
        struct timespec then[2] = { { .tv_sec = time(NULL) - (time_t)(days * 86400) } };
        char *whole = real(g, path);

        then[1] = then[0];
        assert_int_equal(utimensat(AT_FDCWD, whole, then, 0), 0);
        free(whole);
}

static void set_quota(struct rig *g, int64_t total, int64_t chat)
{
        g->limits.total_bytes = total;
        g->limits.chat_bytes = chat;
        attachment_files_set_limits(g->files, &g->limits);
}

static void a_saved_file_is_found_by_its_size(void **state)
{
        struct rig *g = *state;

        assert_int_equal(find(g, IN("7", "1"), 0), -1);
        assert_int_equal(save(g, IN("7", "1"), 100), 100);
        assert_int_equal(find(g, IN("7", "1"), 0), 100);
        assert_int_equal(find(g, IN("7", "1"), 100), 100);
        assert_int_equal(find(g, IN("7", "1"), 99), -1); /* the message was edited */
}

static void a_link_is_not_taken_for_a_saved_file(void **state)
{
        struct rig *g = *state;
        char *link;

        save(g, IN("7", "1"), 100);
        link = real(g, IN("7", "2"));
        assert_int_equal(symlink("1-a.bin", link), 0);
        free(link);
        assert_int_equal(find(g, IN("7", "2"), 0), -1);
        assert_int_equal(save(g, IN("7", "2"), 5), 5); /* in its place */
        assert_int_equal(find(g, IN("7", "1"), 0), 100);
}

static void the_oldest_files_of_a_chat_make_room(void **state)
{
        struct rig *g = *state;

        set_quota(g, 100 * MIB, 3 * MIB);
        save(g, IN("8", "1"), MIB); /* another chat */
        save(g, IN("7", "1"), MIB);
        save(g, IN("7", "2"), MIB);
        save(g, IN("7", "3"), MIB);
        age(g, IN("8", "1"), 9);
        age(g, IN("7", "1"), 2);
        age(g, IN("7", "2"), 3);
        assert_int_equal(save(g, IN("7", "4"), MIB), MIB);
        assert_false(exists(g, IN("7", "2")));
        assert_true(exists(g, IN("7", "1")));
        assert_true(exists(g, IN("7", "3")));
        assert_true(exists(g, IN("8", "1")));
}

static void the_oldest_files_of_all_make_room(void **state)
{
        struct rig *g = *state;

        set_quota(g, 3 * MIB, 3 * MIB);
        save(g, IN("7", "1"), MIB);
        save(g, IN("8", "1"), MIB);
        save(g, IN("9", "1"), MIB);
        age(g, IN("8", "1"), 2);
        age(g, IN("9", "1"), 1);
        assert_int_equal(save(g, IN("7", "2"), MIB), MIB);
        assert_false(exists(g, IN("8", "1")));
        assert_true(exists(g, IN("7", "1")));
}

static void files_in_use_stay_and_the_new_one_is_refused(void **state)
{
        struct rig *g = *state;

        set_quota(g, 2 * MIB, 2 * MIB);
        save(g, IN("7", "1"), MIB);
        save(g, IN("7", "2"), MIB);
        attachment_files_pin(g->files, IN("7", "1"));
        attachment_files_pin(g->files, IN("7", "2"));
        attachment_files_pin(g->files, IN("7", "2"));
        attachment_files_unpin(g->files, IN("7", "2")); /* pinned once more */
        assert_int_equal(save(g, IN("7", "3"), MIB), -1);
        assert_string_equal(g->why, "the attachments of this chat that are in use leave no room "
                                    "for it (attachments.chatBytes)");
        assert_int_equal(save(g, IN("8", "3"), MIB), -1);
        assert_string_equal(g->why,
                            "the attachments in use leave no room for it (attachments.totalBytes)");
        attachment_files_unpin(g->files, IN("7", "2"));
        assert_int_equal(save(g, IN("7", "3"), MIB), MIB);
        assert_true(exists(g, IN("7", "1")));
        assert_false(exists(g, IN("7", "2")));
}

/* What an earlier run saved counts, and so do blocks of tiny files. */
static void the_quota_holds_across_a_restart(void **state)
{
        struct rig *g = *state;

        save(g, IN("7", "1"), MIB);
        for (int i = 0; i < 20; i++) {
                char path[100];

                snprintf(path, sizeof(path), "channels/tg/8/attachments/%d-tiny", i);
                save(g, path, 1);
        }
        attachment_files_free(g->files);
        g->files = attachment_files_new(g->loop, g->dir);
        set_quota(g, 2 * MIB, 2 * MIB);
        age(g, IN("7", "1"), 1);
        assert_int_equal(save(g, IN("9", "1"), MIB), MIB);
        assert_false(exists(g, IN("7", "1")));
}

static void old_files_are_swept_unless_they_are_in_use(void **state)
{
        struct rig *g = *state;
        char *link;

        save(g, IN("7", "1"), 10);
        save(g, IN("7", "2"), 10);
        save(g, IN("7", "3"), 10);
        save(g, IN("7", "4"), 10);
        save(g, "channels/tg/7/attachments/5-a.bin:part", 10); /* of an interrupted save */
        save(g, "channels/tg/7/attachments/6-a.part", 10);     /* sent under this name */
        save(g, "channels/tg/7/attachments/report.pdf", 10);   /* an agent's own */
        age(g, IN("7", "1"), 31);
        age(g, IN("7", "2"), 29);
        age(g, IN("7", "3"), 31);
        age(g, IN("7", "4"), 31);
        age(g, "channels/tg/7/attachments/6-a.part", 1);
        age(g, "channels/tg/7/attachments/report.pdf", 99);
        link = real(g, "channels/elsewhere");
        assert_int_equal(symlink("tg", link), 0); /* not scanned twice */
        free(link);
        attachment_files_pin(g->files, IN("7", "3"));
        find(g, IN("7", "4"), 0); /* used again */
        sweep(g);
        assert_false(exists(g, IN("7", "1")));
        assert_true(exists(g, IN("7", "2")));
        assert_true(exists(g, IN("7", "3")));
        assert_true(exists(g, IN("7", "4")));
        assert_false(exists(g, "channels/tg/7/attachments/5-a.bin:part"));
        assert_true(exists(g, "channels/tg/7/attachments/6-a.part"));
        assert_true(exists(g, "channels/tg/7/attachments/report.pdf"));
        g->limits.keep_days = -1;
        attachment_files_set_limits(g->files, &g->limits);
        attachment_files_unpin(g->files, IN("7", "3"));
        sweep(g);
        assert_true(exists(g, IN("7", "3")));
}

static void a_sweep_enforces_a_smaller_quota(void **state)
{
        struct rig *g = *state;

        save(g, IN("7", "1"), 2 * MIB);
        save(g, IN("8", "1"), 2 * MIB);
        age(g, IN("8", "1"), 1);
        set_quota(g, 3 * MIB, 3 * MIB);
        sweep(g);
        assert_true(exists(g, IN("7", "1")));
        assert_false(exists(g, IN("8", "1")));
}

static void a_dropped_file_is_not_saved(void **state)
{
        struct rig *g = *state;
        struct attachment_job *dropped;

        attachment_files_save(g->files, IN("7", "1"), mem_zalloc(9), 9, on_done, g);
        dropped = attachment_files_save(g->files, IN("7", "2"), mem_zalloc(9), 9, on_done, g);
        attachment_files_drop(dropped);
        await(g);
        assert_int_equal(find(g, IN("7", "2"), 0), -1);
        assert_true(exists(g, IN("7", "1")));
}

/* Else a daemon that runs as root would save what its agents cannot read. */
static void saved_files_belong_to_the_agents_user(void **state)
{
        struct rig *g = *state;
        char *file = real(g, "channels/tg/1/attachments/1-a"),
             *folder = real(g, "channels/tg/1/attachments");
        struct stat st;

        assert_int_equal(save(g, "channels/tg/1/attachments/1-a", 10), 10);
        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(st.st_uid, channel_folder_uid());
        assert_int_equal(stat(folder, &st), 0);
        assert_int_equal(st.st_gid, channel_folder_gid());
        free(file);
        free(folder);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        const struct CMUnitTest tests[] = {
                TEST(saved_files_belong_to_the_agents_user),
                TEST(a_saved_file_is_found_by_its_size),
                TEST(a_link_is_not_taken_for_a_saved_file),
                TEST(the_oldest_files_of_a_chat_make_room),
                TEST(the_oldest_files_of_all_make_room),
                TEST(files_in_use_stay_and_the_new_one_is_refused),
                TEST(the_quota_holds_across_a_restart),
                TEST(old_files_are_swept_unless_they_are_in_use),
                TEST(a_sweep_enforces_a_smaller_quota),
                TEST(a_dropped_file_is_not_saved),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
