/*
 * The simulated model services over HTTP: what they refuse, answer, cache and spoil.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/sim_rig.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/llm/lm_control.h"
#include "sim/llm/lm_world.h"

#define BASH                                                                               \
        "{\"name\":\"bash\",\"input_schema\":{\"type\":\"object\",\"properties\":{"        \
        "\"command\":{\"type\":\"string\"},\"label\":{\"type\":\"string\"}},\"required\":" \
        "[\"label\",\"command\"]}}"
#define CHAT_BASH                                                                 \
        "{\"type\":\"function\",\"function\":{\"name\":\"bash\",\"parameters\":{" \
        "\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\"}}," \
        "\"required\":[\"command\"]}}}"
#define FLAT_BASH                                                                       \
        "{\"type\":\"function\",\"name\":\"bash\",\"parameters\":{\"type\":\"object\"," \
        "\"properties\":{\"command\":{\"type\":\"string\"}},\"required\":[\"command\"]}}"

#define MESSAGES  "/v1/messages"
#define CHAT      "/v1/chat/completions"
#define RESPONSES "/v1/responses"

/* Bodies with one thing to fill in. */
#define NEW(messages)                                                           \
        "{\"model\":\"claude-sonnet-5-5\",\"max_tokens\":4000,\"tools\":[" BASH \
        "],\"messages\":[" messages "]}"
#define GPT(messages) \
        "{\"model\":\"gpt-5.4\",\"tools\":[" CHAT_BASH "],\"messages\":[" messages "]}"
#define ITEMS(items) "{\"model\":\"gpt-5.4\",\"tools\":[" FLAT_BASH "],\"input\":[" items "]}"
#define USER(text)   "{\"role\":\"user\",\"content\":\"" text "\"}"
#define USE(id)                                                                    \
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"" id \
        "\",\"name\":\"bash\",\"input\":{}}]}"
#define RESULT(id)     "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":\"ok\"}"
#define TEXT(text)     "{\"type\":\"text\",\"text\":\"" text "\"}"
#define BLOCKS(blocks) "{\"role\":\"user\",\"content\":[" blocks "]}"
#define CALLS(id)                                                                               \
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id "\",\"type\":" \
        "\"function\",\"function\":{\"name\":\"bash\",\"arguments\":\"{}\"}}]}"
#define TOOL(id) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"ok\"}"
#define FC(id)                                                                                \
        "{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"bash\",\"arguments\":" \
        "\"{}\"}"
#define FO(id) "{\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":\"ok\"}"

static const char *const both[] = { "Content-Type: application/json", "x-api-key: sk-sim",
                                    "Authorization: Bearer sk-sim", "anthropic-version: 2023-06-01",
                                    NULL };

static int setup(void **state)
{
        struct sim_rig *r = sim_rig_new(both);

        r->world = lm_world_new(r->loop);
        lm_world_add_key(r->world, "sk-sim");
        sim_rig_serve(r, &r->world->base, lm_control_routes, lm_control_route_count, NULL);
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        sim_rig_free(*state, lm_world_free);
        return 0;
}

static json_t *ask(struct sim_rig *r, const char *path, const char *body)
{
        struct sim_answer a = sim_rig_ask(r, path, body);

        if (a.status != 200)
                print_error("%s\n", json_str(json_object_get(a.body, "error"), "message", ""));
        assert_int_equal(a.status, 200);
        return a.body;
}

static const json_t *path_of(const json_t *value, const char *const *keys)
{
        for (; *keys; keys++)
                value = json_is_array(value)
                                ? json_array_get(value, (size_t)strtoul(*keys, NULL, 10))
                                : json_object_get(value, *keys);
        return value;
}
#define AT(value, ...) path_of(value, (const char *const[]){ __VA_ARGS__, NULL })

/* A streamed answer, as text. */
struct reading {
        struct buf text;
        bool done;
        int status;
        enum error_kind kind;
};

static void on_data(void *arg, const char *bytes, size_t n)
{
        buf_add(&((struct reading *)arg)->text, bytes, n);
}

static void on_done(void *arg, const struct http_result *result)
{
        struct reading *d = arg;

        d->done = true;
        d->status = result->status;
        d->kind = result->kind;
}

static struct reading read_stream(struct sim_rig *r, const char *path, const char *body)
{
        static const struct http_handlers handlers = { .on_data = on_data, .on_done = on_done };
        char *url = mem_printf("http://%s%s", http_server_address(r->server), path);
        struct http_request request = {
                .url = url, .headers = r->headers, .body = body, .body_n = strlen(body)
        };
        struct reading d = { 0 };

        buf_init(&d.text, 0);
        http_call_start(r->client, &request, &handlers, &d);
        while (!d.done)
                assert_true(loop_step(r->loop, true));
        free(url);
        return d;
}

/* ---- what is refused ---- */

struct refusal {
        const char *path, *body, *reason, *words;
        int status; /* 0: 400 */
};

static void assert_refused(struct sim_rig *r, const struct refusal *row)
{
        struct sim_answer a = sim_rig_ask(r, row->path, row->body);
        const char *words = json_str(json_object_get(a.body, "error"), "message", "");
        json_t *calls = sim_rig_control(r, "calls?valid=false", NULL), *items, *last;

        if (!strstr(words, row->words))
                print_error("%s\nsays: %s\n", row->body, words);
        assert_non_null(strstr(words, row->words));
        assert_int_equal(a.status, row->status ? row->status : 400);
        items = json_object_get(calls, "items");
        last = json_array_get(items, json_array_size(items) - 1);
        assert_string_equal(json_str(last, "problem", ""), words);
        assert_string_equal(json_str(last, "reason", ""), row->reason);
        json_decref(calls);
        json_decref(a.body);
}

