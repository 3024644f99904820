/* pi and omp in RPC mode, against a program that speaks as they do: tests/lib/fake_rpc.py. */
#include <sys/stat.h>

#include "base/file.h"
#include "child_rig.h"
#include "road/turn/approval.h"

#define HOST "\"sandbox\": {\"kind\": \"host\"}"

/* A value that must be shown nowhere: the fake agent says it when it fails. */
#define SECRET  "verysecretverysecret"
#define SECRETS HOST ", \"env\": {\"KEY\": \"" SECRET "\"}"

static struct child_rig *pi_rig(const char *options, const char *members)
{
        return child_rig_new_of("pi", "tests/lib/fake_rpc.py", options, members ? members : HOST);
}

static struct child_rig *omp_rig(const char *options, const char *members)
{
        static char all[200];

        snprintf(all, sizeof(all), "--dialect omp %s", options);
        return child_rig_new_of("omp", "tests/lib/fake_rpc.py", all, members ? members : HOST);
}

static struct child_rig *(*const both[])(const char *options, const char *members) = { pi_rig,
                                                                                       omp_rig };

/* ---- answers ---- */

static void text_is_streamed_and_answered(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("--banner --crlf", NULL);

                assert_string_equal(child_rig_ask(r, "echo one two three"), "one two three");
                assert_string_equal(child_rig_ask(r, "separators"), "a\xe2\x80\xa8"
                                                                    "b\xe2\x80\xa9"
                                                                    "c");
                assert_int_equal(child_rig_counted(r, "start"), 1); /* the same process */
                child_rig_free(r);
        }
}

static void older_and_newer_versions_end_their_runs(void **state)
{
        struct child_rig *r = pi_rig("--old", NULL);

        (void)state;
        assert_string_equal(child_rig_ask(r, "echo old"), "old");
        child_rig_free(r);
        r = pi_rig("--new", NULL);
        assert_string_equal(child_rig_ask(r, "echo new"), "new");
        child_rig_free(r);
        r = omp_rig("--new", NULL);
        assert_string_equal(child_rig_ask(r, "echo new"), "new");
        assert_string_equal(child_rig_ask(r, "echo newer"), "newer");
        child_rig_free(r);
}

static void the_whole_message_decides(void **state)
{
        struct child_rig *r = pi_rig("", NULL);

        (void)state;
        assert_string_equal(child_rig_ask(r, "partial this one"), "this one");
        assert_string_equal(child_rig_ask(r, "echo first\npartial second"), "first\n\nsecond");
        assert_string_equal(child_rig_ask(r, "retry better"), "better");
        assert_string_equal(child_rig_ask(r, "cut the beg"),
                            "the beg\n\n(The answer was cut off by the model's output limit.)");
        assert_string_equal(child_rig_ask(r, "aborted"), "The run was stopped from elsewhere.");
        child_rig_free(r);
}

static void tool_calls_are_journaled(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("", NULL);

                assert_string_equal(child_rig_ask(r, "tool make test\necho It worked."),
                                    "It worked.");
                assert_string_equal(child_rig_ask(r, "fails make\necho No."), "No.");
                assert_int_equal(
                        rig_count(r->road, "journal WHERE type = 'agent.tool_execution_start'"), 2);
                assert_int_equal(rig_count(r->road, "journal WHERE type = "
                                                    "'agent.tool_execution_start' AND payload LIKE "
                                                    "'%{\"command\":\"make test\"}%'"),
                                 1);
                assert_int_equal(rig_count(r->road, "journal WHERE type = "
                                                    "'agent.tool_execution_end' AND payload LIKE "
                                                    "'%\"isError\":false%'"),
                                 1);
                assert_int_equal(rig_count(r->road, "journal WHERE type = "
                                                    "'agent.tool_execution_end' AND payload LIKE "
                                                    "'%\"isError\":true%'"),
                                 1);
                child_rig_free(r);
        }
}

