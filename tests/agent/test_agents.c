#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/agents_private.h"
#include "agent_rig.h"
#include "base/clock.h"
#include "base/json.h"

static void apply(struct agent_rig *b, const char *name, const char *type, const char *json)
{
        struct error err = { 0 };

        if (fake_apply(b->agents, name, type, json, &err) < 0)
                fail_msg("%s", err.text);
}

static void echo_repeats_the_message(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        apply(b, "e", "echo", "{\"prefix\": \"> \"}");
        fake_turn_init(&t, "e", "hello");
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "> hello");
        assert_int_equal(t.deltas, 0);
        fake_turn_release(&t);
}

static void a_streaming_echo_repeats_it_word_by_word(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        apply(b, "e", "echo", "{\"stream\": true}");
        fake_turn_init(&t, "e", "one two  three");
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_int_equal(t.deltas, 3);
        assert_string_equal(t.streamed.data, "one two  three");
        assert_string_equal(t.text, "one two  three");
        fake_turn_release(&t);
}

static void the_demo_agent_introduces_itself_and_explains_setup(void **state)
{
        struct agent_rig *b = *state;
        struct transcript_line before = {
                .role = "user", .name = "Ann", .text = "hi", .time_ms = 0
        };
        struct fake_turn t;

        apply(b, "d", "demo", "{\"wordMs\": 0, \"toolMs\": 1}");
        fake_turn_init(&t, "d", "good morning");
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_non_null(strstr(t.text, "demo agent"));
        assert_non_null(strstr(t.text, "You said: good morning"));
        assert_string_equal(t.text, t.streamed.data);
        fake_turn_release(&t);

        fake_turn_init(&t, "d", "again");
        t.run.history = &before;
        t.run.history_count = 1;
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_string_equal(t.text, "[demo] You said: again");
        fake_turn_release(&t);

        fake_turn_init(&t, "d", "help");
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_non_null(strstr(t.text, "ANTHROPIC_API_KEY"));
        assert_non_null(strstr(t.text, "config.json"));
        fake_turn_release(&t);
}

static void the_demo_agent_shows_progress_on_request(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        apply(b, "d", "demo", "{\"wordMs\": 0, \"toolMs\": 1}");
        fake_turn_init(&t, "d", "show me progress please");
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_int_equal(t.progresses, 3);
        assert_non_null(strstr(t.text, "counted 4 words"));
        fake_turn_release(&t);
}

static void a_cancelled_turn_reports_nothing(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        apply(b, "e", "echo", "{\"delayMs\": 5}");
        fake_turn_init(&t, "e", "hello");
        fake_turn_start(&t, b->agents);
        fake_turn_cancel(&t, b->agents);
        for (int i = 0; i < 100 && loop_step(b->loop, true); i++)
                ;
        assert_int_equal(t.finished, 0);
        fake_turn_release(&t);
}

static void a_turn_for_an_unknown_agent_fails_from_the_loop(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t, gone;

        assert_int_equal(agents_abilities(b->agents, "missing"), 0);
        fake_turn_init(&gone, "missing", "hello");
        fake_turn_init(&t, "missing", "hello");
        fake_turn_start(&gone, b->agents);
        fake_turn_start(&t, b->agents);
        fake_turn_cancel(&gone, b->agents);
        fake_turn_await(&t, b->loop);
        assert_int_equal(t.reply.kind, ERR_MISSING);
        assert_non_null(strstr(t.error, "missing"));
        assert_int_equal(gone.finished, 0);
        fake_turn_release(&t);
        fake_turn_release(&gone);
}

static void a_turn_finishes_on_the_agent_a_reload_replaced(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn old, new;

        apply(b, "e", "echo", "{\"prefix\": \"old \", \"delayMs\": 30}");
        fake_turn_init(&old, "e", "a");
        fake_turn_start(&old, b->agents);
        apply(b, "e", "echo", "{\"prefix\": \"new \"}");
        fake_turn_init(&new, "e", "b");
        fake_turn_start(&new, b->agents);
        fake_turn_await(&new, b->loop);
        fake_turn_await(&old, b->loop);
        assert_string_equal(new.text, "new b");
        assert_string_equal(old.text, "old a");
        fake_turn_release(&old);
        fake_turn_release(&new);
}

static void a_turn_on_a_replaced_agent_can_be_cancelled(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        apply(b, "e", "echo", "{\"delayMs\": 60000}");
        fake_turn_init(&t, "e", "a");
        fake_turn_start(&t, b->agents);
        assert_int_equal(agents_apply(b->agents, NULL, 0, NULL), 0);
        assert_false(agents_has(b->agents, "e"));
        fake_turn_cancel(&t, b->agents);
        for (int i = 0; i < 100 && loop_step(b->loop, false); i++)
                ;
        assert_int_equal(t.finished, 0);
        fake_turn_release(&t);
}

static void freeing_the_registry_drops_running_turns(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t, unknown;

        apply(b, "e", "echo", "{\"delayMs\": 60000}");
        fake_turn_init(&t, "e", "a");
        fake_turn_start(&t, b->agents);
        fake_turn_init(&unknown, "missing", "a");
        fake_turn_start(&unknown, b->agents);
        agents_free(b->agents);
        b->agents = NULL;
        assert_int_equal(t.finished, 0);
        fake_turn_release(&t);
        fake_turn_release(&unknown);
}

static void keep_agent(void *arg, const struct agent *a, const struct agent_health *h)
{
        struct agent_health *out = arg;

        assert_string_equal(a->name, "e");
        *out = *h;
}

