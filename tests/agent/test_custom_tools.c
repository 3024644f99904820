/* Programs in DIR/tools: what they get, what the model gets back, reloading, and broken ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "custom_rig.h"

/* A shell script as a tool. */
static void put_tool(struct rig *r, const char *name, const char *more, const char *script)
{
        char *file = mem_printf("%s/run.sh", name), *manifest = mem_printf("%s/tool.json", name);
        char *text = mem_printf("{ \"description\": \"Test tool %s.\", \"command\": [\"./run.sh\"] "
                                "%s }",
                                name, more);
        char *body = mem_printf("#!/bin/sh\n%s\n", script);

        put(r, file, body, 0700);
        put(r, manifest, text, 0600);
        free(file);
        free(manifest);
        free(text);
        free(body);
}

static void arguments_go_in_and_text_comes_back(void **state)
{
        struct rig r;

        (void)state;
        rig_open(&r);
        put_tool(&r, "hello", "", "read line; echo \"got $line\"; echo 'half way' >&2");
        rig_start(&r);
        assert_int_equal(custom_count(r.all), 1);
        assert_string_equal(custom_at(r.all, 0)->key, "hello");
        assert_string_equal(run(&r, "hello", "{\"town\":\"Köln\"}"), "got {\"town\":\"Köln\"}\n");
        assert_false(r.result.is_error);
        assert_true(r.result.untrusted);
        assert_string_equal(r.progress.data, "half way|");
        rig_close(&r);
}

static void json_results_have_images_details_and_errors(void **state)
{
        struct rig r;
        const json_t *image;

        (void)state;
        rig_open(&r);
        put_tool(&r, "shot", ", \"trusted\": true",
                 "cat <<'J'\n{\"content\":[{\"type\":\"text\",\"text\":\"here\"},{\"type\":"
                 "\"image\",\"mimeType\":\"image/png\",\"data\":\"iVBORw0KGgo=\"}],"
                 "\"details\":{\"count\":1}}\nJ");
        put_tool(&r, "sad", "", "echo '{\"text\":\"no such town\",\"isError\":true}'");
        rig_start(&r);
        assert_string_equal(run(&r, "shot", "{}"), "here");
        assert_false(r.result.untrusted);
        image = json_array_get(r.result.content, 1);
        assert_string_equal(json_str(image, "type", ""), "image");
        assert_string_equal(json_str(image, "data", ""), "iVBORw0KGgo=");
        assert_int_equal(json_int(r.result.details, "count", 0), 1);
        assert_string_equal(run(&r, "sad", "{}"), "no such town");
        assert_true(r.result.is_error);
        rig_close(&r);
}

static void failures_say_how_the_program_ended(void **state)
{
        struct rig r;
        const char *text;

        (void)state;
        rig_open(&r);
        put_tool(&r, "fails", "", "echo partial; echo 'no network' >&2; exit 3");
        put_tool(&r, "hangs", ", \"timeoutSeconds\": 1", "echo begun; sleep 600 & wait");
        put_tool(&r, "silent", "", "true");
        put(&r, "gone/tool.json", "{\"description\": \"x\", \"command\": \"./missing\"}", 0600);
        rig_start(&r);
        text = run(&r, "fails", "{}");
        assert_string_equal(text, "partial\nno network\nThe tool ended with exit code 3.");
        assert_true(r.result.is_error);
        text = run(&r, "hangs", "{}");
        assert_string_equal(text, "begun\nThe tool was ended after 1 seconds.");
        assert_string_equal(run(&r, "silent", "{}"), "(no output)");
        assert_has(run(&r, "gone", "{}"), "cannot start './missing'");
        assert_true(r.result.is_error);
        assert_has(run(&r, "hello", "{}"), "There is no custom tool 'hello'");
        assert_has(run(&r, "silnt", "{}"), "Did you mean 'silent'?");
        rig_close(&r);
}

