/* The examples in docs/AGENT.md work as they are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "custom_rig.h"

#define MANUAL "docs/AGENT.md" /* tests run in the project's folder */

/* The n-th block of a language in the chapter about custom tools; yours. */
static char *block(const char *language, int n)
{
        char *fence = mem_printf("```%s\n", language), *text;
        const char *at, *end;
        struct buf manual;

        buf_init(&manual, 0);
        assert_int_equal(file_read(MANUAL, 1 << 20, &manual, NULL), 0);
        at = strstr(manual.data, "## Custom tools and MCP");
        assert_non_null(at);
        for (int i = 0; i <= n; i++) {
                at = strstr(at, fence);
                assert_non_null(at);
                at += strlen(fence);
        }
        end = strstr(at, "\n```");
        text = mem_printf("%.*s\n", (int)(end - at), at);
        buf_release(&manual);
        free(fence);
        return text;
}

static void put_block(struct rig *r, const char *name, const char *language, int n, mode_t mode)
{
        char *text = block(language, n);

        put(r, name, text, mode);
        free(text);
}

static void the_shell_example_works(void **state)
{
        struct rig r;

        (void)state;
        rig_open(&r);
        put_block(&r, "disk/tool.json", "json", 0, 0600);
        put_block(&r, "disk/disk.sh", "sh", 0, 0700);
        rig_start(&r);
        assert_has(run(&r, "disk", "{}"), "%");
        assert_false(r.result.is_error);
        rig_close(&r);
}

static void the_python_example_works(void **state)
{
        struct rig r;

        (void)state;
        rig_open(&r);
        put_block(&r, "dice/tool.json", "json", 1, 0600);
        put_block(&r, "dice/dice.py", "python", 0, 0600);
        rig_start(&r);
        assert_has(run(&r, "dice", "{\"sides\":6}"), "You rolled ");
        assert_int_equal(json_int(r.result.details, "sides", 0), 6);
        assert_has(run(&r, "dice", "{\"sides\":1}"), "are wrong: ");
        rig_close(&r);
}

/* Needs a Node that knows TypeScript, or the package in the folder TYPESCRIPT/node_modules. */
static void the_typescript_example_works(void **state)
{
        const char *package = getenv("TYPESCRIPT");
        struct rig r;
        char *status, *modules, *link;

        (void)state;
        if (system("node --version >/dev/null 2>&1") != 0)
                skip();
        rig_open(&r);
        put_block(&r, "hello/index.ts", "typescript", 0, 0600);
        if (package) {
                modules = mem_printf("%s/node_modules", package);
                link = mem_printf("%s/tools/node_modules", r.dir);
                assert_int_equal(symlink(modules, link), 0);
                free(modules);
                free(link);
        }
        rig_start(&r);
        status = rig_status(&r);
        if (package || !strstr(status, "needs Node 22.18")) {
                assert_string_equal(run(&r, "hello", "{\"name\":\"Ann\"}"), "Hello Ann");
                assert_int_equal(json_int(r.result.details, "length", 0), 3);
        }
        free(status);
        rig_close(&r);
}

static void the_mcp_example_is_read(void **state)
{
        char *example = block("json", 2), *text = mem_printf("{ %s }", example);
        static const struct setting table[] = { { "mcp", SETTING_MAP, "{}", 0,
                                                  sizeof(struct mcp_conf), .group = mcp_settings,
                                                  .at = 0 },
                                                SETTING_END };
        const struct setting *const list[] = { table, NULL };
        struct setting_map map = { 0 };
        struct error err = { 0 };
        struct settings_source *src;

        (void)state;
        setenv("GITHUB_TOKEN", "an-example-token", 1);
        src = settings_source_new(NULL, NULL, text, strlen(text), &err);
        if (!src || settings_read(src, "", settings_source_root(src), list, NULL, &map, &err) < 0 ||
            mcp_check(src, "mcp", &map, &err) < 0)
                fail_msg("%s", err.text);
        assert_int_equal(map.count, 2);
        settings_release(list, &map);
        settings_source_free(src);
        free(example);
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_shell_example_works),
                cmocka_unit_test(the_python_example_works),
                cmocka_unit_test(the_typescript_example_works),
                cmocka_unit_test(the_mcp_example_is_read),
        };

        log_setup(LOG_TEXT, LOG_ERROR);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
