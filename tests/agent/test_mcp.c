/* The MCP client against a server that misbehaves: tests/lib/fake_mcp.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/custom/mcp_private.h"
#include "base/file.h"
#include "base/log.h"
#include "custom_rig.h"
#include "net/process.h"

#define SERVER "tests/lib/fake_mcp.py" /* tests run in the project's folder */

static char *server_path; /* absolute: servers run in the data directory */

/* more: members after args; options: of the server, as JSON strings, each with a comma before. */
static void add_stdio(struct rig *r, const char *options, const char *more)
{
        char *state = scratch_path(r->dir, "counts.json");
        char *text =
                mem_printf("{ \"command\": \"python3\", \"args\": [\"%s\", \"--state\", \"%s\" "
                           "%s] %s }",
                           server_path, state, options, more);

        rig_server(r, "fake", text);
        free(text);
        free(state);
}

static int64_t counted(struct rig *r, const char *key)
{
        char *path = scratch_path(r->dir, "counts.json");
        json_t *state = file_read_json(path, 100000);
        int64_t n = json_int(state, key, 0);

        json_decref(state);
        free(path);
        return n;
}

static const char *text_at(const struct rig *r, size_t i)
{
        return json_str(json_array_get(r->result.content, i), "text", "");
}

static void begin(struct rig *r, const char *options, const char *more)
{
        rig_open(r);
        add_stdio(r, options, more);
        rig_start(r);
}

static void tools_are_listed_and_called(void **state)
{
        struct rig r;
        const struct custom_tool *t;
        char *status;

        (void)state;
        begin(&r, "", "");
        t = custom_find(r.all, "fake__echo");
        assert_non_null(t);
        assert_string_equal(t->description, "Repeats its arguments.");
        assert_null(custom_find(r.all, "fake__bad_schema"));
        assert_string_equal(run(&r, "fake__echo", "{\"text\":\"héllo\"}"), "héllo");
        assert_false(r.result.is_error);
        assert_true(r.result.untrusted);
        assert_has(run(&r, "fake__echo", "{\"text\":1}"), "are wrong: ");
        status = rig_status(&r);
        assert_has(status, "\"kind\":\"mcp\",\"name\":\"fake\",\"state\":\"ready\"");
        assert_has(status, "its tool 'bad_schema' is left out");
        free(status);
        rig_close(&r);
}

static void names_become_keys(void **state)
{
        static const struct {
                const char *tool, *key;
        } rows[] = {
                { "get_sum", "srv__get_sum" },
                { "a.b", "srv__a_b_2f0ae4cc" },
                { "a-very-long-name-that-goes-on-and-on-and-on-and-does-not-stop-here",
                  "srv__a-very-long-name-that-goes-on-and-on-and-on-and-do" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *key = mcp_tools_key("srv", rows[i].tool);

                assert_true(strlen(key) <= 64);
                assert_true(custom_is_key(key));
                assert_memory_equal(key, rows[i].key,
                                    i == 1 ? strlen("srv__a_b_") : strlen(rows[i].key));
                free(key);
        }
}

static void lists_come_in_pages(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, ", \"--pages\", \"4\"", "");
        assert_non_null(custom_find(r.all, "fake__echo"));
        assert_non_null(custom_find(r.all, "fake__region"));
        rig_close(&r);
}

static void a_list_that_failed_is_read_from_its_first_page(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, ", \"--pages\", \"4\", \"--bad-page\", \"2\"", "");
        assert_null(custom_find(r.all, "fake__echo"));
        await_tool(&r, "fake__region", true);
        assert_non_null(custom_find(r.all, "fake__echo"));
        rig_close(&r);
}

static void only_the_named_tools_are_offered(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, "", ", \"tools\": [\"echo\"]");
        assert_int_equal(custom_count(r.all), 1);
        rig_close(&r);
}

static void hints_make_stricter_unless_trusted(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, "", "");
        assert_int_equal(custom_find(r.all, "fake__destroys")->flags, TOOL_UNTRUSTED | TOOL_RISKY);
        assert_int_equal(custom_find(r.all, "fake__echo")->flags, TOOL_UNTRUSTED);
        for (size_t i = 0; i < custom_count(r.all); i++)
                assert_false(custom_at(r.all, i)->flags & TOOL_READ_ONLY);
        rig_close(&r);
        begin(&r, "", ", \"trust\": true");
        for (size_t i = 0; i < custom_count(r.all); i++) {
                const struct custom_tool *t = custom_at(r.all, i);

                if (strcmp(t->name, "dies.once") == 0)
                        assert_int_equal(t->flags, TOOL_READ_ONLY);
        }
        rig_close(&r);
}