static void arguments_are_checked_before_anything_runs(void **state)
{
        struct rig r;

        (void)state;
        rig_open(&r);
        put_tool(&r, "add",
                 ", \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": "
                 "\"integer\"}}, \"required\": [\"a\"]}",
                 "echo ran");
        rig_start(&r);
        assert_has(run(&r, "add", "{\"a\":\"x\"}"), "The arguments of 'add' are wrong: ");
        assert_true(r.result.is_error);
        assert_string_equal(run(&r, "add", "{\"a\":1}"), "ran\n");
        rig_close(&r);
}

static void the_environment_is_clean(void **state)
{
        struct rig r;
        const char *text;

        (void)state;
        setenv("ANTHROPIC_API_KEY", "sk-canary-0001", 1);
        setenv("WEATHER_KEY", "sunny-secret", 1);
        rig_open(&r);
        put_tool(&r, "env", ", \"env\": {\"KEY\": \"env:WEATHER_KEY\", \"MODE\": \"fast\"}",
                 "env; echo ${#KEY}");
        rig_start(&r);
        text = run(&r, "env", "{}");
        assert_has(text, "KEY=************\n"); /* it has it, and we hide it */
        assert_has(text, "\n12\n");
        assert_has(text, "MODE=fast\n");
        assert_has(text, "PATH=");
        assert_null(strstr(text, "canary"));
        assert_null(strstr(text, "WEATHER_KEY"));
        rig_close(&r);
}

static void a_cancelled_call_ends_with_its_children(void **state)
{
        struct rig r;
        char *file;
        struct buf pid;
        struct stat st;

        (void)state;
        rig_open(&r);
        put_tool(&r, "long", "", "sleep 600 & echo $! > pid.tmp; mv pid.tmp pid; wait");
        rig_start(&r);
        start(&r, "long", "{}");
        file = mem_printf("%s/tools/long/pid", r.dir);
        timer_start(r.deadline, PATIENCE_MS);
        while (stat(file, &st) < 0 && !r.late) {
                loop_step(r.loop, false);
                usleep(1000);
        }
        assert_false(r.late);
        buf_init(&pid, 0);
        assert_int_equal(file_read(file, 100, &pid, NULL), 0);
        custom_call_cancel(r.call);
        /* the shell's child dies with the group; init or a subreaper may not have collected it */
        while (kill((pid_t)strtol(pid.data, NULL, 10), 0) == 0 && !r.late) {
                char *stat_path = mem_printf("/proc/%ld/stat", strtol(pid.data, NULL, 10));
                struct buf stat_text;
                bool zombie;

                buf_init(&stat_text, 0);
                file_read(stat_path, 4096, &stat_text, NULL);
                zombie = strstr(stat_text.data, ") Z ") != NULL;
                buf_release(&stat_text);
                free(stat_path);
                if (zombie)
                        break;
                loop_step(r.loop, false);
                usleep(1000);
        }
        assert_false(r.late);
        assert_false(r.done);
        buf_release(&pid);
        free(file);
        rig_close(&r);
}

static void tools_come_change_and_go_while_it_runs(void **state)
{
        struct rig r;
        char *manifest, *script;

        (void)state;
        rig_open(&r);
        put_tool(&r, "one", "", "echo 1");
        rig_start(&r);
        start(&r, "one", "{}");
        put_tool(&r, "two", "", "echo 2");
        await_tool(&r, "two", true);
        assert_true(has(&r, "one"));
        put_tool(&r, "one", ", \"name\": \"uno\"", "echo 11");
        await_tool(&r, "uno", true);
        assert_false(has(&r, "one"));
        await(&r, &r.done); /* the call that began before */
        assert_string_equal(run(&r, "uno", "{}"), "11\n");
        manifest = mem_printf("%s/tools/two/tool.json", r.dir);
        script = mem_printf("%s/tools/two/run.sh", r.dir);
        unlink(manifest);
        unlink(script);
        *strrchr(script, '/') = '\0';
        rmdir(script);
        await_tool(&r, "two", false);
        free(manifest);
        free(script);
        rig_close(&r);
}

