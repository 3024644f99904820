/* When a run of pi or omp has ended, whatever the order of what they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/patience.h"
#include "base/clock.h"
#include "fake_child.h"

static struct loop *loop;

static int open_loop(void **state)
{
        (void)state;
        loop = loop_new();
        return 0;
}

static int close_loop(void **state)
{
        (void)state;
        loop_free(loop);
        return 0;
}

static void says(struct child *c, const char *line)
{
        fake_child_line(c, line, strlen(line));
}

/* What it was sent since, without ids: "get_state prompt". */
static const char *sent(struct child *c)
{
        static char types[400];
        char *line = c->sent.data;

        types[0] = '\0';
        while (*line) {
                char *end = strchr(line, '\n');
                json_t *m = json_read(line, (size_t)(end - line), NULL);

                snprintf(types + strlen(types), sizeof(types) - strlen(types), "%s%s",
                         *types ? " " : "", json_str(m, "type", ""));
                json_decref(m);
                line = end + 1;
        }
        buf_clear(&c->sent);
        return types;
}

static const char *told(struct child *c)
{
        static char text[1000];

        snprintf(text, sizeof(text), "%s", c->told.data);
        buf_clear(&c->told);
        return text;
}

static void answers_to(struct child *c, int id, const char *members)
{
        char *line = mem_printf("{\"id\":\"%d\",\"type\":\"response\",%s}", id, members);

        says(c, line);
        free(line);
}

/* Answers the last command. */
static void answers(struct child *c, const char *members)
{
        answers_to(c, (int)c->state.commands.last, members);
}

#define GOOD "\"success\":true"
#define IDLE GOOD ",\"data\":{\"isStreaming\":false,\"messageCount\":0}"
#define BUSY GOOD ",\"data\":{\"isStreaming\":true}"

/* It waits for a prompt. */
static struct child *ready_child(const char *type)
{
        struct child *c = fake_child_new(loop, type);

        if (strcmp(type, "omp") == 0) {
                assert_string_equal(sent(c), "");
                says(c, "{\"type\":\"ready\",\"supportedProtocolVersions\":[1,2]}");
                assert_string_equal(sent(c), "negotiate_protocol get_state");
        } else {
                assert_string_equal(sent(c), "get_state");
        }
        answers(c, IDLE);
        assert_string_equal(told(c), "ready 0\n");
        return c;
}

/* It works on a turn. */
static struct child *running_child(const char *type)
{
        struct child *c = ready_child(type);

        fake_child_prompt(c);
        assert_string_equal(sent(c), "prompt");
        answers(c, GOOD);
        says(c, "{\"type\":\"agent_start\"}");
        return c;
}

static void until_sent(struct child *c)
{
        int64_t deadline = clock_mono_ms() + PATIENCE_MS;

        while (c->sent.len == 0) {
                assert_true(clock_mono_ms() < deadline);
                loop_step(loop, true);
        }
}

static void a_session_that_exists_is_resumed(void **state)
{
        struct child *c = fake_child_new(loop, "pi");

        (void)state;
        answers(c, GOOD ",\"data\":{\"messageCount\":4}");
        assert_string_equal(told(c), "ready 1\n");
        fake_child_free(c);
        c = fake_child_new(loop, "pi");
        answers(c, "\"success\":false,\"error\":\"no\"");
        assert_string_equal(told(c), "refused no\n");
        fake_child_free(c);
}

static void a_settled_run_is_over(void **state)
{
        struct child *c = running_child("pi");

        (void)state;
        says(c, "{\"type\":\"agent_end\",\"messages\":[],\"willRetry\":true}");
        says(c, "{\"type\":\"agent_start\"}");
        says(c, "{\"type\":\"agent_end\",\"messages\":[],\"willRetry\":false}");
        assert_int_equal(c->overs, 0);
        says(c, "{\"type\":\"agent_settled\"}");
        assert_string_equal(told(c), "over 0\n");
        /* of the last run, and late */
        fake_child_prompt(c);
        says(c, "{\"type\":\"agent_settled\"}");
        assert_int_equal(c->overs, 1);
        fake_child_free(c);
        c = running_child("omp");
        says(c, "{\"type\":\"agent_end\",\"isTerminal\":false}");
        assert_int_equal(c->overs, 0);
        says(c, "{\"type\":\"agent_end\",\"isTerminal\":true}");
        assert_int_equal(c->overs, 1);
        says(c, "{\"type\":\"agent_end\",\"isTerminal\":true}");
        assert_int_equal(c->overs, 1);
        fake_child_free(c);
}

static void an_old_program_is_asked_whether_it_goes_on(void **state)
{
        struct child *c = running_child("pi");

        (void)state;
        sent(c);
        says(c, "{\"type\":\"agent_end\",\"messages\":[]}");
        until_sent(c);
        assert_string_equal(sent(c), "get_state");
        answers(c, GOOD ",\"data\":{\"isCompacting\":true}");
        assert_int_equal(c->overs, 0);
        until_sent(c);
        answers(c, IDLE);
        assert_int_equal(c->overs, 1);
        fake_child_free(c);
}