static void usage_is_summed(void **state)
{
        struct child_rig *r = pi_rig("", NULL);

        (void)state;
        child_rig_ask(r, "tool x\necho a\necho b"); /* four messages */
        assert_int_equal(rig_number(r->road, "tokens_in FROM turns"), 600);
        assert_int_equal(rig_number(r->road, "tokens_out FROM turns"), 40);
        assert_int_equal(rig_number(r->road, "cost_microusd FROM turns"), 4000);
        child_rig_free(r);
}

static void a_failure_of_the_model_ends_the_turn(void **state)
{
        struct child_rig *r = pi_rig("", SECRETS);

        (void)state;
        child_rig_say(r, "error 529 overloaded, key " SECRET);
        rig_until_idle(r->road);
        assert_string_equal(rig_text(r->road, "state FROM turns"), "failed");
        assert_non_null(strstr(child_rig_notice(r), "The agent failed: 529 overloaded"));
        assert_null(strstr(child_rig_notice(r), SECRET));
        assert_null(strstr(rig_text(r->road, "error FROM turns"), SECRET));
        assert_string_equal(child_rig_ask(r, "echo again"), "again");
        assert_int_equal(child_rig_counted(r, "start"), 1);
        child_rig_free(r);
}

static void a_refused_prompt_ends_the_turn(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("--refuses", NULL);

                child_rig_say(r, "echo x");
                rig_until_idle(r->road);
                assert_string_equal(rig_text(r->road, "state FROM turns"), "failed");
                assert_non_null(strstr(child_rig_notice(r), "No API key found"));
                child_rig_free(r);
        }
}

static void commands_of_extensions_need_no_run(void **state)
{
        static const char *const options[] = { "", "--new" };

        (void)state;
        for (size_t i = 0; i < COUNT(both); i++)
                for (size_t k = 0; k < COUNT(options); k++) {
                        struct child_rig *r = both[i](options[k], NULL);

                        assert_string_equal(child_rig_ask(r, "/notify the status"), "the status");
                        assert_string_equal(child_rig_ask(r, "echo then"), "then");
                        child_rig_free(r);
                }
}

/* ---- messages while it works ---- */

static void messages_reach_the_running_turn(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("", NULL);

                child_rig_say(r, "steered");
                child_rig_until_counted(r, "waiting", 1);
                child_rig_say(r, "more");
                rig_until_idle(r->road);
                assert_string_equal(child_rig_answers(r), "heard: more");
                assert_int_equal(rig_count(r->road, "turns"), 1);
                assert_int_equal(child_rig_counted(r, "steer steer"), 1);
                child_rig_free(r);
        }
}

static void a_question_that_is_withdrawn_holds_nothing_up(void **state)
{
        struct child_rig *r = omp_rig("", NULL);

        (void)state;
        child_rig_say(r, "withdraw\nsteered");
        child_rig_until_counted(r, "waiting", 1);
        child_rig_say(r, "more");
        rig_until_idle(r->road);
        assert_non_null(strstr(child_rig_answers(r), "heard: more"));
        assert_int_equal(rig_count(r->road, "turns"), 1);
        child_rig_free(r);
}

/* The program has read the message, and ends its run before it looks at it. */
static void a_message_at_the_end_of_a_run_is_answered(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("", NULL);

                child_rig_say(r, "late\necho first");
                child_rig_until_counted(r, "waiting", 1);
                child_rig_say(r, "echo second");
                rig_until_idle(r->road);
                assert_string_equal(child_rig_answers(r), "first\n\nsecond");
                assert_int_equal(child_rig_counted(r, "prompt"), 2);
                assert_string_equal(child_rig_ask(r, "echo third"), "third");
                child_rig_free(r);
        }
}