static void requests_of_the_server_are_answered(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, "", "");
        assert_string_equal(run(&r, "fake__asks", "{}"),
                            "[[\"roots/list\", -32601], [\"ping\", {}], "
                            "[\"sampling/createMessage\", -32601]]");
        rig_close(&r);
}

static void progress_prolongs_the_deadline(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, "", ", \"timeoutSeconds\": 1");
        assert_string_equal(run(&r, "fake__progress", "{}"), "done");
        assert_string_equal(r.progress.data, "1 of 4|step 2|3 of 4|4 of 4|");
        rig_close(&r);
}

static void a_silent_call_ends_and_is_cancelled(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, "", ", \"timeoutSeconds\": 1");
        assert_has(run(&r, "fake__silent", "{}"), "did not answer within 1 seconds");
        assert_true(r.result.is_error);
        rig_close(&r);
        begin(&r, "", "");
        start(&r, "fake__silent", "{}");
        timer_start(r.deadline, PATIENCE_MS);
        while (counted(&r, "call silent") < 1 && !r.late) {
                loop_step(r.loop, false);
                usleep(1000);
        }
        assert_false(r.late);
        custom_call_cancel(r.call);
        assert_false(r.done);
        run(&r, "fake__seen", "{}");
        assert_null(strstr(text_at(&r, 0), "\"cancelled\": []"));
        rig_close(&r);
}

static void a_changed_list_is_read_once(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, "", "");
        assert_string_equal(run(&r, "fake__grow", "{}"), "grown");
        timer_start(r.deadline, PATIENCE_MS);
        while (!custom_find(r.all, "fake__grown0") && !r.late)
                loop_step(r.loop, true);
        assert_false(r.late);
        assert_has(run(&r, "fake__seen", "{}"), "\"lists\": 2");
        rig_close(&r);
}

static void results_become_blocks_for_the_model(void **state)
{
        struct rig r;
        const json_t *image;

        (void)state;
        begin(&r, "", "");
        assert_string_equal(run(&r, "fake__rich", "{}"), "line\xe2\x80\xa8separated");
        image = json_array_get(r.result.content, 1);
        assert_string_equal(json_str(image, "mimeType", ""), "image/png");
        assert_has(text_at(&r, 2), "an image (image/tiff, 4 bytes), saved as /workspace/");
        assert_has(text_at(&r, 3), "a sound whose base64 is malformed");
        assert_string_equal(text_at(&r, 4), "[Resource a.txt: file:///a.txt]");
        assert_has(text_at(&r, 5), "a resource (application/gzip, 2 bytes), saved as");
        assert_string_equal(text_at(&r, 6), "[Resource demo://2]");
        assert_string_equal(text_at(&r, 7), "inside");
        assert_string_equal(text_at(&r, 8), "{\"type\":\"hologram\",\"x\":1}");
        assert_int_equal(json_array_size(r.result.content), 9);
        assert_string_equal(run(&r, "fake__structured", "{}"), "{\"t\":21}");
        assert_string_equal(run(&r, "fake__wrong", "{}"), "no such town (-32602)");
        assert_true(r.result.is_error);
        assert_string_equal(run(&r, "fake__sad", "{}"), "cannot do that");
        assert_true(r.result.is_error);
        rig_close(&r);
}

static void resources_are_read_on_demand(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, "", "");
        run(&r, "fake__read_resource", "{\"uri\":\"demo://2\"}");
        assert_string_equal(text_at(&r, 0), "[Resource demo://2]");
        assert_string_equal(text_at(&r, 1), "what is inside");
        assert_string_equal(run(&r, "fake__read_resource", "{\"uri\":\"demo://9\"}"),
                            "resource not found (-32002)");
        assert_true(r.result.is_error);
        rig_close(&r);
}

static void junk_is_skipped(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, "", "");
        assert_string_equal(run(&r, "fake__junk", "{}"), "fine");
        rig_close(&r);
}

