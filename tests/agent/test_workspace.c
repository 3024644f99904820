/* What an agent sees of the workspace, and which of its paths lead where. */
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

#include "../lib/name_swap.h"
#include "base/beneath.h"
#include "workspace_rig.h"

static const struct workspace_mount *mount_of(const struct workspace_rig *p, const char *inside)
{
        for (size_t i = 0; i < p->view->count; i++)
                if (strcmp(p->view->mounts[i].inside, inside) == 0)
                        return &p->view->mounts[i];
        return NULL;
}

static void a_view_is_the_channel_and_what_is_shared(void **state)
{
        struct workspace_rig *p = *state;
        const struct workspace_mount *m;
        struct stat st;

        assert_string_equal(p->view->folder, CHANNEL);
        assert_null(mount_of(p, "/workspace/MEMORY.md"));
        assert_null(mount_of(p, "/workspace/skills"));
        rig_put(p, "MEMORY.md", "all");
        rig_put(p, "skills/a/SKILL.md", "");
        rig_put(p, "channels/tg/43/file", "secret");
        rig_see(p);
        m = &p->view->mounts[0];
        assert_string_equal(m->inside, CHANNEL);
        assert_true(m->writable && m->is_folder);
        assert_int_equal(fstat(m->fd, &st), 0);
        assert_int_equal(st.st_uid, workspace_uid());
        assert_int_equal(st.st_mode & 0777, 0700);
        m = mount_of(p, "/workspace/MEMORY.md");
        assert_true(m && !m->writable && !m->is_folder);
        m = mount_of(p, "/workspace/skills");
        assert_true(m && !m->writable && m->is_folder);
        m = mount_of(p, CHANNEL "/log.jsonl");
        assert_true(m && !m->writable && !m->is_folder);
        assert_non_null(mount_of(p, CHANNEL "/context.jsonl"));
        for (size_t i = 0; i < p->view->count; i++) {
                assert_null(strstr(p->view->mounts[i].inside, "43"));
                assert_true(fcntl(p->view->mounts[i].fd, F_GETFD) & FD_CLOEXEC);
                assert_true(fcntl(p->view->mounts[i].fd, F_GETFL) & O_PATH);
        }
}

static void links_in_the_place_of_parts_are_left_out(void **state)
{
        struct workspace_rig *p = *state;

        rig_put(p, "secret", "secret");
        rig_put(p, "folder/SKILL.md", "secret");
        assert_int_equal(symlinkat("secret", p->view->root_fd, "MEMORY.md"), 0);
        assert_int_equal(symlinkat("folder", p->view->root_fd, "skills"), 0);
        assert_int_equal(unlinkat(p->view->channel_fd, "log.jsonl", 0), 0);
        assert_int_equal(symlinkat("/etc/passwd", p->view->channel_fd, "log.jsonl"), 0);
        assert_int_equal(symlinkat("/etc", p->view->channel_fd, "contexts"), 0);
        assert_int_equal(unlinkat(p->view->channel_fd, "context.jsonl", 0), 0);
        assert_int_equal(mkdirat(p->view->channel_fd, "context.jsonl", 0700), 0);
        rig_see(p);
        assert_int_equal(p->view->count, 1);
}

static void a_channel_folder_that_is_a_link_is_refused(void **state)
{
        struct workspace_rig *p = *state;
        struct workspace_view *other = NULL;
        struct error err;

        rig_put(p, "elsewhere/x", "");
        assert_int_equal(symlinkat("../../elsewhere", p->view->root_fd, "channels/tg/7"), 0);
        assert_int_equal(workspace_view_open(p->dir, "tg", "7", &other, &err), -1);
        assert_non_null(strstr(err.text, "'channels/tg/7'"));
        assert_int_equal(symlinkat("/etc", p->view->root_fd, "channels/dc"), 0);
        assert_int_equal(workspace_view_open(p->dir, "dc", "7", &other, &err), -1);
        assert_null(other);
}