static void messages_can_follow_or_wait(void **state)
{
        struct child_rig *r = pi_rig("", HOST ", \"whileRunning\": \"followUp\"");

        (void)state;
        child_rig_say(r, "steered");
        child_rig_until_counted(r, "waiting", 1);
        child_rig_say(r, "more");
        rig_until_idle(r->road);
        assert_int_equal(child_rig_counted(r, "steer followUp"), 1);
        child_rig_free(r);
        r = pi_rig("", HOST ", \"whileRunning\": \"wait\"");
        child_rig_say(r, "confirm t|m");
        rig_until_count(r->road, "approvals", 1);
        child_rig_say(r, "echo more");
        rig_settle(r->road);
        assert_int_equal(rig_count(r->road, "turns WHERE state = 'queued'"), 1);
        child_rig_free(r);
}

/* A message with a picture, which may be a link to one, and another file. */
static const char *ask_with_files(struct child_rig *r, bool linked)
{
        const struct attachment files[] = {
                { .kind = "image",
                  .name = "a.png",
                  .mime = "image/png",
                  .source = "F1",
                  .path = "channels/nonce/c/attachments/1-a.png" },
                { .kind = "document",
                  .name = "b.txt",
                  .mime = "text/plain",
                  .source = "F2",
                  .path = "channels/nonce/c/attachments/2-b.txt" },
        };

        for (size_t i = 0; i < COUNT(files); i++) {
                char *path = mem_printf("%s/workspace/%s", r->road->dir, files[i].path);
                char *slash = path + strlen(r->road->dir);

                while ((slash = strchr(slash + 1, '/'))) {
                        *slash = '\0';
                        mkdir(path, 0700);
                        *slash = '/';
                }
                if (linked && i == 0)
                        assert_int_equal(symlink("2-b.txt", path), 0);
                else
                        assert_int_equal(file_replace(path, "PNG"), 0);
                free(path);
        }
        rig_receive(r->road, &(struct incoming){ .adapter = "nonce",
                                                 .channel = "c",
                                                 .guild = "steps",
                                                 .text = "images",
                                                 .attachments = files,
                                                 .attachment_count = COUNT(files) });
        rig_until_idle(r->road);
        return rig_text(r->road,
                        "text FROM transcript WHERE role = 'assistant' ORDER BY id DESC LIMIT 1");
}

static void pictures_are_sent_and_files_are_named(void **state)
{
        struct child_rig *r = pi_rig("", NULL);
        const char *answer = ask_with_files(r, false);

        (void)state;
        assert_int_equal(strncmp(answer, "image/png UE5H", 14), 0);
        assert_non_null(strstr(answer, "/attachments/1-a.png]"));
        assert_non_null(strstr(answer, "/attachments/2-b.txt]"));
        child_rig_free(r);
        r = omp_rig("--blind", NULL);
        answer = ask_with_files(r, false);
        assert_null(strstr(answer, "UE5H"));
        assert_non_null(strstr(answer, "/attachments/1-a.png]"));
        child_rig_free(r);
}

/* Another agent of the chat may have put it there, and it may lead anywhere. */
static void a_link_in_the_place_of_a_picture_is_not_read(void **state)
{
        struct child_rig *r = pi_rig("", NULL);
        const char *answer = ask_with_files(r, true);

        (void)state;
        assert_null(strstr(answer, "UE5H"));
        assert_non_null(strstr(answer, "/attachments/1-a.png]"));
        child_rig_free(r);
}

static void a_stopped_run_is_aborted(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("", NULL);

                child_rig_say(r, "forever");
                child_rig_until_counted(r, "waiting", 1);
                turn_cancel(r->road->road, 1, "stop", NULL, NULL);
                rig_until_idle(r->road);
                assert_string_equal(rig_text(r->road, "state FROM turns"), "cancelled");
                assert_string_equal(child_rig_ask(r, "echo after"), "after");
                assert_int_equal(child_rig_counted(r, "abort"), 1);
                assert_int_equal(child_rig_counted(r, "start"), 1);
                child_rig_free(r);
        }
}

