/* Turns of the built-in agent: steps, tools, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/builtin/loop_guard.h"
#include "loop_rig.h"
#include "road/report/trace_report.h"

static const char *answer_of(struct loop_rig *r)
{
        return rig_text(r->road, "text FROM transcript WHERE role = 'assistant' ORDER BY id DESC");
}

static void run_turn(struct loop_rig *r, const char *text)
{
        unsigned before = r->done;

        loop_rig_say(r, text);
        rig_until(r->road, &r->done, before + 1);
        rig_until_idle(r->road);
}

static int write_report(struct store_tx *tx, void *arg, struct error *err)
{
        return trace_report_write(tx, "trn-1", NULL, arg, err);
}

/* The trace report shows the steps, and nothing of what was said in them. */
static void assert_steps_are_reported(struct loop_rig *r)
{
        struct buf report;
        struct error err;
        const char *steps;

        buf_init(&report, 0);
        assert_int_equal(store_read_now(r->road->store, write_report, &report, &err), 0);
        steps = strstr(report.data, "\"steps\":[");
        assert_non_null(steps);
        assert_non_null(strstr(steps, "\"kind\":\"tool_done\""));
        assert_non_null(strstr(steps, "\"tool\":\"poke\""));
        assert_non_null(strstr(steps, "\"tokensOut\":1,\"costMicroUsd\":7"));
        assert_null(strstr(steps, "did 11"));
        buf_release(&report);
}

static void the_model_is_asked_until_it_answers(void **state)
{
        static const struct said script[] = {
                { .text = "Let me look.", .calls = "peek poke", .cost = 7, .tokens = 100 },
                { .text = "All done.", .cost = 5, .tokens = 150 },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "please look");
        assert_int_equal(r->requests, 2);
        assert_int_equal(r->started, 2);
        assert_string_equal(answer_of(r), "All done.");
        assert_string_equal(rig_list(r->road, "kind FROM steps WHERE kind <> 'tool_started' "
                                              "ORDER BY id"),
                            "user, assistant, tool_done, tool_done, assistant");
        assert_int_equal(rig_count(r->road, "steps WHERE kind = 'tool_started'"), 2);
        assert_int_equal(rig_number(r->road, "cost_microusd FROM turns"), 12);
        assert_int_equal(rig_number(r->road, "tokens_in FROM turns"), 250);
        assert_steps_are_reported(r);
        /* one message per result, in call order */
        assert_non_null(strstr(r->last.data, "did 10"));
        assert_true(strstr(r->last.data, "did 10") < strstr(r->last.data, "did 11"));
        assert_string_equal(rig_list(r->road,
                                     "DISTINCT type FROM journal WHERE type LIKE 'agent.%' "
                                     "ORDER BY type"),
                            "agent.agent_end, agent.agent_start, agent.message_end, "
                            "agent.tool_execution_end, agent.tool_execution_start, agent.turn_end, "
                            "agent.turn_start");
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.turn_start'"), 2);
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.turn_end'"), 2);
        loop_rig_free(r);
}

