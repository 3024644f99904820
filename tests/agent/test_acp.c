/* Agents that speak ACP: what they say becomes answers, progress, events and questions. */
#include <sys/stat.h>

#include "agent/workspace/workspace.h"
#include "base/utf8.h"
#include "child_rig.h"

#define HOST "\"sandbox\": {\"kind\": \"host\"}"

static char *in_sandbox(const char *members)
{
        char *script = realpath("tests/lib/fake_acp.py", NULL);
        char *text = mem_printf("\"sandbox\": {\"kind\": \"bwrap\", \"readOnly\": [\"%s\"]}, %s",
                                script, members);

        free(script);
        return text;
}

/* ---- answers ---- */

static void text_is_streamed_and_answered(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        assert_string_equal(child_rig_ask(r, "echo one two three"), "one two three ");
        assert_string_equal(child_rig_ask(r, "messages"), "one\n\ntwo");
        assert_string_equal(rig_text(r->road, "tokens_in || '/' || tokens_cached || '/' || "
                                              "tokens_out FROM turns WHERE id = 1"),
                            "110/10/20");
        child_rig_free(r);
}

/* It is added up, and lowers budgets. */
static void usage_that_cannot_be_is_not_counted(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_ask(r, "usage {\"inputTokens\": -100, \"outputTokens\": 9223372036854775807, "
                         "\"cachedReadTokens\": 9223372036854775807, "
                         "\"cachedWriteTokens\": 9223372036854775807}\necho x");
        assert_in_range(rig_number(r->road, "tokens_in FROM turns"), 0, INT32_MAX);
        assert_in_range(rig_number(r->road, "tokens_out FROM turns"), 0, INT32_MAX);
        child_rig_free(r);
}

static void the_end_of_a_turn_says_what_stopped_it(void **state)
{
        static const struct {
                const char *text, *answer;
        } rows[] = {
                { "echo x\nstop max_tokens",
                  "x \n\n(The agent stopped: the model's answer reached its length limit.)" },
                { "stop max_turn_requests",
                  "The agent stopped: it asked the model as often as it may in one turn." },
                { "stop refusal", "The agent refused to go on with this." },
                { "stop cancelled", "The agent says that this was cancelled." },
                { "echo x\nstop later_word", "x " },
                { "plan", "The agent has finished without saying anything." },
        };
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                assert_string_equal(child_rig_ask(r, rows[i].text), rows[i].answer);
        child_rig_say(r, "echo so far\nerror out of money");
        rig_until_idle(r->road);
        assert_string_equal(child_rig_notice(r),
                            "so far \n\n(The agent reported an error: Internal error (out of "
                            "money))");
        assert_string_equal(rig_text(r->road, "state FROM turns ORDER BY id DESC LIMIT 1"),
                            "failed");
        assert_int_equal(child_rig_counted(r, "start"), 1);
        child_rig_free(r);
}

static void what_is_not_known_is_skipped(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        assert_string_equal(child_rig_ask(r, "unknown\necho fine"), "fine ");
        assert_string_equal(child_rig_ask(r, "request craft/drainMidTurnQueue {}"),
                            "{\"code\": -32601, \"message\": \"there is no method "
                            "'craft/drainMidTurnQueue'\"}");
        assert_string_equal(child_rig_ask(r, "request elicitation/create {\"message\": \"who?\"}"),
                            "{\"action\": \"decline\"}");
        child_rig_free(r);
}

#define TEN(x) x x x x x x x x x x

static void requests_are_refused_in_any_language(void **state)
{
        char *members = in_sandbox("\"files\": true");
        struct child_rig *r = child_rig_new("", members);
        const char *call, *error;

        (void)state;
        child_rig_ask(r, "request a" TEN(TEN("é")) " {}\n"
                                                   "slot fs/read_text_file {\"path\": \"/a" TEN(
                                                           TEN("é")) TEN(TEN("é")) "\"}");
        assert_int_equal(child_rig_occurs(r, "there is no method 'a"), 1);
        assert_int_equal(child_rig_occurs(r, "there is no file '/a"), 1);
        /* what is cut is not cut within a character */
        child_rig_say(r, "askraw {\"toolCallId\": \"a" TEN(TEN("é")) "\", \"title\": \"x\"}");
        child_rig_decide(r, 1, true, false);
        rig_until_idle(r->road);
        call = rig_text(r->road, "call FROM approvals");
        assert_true(utf8_valid(call, strlen(call)));
        child_rig_ask(r, "error a" TEN(TEN("é")) TEN(TEN("é")) TEN(TEN("é")));
        error = rig_text(r->road, "error FROM turns WHERE state = 'failed'");
        assert_non_null(strstr(error, "Internal error"));
        assert_true(utf8_valid(error, strlen(error)));
        child_rig_free(r);
        free(members);
}

