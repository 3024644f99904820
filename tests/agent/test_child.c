/* Agents that are started programs: sessions, crashes, limits, and what is left of processes. */
#include <errno.h>
#include <sys/stat.h>

#include "base/file.h"
#include "child_rig.h"

static void on_retried(void *arg, const struct error *err)
{
        assert_null(err);
        *(bool *)arg = true;
}

/* ---- sessions ---- */

static void a_process_stays_for_further_turns(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        assert_string_equal(child_rig_ask(r, "echo one two"), "one two ");
        assert_string_equal(child_rig_ask(r, "memory"), "echo one two | memory");
        assert_int_equal(child_rig_counted(r, "start"), 1);
        child_rig_free(r);
}

static void a_session_is_resumed_after_a_restart(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_ask(r, "echo before");
        child_rig_restart(r);
        /* what it replays is no answer */
        assert_string_equal(child_rig_ask(r, "memory"), "echo before | memory");
        assert_int_equal(child_rig_counted(r, "start"), 2);
        assert_int_equal(child_rig_counted(r, "new"), 1);
        assert_int_equal(child_rig_counted(r, "session/load"), 1);
        child_rig_free(r);
}

static void a_new_conversation_keeps_its_folder(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_ask(r, "shell touch kept");
        child_rig_say(r, "/new");
        rig_until_count(r->road, "trigger_log", 2);
        assert_string_equal(child_rig_ask(r, "memory\nshell ls"), "memory\nshell lskept");
        assert_int_equal(child_rig_counted(r, "new"), 2);
        child_rig_free(r);
}

static void conversations_have_sessions_and_folders_of_their_own(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        struct stat st;
        char *path;

        (void)state;
        child_rig_say_in(r, "a", "echo in a");
        rig_until_idle(r->road);
        child_rig_say_in(r, "b", "memory");
        rig_until_idle(r->road);
        assert_string_equal(child_rig_answers(r), "in a , memory");
        path = mem_printf("%s/workspace/agents/steps/conv-1/work/.fake_acp.json", r->road->dir);
        assert_int_equal(stat(path, &st), 0);
        free(path);
        child_rig_free(r);
}

static void decide_by_channel(struct rig *g, const struct incoming *in, struct decision *out)
{
        (void)g;
        out->rule = in->channel[0] == 'c' ? "deploy" : "build and test";
}

static void conversations_of_a_rule_may_share_a_folder(void **state)
{
        static const char *const rows[][2] = { { "a", "shell touch made; basename $PWD" },
                                               { "b", "shell basename $PWD; ls made" },
                                               { "c", "shell basename $PWD; ls made" } };
        struct child_rig *r =
                child_rig_new("", "\"sandbox\": {\"kind\": \"host\"}, \"cwd\": \"rule\"");
        char *build = agent_folder_name("build and test", false), *expected;

        (void)state;
        assert_int_equal(strncmp(build, "build-and-test-", 15), 0);
        r->road->decides = decide_by_channel;
        for (size_t i = 0; i < COUNT(rows); i++) {
                child_rig_say_in(r, rows[i][0], rows[i][1]);
                rig_until_idle(r->road);
        }
        expected = mem_printf("rule-%s, rule-%s\nmade, rule-deploy\n"
                              "ls: cannot access 'made': No such file or directory",
                              build, build);
        assert_string_equal(child_rig_answers(r), expected);
        assert_int_equal(child_rig_counted(r, "new"), 3); /* their sessions are their own */
        child_rig_free(r);
        free(expected);
        free(build);
}

static void all_conversations_may_share_a_given_folder(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        char *members =
                mem_printf("\"sandbox\": {\"kind\": \"host\"}, \"cwd\": \"%s\"", r->road->dir);

        (void)state;
        r->members = members;
        child_rig_restart(r);
        child_rig_say_in(r, "a", "shell echo 1 >made");
        rig_until_idle(r->road);
        child_rig_say_in(r, "b", "shell cat made; ls -d workspace");
        rig_until_idle(r->road);
        assert_non_null(strstr(child_rig_answers(r), "1\nworkspace"));
        assert_int_equal(child_rig_counted(r, "new"), 2);
        child_rig_free(r);
        free(members);
}

