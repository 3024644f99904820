/* What is known of a model, and what a call costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/scratch.h"
#include "agent/llm/model_facts.h"
#include "model_rig.h"

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"

static void await_answer(struct model_rig *r)
{
        for (int i = 0; i < ROUNDS && http_client_active(r->http) > 0; i++)
                loop_step(r->loop, true);
        assert_int_equal(http_client_active(r->http), 0);
}

static void the_service_describes_its_model(void **state)
{
        static const struct fake_answer script[] = {
                { HEAD
                  "{\"type\":\"model\",\"id\":\"claude-next-20270101\",\"max_input_tokens\":500000,"
                  "\"max_tokens\":9000,\"capabilities\":{\"image_input\":{\"supported\":false},"
                  "\"pdf_input\":{\"supported\":true},\"thinking\":{\"supported\":true,\"types\":"
                  "{\"adaptive\":{\"supported\":false},\"enabled\":{\"supported\":true}}}}}",
                  .end = FAKE_CLOSE },
        };
        struct model_rig *r = *state;
        struct llm *m = model_rig_serve(r, &anthropic_wire, "claude-next", script, 1);
        struct model_limits l;

        model_limits(m, &l);
        assert_false(l.known);
        assert_int_equal(fake_server_requests(r->server), 0);
        model_learn(m);
        model_learn(m);
        await_answer(r);
        assert_int_equal(fake_server_requests(r->server), 1);
        assert_non_null(
                strstr(fake_server_request(r->server, 0), "GET /v1/v1/models/claude-next "));
        model_limits(m, &l);
        assert_true(l.known);
        assert_int_equal(l.window, 500000);
        assert_int_equal(l.output, 9000);
        assert_false(l.images);
        assert_true(l.documents);
        assert_true(l.thinking);
        assert_false(l.adaptive);
        r->conf.window = 1000;
        model_limits(m, &l);
        assert_int_equal(l.window, 1000);
        r->conf.window = 0;
}

static void lists_of_models_are_read(void **state)
{
        static const struct {
                const char *entry;
                int64_t window, output;
                int images;
                double in, cached;
        } rows[] = {
                { "{'id':'x/y','context_length':131072,"
                  "'top_provider':{'max_completion_tokens':8192},"
                  "'architecture':{'input_modalities':['text','image']},'pricing':{'prompt':"
                  "'0.000003','completion':'0.000015','input_cache_read':'0.0000003'}}",
                  131072, 8192, 1, 3, 0.3 },
                { "{'id':'x/y','max_model_len':40960}", 40960, -1, -1, -1, -1 },        /* vLLM */
                { "{'id':'x/y','context_window':131072,'max_completion_tokens':32768}", /* Groq */
                  131072, 32768, -1, -1, -1 },
                { "{'id':'x/y','meta':{'n_ctx_train':4096}}", 4096, -1, -1, -1,
                  -1 }, /* llama.cpp */
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *text = mem_printf("{'data':[{'id':'other','context_length':1},null,%s]}",
                                        rows[i].entry);
                json_t *answer = json_of(text);
                struct model_row row;

                assert_true(model_facts_read(&openai_wire, "x/y", answer, &row));
                assert_int_equal(row.window, rows[i].window);
                assert_int_equal(row.output, rows[i].output);
                assert_int_equal(row.images, rows[i].images);
                assert_true(row.prices.in > rows[i].in - 0.001 &&
                            row.prices.in < rows[i].in + 0.001);
                assert_false(model_facts_read(&openai_wire, "nobody", answer, &row));
                json_decref(answer);
                free(text);
        }
}

static void a_service_that_says_nothing_is_no_problem(void **state)
{
        static const struct fake_answer script[] = {
                { "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n" }
        };
        struct model_rig *r = *state;
        struct llm *m = model_rig_serve(r, &openai_wire, "gpt-5-2025-08-07", script, 1);
        struct model_limits l;

        model_learn(m);
        await_answer(r);
        model_limits(m, &l);
        assert_int_equal(l.window, 400000);
        assert_int_equal(l.output, 32000); /* enough for an answer, far below the limit */
        r->conf.max_tokens = 100000;
        model_limits(m, &l);
        assert_int_equal(l.output, 100000);
        r->conf.max_tokens = 200000;
        model_limits(m, &l);
        assert_int_equal(l.output, 128000);
        assert_true(l.prices.in > 1.24 && l.prices.in < 1.26);
}