/* ---- tools ---- */

static void a_tool_call_is_journaled_once(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        json_t *end;

        (void)state;
        assert_string_equal(child_rig_ask(r, "tool make test"), "It worked.");
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.tool_execution_start'"),
                         1);
        assert_string_equal(
                rig_members(r->road,
                            "payload FROM journal WHERE type = 'agent.tool_execution_start'",
                            "title"),
                "run make test");
        end = json_read(rig_text(r->road, "payload FROM journal WHERE type = "
                                          "'agent.tool_execution_end'"),
                        strlen(rig_text(r->road, "payload FROM journal WHERE type = "
                                                 "'agent.tool_execution_end'")),
                        NULL);
        assert_string_equal(json_str(end, "toolName", ""), "execute");
        assert_false(json_flag(end, "isError", true));
        assert_string_equal(
                json_str(json_array_get(json_object_get(json_object_get(end, "result"), "content"),
                                        0),
                         "text", ""),
                "output of make test");
        json_decref(end);
        child_rig_free(r);
}

static void a_call_whose_arguments_grow_ends_with_all_of_them(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_ask(r, "grows make test\ntool make all\necho x");
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.tool_execution_start'"),
                         2);
        assert_string_equal(rig_members(r->road,
                                        "json_extract(payload, '$.args') FROM journal WHERE "
                                        "type = 'agent.tool_execution_end' AND payload LIKE "
                                        "'%\"args\"%'",
                                        "command"),
                            "make test");
        child_rig_free(r);
}

static void failed_and_unfinished_calls_end(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_ask(r, "fails\nunfinished\necho x");
        assert_string_equal(rig_members(r->road,
                                        "payload FROM journal WHERE type = "
                                        "'agent.tool_execution_end'",
                                        "title"),
                            "break, endless");
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.tool_execution_start'"),
                         2);
        child_rig_free(r);
}

static void calls_are_shown_in_the_thread_of_the_answer(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        const char *shown;

        (void)state;
        rig_say(r->road, "work", "c", "steps", "tool make test", NULL);
        rig_until_idle(r->road);
        shown = rig_text(r->road, "payload FROM deliveries WHERE payload LIKE '%\"detail\":true%'");
        assert_non_null(strstr(shown, "**execute** run make test"));
        assert_non_null(strstr(shown, "output of make test"));
        child_rig_free(r);
}

/* ---- questions ---- */

static void a_person_answers_a_permission(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_say(r, "ask rm -rf build\nasktext ls");
        child_rig_decide(r, 1, true, false);
        child_rig_decide(r, 2, false, false);
        rig_until_idle(r->road);
        assert_string_equal(child_rig_answers(r), "selected once. selected no. ");
        assert_string_equal(rig_text(r->road, "tool || ': ' || detail FROM approvals WHERE id = "
                                              "(SELECT min(id) FROM approvals)"),
                            "bash: ```\nrm -rf build\n```");
        child_rig_free(r);
}

static void always_is_our_rule_and_not_the_agents(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_say(r, "ask git status");
        child_rig_decide(r, 1, true, true);
        rig_until_idle(r->road);
        assert_string_equal(child_rig_ask(r, "ask git status --short"), "selected once. ");
        assert_int_equal(rig_count(r->road, "approvals"), 1);
        child_rig_restart(r);
        assert_string_equal(child_rig_ask(r, "ask git status"), "selected once. ");
        assert_int_equal(rig_count(r->road, "approvals"), 1);
        /* an agent that offers nothing else asks admins */
        child_rig_say(r, "askalways make");
        child_rig_decide(r, 2, true, false);
        rig_until_idle(r->road);
        assert_string_equal(rig_list(r->road, "approvers FROM approvals ORDER BY id"),
                            "asker, admins");
        child_rig_free(r);
}