static void a_process_that_is_idle_ends_and_resumes(void **state)
{
        struct child_rig *r =
                child_rig_new("", "\"sandbox\": {\"kind\": \"host\"}, \"idleMinutes\": 0.001");
        pid_t pid;

        (void)state;
        child_rig_ask(r, "echo before");
        pid = child_rig_pid(r);
        child_rig_until_gone(r, pid);
        assert_string_equal(child_rig_ask(r, "memory"), "echo before | memory");
        assert_int_equal(child_rig_counted(r, "start"), 2);
        child_rig_free(r);
}

static void only_so_many_run_and_the_idle_one_makes_room(void **state)
{
        struct child_rig *r =
                child_rig_new("", "\"sandbox\": {\"kind\": \"host\"}, \"processes\": 1");

        (void)state;
        child_rig_say_in(r, "a", "sleep 0.2\necho in a");
        child_rig_say_in(r, "b", "echo in b");
        rig_until_idle(r->road);
        child_rig_say_in(r, "a", "memory");
        rig_until_idle(r->road);
        assert_string_equal(child_rig_answers(r), "in a , in b , sleep 0.2\necho in a | memory");
        assert_int_equal(child_rig_counted(r, "start"), 3);
        child_rig_free(r);
}

/* ---- crashes ---- */

static void an_interrupted_turn_is_not_given_twice(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        pid_t pid;

        (void)state;
        child_rig_say(r, "hang");
        child_rig_until_counted(r, "prompt hang", 1);
        pid = child_rig_pid(r);
        child_rig_restart(r);
        rig_until_idle(r->road);
        assert_non_null(strstr(child_rig_notice(r), "I was interrupted"));
        assert_int_equal(child_rig_counted(r, "prompt hang"), 1);
        child_rig_until_gone(r, pid);
        assert_string_equal(child_rig_ask(r, "memory"), "hang | memory");
        child_rig_free(r);
}

/* Its end is not stored yet, and the next turn of the session is given already. */
static void a_turn_whose_end_is_not_stored_is_not_given_twice(void **state)
{
        struct child_rig *r =
                child_rig_new("", "\"sandbox\": {\"kind\": \"host\"}, \"session\": \"perUser\"");

        (void)state;
        rows_refuse_update(r->road->store, "turns WHEN NEW.state = 'done'");
        child_rig_say_in(r, "a", "echo one");
        child_rig_until_counted(r, "prompt echo one", 1);
        child_rig_say_in(r, "b", "hang");
        child_rig_until_counted(r, "prompt hang", 1);
        child_rig_restart(r);
        rows_accept(r->road->store);
        rig_until_idle(r->road);
        assert_int_equal(child_rig_counted(r, "prompt echo one"), 1);
        assert_int_equal(child_rig_counted(r, "prompt hang"), 1);
        assert_int_equal(rig_count(r->road, "turns WHERE state = 'failed'"), 2);
        child_rig_free(r);
}

static void a_turn_that_waited_goes_on_after_a_restart(void **state)
{
        struct child_rig *r =
                child_rig_new("", "\"sandbox\": {\"kind\": \"host\"}, \"processes\": 1");

        (void)state;
        child_rig_say_in(r, "a", "hang");
        child_rig_until_counted(r, "prompt hang", 1);
        child_rig_say_in(r, "b", "echo later");
        rig_until_count(r->road, "turns WHERE state = 'running'", 2);
        child_rig_restart(r);
        rig_until_idle(r->road);
        assert_string_equal(child_rig_answers(r), "later ");
        child_rig_free(r);
}

