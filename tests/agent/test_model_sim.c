/* The simulated services, which refuse what the real ones refuse, take every request of ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../lib/sim_rig.h"
#include "agent/llm/model_facts.h"
#include "model_rig.h"
#include "sim/llm/lm_control.h"
#include "sim/llm/lm_world.h"

struct sim {
        struct model_rig rig; /* first */
        struct sim_rig *services;
        struct secret *key;
};

static const struct target {
        const struct llm_wire *wire;
        const char *model;
} targets[] = {
        { &anthropic_wire, "claude-sonnet-4-5" },
        { &anthropic_wire, "claude-opus-5-5" },
        { &openai_wire, "gpt-5.4" },
        { &openai_wire, "gpt-4o" },
        { &responses_wire, "gpt-5.4" },
        { &responses_wire, "gpt-4o" },
};

static int setup_sim(void **state)
{
        struct sim *s = mem_zalloc(sizeof(*s));

        s->services = sim_rig_new(NULL);
        s->services->world = lm_world_new(s->services->loop);
        lm_world_add_key(s->services->world, "sk-sim");
        sim_rig_serve(s->services, &s->services->world->base, lm_control_routes,
                      lm_control_route_count, NULL);
        s->key = secret_new("sk-sim", 6);
        model_rig_init(&s->rig, s->services->loop, s->services->client);
        s->rig.conf.key = s->key;
        *state = s;
        return 0;
}

static int teardown_sim(void **state)
{
        struct sim *s = *state;

        model_rig_release(&s->rig);
        secret_free(s->key);
        sim_rig_free(s->services, lm_world_free);
        free(s);
        return 0;
}

/* Keeps the request. */
static struct llm *use(struct sim *s, const struct target *t)
{
        struct model_rig *r = &s->rig;

        if (r->agent.self)
                llm_close(&r->agent);
        free(r->conf.base_url);
        r->conf.base_url = mem_printf("http://%s%s", http_server_address(s->services->server),
                                      t->wire == &anthropic_wire ? "" : "/v1");
        llm_open(&r->agent, t->wire, t->model);
        return r->agent.self;
}

/* ---- random conversations ---- */

static uint32_t seed;

static uint32_t pick(uint32_t below)
{
        seed = seed * 1664525u + 1013904223u;
        return (seed >> 8) % below;
}

static void add_user(json_t *messages)
{
        static const char *const texts[] = { "go on", " ", "h\xc3\xa9 \xf0\x9f\x98\x80", "\n",
                                             "and?" };

        json_array_append_new(messages,
                              json_pack("{ss, s[{ss, ss}]}", "role", "user", "content", "type",
                                        "text", "text", texts[pick(COUNT(texts))]));
}

static void add_result(json_t *messages, const json_t *call)
{
        static const char *const texts[] = { "done", "", "no such file" };

        json_array_append_new(messages,
                              json_pack("{ss, ss, ss, s[{ss, ss}], sb}", "role", "toolResult",
                                        "toolCallId", json_str(call, "id", ""), "toolName",
                                        json_str(call, "name", ""), "content", "type", "text",
                                        "text", texts[pick(COUNT(texts))], "isError", pick(2)));
}

/* Results in any order, some missing, some twice, with messages of people in between. */
static void add_results(json_t *messages, const json_t *answer)
{
        const json_t *content = json_object_get(answer, "content");
        size_t n = json_array_size(content), first = n ? pick((uint32_t)n) : 0;

        for (size_t i = 0; i < n; i++) {
                const json_t *call = json_array_get(content, (first + i) % n);

                if (strcmp(json_str(call, "type", ""), "toolCall") != 0 || pick(5) == 0)
                        continue;
                if (pick(6) == 0)
                        add_user(messages);
                add_result(messages, call);
                if (pick(8) == 0)
                        add_result(messages, call);
        }
}

/* A crash, a compaction, a removed thought. */
static void damage(json_t *messages)
{
        size_t n = json_array_size(messages);
        json_t *content;

        switch (pick(8)) {
        case 0:
                json_array_remove(messages, pick((uint32_t)n));
                break;
        case 1:
                for (size_t i = pick((uint32_t)n); i > 0; i--)
                        json_array_remove(messages, 0);
                break;
        case 2:
                content = json_object_get(json_array_get(messages, pick((uint32_t)n)), "content");
                if (json_array_size(content) > 0)
                        json_array_remove(content, pick((uint32_t)json_array_size(content)));
                break;
        default:
                break;
        }
        if (json_array_size(messages) < 8) /* something must be left to send */
                json_array_append_new(messages,
                                      json_pack("{ss, ss}", "role", "user", "content", "hi"));
}

static const char scenario[] =
        "{\"rules\":[{\"when\":{},\"answer\":[{\"thinking\":\"Let me see.\"},\"I look.\","
        "{\"call\":\"read\",\"arguments\":{\"path\":\"a\",\"label\":\"a\"}},"
        "{\"call\":\"my.tool\",\"arguments\":{\"label\":\"b\"}}]}]}";
