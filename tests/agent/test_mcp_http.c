/* The MCP client over streamable HTTP: sessions, streams, and servers that break off. */
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
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "custom_rig.h"
#include "net/process.h"

#define SERVER "tests/lib/fake_mcp.py" /* tests run in the project's folder */

struct web {
        struct rig rig;
        struct process *process;
        struct buf out;
        bool listening;
};

static void on_output(void *arg, int fd, const char *bytes, size_t n)
{
        struct web *w = arg;

        if (fd != 1)
                return;
        buf_add(&w->out, bytes, n);
        w->listening = strchr(w->out.data, '\n') != NULL;
}

static void on_server_exit(void *arg, const struct process_result *result)
{
        struct web *w = arg;

        (void)result;
        w->process = NULL;
}

/* options: of the server, NULL-terminated, at most 6. */
static void web_server(struct web *w, const char *const *options)
{
        static const struct process_handlers h = { on_output, on_server_exit };
        char *state = scratch_path(w->rig.dir, "counts.json");
        const char *argv[12] = { "python3", SERVER, "--http", "--state", state };
        struct process_options o = { .argv = argv, .keep_stdin = true };

        for (size_t i = 0; options[i]; i++)
                argv[5 + i] = options[i];
        buf_clear(&w->out);
        w->listening = false;
        w->process = process_start(w->rig.loop, &o, &h, w, NULL);
        assert_non_null(w->process);
        await(&w->rig, &w->listening);
        free(state);
}

static void web_open(struct web *w, const char *const *options, const char *more)
{
        char *text;

        rig_open(&w->rig);
        buf_init(&w->out, 0);
        web_server(w, options);
        text = mem_printf("{ \"url\": \"http://127.0.0.1:%ld/mcp\" %s }",
                          strtol(w->out.data, NULL, 10), more);
        rig_server(&w->rig, "web", text);
        free(text);
        rig_start(&w->rig);
}

static void web_close(struct web *w)
{
        if (w->process)
                process_abandon(w->process);
        buf_release(&w->out);
        rig_close(&w->rig);
}

static int64_t counted(struct web *w, const char *key)
{
        char *path = scratch_path(w->rig.dir, "counts.json");
        json_t *state = file_read_json(path, 100000);
        int64_t n = json_int(state, key, 0);

        json_decref(state);
        free(path);
        return n;
}

#define OPTIONS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void check_calls(struct web *w)
{
        struct rig *r = &w->rig;

        assert_string_equal(run(r, "web__echo", "{\"text\":\"over http\"}"), "over http");
        assert_string_equal(run(r, "web__wrong", "{}"), "no such town (-32602)");
        assert_true(r->result.is_error);
        assert_string_equal(run(r, "web__structured", "{}"), "{\"t\":21}");
}

static void answers_come_as_json_or_events(void **state)
{
        struct web w;

        (void)state;
        web_open(&w, OPTIONS(), "");
        check_calls(&w);
        assert_has(run(&w.rig, "web__seen", "{}"), "\"initialized\": 1");
        assert_has(run(&w.rig, "web__seen", "{}"), "\"mcp-protocol-version\": \"2025-11-25\"");
        web_close(&w);
        web_open(&w, OPTIONS("--sse"), "");
        check_calls(&w);
        assert_string_equal(run(&w.rig, "web__progress", "{}"), "done");
        assert_has(w.rig.progress.data, "step 2|");
        web_close(&w);
}

static void servers_without_sessions_or_streams_work(void **state)
{
        struct web w;

        (void)state;
        web_open(&w, OPTIONS("--no-session", "--no-get"), "");
        check_calls(&w);
        web_close(&w);
}