/* pi waits for an answer even if it is to stop. */
static void a_run_that_asks_is_aborted_as_well(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("", NULL);

                child_rig_say(r, "confirm t|m");
                rig_until_count(r->road, "approvals", 1);
                turn_cancel(r->road->road, 1, "stop", NULL, NULL);
                rig_until_idle(r->road);
                assert_string_equal(rig_text(r->road, "state FROM approvals"), "cancelled");
                assert_string_equal(child_rig_ask(r, "echo after"), "after");
                assert_int_equal(child_rig_counted(r, "start"), 1);
                child_rig_free(r);
        }
}

static void background_jobs_answer_later(void **state)
{
        struct child_rig *r = omp_rig("", NULL);

        (void)state;
        r->road->late_replies = (struct late_reply_policy){ true, 10 };
        assert_string_equal(child_rig_ask(r, "job make\necho It runs."), "It runs.");
        rig_until_count(r->road, "journal WHERE type = 'turn.reply'", 1);
        rig_until_idle(r->road);
        assert_string_equal(child_rig_notice(r), "the job is done");
        assert_string_equal(child_rig_ask(r, "echo then"), "then");
        child_rig_free(r);
}

/* ---- dialogs ---- */

struct verdict {
        unsigned done;
        enum error_kind kind;
};

static void on_verdict(void *arg, const struct approval_row *row, const struct error *err)
{
        struct verdict *o = arg;

        (void)row;
        o->done++;
        o->kind = err ? err->kind : ERR_NONE;
}

static void decide(struct child_rig *r, bool approve)
{
        struct approval_verdict v = { .approve = approve, .by = "Ann", .adapters = ",nonce," };
        struct verdict o = { 0, ERR_BUSY };

        rig_until_count(r->road, "approvals WHERE state = 'open'", 1);
        v.id = rig_number(r->road, "max(id) FROM approvals");
        for (unsigned i = 1; o.kind == ERR_BUSY; i++) { /* it may still be in its transaction */
                approval_decide(r->road->road, &v, on_verdict, &o);
                rig_until(r->road, &o.done, i);
        }
        assert_int_equal(o.kind, ERR_NONE);
}

static const char *ask_and_decide(struct child_rig *r, const char *text, bool approve)
{
        child_rig_say(r, text);
        decide(r, approve);
        rig_until_idle(r->road);
        return rig_text(r->road,
                        "text FROM transcript WHERE role = 'assistant' ORDER BY id DESC LIMIT 1");
}

static void questions_are_approvals(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("", NULL);

                assert_string_equal(ask_and_decide(r, "confirm Delete it?|all of it", true),
                                    "{\"confirmed\": true}");
                assert_non_null(strstr(rig_text(r->road, "detail FROM approvals"), "all of it"));
                assert_string_equal(ask_and_decide(r, "confirm t|m", false),
                                    "{\"confirmed\": false}");
                assert_string_equal(ask_and_decide(r, "select Always allow,Allow once,Block", true),
                                    "Allow once");
                assert_string_equal(ask_and_decide(r, "select No,Yes", false), "No");
                child_rig_free(r);
        }
}

static void a_question_about_a_tool_is_of_that_tool(void **state)
{
        struct child_rig *r = omp_rig(
                "", HOST ", \"policy\": {\"ls\": {\"tool\": \"bash\", \"command\": \"ls *\", "
                         "\"decide\": \"allow\"}, \"rm\": {\"tool\": \"bash\", \"command\": "
                         "\"rm *\", \"decide\": \"deny\"}}");

        (void)state;
        assert_string_equal(child_rig_ask(r, "allow ls -l"), "Approve");
        assert_string_equal(child_rig_ask(r, "allow rm -r x"), "Deny");
        assert_int_equal(rig_count(r->road, "approvals"), 0);
        assert_string_equal(ask_and_decide(r, "allow make", true), "Approve");
        assert_string_equal(rig_text(r->road, "tool FROM approvals"), "bash");
        /* what is not shown whole must be read by a person */
        assert_string_equal(ask_and_decide(r, "allow ls a[…900ch elided…]", false), "Deny");
        assert_int_equal(rig_count(r->road, "approvals WHERE tool = 'confirm'"), 1);
        child_rig_free(r);
}