static void messages_on_their_way_hold_the_end(void **state)
{
        struct child *c = running_child("pi");

        (void)state;
        sent(c);
        rpc_child_dialect.steer(c, "more", false);
        assert_non_null(strstr(c->sent.data, "\"streamingBehavior\":\"steer\""));
        assert_string_equal(sent(c), "prompt");
        says(c, "{\"type\":\"agent_settled\"}");
        assert_int_equal(c->overs, 0);
        answers(c, GOOD); /* it came too late, and begins a run */
        says(c, "{\"type\":\"agent_start\"}");
        says(c, "{\"type\":\"agent_settled\"}");
        assert_string_equal(sent(c), "get_state");
        answers(c, BUSY);
        assert_int_equal(c->overs, 0);
        says(c, "{\"type\":\"agent_settled\"}");
        answers(c, IDLE);
        assert_int_equal(c->overs, 1);
        fake_child_free(c);
}

static void a_message_behind_the_question_whether_it_runs_holds_the_end(void **state)
{
        struct child *c = running_child("pi");
        int asked;

        (void)state;
        rpc_child_dialect.steer(c, "more", false);
        answers(c, GOOD);
        sent(c);
        says(c, "{\"type\":\"agent_settled\"}");
        assert_string_equal(sent(c), "get_state");
        asked = (int)c->state.commands.last;
        rpc_child_dialect.steer(c, "late", false);
        assert_string_equal(sent(c), "prompt");
        answers_to(c, asked, IDLE); /* it has not read the message yet */
        assert_int_equal(c->overs, 0);
        answers(c, GOOD);
        says(c, "{\"type\":\"agent_start\"}");
        says(c, "{\"type\":\"agent_settled\"}");
        assert_string_equal(sent(c), "get_state");
        answers(c, IDLE);
        assert_int_equal(c->overs, 1);
        fake_child_free(c);
}

static void a_refused_message_is_told(void **state)
{
        struct child *c = running_child("pi");

        (void)state;
        rpc_child_dialect.steer(c, "more", false);
        answers(c, "\"success\":false,\"error\":\"queue is full\"");
        says(c, "{\"type\":\"agent_settled\"}");
        answers(c, IDLE);
        assert_string_equal(told(c), "over 0 The agent did not take a message: queue is full\n");
        fake_child_free(c);
}

static void omp_refuses_what_it_accepted(void **state)
{
        struct child *c = ready_child("omp");

        (void)state;
        fake_child_prompt(c);
        answers(c, GOOD);
        answers(c, "\"success\":false,\"error\":\"no key\"");
        assert_string_equal(told(c), "over 8 The agent failed: no key\n");
        fake_child_prompt(c);
        answers(c, GOOD);
        says(c, "{\"type\":\"prompt_result\",\"id\":\"3\",\"agentInvoked\":false}"); /* another's */
        assert_int_equal(c->overs, 1);
        says(c, "{\"type\":\"prompt_result\",\"id\":\"4\",\"status\":\"error\",\"error\":\"e\"}");
        assert_string_equal(told(c), "over 8 The agent failed: e\n");
        fake_child_free(c);
}

static void a_prompt_without_a_run_is_noticed(void **state)
{
        struct child *c = ready_child("pi");

        (void)state;
        fake_child_prompt(c);
        says(c, "{\"type\":\"extension_ui_request\",\"method\":\"notify\",\"message\":\"done\"}");
        sent(c);
        answers(c, GOOD);
        until_sent(c);
        assert_string_equal(sent(c), "get_state");
        answers(c, IDLE);
        assert_string_equal(told(c), "progress done\ntext done\nover 0\n");
        fake_child_prompt(c);
        answers(c, GOOD ",\"data\":{\"disposition\":\"handled\"}");
        assert_int_equal(c->overs, 2);
        fake_child_free(c);
}

static void an_abort_is_repeated_while_it_runs(void **state)
{
        struct child *c = running_child("pi");

        (void)state;
        sent(c);
        fake_child_cancel(c);
        assert_string_equal(sent(c), "clear_queue abort");
        says(c, "{\"type\":\"agent_settled\",\"aborted\":true}");
        assert_int_equal(c->overs, 0);
        answers(c, GOOD);
        assert_string_equal(sent(c), "get_state");
        answers(c, BUSY);
        assert_string_equal(sent(c), "clear_queue abort");
        answers(c, GOOD);
        answers(c, IDLE);
        assert_int_equal(c->overs, 1);
        fake_child_free(c);
        c = running_child("omp");
        sent(c);
        fake_child_cancel(c);
        assert_string_equal(sent(c), "abort");
        fake_child_free(c);
}

