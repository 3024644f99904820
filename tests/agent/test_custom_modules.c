/* index.js and index.ts tools, run by Node. Skipped where there is no Node. */
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

static bool has_node(void)
{
        return system("node -e 'process.exit(+process.versions.node.split(\".\")[0] < 20 ? 1 : 0)' "
                      ">/dev/null 2>&1") == 0;
}

static void begin(struct rig *r)
{
        if (!has_node())
                skip();
        rig_open(r);
}

#define OBJECT(name, body)                                                                       \
        "export default { name: \"" name "\", description: \"Test tool.\", parameters: { type: " \
        "\"object\" }, async execute(id, args, signal, update) { " body " } };\n"

static void modules_are_objects_or_factories(void **state)
{
        struct rig r;

        (void)state;
        begin(&r);
        put(&r, "plain/index.js",
            "import { greet } from \"./greet.mjs\";\n" OBJECT(
                    "greet", "console.log(\"not protocol\"); update(\"half way\"); return { "
                             "content: [{ type: \"text\", text: greet(args.name) }], details: { n: "
                             "1 } };"),
            0600);
        put(&r, "plain/package.json", "{\"type\": \"module\"}", 0600);
        put(&r, "plain/greet.mjs", "export const greet = (name) => `Hello ${name}`;\n", 0600);
        put(&r, "made/index.mjs",
            "export default async function (api) {\n"
            "  await api.writeFile(\"tools-data/x.txt\", \"kept\");\n"
            "  return { name: \"made\", description: \"d\", async execute() {\n"
            "    const { stdout, code } = await api.exec(\"sh\", [\"-c\", \"echo run; exit 3\"]);\n"
            "    return stdout + code + (await api.readFile(\"tools-data/x.txt\")) + (typeof "
            "api.dataDir);\n"
            "  } };\n}\n",
            0600);
        rig_start(&r);
        assert_int_equal(custom_count(r.all), 2);
        assert_string_equal(run(&r, "greet", "{\"name\":\"Ann\"}"), "Hello Ann");
        assert_int_equal(json_int(r.result.details, "n", 0), 1);
        assert_string_equal(r.progress.data, "half way|");
        assert_true(r.result.untrusted);
        assert_string_equal(run(&r, "made", "{}"), "run\n3keptstring");
        rig_close(&r);
}

static void one_bad_module_hurts_nobody(void **state)
{
        struct rig r;
        char *status;

        (void)state;
        begin(&r);
        put(&r, "good/index.mjs", OBJECT("good", "return \"fine\";"), 0600);
        put(&r, "syntax/index.mjs", "export default {", 0600);
        put(&r, "throws/index.mjs", "throw new Error(\"no credentials\");", 0600);
        put(&r, "empty/index.mjs", "export default 5;", 0600);
        put(&r, "exits/index.mjs", OBJECT("exits", "process.exit(9);"), 0600);
        put(&r, "fails/index.mjs", OBJECT("fails", "throw new Error(\"no such town\");"), 0600);
        put(&r, "late/index.mjs",
            OBJECT("late", "setTimeout(() => { throw new Error(\"later\"); }, 0); await new "
                           "Promise(() => {});"),
            0600);
        rig_start(&r);
        status = rig_status(&r);
        assert_has(status, "throws: no credentials");
        assert_has(status, "syntax: ");
        assert_has(status, "empty: its default export must have");
        free(status);
        assert_has(run(&r, "exits", "{}"), "the tool ended: ");
        assert_true(r.result.is_error);
        assert_has(run(&r, "late", "{}"), "the tool ended: later");
        assert_string_equal(run(&r, "fails", "{}"), "no such town");
        assert_true(r.result.is_error);
        assert_string_equal(run(&r, "good", "{}"), "fine");
        assert_has(run(&r, "exits", "{}"), "the tool ended: "); /* in a new thread */
        rig_close(&r);
}

static void an_endless_tool_is_ended_alone(void **state)
{
        struct rig r;

        (void)state;
        begin(&r);
        put(&r, "loops/index.mjs", OBJECT("loops", "if (args.go) return \"out\"; for (;;);"), 0600);
        put(&r, "loops/tool.json", "{ \"timeoutSeconds\": 1, \"readOnly\": true }", 0600);
        put(&r, "counts/index.mjs", "let n = 0;\n" OBJECT("counts", "return String(++n);"), 0600);
        rig_start(&r);
        assert_int_equal(custom_find(r.all, "loops")->flags, TOOL_READ_ONLY | TOOL_UNTRUSTED);
        assert_string_equal(run(&r, "counts", "{}"), "1");
        assert_has(run(&r, "loops", "{}"), "did not answer within 1 seconds");
        /* the thread that loops is ended soon; other tools keep their state */
        assert_string_equal(run(&r, "counts", "{}"), "2");
        do
                run(&r, "loops", "{\"go\":true}");
        while (r.result.is_error);
        assert_string_equal(run(&r, "counts", "{}"), "3");
        rig_close(&r);
}

static void stopping_aborts_the_signal(void **state)
{
        struct rig r;
        char *path;

        (void)state;
        begin(&r);
        put(&r, "waits/index.mjs",
            "import { writeFileSync } from \"node:fs\";\n" OBJECT(
                    "waits",
                    "writeFileSync(\"begun\", \"\"); await new Promise((done) => "
                    "signal.addEventListener(\"abort\", done)); writeFileSync(\"stopped\", \"\");"),
            0600);
        rig_start(&r);
        start(&r, "waits", "{}");
        path = mem_printf("%s/tools/begun", r.dir);
        timer_start(r.deadline, PATIENCE_MS);
        while (access(path, F_OK) < 0 && !r.late) {
                loop_step(r.loop, false);
                usleep(1000);
        }
        custom_call_cancel(r.call);
        free(path);
        path = mem_printf("%s/tools/stopped", r.dir);
        while (access(path, F_OK) < 0 && !r.late) {
                loop_step(r.loop, false);
                usleep(1000);
        }
        assert_false(r.late);
        assert_false(r.done);
        free(path);
        rig_close(&r);
}