/* The agent was about to do something, and the decision is still on its way. */
static void a_turn_with_an_open_question_does_not_fail_over(void **state)
{
        struct child_rig *r = pi_rig("", HOST ", \"failover\": [\"other\"]");
        char *json = child_rig_conf(r);
        struct error err = { 0 };
        struct agent_conf *confs[] = { agent_conf_make("steps", "pi", json, &err),
                                       agent_conf_make("other", "echo", "{}", &err) };

        (void)state;
        if (!confs[0] || agents_apply(r->agents, confs, COUNT(confs), &err) < 0)
                fail_msg("%s", err.text);
        child_rig_say(r, "leftopen out of money");
        rig_until_idle(r->road);
        assert_string_equal(rig_text(r->road, "state FROM turns"), "failed");
        assert_int_equal(rig_count(r->road, "turns WHERE answered_by IS NOT NULL"), 0);
        assert_int_equal(rig_count(r->road, "approvals WHERE state = 'open'"), 0);
        child_rig_say(r, "error out of money"); /* it certainly did nothing */
        rig_until_idle(r->road);
        assert_string_equal(child_rig_answers(r), "error out of money");
        child_rig_free(r);
        free(json);
}

static void what_nobody_can_answer_is_cancelled(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("--asks-early", NULL);

                assert_string_equal(child_rig_ask(r, "withdraw\nwidgets"), "withdrawn");
                assert_string_equal(child_rig_ask(r, "timeout m"), "no");
                assert_int_equal(child_rig_counted(r, "early {\\\"type\\\": "
                                                      "\\\"extension_ui_response\\\", \\\"id\\\": "
                                                      "\\\"ui-1\\\", \\\"cancelled\\\": true}"),
                                 1);
                child_rig_free(r);
        }
}

static void questions_are_answered_by_the_next_message(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("", NULL);
                const char *answer;

                assert_string_equal(child_rig_ask(r, "echo Well:\nselect red,green"),
                                    "Well:\n\nWhich?\n\n1. red\n2. green\n\n"
                                    "Answer with a number, or in your own words.");
                assert_string_equal(child_rig_ask(r, "2."), "green");
                child_rig_ask(r, "select red,green");
                assert_string_equal(child_rig_ask(r, " RED "), "red");
                child_rig_ask(r, "select red,green");
                answer = child_rig_ask(r, "echo neither"); /* during its run, or after it */
                assert_int_equal(strncmp(answer, "cancelled\n\n", 11), 0);
                assert_non_null(strstr(answer, "\n\nneither"));
                child_rig_ask(r, "own red,green");
                assert_string_equal(child_rig_ask(r, "neither"), "neither");
                assert_string_equal(child_rig_ask(r, "input Your name?"), "Your name?");
                assert_string_equal(child_rig_ask(r, "Ann"), "Ann");
                assert_string_equal(child_rig_ask(r, "editor A text"), "A text");
                assert_string_equal(child_rig_ask(r, "one\ntwo"), "one\ntwo");
                assert_int_equal(child_rig_counted(r, "start"), 1);
                child_rig_free(r);
        }
}

/* omp's option for them is followed by an editor; other options and questions are not meant. */
static void own_words_answer_one_question(void **state)
{
        struct child_rig *r = omp_rig("", NULL);

        (void)state;
        child_rig_ask(r, "select red,Other colours");
        assert_int_equal(strncmp(child_rig_ask(r, "echo x"), "cancelled", 9), 0);
        child_rig_ask(r, "select red,Other (type your own)");
        assert_string_equal(child_rig_ask(r, "neither"), "Other (type your own)");
        assert_string_equal(child_rig_ask(r, "editor A text"), "A text");
        assert_string_equal(child_rig_ask(r, "this"), "this");
        child_rig_ask(r, "select red,Other (type your own)\ninput Your name?");
        child_rig_ask(r, "neither");
        assert_string_equal(child_rig_ask(r, "Ann"), "Ann");
        child_rig_free(r);
}