/* It would never ask again, whatever rules say now. */
static void an_always_of_the_agent_needs_an_admin(void **state)
{
        struct child_rig *r = child_rig_new(
                "",
                HOST ", \"policy\": {\"a\": {\"decide\": \"allow\", \"command\": \"make all\"}, "
                     "\"b\": {\"decide\": \"ask\", \"approvers\": \"asker\", \"always\": true, "
                     "\"command\": \"git *\"}, "
                     "\"c\": {\"decide\": \"deny\", \"command\": \"rm *\"}}");

        (void)state;
        assert_string_equal(child_rig_ask(r, "askalways rm x"), "selected no. ");
        child_rig_say(r, "askalways make all\naskalways git status");
        child_rig_decide(r, 1, true, false);
        child_rig_decide(r, 2, true, false);
        rig_until_idle(r->road);
        assert_string_equal(rig_list(r->road, "approvers FROM approvals ORDER BY id"),
                            "admins, admins");
        assert_int_equal(rig_count(r->road, "approvals WHERE rule IS NOT NULL"), 0);
        child_rig_free(r);
}

static void the_policy_answers_first(void **state)
{
        struct child_rig *r = child_rig_new(
                "",
                HOST ", \"policy\": {\"tests\": {\"decide\": \"allow\", \"command\": \"make *\"},"
                     " \"keys\": {\"decide\": \"deny\", \"path\": \"/etc/**\"}}");

        (void)state;
        assert_string_equal(child_rig_ask(r, "ask make test"), "selected once. ");
        assert_string_equal(child_rig_ask(r, "askedit /etc/host.key"), "no");
        assert_int_equal(rig_count(r->road, "approvals"), 0);
        child_rig_free(r);
}

static void a_change_is_shown_as_it_would_be(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        const char *detail;

        (void)state;
        child_rig_say(r, "askedit src/a.c");
        child_rig_decide(r, 1, true, false);
        rig_until_idle(r->road);
        detail = rig_text(r->road, "detail FROM approvals");
        assert_non_null(strstr(detail, "\"path\": \"src/a.c\""));
        assert_non_null(strstr(detail, "\"newText\": \"b\""));
        child_rig_free(r);
}

static void a_change_of_several_files_is_judged_and_shown_whole(void **state)
{
#define DIFF(path, text) "{\"type\": \"diff\", \"path\": \"" path "\", \"newText\": \"" text "\"}"
#define EDIT(members)    "askraw {\"kind\": \"edit\", " members "}"
        static const struct {
                const char *text, *answer; /* NULL: it asks */
        } rows[] = {
                { EDIT("\"content\": [" DIFF("src/a", "one") ", " DIFF("src/b", "two") "]"),
                  "once " },
                { EDIT("\"locations\": [{\"path\": \"src/a\"}, {\"path\": \"/etc/x\"}]"), "no " },
                { EDIT("\"content\": [" DIFF("src/a", "one") ", " DIFF("b", "two") "]") },
                { EDIT("\"rawInput\": {\"file_path\": \"src/a\"}, \"content\": [" DIFF(
                        "b", "two") "]") },
                { EDIT("\"rawInput\": {\"file_path\": \"src/a\", \"text\": \"two\"}, "
                       "\"locations\": [{\"path\": \"src/a\"}, {\"path\": \"b\"}]") },
        };
#undef EDIT
#undef DIFF
        struct child_rig *r = child_rig_new(
                "", HOST ", \"policy\": {\"a\": {\"decide\": \"allow\", \"path\": \"src/**\"}, "
                         "\"b\": {\"decide\": \"deny\", \"path\": \"/etc/**\"}}");
        unsigned asked = 0;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const char *detail;

                if (rows[i].answer) {
                        assert_string_equal(child_rig_ask(r, rows[i].text), rows[i].answer);
                        continue;
                }
                child_rig_say(r, rows[i].text);
                child_rig_decide(r, ++asked, true, false);
                rig_until_idle(r->road);
                detail = rig_text(r->road, "detail FROM approvals ORDER BY id DESC");
                assert_non_null(strstr(detail, "src/a"));
                assert_non_null(strstr(detail, "\"b\""));
                assert_non_null(strstr(detail, "two"));
        }
        assert_int_equal(rig_count(r->road, "approvals"), asked);
        child_rig_free(r);
}

