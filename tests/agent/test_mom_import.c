/* Workspaces of mom are taken over: files, logs, and what it remembered. */
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

#include "../lib/rows.h"
#include "../lib/rows_rig.h"
#include "../lib/scratch.h"
#include "agent/workspace/mom_import.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "rows/step_row.h"

struct world {
        char *from, *dir;
        struct store *store;
        struct buf notes;
        struct mom_report report;
};

static int setup(void **state)
{
        struct world *w = mem_zalloc(sizeof(*w));

        w->from = scratch_new();
        w->dir = scratch_new();
        w->store = rows_rig_open(w->dir);
        buf_init(&w->notes, 0);
        *state = w;
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        buf_release(&w->notes);
        store_close(w->store);
        scratch_free(w->from);
        scratch_free(w->dir);
        free(w);
        return 0;
}

/* Yours to free; "" when there is no such file of our workspace. */
static char *get(const struct world *w, const char *name)
{
        char *path = mem_printf("%s/workspace/%s", w->dir, name);
        struct buf text;

        buf_init(&text, 0);
        file_read(path, 1 << 24, &text, NULL);
        free(path);
        return buf_take(&text);
}

static void check_file(const struct world *w, const char *name, const char *expected)
{
        char *text = get(w, name);

        assert_string_equal(text, expected);
        free(text);
}

static void on_note(void *arg, const char *line)
{
        buf_addf(arg, "%s\n", line);
}

static int run(struct world *w, bool dry_run, struct error *err)
{
        struct mom_import m = { .from = w->from,
                                .dir = w->dir,
                                .adapter = "slack",
                                .agent = "main",
                                .store = w->store,
                                .dry_run = dry_run,
                                .note = on_note,
                                .arg = &w->notes };

        buf_clear(&w->notes);
        return mom_import_run(&m, &w->report, err);
}

static void import(struct world *w)
{
        struct error err;

        if (run(w, false, &err) < 0)
                fail_msg("%s", err.text);
}

#define LOG_LINE                                                                               \
        "{\"date\":\"2026-11-15T02:51:01.042Z\",\"ts\":\"1794711061.042248\",\"user\":\"U1\"," \
        "\"userName\":\"mario\",\"text\":\"look\",\"attachments\":[{\"original\":\"p.png\","   \
        "\"local\":\"C1/attachments/1_p.png\"}],\"isBot\":false}\n"