static void a_change_loads_the_module_anew(void **state)
{
        struct rig r;

        (void)state;
        begin(&r);
        put(&r, "one/index.mjs", OBJECT("one", "return \"1\";"), 0600);
        rig_start(&r);
        assert_string_equal(run(&r, "one", "{}"), "1");
        put(&r, "one/index.mjs", OBJECT("uno", "return \"1 again\";"), 0600);
        await_tool(&r, "uno", true);
        assert_null(custom_find(r.all, "one"));
        assert_string_equal(run(&r, "uno", "{}"), "1 again");
        rig_close(&r);
}

/* A process that a new one has replaced goes with its last call, also when it dies in it. */
static void a_replaced_process_may_die_in_its_last_call(void **state)
{
        struct rig r;
        char *begun;

        (void)state;
        begin(&r);
        put(&r, "mortal/index.mjs",
            "import { existsSync, writeFileSync } from \"node:fs\";\n" OBJECT(
                    "mortal",
                    "writeFileSync(\"begun\", \"\"); while (!existsSync(\"go\")) await new "
                    "Promise((done) => setTimeout(done, 5)); process.kill(process.pid, 9); await "
                    "new Promise(() => {});"),
            0600);
        rig_start(&r);
        start(&r, "mortal", "{}");
        begun = mem_printf("%s/tools/begun", r.dir);
        timer_start(r.deadline, PATIENCE_MS);
        while (access(begun, F_OK) < 0 && !r.late) {
                loop_step(r.loop, false);
                usleep(1000);
        }
        free(begun);
        put(&r, "second/index.mjs", OBJECT("second", "return \"2\";"), 0600);
        await_tool(&r, "second", true);
        assert_false(r.done);
        put(&r, "go", "", 0600);
        await(&r, &r.done);
        assert_has(json_str(json_array_get(r.result.content, 0), "text", ""),
                   "it was ended by signal 9");
        assert_string_equal(run(&r, "second", "{}"), "2");
        rig_close(&r);
}

static void modules_get_their_own_environment(void **state)
{
        struct rig r;
        const char *text;

        (void)state;
        setenv("ANTHROPIC_API_KEY", "sk-canary-0003", 1);
        setenv("MAIL_PASSWORD", "for-mail-only", 1);
        begin(&r);
        put(&r, "mail/index.mjs", OBJECT("mail", "return JSON.stringify(process.env);"), 0600);
        put(&r, "mail/tool.json", "{ \"env\": { \"PASSWORD\": \"env:MAIL_PASSWORD\" } }", 0600);
        put(&r, "other/index.mjs", OBJECT("other", "return JSON.stringify(process.env);"), 0600);
        rig_start(&r);
        text = run(&r, "mail", "{}");
        assert_has(text, "\"PASSWORD\":\"*************\""); /* it has it, and we hide it */
        assert_null(strstr(text, "canary"));
        text = run(&r, "other", "{}");
        assert_null(strstr(text, "PASSWORD"));
        assert_null(strstr(text, "canary"));
        rig_close(&r);
}

static void typescript_works_or_says_what_it_needs(void **state)
{
        struct rig r;
        char *status;
        bool native = system("node -e 'const m = require(\"node:module\"); "
                             "process.exit(process.features.typescript || m.stripTypeScriptTypes "
                             "? 0 : 1)' >/dev/null 2>&1") == 0;

        (void)state;
        begin(&r);
        put(&r, "typed/index.ts",
            "interface Args { name: string }\n"
            "export default { name: \"typed\", description: \"d\",\n"
            "  async execute(id: string, args: Args): Promise<string> { return `Hi ${args.name}`; "
            "} };\n",
            0600);
        rig_start(&r);
        status = rig_status(&r);
        if (native)
                assert_string_equal(run(&r, "typed", "{\"name\":\"Ann\"}"), "Hi Ann");
        else
                assert_has(status, "typed: index.ts needs Node 22.18 or newer (this is v");
        free(status);
        rig_close(&r);
}

static void without_modules_there_is_no_node(void **state)
{
        struct rig r;
        char *status, *host;

        (void)state;
        rig_open(&r);
        rig_start(&r);
        status = rig_status(&r);
        assert_string_equal(status, "[]");
        free(status);
        host = scratch_path(r.dir, "state/node_host.mjs");
        assert_int_equal(access(host, F_OK), -1);
        free(host);
        rig_close(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(modules_are_objects_or_factories),
                cmocka_unit_test(one_bad_module_hurts_nobody),
                cmocka_unit_test(an_endless_tool_is_ended_alone),
                cmocka_unit_test(stopping_aborts_the_signal),
                cmocka_unit_test(a_change_loads_the_module_anew),
                cmocka_unit_test(a_replaced_process_may_die_in_its_last_call),
                cmocka_unit_test(modules_get_their_own_environment),
                cmocka_unit_test(typescript_works_or_says_what_it_needs),
                cmocka_unit_test(without_modules_there_is_no_node),
        };

        log_setup(LOG_TEXT, LOG_ERROR);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