/* clang-format off */
static const struct refusal of_messages[] = {
        { MESSAGES, "{\"max_tokens\":1,\"messages\":[" USER("hi") "]}", "model",
          "model: Field required" },
        { MESSAGES, "{\"model\":\"x\",\"max_tokens\":1,\"messages\":[" USER("hi") "]}", "model",
          "model: x", 404 },
        { MESSAGES, "{\"model\":\"claude-opus-5-5\",\"messages\":[" USER("hi") "]}", "max_tokens",
          "max_tokens: Field required" },
        { MESSAGES, "{\"model\":\"claude-opus-5-5\",\"max_tokens\":999999,\"messages\":["
          USER("hi") "]}", "max_tokens", "max_tokens: 999999 > 128000" },
        { MESSAGES, "{\"model\":\"claude-opus-5-5\",\"max_tokens\":9,\"temperature\":1,"
          "\"messages\":[" USER("hi") "]}", "sampling", "`temperature` is deprecated" },
        { MESSAGES, "{\"model\":\"claude-opus-5-5\",\"max_tokens\":9,\"thinking\":{\"type\":"
          "\"enabled\",\"budget_tokens\":2000},\"messages\":[" USER("hi") "]}", "thinking",
          "not supported for this model" },
        { MESSAGES, "{\"model\":\"claude-sonnet-4-5\",\"max_tokens\":2000,\"thinking\":{\"type\":"
          "\"enabled\",\"budget_tokens\":2000},\"messages\":[" USER("hi") "]}", "thinking",
          "`max_tokens` must be greater than `thinking.budget_tokens`." },
        { MESSAGES, "{\"model\":\"claude-opus-5-5\",\"max_tokens\":9,\"colour\":1,\"messages\":["
          USER("hi") "]}", "unknown_member", "colour: Extra inputs are not permitted" },
        { MESSAGES, NEW(""), "messages", "messages: at least one message is required" },
        { MESSAGES, NEW("{\"role\":\"system\",\"content\":\"x\"}"), "role",
          "Unexpected role \"system\"" },
        { MESSAGES, NEW(USER("hi") "," USE("toolu_1")), "call_without_result",
          "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
          "toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the "
          "next message." },
        { MESSAGES, NEW(USER("hi") "," USE("toolu_1") "," USER("go on")), "call_without_result",
          "without `tool_result` blocks immediately after: toolu_1" },
        { MESSAGES, NEW(USER("hi") "," USE("toolu_1") ","
          BLOCKS(TEXT("first") "," RESULT("toolu_1"))),
          "call_without_result", "without `tool_result` blocks immediately after: toolu_1" },
        { MESSAGES, NEW(USER("hi") "," USE("toolu_1") "," BLOCKS(RESULT("toolu_1")) ","
          BLOCKS(RESULT("toolu_1"))), "result_without_call", "unexpected `tool_use_id`" },
        { MESSAGES, NEW(BLOCKS(RESULT("toolu_9"))), "result_without_call",
          "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_9" },
        { MESSAGES, NEW(USER("hi") "," USE("t") "," BLOCKS(RESULT("t") "," RESULT("t"))),
          "result_twice", "each tool_use must have a single result" },
        { MESSAGES, NEW(USER("hi") "," USE("t") "," BLOCKS(RESULT("t")) "," USE("t") ","
          BLOCKS(RESULT("t"))), "call_id_twice", "`tool_use` ids must be unique" },
        { MESSAGES, NEW(USER("hi") "," USE("a|b") "," BLOCKS(RESULT("a|b"))), "call_id",
          "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'" },
        { MESSAGES, NEW(BLOCKS(TEXT(""))), "empty_text",
          "messages: text content blocks must be non-empty" },
        { MESSAGES, NEW(BLOCKS(TEXT(" \\n "))), "blank_text",
          "messages: text content blocks must contain non-whitespace text" },
        { MESSAGES, NEW(USER("")), "blank_text",
          "messages: text content blocks must be non-empty" },
        { MESSAGES, NEW(BLOCKS("{\"type\":\"text\",\"text\":\"\",\"cache_control\":{\"type\":"
          "\"ephemeral\"}}")), "mark_on_empty",
          "messages.0.content.0.text: cache_control cannot be set for empty text blocks" },
        { MESSAGES, NEW(USER("hi") ",{\"role\":\"assistant\",\"content\":\"I\"}"), "assistant_last",
          "This model does not support assistant message prefill" },
        { MESSAGES, NEW("{\"role\":\"assistant\",\"content\":\"I\"}," USER("hi")), "role",
          "first message must use the \"user\" role" },
        { MESSAGES, NEW(USER("hi") ",{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\","
          "\"thinking\":\"x\",\"signature\":\"forged\"},{\"type\":\"text\",\"text\":\"a\"}]},"
          USER("b")), "signature",
          "messages.1.content.0: Invalid `signature` in `thinking` block" },
        { MESSAGES, "{\"model\":\"claude-opus-5-5\",\"max_tokens\":9,\"tools\":[{\"name\":\"a.b\","
          "\"input_schema\":{\"type\":\"object\"}}],\"messages\":[" USER("hi") "]}", "tool_name",
          "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'" },
        { MESSAGES, "{\"model\":\"claude-opus-5-5\",\"max_tokens\":9,\"tools\":[{\"name\":\"a\","
          "\"input_schema\":{}}],\"messages\":[" USER("hi") "]}", "schema",
          "tools.0.custom.input_schema.type: Field required" },
        { MESSAGES, "{\"model\":\"claude-opus-5-5\",\"max_tokens\":9,\"tools\":[{\"name\":\"a\","
          "\"input_schema\":{\"type\":\"array\"}}],\"messages\":[" USER("hi") "]}", "schema",
          "tools.0.custom.input_schema.type: Input should be 'object'" },
        { MESSAGES, "{\"model\":\"claude-opus-5-5\",\"max_tokens\":9,\"tools\":[" BASH "," BASH "],"
          "\"messages\":[" USER("hi") "]}", "tool_name", "Tool names must be unique" },
        { MESSAGES, "{not json", "json", "not valid JSON" },
};