static void what_the_server_says_by_itself_arrives(void **state)
{
        struct web w;

        (void)state;
        web_open(&w, OPTIONS(), "");
        /* the server's stream is open when it has seen the GET */
        do
                run(&w.rig, "web__seen", "{}");
        while (strstr(json_str(json_array_get(w.rig.result.content, 0), "text", ""),
                      "\"gets\": []"));
        assert_string_equal(run(&w.rig, "web__grow", "{}"), "grown");
        timer_start(w.rig.deadline, PATIENCE_MS);
        while (!custom_find(w.rig.all, "web__grown0") && !w.rig.late)
                loop_step(w.rig.loop, true);
        assert_false(w.rig.late);
        assert_has(run(&w.rig, "web__asks", "{}"), "[\"roots/list\", -32601]");
        web_close(&w);
        /* on the stream of the call */
        web_open(&w, OPTIONS("--sse"), "");
        assert_has(run(&w.rig, "web__asks", "{}"), "[\"ping\", {}]");
        web_close(&w);
}

static void a_broken_answer_is_asked_for_again(void **state)
{
        struct web w;

        (void)state;
        web_open(&w, OPTIONS(), "");
        assert_string_equal(run(&w.rig, "web__cut", "{}"), "resumed");
        assert_has(run(&w.rig, "web__seen", "{}"), "\"e-");
        assert_has(run(&w.rig, "web__seen", "{}"), "\"waited\": \"as told\"");
        web_close(&w);
}

static void a_lost_session_is_opened_again(void **state)
{
        static const char *const gone[] = { "404", "400" };
        struct web w;

        (void)state;
        for (size_t i = 0; i < COUNT(gone); i++) {
                web_open(&w, OPTIONS("--gone", gone[i]), "");
                check_calls(&w);
                assert_string_equal(run(&w.rig, "web__forgets", "{}"), "forgotten");
                assert_has(run(&w.rig, "web__echo", "{\"text\":\"lost\"}"),
                           "its session was gone before the call");
                assert_true(w.rig.result.is_error);
                assert_string_equal(run(&w.rig, "web__echo", "{\"text\":\"new\"}"), "new");
                assert_has(run(&w.rig, "web__seen", "{}"), "\"sessions\": 2");
                web_close(&w);
        }
}

static void closing_ends_the_session(void **state)
{
        struct web w;

        (void)state;
        web_open(&w, OPTIONS(), "");
        check_calls(&w);
        custom_free(w.rig.all);
        w.rig.all = NULL;
        timer_start(w.rig.deadline, PATIENCE_MS);
        while (counted(&w, "deletes") < 1 && !w.rig.late) {
                loop_step(w.rig.loop, false);
                usleep(1000);
        }
        assert_false(w.rig.late);
        web_close(&w);
}

static void a_token_is_sent_and_its_lack_is_told(void **state)
{
        struct web w;
        char *status;

        (void)state;
        setenv("MCP_TOKEN", "open-sesame", 1);
        web_open(&w, OPTIONS("--token", "open-sesame"), ", \"token\": \"env:MCP_TOKEN\"");
        check_calls(&w);
        web_close(&w);
        web_open(&w, OPTIONS("--token", "open-sesame"),
                 ", \"headers\": {\"Authorization\": \"Bearer open-sesame\"}");
        check_calls(&w);
        web_close(&w);
        web_open(&w, OPTIONS("--token", "open-sesame"), "");
        status = rig_status(&w.rig);
        assert_has(status, "refuses the request with status 401; set 'token'");
        free(status);
        web_close(&w);
}

static void the_newer_era_gets_its_headers(void **state)
{
        struct web w;
        const char *text;

        (void)state;
        web_open(&w, OPTIONS("--modern"), "");
        check_calls(&w);
        text = run(&w.rig, "web__region", "{\"where\":\"Köln\",\"n\":1}");
        assert_has(text, "\"mcp-method\": \"tools/call\"");
        assert_has(text, "\"mcp-name\": \"region\"");
        assert_has(text, "\"mcp-param-region\": \"=?base64?S8O2bG4=?=\"");
        assert_has(text, "\"mcp-protocol-version\": \"2026-07-28\"");
        assert_null(strstr(text, "mcp-session-id"));
        text = run(&w.rig, "web__region", "{\"where\":\"eu-1\"}");
        assert_has(text, "\"mcp-param-region\": \"eu-1\"");
        web_close(&w);
}