static void the_usage_line_is_posted_and_not_remembered(void **state)
{
        static const struct said script[] = {
                { .calls = "peek", .cost = 1500, .tokens = 100 },
                { .text = "All done.", .cost = 500, .tokens = 150 },
                { .text = "[SILENT]" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->conf.usage_line = true;
        run_turn(r, "please look");
        assert_int_equal(rig_count(r->road, "deliveries WHERE payload LIKE '%All done.\\n\\n"
                                            "(250 tokens in, 2 out, 0.0020 USD)%'"),
                         1);
        assert_string_equal(answer_of(r), "All done.");
        run_turn(r, "and now?");
        assert_null(strstr(r->last.data, "tokens in"));
        assert_int_equal(rig_count(r->road, "deliveries"), 1);
        loop_rig_free(r);
}

/* One message for each round of tools, in the thread of the main message, and then the cost. */
static void the_steps_are_shown_in_a_thread(void **state)
{
        static const struct said script[] = {
                { .text = "Let me look.", .calls = "peek poke", .cost = 1500, .tokens = 100 },
                { .calls = "peek", .cost = 500, .tokens = 100 },
                { .text = "All done.", .cost = 500, .tokens = 50 },
        };
        struct loop_rig *r = loop_rig_new(script);
        const char *rows;

        (void)state;
        r->road->auto_send = true;
        r->tools_read_outside = true;
        rig_say(r->road, "work", "c", "steps", "please look", NULL);
        rig_until(r->road, &r->done, 1);
        rig_until_idle(r->road);
        assert_int_equal(rig_count(r->road, "deliveries WHERE kind = 'send' AND edits > 0"), 3);
        rows = rig_list(r->road, "payload FROM deliveries WHERE kind = 'send' AND edits > 0 "
                                 "ORDER BY id");
        assert_non_null(strstr(rows, "Let me look.\\n\\n✅ **peek** trying ("));
        assert_non_null(strstr(rows, "\\n```\\nn: 10\\n```\\n```\\ndid 10\\n```"));
        assert_non_null(strstr(rows, "✅ **poke** trying"));
        assert_null(strstr(rows, "comes from outside")); /* that is for the model */
        assert_non_null(strstr(rows, "n: 20"));
        assert_non_null(strstr(rows, "250 tokens in, 3 out, 0.0025 USD"));
        loop_rig_free(r);
}

static void the_next_turn_sees_the_steps_of_the_last(void **state)
{
        static const struct said script[] = {
                { .calls = "peek" },
                { .text = "first answer" },
                { .text = "second answer" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "one");
        run_turn(r, "two");
        assert_non_null(strstr(r->last.data, "] [Ann]: one"));
        assert_non_null(strstr(r->last.data, "toolResult"));
        assert_non_null(strstr(r->last.data, "first answer"));
        assert_non_null(strstr(r->last.data, "] [Ann]: two"));
        loop_rig_free(r);
}

static void a_call_under_way_at_a_crash_is_interrupted(void **state)
{
        static const struct said script[] = {
                { .calls = "poke peek" },
                { .text = "I checked." },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->tools_hang = true;
        loop_rig_say(r, "go");
        rig_until(r->road, &r->started, 2);
        loop_rig_restart(r);
        r->tools_hang = false;
        rig_until(r->road, &r->done, 1);
        rig_until_idle(r->road);
        assert_int_equal(r->started, 3); /* peek again, poke not */
        assert_non_null(strstr(r->last.data, "may have happened in part"));
        assert_non_null(strstr(r->last.data, "did 11"));
        assert_string_equal(answer_of(r), "I checked.");
        loop_rig_free(r);
}

static void a_stopped_turn_leaves_a_valid_transcript(void **state)
{
        static const struct said script[] = {
                { .calls = "poke poke" },
                { .text = "hello again" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->tools_hang = true;
        loop_rig_say(r, "go");
        rig_until(r->road, &r->started, 2);
        turn_cancel(r->road->road, 1, "stopped by Ann", NULL, NULL);
        assert_int_equal(r->cancelled, 2);
        assert_int_equal(r->open_tools, 0);
        rig_until_idle(r->road);
        assert_string_equal(rig_text(r->road, "state FROM turns"), "cancelled");
        assert_int_equal(rig_count(r->road, "steps WHERE kind = 'tool_done'"), 2);
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.tool_execution_end'"), 2);
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.agent_end'"), 1);
        r->tools_hang = false;
        run_turn(r, "and now?");
        assert_non_null(strstr(r->last.data, "stopped by the user (stopped by Ann)"));
        loop_rig_free(r);
}

static void stopping_aborts_the_models_call(void **state)
{
        static const struct said script[] = { { .hangs = true } };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        loop_rig_say(r, "go");
        rig_until(r->road, &r->requests, 1);
        turn_cancel(r->road->road, 1, "stopped by Ann", NULL, NULL);
        assert_int_equal(r->aborted, 1);
        rig_until_idle(r->road);
        loop_rig_free(r);
}

static void what_people_write_meanwhile_reaches_the_turn(void **state)
{
        static const struct said script[] = {
                { .calls = "peek" },
                { .text = "blue it is" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->tools_hang = true;
        loop_rig_say(r, "paint it red");
        rig_until(r->road, &r->started, 1);
        loop_rig_say(r, "no, blue");
        rig_until_count(r->road, "turns", 2);
        loop_rig_restart(r); /* also a crash keeps the order */
        r->tools_hang = false;
        rig_until(r->road, &r->done, 1);
        rig_until_idle(r->road);
        assert_int_equal(r->done, 1);
        assert_true(strstr(r->last.data, "did 10") < strstr(r->last.data, "no, blue"));
        assert_int_equal(rig_count(r->road, "turns"), 1);
        loop_rig_free(r);
}

static void a_call_cut_off_by_the_output_limit_never_runs(void **state)
{
        static const struct said script[] = {
                { .text = "I write it:", .calls = "poke", .stop = MODEL_LENGTH },
                { .text = "and go on", .stop = MODEL_LENGTH },
                { .text = "the end" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "write");
        assert_int_equal(r->started, 0);
        assert_int_equal(r->requests, 3);
        assert_non_null(strstr(r->last.data, "cut off by the output limit"));
        assert_string_equal(answer_of(r), "the end");
        loop_rig_free(r);
}

static void the_output_limit_is_answered_twice(void **state)
{
        static const struct said script[] = {
                { .text = "a", .stop = MODEL_LENGTH },
                { .text = "b", .stop = MODEL_LENGTH },
                { .text = "c", .stop = MODEL_LENGTH },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "write");
        assert_int_equal(r->requests, 3);
        assert_non_null(strstr(answer_of(r), "output limit three times"));
        loop_rig_free(r);
}

static void an_incomplete_call_and_an_unknown_tool_are_errors(void **state)
{
        static const struct said script[] = {
                { .calls = "poke", .cut = true },
                { .calls = "dance" },
                { .text = "sorry" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "go");
        assert_int_equal(r->started, 0);
        assert_non_null(strstr(r->last.data, "were cut off"));
        assert_non_null(strstr(r->last.data, "There is no tool 'dance'"));
        loop_rig_free(r);
}

static void the_name_of_a_kept_output_makes_no_difference(void **state)
{
        static const char *const texts[] = {
                "1\n[Full output: /workspace/c/scratch/output-1794828171127-0a1b2c3d.txt]",
                "1\n[Full output: /workspace/c/scratch/output-1794828179999-ffffffff.txt]",
                "2\n[Full output: /workspace/c/scratch/output-1794828179999-ffffffff.txt]",
        };
        json_t *call = json_pack("{s:s, s:{s:s}}", "name", "bash", "arguments", "command", "ls");
        json_t *results[3];
        struct steps s = { 0 };

        (void)state;
        for (size_t i = 0; i < 3; i++) {
                results[i] =
                        json_pack("{s:[{s:s, s:s}]}", "content", "type", "text", "text", texts[i]);
                loop_guard_mark(&s, 1, call, results[i]);
        }
        assert_string_equal(json_str(results[0], "same", "a"), json_str(results[1], "same", "b"));
        assert_string_not_equal(json_str(results[1], "same", "a"),
                                json_str(results[2], "same", ""));
        for (size_t i = 0; i < 3; i++)
                json_decref(results[i]);
        json_decref(call);
}

static void repeated_identical_calls_are_warned_about_and_stopped(void **state)
{
        static const struct said script[SCRIPT_MAX] = {
                { .calls = "peek" }, { .calls = "peek" }, { .calls = "peek" },
                { .calls = "peek" }, { .calls = "peek" }, { .calls = "peek" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->next_argument = 4;
        run_turn(r, "go");
        assert_int_equal(r->requests, 5);
        assert_int_equal(rig_count(r->road, "steps WHERE body LIKE '%same result several times%'"),
                         3);
        assert_non_null(strstr(answer_of(r), "same call with the same result five times"));
        loop_rig_free(r);
}

static void the_same_error_stops_the_turn(void **state)
{
        static const struct said script[SCRIPT_MAX] = {
                { .calls = "peek" }, { .calls = "peek" }, { .calls = "peek" },
                { .calls = "peek" }, { .calls = "peek" }, { .calls = "peek" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->tools_fail = true; /* the arguments differ */
        run_turn(r, "go");
        assert_int_equal(r->requests, 5);
        assert_non_null(strstr(answer_of(r), "same error five times"));
        loop_rig_free(r);
}

static void rounds_are_limited(void **state)
{
        static const struct said script[] = {
                { .calls = "peek" }, { .calls = "peek" }, { .calls = "peek" }, { .text = "never" }
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->conf.rounds = 3;
        run_turn(r, "go");
        assert_int_equal(r->requests, 3);
        assert_non_null(strstr(answer_of(r), "limits.rounds"));
        loop_rig_free(r);
}

static void a_budget_is_checked_before_the_call(void **state)
{
        static const struct said script[] = {
                { .calls = "peek", .cost = 60000 },
                { .calls = "peek", .cost = 60000 },
                { .text = "never" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->limits.prices = (struct usage_prices){ .in = 1, .out = 15 };
        r->conf.budget.turn_usd = 0.10;
        run_turn(r, "go");
        assert_int_equal(r->requests, 2);
        assert_true(r->request.max_tokens < 3000); /* as much as was left */
        assert_non_null(strstr(answer_of(r), "budget for one turn is used up"));
        assert_int_equal(rig_number(r->road, "cost_microusd FROM turns"), 120000);
        loop_rig_free(r);
}

static void a_budget_is_checked_before_a_compaction(void **state)
{
        static char long_text[60000];
        static const struct said script[] = {
                { .text = "noted", .tokens = 50000, .cost = 45000 },
                { .text = "never" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        memset(long_text, 'x', sizeof(long_text) - 1);
        r->limits.window = 60000;
        r->limits.prices = (struct usage_prices){ .in = 1, .out = 15 };
        r->conf.keep_tokens = 1000;
        r->conf.budget.day_usd = 0.05;
        run_turn(r, long_text);
        run_turn(r, "go on");
        assert_int_equal(r->requests, 1);
        assert_non_null(strstr(answer_of(r), "budget for today is used up"));
        loop_rig_free(r);
}

static void a_persons_budget_holds_across_turns_and_restarts(void **state)
{
        static const struct said script[] = {
                { .text = "cheap", .cost = 90000 },
                { .text = "never" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->limits.prices = (struct usage_prices){ .in = 1, .out = 15 };
        r->conf.budget.person_day_usd = 0.10;
        run_turn(r, "one");
        loop_rig_restart(r);
        run_turn(r, "two");
        assert_int_equal(r->requests, 1);
        assert_non_null(strstr(answer_of(r), "budget for you today is used up"));
        loop_rig_free(r);
}

static void a_broken_call_is_tried_again(void **state)
{
        static const struct said script[] = {
                { .fails = ERR_NET },
                { .text = "there" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "go");
        assert_int_equal(r->requests, 2);
        assert_string_equal(answer_of(r), "there");
        assert_int_equal(rig_count(r->road, "journal WHERE type LIKE 'agent.auto_retry_%'"), 2);
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.auto_retry_end' AND "
                                            "payload LIKE '%\"success\":true%'"),
                         1);
        loop_rig_free(r);
}

static void a_retry_that_fails_is_journaled_as_failed(void **state)
{
        static const struct said script[] = { { .fails = ERR_NET }, { .fails = ERR_REFUSED } };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "go");
        assert_string_equal(rig_list(r->road, "type FROM journal WHERE type LIKE 'agent.a%' "
                                              "ORDER BY seq"),
                            "agent.agent_start, agent.auto_retry_start, agent.auto_retry_end, "
                            "agent.agent_end");
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.auto_retry_end' AND "
                                            "payload LIKE '%\"success\":false%'"),
                         1);
        loop_rig_free(r);
}

static void an_empty_answer_is_asked_for_once(void **state)
{
        static const struct said script[] = {
                { .calls = "poke" }, { 0 }, { .text = "I poked it." }, { 0 }, { 0 },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "go");
        assert_int_equal(r->requests, 3);
        assert_non_null(strstr(r->last.data, "Your answer was empty"));
        assert_string_equal(answer_of(r), "I poked it.");
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.turn_start'"), 3);
        assert_int_equal(rig_count(r->road, "journal WHERE type = 'agent.turn_end'"), 3);
        run_turn(r, "again");
        assert_int_equal(r->requests, 5);
        assert_string_equal(rig_list(r->road, "state FROM turns ORDER BY id"), "done, failed");
        loop_rig_free(r);
}

static void a_turn_that_another_process_has_is_left(void **state)
{
        static const struct said script[] = { { .calls = "poke peek" }, { .text = "never" } };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->tools_hang = true;
        loop_rig_say(r, "go");
        rig_until(r->road, &r->started, 2);
        rig_update(r->road, "turns SET fence = 9", 0, 0);
        finish_tool(r->last_tool, false, "late");
        rig_until(r->road, &r->done, 1);
        assert_int_equal(r->cancelled, 1); /* the other call */
        assert_int_equal(rig_count(r->road, "steps WHERE kind = 'tool_done'"), 0);
        rig_settle(r->road);
        loop_rig_free(r);
}

static void a_failure_says_whether_others_may_take_over(void **state)
{
        static const struct said script[] = {
                { .fails = ERR_REFUSED },
                { .calls = "poke" },
                { .fails = ERR_REFUSED },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "one");
        assert_int_equal(r->effect, EFFECT_NONE);
        run_turn(r, "two");
        assert_int_equal(r->effect, EFFECT_STORED);
        assert_string_equal(rig_list(r->road, "state FROM turns"), "failed, failed");
        loop_rig_free(r);
}

static void a_refused_request_is_tried_without_images(void **state)
{
        static const struct said script[] = {
                { .fails = ERR_INVALID },
                { .text = "fine" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "go");
        assert_int_equal(r->requests, 2);
        assert_int_equal(r->request.thinking, THINKING_OFF);
        loop_rig_free(r);
}

static void a_full_window_is_compacted(void **state)
{
        static char long_text[90000];
        static const struct said script[] = {
                { .text = "noted", .tokens = 30000 },
                { .text = "also noted", .tokens = 60000 },
                { .too_long = true },
                { .text = "## Goal\nremember the number 42", .cost = 3 },
                { .text = "42" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        memset(long_text, 'x', sizeof(long_text) - 1);
        r->conf.keep_tokens = 2000;
        run_turn(r, long_text);
        run_turn(r, long_text);
        run_turn(r, "which number?");
        assert_int_equal(r->requests, 5);
        assert_int_equal(rig_count(r->road, "steps WHERE kind = 'compaction'"), 1);
        assert_non_null(strstr(r->last.data, "remember the number 42"));
        assert_non_null(strstr(r->last.data, "which number?"));
        assert_null(strstr(r->last.data, "xxxxxxxx"));
        assert_string_equal(answer_of(r), "42");
        assert_int_equal(rig_number(r->road, "cost_microusd FROM turns WHERE id = 3"), 3);
        assert_int_equal(rig_count(r->road, "journal WHERE type LIKE 'agent.auto_compaction_%'"),
                         2);
        loop_rig_free(r);
}

static void a_full_window_is_not_compacted_if_that_is_off(void **state)
{
        static char long_text[90000];
        static const struct said script[] = {
                { .text = "noted", .tokens = 30000 },
                { .text = "half a sen", .stop = MODEL_FULL },
                { .text = "never" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        memset(long_text, 'x', sizeof(long_text) - 1);
        r->conf.compacts = false;
        r->conf.keep_tokens = 2000;
        run_turn(r, long_text);
        run_turn(r, "go on");
        assert_int_equal(r->requests, 2);
        assert_non_null(strstr(answer_of(r), "compaction.enabled is off"));
        loop_rig_free(r);
}

static void a_window_that_fills_up_is_compacted_before_the_call(void **state)
{
        static char long_text[60000];
        static const struct said script[] = {
                { .text = "noted", .tokens = 50000 },
                { .text = "## Goal\nthe summary" },
                { .text = "fine" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        memset(long_text, 'x', sizeof(long_text) - 1);
        r->limits.window = 60000;
        r->conf.keep_tokens = 1000;
        run_turn(r, long_text);
        run_turn(r, "go on");
        assert_true(r->requests == 3);
        assert_non_null(strstr(r->last.data, "the summary"));
        loop_rig_free(r);
}

static void a_compaction_that_frees_little_ends_the_turn(void **state)
{
        static char long_text[90000];
        static struct said script[] = {
                { .text = "noted", .tokens = 30000 },
                { .too_long = true },
                { .text = long_text },
                { .too_long = true },
                { .text = long_text },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        memset(long_text, 'x', sizeof(long_text) - 1);
        r->conf.keep_tokens = 2000;
        run_turn(r, long_text);
        run_turn(r, "go on");
        assert_int_equal(r->requests, 5);
        assert_int_equal(rig_count(r->road, "steps WHERE kind = 'compaction'"), 0);
        assert_non_null(strstr(answer_of(r), "could not be summarised"));
        loop_rig_free(r);
}

static void a_summary_that_was_refused_is_not_used(void **state)
{
        static char long_text[90000];
        static const struct said script[] = {
                { .text = "noted", .tokens = 30000 },
                { .too_long = true },
                { .text = "I cannot", .stop = MODEL_REFUSED },
                { .too_long = true },
                { .text = "## Goal\nthe summary" },
                { .text = "fine" },
        };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        memset(long_text, 'x', sizeof(long_text) - 1);
        r->conf.keep_tokens = 2000;
        run_turn(r, long_text);
        run_turn(r, "go on");
        assert_int_equal(r->requests, 6);
        assert_non_null(strstr(r->last.data, "the summary"));
        assert_null(strstr(r->last.data, "I cannot"));
        assert_string_equal(answer_of(r), "fine");
        loop_rig_free(r);
}

static void schemas_of_tools_take_room_in_the_window(void **state)
{
        static const struct said script[] = { { .text = "hi" } };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->limits.window = r->limits.output = 40000;
        r->schema_bytes = 35000;
        run_turn(r, "hello");
        assert_in_range(r->request.max_tokens, 28000, 29000);
        loop_rig_free(r);
}

static void a_denied_call_is_a_result(void **state)
{
        static const struct said script[] = { { .calls = "poke" }, { .text = "a pity" } };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->verdict = POLICY_DENY;
        run_turn(r, "go");
        assert_int_equal(r->started, 0);
        assert_non_null(strstr(r->last.data, "not allowed by the test"));
        loop_rig_free(r);
}

static void a_person_decides_about_a_call(void **state)
{
        static const struct said script[] = { { .calls = "poke" },
                                              { .calls = "poke" },
                                              { .text = "done" } };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        r->verdict = POLICY_ASK;
        loop_rig_say(r, "go");
        rig_until(r->road, &r->asked, 1);
        assert_int_equal(r->started, 0);
        loop_rig_restart(r); /* the turn is parked on the question */
        rig_until(r->road, &r->asked, 2);
        decide(r, true, NULL);
        rig_until(r->road, &r->asked, 3);
        assert_int_equal(r->started, 1);
        decide(r, false, "a person said: too risky");
        rig_until(r->road, &r->done, 1);
        rig_until_idle(r->road);
        assert_int_equal(r->started, 1);
        assert_non_null(strstr(r->last.data, "a person said: too risky"));
        loop_rig_free(r);
}

static void a_new_conversation_forgets_the_steps(void **state)
{
        static const struct said script[] = { { .text = "one" }, { .text = "two" } };
        struct loop_rig *r = loop_rig_new(script);

        (void)state;
        run_turn(r, "remember me");
        rig_update(r->road, "conversations SET history_turn = 2", 0, 0);
        run_turn(r, "who am I?");
        assert_null(strstr(r->last.data, "remember me"));
        loop_rig_free(r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_model_is_asked_until_it_answers),
                cmocka_unit_test(the_usage_line_is_posted_and_not_remembered),
                cmocka_unit_test(the_steps_are_shown_in_a_thread),
                cmocka_unit_test(the_next_turn_sees_the_steps_of_the_last),
                cmocka_unit_test(a_call_under_way_at_a_crash_is_interrupted),
                cmocka_unit_test(a_stopped_turn_leaves_a_valid_transcript),
                cmocka_unit_test(stopping_aborts_the_models_call),
                cmocka_unit_test(what_people_write_meanwhile_reaches_the_turn),
                cmocka_unit_test(a_call_cut_off_by_the_output_limit_never_runs),
                cmocka_unit_test(the_output_limit_is_answered_twice),
                cmocka_unit_test(an_incomplete_call_and_an_unknown_tool_are_errors),
                cmocka_unit_test(the_name_of_a_kept_output_makes_no_difference),
                cmocka_unit_test(repeated_identical_calls_are_warned_about_and_stopped),
                cmocka_unit_test(the_same_error_stops_the_turn),
                cmocka_unit_test(rounds_are_limited),
                cmocka_unit_test(a_budget_is_checked_before_the_call),
                cmocka_unit_test(a_budget_is_checked_before_a_compaction),
                cmocka_unit_test(a_persons_budget_holds_across_turns_and_restarts),
                cmocka_unit_test(a_broken_call_is_tried_again),
                cmocka_unit_test(a_retry_that_fails_is_journaled_as_failed),
                cmocka_unit_test(an_empty_answer_is_asked_for_once),
                cmocka_unit_test(a_turn_that_another_process_has_is_left),
                cmocka_unit_test(a_failure_says_whether_others_may_take_over),
                cmocka_unit_test(a_refused_request_is_tried_without_images),
                cmocka_unit_test(a_full_window_is_compacted),
                cmocka_unit_test(a_full_window_is_not_compacted_if_that_is_off),
                cmocka_unit_test(a_window_that_fills_up_is_compacted_before_the_call),
                cmocka_unit_test(a_compaction_that_frees_little_ends_the_turn),
                cmocka_unit_test(a_summary_that_was_refused_is_not_used),
                cmocka_unit_test(schemas_of_tools_take_room_in_the_window),
                cmocka_unit_test(a_denied_call_is_a_result),
                cmocka_unit_test(a_person_decides_about_a_call),
                cmocka_unit_test(a_new_conversation_forgets_the_steps),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