static const struct refusal of_chat[] = {
        { CHAT, "{\"model\":\"x\",\"messages\":[" USER("hi") "]}", "model",
          "The model `x` does not exist or you do not have access to it.", 404 },
        { CHAT, "{\"model\":\"gpt-5.4\",\"max_tokens\":9,\"messages\":[" USER("hi") "]}",
          "max_tokens", "Use 'max_completion_tokens' instead." },
        { CHAT, "{\"model\":\"gpt-5.4\",\"temperature\":0.5,\"messages\":[" USER("hi") "]}",
          "sampling", "Only the default (1) value is supported." },
        { CHAT, "{\"model\":\"gpt-5.4\",\"colour\":1,\"messages\":[" USER("hi") "]}",
          "unknown_member", "Unknown parameter: 'colour'." },
        { CHAT, GPT(""), "messages", "Invalid 'messages': empty array." },
        { CHAT, GPT(USER("hi") "," CALLS("c1")), "call_without_result",
          "An assistant message with 'tool_calls' must be followed by tool messages responding to "
          "each 'tool_call_id'. The following tool_call_ids did not have response messages: c1" },
        { CHAT, GPT(USER("hi") "," CALLS("c1") "," USER("x") "," TOOL("c1")),
          "call_without_result", "did not have response messages: c1" },
        { CHAT, GPT(USER("hi") "," TOOL("c1")), "result_without_call",
          "messages with role 'tool' must be a response to a preceeding message with" },
        { CHAT, GPT(USER("hi") "," CALLS("c1") "," TOOL("c1") "," TOOL("c1")), "result_twice",
          "Duplicate value for 'tool_call_id'" },
        { CHAT, GPT(USER("hi") "," CALLS("0123456789012345678901234567890123456789X") ","
          TOOL("0123456789012345678901234567890123456789X")), "too_long_string",
          "Expected a string with maximum length 40, but got a string with length 41 instead." },
        { CHAT, GPT(USER("hi") ",{\"role\":\"assistant\",\"content\":null}," USER("x")), "content",
          "expected a string, got null" },
        { CHAT, GPT(USER("hi") ",{\"role\":\"assistant\",\"content\":\"x\"}"), "assistant_last",
          "the last message must not be of the assistant" },
        { CHAT, "{\"model\":\"gpt-5.4\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
          "\"a.b\"}}],\"messages\":[" USER("hi") "]}", "tool_name",
          "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'." },
        { CHAT, "{\"model\":\"gpt-5.4\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
          "\"a\",\"parameters\":{}}}],\"messages\":[" USER("hi") "]}", "schema",
          "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'." },
        { CHAT, "{\"model\":\"deepseek-v4-flash\",\"messages\":[" USER("hi") ",{\"role\":"
          "\"assistant\",\"content\":\"a\"}," USER("b") "]}", "thinking_missing",
          "The `reasoning_content` in the thinking mode must be passed back to the API." },
        { CHAT, GPT(USER("\xff")), "json", "We could not parse the JSON body" },
        { CHAT, GPT(USER("\\ud800")), "json", "We could not parse the JSON body" },
};

static const struct refusal of_responses[] = {
        { RESPONSES, "{\"model\":\"gpt-5.4\",\"input\":\"hi\",\"max_output_tokens\":1}",
          "max_tokens", "Expected a value >= 16, but got 1 instead." },
        { RESPONSES, ITEMS(USER("hi") "," FC("c1")), "call_without_result",
          "No tool output found for function call c1." },
        { RESPONSES, ITEMS(USER("hi") "," FO("c1")), "result_without_call",
          "No tool call found for function call output with call_id c1." },
        { RESPONSES, ITEMS(USER("hi") "," FC("c1") "," FO("c1") "," FO("c1")), "result_twice",
          "Duplicate item found with call_id c1" },
        { RESPONSES, ITEMS("{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}," USER("hi")),
          "reasoning_not_stored", "Item with id 'rs_1' not found.", 404 },
        { RESPONSES, ITEMS("{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],"
          "\"encrypted_content\":\"x\"}," USER("hi")), "signature", "could not be verified" },
        { RESPONSES, ITEMS(USER("hi") ",{\"type\":\"function_call\",\"id\":\"fc_0123456789abcdefr"
          "01\",\"call_id\":\"c1\",\"name\":\"bash\",\"arguments\":\"{}\"}," FO("c1")),
          "call_without_reasoning",
          "was provided without its required 'reasoning' item: 'rs_0123456789abcdef'." },
        { RESPONSES, ITEMS(USER("hi") ",{\"role\":\"assistant\",\"content\":[{\"type\":"
          "\"input_text\",\"text\":\"x\"}]}"), "block", "Supported values are: 'output_text'" },
        { RESPONSES, ITEMS(USER("hi") ",{\"role\":\"assistant\",\"content\":\"x\"}"),
          "assistant_last", "the last item must not be of the assistant" },
        { RESPONSES, "{\"model\":\"gpt-5.4\",\"input\":\"hi\",\"previous_response_id\":\"resp_1\"}",
          "previous_response", "Previous response with id 'resp_1' not found." },
        { RESPONSES, "{\"model\":\"gpt-5.4\",\"tools\":[{\"type\":\"function\",\"name\":\"a b\"}],"
          "\"input\":\"hi\"}", "tool_name", "Invalid 'tools[0].name': string does not match" },
};
/* clang-format on */

static void assert_all_refused(struct sim_rig *r, const struct refusal *rows, size_t count)
{
        json_t *state, *refused, *reason;
        const char *key;
        int64_t sum = 0;

        for (size_t i = 0; i < count; i++)
                assert_refused(r, &rows[i]);
        state = sim_rig_control(r, "state", NULL);
        refused = json_object_get(state, "refused");
        json_object_foreach(refused, key, reason)
                sum += json_integer_value(reason);
        assert_int_equal(sum, count);
        assert_int_equal(json_int(json_object_get(state, "counters"), "invalid_calls", 0), count);
        json_decref(state);
}

static void messages_refuse_in_the_words_of_the_service(void **state)
{
        assert_all_refused(*state, of_messages, COUNT(of_messages));
}

static void chat_completions_refuse_in_the_words_of_the_service(void **state)
{
        assert_all_refused(*state, of_chat, COUNT(of_chat));
}

static void responses_refuse_in_the_words_of_the_service(void **state)
{
        assert_all_refused(*state, of_responses, COUNT(of_responses));
}

static void a_fifth_mark_is_refused(void **state)
{
        struct sim_rig *r = *state;
        struct buf b;
        struct refusal row = { MESSAGES, NULL, "too_many_marks",
                               "A maximum of 4 blocks with cache_control may be provided. Found "
                               "5." };

        buf_init(&b, 0);
        for (int i = 0; i < 5; i++)
                buf_addf(&b,
                         "%s{\"type\":\"text\",\"text\":\"a\",\"cache_control\":{\"type\":"
                         "\"ephemeral\"}}",
                         i ? "," : "");
        row.body = mem_printf("{\"model\":\"claude-opus-5-5\",\"max_tokens\":9,\"messages\":[{"
                              "\"role\":\"user\",\"content\":[%s]}]}",
                              b.data);
        assert_refused(r, &row);
        free((char *)row.body);
        buf_release(&b);
}