static void a_run_goes_on_when_nobody_answers(void **state)
{
        struct child_rig *r = pi_rig("", NULL);

        (void)state;
        r->road->late_replies = (struct late_reply_policy){ true, 10 };
        assert_string_equal(child_rig_ask(r, "patient 1200"),
                            "Name? Without an answer it goes on in 1 s.");
        rig_until_count(r->road, "journal WHERE type = 'turn.reply'", 1);
        rig_until_idle(r->road);
        assert_string_equal(child_rig_notice(r), "nobody");
        assert_string_equal(child_rig_ask(r, "echo then"), "then");
        child_rig_free(r);
        /* the process ends, and the session goes on */
        r = pi_rig("", HOST ", \"idleMinutes\": 0.001");
        child_rig_ask(r, "input Name?");
        child_rig_until_ended(r);
        assert_string_equal(child_rig_ask(r, "recall"), "I know: input Name?");
        child_rig_free(r);
}

/* ---- sessions ---- */

static void a_killed_process_goes_on_with_its_session(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("", NULL);

                child_rig_ask(r, "echo one");
                kill(child_rig_pid(r), SIGKILL);
                child_rig_until_ended(r);
                assert_string_equal(child_rig_ask(r, "recall"), "I know: echo one");
                child_rig_restart(r); /* Dragoman as well */
                assert_string_equal(child_rig_ask(r, "recall"), "I know: echo one | recall");
                assert_int_equal(child_rig_counted(r, "start"), 3);
                child_rig_free(r);
        }
}

/* A program that resumes a session works in the session's folder. */
static void another_folder_is_another_session(void **state)
{
        struct child_rig *r = pi_rig("", NULL);
        char *members = mem_printf(HOST ", \"cwd\": \"%s\"", r->road->dir);

        (void)state;
        child_rig_ask(r, "echo one");
        r->members = members;
        child_rig_restart(r);
        assert_string_equal(child_rig_ask(r, "recall"), "I know: ");
        child_rig_restart(r);
        assert_string_equal(child_rig_ask(r, "recall"), "I know: recall");
        child_rig_free(r);
        free(members);
}

static void a_process_that_dies_in_a_turn_says_why(void **state)
{
        struct child_rig *r = pi_rig("", SECRETS);

        (void)state;
        child_rig_say(r, "echo x\nexit 7");
        rig_until_idle(r->road);
        assert_string_equal(rig_text(r->road, "state FROM turns"), "failed");
        assert_non_null(strstr(child_rig_notice(r), "exit code 7"));
        assert_non_null(strstr(child_rig_notice(r), "it broke"));
        assert_null(strstr(child_rig_notice(r), SECRET));
        assert_string_equal(child_rig_ask(r, "recall"), "I know: echo x\nexit 7");
        child_rig_free(r);
}

static void a_turn_is_given_once(void **state)
{
        struct child_rig *r = pi_rig("", NULL);

        (void)state;
        child_rig_say(r, "forever");
        child_rig_until_counted(r, "waiting", 1);
        child_rig_restart(r);
        rig_until_idle(r->road);
        assert_int_equal(child_rig_counted(r, "prompt"), 1);
        assert_string_equal(rig_text(r->road, "state FROM turns"), "failed");
        assert_string_equal(child_rig_ask(r, "recall"), "I know: forever");
        child_rig_free(r);
}

static void an_idle_process_ends_and_comes_back(void **state)
{
        struct child_rig *r = omp_rig("", HOST ", \"idleMinutes\": 0.001");

        (void)state;
        child_rig_ask(r, "echo one");
        child_rig_until_ended(r);
        assert_string_equal(child_rig_ask(r, "recall"), "I know: echo one");
        assert_int_equal(child_rig_counted(r, "start"), 2);
        child_rig_free(r);
}