/* ["bash", "-lc", "make"] runs make; another program may do anything with its words. */
static void words_are_a_command_of_their_program(void **state)
{
        static const struct {
                const char *words, *shown; /* NULL: it is allowed */
        } rows[] = {
                { "[\"bash\", \"-lc\", \"make all\"]", NULL },
                { "[\"/bin/sh\", \"-c\", \"make all\"]", NULL },
                { "[\"make\", \"all\"]", NULL },
                { "[\"anything\", \"-c\", \"make all\"]", "'anything' '-c' 'make all'" },
                { "[\"/tmp/bash\", \"-c\", \"make all\"]", "'/tmp/bash' '-c' 'make all'" },
                { "[\"bash\", \"-c\", \"make all; $0\", \"x\"]", "'bash' '-c' 'make all; $0' 'x'" },
        };
        struct child_rig *r =
                child_rig_new("", HOST ", \"policy\": {\"a\": {\"decide\": \"allow\", "
                                       "\"command\": \"make all\"}}");
        unsigned asked = 0;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *text =
                        mem_printf("askraw {\"kind\": \"execute\", \"rawInput\": {\"command\": "
                                   "%s}}",
                                   rows[i].words);

                child_rig_say(r, text);
                if (rows[i].shown)
                        child_rig_decide(r, ++asked, true, false);
                rig_until_idle(r->road);
                if (rows[i].shown)
                        assert_non_null(
                                strstr(rig_text(r->road, "detail FROM approvals ORDER BY id DESC"),
                                       rows[i].shown));
                free(text);
        }
        assert_int_equal(rig_count(r->road, "approvals"), asked);
        child_rig_free(r);
}

static void an_open_question_is_cancelled_with_its_turn(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_say(r, "ask make");
        rig_until_count(r->road, "approvals WHERE state = 'open'", 1);
        child_rig_stop(r);
        assert_int_equal(rig_count(r->road, "approvals WHERE state = 'cancelled'"), 1);
        /* the agent had its answer, so it goes on */
        child_rig_say(r, "ask make");
        child_rig_decide(r, 2, true, false);
        rig_until_idle(r->road);
        assert_string_equal(child_rig_answers(r), "selected once. ");
        assert_int_equal(child_rig_counted(r, "start"), 1);
        child_rig_free(r);
}

static void a_question_that_is_taken_back_is_refused(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        assert_string_equal(child_rig_ask(r, "withdraw make"), "-32800");
        assert_int_equal(rig_count(r->road, "approvals WHERE state = 'cancelled'"), 1);
        child_rig_free(r);
}

static void nobody_is_asked_twice_after_a_restart(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_say(r, "ask make");
        rig_until_count(r->road, "approvals WHERE state = 'open'", 1);
        child_rig_restart(r);
        rig_until_idle(r->road);
        assert_int_equal(rig_count(r->road, "approvals"), 1);
        assert_int_equal(rig_count(r->road, "approvals WHERE state = 'cancelled'"), 1);
        assert_int_equal(child_rig_counted(r, "prompt"), 1);
        child_rig_free(r);
}

/* ---- the start ---- */

