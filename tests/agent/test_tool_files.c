#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "../lib/name_swap.h"
#include "tool_rig.h"

/* ---- read ---- */

static void a_file_is_read_in_parts(void **state)
{
        struct tool_rig *b = *state;

        put(b, "a.txt", "one\ntwo\nthree\nfour\n");
        rig_call(b, "read", json_pack("{s:s}", "path", "a.txt"));
        expect_text(b, "one\ntwo\nthree\nfour\n");
        assert_true(b->result.untrusted);
        rig_call(b, "read",
                 json_pack("{s:s, s:i, s:i}", "path", "/workspace/channels/test/c1/a.txt", "offset",
                           2, "limit", 2));
        expect_text(b, "two\nthree\n\n[1 more lines in the file. Use offset=4 to continue.]");
        rig_call(b, "read", json_pack("{s:s, s:i}", "path", "a.txt", "offset", 5));
        expect_error(b, "offset 5 is beyond the end of 'a.txt', which has 4 lines");
        put(b, "empty", "");
        rig_call(b, "read", json_pack("{s:s}", "path", "empty"));
        expect_text(b, "(the file is empty)");
}

static void a_long_file_says_how_to_go_on(void **state)
{
        struct tool_rig *b = *state;
        const json_t *t;
        struct buf text;

        buf_init(&text, 0);
        for (int i = 1; i <= 3000; i++)
                buf_addf(&text, "line %d\n", i);
        put(b, "long", text.data);
        buf_release(&text);
        rig_call(b, "read", json_pack("{s:s}", "path", "long"));
        assert_false(b->result.is_error);
        assert_non_null(strstr(b->text, "line 2000\n\n[Showing lines 1-2000 of 3000. Use "
                                        "offset=2001 to continue.]"));
        t = json_object_get(b->result.details, "truncation");
        assert_string_equal(json_str(t, "truncatedBy", ""), "lines");
        assert_int_equal(json_int(t, "totalLines", 0), 3000);
        assert_int_equal(json_int(t, "outputLines", 0), 2000);
        rig_call(b, "read", json_pack("{s:s, s:i}", "path", "long", "offset", 2001));
        assert_memory_equal(b->text, "line 2001\n", 10);
        assert_non_null(strstr(b->text, "line 3000\n"));
        assert_null(b->result.details);
}

static void what_is_shared_is_trusted(void **state)
{
        struct tool_rig *b = *state;

        scratch_put(b->dir, "workspace/MEMORY.md", "remember\n");
        /* the view has what was there when it was opened */
        workspace_view_free(b->scope.view);
        assert_int_equal(workspace_view_open(b->dir, "test", "c1", &b->scope.view, NULL), 0);
        rig_call(b, "read", json_pack("{s:s}", "path", "/workspace//MEMORY.md"));
        expect_text(b, "remember\n");
        assert_false(b->result.untrusted);
        put(b, "x", "words");
        rig_call(b, "read", json_pack("{s:s}", "path", "/workspace//channels/test/c1/x"));
        assert_true(b->result.untrusted);
        rig_call(b, "write",
                 json_pack("{s:s, s:s}", "path", "/workspace/MEMORY.md", "content", ""));
        expect_error(b, "read-only");
}

static void images_and_documents_are_shown_to_models_that_see_them(void **state)
{
        static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        struct tool_rig *b = *state;
        const json_t *block;

        put_bytes(b, "a.txt", png, sizeof(png) - 1); /* by content, not by name */
        put(b, "b", "%PDF-1.7 ...");
        rig_call(b, "read", json_pack("{s:s}", "path", "a.txt"));
        expect_error(b, "'a.txt' is an image (image/png), which this model cannot see");
        rig_call(b, "read", json_pack("{s:s}", "path", "b"));
        expect_error(b, "is a PDF");
        b->scope.images = b->scope.documents = true;
        rig_call(b, "read", json_pack("{s:s}", "path", "a.txt"));
        expect_text(b, "Image image/png, 16 bytes");
        block = json_array_get(b->result.content, 1);
        assert_string_equal(json_str(block, "type", ""), "image");
        assert_string_equal(json_str(block, "mimeType", ""), "image/png");
        assert_string_equal(json_str(block, "data", ""), "iVBORw0KGgoAAAANSUhEUg==");
        rig_call(b, "read", json_pack("{s:s}", "path", "b"));
        block = json_array_get(b->result.content, 1);
        assert_string_equal(json_str(block, "type", ""), "document");
        assert_string_equal(json_str(block, "data", ""), "JVBERi0xLjcgLi4u");
}