static void one_that_works_by_itself_and_says_nothing_ends_too(void **state)
{
        struct child_rig *r = omp_rig("", HOST ", \"idleMinutes\": 0.001, \"silenceSeconds\": 1");

        (void)state;
        child_rig_ask(r, "stuck\necho one");
        child_rig_until_ended(r);
        assert_string_equal(child_rig_ask(r, "echo two"), "two");
        assert_int_equal(child_rig_counted(r, "start"), 2);
        child_rig_free(r);
}

static void until_state(struct child_rig *r, const char *name)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;

        for (bool found = false; !found; rig_run_for(r->road, 5)) {
                json_t *status = child_rig_status(r), *one;
                size_t i;

                json_array_foreach(json_object_get(json_object_get(status, "processes"), "list"), i,
                                   one)
                        found = found || strcmp(json_str(one, "state", ""), name) == 0;
                json_decref(status);
                if (clock_mono_ms() > deadline)
                        fail_msg("no child is %s", name);
        }
}

static void one_that_works_by_itself_makes_room_when_it_has_finished(void **state)
{
        struct child_rig *r = omp_rig("", HOST ", \"processes\": 1");
        char *go = mem_printf("%s.go", r->state);

        (void)state;
        child_rig_say_in(r, "a", "goeson\necho one");
        child_rig_until_counted(r, "goes on", 1);
        child_rig_say_in(r, "b", "echo two");
        until_state(r, "queued");
        assert_int_equal(child_rig_counted(r, "start"), 1);
        assert_int_equal(file_replace(go, ""), 0);
        rig_until_idle(r->road);
        assert_string_equal(child_rig_answers(r), "one, two");
        child_rig_free(r);
        free(go);
}

static void one_that_works_by_itself_and_says_nothing_makes_room(void **state)
{
        struct child_rig *r = omp_rig("", HOST ", \"processes\": 1, \"silenceSeconds\": 1");

        (void)state;
        child_rig_say_in(r, "a", "stuck\necho one");
        rig_until_count(r->road, "turns WHERE state <> 'running'", 1);
        child_rig_say_in(r, "b", "echo two");
        child_rig_until_counted(r, "start", 2);
        child_rig_free(r);
}

/* ---- programs that misbehave ---- */

static void odd_messages_are_ignored(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(both); i++) {
                struct child_rig *r = both[i]("", NULL);

                assert_string_equal(child_rig_ask(r, "noise\necho fine"), "fine");
                child_rig_free(r);
        }
}

static void large_messages_arrive(void **state)
{
        struct child_rig *r = omp_rig("", HOST ", \"answerKb\": 16");

        (void)state;
        child_rig_ask(r, "cumulative 600"); /* "word0 word1 ..." */
        assert_int_equal(rig_number(r->road, "length(text) FROM transcript ORDER BY id DESC"),
                         4690);
        child_rig_ask(r, "huge 1500"); /* in chunks; the answer is cut, and says so */
        assert_int_equal(rig_number(r->road, "instr(text, 'The answer is longer than 16 KB') "
                                             "FROM transcript ORDER BY id DESC"),
                         (16 << 10) + 4);
        child_rig_free(r);
}

static void a_line_that_is_too_long_ends_the_process(void **state)
{
        struct child_rig *r = pi_rig("", HOST ", \"lineKb\": 64");

        (void)state;
        child_rig_say(r, "line 65");
        rig_until_idle(r->road);
        assert_string_equal(rig_text(r->road, "state FROM turns"), "failed");
        assert_non_null(strstr(child_rig_notice(r), "64 KiB"));
        assert_string_equal(child_rig_ask(r, "echo again"), "again");
        child_rig_free(r);
}