static void a_broken_tool_hurts_nobody(void **state)
{
        static const struct {
                const char *name, *text, *why;
        } broken[] = {
                { "a", "{", "a/tool.json:1" },
                { "b", "{\"command\": \"x\"}", "missing key 'description'" },
                { "c", "{\"description\": \"x\"}", "has neither a tool.json with a command" },
                { "d", "{\"description\": \"x\", \"command\": [\"x\"], \"parameters\": []}",
                  "not a JSON Schema object" },
                { "e", "{\"description\": \"x\", \"comand\": [\"x\"]}", "did you mean 'command'" },
                { "f", "{\"description\": \"x\", \"command\": \"x\", \"name\": \"a b\"}",
                  "expected letters" },
                { "g", "{\"description\": \"x\", \"command\": \"x\", \"timeoutSeconds\": 0}",
                  "too small (1 to 3600)" },
                { "h", "{\"description\": \"x\", \"command\": []}", "expected a program" },
        };
        char *status;
        struct rig r;

        (void)state;
        rig_open(&r);
        for (size_t i = 0; i < COUNT(broken); i++) {
                char *file = mem_printf("%s/tool.json", broken[i].name);

                put(&r, file, broken[i].text, 0600);
                free(file);
        }
        put_tool(&r, "good", "", "echo fine");
        put_tool(&r, "shared", "", "echo mine");
        put(&r, "shared/run.sh", "#!/bin/sh\necho theirs", 0722);
        rig_start(&r);
        assert_int_equal(custom_count(r.all), 1);
        assert_string_equal(run(&r, "good", "{}"), "fine\n");
        status = rig_status(&r);
        for (size_t i = 0; i < COUNT(broken); i++)
                assert_has(status, broken[i].why);
        assert_has(status, "shared/run.sh");
        free(status);
        rig_close(&r);
}

static void two_tools_with_one_name_are_told_apart(void **state)
{
        struct rig r;
        char *status;

        (void)state;
        rig_open(&r);
        put_tool(&r, "first", ", \"name\": \"same\"", "echo 1");
        put_tool(&r, "second", ", \"name\": \"same\"", "echo 2");
        rig_start(&r);
        assert_int_equal(custom_count(r.all), 1);
        assert_string_equal(run(&r, "same", "{}"), "1\n");
        status = rig_status(&r);
        assert_has(status, "a tool named 'same' exists already");
        free(status);
        rig_close(&r);
}

static void the_prompt_is_whole_or_short_by_the_window(void **state)
{
        struct rig r;
        struct buf whole, brief;
        bool deferred;

        (void)state;
        rig_open(&r);
        put_tool(&r, "zebra", "", "true");
        put_tool(&r, "ape",
                 ", \"parameters\": {\"type\": \"object\", \"properties\": {\"size\": {\"type\": "
                 "\"integer\"}}}",
                 "true");
        rig_start(&r);
        buf_init(&whole, 0);
        buf_init(&brief, 0);
        custom_prompt(r.all, 200000, &whole);
        assert_has(whole.data, "### ape\nTest tool ape.\nParameters: {\"type\":\"object\"");
        assert_true(strstr(whole.data, "### ape") < strstr(whole.data, "### zebra"));
        assert_true(custom_prompt_tokens(r.all, 200000, &deferred) > 50);
        assert_false(deferred);
        custom_prompt(r.all, 500, &brief);
        assert_has(brief.data, "- ape: Test tool ape.\n- zebra: Test tool zebra.\n");
        assert_has(brief.data, "tool_search");
        assert_null(strstr(brief.data, "Parameters:"));
        custom_prompt_tokens(r.all, 500, &deferred);
        assert_true(deferred);
        buf_clear(&brief);
        custom_search(r.all, "ape", 1, &brief);
        assert_has(brief.data, "### ape\n");
        assert_has(brief.data, "\"size\"");
        assert_null(strstr(brief.data, "zebra"));
        buf_clear(&brief);
        custom_search(r.all, "submarine", 5, &brief);
        assert_has(brief.data, "No custom tool fits 'submarine'");
        buf_release(&whole);
        buf_release(&brief);
        rig_close(&r);
}