#define TOOLS                                                                               \
        "[{'name':'read','description':'reads','parameters':{'type':'object','properties':" \
        "{'path':{'type':'string'},'label':{'type':'string'}},'required':['label']}},"      \
        "{'name':'my.tool','description':'d','parameters':{'type':'object','properties':{}}}]"

static void play(struct sim *s, uint32_t number)
{
        struct model_rig *r = &s->rig;
        const struct target *t = NULL;

        seed = number;
        json_decref(r->q.messages);
        r->q.messages = json_array();
        add_user(r->q.messages);
        json_array_append_new(r->q.messages,
                              json_pack("{ss, ss}", "role", "user", "content", "hi"));
        for (int round = 0; round < 7; round++) {
                if (!t || pick(3) == 0)
                        t = &targets[pick(COUNT(targets))];
                use(s, t);
                r->q.thinking = pick(3) == 0 ? THINKING_LOW : THINKING_DEFAULT;
                model_rig_ask(r);
                if (r->answer.failure) {
                        char *sent = json_text(r->q.messages);

                        fail_msg("conversation %u, round %d, %s: %s\n%s", number, round, t->model,
                                 r->answer.record ? r->record.data : "", sent);
                }
                json_array_append_new(r->q.messages, json_deep_copy(r->message));
                add_results(r->q.messages, r->message);
                if (pick(3) == 0)
                        add_user(r->q.messages);
                damage(r->q.messages);
        }
}

static void no_service_refuses_a_conversation(void **state)
{
        struct sim *s = *state;

        sim_rig_control_ok(s->services, "scenario", scenario);
        s->rig.q.tools = json_of(TOOLS);
        s->rig.q.system = "Be brief.";
        s->rig.q.cache_key = "c-1";
        for (uint32_t i = 1; i <= 200; i++)
                play(s, i);
}

/* ---- limits ---- */

static void limits_are_learned_from_the_service(void **state)
{
        static const struct target small = { &anthropic_wire, "claude-sim-small" };
        struct sim *s = *state;
        struct llm *m = use(s, &small);
        struct model_limits l;

        model_learn(m);
        for (int i = 0; i < ROUNDS && http_client_active(s->rig.http) > 0; i++)
                loop_step(s->rig.loop, true);
        model_limits(m, &l);
        assert_int_equal(l.window, 8000);
        assert_int_equal(l.output, 2000);
}

/* ---- spoiled answers ---- */

static void spoiled_answers_are_recognised(void **state)
{
        static const struct {
                const char *fault;
                size_t target;
                bool fails;
                enum model_stop stop;
        } rows[] = {
                { "same_index", 2, false, MODEL_CALLS },
                { "no_done", 2, false, MODEL_CALLS },
                { "pause", 1, false, MODEL_PAUSED },
                { "refuse", 1, false, MODEL_REFUSED },
                { "overload", 0, true, 0 },
                { "overload", 4, true, 0 },
                { "truncate", 0, false, MODEL_LENGTH },
                { "truncate", 2, false, MODEL_LENGTH },
                { "bad_json", 0, false, MODEL_CALLS },
                { "bad_json", 2, false, MODEL_CALLS },
                { "bad_json", 4, false, MODEL_CALLS },
        };
        struct sim *s = *state;
        struct model_rig *r = &s->rig;

        sim_rig_control_ok(s->services, "scenario", scenario);
        r->q.tools = json_of(TOOLS);
        r->conf.retries = 0;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *fault = mem_printf("{\"kind\":\"%s\",\"next\":1}", rows[i].fault);
                bool spoiled = strcmp(rows[i].fault, "bad_json") == 0;
                json_t *block;
                size_t k, whole = 0;

                print_message("             %s %s\n", rows[i].fault,
                              targets[rows[i].target].wire->name);
                sim_rig_control_ok(s->services, "faults", fault);
                use(s, &targets[rows[i].target]);
                model_rig_ask(r);
                assert_int_equal(r->answer.failure != NULL, rows[i].fails);
                if (!rows[i].fails)
                        assert_int_equal(r->answer.stop, rows[i].stop);
                json_array_foreach(json_object_get(r->message, "content"), k, block) {
                        if (strcmp(json_str(block, "type", ""), "toolCall") == 0)
                                whole += !json_flag(block, "incomplete", false);
                }
                if (rows[i].stop == MODEL_LENGTH)
                        assert_int_equal(whole, 0);
                else if (!rows[i].fails && rows[i].stop == MODEL_CALLS)
                        assert_true(spoiled ? whole < 2 : whole == 2);
                free(fault);
        }
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup_sim, teardown_sim)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(no_service_refuses_a_conversation),
                T(limits_are_learned_from_the_service),
                T(spoiled_answers_are_recognised),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
