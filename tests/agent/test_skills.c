/* Skills are found in two folders, and only where they may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "agent/workspace/skills.h"
#include "workspace_rig.h"

#define HEAD(name, text) "---\nname: " name "\ndescription: " text "\n---\n"

static void check_names(const struct workspace_rig *r, struct skill_cache *cache,
                        const char *expected)
{
        struct skills s;
        struct buf names;

        skills_read(&s, r->view, cache);
        buf_init(&names, 0);
        for (size_t i = 0; i < s.count; i++)
                buf_addf(&names, "%s%s", i > 0 ? " " : "", s.items[i].name);
        assert_string_equal(names.data, expected);
        buf_release(&names);
        skills_release(&s);
}

static void skills_are_folders_with_a_skill_file(void **state)
{
        const struct workspace_rig *r = *state;

        check_names(r, NULL, "");
        rig_put(r, "skills/report/SKILL.md", HEAD("report", "writes reports"));
        rig_put(r, "skills/report/inner/SKILL.md", HEAD("inner", "not looked for"));
        rig_put(r, "skills/group/one/SKILL.md", HEAD("one", "in a group"));
        rig_put(r, "skills/group/deep/two/SKILL.md", HEAD("two", "deeper"));
        rig_put(r, "skills/plain.md", HEAD("plain", "a file at the top"));
        rig_put(r, "skills/group/readme.md", HEAD("readme", "a file, but not at the top"));
        rig_put(r, "skills/.hidden/SKILL.md", HEAD("hidden", "begins with a dot"));
        rig_put(r, "skills/node_modules/x/SKILL.md", HEAD("x", "of npm"));
        check_names(r, NULL, "one plain report two");
}

static void the_skill_of_the_channel_counts(void **state)
{
        const struct workspace_rig *r = *state;
        struct skills s;

        rig_put(r, "skills/report/SKILL.md", HEAD("report", "for all"));
        rig_put(r, "skills/zip/SKILL.md", HEAD("zip", "packs"));
        rig_put(r, "channels/tg/42/skills/report/SKILL.md", HEAD("report", "for here"));
        rig_put(r, "channels/tg/43/skills/other/SKILL.md", HEAD("other", "of others"));
        skills_read(&s, r->view, NULL);
        assert_int_equal(s.count, 2);
        assert_string_equal(s.items[0].description, "for here");
        assert_string_equal(s.items[0].location, CHANNEL "/skills/report/SKILL.md");
        assert_true(s.items[0].is_of_channel);
        assert_string_equal(s.items[1].location, "/workspace/skills/zip/SKILL.md");
        assert_string_equal(s.problems.data, "");
        skills_release(&s);
}

static void problems_are_told_and_hurt_no_other_skill(void **state)
{
        const struct workspace_rig *r = *state;
        char longest[1200];
        char *text;
        struct skills s;

        memset(longest, 'd', sizeof(longest));
        longest[sizeof(longest) - 1] = '\0';
        text = mem_printf(HEAD("e", "%s"), longest);
        rig_put(r, "skills/a/SKILL.md", "no head at all");
        rig_put(r, "skills/b/SKILL.md", "---\nname: b\n---\n");
        rig_put(r, "skills/c/SKILL.md", "---\nname: \"c\ndescription: x\n---\n");
        rig_put(r, "skills/d/SKILL.md", HEAD("Other Name", "odd name"));
        rig_put(r, "skills/e/SKILL.md", text);
        rig_put(r, "skills/f/SKILL.md", HEAD("e", "same name"));
        rig_put(r, "skills/g/SKILL.md", "---\ndescription: named by its folder\n---\n");
        skills_read(&s, r->view, NULL);
        assert_int_equal(s.count, 3);
        assert_string_equal(s.items[0].name, "Other Name");
        assert_int_equal(strlen(s.items[1].description), SKILL_DESCRIPTION_MAX);
        assert_string_equal(s.items[2].name, "g");
        assert_non_null(strstr(s.problems.data, "/workspace/skills/a/SKILL.md: it does not begin"));
        assert_non_null(strstr(s.problems.data, "b/SKILL.md: it has no description"));
        assert_non_null(strstr(s.problems.data, "c/SKILL.md: line 2: the quoted text has no end"));
        assert_non_null(strstr(s.problems.data, "d/SKILL.md: the name 'Other Name' should"));
        assert_non_null(strstr(s.problems.data, "e/SKILL.md: the description has 1199 bytes"));
        assert_non_null(strstr(s.problems.data, "f/SKILL.md: another skill has the same name"));
        skills_release(&s);
        free(text);
}

static void ignore_files_leave_skills_out(void **state)
{
        const struct workspace_rig *r = *state;

        rig_put(r, "skills/old-a/SKILL.md", HEAD("old-a", "x"));
        rig_put(r, "skills/old-b/SKILL.md", HEAD("old-b", "x"));
        rig_put(r, "skills/new/SKILL.md", HEAD("new", "x"));
        rig_put(r, "skills/sub/draft/SKILL.md", HEAD("draft", "x"));
        rig_put(r, "skills/sub/draft2/SKILL.md", HEAD("draft2", "x"));
        check_names(r, NULL, "draft draft2 new old-a old-b");
        rig_put(r, "skills/.gitignore", "# old ones\nold-*\n!old-b\n");
        rig_put(r, "skills/.fdignore", "sub/draft/\n");
        check_names(r, NULL, "draft2 new old-b");
        rig_put(r, "skills/sub/.ignore", "*\n");
        check_names(r, NULL, "new old-b");
}

static void patterns_match_as_in_git(void **state)
{
        static const struct {
                const char *pattern, *path;
                bool is_folder;
                int result;
        } rows[] = {
                { "a", "a", false, 1 },
                { "a", "b/a", false, 1 },
                { "/a", "b/a", false, -1 },
                { "/a", "a", false, 1 },
                { "b/a", "b/a", false, 1 },
                { "b/a", "c/b/a", false, -1 },
                { "**/b/a", "c/b/a", false, 1 },
                { "b/**", "b/c/d", false, 1 },
                { "b/**/d", "b/d", false, 1 },
                { "b/**/d", "b/x/y/d", false, 1 },
                { "a/", "a", false, -1 },
                { "a/", "a", true, 1 },
                { "!a", "a", false, 0 },
                { "*.md", "x/y.md", false, 1 },
                { "*.md", "x/y.mdx", false, -1 },
                { "?.md", "y.md", false, 1 },
                { "[a-c]x", "bx", false, 1 },
                { "[!a-c]x", "bx", false, -1 },
                { "[a", "[a", false, -1 },
                { "\\*", "*", false, 1 },
                { "\\*", "x", false, -1 },
                { "", "a", false, -1 },
                { "#a", "#a", false, -1 },
                { "/", "a", true, -1 },
                { "a*b*c*d*e*f*g*h*i", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false, -1 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                if (skill_ignore_match(slice_of(rows[i].pattern), rows[i].path,
                                       rows[i].is_folder) != rows[i].result)
                        fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].path);
}

