/* Checks our requests against the published schema of the service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/schema_fit.h"
#include "agent/agents_private.h"
#include "agent/llm/llm.h"
#include "base/json.h"
#include "base/mem.h"

#define SPEC   "tests/data/openai_chat_request.json" /* from the project's root */
#define SCHEMA "CreateChatCompletionRequest"

static json_t *spec;

static int load_spec(void **state)
{
        (void)state;
        spec = json_load_file(SPEC, 0, NULL);
        return spec ? 0 : -1;
}

static int drop_spec(void **state)
{
        (void)state;
        json_decref(spec);
        return 0;
}

static json_t *request_of(const struct llm_conf *conf, const char *base)
{
        static const struct transcript_line history[] = {
                { .role = "user", .name = "Ann", .text = "one", .time_ms = 1 },
                { .role = "assistant", .name = NULL, .text = "two", .time_ms = 2 }
        };
        const struct incoming in = { .text = "three \"\xf0\x9f\x98\x80\"\n",
                                     .chat = CHAT_GROUP,
                                     .sender_id = "7" };
        const struct incoming *const inputs[] = { &in };
        const struct turn_run run = { .session = "s",
                                      .inputs = inputs,
                                      .input_count = 1,
                                      .history = history,
                                      .history_count = 2 };
        char *address = mem_strdup(base);
        struct error err = { 0 };
        struct agent_slot in_registry = { .conf = agent_conf_make("m", "echo", NULL, &err) };
        const struct llm m = { .agent = &in_registry.agent,
                               .conf = conf,
                               .wire = &openai_wire,
                               .model = "gpt-5",
                               .base = address };
        struct buf body;
        json_t *request;

        buf_init(&body, 0);
        llm_write_body(&m, &run, &body);
        request = json_read(body.data, body.len, &err);
        assert_non_null(request);
        buf_release(&body);
        agent_conf_free(in_registry.conf);
        free(address);
        return request;
}

static void our_requests_use_only_known_properties_of_the_right_type(void **state)
{
        static char system[] = "Be brief.";
        const struct llm_conf confs[] = {
                { .stream = true, .temperature = -1 },
                { .stream = false, .temperature = 0.5, .max_tokens = 100, .system = system },
        };
        static const char *const bases[] = { "https://api.openai.com/v1",
                                             "http://127.0.0.1:11434/v1" };

        (void)state;
        for (size_t i = 0; i < COUNT(confs); i++) {
                for (size_t j = 0; j < COUNT(bases); j++) {
                        json_t *request = request_of(&confs[i], bases[j]);

                        assert_true(schema_named_fits(spec, SCHEMA, request));
                        json_decref(request);
                }
        }
}

static void the_schema_check_finds_a_wrong_request(void **state)
{
        static const char *const wrong[] = {
                "{\"model\": \"m\"}",
                "{\"model\": \"m\", \"messages\": []}",
                "{\"model\": \"m\", \"messages\": [{\"role\": \"nobody\", \"content\": \"x\"}]}",
                "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}], "
                "\"maxTokens\": 1}",
                "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}], "
                "\"stream\": \"yes\"}",
                "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}], "
                "\"temperature\": 3}",
        };

        (void)state;
        for (size_t i = 0; i < COUNT(wrong); i++) {
                json_t *request = json_loads(wrong[i], 0, NULL);

                assert_false(schema_named_fits(spec, SCHEMA, request));
                json_decref(request);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(our_requests_use_only_known_properties_of_the_right_type),
                cmocka_unit_test(the_schema_check_finds_a_wrong_request),
        };

        return cmocka_run_group_tests(tests, load_spec, drop_spec);
}