/* Reads the file that the second block of the result names. */
static void read_kept(const struct rig *r, struct buf *file)
{
        const char *text = json_str(json_array_get(r->result.content, 1), "text", "");
        const char *path = strstr(text, "scratch/");
        char *host;

        assert_non_null(path);
        host = mem_printf("%s%s/%.*s", r->dir, r->view->folder, (int)strcspn(path, "]"), path);
        buf_init(file, 0);
        assert_int_equal(file_read(host, 1 << 20, file, NULL), 0);
        free(host);
}

static void long_output_is_cut_and_kept_in_a_file(void **state)
{
        struct rig r;
        const char *text;
        struct stat st;
        struct buf file;

        (void)state;
        rig_open(&r);
        put_tool(&r, "long", "", "seq 1 5000");
        put_tool(&r, "sound", "",
                 "echo '{\"content\":[{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":"
                 "\"UklGRg==\"}]}'");
        rig_start(&r);
        text = run(&r, "long", "{}");
        assert_int_equal(strlen(text), 8893); /* 2000 lines */
        text = json_str(json_array_get(r.result.content, 1), "text", "");
        assert_has(text, "[The first 8893 of 23893 bytes are shown. Full output: /workspace/");
        read_kept(&r, &file);
        assert_int_equal(file.len, 23893);
        buf_release(&file);
        assert_int_equal(fstatat(r.view->channel_fd, "scratch", &st, 0), 0);
        assert_int_equal(st.st_uid, workspace_uid()); /* commands of the agent work there, too */
        assert_has(run(&r, "sound", "{}"), "a sound (audio/wav, 4 bytes), saved as /workspace/");
        rig_close(&r);
}

/* A secret across the last byte shown is not shown in half, and the file has none. */
static void long_output_has_no_secrets(void **state)
{
        struct rig r;
        const char *text;
        struct buf file;

        (void)state;
        setenv("WEATHER_KEY", "sunny-secret", 1);
        rig_open(&r);
        put_tool(&r, "long", ", \"env\": {\"KEY\": \"env:WEATHER_KEY\"}",
                 "printf %051195d 0; printf %s \"$KEY\"; printf %09000d 0");
        put_tool(&r, "fails", ", \"env\": {\"KEY\": \"env:WEATHER_KEY\"}",
                 "printf '%0198d%s\\n' 1 \"$KEY\" >&2; printf '%s%08187d' \"$KEY\" 0 >&2; exit 1");
        rig_start(&r);
        text = run(&r, "long", "{}");
        assert_has(text, "000*****");
        assert_null(strstr(text, "sunny"));
        read_kept(&r, &file);
        assert_int_equal(file.len, 51195 + 12 + 9000);
        assert_null(strstr(file.data, "sunny"));
        buf_release(&file);
        /* 8 KiB of errors and 200 bytes of progress are shown: both cuts lie within a secret */
        text = run(&r, "fails", "{}");
        assert_has(text, "*****0000");
        assert_null(strstr(text, "ecret"));
        assert_has(r.progress.data, "1**|");
        assert_null(strstr(r.progress.data, "su"));
        rig_close(&r);
}

struct invoked {
        struct tool_call call;
        struct rig *rig;
        struct buf live;
};

static void on_live(struct tool_call *c, const char *text, size_t n)
{
        buf_add(&((struct invoked *)c->arg)->live, text, n);
}