static void a_handshake_that_fails_says_why(void **state)
{
        static const struct {
                const char *options, *members, *why;
        } rows[] = {
                { "--protocol 2", HOST, "speaks version 2" },
                { "--login", HOST, "authMethod to one of \"token\"" },
                { "--login", HOST ", \"authMethod\": \"card\"", "authenticate: no such method" },
                { "--modes", HOST ", \"mode\": \"yolo\"", "no mode 'yolo', but \"ask\", \"code\"" },
                { "--modes", HOST ", \"model\": \"huge\"", "no model 'huge', but \"small\"" },
                { "", HOST ", \"model\": \"large\"", "lets nobody choose its model" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct child_rig *r = child_rig_new(rows[i].options, rows[i].members);
                const char *error;

                child_rig_say(r, "echo x");
                rig_until_idle(r->road);
                error = rig_text(r->road, "error FROM turns");
                if (!strstr(error, rows[i].why))
                        fail_msg("%s: %s", rows[i].why, error);
                assert_int_equal(child_rig_counted(r, "prompt"), 0);
                child_rig_free(r);
        }
}

static void it_logs_in_and_takes_mode_and_model(void **state)
{
        struct child_rig *r = child_rig_new("--login --modes",
                                            HOST ", \"authMethod\": \"token\", \"mode\": \"code\", "
                                                 "\"model\": \"large\"");

        (void)state;
        assert_non_null(strstr(child_rig_ask(r, "where"), "mode=code model=large"));
        child_rig_restart(r);
        assert_non_null(strstr(child_rig_ask(r, "where"), "mode=code model=large"));
        child_rig_free(r);
}

static void sessions_are_resumed_as_the_agent_can(void **state)
{
        static const struct {
                const char *options, *counted;
        } rows[] = {
                { "", "session/load" },
                { "--resume", "session/resume" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct child_rig *r = child_rig_new(rows[i].options, NULL);

                child_rig_ask(r, "echo before");
                child_rig_restart(r);
                assert_string_equal(child_rig_ask(r, "memory"), "echo before | memory");
                assert_int_equal(child_rig_counted(r, rows[i].counted), 1);
                child_rig_free(r);
        }
}

static void one_that_forgot_the_session_begins_another(void **state)
{
        static const char *const options[] = { "--load-fails", "--no-load" };

        (void)state;
        for (size_t i = 0; i < COUNT(options); i++) {
                struct child_rig *r = child_rig_new(options[i], NULL);

                child_rig_ask(r, "echo before");
                child_rig_restart(r);
                assert_string_equal(child_rig_ask(r, "memory"), "memory");
                assert_int_equal(child_rig_counted(r, "new"), 2);
                child_rig_free(r);
        }
}

static void after_an_error_the_session_goes_on_in_another_process(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_ask(r, "echo before");
        child_rig_ask(r, "breaks");
        assert_string_equal(child_rig_notice(r), "The agent reported an error: Internal error (it "
                                                 "exited unexpectedly)");
        assert_string_equal(child_rig_ask(r, "memory"), "echo before | breaks | memory");
        assert_int_equal(child_rig_counted(r, "start"), 2);
        child_rig_free(r);
}

/* ---- files and commands that the agent requests ---- */

#define WRITE(path, text) \
        "slot fs/write_text_file {\"path\": \"@/" path "\", \"content\": \"" text "\"}\n"
#define READ(path, more) "slot fs/read_text_file {\"path\": \"" path "\"" more "}\n"

/* Whatever the daemon may do itself. */
static void files_are_read_and_written_as_its_sandbox_can(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        char *members = child_rig_fill(r, "\"sandbox\": {\"readOnly\": [\"$\", \"@/shared\"]}, "
                                          "\"cwd\": \"@/project\", \"files\": true");
        char *command = child_rig_fill(r, "cd @ && mkdir project shared && chmod 777 project && "
                                          "echo hidden >config && echo shared >shared/a && "
                                          "echo secret >project/secret && chmod 0 project/secret");
        char *text = child_rig_fill(r, WRITE("project/sub/a b", "one\\ntwo\\nthree\\nfour")
                                               READ("@/project/sub/a b", "")
                                                       READ("@/project/sub/a b", ", \"line\": 2, "
                                                                                 "\"limit\": 2")
                                                               READ("@/shared/a", ""));
        char *refused = child_rig_fill(
                r, "shell ln -s @/config link; echo\n" READ("@/project/secret", "")
                           READ("@/project/link", "") READ("@/config", "") READ("@/project", "")
                                   READ("relative", "") WRITE("shared/a", "x")
                                           WRITE("project", "x") "slot fs/read_text_file {}");
        char *written = child_rig_fill(r, "@/project/sub/a b");
        struct stat st;

        (void)state;
        assert_int_equal(system(command), 0);
        r->members = members;
        child_rig_restart(r);
        assert_string_equal(child_rig_ask(r, text),
                            "{}{\"content\": \"one\\ntwo\\nthree\\nfour\"}"
                            "{\"content\": \"two\\nthree\\n\"}{\"content\": \"shared\\n\"}");
        assert_int_equal(stat(written, &st), 0);
        assert_int_equal(st.st_uid, workspace_uid());
        child_rig_ask(r, refused);
        assert_int_equal(child_rig_occurs(r, "\"code\": -32"), 8);
        assert_int_equal(child_rig_occurs(r, "\"code\": -32002"), 2); /* the link, @/config */
        assert_int_equal(child_rig_occurs(r, "secret'"), 1);
        assert_int_equal(child_rig_occurs(r, "hidden"), 0);
        free(text);
        free(refused);
        free(written);
        free(command);
        child_rig_free(r);
        free(members);
}

static void a_file_that_is_too_large_is_not_read(void **state)
{
        char *members = in_sandbox("\"files\": true");
        struct child_rig *r = child_rig_new("", members);
        char *text =
                child_rig_fill(r, "shell head -c 5000000 /dev/zero | tr '\\0' x >big; echo\n" READ(
                                          "@/workspace/agents/steps/conv-1/work/big", ""));

        (void)state;
        assert_non_null(strstr(child_rig_ask(r, text), "is larger than 4 MB"));
        free(text);
        child_rig_free(r);
        free(members);
}

static void commands_run_beside_it(void **state)
{
        struct child_rig *r = child_rig_new("", HOST ", \"terminals\": true");

        (void)state;
        assert_string_equal(child_rig_ask(r, "terminal pwd | grep -o conv-1; exit 3"),
                            "conv-1\n|3|False");
        child_rig_ask(r, "slot terminal/create {\"command\": \"true\", \"cwd\": \"/nonexistent\"}\n"
                         "slot terminal/wait_for_exit {\"terminalId\": \"term-2\"}\n"
                         "slot terminal/output {\"terminalId\": \"term-2\"}");
        assert_int_equal(child_rig_occurs(r, "No such file or directory"), 1);
        assert_string_equal(child_rig_ask(r, "prints 6000000"), "1048576 True 3");
        assert_string_equal(child_rig_ask(r, "slot terminal/output {\"terminalId\": \"term-9\"}"),
                            "{\"code\": -32002, \"message\": \"there is no such terminal\"}");
        child_rig_ask(r, "limited 100\nkilled");
        assert_string_equal(child_rig_answers(r) + strlen(child_rig_answers(r)) -
                                    strlen("100 True. killed by 15"),
                            "100 True. killed by 15");
        child_rig_free(r);
}

static void what_is_not_configured_is_refused(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_ask(r, "slot fs/read_text_file {\"path\": \"/etc/passwd\"}\n"
                         "slot fs/write_text_file {\"path\": \"/tmp/x\", \"content\": \"\"}\n"
                         "terminal true");
        assert_int_equal(child_rig_occurs(r, "-32601"), 3);
        child_rig_free(r);
}

static void commands_end_with_the_agent(void **state)
{
        struct child_rig *r = child_rig_new("", HOST ", \"terminals\": true");
        pid_t left;

        (void)state;
        child_rig_say(r, "leaves 1000\nhang");
        child_rig_until_counted(r, "left", 1);
        left = child_rig_pid(r);
        child_rig_stop(r);
        assert_int_equal(kill(left, 0), 0); /* the agent may still want it */
        child_rig_ask(r, "die 3");
        child_rig_until_gone(r, left);
        child_rig_free(r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(text_is_streamed_and_answered),
                cmocka_unit_test(usage_that_cannot_be_is_not_counted),
                cmocka_unit_test(the_end_of_a_turn_says_what_stopped_it),
                cmocka_unit_test(what_is_not_known_is_skipped),
                cmocka_unit_test(requests_are_refused_in_any_language),
                cmocka_unit_test(a_tool_call_is_journaled_once),
                cmocka_unit_test(a_call_whose_arguments_grow_ends_with_all_of_them),
                cmocka_unit_test(failed_and_unfinished_calls_end),
                cmocka_unit_test(calls_are_shown_in_the_thread_of_the_answer),
                cmocka_unit_test(a_person_answers_a_permission),
                cmocka_unit_test(always_is_our_rule_and_not_the_agents),
                cmocka_unit_test(the_policy_answers_first),
                cmocka_unit_test(a_change_is_shown_as_it_would_be),
                cmocka_unit_test(a_change_of_several_files_is_judged_and_shown_whole),
                cmocka_unit_test(words_are_a_command_of_their_program),
                cmocka_unit_test(an_always_of_the_agent_needs_an_admin),
                cmocka_unit_test(an_open_question_is_cancelled_with_its_turn),
                cmocka_unit_test(a_question_that_is_taken_back_is_refused),
                cmocka_unit_test(nobody_is_asked_twice_after_a_restart),
                cmocka_unit_test(a_handshake_that_fails_says_why),
                cmocka_unit_test(it_logs_in_and_takes_mode_and_model),
                cmocka_unit_test(sessions_are_resumed_as_the_agent_can),
                cmocka_unit_test(one_that_forgot_the_session_begins_another),
                cmocka_unit_test(after_an_error_the_session_goes_on_in_another_process),
                cmocka_unit_test(files_are_read_and_written_as_its_sandbox_can),
                cmocka_unit_test(a_file_that_is_too_large_is_not_read),
                cmocka_unit_test(commands_run_beside_it),
                cmocka_unit_test(what_is_not_configured_is_refused),
                cmocka_unit_test(commands_end_with_the_agent),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