/* A killed process may accept connections for a moment: until its listening socket is closed. */
static void await_refused(long port)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;
        bool refused = false;

        while (!refused && clock_mono_ms() < deadline) {
                int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

                refused = connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 &&
                          errno == ECONNREFUSED;
                close(fd);
                usleep(1000);
        }
        assert_true(refused);
}

static void a_dead_server_is_told(void **state)
{
        struct web w;
        char *status;

        (void)state;
        web_open(&w, OPTIONS(), "");
        check_calls(&w);
        process_abandon(w.process);
        w.process = NULL;
        run(&w.rig, "web__echo", "{}"); /* on the old connection: it may have arrived */
        assert_true(w.rig.result.is_error);
        await_refused(strtol(w.out.data, NULL, 10));
        assert_has(run(&w.rig, "web__echo", "{}"), "The MCP server 'web' cannot be used: ");
        assert_true(w.rig.result.is_error);
        assert_non_null(custom_find(w.rig.all, "web__echo"));
        status = rig_status(&w.rig);
        assert_has(status, "\"problem\":");
        free(status);
        web_close(&w);
}

static void a_cancelled_call_is_forgotten(void **state)
{
        struct web w;

        (void)state;
        web_open(&w, OPTIONS(), "");
        start(&w.rig, "web__silent", "{}");
        timer_start(w.rig.deadline, PATIENCE_MS);
        while (counted(&w, "call silent") < 1 && !w.rig.late) {
                loop_step(w.rig.loop, false);
                usleep(1000);
        }
        assert_false(w.rig.late);
        custom_call_cancel(w.rig.call);
        do
                run(&w.rig, "web__seen", "{}");
        while (strstr(json_str(json_array_get(w.rig.result.content, 0), "text", ""),
                      "\"cancelled\": []"));
        web_close(&w);
}

static void nobody_listens(void **state)
{
        struct rig r;
        char *status;

        (void)state;
        rig_open(&r);
        rig_server(&r, "web", "{ \"url\": \"http://127.0.0.1:9/mcp\" }");
        rig_start(&r);
        status = rig_status(&r);
        assert_has(status, "\"state\":\"down\"");
        free(status);
        rig_close(&r);
}

static void tell(void *arg, const char *header, const char *value)
{
        buf_addf(arg, "%s=%s|", header, value);
}

static void marks_for_headers_are_checked(void **state)
{
        static const struct {
                const char *schema;
                int rc;
        } rows[] = {
                { "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},\"o\":{"
                  "\"properties\":{\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"}}}}}",
                  0 },
                { "{\"x-mcp-header\":\"A\"}", -1 },
                { "{\"properties\":{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}}", -1 },
                { "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A b\"}}}", -1 },
                { "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},"
                  "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}}}",
                  -1 },
                { "{\"properties\":{\"a\":{\"items\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}"
                  "}}",
                  -1 },
        };
        json_t *args = json_loads("{\"a\":\"1\",\"o\":{\"b\":true}}", 0, NULL);
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *schema = json_loads(rows[i].schema, 0, NULL);

                assert_int_equal(mcp_tools_headers(schema, args, tell, &b), rows[i].rc);
                if (i == 0)
                        assert_string_equal(b.data, "A=1|B=true|");
                json_decref(schema);
        }
        json_decref(args);
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(answers_come_as_json_or_events),
                cmocka_unit_test(servers_without_sessions_or_streams_work),
                cmocka_unit_test(what_the_server_says_by_itself_arrives),
                cmocka_unit_test(a_broken_answer_is_asked_for_again),
                cmocka_unit_test(a_lost_session_is_opened_again),
                cmocka_unit_test(closing_ends_the_session),
                cmocka_unit_test(a_token_is_sent_and_its_lack_is_told),
                cmocka_unit_test(the_newer_era_gets_its_headers),
                cmocka_unit_test(a_dead_server_is_told),
                cmocka_unit_test(a_cancelled_call_is_forgotten),
                cmocka_unit_test(nobody_listens),
                cmocka_unit_test(marks_for_headers_are_checked),
        };

        log_setup(LOG_TEXT, LOG_ERROR);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