static void on_invoked(struct tool_call *c, struct tool_result *result)
{
        struct invoked *i = c->arg;

        on_done(i->rig, result);
}

static void invoke(struct invoked *i, const struct tool *t, const struct tool_scope *scope,
                   const char *arguments)
{
        json_decref((json_t *)(uintptr_t)i->call.arguments);
        json_decref(i->rig->result.content);
        json_decref(i->rig->result.details);
        i->rig->result = (struct tool_result){ 0 };
        i->rig->done = false;
        i->call = (struct tool_call){ .tool = t,
                                      .scope = scope,
                                      .id = "call_1",
                                      .arguments = json_loads(arguments, 0, NULL),
                                      .on_output = on_live,
                                      .on_done = on_invoked,
                                      .arg = i };
        t->start(&i->call);
}

static void the_model_calls_them_by_two_tools(void **state)
{
        struct rig r;
        struct invoked i = { .rig = &r };
        struct tool_scope scope = { 0 };
        json_t *args = json_loads("{\"tool\": \"look\"}", 0, NULL);

        (void)state;
        rig_open(&r);
        buf_init(&i.live, 0);
        put_tool(&r, "look", ", \"readOnly\": true, \"trusted\": true", "echo looking >&2; cat");
        rig_start(&r);
        assert_false(invoke_tool.offered(&scope));
        scope.custom = r.all;
        scope.view = r.view;
        assert_true(invoke_tool.offered(&scope));
        assert_true(tool_search_tool.offered(&scope));
        assert_int_equal(invoke_tool.flags_of(&scope, args), TOOL_READ_ONLY);
        invoke(&i, &invoke_tool, &scope, "{\"tool\": \"look\", \"args\": {\"at\": \"sky\"}}");
        await(&r, &r.done);
        assert_string_equal(json_str(json_array_get(r.result.content, 0), "text", ""),
                            "{\"at\":\"sky\"}\n");
        assert_has(i.live.data, "looking");
        invoke(&i, &tool_search_tool, &scope, "{\"query\": \"look\"}");
        await(&r, &r.done);
        assert_has(json_str(json_array_get(r.result.content, 0), "text", ""), "### look");
        invoke(&i, &invoke_tool, &scope, "{\"tool\": \"look\"}");
        invoke_tool.cancel(&i.call);
        assert_false(r.done);
        json_decref((json_t *)(uintptr_t)i.call.arguments);
        json_decref(args);
        buf_release(&i.live);
        rig_close(&r);
}

static void closing_ends_what_runs(void **state)
{
        struct rig r;

        (void)state;
        rig_open(&r);
        put_tool(&r, "long", "", "sleep 600");
        rig_start(&r);
        start(&r, "long", "{}");
        custom_wait_start(r.all, on_ready, &r);
        custom_free(r.all);
        r.all = NULL;
        assert_false(r.done);
        rig_close(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(arguments_go_in_and_text_comes_back),
                cmocka_unit_test(json_results_have_images_details_and_errors),
                cmocka_unit_test(failures_say_how_the_program_ended),
                cmocka_unit_test(arguments_are_checked_before_anything_runs),
                cmocka_unit_test(the_environment_is_clean),
                cmocka_unit_test(long_output_has_no_secrets),
                cmocka_unit_test(a_cancelled_call_ends_with_its_children),
                cmocka_unit_test(tools_come_change_and_go_while_it_runs),
                cmocka_unit_test(a_broken_tool_hurts_nobody),
                cmocka_unit_test(two_tools_with_one_name_are_told_apart),
                cmocka_unit_test(the_prompt_is_whole_or_short_by_the_window),
                cmocka_unit_test(long_output_is_cut_and_kept_in_a_file),
                cmocka_unit_test(the_model_calls_them_by_two_tools),
                cmocka_unit_test(closing_ends_what_runs),
        };

        log_setup(LOG_TEXT, LOG_ERROR);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