static void a_process_that_dies_ends_its_turn_with_its_last_words(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_ask(r, "echo before");
        child_rig_say(r, "die 3");
        rig_until_idle(r->road);
        assert_non_null(strstr(child_rig_notice(r), "exit code 3: out of cheese"));
        assert_string_equal(child_rig_ask(r, "memory"), "echo before | die 3 | memory");
        child_rig_say(r, "kill");
        rig_until_idle(r->road);
        assert_non_null(strstr(child_rig_notice(r), "signal 9"));
        assert_int_equal(rig_number(r->road, "count(*) FROM turns WHERE state = 'failed'"), 2);
        child_rig_free(r);
}

static void what_it_left_running_ends_with_it(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        pid_t orphan;

        (void)state;
        child_rig_say(r, "orphan 1000\ndie 3");
        child_rig_until_counted(r, "orphan", 1);
        orphan = child_rig_pid(r);
        rig_until_idle(r->road);
        child_rig_until_gone(r, orphan);
        child_rig_free(r);
}

static void one_that_cannot_start_says_why(void **state)
{
        static const struct {
                const char *options, *members, *why;
        } rows[] = {
                { "--exit 7", NULL, "exit code 7: cannot start today" },
                { "--mute", "\"sandbox\": {\"kind\": \"host\"}, \"startTimeoutMs\": 500",
                  "not ready within 500 ms" },
                { "", "\"sandbox\": {\"kind\": \"host\"}, \"cwd\": \"/nonexistent/folder\"",
                  "/nonexistent/folder" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct child_rig *r = child_rig_new(rows[i].options, rows[i].members);

                child_rig_say(r, "echo x");
                rig_until_idle(r->road);
                if (!strstr(child_rig_notice(r), rows[i].why))
                        fail_msg("%s", child_rig_notice(r));
                child_rig_free(r);
        }
}

static void one_that_ends_when_it_is_ready_is_started_twice(void **state)
{
        struct child_rig *r = child_rig_new("--leaves", NULL);
        char *go = mem_printf("%s.go", r->state);

        (void)state;
        child_rig_say(r, "echo x");
        for (unsigned n = 1; n <= 2; n++) {
                child_rig_until_counted(r, "leaves", n);
                /* it ends while that it is given the turn is being stored */
                rows_refuse_update(r->road->store, "turns WHEN NEW.given_to IS NOT NULL");
                assert_int_equal(file_replace(go, ""), 0);
                child_rig_until_ended(r);
                unlink(go);
                rows_accept(r->road->store);
        }
        rig_until_idle(r->road);
        assert_non_null(strstr(child_rig_notice(r), "could not be started: it ended with exit "
                                                    "code 4"));
        assert_int_equal(child_rig_counted(r, "start"), 2);
        child_rig_free(r);
        free(go);
}

static void a_program_that_is_missing_is_known_before_a_turn(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        struct agent_conf *conf;
        struct error err = { 0 };

        (void)state;
        conf = agent_conf_make("steps", "acp",
                               "{\"command\": \"no-such-agent\", \"sandbox\": {\"kind\": "
                               "\"bwrap\"}}",
                               &err);
        assert_int_equal(agents_apply(r->agents, &conf, 1, &err), 0);
        assert_non_null(strstr(child_rig_health(r), "no program 'no-such-agent' in the sandbox"));
        child_rig_free(r);
}

static void a_failed_turn_is_given_again_when_an_operator_retries_it(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        bool done = false;

        (void)state;
        child_rig_ask(r, "die 3");
        turn_retry(r->road->road, 1, on_retried, &done);
        child_rig_until_counted(r, "prompt die 3", 2);
        rig_until_idle(r->road);
        assert_true(done);
        child_rig_free(r);
}

static void settings_that_cannot_work_are_refused(void **state)
{
        static const char *const rows[][2] = {
                { "\"command\": []", "command: is empty" },
                { "\"cwd\": \"here\"", "cwd: 'here' is neither" },
                { "\"sandbox\": {\"kind\": \"host\", \"hosts\": [\"example.org\"]}",
                  "sandbox.kind: 'host' has no limits" },
                { "\"sandbox\": {\"readOnly\": [\"etc\"]}", "'etc' is not an absolute path" },
                { "\"sandbox\": {\"kind\": \"host\", \"diskMb\": 1}",
                  "sandbox.diskMb: needs a sandbox" },
                { "\"cwd\": \"/srv\", \"sandbox\": {\"diskMb\": 1}",
                  "sandbox.diskMb: is the size of a folder that Dragoman makes" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *json = mem_printf("{%s}", rows[i][0]);
                struct error err = { 0 };

                assert_null(agent_conf_make("x", "pi", json, &err));
                if (!strstr(err.text, rows[i][1]))
                        fail_msg("%s", err.text);
                free(json);
        }
}

/* ---- stopping ---- */

static void a_stopped_turn_ends_and_the_process_goes_on(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_say(r, "echo a\nhang");
        child_rig_until_counted(r, "prompt", 1);
        child_rig_stop(r);
        assert_string_equal(child_rig_ask(r, "echo next"), "next ");
        assert_int_equal(child_rig_counted(r, "start"), 1);
        assert_int_equal(child_rig_counted(r, "cancel"), 1);
        child_rig_free(r);
}

static void one_that_does_not_stop_is_killed(void **state)
{
        struct child_rig *r =
                child_rig_new("", "\"sandbox\": {\"kind\": \"host\"}, \"cancelMs\": 300");
        pid_t pid;

        (void)state;
        child_rig_say(r, "deaf");
        child_rig_until_counted(r, "prompt", 1);
        pid = child_rig_pid(r);
        child_rig_stop(r);
        assert_string_equal(child_rig_ask(r, "echo next"), "next ");
        assert_int_equal(child_rig_counted(r, "start"), 2);
        child_rig_until_gone(r, pid);
        child_rig_free(r);
}

static void one_that_ignores_everything_is_killed_when_idle(void **state)
{
        struct child_rig *r = child_rig_new(
                "--stays", "\"sandbox\": {\"kind\": \"host\"}, \"idleMinutes\": 0.001");

        (void)state;
        child_rig_ask(r, "echo x");
        child_rig_until_gone(r, child_rig_pid(r));
        child_rig_free(r);
}

static void what_comes_after_the_end_of_a_turn_is_dropped(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);

        (void)state;
        child_rig_ask(r, "late\necho one");
        assert_string_equal(child_rig_ask(r, "echo two"), "two ");
        child_rig_free(r);
}

static void silence_ends_a_turn(void **state)
{
        struct child_rig *r =
                child_rig_new("", "\"sandbox\": {\"kind\": \"host\"}, \"silenceSeconds\": 1");

        (void)state;
        child_rig_say(r, "hang");
        rig_until_idle(r->road);
        assert_non_null(strstr(child_rig_notice(r), "said nothing for 1 seconds"));
        assert_string_equal(child_rig_ask(r, "echo next"), "next ");
        assert_int_equal(child_rig_counted(r, "start"), 1);
        child_rig_free(r);
}

/* ---- limits ---- */

/* Its own limits, and how long others work, say how long it may take. */
static void the_deadline_of_turns_does_not_count(void **state)
{
        struct child_rig *r =
                child_rig_new("", "\"sandbox\": {\"kind\": \"host\"}, \"processes\": 1");

        (void)state;
        r->road->limits.turn_seconds = 1;
        road_set_limits(r->road->road, &r->road->limits);
        child_rig_say_in(r, "a", "sleep 1.5\necho in a");
        child_rig_until_counted(r, "prompt", 1);
        child_rig_say_in(r, "b", "echo in b");
        rig_until_idle(r->road);
        assert_string_equal(child_rig_answers(r), "in a , in b ");
        child_rig_free(r);
}

static void limits_end_it(void **state)
{
        static const struct {
                const char *members, *text, *why;
        } rows[] = {
                { "\"lineKb\": 64", "huge 100000", "a line over 64 KiB" },
                { "\"outputMb\": 1", "flood 30", "outputMb" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *members =
                        mem_printf("\"sandbox\": {\"kind\": \"host\"}, %s", rows[i].members);
                struct child_rig *r = child_rig_new("", members);

                child_rig_say(r, rows[i].text);
                rig_until_idle(r->road);
                if (!strstr(child_rig_notice(r), rows[i].why))
                        fail_msg("%s", child_rig_notice(r));
                assert_string_equal(child_rig_ask(r, "echo next"), "next ");
                child_rig_free(r);
                free(members);
        }
}

static void odd_lines_are_skipped_and_long_ones_read(void **state)
{
        struct child_rig *r = child_rig_new("--banner", NULL);

        (void)state;
        assert_string_equal(child_rig_ask(r, "garbage\npartial slowly\nhuge 3000000\necho end"),
                            "bad \xef\xbf\xbd byteslowlyend ");
        child_rig_free(r);
}

static void one_that_takes_too_much_memory_is_ended(void **state)
{
        struct child_rig *r =
                child_rig_new("", "\"sandbox\": {\"kind\": \"host\", \"totalMb\": 64}");

        (void)state;
        child_rig_say(r, "memoryhog 200");
        rig_until_idle(r->road);
        assert_non_null(strstr(child_rig_notice(r), "more than 64 MiB of memory"));
        child_rig_free(r);
}

static void one_that_fills_its_folder_is_ended(void **state)
{
        char *script = realpath("tests/lib/fake_acp.py", NULL);
        char *members = mem_printf("\"sandbox\": {\"readOnly\": [\"%s\"], \"diskMb\": 1}", script);
        struct child_rig *r = child_rig_new("", members);

        (void)state;
        child_rig_say(r, "shell head -c 3M /dev/urandom >big\nhang");
        rig_until_idle(r->road);
        assert_non_null(strstr(child_rig_notice(r), "folder is full (3 of 1 MiB)"));
        child_rig_free(r);
        free(members);
        free(script);
}

static void a_long_answer_is_cut(void **state)
{
        struct child_rig *r =
                child_rig_new("", "\"sandbox\": {\"kind\": \"host\"}, \"answerKb\": 1");
        const char *answer;

        (void)state;
        answer = child_rig_ask(r, "long 5000");
        assert_in_range(strlen(answer), 1024, 1200);
        assert_non_null(strstr(answer, "longer than 1 KB"));
        child_rig_free(r);
}

/* ---- what it sees ---- */

static void its_environment_is_what_is_configured(void **state)
{
        struct child_rig *r;

        (void)state;
        setenv("RIG_PASSED", "passed", 1);
        setenv("RIG_SECRET", "hidden-value", 1);
        setenv("RIG_OTHER", "other", 1);
        r = child_rig_new("", "\"sandbox\": {\"kind\": \"host\"}, \"passEnv\": [\"RIG_PASSED\"], "
                              "\"env\": {\"KEY\": \"env:RIG_SECRET\", \"PLAIN\": \"text\"}");
        assert_string_equal(child_rig_ask(r, "env RIG_PASSED RIG_OTHER RIG_SECRET PLAIN"),
                            "RIG_PASSED=passed RIG_OTHER=None RIG_SECRET=None PLAIN=text");
        /* it has the key, and people do not see it */
        assert_non_null(strstr(child_rig_ask(r, "env KEY"), "KEY=***"));
        child_rig_free(r);
}

static void in_the_sandbox_it_sees_its_folder_only(void **state)
{
        char *script = realpath("tests/lib/fake_acp.py", NULL);
        char *members =
                mem_printf("\"sandbox\": {\"kind\": \"bwrap\", \"readOnly\": [\"%s\"]}", script);
        struct child_rig *r = child_rig_new("", members);
        const char *where;

        (void)state;
        /* the file of counters is outside */
        free(r->state);
        agents_free(r->agents);
        r->state = mem_strdup("/home/agent/state");
        child_rig_open_agents(r);
        where = child_rig_ask(r, "where");
        assert_non_null(strstr(where, "/workspace/agents/steps/conv-1/work"));
        assert_non_null(strstr(where, "home=/home/agent"));
        assert_non_null(strstr(where, "uid=1000"));
        assert_string_equal(child_rig_ask(r, "shell ls /workspace /root; ls $HOME; touch here; ls; "
                                             "ls ../.. | wc -l"),
                            "ls: cannot access '/workspace': No such file or directory\n"
                            "ls: cannot access '/root': No such file or directory\n"
                            "state\nhere\n1");
        child_rig_restart(r);
        assert_string_equal(child_rig_ask(r, "shell ls; ls $HOME"), "here\nstate");
        child_rig_free(r);
        free(members);
        free(script);
}

/* The next start would mount what they lead to. */
static void links_that_it_could_have_made_are_not_followed(void **state)
{
#define IN(cwd, listed) "\"cwd\": \"@/" cwd "\", \"sandbox\": {\"readOnly\": [\"$\"" listed "]"
        static const struct {
                const char *members, *command, *answer; /* NULL: it does not start */
        } rows[] = {
                { IN("project", ", \"@/project/file/\"") "}", "cat @/project/file", "inside" },
                { IN("project", ", \"@/project/link\"") "}" },
                { IN("project", ", \"@/project/away/secret\"") "}" },
                { IN("project", ", \"@/alias/link\"") "}" },
                { IN("project", ", \"@/way\"") "}" },
                { IN("project", ", \"@/outside\"") "}", "cat @/outside", "secret" },
                { IN("other", ", \"@/project/link\"") ", \"writable\": [\"@/project\"]}" },
                { IN("other", "") ", \"writable\": [\"@/project/away\"]}",
                  "cat @/project/away/secret", "secret" },
                { IN("other", "") ", \"writable\": [\"@/project/away\", \"@/project\"]}" },
                { IN("project/away", "") ", \"writable\": [\"@/project\"]}" },
                { IN("project", ", \"@/workspace/link\"") "}" },
        };
#undef IN
        struct child_rig *r = child_rig_new("", NULL);
        char *command = child_rig_fill(
                r, "cd @ && mkdir -m 700 workspace && mkdir project other hidden && "
                   "echo inside >project/file && echo secret >hidden/secret && "
                   "ln -s ../hidden/secret project/link && "
                   "ln -s @/hidden project/away && ln -s project alias && "
                   "ln -s alias/away/secret way && ln -s hidden/secret outside && "
                   "ln -s ../hidden workspace/link && chmod 777 project other hidden");

        (void)state;
        assert_int_equal(system(command), 0);
        free(command);
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *members = child_rig_fill(r, rows[i].members);
                char *text = child_rig_fill(r, rows[i].command ? rows[i].command : "true");
                char *shell = mem_printf("shell %s", text);

                r->members = members;
                child_rig_restart(r);
                child_rig_say(r, shell);
                rig_until_idle(r->road);
                if (!strstr(child_rig_notice(r),
                            rows[i].answer ? rows[i].answer : "a link in a folder that"))
                        fail_msg("%zu: %s", i, child_rig_notice(r));
                free(members);
                free(text);
                free(shell);
        }
        r->members = "";
        child_rig_free(r);
}

static void the_status_shows_its_processes(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        json_t *status, *p;

        (void)state;
        child_rig_ask(r, "echo x");
        status = child_rig_status(r);
        p = json_object_get(status, "processes");
        assert_int_equal(json_int(p, "running", -1), 1);
        assert_int_equal(json_int(p, "idle", -1), 1);
        p = json_array_get(json_object_get(p, "list"), 0);
        assert_string_equal(json_str(p, "state", ""), "idle");
        assert_true(json_int(p, "pid", 0) > 0);
        json_decref(status);
        child_rig_free(r);
}

static void memory_and_time_are_measured(void **state)
{
        struct child_rig *r = child_rig_new("", NULL);
        int64_t deadline = clock_mono_ms() + PATIENCE_MS, memory = 0, cpu = 0;

        (void)state;
        child_rig_ask(r, "echo x");
        while (memory == 0 || cpu == 0) {
                json_t *status = child_rig_status(r), *p = json_object_get(status, "processes"),
                       *one = json_array_get(json_object_get(p, "list"), 0);

                memory = json_int(one, "memoryBytes", 0);
                cpu = json_int(one, "cpuMs", 0);
                assert_int_equal(json_int(p, "memoryBytes", -1), memory);
                assert_int_equal(json_int(p, "cpuMs", -1), cpu);
                json_decref(status);
                if (clock_mono_ms() > deadline)
                        fail_msg("nothing was measured");
                rig_run_for(r->road, 5);
        }
        assert_true(memory > 1 << 20); /* Python */
        child_rig_free(r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_process_stays_for_further_turns),
                cmocka_unit_test(a_session_is_resumed_after_a_restart),
                cmocka_unit_test(a_new_conversation_keeps_its_folder),
                cmocka_unit_test(conversations_have_sessions_and_folders_of_their_own),
                cmocka_unit_test(conversations_of_a_rule_may_share_a_folder),
                cmocka_unit_test(all_conversations_may_share_a_given_folder),
                cmocka_unit_test(a_process_that_is_idle_ends_and_resumes),
                cmocka_unit_test(only_so_many_run_and_the_idle_one_makes_room),
                cmocka_unit_test(an_interrupted_turn_is_not_given_twice),
                cmocka_unit_test(a_turn_whose_end_is_not_stored_is_not_given_twice),
                cmocka_unit_test(a_turn_that_waited_goes_on_after_a_restart),
                cmocka_unit_test(a_process_that_dies_ends_its_turn_with_its_last_words),
                cmocka_unit_test(what_it_left_running_ends_with_it),
                cmocka_unit_test(one_that_cannot_start_says_why),
                cmocka_unit_test(one_that_ends_when_it_is_ready_is_started_twice),
                cmocka_unit_test(a_program_that_is_missing_is_known_before_a_turn),
                cmocka_unit_test(a_failed_turn_is_given_again_when_an_operator_retries_it),
                cmocka_unit_test(settings_that_cannot_work_are_refused),
                cmocka_unit_test(a_stopped_turn_ends_and_the_process_goes_on),
                cmocka_unit_test(one_that_does_not_stop_is_killed),
                cmocka_unit_test(one_that_ignores_everything_is_killed_when_idle),
                cmocka_unit_test(what_comes_after_the_end_of_a_turn_is_dropped),
                cmocka_unit_test(silence_ends_a_turn),
                cmocka_unit_test(the_deadline_of_turns_does_not_count),
                cmocka_unit_test(limits_end_it),
                cmocka_unit_test(odd_lines_are_skipped_and_long_ones_read),
                cmocka_unit_test(one_that_takes_too_much_memory_is_ended),
                cmocka_unit_test(one_that_fills_its_folder_is_ended),
                cmocka_unit_test(a_long_answer_is_cut),
                cmocka_unit_test(its_environment_is_what_is_configured),
                cmocka_unit_test(in_the_sandbox_it_sees_its_folder_only),
                cmocka_unit_test(links_that_it_could_have_made_are_not_followed),
                cmocka_unit_test(the_status_shows_its_processes),
                cmocka_unit_test(memory_and_time_are_measured),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
