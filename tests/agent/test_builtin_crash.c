/* Random turns of the built-in agent with random restarts: nothing runs twice, nothing is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop_rig.h"

#define SEEDS    30
#define ROUNDS   6
#define RESTARTS 12

static uint64_t dice;

static unsigned roll(unsigned sides)
{
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        return (unsigned)(dice >> 33) % sides;
}

static void make_script(struct said *script)
{
        static const char *const calls[] = { "peek", "poke", "poke poke", "peek poke poke peek" };
        unsigned n = 1 + roll(ROUNDS - 1);

        for (unsigned i = 0; i < n; i++)
                script[i] = (struct said){ .calls = calls[roll(4)],
                                           .text = roll(2) ? "thinking aloud" : NULL,
                                           .tokens = 10,
                                           .cost = 1 };
        script[n] = (struct said){ .text = "the end", .tokens = 10, .cost = 1, .repeats = true };
}

/* Each result that is stored is in the last request exactly once. */
static void check_results(struct loop_rig *r)
{
        json_t *messages = json_read(r->last.data, r->last.len, NULL);
        struct map seen;
        const json_t *m;
        size_t i, results = 0;

        map_init(&seen);
        json_array_foreach(messages, i, m) {
                if (strcmp(json_str(m, "role", ""), "toolResult") != 0)
                        continue;
                results++;
                assert_null(map_put(&seen, json_str(m, "toolCallId", ""), r));
        }
        assert_int_equal(results, rig_count(r->road, "steps WHERE kind = 'tool_done'"));
        map_release(&seen);
        json_decref(messages);
}

static void run_seed(unsigned seed)
{
        struct said script[ROUNDS + 1] = { 0 };
        unsigned restarts = 0;
        struct loop_rig *r;
        const char *call;
        void *runs;

        dice = seed;
        make_script(script);
        r = loop_rig_new(script);
        r->road->limits.turn_attempts = RESTARTS + 1;
        road_set_limits(r->road->road, &r->road->limits);
        loop_rig_say(r, "go");
        while (r->done == 0) {
                r->tools_hang = restarts < RESTARTS && roll(3) == 0;
                for (unsigned i = roll(40); i > 0 && r->done == 0; i--)
                        loop_step(r->road->loop, false);
                if (r->done == 0 && restarts < RESTARTS) {
                        restarts++;
                        loop_rig_restart(r);
                } else {
                        r->tools_hang = false;
                        rig_until(r->road, &r->done, 1);
                }
        }
        rig_until_idle(r->road);
        assert_string_equal(rig_text(r->road, "state FROM turns"), "done");
        assert_string_equal(rig_text(r->road, "text FROM transcript WHERE role = 'assistant'"),
                            "the end");
        for (size_t i = 0; map_each(&r->runs, &i, &call, &runs);)
                assert_int_equal((intptr_t)runs, 1);
        check_results(r);
        /* the cost of all attempts */
        assert_int_equal(rig_number(r->road, "cost_microusd FROM turns"),
                         rig_number(r->road, "sum(cost_microusd) FROM steps"));
        loop_rig_free(r);
}

static void random_turns_survive_random_restarts(void **state)
{
        (void)state;
        for (unsigned seed = 1; seed <= SEEDS; seed++)
                run_seed(seed);
}

/* ---- messages of any rows ---- */

static void add_random_step(struct steps *s, int64_t id)
{
        static const char *const names[] = { "peek", "poke" };
        struct step step = { .id = id, .turn = 1 + roll(3), .kind = (enum step_kind)roll(5) };
        char text[40];

        switch (step.kind) {
        case STEP_ASSISTANT:
                step.body = json_pack("{s:s, s:[]}", "role", "assistant", "content");
                if (roll(2))
                        json_array_append_new(json_object_get(step.body, "content"),
                                              json_pack("{s:s, s:s}", "type", "text", "text",
                                                        roll(4) ? "words" : " \n"));
                for (unsigned i = roll(3); i > 0; i--) {
                        snprintf(text, sizeof(text), "c%lld_%u", (long long)id, i);
                        json_array_append_new(json_object_get(step.body, "content"),
                                              json_pack("{s:s, s:s, s:s, s:{}}", "type", "toolCall",
                                                        "id", text, "name", names[roll(2)],
                                                        "arguments"));
                }
                break;
        case STEP_TOOL_STARTED:
        case STEP_TOOL_DONE: /* of any earlier call, or none */
                snprintf(text, sizeof(text), "%u.%u", roll((unsigned)id + 2), roll(3));
                step.call = mem_strdup(text);
                step.body = json_pack("{s:s, s:[{s:s, s:s}]}", "role", "toolResult", "content",
                                      "type", "text", "text", roll(3) ? "out" : "");
                break;
        case STEP_COMPACTION:
                step.first_kept = 1 + roll((unsigned)id);
                step.body = json_pack("{s:s}", "summary", "so far");
                break;
        default:
                step.body = json_pack("{s:s, s:[{s:s, s:s}]}", "role", "user", "content", "type",
                                      "text", "text", roll(5) ? "hello" : "");
        }
        steps_add(s, &step);
}

static void messages_of_any_rows_are_accepted(void **state)
{
        (void)state;
        for (unsigned seed = 1; seed <= 5000; seed++) {
                struct steps s = { 0 };
                struct error err = { 0 };
                json_t *messages;

                dice = seed;
                for (int64_t id = 1; id <= 1 + (int64_t)roll(20); id++)
                        add_random_step(&s, id);
                steps_add(&s, &(struct step){ .id = 100,
                                              .turn = 4,
                                              .kind = STEP_USER,
                                              .body = json_pack("{s:s, s:[{s:s, s:s}]}", "role",
                                                                "user", "content", "type", "text",
                                                                "text", "and now?") });
                messages = steps_messages(&s, roll(2));
                if (model_check(messages, &err) < 0)
                        fail_msg("seed %u: %s", seed, err.text);
                json_decref(messages);
                steps_release(&s);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_turns_survive_random_restarts),
                cmocka_unit_test(messages_of_any_rows_are_accepted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