static void what_is_no_text_file_is_refused(void **state)
{
        struct tool_rig *b = *state;
        char *path;

        put_bytes(b, "bin",
                  "\x7f"
                  "ELF\0\0\0\0",
                  8);
        rig_call(b, "read", json_pack("{s:s}", "path", "bin"));
        expect_error(b, "'bin' is a binary file");
        rig_call(b, "read", json_pack("{s:s}", "path", "nothing/here"));
        expect_error(b, "there is no file 'nothing/here'");
        rig_call(b, "read", json_pack("{s:s}", "path", "."));
        expect_error(b, "is a folder");
        rig_call(b, "read", json_pack("{s:s}", "path", "../c2/secret"));
        expect_error(b, "is outside of what this tool reaches");
        path = mem_printf("%s/pipe", b->folder);
        assert_int_equal(mkfifo(path, 0600), 0);
        free(path);
        rig_call(b, "read", json_pack("{s:s}", "path", "pipe"));
        expect_error(b, "is a socket, pipe or device");
        path = mem_printf("%s/link", b->folder);
        assert_int_equal(symlink("/etc/passwd", path), 0);
        free(path);
        rig_call(b, "read", json_pack("{s:s}", "path", "link"));
        expect_error(b, "links are not followed");
}

/* ---- write ---- */

static void a_file_is_written_with_its_folders(void **state)
{
        struct tool_rig *b = *state;
        char *path = mem_printf("%s/run.sh", b->folder);
        struct stat st;

        rig_call(
                b, "write",
                json_pack("{s:s, s:s}", "path", "new/deep/a.txt", "content", "gr\xc3\xbc\xc3\x9f"));
        expect_text(b, "Created new/deep/a.txt (6 bytes)");
        expect_file(b, "new/deep/a.txt", "gr\xc3\xbc\xc3\x9f");
        put(b, "run.sh", "old");
        assert_int_equal(chmod(path, 0750), 0);
        rig_call(b, "write", json_pack("{s:s, s:s}", "path", "run.sh", "content", "new"));
        expect_text(b, "Replaced run.sh (3 bytes)");
        expect_file(b, "run.sh", "new");
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0750);
        assert_int_equal(st.st_uid, workspace_uid());
        free(path);
}

static void large_content_is_written_whole(void **state)
{
        struct tool_rig *b = *state;
        struct buf text;

        buf_init(&text, 0);
        while (text.len < 300000)
                buf_addstr(&text, "more than one argument of a program may hold\n");
        rig_call(b, "write", json_pack("{s:s, s:s}", "path", "large", "content", text.data));
        assert_false(b->result.is_error);
        expect_file(b, "large", text.data);
        buf_release(&text);
}

static void links_are_neither_followed_nor_replaced(void **state)
{
        struct tool_rig *b = *state;
        char *outside = scratch_path(b->dir, "outside"), *link = mem_printf("%s/link", b->folder);
        struct stat st;

        assert_int_equal(mkdir(outside, 0700), 0);
        assert_int_equal(symlink(outside, link), 0);
        rig_call(b, "write", json_pack("{s:s, s:s}", "path", "link/a", "content", "x"));
        assert_true(b->result.is_error);
        rig_call(b, "write", json_pack("{s:s, s:s}", "path", "link", "content", "x"));
        expect_error(b, "is a link");
        assert_int_equal(lstat(link, &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        assert_int_equal(rmdir(outside), 0); /* it is empty */
        free(outside);
        free(link);
}

static void records_of_the_chat_cannot_be_written(void **state)
{
        struct tool_rig *b = *state;

        rig_call(b, "write", json_pack("{s:s, s:s}", "path", "log.jsonl", "content", "{}"));
        expect_error(b, "read-only");
        rig_call(b, "edit",
                 json_pack("{s:s, s:s, s:s}", "path", "./x/../context.jsonl", "oldText", "a",
                           "newText", "b"));
        expect_error(b, "read-only");
}

/* ---- edit ---- */

static void one_exact_piece_is_replaced(void **state)
{
        struct tool_rig *b = *state;

        put(b, "f.c", "1\n2\n3\n4\n5\nint x = 1;\n7\n8\n9\n10\n11\n12\n");
        rig_call(b, "edit",
                 json_pack("{s:s, s:s, s:s}", "path", "f.c", "oldText", "x = 1;\n7", "newText",
                           "y = 2;\n7"));
        expect_text(b, "Replaced 1 piece of f.c, from line 6 on");
        expect_file(b, "f.c", "1\n2\n3\n4\n5\nint y = 2;\n7\n8\n9\n10\n11\n12\n");
        assert_string_equal(json_str(b->result.details, "diff", ""),
                            " ...\n 2 2\n 3 3\n 4 4\n 5 5\n-6 int x = 1;\n+6 int y = 2;\n 7 7\n 8 "
                            "8\n 9 9\n 10 10\n ...\n");
        assert_int_equal(json_int(b->result.details, "firstChangedLine", 0), 6);
}

static void several_edits_are_made_or_none(void **state)
{
        struct tool_rig *b = *state;

        put(b, "f", "a\nb\nc\n");
        rig_call(b, "edit",
                 json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s}]}", "path", "f", "edits", "oldText",
                           "c", "newText", "C", "oldText", "a", "newText", "A"));
        expect_text(b, "Replaced 2 pieces of f, from line 1 on");
        expect_file(b, "f", "A\nb\nC\n");
        rig_call(b, "edit",
                 json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s}]}", "path", "f", "edits", "oldText",
                           "A", "newText", "x", "oldText", "zzz", "newText", "A"));
        expect_error(b, "f: edit 2 (nothing was changed): the old text does not occur");
        expect_file(b, "f", "A\nb\nC\n");
        rig_call(b, "edit", json_pack("{s:s}", "path", "f"));
        expect_error(b, "edit takes either oldText and newText, or edits");
}