static void a_key_and_a_version_are_needed(void **state)
{
        static const char *const no_key[] = { "anthropic-version: 2023-06-01", NULL };
        static const char *const wrong[] = { "x-api-key: sk-x", "Authorization: Bearer sk-x",
                                             "anthropic-version: 2023-06-01", NULL };
        static const char *const no_version[] = { "x-api-key: sk-sim", NULL };
        static const char *const odd[] = { "x-api-key: sk-sim", "anthropic-version: 1", NULL };
        const struct {
                const char *const *headers;
                struct refusal row;
        } rows[] = {
                { no_key, { MESSAGES, "{}", "key", "x-api-key header is required", 401 } },
                { no_key, { CHAT, "{}", "key", "You didn't provide an API key.", 401 } },
                { wrong, { MESSAGES, "{}", "key", "invalid x-api-key", 401 } },
                { wrong, { RESPONSES, "{}", "key", "Incorrect API key provided: sk-x", 401 } },
                { no_version, { MESSAGES, "{}", "version", "anthropic-version: header" } },
                { odd, { MESSAGES, "{}", "version", "\"1\" is not a valid version" } },
        };
        struct sim_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                r->headers = rows[i].headers;
                assert_refused(r, &rows[i].row);
        }
}

/* ---- what is answered ---- */

static void a_text_is_repeated_on_all_wires(void **state)
{
        struct sim_rig *r = *state;
        json_t *a = ask(r, MESSAGES, NEW(USER("[2026-11-16] [ada]: hello")));
        json_t *b = ask(r, CHAT, GPT(USER("hello")));
        json_t *c = ask(r, RESPONSES, "{\"model\":\"gpt-5.4\",\"input\":\"hello\"}");

        assert_string_equal(json_str(AT(a, "content", "0"), "text", ""), "You said: hello");
        assert_string_equal(json_str(a, "stop_reason", ""), "end_turn");
        assert_string_equal(json_str(AT(b, "choices", "0", "message"), "content", ""),
                            "You said: hello");
        assert_string_equal(json_str(AT(c, "output", "0", "content", "0"), "text", ""),
                            "You said: hello");
        json_decref(a);
        json_decref(b);
        json_decref(c);
}

/* Plays an agent with a tool that answers "done N": asks until there are no more calls. */
static json_t *play(struct sim_rig *r, json_t *body, int *rounds, int *calls)
{
        json_t *messages = json_object_get(body, "messages"), *answer, *block, *results;
        size_t i;

        for (*rounds = *calls = 0;; (*rounds)++) {
                char *text = json_text(body);

                answer = ask(r, MESSAGES, text);
                free(text);
                if (strcmp(json_str(answer, "stop_reason", ""), "tool_use") != 0)
                        return answer;
                results = json_array();
                json_array_foreach(json_object_get(answer, "content"), i, block) {
                        if (strcmp(json_str(block, "type", ""), "tool_use") != 0)
                                continue;
                        json_array_append_new(results,
                                              json_pack("{s:s,s:s,s:s}", "type", "tool_result",
                                                        "tool_use_id", json_str(block, "id", ""),
                                                        "content", "done"));
                        (*calls)++;
                }
                json_array_append_new(messages,
                                      json_pack("{s:s,s:O}", "role", "assistant", "content",
                                                json_object_get(answer, "content")));
                json_array_append_new(messages,
                                      json_pack("{s:s,s:o}", "role", "user", "content", results));
                json_decref(answer);
        }
}

static void the_lines_of_a_person_are_a_plan(void **state)
{
        json_t *body = json_loads(NEW(USER("use bash: one\\ncalls 3 bash {\\\"command\\\":\\\"echo "
                                           "{n}\\\"}\\nuse bash: last\\nsay All done.")),
                                  0, NULL);
        int rounds, calls;
        json_t *answer = play(*state, body, &rounds, &calls);

        assert_int_equal(rounds, 3);
        assert_int_equal(calls, 5);
        assert_string_equal(json_str(AT(answer, "content", "0"), "text", ""), "All done.");
        assert_string_equal(
                json_str(AT(body, "messages", "1", "content", "0", "input"), "command", ""), "one");
        assert_string_equal(
                json_str(AT(body, "messages", "1", "content", "0", "input"), "label", ""),
                "calling bash");
        assert_string_equal(
                json_str(AT(body, "messages", "3", "content", "2", "input"), "command", ""),
                "echo 3");
        json_decref(answer);
        json_decref(body);
}

static void lines_that_arrive_while_it_works_are_appended(void **state)
{
        struct sim_rig *r = *state;
        json_t *a = ask(r, MESSAGES,
                        NEW(USER("use bash: one") "," USE("t") "," BLOCKS(
                                RESULT("t") "," TEXT("[now] [bob]: use bash: two\\nsay Done."))));

        assert_string_equal(json_str(AT(a, "content", "0", "input"), "command", ""), "two");
        json_decref(a);
        a = ask(r, MESSAGES,
                NEW(USER("use bash: one") "," USE("t") "," BLOCKS(RESULT("t") "," TEXT(
                        "use bash: two\\nsay Done.")) "," USE("u") "," BLOCKS(RESULT("u"))));
        assert_string_equal(json_str(AT(a, "content", "0"), "text", ""), "Done.");
        json_decref(a);
}

static void what_cannot_be_done_is_said(void **state)
{
        static const struct {
                const char *body, *says;
        } rows[] = {
                { NEW(USER("use nothing: x")), "There is no tool nothing" },
                { NEW(USER("call bash {\\\"command\\\":}")), "These arguments are not JSON:" },
                { NEW(USER("I use a pen: it is red")), "You said: I use a pen: it is red" },
                { NEW(USER("use bash: x") "," USE("t") "," BLOCKS(RESULT("t"))),
                  "Result of bash: ok" },
                { NEW(USER("think aloud")), "Done." },
        };
        struct sim_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                json_t *a = ask(r, MESSAGES, rows[i].body);
                const char *text = json_str(AT(a, "content", "0"), "text", "");

                if (!strstr(text, rows[i].says))
                        print_error("%s\n", text);
                assert_non_null(strstr(text, rows[i].says));
                json_decref(a);
        }
}

static void a_tool_that_is_demanded_is_called(void **state)
{
        struct sim_rig *r = *state;
        json_t *a = ask(r, MESSAGES,
                        "{\"model\":\"claude-opus-5-5\",\"max_tokens\":99,\"tools\":[" BASH
                        "],\"tool_choice\":{\"type\":\"any\"},\"messages\":[" USER("hi") "]}");
        json_t *b = ask(r, CHAT,
                        "{\"model\":\"gpt-5.4\",\"tools\":[" CHAT_BASH
                        "],\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":"
                        "\"bash\"}},\"messages\":[" USER("hi") "]}");

        assert_string_equal(json_str(AT(a, "content", "0"), "name", ""), "bash");
        assert_string_equal(json_str(AT(b, "choices", "0"), "finish_reason", ""), "tool_calls");
        json_decref(a);
        json_decref(b);
}