static void links_are_not_followed(void **state)
{
        const struct workspace_rig *r = *state;
        struct skills s;

        rig_put(r, "channels/tg/43/skills/secret/SKILL.md", HEAD("secret", "of others"));
        rig_put(r, "channels/tg/42/skills/mine/SKILL.md", HEAD("mine", "x"));
        rig_put(r, "channels/tg/42/skills/half/notes.txt", "x");
        assert_int_equal(symlinkat("../../43/skills/secret", r->view->channel_fd, "skills/link"),
                         0);
        assert_int_equal(symlinkat("../../../43/skills/secret/SKILL.md", r->view->channel_fd,
                                   "skills/half/SKILL.md"),
                         0);
        skills_read(&s, r->view, NULL);
        assert_int_equal(s.count, 1);
        assert_string_equal(s.items[0].name, "mine");
        assert_non_null(strstr(s.problems.data, "/skills/link: links are not followed"));
        assert_non_null(strstr(s.problems.data, "/skills/half/SKILL.md: not a regular file"));
        skills_release(&s);
}

static void the_number_of_skills_is_limited(void **state)
{
        const struct workspace_rig *r = *state;
        struct skills s;

        for (unsigned i = 0; i < SKILLS_MAX + 5; i++) {
                char name[80];

                snprintf(name, sizeof(name), "skills/s%03u/SKILL.md", i);
                rig_put(r, name, "---\ndescription: one of many\n---\n");
        }
        skills_read(&s, r->view, NULL);
        assert_int_equal(s.count, SKILLS_MAX);
        assert_string_equal(s.problems.data,
                            "/workspace/skills: too many skills; the rest is left out\n");
        skills_release(&s);
}

static void a_changed_file_counts_at_once(void **state)
{
        const struct workspace_rig *r = *state;
        struct skill_cache *cache = skill_cache_new();

        rig_put(r, "skills/a/SKILL.md", "---\ndescription: x\n---\n");
        check_names(r, cache, "a");
        check_names(r, cache, "a");
        rig_put(r, "skills/a/SKILL.md", HEAD("first", "x"));
        check_names(r, cache, "first");
        assert_int_equal(renameat(r->view->root_fd, "skills/a", r->view->root_fd, "skills/b"), 0);
        rig_put(r, "skills/b/SKILL.md", "---\ndescription: x\n---\n");
        check_names(r, cache, "b");
        assert_int_equal(renameat(r->view->root_fd, "skills/b", r->view->root_fd, "skills/c"), 0);
        check_names(r, cache, "c");
        skill_cache_free(cache);
}

static void the_list_is_escaped_and_shows_what_may_be_shown(void **state)
{
        const struct workspace_rig *r = *state;
        struct skills s;
        struct buf out;

        rig_put(r, "skills/a/SKILL.md", HEAD("a", "x <b> & \"c\"</skill>"));
        rig_put(r, "skills/h/SKILL.md",
                "---\ndescription: x\ndisable-model-invocation: true\n---\n");
        skills_read(&s, r->view, NULL);
        buf_init(&out, 0);
        skills_list(&s, &out);
        assert_string_equal(out.data, "<available_skills>\n<skill>\n<name>a</name>\n"
                                      "<description>x &lt;b&gt; &amp; &quot;c&quot;&lt;/skill&gt;"
                                      "</description>\n"
                                      "<location>/workspace/skills/a/SKILL.md</location>\n"
                                      "</skill>\n</available_skills>\n");
        assert_int_equal(s.count, 2);
        buf_release(&out);
        skills_release(&s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
        const struct CMUnitTest tests[] = {
                TEST(skills_are_folders_with_a_skill_file),
                TEST(the_skill_of_the_channel_counts),
                TEST(problems_are_told_and_hurt_no_other_skill),
                TEST(ignore_files_leave_skills_out),
                cmocka_unit_test(patterns_match_as_in_git),
                TEST(links_are_not_followed),
                TEST(the_number_of_skills_is_limited),
                TEST(a_changed_file_counts_at_once),
                TEST(the_list_is_escaped_and_shows_what_may_be_shown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
