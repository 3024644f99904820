/* Checks our requests against the published schema of the service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agents_private.h"
#include "agent/llm/llm.h"
#include "base/json.h"
#include "base/mem.h"

#define SPEC "tests/data/openai_chat_request.json" /* from the project's root */

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

static const json_t *resolve(const json_t *schema)
{
        const char *ref = json_str(schema, "$ref", NULL);
        const json_t *schemas = json_object_get(json_object_get(spec, "components"), "schemas");

        return ref ? resolve(json_object_get(schemas, strrchr(ref, '/') + 1)) : schema;
}

/* The schema of a property, also inside an allOf; NULL: unknown. */
static const json_t *property(const json_t *schema, const char *key)
{
        const json_t *found = json_object_get(json_object_get(resolve(schema), "properties"), key);
        const json_t *parts = json_object_get(resolve(schema), "allOf");

        for (size_t i = 0; !found && i < json_array_size(parts); i++)
                found = property(json_array_get(parts, i), key);
        return found;
}

static bool has_required(const json_t *schema, const json_t *value)
{
        const json_t *required = json_object_get(resolve(schema), "required");
        const json_t *parts = json_object_get(resolve(schema), "allOf");

        for (size_t i = 0; i < json_array_size(required); i++) {
                if (!json_object_get(value, json_string_value(json_array_get(required, i))))
                        return false;
        }
        for (size_t i = 0; i < json_array_size(parts); i++) {
                if (!has_required(json_array_get(parts, i), value))
                        return false;
        }
        return true;
}

static bool fits(const json_t *schema, const json_t *value);

static bool object_fits(const json_t *schema, const json_t *value)
{
        const char *key;
        json_t *member;

        if (!json_is_object(value) || !has_required(schema, value))
                return false;
        json_object_foreach((json_t *)(uintptr_t)value, key, member) {
                const json_t *known = property(schema, key);

                if (!known || !fits(known, member))
                        return false;
        }
        return true;
}

static bool array_fits(const json_t *schema, const json_t *value)
{
        if (!json_is_array(value) ||
            (json_int_t)json_array_size(value) < json_int(schema, "minItems", 0))
                return false;
        for (size_t i = 0; i < json_array_size(value); i++) {
                if (!fits(json_object_get(schema, "items"), json_array_get(value, i)))
                        return false;
        }
        return true;
}

static bool any_fits(const json_t *schemas, const json_t *value)
{
        for (size_t i = 0; i < json_array_size(schemas); i++) {
                if (fits(json_array_get(schemas, i), value))
                        return true;
        }
        return false;
}

static bool is_one_of(const json_t *words, const json_t *value)
{
        for (size_t i = 0; i < json_array_size(words); i++) {
                if (json_equal(json_array_get(words, i), value))
                        return true;
        }
        return !words;
}

static bool number_fits(const json_t *schema, const json_t *value)
{
        const json_t *min = json_object_get(schema, "minimum"),
                     *max = json_object_get(schema, "maximum");
        double x = json_number_value(value);

        return json_is_number(value) && (!min || x >= json_number_value(min)) &&
               (!max || x <= json_number_value(max));
}

static bool fits(const json_t *schema, const json_t *value)
{
        const char *type;

        schema = resolve(schema);
        type = json_str(schema, "type", "");
        if (json_object_get(schema, "anyOf"))
                return any_fits(json_object_get(schema, "anyOf"), value);
        if (json_object_get(schema, "oneOf"))
                return any_fits(json_object_get(schema, "oneOf"), value);
        if (json_object_get(schema, "allOf") || strcmp(type, "object") == 0)
                return object_fits(schema, value);
        if (strcmp(type, "array") == 0)
                return array_fits(schema, value);
        if (strcmp(type, "string") == 0)
                return json_is_string(value) && is_one_of(json_object_get(schema, "enum"), value);
        if (strcmp(type, "integer") == 0)
                return json_is_integer(value) && number_fits(schema, value);
        if (strcmp(type, "number") == 0)
                return number_fits(schema, value);
        if (strcmp(type, "boolean") == 0)
                return json_is_boolean(value);
        return strcmp(type, "null") == 0 ? json_is_null(value) : false;
}

static bool request_fits(const json_t *request)
{
        return fits(json_object_get(json_object_get(json_object_get(spec, "components"), "schemas"),
                                    "CreateChatCompletionRequest"),
                    request);
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
        openai_wire.body(&m, &run, &body);
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

                        assert_true(request_fits(request));
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

                assert_false(request_fits(request));
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