/* Codex has tools of other kinds, and members that are not in the description. */
static void lax_accepts_other_kinds_of_tools_and_calls_functions(void **state)
{
        static const char body[] =
                "{\"model\":\"gpt-5.4\",\"client_metadata\":{},\"tools\":[{\"type\":\"custom\","
                "\"name\":\"apply_patch\"},{\"type\":\"tool_search\"}," FLAT_BASH
                "],\"tool_choice\":\"required\",\"input\":\"hi\"}";
        struct sim_rig *r = *state;
        struct refusal strict = { RESPONSES, body, "unknown_member",
                                  "Unknown parameter: 'client_metadata'." };
        json_t *a;

        assert_refused(r, &strict);
        sim_rig_control_ok(r, "settings", "{\"strict\":false}");
        a = ask(r, RESPONSES, body);
        assert_string_equal(json_str(AT(a, "output", "0"), "name", ""), "bash");
        json_decref(a);
}

static void an_answer_of_no_tokens_fills_the_cache(void **state)
{
        struct sim_rig *r = *state;
        json_t *a = ask(
                r, MESSAGES,
                "{\"model\":\"claude-opus-5-5\",\"max_tokens\":0,\"messages\":[" USER("hi") "]}");

        assert_int_equal(json_array_size(json_object_get(a, "content")), 0);
        assert_int_equal(json_int(AT(a, "usage"), "output_tokens", -1), 0);
        json_decref(a);
}

static void thinking_is_shown_where_the_server_shows_it(void **state)
{
        struct sim_rig *r = *state;
        json_t *a = ask(r, CHAT,
                        "{\"model\":\"deepseek-v4-flash\",\"max_tokens\":99,\"messages\":[" USER(
                                "think so\\nsay x") "]}");
        json_t *b = ask(r, CHAT, GPT(USER("think so\\nsay x")));
        struct reading d = read_stream(r, CHAT,
                                       "{\"model\":\"deepseek-v4-flash\",\"stream\":true,"
                                       "\"messages\":[" USER("think so\\nsay x") "]}");

        assert_string_equal(json_str(AT(a, "choices", "0", "message"), "reasoning_content", ""),
                            "so");
        assert_null(AT(b, "choices", "0", "message", "reasoning_content"));
        assert_non_null(strstr(d.text.data, "{\"reasoning_content\":\"so\"}"));
        buf_release(&d.text);
        json_decref(a);
        json_decref(b);
}

static void too_many_requests_are_refused(void **state)
{
        struct sim_rig *r = *state;
        int refused = 0;

        r->world->base.limits = true;
        sim_rig_control_ok(r, "settings", "{\"requests_per_minute\":5}");
        for (int i = 0; i < 12; i++) { /* a minute may end meanwhile */
                struct sim_answer a = sim_rig_ask(r, MESSAGES, NEW(USER("x")));

                refused += a.status == 429;
                json_decref(a.body);
        }
        assert_true(refused >= 2);
}

static void a_rule_answers_as_often_as_it_may(void **state)
{
        struct sim_rig *r = *state;
        json_t *a;

        sim_rig_control_ok(r, "scenario",
                           "{\"rules\":[{\"when\":{\"user\":\"*weather*\"},\"times\":1,\"answer\":["
                           "\"Let me look.\",{\"call\":\"bash\",\"arguments\":{\"command\":\"w\"}}"
                           "]},{\"when\":{\"tool\":\"bash\",\"round\":1},\"answer\":\"It says "
                           "{result}\"}]}");
        a = ask(r, MESSAGES, NEW(USER("the weather?")));
        assert_string_equal(json_str(a, "stop_reason", ""), "tool_use");
        json_decref(a);
        a = ask(r, MESSAGES, NEW(USER("the weather?") "," USE("t") "," BLOCKS(RESULT("t"))));
        assert_string_equal(json_str(AT(a, "content", "0"), "text", ""), "It says ok");
        json_decref(a);
        a = ask(r, MESSAGES, NEW(USER("the weather?")));
        assert_string_equal(json_str(AT(a, "content", "0"), "text", ""), "You said: the weather?");
        json_decref(a);
        sim_rig_control_ok(r, "next", "{\"answer\":\"one\"}");
        sim_rig_control_ok(r, "next", "{\"answer\":\"two\",\"usage\":{\"input\":7,\"output\":9}}");
        a = ask(r, MESSAGES, NEW(USER("x")));
        assert_string_equal(json_str(AT(a, "content", "0"), "text", ""), "one");
        json_decref(a);
        a = ask(r, MESSAGES, NEW(USER("x")));
        assert_string_equal(json_str(AT(a, "content", "0"), "text", ""), "two");
        assert_int_equal(json_int(AT(a, "usage"), "output_tokens", 0), 9);
        json_decref(a);
}

static void a_wrong_rule_is_refused(void **state)
{
        static const char *const wrong[] = {
                "{\"rules\":1}",
                "{\"rules\":[{\"whenn\":{}}]}",
                "{\"rules\":[{\"when\":{\"who\":\"x\"}}]}",
                "{\"rules\":[{\"answer\":[{\"tool\":\"x\"}]}]}",
                "{\"rules\":[{\"answer\":[{}]}]}",
                "{\"rules\":[{\"error\":{\"status\":200}}]}",
        };
        struct sim_rig *r = *state;

        for (size_t i = 0; i < COUNT(wrong); i++) {
                struct sim_answer a = sim_rig_ask(r, "/sim/scenario", wrong[i]);

                assert_int_equal(a.status, 400);
                json_decref(a.body);
        }
}