static void an_unanswered_question_ends_with_the_agent(void **state)
{
        static const struct fake_answer script[] = { { NULL } };
        struct model_rig *r = *state;

        model_learn(model_rig_serve(r, &openai_wire, "m", script, 1));
        model_rig_stop(r);
        assert_int_equal(http_client_active(r->http), 0);
}

static const char table[] =
        "{\"m\": {\"in\": 1, \"out\": 2, \"window\": 100},"
        " \"m-large\": {\"in\": 2, \"out\": 8, \"cacheRead\": 0.2, \"cacheWrite5m\": 2.5,"
        "  \"cacheWrite1h\": 4, \"window\": 500000, \"maxOut\": 1000, \"images\": false,"
        "  \"tiers\": [{\"above\": 272000, \"in\": 4, \"out\": 16, \"cacheRead\": 0.4}]}}";

static void a_table_of_the_operator_precedes(void **state)
{
        struct model_rig *r = *state;
        char *dir = scratch_new(), *path = scratch_path(dir, "models.json");
        struct usage u = { .in = 100000, .out = 1000, .cached = 90000 };
        struct model_limits l;
        struct llm *m;

        scratch_put(dir, "models.json", table);
        r->conf.price_table = path;
        m = model_rig_serve(r, &openai_wire, "m-large-2027", NULL, 0);
        model_limits(m, &l);
        assert_int_equal(l.window, 500000);
        assert_int_equal(l.output, 1000);
        assert_false(l.images);
        assert_int_equal(usage_cost(&u, &l.prices), 20000 + 18000 + 8000);
        u.in = 300000; /* the whole request at the higher rate */
        assert_int_equal(usage_cost(&u, &l.prices), 210000 * 4 + 36000 + 16000);
        r->conf.price_table = NULL;
        free(path);
        scratch_free(dir);
}

static void mistakes_in_a_table_are_named(void **state)
{
        static const struct {
                const char *text, *expected;
        } rows[] = {
                { "[]", "not an object with models as keys" },
                { "{\"m\": 1}", "model 'm': not an object" },
                { "{\"m\": {\"in\": 1}}", "model 'm': 'in' and 'out' belong together" },
                { "{\"m\": {\"in\": -1, \"out\": 1}}",
                  "'in' must be US dollars per million tokens" },
                { "{\"m\": {\"price\": 1}}", "unknown key 'price' (in, out, cacheRead" },
                { "{\"m\": {\"window\": \"big\"}}", "'window' must be a number of tokens" },
                { "{\"m\": {\"images\": 1}}", "'images' must be true or false" },
                { "{\"m\": {\"tiers\": [{\"in\": 1, \"out\": 1}]}}", "'tiers' needs 'above'" },
                { "{\"m\"", "line 1" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };

                assert_int_equal(
                        model_table_read(rows[i].text, strlen(rows[i].text), NULL, NULL, &err), -1);
                if (!strstr(err.text, rows[i].expected))
                        fail_msg("'%s' is not in '%s'", rows[i].expected, err.text);
        }
}

static void an_estimate_counts_messages_system_and_tools(void **state)
{
        json_t *messages =
                json_of("[{'role':'user','content':[{'type':'image','data':'x'},"
                        "{'type':'text','text':'0123456789012345678901234567890123'}]}]");
        json_t *tools = json_of("[{'name':'read','description':'0123456789012345678901'}]");
        struct model_request q = { .messages = messages };

        (void)state;
        assert_int_equal(model_estimate(messages), 1600 + 10);
        assert_int_equal(model_estimate_request(&q), 1610 + 1 + 1);
        q.system = "0123456789012345678901234567890123";
        assert_int_equal(model_estimate_request(&q), 1610 + 10 + 1);
        q.tools = tools;
        assert_int_equal(model_estimate_request(&q), 1610 + 10 + 17);
        json_decref(messages);
        json_decref(tools);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(the_service_describes_its_model),
                T(lists_of_models_are_read),
                T(a_service_that_says_nothing_is_no_problem),
                T(an_unanswered_question_ends_with_the_agent),
                T(a_table_of_the_operator_precedes),
                T(mistakes_in_a_table_are_named),
                T(an_estimate_counts_messages_system_and_tools),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