static void the_environment_of_a_server_is_clean(void **state)
{
        struct rig r;
        const char *text;

        (void)state;
        setenv("OPENAI_API_KEY", "sk-canary-0002", 1);
        setenv("GITHUB_PAT", "given-secret", 1);
        begin(&r, "", ", \"env\": {\"TOKEN\": \"env:GITHUB_PAT\"}");
        text = run(&r, "fake__env", "{}");
        assert_has(text, "\"TOKEN\": \"************\""); /* it has it, and we hide it */
        assert_null(strstr(text, "canary"));
        assert_null(strstr(text, "GITHUB_PAT"));
        /* the last 200 bytes of an error are shown, and begin within the secret */
        text = run(&r, "fake__dies", "{\"variable\":\"TOKEN\"}");
        assert_has(text, "exit code 3: ******0");
        rig_close(&r);
}

static void a_server_that_ends_is_started_again(void **state)
{
        struct rig r;
        const char *text;

        (void)state;
        begin(&r, "", "");
        text = run(&r, "fake__dies", "{}");
        assert_has(text, "it ended with exit code 3: boom, out of memory");
        assert_has(text, "may have happened");
        assert_true(r.result.is_error);
        assert_non_null(custom_find(r.all, "fake__echo")); /* its tools stay listed */
        assert_int_equal(counted(&r, "starts"), 1);
        assert_string_equal(run(&r, "fake__echo", "{\"text\":\"back\"}"), "back");
        assert_int_equal(counted(&r, "starts"), 2);
        assert_int_equal(counted(&r, "call dies"), 1); /* never repeated */
        rig_close(&r);
}

static const char *key_of(const struct rig *r, const char *name)
{
        for (size_t i = 0; i < custom_count(r->all); i++)
                if (strcmp(custom_at(r->all, i)->name, name) == 0)
                        return custom_at(r->all, i)->key;
        fail_msg("no tool '%s'", name);
        return NULL;
}

static void only_trusted_reading_is_repeated(void **state)
{
        struct rig r;
        char *key;

        (void)state;
        begin(&r, "", "");
        key = mem_strdup(key_of(&r, "dies.once"));
        assert_has(run(&r, key, "{}"), "may have happened");
        free(key);
        rig_close(&r);
        begin(&r, "", ", \"trust\": true");
        key = mem_strdup(key_of(&r, "dies.once"));
        assert_string_equal(run(&r, key, "{}"), "alive");
        assert_int_equal(counted(&r, "call dies.once"), 2);
        free(key);
        rig_close(&r);
}

static void parallel_calls_share_one_start(void **state)
{
        static const struct custom_handlers h = { NULL, on_done };
        struct custom_request q = { .key = "fake__echo", .id = "a" };
        struct rig r;

        (void)state;
        begin(&r, "", "");
        run(&r, "fake__dies", "{}");
        start(&r, "fake__echo", "{\"text\":\"1\"}");
        r.call = NULL;
        for (int i = 0; i < 5; i++) {
                await(&r, &r.done);
                r.done = false;
                json_decref(r.result.content);
                r.result = (struct tool_result){ 0 };
                custom_call_start(r.all, &q, &h, &r);
        }
        await(&r, &r.done);
        assert_int_equal(counted(&r, "starts"), 2);
        rig_close(&r);
}

static void a_line_over_the_limit_ends_the_server(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, "", "");
        assert_has(run(&r, "fake__big", "{}"), "a line over 16 MiB");
        assert_string_equal(run(&r, "fake__echo", "{\"text\":\"again\"}"), "again");
        rig_close(&r);
}

static void a_server_that_cannot_start_says_why(void **state)
{
        struct rig r;
        char *status;

        (void)state;
        begin(&r, ", \"--exit\", \"7\"", "");
        assert_int_equal(custom_count(r.all), 0);
        status = rig_status(&r);
        assert_has(status, "\"state\":\"down\"");
        assert_has(status, "it ended with exit code 7: cannot find my configuration");
        free(status);
        rig_close(&r);
        rig_open(&r);
        rig_server(&r, "gone", "{ \"command\": \"/nowhere/server\" }");
        rig_start(&r);
        status = rig_status(&r);
        assert_has(status, "cannot start '/nowhere/server'");
        free(status);
        rig_close(&r);
}

static void unknown_revisions_and_refusals_are_told(void **state)
{
        struct rig r;
        char *status;

        (void)state;
        begin(&r, ", \"--version\", \"2031-01-01\"", "");
        status = rig_status(&r);
        assert_has(status, "\"state\":\"down\"");
        free(status);
        rig_close(&r);
        begin(&r, ", \"--refuse\"", "");
        status = rig_status(&r);
        assert_has(status, "method not found (-32601)");
        free(status);
        rig_close(&r);
        begin(&r, ", \"--version\", \"2024-11-05\"", "");
        assert_string_equal(run(&r, "fake__echo", "{\"text\":\"old\"}"), "old");
        rig_close(&r);
}