static void a_wrong_edit_is_explained(void **state)
{
        static const struct {
                const char *old, *new, *error;
        } rows[] = {
                { "if (x)", "y", "occurs 2 times, at lines 2, 5; add lines around it" },
                { "  if (x)\n  return;", "y",
                  "what is at line 2 differs from it only in white space" },
                { "retrun 7;", "y", "the line most like its first one is 7: 'return 7;'" },
                { "something else", "y", "nothing like its first line does" },
                { "return 7;", "return 7;", "are identical" },
        };
        struct tool_rig *b = *state;

        put(b, "f.c", "{\n\tif (x)\n\t\treturn;\n\n\tif (x)\n\t\tgo();\n\treturn 7;\n}\n");
        for (size_t i = 0; i < COUNT(rows); i++) {
                rig_call(b, "edit",
                         json_pack("{s:s, s:s, s:s}", "path", "f.c", "oldText", rows[i].old,
                                   "newText", rows[i].new));
                expect_error(b, rows[i].error);
        }
        put_bytes(b, "bin", "a\0b", 3);
        rig_call(b, "edit",
                 json_pack("{s:s, s:s, s:s}", "path", "bin", "oldText", "a", "newText", "c"));
        expect_error(b, "is a binary file");
}

static void windows_line_ends_are_kept(void **state)
{
        struct tool_rig *b = *state;

        put(b, "f", "a\r\nb\r\nc\r\n");
        rig_call(
                b, "edit",
                json_pack("{s:s, s:s, s:s}", "path", "f", "oldText", "a\nb", "newText", "x\ny\nb"));
        assert_false(b->result.is_error);
        expect_file(b, "f", "x\r\ny\r\nb\r\nc\r\n");
}

/* ---- what programs in the sandbox do meanwhile ---- */

static void a_cancelled_call_is_not_answered(void **state)
{
        struct tool_rig *b = *state;

        put(b, "a", "x");
        rig_start(b, tool_find("read"), json_pack("{s:s}", "path", "a"));
        b->call.tool->cancel(&b->call);
        while (loop_step(b->loop, true))
                ;
        assert_int_equal(b->done, 0);
}

/* "d" is a folder with the file "f", then a link to a folder elsewhere, and so on. */
static void a_race_of_names_never_leads_out(void **state)
{
        struct tool_rig *b = *state;
        char *outside = scratch_path(b->dir, "outside"),
             *secret = scratch_path(b->dir, "outside/f"), *link = mem_printf("%s/away", b->folder),
             *inside = mem_printf("%s/d", b->folder), *got;
        int seen = 0, refused = 0, written = 0;
        struct name_swap *s;
        FILE *f;

        scratch_put(b->dir, "outside/f", "SECRET");
        assert_int_equal(symlink(outside, link), 0);
        assert_int_equal(mkdir(inside, 0700), 0);
        put(b, "d/f", "inside");
        s = name_swap_start(b->scope.view->channel_fd, "d", "away");
        for (int i = 0; i < 1000 || (i < 100000 && (seen == 0 || refused == 0)); i++) {
                rig_call(b, "read", json_pack("{s:s}", "path", "d/f"));
                assert_null(strstr(b->text, "SECRET"));
                if (b->result.is_error)
                        refused++;
                else
                        seen++;
                rig_call(b, "write", json_pack("{s:s, s:s}", "path", "d/f", "content", "mine"));
                written += !b->result.is_error;
                rig_call(b, "edit",
                         json_pack("{s:s, s:s, s:s}", "path", "d/f", "oldText", "mine", "newText",
                                   "yours"));
        }
        name_swap_stop(s);
        assert_true(seen > 0 && refused > 0 && written > 0);
        f = fopen(secret, "r");
        assert_non_null(f);
        got = mem_zalloc(64);
        assert_non_null(fgets(got, 64, f));
        fclose(f);
        assert_string_equal(got, "SECRET");
        free(got);
        free(outside);
        free(secret);
        free(link);
        free(inside);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(a_file_is_read_in_parts),
                TEST(a_long_file_says_how_to_go_on),
                TEST(what_is_shared_is_trusted),
                TEST(images_and_documents_are_shown_to_models_that_see_them),
                TEST(what_is_no_text_file_is_refused),
                TEST(a_file_is_written_with_its_folders),
                TEST(large_content_is_written_whole),
                TEST(links_are_neither_followed_nor_replaced),
                TEST(records_of_the_chat_cannot_be_written),
                TEST(one_exact_piece_is_replaced),
                TEST(several_edits_are_made_or_none),
                TEST(a_wrong_edit_is_explained),
                TEST(windows_line_ends_are_kept),
                TEST(a_cancelled_call_is_not_answered),
                TEST(a_race_of_names_never_leads_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
