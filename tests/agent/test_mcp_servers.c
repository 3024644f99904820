/*
 * The MCP client and the reference servers from npm. tests/e2e/reference_mcp_servers_work.sh
 * installs them and sets MCP_SERVERS (their folder), EVERYTHING_URL and MODERN_URL; without that,
 * nothing is tested.
 */
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

static const char *servers; /* NULL: skip */

static void add_npm(struct rig *r, const char *name, const char *script, const char *args,
                    const char *more)
{
        char *text = mem_printf("{ \"command\": \"node\", \"args\": [\"%s/%s\" %s] %s }", servers,
                                script, args, more);

        rig_server(r, name, text);
        free(text);
}

#define REFERENCE(name) "node_modules/@modelcontextprotocol/server-" name "/dist/index.js"

static void open_everything(struct rig *r, const char *more)
{
        rig_open(r);
        add_npm(r, "all", REFERENCE("everything"), ", \"stdio\"", more);
        rig_start(r);
}

static const json_t *block_of(const struct rig *r, const char *type)
{
        size_t i;
        json_t *b;

        json_array_foreach(r->result.content, i, b)
                if (strcmp(json_str(b, "type", ""), type) == 0)
                        return b;
        return NULL;
}

/* The tools that both transports of the server have. */
static void check_everything(struct rig *r)
{
        assert_has(run(r, "all__echo", "{\"message\":\"hi\"}"), "hi");
        assert_false(r->result.is_error);
        assert_has(run(r, "all__get-sum", "{\"a\":2,\"b\":40}"), "42");
        assert_has(run(r, "all__get-sum", "{\"a\":\"x\"}"), "are wrong: ");
        run(r, "all__get-tiny-image", "{}");
        assert_non_null(block_of(r, "image"));
        assert_string_equal(json_str(block_of(r, "image"), "mimeType", ""), "image/png");
        assert_has(run(r, "all__get-structured-content", "{\"location\":\"Chicago\"}"),
                   "temperature");
        assert_int_equal(json_array_size(r->result.content), 1);
        run(r, "all__get-resource-links", "{\"count\":2}");
        assert_has(json_str(json_array_get(r->result.content, 1), "text", ""), "demo://");
        run(r, "all__read_resource", "{\"uri\":\"demo://resource/dynamic/text/1\"}");
        assert_has(json_str(json_array_get(r->result.content, 1), "text", ""), "Resource 1");
        buf_clear(&r->progress);
        assert_has(run(r, "all__trigger-long-running-operation", "{\"duration\":1,\"steps\":4}"),
                   "completed");
        assert_has(r->progress.data, "2 of 4|");
}

static void the_everything_server_works_over_stdio(void **state)
{
        struct rig r;

        (void)state;
        if (!servers)
                skip();
        setenv("OPENAI_API_KEY", "sk-canary-0004", 1);
        open_everything(&r, "");
        check_everything(&r);
        assert_null(strstr(run(&r, "all__get-env", "{}"), "canary"));
        start(&r, "all__trigger-long-running-operation", "{\"duration\":60,\"steps\":600}");
        timer_start(r.deadline, PATIENCE_MS);
        buf_clear(&r.progress);
        while (r.progress.len == 0 && !r.late)
                loop_step(r.loop, true);
        custom_call_cancel(r.call); /* its progress goes on, and is ignored */
        assert_has(run(&r, "all__echo", "{\"message\":\"after\"}"), "after");
        assert_false(r.done && r.result.is_error);
        rig_close(&r);
}

static void a_deadline_ends_a_long_operation(void **state)
{
        struct rig r;

        (void)state;
        if (!servers)
                skip();
        open_everything(&r, ", \"timeoutSeconds\": 1");
        assert_has(run(&r, "all__trigger-long-running-operation", "{\"duration\":30,\"steps\":1}"),
                   "did not answer within 1 seconds");
        assert_has(run(&r, "all__echo", "{\"message\":\"after\"}"), "after");
        rig_close(&r);
}