#define SESSION                                                                                 \
        "{\"type\":\"session\",\"version\":3,\"id\":\"x\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n" \
        "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{\"role\":\"user\","  \
        "\"content\":[{\"type\":\"text\",\"text\":\"[mario]: list\"},{\"type\":\"image\","      \
        "\"mimeType\":\"image/png\",\"data\":\"AAAA\"}]}}\n"                                    \
        "{\"type\":\"message\",\"id\":\"b\",\"parentId\":\"a\",\"message\":{\"role\":"          \
        "\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"},{\"type\":"     \
        "\"toolCall\",\"id\":\"c1\",\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}]}}\n" \
        "{\"type\":\"message\",\"id\":\"c\",\"parentId\":\"b\",\"message\":{\"role\":"          \
        "\"toolResult\",\"toolCallId\":\"c1\",\"toolName\":\"bash\",\"content\":[{\"type\":"    \
        "\"text\",\"text\":\"a.txt\"}]}}\n"                                                     \
        "{\"type\":\"message\",\"id\":\"d\",\"parentId\":\"c\",\"message\":{\"role\":"          \
        "\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"one file\"}]}}\n"

static void put_old_layout(const struct world *w)
{
        scratch_put(w->from, "MEMORY.md", "global");
        scratch_put(w->from, "settings.json", "{}");
        scratch_put(w->from, "skills/zip/SKILL.md", "---\ndescription: packs\n---\n");
        scratch_put(w->from, "events/daily.json", "{\"type\":\"periodic\"}");
        scratch_put(w->from, "C1/MEMORY.md", "of the channel");
        scratch_put(w->from, "C1/attachments/1_p.png", "PNG");
        scratch_put(w->from, "C1/scratch/deep/x.txt", "x");
        scratch_put(w->from, "C1/last_prompt.jsonl", "{}");
        scratch_put(w->from, "C1/log.jsonl", LOG_LINE "garbage\n");
        scratch_put(w->from, "C1/context.jsonl", SESSION);
        scratch_put(w->from, "no-channel/file", "x");
}

static void the_old_layout_is_taken_over(void **state)
{
        struct world *w = *state;
        char *log;

        put_old_layout(w);
        import(w);
        check_file(w, "MEMORY.md", "global");
        check_file(w, "skills/zip/SKILL.md", "---\ndescription: packs\n---\n");
        check_file(w, "events/daily.json", "{\"type\":\"periodic\"}");
        check_file(w, "channels/slack/C1/MEMORY.md", "of the channel");
        check_file(w, "channels/slack/C1/attachments/1_p.png", "PNG");
        check_file(w, "channels/slack/C1/scratch/deep/x.txt", "x");
        check_file(w, "channels/slack/C1/last_prompt.jsonl", "");
        check_file(w, "settings.json", "");
        log = get(w, "channels/slack/C1/log.jsonl");
        assert_string_equal(
                log, "{\"id\":\"1794711061.042248\",\"channelId\":\"C1\","
                     "\"timestamp\":\"2026-11-15T02:51:01.042Z\",\"sender\":{\"id\":\"U1\","
                     "\"username\":\"mario\",\"isBot\":false},\"text\":\"look\",\"attachments\":["
                     "{\"filename\":\"p.png\",\"localPath\":\"attachments/1_p.png\"}],"
                     "\"isMention\":false}\n");
        free(log);
        assert_int_equal(w->report.channels, 1);
        assert_int_equal(w->report.files, 6);
        assert_int_equal(w->report.lines, 1);
        assert_int_equal(w->report.skipped, 1);
        assert_int_equal(w->report.sessions, 1);
        assert_int_equal(w->report.messages, 4);
}

#define QUALIFIED                                                                     \
        "{\n  \"type\": \"immediate\",\n  \"channelId\": \"slack/C1\",\n  \"text\": " \
        "\"deploy\"\n}\n"

static void the_channel_of_an_event_gets_its_adapter(void **state)
{
        struct world *w = *state;
        char *from = scratch_path(w->from, "events/now.json"),
             *to = mem_printf("%s/workspace/events/now.json", w->dir);
        const struct timespec times[2] = { { 1765785600, 7000000 }, { 1765785600, 7000000 } };
        struct stat st;

        put_old_layout(w);
        scratch_put(w->from, "events/now.json",
                    "{\"type\":\"immediate\",\"channelId\":\"C1\",\"text\":\"deploy\"}");
        scratch_put(w->from, "events/there.json", "{\"channelId\":\"discord/9\"}");
        scratch_put(w->from, "events/torn.json", "{\"channelId\":\"C1\",");
        scratch_put(w->from, "events/old/note.txt", "x");
        assert_int_equal(utimensat(AT_FDCWD, from, times, 0), 0);
        import(w);
        check_file(w, "events/now.json", QUALIFIED);
        check_file(w, "events/there.json", "{\"channelId\":\"discord/9\"}");
        check_file(w, "events/torn.json", "{\"channelId\":\"C1\",");
        check_file(w, "events/old/note.txt", "x");
        assert_int_equal(stat(to, &st), 0);
        assert_int_equal(st.st_mtim.tv_sec, 1765785600);
        assert_int_equal(st.st_mtim.tv_nsec, 7000000);
        free(from);
        free(to);
}

static void an_event_that_is_done_is_not_imported_again(void **state)
{
        struct world *w = *state;
        char *events = mem_printf("%s/workspace/events", w->dir),
             *done = mem_printf("%s/done", events), *now = mem_printf("%s/now.json", events),
             *moved = mem_printf("%s/now.json", done);

        put_old_layout(w);
        scratch_put(w->from, "events/now.json",
                    "{\"type\":\"immediate\",\"channelId\":\"C1\",\"text\":\"deploy\"}");
        import(w);
        assert_int_equal(mkdir(done, 0755), 0);
        assert_int_equal(rename(now, moved), 0);
        import(w);
        assert_int_equal(access(now, F_OK), -1);
        assert_int_equal(w->report.files, 0);
        assert_int_equal(w->report.differ, 0);
        free(events);
        free(done);
        free(now);
        free(moved);
}

static void a_session_becomes_steps_of_the_conversation(void **state)
{
        struct world *w = *state;

        put_old_layout(w);
        import(w);
        assert_string_equal(rows_text(w->store, "adapter || '/' || channel || ' ' || agent || ' ' "
                                                "|| lane FROM conversations"),
                            "slack/C1 main slack/C1|main");
        assert_int_equal(rows_count(w->store, "steps WHERE turn = 0 AND conversation = 1"), 4);
        assert_int_equal(rows_count(w->store, "steps WHERE kind = 'tool_done' AND call = '2.0'"),
                         1);
        /* neither thinking nor bytes of images */
        assert_int_equal(rows_count(w->store, "steps WHERE body LIKE '%thinking%'"), 0);
        assert_int_equal(rows_count(w->store, "steps WHERE body LIKE '%AAAA%'"), 0);
        assert_int_equal(rows_count(w->store, "steps WHERE body LIKE '%[an image]%'"), 1);
        assert_int_equal(rows_count(w->store, "steps WHERE body LIKE '%\"untrusted\":true%'"), 4);
}

static void importing_again_changes_nothing(void **state)
{
        struct world *w = *state;
        char *before, *after, *path;
        int fd;

        put_old_layout(w);
        import(w);
        /* meanwhile somebody wrote, and the memory changed */
        path = mem_printf("%s/workspace/channels/slack/C1/log.jsonl", w->dir);
        fd = open(path, O_WRONLY | O_APPEND);
        assert_int_equal(write(fd, "{\"id\":\"9\",\"text\":\"new\"}\n", 24), 24);
        close(fd);
        free(path);
        scratch_put(w->from, "C1/MEMORY.md", "changed at mom");
        before = get(w, "channels/slack/C1/log.jsonl");
        import(w);
        after = get(w, "channels/slack/C1/log.jsonl");
        assert_string_equal(before, after);
        check_file(w, "channels/slack/C1/MEMORY.md", "of the channel");
        assert_int_equal(w->report.files, 0);
        assert_int_equal(w->report.same, 5);
        assert_int_equal(w->report.differ, 1);
        assert_int_equal(w->report.sessions, 0);
        assert_int_equal(rows_count(w->store, "steps"), 4);
        assert_non_null(strstr(w->notes.data, "MEMORY.md is there already and differs"));
        assert_non_null(strstr(w->notes.data, "agent 'main' remembers a conversation"));
        free(before);
        free(after);
}

static void the_new_layout_is_taken_over(void **state)
{
        struct world *w = *state;

        scratch_put(w->from, "config.json", "{\"adapters\":{}}");
        scratch_put(w->from, "workspace/MEMORY.md", "global");
        scratch_put(w->from, "workspace/channels/slack-acme/C1/log.jsonl", LOG_LINE);
        scratch_put(w->from, "workspace/channels/discord/998/MEMORY.md", "dc");
        import(w);
        check_file(w, "MEMORY.md", "global");
        check_file(w, "channels/discord/998/MEMORY.md", "dc");
        assert_int_equal(w->report.channels, 2);
        assert_int_equal(w->report.lines, 1);
        check_file(w, "config.json", "");
}

static void a_dry_run_changes_nothing(void **state)
{
        struct world *w = *state;
        struct error err;
        char *path = mem_printf("%s/workspace", w->dir);

        put_old_layout(w);
        assert_int_equal(run(w, true, &err), 0);
        assert_int_equal(w->report.files, 6);
        assert_int_equal(w->report.messages, 4);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(rows_count(w->store, "conversations"), 0);
        free(path);
}

static void links_are_left_out(void **state)
{
        struct world *w = *state;
        char *link = scratch_path(w->from, "C1/secret"), *dir = scratch_path(w->from, "C1/etc");

        put_old_layout(w);
        assert_int_equal(symlink("/etc/passwd", link), 0);
        assert_int_equal(symlink("/etc", dir), 0);
        import(w);
        check_file(w, "channels/slack/C1/secret", "");
        check_file(w, "channels/slack/C1/etc/passwd", "");
        assert_non_null(strstr(w->notes.data, "C1/secret: a link or special file"));
        free(link);
        free(dir);
}

static void what_is_no_workspace_is_refused(void **state)
{
        struct world *w = *state;
        struct error err;

        scratch_put(w->from, "notes/file", "x");
        assert_int_equal(run(w, false, &err), -1);
        assert_non_null(strstr(err.text, "has no channels: expected folders with log.jsonl"));
        free(w->from);
        w->from = mem_strdup("/no/such/folder");
        assert_int_equal(run(w, false, &err), -1);
        assert_string_equal(err.text, "cannot open '/no/such/folder': No such file or directory");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(the_old_layout_is_taken_over),
                TEST(the_channel_of_an_event_gets_its_adapter),
                TEST(an_event_that_is_done_is_not_imported_again),
                TEST(a_session_becomes_steps_of_the_conversation),
                TEST(importing_again_changes_nothing),
                TEST(the_new_layout_is_taken_over),
                TEST(a_dry_run_changes_nothing),
                TEST(links_are_left_out),
                TEST(what_is_no_workspace_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