static void streams_say_the_same_in_pieces(void **state)
{
        struct sim_rig *r = *state;
        struct reading d;

        sim_rig_control_ok(r, "settings", "{\"piece_bytes\":5}");
        d = read_stream(r, MESSAGES,
                        "{\"model\":\"claude-opus-5-5\",\"max_tokens\":99,\"stream\":true,"
                        "\"messages\":[" USER("h\\u00e4llo") "]}");
        assert_non_null(strstr(d.text.data, "\"text\":\"You s\""));
        assert_non_null(strstr(d.text.data, "event: message_stop\n"));
        buf_release(&d.text);
        d = read_stream(r, CHAT,
                        "{\"model\":\"gpt-5.4\",\"stream\":true,\"stream_options\":{"
                        "\"include_usage\":true},\"messages\":[" USER("hello") "]}");
        assert_non_null(strstr(d.text.data, "{\"content\":\"You s\"}"));
        assert_non_null(strstr(d.text.data, "\"choices\":[],\"usage\":{\"prompt_tokens\":"));
        assert_non_null(strstr(d.text.data, "data: [DONE]\n\n"));
        buf_release(&d.text);
        d = read_stream(r, RESPONSES,
                        "{\"model\":\"gpt-5.4\",\"stream\":true,\"input\":\"hello\"}");
        assert_non_null(strstr(d.text.data, "\"delta\":\"You s\""));
        assert_non_null(strstr(d.text.data, "event: response.completed\n"));
        buf_release(&d.text);
}

static void the_output_limit_cuts_a_call_off(void **state)
{
        struct sim_rig *r = *state;
        struct reading d;

        d = read_stream(r, MESSAGES,
                        "{\"model\":\"claude-opus-5-5\",\"max_tokens\":5,\"stream\":true,"
                        "\"tools\":[" BASH
                        "],\"messages\":[" USER("use bash: a long command") "]}");
        assert_non_null(strstr(d.text.data, "\"stop_reason\":\"max_tokens\""));
        assert_non_null(strstr(d.text.data, "\"partial_json\":\"{\\\"command\\\":\\\"a long c\"}"));
        assert_null(strstr(d.text.data, "label"));
        buf_release(&d.text);
}

static void models_tell_what_they_can(void **state)
{
        struct sim_rig *r = *state;
        json_t *list = ask(r, "/v1/models", NULL);
        json_t *one = ask(r, "/v1/models/claude-haiku-5-5", NULL);
        struct sim_answer none = sim_rig_ask(r, "/v1/models/x", NULL);

        assert_true(json_array_size(json_object_get(list, "data")) > 3);
        assert_int_equal(json_int(one, "max_input_tokens", 0), 200000);
        assert_true(json_flag(AT(one, "capabilities", "thinking", "types", "adaptive"), "supported",
                              false));
        assert_false(json_flag(AT(one, "capabilities", "thinking", "types", "enabled"), "supported",
                               true));
        assert_int_equal(none.status, 404);
        json_decref(list);
        json_decref(one);
        json_decref(none.body);
        one = ask(r, "/v1/messages/count_tokens",
                  "{\"model\":\"claude-opus-5-5\",\"messages\":[" USER("hello") "]}");
        assert_true(json_int(one, "input_tokens", 0) > 0);
        json_decref(one);
}

/* ---- thinking ---- */

#define THINKING                                                                                   \
        "{\"model\":\"claude-opus-5-5\",\"max_tokens\":4000,\"thinking\":{\"type\":\"adaptive\"}," \
        "\"tools\":[" BASH "],\"messages\":[]}"

/* A conversation whose assistant thought twice and called a tool. */
static json_t *thoughtful(struct sim_rig *r)
{
        json_t *body = json_loads(THINKING, 0, NULL), *answer;
        json_t *messages = json_object_get(body, "messages");
        char *text;

        json_array_append_new(messages, json_pack("{s:s,s:s}", "role", "user", "content",
                                                  "think one\nthink two\nuse bash: ls"));
        text = json_text(body);
        answer = ask(r, MESSAGES, text);
        free(text);
        json_array_append_new(messages, json_pack("{s:s,s:O}", "role", "assistant", "content",
                                                  json_object_get(answer, "content")));
        json_array_append_new(messages, json_pack("{s:s,s:[{s:s,s:s,s:s}]}", "role", "user",
                                                  "content", "type", "tool_result", "tool_use_id",
                                                  json_str(AT(answer, "content", "2"), "id", ""),
                                                  "content", "x"));
        json_decref(answer);
        return body;
}

static void assert_body_refused(struct sim_rig *r, const char *path, json_t *body,
                                const char *reason, const char *words)
{
        char *text = json_text(body);
        struct refusal row = { path, text, reason, words };

        assert_refused(r, &row);
        free(text);
        json_decref(body);
}

static void thinking_goes_back_as_it_came(void **state)
{
        struct sim_rig *r = *state;
        json_t *body = thoughtful(r), *content, *first;
        char *text = json_text(body);

        json_decref(ask(r, MESSAGES, text)); /* unchanged: fine */
        free(text);

        content = (json_t *)AT(body, "messages", "1", "content");
        json_object_set_new(json_array_get(content, 0), "thinking", json_string("other"));
        assert_body_refused(r, MESSAGES, body, "signature", "Invalid `signature`");

        body = thoughtful(r);
        content = (json_t *)AT(body, "messages", "1", "content");
        json_array_remove(content, 0);
        assert_body_refused(r, MESSAGES, body, "thinking_changed",
                            "blocks in the latest assistant message cannot be modified");

        body = thoughtful(r);
        content = (json_t *)AT(body, "messages", "1", "content");
        first = json_incref(json_array_get(content, 0));
        json_array_remove(content, 0);
        json_array_insert_new(content, 1, first);
        assert_body_refused(r, MESSAGES, body, "thinking_changed", "cannot be modified");

        body = thoughtful(r);
        content = (json_t *)AT(body, "messages", "1", "content");
        json_array_remove(content, 0);
        json_array_remove(content, 0);
        assert_body_refused(r, MESSAGES, body, "thinking_missing",
                            "Expected `thinking` or `redacted_thinking`, but found `tool_use`");

        body = thoughtful(r);
        json_object_set_new(body, "model", json_string("claude-sonnet-5-5"));
        assert_body_refused(r, MESSAGES, body, "signature", "Invalid `signature`");
}

