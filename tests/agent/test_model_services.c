/*
 * Asking a model of the simulated services, which refuse what the real ones refuse: whole
 * conversations with tools and thinking, on every wire, also when model or wire change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "model_rig.h"
#include "sim/llm/lm_control.h"
#include "sim/llm/lm_world.h"

#define MAX_ROUNDS 12

struct services {
        struct model_rig *rig;
        struct world *world;
        struct http_server *server;
};

static int open_services(void **state)
{
        struct http_server_options options = { .listen = "127.0.0.1:0" };
        struct services *s = mem_zalloc(sizeof(*s));
        void *rig;

        setup(&rig);
        s->rig = rig;
        s->rig->conf.key = secret_new("sk-sim", 6);
        s->world = lm_world_new(s->rig->loop);
        s->world->base.quiet = true;
        s->world->base.limits = false;
        lm_world_add_key(s->world, "sk-sim");
        s->server = http_server_new(s->rig->loop, &options, lm_control_routes,
                                    lm_control_route_count, NULL, s->world, NULL);
        assert_non_null(s->server);
        *state = s;
        return 0;
}

static int close_services(void **state)
{
        struct services *s = *state;
        void *rig = s->rig;

        model_rig_stop(s->rig);
        secret_free(s->rig->conf.key);
        http_client_free(s->rig->http);
        s->rig->http = NULL;
        lm_world_free(s->world);
        http_server_free(s->server);
        teardown(&rig);
        free(s);
        return 0;
}

static const struct {
        const struct llm_wire *wire;
        const char *model;
        bool hides; /* its thinking */
        const char *server;
} models[] = {
        { &anthropic_wire, "claude-opus-5-5" },
        { &anthropic_wire, "claude-sonnet-4-5" },
        { &anthropic_wire, "claude-haiku-5-5" },
        { &openai_wire, "gpt-5.4", .hides = true },
        { &responses_wire, "gpt-5.4" },
        { &responses_wire, "gpt-5.6-sol" },
        { &openai_wire, "deepseek-v4-flash", .server = "deepseek" },
        { &anthropic_wire, "claude-sonnet-5-5" },
};

/* Chooses a model; the conversation stays. */
static void choose(struct services *s, size_t i)
{
        const struct llm_wire *wire = models[i].wire;
        struct model_rig *r = s->rig;

        if (r->agent.self)
                llm_close(&r->agent);
        free(r->conf.base_url);
        r->conf.base_url = mem_printf("http://%s%s", http_server_address(s->server),
                                      wire == &anthropic_wire ? "" : "/v1");
        r->conf.server = (char *)(models[i].server ? models[i].server : "openai");
        llm_open(&r->agent, wire, models[i].model);
}

static void begin(struct services *s, const char *text)
{
        struct model_rig *r = s->rig;

        json_decref(r->q.messages);
        json_decref(r->q.tools);
        r->q = (struct model_request){
                .system = "Be kind.",
                .messages = json_pack("[{s:s,s:[{s:s,s:s}]}]", "role", "user", "content", "type",
                                      "text", "text", text),
                .tools = json_of("[{'name':'bash','description':'runs a command','parameters':{"
                                 "'type':'object','properties':{'label':{'type':'string'},"
                                 "'command':{'type':'string'}},'required':['label','command']}}]"),
                .max_tokens = 8000,
                .thinking = THINKING_MEDIUM,
                .cache_key = "conversation",
        };
}

static void add_user(struct services *s, const char *text)
{
        json_array_append_new(s->rig->q.messages,
                              json_pack("{s:s,s:[{s:s,s:s}]}", "role", "user", "content", "type",
                                        "text", "text", text));
}

static void ask(struct services *s)
{
        model_rig_ask(s->rig);
        if (s->rig->answer.failure)
                fail_msg("%s", s->rig->record.data);
        assert_int_equal(s->world->base.invalid_count, 0);
}

/* Keeps the answer and adds a result for each of its calls; returns how many. */
static int run_calls(struct services *s)
{
        json_t *messages = s->rig->q.messages, *block;
        int count = 0;
        size_t i;

        json_array_append(messages, s->rig->message);
        json_array_foreach(json_object_get(s->rig->message, "content"), i, block) {
                if (strcmp(json_str(block, "type", ""), "toolCall") != 0)
                        continue;
                json_array_append_new(
                        messages, json_pack("{s:s,s:s,s:s,s:[{s:s,s:s}],s:b}", "role", "toolResult",
                                            "toolCallId", json_str(block, "id", ""), "toolName",
                                            json_str(block, "name", ""), "content", "type", "text",
                                            "text", "done", "isError", count % 2));
                count++;
        }
        return count;
}

/* Asks until the model is finished; returns the number of calls it made. */
static int finish(struct services *s)
{
        int calls = 0;

        for (int round = 0; round < MAX_ROUNDS; round++) {
                ask(s);
                calls += run_calls(s);
                if (s->rig->answer.stop == MODEL_ENDED)
                        return calls;
                assert_int_equal(s->rig->answer.stop, MODEL_CALLS);
        }
        fail_msg("the model did not finish");
        return -1;
}