static void a_reload_keeps_counters_and_unchanged_agents(void **state)
{
        struct agent_rig *b = *state;
        struct agent_health h = { 0 };
        struct fake_turn t;

        apply(b, "e", "echo", "{}");
        fake_turn_init(&t, "e", "a");
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        fake_turn_release(&t);
        apply(b, "e", "echo", "{}");
        apply(b, "e", "echo", "{\"prefix\": \"x\"}");
        agents_each(b->agents, keep_agent, &h);
        assert_int_equal(h.turns, 1);
        assert_int_equal(h.failures, 0);
        assert_false(h.known);
}

static void keep_health(void *arg, const struct agent_health *h)
{
        *(struct agent_health *)arg = *h;
}

static void an_agent_without_a_health_check_is_healthy(void **state)
{
        struct agent_rig *b = *state;
        struct agent_health h = { 0 };
        struct error err = { 0 };

        apply(b, "e", "echo", "{}");
        assert_int_equal(agents_check(b->agents, "missing", keep_health, &h, &err), -1);
        assert_int_equal(err.kind, ERR_MISSING);
        assert_int_equal(agents_check(b->agents, "e", keep_health, &h, &err), 0);
        assert_false(h.known);
        for (int i = 0; i < ROUNDS && !h.known; i++)
                loop_step(b->loop, true);
        assert_true(h.known);
        assert_true(h.healthy);
        assert_true(h.checked_ms > 0);
}

static void count_report(void *arg, const struct agent_health *h)
{
        (void)h;
        ++*(unsigned *)arg;
}

static void every_health_check_is_reported(void **state)
{
        struct agent_rig *b = *state;
        struct error err = { 0 };
        unsigned reports = 0;

        apply(b, "e", "echo", "{}");
        for (int i = 0; i < 2; i++)
                assert_int_equal(agents_check(b->agents, "e", count_report, &reports, &err), 0);
        for (int i = 0; i < ROUNDS && reports < 2; i++)
                loop_step(b->loop, false);
        assert_int_equal(reports, 2);
        assert_int_equal(agents_check(b->agents, "e", count_report, &reports, &err), 0);
        agents_free(b->agents);
        b->agents = NULL;
        assert_int_equal(reports, 3);
}

/* The secret is all zeros then. */
static void no_token_is_valid_before_the_secret_is_known(void **state)
{
        static const unsigned char zeros[SHA256_SIZE];
        struct agent_rig *b = *state;
        struct error err = { 0 };
        char token[REPLY_TOKEN_SIZE];

        reply_token_write(zeros, "trn-1", clock_wall_ms() / 1000 + 60, token);
        assert_int_equal(agents_check_token(b->agents, 1, token, &err), -1);
        assert_int_equal(err.kind, ERR_REFUSED);
}

static struct agent_conf *read_conf(const char *json, struct error *err)
{
        struct settings_source *src =
                settings_source_new("config.json", NULL, json, strlen(json), err);
        struct agent_conf *conf;
        const json_t *agents;

        assert_non_null(src);
        agents = json_object_get(settings_source_root(src), "agents");
        conf = agent_conf_read(src, "e", json_object_get(agents, "e"), err);
        settings_source_free(src);
        return conf;
}

static void configuration_errors_name_the_line(void **state)
{
        static const struct {
                const char *json, *expected;
        } rows[] = {
                { "{\"agents\": {\n\"e\": {\"type\": \"ehco\"}}}",
                  "config.json:2: agents.e.type: unknown type 'ehco' (did you mean 'echo'?)" },
                { "{\"agents\": {\n\"e\": {\"type\": \"zzzzzz\"}}}", "one of echo, demo" },
                { "{\"agents\": {\n\"e\": {}}}", "missing key 'type'" },
                { "{\"agents\": {\n\"e\": 7}}",
                  "expected an object such as { \"type\": \"echo\" }" },
                { "{\"agents\": {\n\"e\": {\"type\": \"echo\", \"delay\": 7}}}",
                  "unknown key 'delay'" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };

                assert_null(read_conf(rows[i].json, &err));
                if (!strstr(err.text, rows[i].expected))
                        fail_msg("got '%s', expected '%s'", err.text, rows[i].expected);
        }
}

static void a_valid_configuration_is_read(void **state)
{
        struct error err = { 0 };
        struct agent_conf *conf =
                read_conf("{\"agents\": {\"e\": {\"type\": \"echo\", \"stream\": true}}}", &err);

        (void)state;
        assert_non_null(conf);
        assert_string_equal(conf->name, "e");
        assert_string_equal(conf->ops->type, "echo");
        agent_conf_free(conf);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(echo_repeats_the_message, setup, teardown),
                cmocka_unit_test_setup_teardown(a_streaming_echo_repeats_it_word_by_word, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(the_demo_agent_introduces_itself_and_explains_setup,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(the_demo_agent_shows_progress_on_request, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_cancelled_turn_reports_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(a_turn_for_an_unknown_agent_fails_from_the_loop,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(a_turn_finishes_on_the_agent_a_reload_replaced,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(a_turn_on_a_replaced_agent_can_be_cancelled, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(freeing_the_registry_drops_running_turns, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_reload_keeps_counters_and_unchanged_agents, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(an_agent_without_a_health_check_is_healthy, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(every_health_check_is_reported, setup, teardown),
                cmocka_unit_test_setup_teardown(no_token_is_valid_before_the_secret_is_known, setup,
                                                teardown),
                cmocka_unit_test(configuration_errors_name_the_line),
                cmocka_unit_test(a_valid_configuration_is_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