static void a_server_of_the_newer_era_is_recognised(void **state)
{
        struct rig r;

        (void)state;
        begin(&r, ", \"--modern\"", "");
        assert_int_equal(counted(&r, "starts"), 1); /* asked to initialize, it refused */
        assert_string_equal(run(&r, "fake__echo", "{\"text\":\"new\"}"), "new");
        assert_has(run(&r, "fake__question", "{}"), "it asks for input");
        assert_true(r.result.is_error);
        assert_int_equal(counted(&r, "call question"), 3);
        /* the verdict is remembered */
        custom_free(r.all);
        rig_start(&r);
        assert_string_equal(run(&r, "fake__echo", "{\"text\":\"again\"}"), "again");
        assert_int_equal(counted(&r, "starts"), 1);
        rig_close(&r);
}

static void await_file(struct rig *r, const char *path)
{
        timer_start(r->deadline, PATIENCE_MS);
        while (access(path, F_OK) < 0 && !r->late) {
                loop_step(r->loop, false);
                usleep(1000);
        }
        timer_stop(r->deadline);
        assert_false(r->late);
}

static void known_tools_are_listed_without_a_start(void **state)
{
        struct rig r;
        char *cache, *status;

        (void)state;
        begin(&r, "", "");
        cache = scratch_path(r.dir, "state/mcp/assistant-fake.json");
        await_file(&r, cache);
        custom_free(r.all);
        rig_start(&r);
        assert_non_null(custom_find(r.all, "fake__echo"));
        status = rig_status(&r);
        assert_has(status, "\"state\":\"idle\"");
        free(status);
        assert_int_equal(counted(&r, "starts"), 1);
        assert_string_equal(run(&r, "fake__echo", "{\"text\":\"x\"}"), "x");
        assert_int_equal(counted(&r, "starts"), 2);
        free(cache);
        rig_close(&r);
}

static void a_changed_description_is_reported(void **state)
{
        struct rig r;
        char *cache, *status, *text;
        struct buf b;

        (void)state;
        begin(&r, "", "");
        cache = scratch_path(r.dir, "state/mcp/assistant-fake.json");
        await_file(&r, cache);
        custom_free(r.all);
        buf_init(&b, 0);
        assert_int_equal(file_read(cache, 1 << 20, &b, NULL), 0);
        text = strstr(b.data, "Repeats its arguments.");
        assert_non_null(text);
        memcpy(text, "Once was", 8);
        assert_int_equal(file_replace(cache, b.data), 0);
        buf_release(&b);
        rig_start(&r);
        run(&r, "fake__echo", "{}");
        run(&r, "fake__seen", "{}"); /* the list was asked for first */
        status = rig_status(&r);
        assert_has(status, "the tool 'echo' has changed since it was last listed");
        free(status);
        free(cache);
        rig_close(&r);
}

static void a_server_that_is_down_is_not_hammered(void **state)
{
        struct rig r;
        char *cache;

        (void)state;
        begin(&r, "", "");
        cache = scratch_path(r.dir, "state/mcp/assistant-fake.json");
        await_file(&r, cache);
        custom_free(r.all);
        free(r.servers[0]->command);
        r.servers[0]->command = mem_strdup("python3");
        setenv("PATH", getenv("PATH"), 1);
        /* the same configuration, but the program fails now */
        free(r.servers[0]->cwd);
        r.servers[0]->cwd = mem_strdup("/nonexistent");
        rig_start(&r);
        assert_has(run(&r, "fake__echo", "{}"), "cannot be used: cannot start 'python3'");
        assert_has(run(&r, "fake__echo", "{}"), "cannot be used: cannot start 'python3'");
        assert_non_null(custom_find(r.all, "fake__echo"));
        free(cache);
        rig_close(&r);
}

/* Nobody can call tools that were never listed, so a start is tried again without a call. */
static void a_server_that_was_missing_is_found_later(void **state)
{
        struct rig r;
        struct buf script;
        char *path, *text;

        (void)state;
        rig_open(&r);
        path = scratch_path(r.dir, "late.py");
        text = mem_printf("{ \"command\": \"python3\", \"args\": [\"%s\"] }", path);
        rig_server(&r, "late", text);
        rig_start(&r);
        assert_int_equal(custom_count(r.all), 0);
        buf_init(&script, 0);
        assert_int_equal(file_read(SERVER, 1 << 20, &script, NULL), 0);
        assert_int_equal(file_replace(path, script.data), 0);
        await_tool(&r, "late__echo", true);
        buf_release(&script);
        free(path);
        free(text);
        rig_close(&r);
}