#define PLAN                                                                             \
        "think First this.\nthink And that.\nsay I begin.\ncalls 3 bash "                \
        "{\"command\":\"echo {n}\"}\nuse bash: two\nthink Once more.\nuse bash: three\n" \
        "think So.\nsay Done."

/* The conversation has thinking in it that goes back with each request. */
static bool has_thinking(struct services *s)
{
        char *text = json_text(s->rig->q.messages);
        bool has = strstr(text, "\"thinkingSignature\"") != NULL;

        free(text);
        return has;
}

static void a_conversation_with_tools_is_never_refused(void **state)
{
        struct services *s = *state;

        for (size_t i = 0; i < COUNT(models); i++) {
                for (int stream = 0; stream < 2; stream++) {
                        s->rig->conf.stream = stream;
                        choose(s, i);
                        begin(s, PLAN);
                        assert_int_equal(finish(s), 5);
                        assert_int_equal(has_thinking(s), !models[i].hides);
                        add_user(s, PLAN); /* a second turn */
                        assert_int_equal(finish(s), 5);
                }
        }
}

static void a_conversation_goes_on_with_another_model(void **state)
{
        struct services *s = *state;

        begin(s, PLAN);
        for (size_t i = 0; i < COUNT(models); i++) {
                choose(s, i);
                assert_int_equal(finish(s), 5);
                add_user(s, PLAN);
        }
        begin(s, PLAN); /* also in the middle of its calls */
        for (size_t i = 0; i < COUNT(models) && i < 3; i++) {
                choose(s, 2 * i);
                ask(s);
                run_calls(s);
        }
}

static void the_second_request_reads_the_cache(void **state)
{
        struct services *s = *state;
        char *system = mem_alloc(20001);

        memset(system, 'x', 20000);
        system[20000] = '\0';
        for (size_t i = 0; i < COUNT(models); i++) {
                choose(s, i);
                begin(s, "use bash: one");
                s->rig->q.system = system;
                ask(s);
                assert_int_equal(s->rig->answer.usage.cached, 0);
                run_calls(s);
                ask(s);
                assert_true(s->rig->answer.usage.cached > 4000);
        }
        free(system);
}

static void control(struct services *s, const char *request)
{
        json_t *value = json_of(request);

        assert_int_equal(faults_add(&s->world->base.faults, value, NULL), 0);
        json_decref(value);
}

static void a_cut_answer_is_a_failure_at_any_byte(void **state)
{
        struct services *s = *state;

        s->rig->conf.retries = 0;
        for (size_t i = 0; i < COUNT(models); i++) {
                choose(s, i);
                for (int at = 0; at < 1500; at += 131) {
                        char request[64];

                        snprintf(request, sizeof(request), "{'kind':'cut_at','at':%d}", at);
                        control(s, request);
                        begin(s, "calls 2 bash {\"command\":\"echo {n}\"}");
                        model_rig_ask(s->rig);
                        assert_non_null(s->rig->answer.failure);
                }
                begin(s, "say Whole.");
                ask(s);
        }
}

static void a_call_that_is_cut_off_or_spoiled_is_marked(void **state)
{
        static const char *const kinds[] = { "truncate", "bad_json" };
        struct services *s = *state;

        for (size_t i = 0; i < COUNT(models) * COUNT(kinds); i++) {
                const char *kind = kinds[i % COUNT(kinds)];
                char *request = mem_printf("{'kind':'%s'}", kind);
                const json_t *content, *last;

                choose(s, i / COUNT(kinds));
                control(s, request);
                begin(s, "calls 2 bash {\"command\":\"echo {n}\"}");
                ask(s);
                content = json_object_get(s->rig->message, "content");
                last = json_array_get(content, json_array_size(content) - 1);
                assert_true(json_flag(last, "incomplete", false));
                assert_int_equal(s->rig->answer.stop, *kind == 't' ? MODEL_LENGTH : MODEL_CALLS);
                free(request);
        }
}

static void too_long_prompts_and_refusals_are_told_apart(void **state)
{
        struct services *s = *state;

        for (size_t i = 0; i < COUNT(models); i++) {
                choose(s, i);
                begin(s, "hello");
                control(s, "{'kind':'overflow'}");
                model_rig_ask(s->rig);
                assert_true(s->rig->answer.failure && s->rig->answer.failure->too_long);
                control(s, "{'kind':'error','status':529}");
                control(s, "{'kind':'flood','retry_after':0.01}");
                ask(s); /* tried again */
                assert_int_equal(s->rig->retries, 2);
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_services, close_services)
        const struct CMUnitTest tests[] = {
                TEST(a_conversation_with_tools_is_never_refused),
                TEST(a_conversation_goes_on_with_another_model),
                TEST(the_second_request_reads_the_cache),
                TEST(a_cut_answer_is_a_failure_at_any_byte),
                TEST(a_call_that_is_cut_off_or_spoiled_is_marked),
                TEST(too_long_prompts_and_refusals_are_told_apart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