static void paths_lead_to_the_channel_or_what_is_shared(void **state)
{
        static const struct {
                const char *name;
                bool writes, in_channel;
                const char *path; /* NULL: refused */
        } rows[] = {
                { "notes.txt", true, true, "notes.txt" },
                { "a/b.txt", true, true, "a/b.txt" },
                { "./a//b.txt", false, true, "a/b.txt" },
                { "a/../b.txt", true, true, "b.txt" },
                { ".", false, true, "." },
                { CHANNEL, false, true, "." },
                { CHANNEL "/", false, true, "." },
                { CHANNEL "/MEMORY.md", true, true, "MEMORY.md" },
                { "../42/x", true, true, "x" },
                { "log.jsonl", false, true, "log.jsonl" },
                { "log.jsonl", true, true, NULL },
                { "./a/../log.jsonl", true, true, NULL },
                { CHANNEL "//context.jsonl", true, true, NULL },
                { "log.jsonl.old", true, true, "log.jsonl.old" },
                { "/workspace/MEMORY.md", false, false, "MEMORY.md" },
                { "../../../MEMORY.md", false, false, "MEMORY.md" },
                { "/workspace/MEMORY.md", true, false, NULL },
                { "/workspace/skills/a/SKILL.md", false, false, "skills/a/SKILL.md" },
                { "/workspace/skills/a/SKILL.md", true, false, NULL },
                { "/workspace/skills", false, false, "skills" },
                { "/workspace/skills-of-others", false, false, NULL },
                { "/workspace", false, false, NULL },
                { "/", false, false, NULL },
                { "", false, false, NULL },
                { "../43/log.jsonl", false, false, NULL },
                { "/workspace/channels/tg/43/log.jsonl", false, false, NULL },
                { "/workspace/channels/tg/421", false, false, NULL },
                { "/workspace/events/x.json", true, false, NULL },
                { "/workspace/../etc/passwd", false, false, NULL },
                { "/etc/passwd", false, false, NULL },
                { "../../../../../../../../etc/passwd", false, false, NULL },
        };
        struct workspace_rig *p = *state;

        rig_put(p, "MEMORY.md", "all");
        rig_put(p, "skills/a/SKILL.md", "");
        rig_see(p);
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };
                char *path = NULL;
                int folder = -1, rc = workspace_resolve(p->view, rows[i].name, rows[i].writes,
                                                        &folder, &path, &err);

                if ((rc == 0) != (rows[i].path != NULL))
                        fail_msg("'%s': %s", rows[i].name, err.text);
                if (rc < 0) {
                        assert_true(err.text[0]);
                        continue;
                }
                assert_string_equal(path, rows[i].path);
                assert_int_equal(folder,
                                 rows[i].in_channel ? p->view->channel_fd : p->view->root_fd);
                free(path);
        }
}

static void refusals_say_what_would_be_accepted(void **state)
{
        struct workspace_rig *p = *state;
        struct error err;
        char *path;
        int folder;

        rig_put(p, "MEMORY.md", "all");
        rig_see(p);
        assert_int_equal(workspace_resolve(p->view, "/etc/x", false, &folder, &path, &err), -1);
        assert_string_equal(err.text,
                            "'/etc/x' is outside of what this tool reaches: the "
                            "channel's folder " CHANNEL " and what is shared in /workspace");
        assert_int_equal(
                workspace_resolve(p->view, "/workspace/MEMORY.md", true, &folder, &path, &err), -1);
        assert_string_equal(err.text, "'/workspace/MEMORY.md' is shared by all channels and "
                                      "read-only; write to a file of " CHANNEL);
        assert_int_equal(workspace_resolve(p->view, "log.jsonl", true, &folder, &path, &err), -1);
        assert_string_equal(err.text, "'" CHANNEL "/log.jsonl' is a record of the chat and "
                                      "read-only; write to another file of " CHANNEL);
}

static void peeking_makes_nothing(void **state)
{
        struct workspace_rig *p = *state;
        struct workspace_view *v = workspace_view_peek(p->dir, "tg", "7");

        assert_string_equal(v->folder, "/workspace/channels/tg/7");
        assert_true(v->root_fd >= 0);
        assert_int_equal(v->channel_fd, -1);
        assert_int_equal(v->count, 0);
        assert_int_equal(faccessat(p->view->root_fd, "channels/tg/7", F_OK, 0), -1);
        workspace_view_free(v);
        v = workspace_view_peek("/no/such/folder", "tg", "7");
        assert_int_equal(v->root_fd, -1);
        workspace_view_free(v);
}

/* As a program in the sandbox would: the folder becomes a link while we open the file in it. */
static void a_resolved_path_never_leaves_the_channel(void **state)
{
        struct workspace_rig *p = *state;
        struct name_swap *s;
        unsigned found = 0, refused = 0;
        struct error err;

        rig_put(p, "channels/tg/43/file", "secret");
        rig_put(p, "channels/tg/42/sub/file", "mine");
        assert_int_equal(symlinkat("../43", p->view->channel_fd, "other"), 0);
        s = name_swap_start(p->view->channel_fd, "sub", "other");
        for (int i = 0; i < 5000 || ((found == 0 || refused == 0) && i < 5000000); i++) {
                char *path, text[8] = "";
                int folder, fd;

                assert_int_equal(
                        workspace_resolve(p->view, "sub/file", false, &folder, &path, &err), 0);
                fd = beneath_open(folder, path, O_RDONLY | O_NONBLOCK, 0);
                free(path);
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

/* Renaming a channel's folder needs its parent, which stays ours. */
static void the_folders_above_a_channel_are_ours(void **state)
{
        struct workspace_rig *p = *state;
        struct stat st;

        assert_int_equal(fstatat(p->view->root_fd, "channels/tg", &st, 0), 0);
        assert_int_equal(st.st_uid, geteuid());
        assert_int_equal(st.st_mode & 0777, 0700);
        assert_int_equal(fstatat(p->view->channel_fd, "log.jsonl", &st, 0), 0);
        assert_int_equal(st.st_uid, geteuid());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(a_view_is_the_channel_and_what_is_shared),
                TEST(links_in_the_place_of_parts_are_left_out),
                TEST(a_channel_folder_that_is_a_link_is_refused),
                TEST(paths_lead_to_the_channel_or_what_is_shared),
                TEST(refusals_say_what_would_be_accepted),
                TEST(peeking_makes_nothing),
                TEST(a_resolved_path_never_leaves_the_channel),
                TEST(the_folders_above_a_channel_are_ours),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