static void a_run_by_itself_is_a_late_reply(void **state)
{
        struct child *c = running_child("omp");

        (void)state;
        says(c, "{\"type\":\"agent_end\"}");
        told(c);
        says(c, "{\"type\":\"agent_start\"}");
        says(c,
             "{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"content\":\"one\"}}");
        says(c,
             "{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"content\":\"two\"}}");
        says(c, "{\"type\":\"agent_end\"}");
        assert_string_equal(told(c), "late 1 two\n");
        /* a turn that comes meanwhile joins it */
        says(c, "{\"type\":\"agent_start\"}");
        sent(c);
        fake_child_prompt(c);
        assert_string_equal(sent(c), "prompt");
        says(c, "{\"type\":\"agent_end\"}");
        assert_int_equal(c->overs, 1);
        answers(c, GOOD);
        says(c, "{\"type\":\"agent_start\"}");
        says(c, "{\"type\":\"agent_end\"}");
        answers(c, IDLE);
        assert_int_equal(c->overs, 2);
        fake_child_free(c);
}

/* Its files are being read when the run that began by itself ends. */
static void a_turn_that_was_not_sent_yet_outlives_such_a_run(void **state)
{
        static const char spoke[] = "{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\","
                                    "\"content\":\"one\"}}";
        struct child *c = running_child("omp");

        (void)state;
        says(c, "{\"type\":\"agent_end\"}");
        told(c);
        says(c, "{\"type\":\"agent_start\"}");
        sent(c);
        c->holds_files = true;
        fake_child_prompt(c);
        says(c, spoke);
        says(c, "{\"type\":\"extension_ui_request\",\"id\":\"q\",\"method\":\"input\"}");
        assert_string_equal(sent(c), "extension_ui_response"); /* nobody can answer it */
        says(c, "{\"type\":\"agent_end\"}");
        assert_string_equal(told(c), "late 1 one\n");
        assert_int_equal(c->overs, 1);
        fake_child_files(c);
        assert_string_equal(sent(c), "prompt");
        answers(c, GOOD);
        says(c, "{\"type\":\"agent_start\"}");
        says(c, "{\"type\":\"agent_end\"}");
        assert_int_equal(c->overs, 2);
        fake_child_free(c);
}

static void a_state_from_before_the_prompt_does_not_end_its_turn(void **state)
{
        struct child *c = running_child("pi");
        int asked;

        (void)state;
        sent(c);
        says(c, "{\"type\":\"agent_end\",\"messages\":[]}");
        until_sent(c);
        assert_string_equal(sent(c), "get_state");
        asked = (int)c->state.commands.last;
        says(c, "{\"type\":\"agent_settled\"}");
        assert_int_equal(c->overs, 1);
        fake_child_prompt(c);
        answers_to(c, asked, IDLE); /* it has not read the prompt yet */
        assert_int_equal(c->overs, 1);
        answers(c, GOOD);
        says(c, "{\"type\":\"agent_start\"}");
        says(c, "{\"type\":\"agent_settled\"}");
        assert_int_equal(c->overs, 2);
        fake_child_free(c);
}

static void too_many_questions_are_cancelled(void **state)
{
        struct child *c = running_child("pi");
        unsigned cancelled = 0;

        (void)state;
        sent(c);
        for (int i = 0; i < RPC_DIALOGS_MAX + 2; i++) {
                char *line =
                        mem_printf("{\"type\":\"extension_ui_request\",\"id\":\"q%d\",\"method\":"
                                   "\"confirm\",\"title\":\"t\"}",
                                   i);

                says(c, line);
                free(line);
        }
        for (const char *at = c->sent.data; (at = strstr(at, "\"cancelled\":true")); at++)
                cancelled++;
        assert_int_equal(cancelled, 2);
        sent(c);
        c->answer(c->answer_arg, true, NULL);
        assert_string_equal(c->sent.data, "{\"type\":\"extension_ui_response\",\"id\":\"q31\","
                                          "\"confirmed\":true}\n");
        buf_clear(&c->sent);
        says(c, "{\"type\":\"agent_settled\"}");
        assert_string_equal(sent(c), ""); /* the program answered the others itself */
        says(c, "{\"type\":\"extension_ui_request\",\"id\":\"x\",\"method\":\"confirm\"}");
        assert_string_equal(c->sent.data, "{\"type\":\"extension_ui_response\",\"id\":\"x\","
                                          "\"cancelled\":true}\n");
        fake_child_free(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_session_that_exists_is_resumed),
                cmocka_unit_test(a_settled_run_is_over),
                cmocka_unit_test(an_old_program_is_asked_whether_it_goes_on),
                cmocka_unit_test(messages_on_their_way_hold_the_end),
                cmocka_unit_test(a_message_behind_the_question_whether_it_runs_holds_the_end),
                cmocka_unit_test(a_refused_message_is_told),
                cmocka_unit_test(omp_refuses_what_it_accepted),
                cmocka_unit_test(a_prompt_without_a_run_is_noticed),
                cmocka_unit_test(an_abort_is_repeated_while_it_runs),
                cmocka_unit_test(a_run_by_itself_is_a_late_reply),
                cmocka_unit_test(a_turn_that_was_not_sent_yet_outlives_such_a_run),
                cmocka_unit_test(a_state_from_before_the_prompt_does_not_end_its_turn),
                cmocka_unit_test(too_many_questions_are_cancelled),
        };

        return cmocka_run_group_tests(tests, open_loop, close_loop);
}