static void reasoning_goes_back_with_what_followed_it(void **state)
{
        struct sim_rig *r = *state;
        json_t *body = json_loads(ITEMS(USER("think one\\nuse bash: ls")), 0, NULL), *answer, *item;
        json_t *input = json_object_get(body, "input"), *alone;
        char *text;
        size_t i;

        json_object_set_new(body, "store", json_false());
        json_object_set_new(body, "include", json_pack("[s]", "reasoning.encrypted_content"));
        text = json_text(body);
        answer = ask(r, RESPONSES, text);
        free(text);
        json_array_foreach(json_object_get(answer, "output"), i, item)
                json_array_append(input, item);
        assert_string_equal(json_str(json_array_get(input, 1), "type", ""), "reasoning");
        json_array_append_new(
                input, json_pack("{s:s,s:s,s:s}", "type", "function_call_output", "call_id",
                                 json_str(json_array_get(input, 2), "call_id", ""), "output", "x"));
        text = json_text(body);
        json_decref(ask(r, RESPONSES, text)); /* unchanged: fine */
        free(text);

        alone = json_deep_copy(body);
        json_array_remove(json_object_get(alone, "input"), 1);
        assert_body_refused(r, RESPONSES, alone, "call_without_reasoning",
                            "without its required 'reasoning' item");
        alone = json_deep_copy(body);
        json_array_remove(json_object_get(alone, "input"), 3);
        json_array_remove(json_object_get(alone, "input"), 2);
        assert_body_refused(r, RESPONSES, alone, "reasoning_alone",
                            "of type 'reasoning' was provided without its required following");
        json_decref(answer);
        json_decref(body);
}

/* ---- the cache ---- */

static json_t *cached_body(const char *system, int turns)
{
        json_t *body = json_pack("{s:s,s:i,s:[{s:s,s:s,s:{s:s}}],s:[]}", "model", "claude-opus-5-5",
                                 "max_tokens", 99, "system", "type", "text", "text", system,
                                 "cache_control", "type", "ephemeral", "messages");
        json_t *messages = json_object_get(body, "messages");

        for (int i = 0; i < turns; i++) {
                json_t *block = json_pack("{s:s,s:s}", "type", "text", "text", "a word or two");

                if (i + 1 == turns)
                        json_object_set_new(block, "cache_control",
                                            json_pack("{s:s}", "type", "ephemeral"));
                json_array_append_new(messages,
                                      json_pack("{s:s,s:[o]}", "role", i % 2 ? "assistant" : "user",
                                                "content", block));
        }
        return body;
}

/* Takes over the body. */
static void assert_usage(struct sim_rig *r, json_t *body, bool reads, bool writes)
{
        char *text = json_text(body);
        json_t *answer = ask(r, MESSAGES, text);
        const json_t *usage = json_object_get(answer, "usage");

        assert_int_equal(json_int(usage, "cache_read_input_tokens", 0) > 0, reads);
        assert_int_equal(json_int(usage, "cache_creation_input_tokens", 0) > 0, writes);
        free(text);
        json_decref(answer);
        json_decref(body);
}

static void a_marked_prefix_is_read_the_second_time(void **state)
{
        struct sim_rig *r = *state;
        char *system = mem_alloc(8001);

        memset(system, 'x', 8000);
        system[8000] = '\0';
        assert_usage(r, cached_body(system, 1), false, true);
        assert_usage(r, cached_body(system, 1), true, false);
        assert_usage(r, cached_body(system, 3), true, true);
        assert_usage(r, cached_body(system, 3), true, false);
        system[0] = 'y';
        assert_usage(r, cached_body(system, 3), false, true);
        system[1000] = '\0'; /* too short to be cached */
        assert_usage(r, cached_body(system, 1), false, false);
        assert_usage(r, cached_body(system, 1), false, false);
        free(system);
}

static void a_mark_looks_back_over_twenty_blocks(void **state)
{
        struct sim_rig *r = *state;
        char *system = mem_alloc(8001), *text;
        json_t *body, *answer;

        memset(system, 'x', 8000);
        system[8000] = '\0';
        assert_usage(r, cached_body(system, 1), false, true);
        /* without a mark on the system block, only the newest block looks back */
        for (int turns = 19; turns <= 25; turns += 6) {
                body = cached_body(system, turns);
                json_object_del(json_array_get(json_object_get(body, "system"), 0),
                                "cache_control");
                text = json_text(body);
                answer = ask(r, MESSAGES, text);
                assert_int_equal(json_int(json_object_get(answer, "usage"),
                                          "cache_read_input_tokens", 0) > 0,
                                 turns == 19);
                sim_rig_control_ok(r, "cache", "{\"clear\":true}");
                assert_usage(r, cached_body(system, 1), false, true);
                free(text);
                json_decref(answer);
                json_decref(body);
        }
        free(system);
}

static void openai_caches_long_prompts_by_itself(void **state)
{
        struct sim_rig *r = *state;
        char *long_text = mem_alloc(10001), *body;
        int64_t read[2];

        memset(long_text, 'x', 10000);
        long_text[10000] = '\0';
        body = mem_printf("{\"model\":\"gpt-5.4\",\"messages\":[" USER("%s") "]}", long_text);
        for (int i = 0; i < 2; i++) {
                json_t *a = ask(r, CHAT, body);

                read[i] = json_int(AT(a, "usage", "prompt_tokens_details"), "cached_tokens", -1);
                json_decref(a);
        }
        assert_int_equal(read[0], 0);
        assert_true(read[1] >= 1024);
        assert_int_equal(read[1] % 128, 0);
        free(body);
        free(long_text);
}

/* ---- faults ---- */

#define STREAM                                                                               \
        "{\"model\":\"claude-opus-5-5\",\"max_tokens\":999,\"stream\":true,\"tools\":[" BASH \
        "],\"messages\":[" USER("calls 2 bash {\\\"command\\\":\\\"ls\\\"}") "]}"

static void fault(struct sim_rig *r, const char *kind, const char *more)
{
        char *request = mem_printf("{\"kind\":\"%s\"%s}", kind, more);

        sim_rig_control_ok(r, "faults", request);
        free(request);
}

static void a_stream_is_cut_at_any_byte(void **state)
{
        struct sim_rig *r = *state;

        for (int at = 0; at < 1200; at += 97) {
                char more[24];
                struct reading d;

                snprintf(more, sizeof(more), ",\"at\":%d", at);
                fault(r, "cut_at", more);
                d = read_stream(r, MESSAGES, STREAM);
                assert_int_equal(d.text.len, at);
                assert_int_not_equal(d.kind, ERR_NONE);
                buf_release(&d.text);
        }
        fault(r, "cut_pieces", ",\"at\":3");
        {
                struct reading d = read_stream(r, MESSAGES, STREAM);

                assert_non_null(strstr(d.text.data, "event: content_block_start"));
                assert_null(strstr(d.text.data, "event: content_block_delta"));
                assert_int_not_equal(d.kind, ERR_NONE);
                buf_release(&d.text);
        }
}