static void the_everything_server_works_over_http(void **state)
{
        const char *url = getenv("EVERYTHING_URL");
        struct rig r;
        char *text;

        (void)state;
        if (!servers || !url)
                skip();
        rig_open(&r);
        text = mem_printf("{ \"url\": \"%s\" }", url);
        rig_server(&r, "all", text);
        free(text);
        rig_start(&r);
        check_everything(&r);
        rig_close(&r);
}

static void the_filesystem_server_stays_in_its_folder(void **state)
{
        struct rig r;
        char *args, *call, *link;

        (void)state;
        if (!servers)
                skip();
        rig_open(&r);
        args = mem_printf(", \"%s\"", r.dir);
        add_npm(&r, "fs", REFERENCE("filesystem"), args, ", \"trust\": true");
        free(args);
        rig_start(&r);
        assert_true(custom_find(r.all, "fs__read_text_file")->flags & TOOL_READ_ONLY);
        assert_false(custom_find(r.all, "fs__write_file")->flags & TOOL_READ_ONLY);
        call = mem_printf("{\"path\":\"%s/a.txt\",\"content\":\"line one\\nline two\\n\"}", r.dir);
        run(&r, "fs__write_file", call);
        assert_false(r.result.is_error);
        free(call);
        call = mem_printf("{\"path\":\"%s/a.txt\"}", r.dir);
        assert_has(run(&r, "fs__read_text_file", call), "line one\nline two");
        assert_false(r.result.untrusted);
        free(call);
        link = mem_printf("%s/out", r.dir);
        assert_int_equal(symlink("/etc/hostname", link), 0);
        call = mem_printf("{\"path\":\"%s\"}", link);
        run(&r, "fs__read_text_file", call);
        assert_true(r.result.is_error);
        free(call);
        free(link);
        rig_close(&r);
}

static void the_memory_server_is_started_again(void **state)
{
        struct rig r;
        char *env;

        (void)state;
        if (!servers)
                skip();
        rig_open(&r);
        env = mem_printf(", \"env\": {\"MEMORY_FILE_PATH\": \"%s/memory.jsonl\"}", r.dir);
        add_npm(&r, "mem", REFERENCE("memory"), "", env);
        free(env);
        rig_start(&r);
        run(&r, "mem__create_entities",
            "{\"entities\":[{\"name\":\"Ann\",\"entityType\":\"person\",\"observations\":[\"likes "
            "tea\"]}]}");
        assert_false(r.result.is_error);
        custom_free(r.all);
        rig_start(&r);
        assert_has(run(&r, "mem__search_nodes", "{\"query\":\"tea\"}"), "Ann");
        rig_close(&r);
}

static void check_modern(struct rig *r)
{
        assert_string_equal(run(r, "new__add", "{\"a\":1,\"b\":2}"), "3");
        assert_string_equal(run(r, "new__region", "{\"where\":\"Köln\"}"), "Köln");
        assert_string_equal(run(r, "new__structured", "{}"), "{\"temperature\":21}");
        buf_clear(&r->progress);
        assert_string_equal(run(r, "new__slow", "{}"), "slow but done");
        assert_has(r->progress.data, "2 of 3|");
}

static void a_server_of_the_newer_era_works(void **state)
{
        const char *url = getenv("MODERN_URL");
        struct rig r;
        char *text;

        (void)state;
        if (!servers || !url)
                skip();
        rig_open(&r);
        add_npm(&r, "new", "modern.mjs", "", "");
        rig_start(&r);
        check_modern(&r);
        rig_close(&r);
        rig_open(&r);
        text = mem_printf("{ \"url\": \"%s\" }", url);
        rig_server(&r, "new", text);
        free(text);
        rig_start(&r);
        check_modern(&r);
        rig_close(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_everything_server_works_over_stdio),
                cmocka_unit_test(a_deadline_ends_a_long_operation),
                cmocka_unit_test(the_everything_server_works_over_http),
                cmocka_unit_test(the_filesystem_server_stays_in_its_folder),
                cmocka_unit_test(the_memory_server_is_started_again),
                cmocka_unit_test(a_server_of_the_newer_era_works),
        };

        servers = getenv("MCP_SERVERS");
        log_setup(LOG_TEXT, LOG_ERROR);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