static void a_program_that_does_not_start_says_why(void **state)
{
        static const struct {
                const char *options, *members, *why;
        } cases[] = {
                { "--exit 4", SECRETS, "exit code 4" },
                { "--no-state", HOST, NULL },
                { "--mute", HOST ", \"startTimeoutMs\": 300", "not ready within 300 ms" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(both); i++)
                for (size_t k = 0; k < COUNT(cases); k++) {
                        struct child_rig *r = both[i](cases[k].options, cases[k].members);

                        child_rig_say(r, "echo x");
                        rig_until_idle(r->road);
                        assert_non_null(
                                strstr(child_rig_notice(r), "The agent could not be started"));
                        if (cases[k].why)
                                assert_non_null(strstr(child_rig_notice(r), cases[k].why));
                        assert_null(strstr(child_rig_notice(r), SECRET));
                        child_rig_free(r);
                }
}

/* The leak checker finds what is left of the attempt. */
static void a_sandbox_that_cannot_be_made_ends_the_turn(void **state)
{
        struct child_rig *r = pi_rig("", "\"sandbox\": {}");
        char *path = mem_strdup(getenv("PATH"));

        (void)state;
        setenv("PATH", "/nonexistent", 1);
        child_rig_say(r, "echo x");
        rig_until_idle(r->road);
        setenv("PATH", path, 1);
        assert_non_null(strstr(child_rig_notice(r), "could not be started: the sandbox needs the "
                                                    "program bwrap"));
        child_rig_free(r);
        free(path);
}

static void the_program_is_told_its_model(void **state)
{
        struct child_rig *r = omp_rig("", HOST ", \"model\": \"x/y\"");

        (void)state;
        assert_string_equal(child_rig_ask(r, "model"), "x/y");
        child_rig_free(r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(text_is_streamed_and_answered),
                cmocka_unit_test(older_and_newer_versions_end_their_runs),
                cmocka_unit_test(the_whole_message_decides),
                cmocka_unit_test(tool_calls_are_journaled),
                cmocka_unit_test(usage_is_summed),
                cmocka_unit_test(a_failure_of_the_model_ends_the_turn),
                cmocka_unit_test(a_refused_prompt_ends_the_turn),
                cmocka_unit_test(commands_of_extensions_need_no_run),
                cmocka_unit_test(messages_reach_the_running_turn),
                cmocka_unit_test(a_question_that_is_withdrawn_holds_nothing_up),
                cmocka_unit_test(a_message_at_the_end_of_a_run_is_answered),
                cmocka_unit_test(messages_can_follow_or_wait),
                cmocka_unit_test(pictures_are_sent_and_files_are_named),
                cmocka_unit_test(a_link_in_the_place_of_a_picture_is_not_read),
                cmocka_unit_test(a_stopped_run_is_aborted),
                cmocka_unit_test(a_run_that_asks_is_aborted_as_well),
                cmocka_unit_test(background_jobs_answer_later),
                cmocka_unit_test(questions_are_approvals),
                cmocka_unit_test(a_question_about_a_tool_is_of_that_tool),
                cmocka_unit_test(a_turn_with_an_open_question_does_not_fail_over),
                cmocka_unit_test(what_nobody_can_answer_is_cancelled),
                cmocka_unit_test(questions_are_answered_by_the_next_message),
                cmocka_unit_test(own_words_answer_one_question),
                cmocka_unit_test(a_run_goes_on_when_nobody_answers),
                cmocka_unit_test(a_killed_process_goes_on_with_its_session),
                cmocka_unit_test(another_folder_is_another_session),
                cmocka_unit_test(a_process_that_dies_in_a_turn_says_why),
                cmocka_unit_test(a_turn_is_given_once),
                cmocka_unit_test(an_idle_process_ends_and_comes_back),
                cmocka_unit_test(one_that_works_by_itself_and_says_nothing_ends_too),
                cmocka_unit_test(one_that_works_by_itself_makes_room_when_it_has_finished),
                cmocka_unit_test(one_that_works_by_itself_and_says_nothing_makes_room),
                cmocka_unit_test(odd_messages_are_ignored),
                cmocka_unit_test(large_messages_arrive),
                cmocka_unit_test(a_line_that_is_too_long_ends_the_process),
                cmocka_unit_test(a_program_that_does_not_start_says_why),
                cmocka_unit_test(a_sandbox_that_cannot_be_made_ends_the_turn),
                cmocka_unit_test(the_program_is_told_its_model),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