static void faults_spoil_the_answer(void **state)
{
        static const struct {
                const char *kind, *has, *lacks;
        } rows[] = {
                { "overload", "\"type\":\"overloaded_error\"", "message_stop" },
                { "bad_json", "oops", "overloaded_error" },
                { "truncate", "\"stop_reason\":\"max_tokens\"", "oops" },
                { "empty", "\"stop_reason\":\"end_turn\"", "content_block_start" },
                { "no_done", "event: message_delta", "message_stop" },
                { "same_index", "\"index\":0", "\"index\":1" },
                { "refuse", "\"stop_reason\":\"refusal\"", "content_block_start" },
                { "pause", "\"stop_reason\":\"pause_turn\"", "toolu_" },
        };
        struct sim_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct reading d;

                fault(r, rows[i].kind, "");
                d = read_stream(r, MESSAGES, STREAM);
                if (!strstr(d.text.data, rows[i].has) || strstr(d.text.data, rows[i].lacks))
                        print_error("%s: %s\n", rows[i].kind, d.text.data);
                assert_non_null(strstr(d.text.data, rows[i].has));
                assert_null(strstr(d.text.data, rows[i].lacks));
                assert_int_equal(d.status, 200);
                buf_release(&d.text);
        }
}

static void overload_limits_and_length_are_told(void **state)
{
        static const struct {
                const char *kind, *more, *path, *body, *words;
                int status;
        } rows[] = {
                { "error", ",\"status\":529", MESSAGES, NEW(USER("x")), "Overloaded", 529 },
                { "error", ",\"status\":500", CHAT, GPT(USER("x")), "Internal server error", 500 },
                { "flood", ",\"retry_after\":3", MESSAGES, NEW(USER("x")), "rate limit", 429 },
                { "overflow", "", MESSAGES, NEW(USER("x")),
                  "prompt is too long: 1000001 tokens > 1000000 maximum", 400 },
                { "overflow", "", CHAT, GPT(USER("x")), "maximum context length is 400000 tokens",
                  400 },
                { "overflow", "", RESPONSES, ITEMS(USER("x")), "exceeds the context window", 400 },
        };
        struct sim_rig *r = *state;
        json_t *view;

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct sim_answer a;

                fault(r, rows[i].kind, rows[i].more);
                a = sim_rig_ask(r, rows[i].path, rows[i].body);
                assert_int_equal(a.status, rows[i].status);
                assert_non_null(strstr(json_str(json_object_get(a.body, "error"), "message", ""),
                                       rows[i].words));
                json_decref(a.body);
        }
        view = sim_rig_control(r, "state", NULL); /* none of them was the client's fault */
        assert_int_equal(json_int(AT(view, "counters"), "invalid_calls", -1), 0);
        json_decref(view);
}

#define PAUSING USER("pause Wait.\\nsay Done now.")

static void a_paused_answer_is_continued(void **state)
{
        struct sim_rig *r = *state;
        json_t *a = ask(r, MESSAGES, NEW(PAUSING)), *b;

        assert_string_equal(json_str(a, "stop_reason", ""), "pause_turn");
        b = ask(r, MESSAGES, NEW(PAUSING ",{\"role\":\"assistant\",\"content\":\"Wait.\"}"));
        assert_string_equal(json_str(AT(b, "content", "0"), "text", ""), "Done now.");
        json_decref(a);
        json_decref(b);
}

static void an_aborted_stream_is_noted(void **state)
{
        struct sim_rig *r = *state;
        static const struct http_handlers handlers = { .on_data = on_data, .on_done = on_done };
        char *url = mem_printf("http://%s" MESSAGES, http_server_address(r->server));
        struct http_request request = {
                .url = url, .headers = r->headers, .body = STREAM, .body_n = strlen(STREAM)
        };
        struct reading d = { 0 };
        struct http_call *call;
        json_t *view;

        buf_init(&d.text, 0);
        sim_rig_control_ok(r, "settings", "{\"piece_ms\":500}");
        call = http_call_start(r->client, &request, &handlers, &d);
        while (r->world->answer_count == 0)
                assert_true(loop_step(r->loop, true));
        http_call_abort(call);
        view = sim_rig_control(r, "messages?kind=aborted&wait=60000", NULL);
        assert_int_equal(json_array_size(json_object_get(view, "items")), 1);
        json_decref(view);
        buf_release(&d.text);
        free(url);
}

static void the_journal_has_the_requests(void **state)
{
        struct sim_rig *r = *state;
        json_t *calls;

        json_decref(ask(r, MESSAGES, NEW(USER("remember me"))));
        calls = sim_rig_control(r, "calls?kind=messages", NULL);
        assert_string_equal(
                json_str(AT(calls, "items", "0", "request", "messages", "0"), "content", ""),
                "remember me");
        assert_string_equal(json_str(AT(calls, "items", "0"), "stop", ""), "end_turn");
        json_decref(calls);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(messages_refuse_in_the_words_of_the_service),
                TEST(chat_completions_refuse_in_the_words_of_the_service),
                TEST(responses_refuse_in_the_words_of_the_service),
                TEST(a_fifth_mark_is_refused),
                TEST(a_key_and_a_version_are_needed),
                TEST(a_text_is_repeated_on_all_wires),
                TEST(the_lines_of_a_person_are_a_plan),
                TEST(lines_that_arrive_while_it_works_are_appended),
                TEST(what_cannot_be_done_is_said),
                TEST(a_tool_that_is_demanded_is_called),
                TEST(lax_accepts_other_kinds_of_tools_and_calls_functions),
                TEST(an_answer_of_no_tokens_fills_the_cache),
                TEST(thinking_is_shown_where_the_server_shows_it),
                TEST(too_many_requests_are_refused),
                TEST(a_rule_answers_as_often_as_it_may),
                TEST(a_wrong_rule_is_refused),
                TEST(streams_say_the_same_in_pieces),
                TEST(the_output_limit_cuts_a_call_off),
                TEST(models_tell_what_they_can),
                TEST(thinking_goes_back_as_it_came),
                TEST(reasoning_goes_back_with_what_followed_it),
                TEST(a_marked_prefix_is_read_the_second_time),
                TEST(a_mark_looks_back_over_twenty_blocks),
                TEST(openai_caches_long_prompts_by_itself),
                TEST(a_stream_is_cut_at_any_byte),
                TEST(faults_spoil_the_answer),
                TEST(overload_limits_and_length_are_told),
                TEST(a_paused_answer_is_continued),
                TEST(an_aborted_stream_is_noted),
                TEST(the_journal_has_the_requests),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