static void closing_ends_a_server_that_hangs(void **state)
{
        struct rig r;

        (void)state;
        rig_open(&r);
        add_stdio(&r, ", \"--mute\"", "");
        r.all = custom_new(&(struct custom_options){
                .loop = r.loop, .http = r.http, .dir = r.dir, .agent = "a", .mcp = &r.mcp });
        timer_start(r.deadline, PATIENCE_MS);
        while (counted(&r, "starts") < 1 && !r.late) {
                loop_step(r.loop, false);
                usleep(1000);
        }
        assert_false(r.late);
        rig_close(&r);
}

static void configurations_are_checked(void **state)
{
        static const struct {
                const char *text, *why;
        } rows[] = {
                { "{\"a\": {}}", "mcp.a: expected either 'command' or 'url'" },
                { "{\"a\": {\"command\": \"x\", \"url\": \"http://x/\"}}",
                  "mcp.a: expected either 'command' or 'url'" },
                { "{\"a\": {\"url\": \"http://x/\", \"headers\": {\"X y\": \"1\"}}}",
                  "mcp.a.headers: 'X y' cannot be sent as a header" },
                { "{\"a\": {\"url\": \"http://x/\", \"headers\": {\"X\": \"1\\r\\nY: 2\"}}}",
                  "mcp.a.headers: 'X' cannot be sent as a header" },
        };
        static const struct setting table[] = { { "mcp", SETTING_MAP, "{}", 0,
                                                  sizeof(struct mcp_conf), .group = mcp_settings,
                                                  .at = 0 },
                                                SETTING_END };
        const struct setting *const list[] = { table, NULL };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *text = mem_printf("{\"mcp\": %s}", rows[i].text);
                struct error err = { 0 };
                struct settings_source *src =
                        settings_source_new(NULL, NULL, text, strlen(text), &err);
                struct setting_map map = { 0 };

                assert_int_equal(
                        settings_read(src, "", settings_source_root(src), list, NULL, &map, &err),
                        0);
                assert_int_equal(mcp_check(src, "mcp", &map, &err), -1);
                assert_string_equal(err.text, rows[i].why);
                settings_release(list, &map);
                settings_source_free(src);
                free(text);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tools_are_listed_and_called),
                cmocka_unit_test(names_become_keys),
                cmocka_unit_test(lists_come_in_pages),
                cmocka_unit_test(a_list_that_failed_is_read_from_its_first_page),
                cmocka_unit_test(only_the_named_tools_are_offered),
                cmocka_unit_test(hints_make_stricter_unless_trusted),
                cmocka_unit_test(requests_of_the_server_are_answered),
                cmocka_unit_test(progress_prolongs_the_deadline),
                cmocka_unit_test(a_silent_call_ends_and_is_cancelled),
                cmocka_unit_test(a_changed_list_is_read_once),
                cmocka_unit_test(results_become_blocks_for_the_model),
                cmocka_unit_test(resources_are_read_on_demand),
                cmocka_unit_test(junk_is_skipped),
                cmocka_unit_test(the_environment_of_a_server_is_clean),
                cmocka_unit_test(a_server_that_ends_is_started_again),
                cmocka_unit_test(only_trusted_reading_is_repeated),
                cmocka_unit_test(parallel_calls_share_one_start),
                cmocka_unit_test(a_line_over_the_limit_ends_the_server),
                cmocka_unit_test(a_server_that_cannot_start_says_why),
                cmocka_unit_test(unknown_revisions_and_refusals_are_told),
                cmocka_unit_test(a_server_of_the_newer_era_is_recognised),
                cmocka_unit_test(known_tools_are_listed_without_a_start),
                cmocka_unit_test(a_changed_description_is_reported),
                cmocka_unit_test(a_server_that_is_down_is_not_hammered),
                cmocka_unit_test(a_server_that_was_missing_is_found_later),
                cmocka_unit_test(closing_ends_a_server_that_hangs),
                cmocka_unit_test(configurations_are_checked),
        };
        int rc;

        log_setup(LOG_TEXT, LOG_ERROR);
        server_path = realpath(SERVER, NULL);
        if (!server_path) {
                fprintf(stderr, "%s is missing; run this in the project's folder\n", SERVER);
                return 1;
        }
        rc = cmocka_run_group_tests(tests, NULL, NULL);
        free(server_path);
        return rc;
}
