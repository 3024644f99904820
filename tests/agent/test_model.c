/* Asking a model, against a scripted service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_rig.h"

#define SSE     "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define EV(j)   "data: " j "\n\n"
#define NO_BODY "Content-Length: 0\r\n\r\n"

/* clang-format off */
static const char anthropic_call[] =
        SSE
        EV("{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\","
        "\"usage\":{\"input_tokens\":500,"
           "\"cache_read_input_tokens\":90000,\"cache_creation_input_tokens\":2000,"
           "\"output_tokens\":1}}}")
        EV("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\","
           "\"thinking\":\"\",\"signature\":\"\"}}")
        EV("{\"type\":\"content_block_delta\",\"index\":0,"
           "\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}")
        EV("{\"type\":\"content_block_delta\",\"index\":0,"
           "\"delta\":{\"type\":\"signature_delta\",\"signature\":\"sig\"}}")
        EV("{\"type\":\"content_block_start\",\"index\":1,"
           "\"content_block\":{\"type\":\"text\",\"text\":\"Look:\"}}")
        EV("{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\","
           "\"id\":\"toolu_1\",\"name\":\"read\",\"input\":{}}}")
        EV("{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\","
           "\"partial_json\":\"{\\\"path\\\":\\\"/x\\\"}\"}}")
        EV("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},"
        "\"usage\":{\"output_tokens\":800}}")
        EV("{\"type\":\"message_stop\"}");

static const char chat_text[] =
        SSE
        EV("{\"id\":\"chatcmpl-1\",\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}")
        EV("{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}")
        EV("{\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":200}}")
        EV("[DONE]");
/* clang-format on */

static void an_answer_is_a_message_with_blocks_usage_and_cost(void **state)
{
        static const struct fake_answer script[] = { { anthropic_call, .end = FAKE_CLOSE,
                                                       .piece = 11 } };
        struct model_rig *r = *state;

        model_rig_serve(r, &anthropic_wire, "claude-sonnet-4-5", script, 1);
        model_rig_ask(r);
        assert_null(r->answer.failure);
        assert_int_equal(r->answer.stop, MODEL_CALLS);
        assert_string_equal(r->text.data, "Look:");
        assert_string_equal(r->thinking.data, "hm");
        assert_string_equal(r->calls.data, "read ");
        assert_json(json_object_get(r->message, "content"),
                    "[{'type':'thinking','thinking':'hm','thinkingSignature':'sig'},"
                    "{'type':'text','text':'Look:'},"
                    "{'type':'toolCall','id':'toolu_1','name':'read','arguments':{'path':'/x'}}]");
        assert_string_equal(json_str(r->message, "stopReason", ""), "toolUse");
        assert_string_equal(json_str(r->message, "responseId", ""), "msg_1");
        assert_string_equal(json_str(r->message, "api", ""), "anthropic-messages");
        assert_json(json_object_get(r->message, "usage"),
                    "{'input':500,'output':800,'cacheRead':90000,'cacheWrite':2000,"
                    "'totalTokens':93300,'cost':{'total':0.048}}");
        assert_int_equal(r->answer.cost_microusd, 48000);
        assert_false(r->answer.cost_estimated);
}

static void chat_completions_answer_the_same_way(void **state)
{
        static const struct fake_answer script[] = { { chat_text, .end = FAKE_CLOSE } };
        struct model_rig *r = *state;

        model_rig_serve(r, &openai_wire, "gpt-5", script, 1);
        model_rig_ask(r);
        assert_null(r->answer.failure);
        assert_int_equal(r->answer.stop, MODEL_ENDED);
        assert_json(json_object_get(r->message, "content"), "[{'type':'text','text':'Hello'}]");
        assert_int_equal(r->answer.cost_microusd, 1250 + 2000);
}

static void what_cannot_be_sent_is_not(void **state)
{
        struct model_rig *r = *state;

        model_rig_serve(r, &openai_wire, "gpt-5", NULL, 0);
        r->q.messages = json_of("[{'role': 'user', 'content': ' '}]");
        model_rig_ask(r);
        assert_int_equal(r->answer.failure->kind, ERR_INVALID);
        assert_non_null(strstr(r->record.data, "there are no messages"));
        assert_int_equal(fake_server_requests(r->server), 0);
}

static void an_aborted_call_says_nothing_but_has_its_price(void **state)
{
        static const struct fake_answer script[] = { { chat_text, .end = FAKE_KEEP, .piece = 10 } };
        struct model_rig *r = *state;
        struct model_answer spent;

        model_rig_serve(r, &openai_wire, "gpt-5", script, 1);
        model_rig_start(r);
        for (int i = 0; i < ROUNDS && !r->text.len; i++)
                loop_step(r->loop, true);
        model_spent(r->call, &spent);
        assert_true(spent.cost_estimated);
        assert_true(spent.usage.in > 0 && spent.usage.out > 0 && spent.cost_microusd > 0);
        model_abort(r->call);
        for (int i = 0; i < 50; i++)
                loop_step(r->loop, false);
        assert_int_equal(r->done, 0);
        assert_int_equal(http_client_active(r->http), 0);
}

/* ---- retries ---- */

#define JSON_HEAD(status) \
        "HTTP/1.1 " status "\r\nContent-Type: application/json\r\nConnection: close\r\n"
#define ERROR(type, message) "{\"error\":{\"type\":\"" type "\",\"message\":\"" message "\"}}"
#define OVERLOADED                                                         \
        EV("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"," \
           "\"message\":\"Overloaded\"}}")

static void a_service_with_a_problem_is_asked_again(void **state)
{
        static const struct {
                const char *what, *answer;
                bool again;
        } rows[] = {
                { "500", JSON_HEAD("500 Oops") "Retry-After: 0\r\n\r\n", true },
                { "502", JSON_HEAD("502 Oops") "retry-after-ms: 1\r\n\r\n", true },
                { "504", JSON_HEAD("504 Oops") "Retry-After: 0\r\n\r\n", true },
                { "408", JSON_HEAD("408 Oops") "Retry-After: 0\r\n\r\n", true },
                { "409", JSON_HEAD("409 Oops") "Retry-After: 0\r\n\r\n", true },
                { "429", JSON_HEAD("429 Oops") "retry-after-ms: 1\r\n\r\n", true },
                { "529", JSON_HEAD("529 Oops") "retry-after-ms: 1\r\n\r\n", true },
                { "overloaded within a stream, before a word", SSE OVERLOADED, true },
                { "a header that says no",
                  JSON_HEAD("500 Oops") "x-should-retry: false\r\nRetry-After: 0\r\n\r\n", false },
                { "a header that says yes",
                  JSON_HEAD("400 No") "x-should-retry: true\r\nRetry-After: 0\r\n\r\n" ERROR(
                          "invalid_request_error", "once more"),
                  true },
                { "too long a pause", JSON_HEAD("429 No") "Retry-After: 3600\r\n\r\n", false },
                { "a spend limit",
                  JSON_HEAD("429 No") "Retry-After: 0\r\n\r\n"
                                      "{\"error\":{\"type\":\"rate_limit_error\","
                                      "\"message\":\"m\",\"details\":"
                                      "{\"error_code\":\"enforced_spend_limit_reached\"}}}",
                  false },
                { "a wrong request",
                  JSON_HEAD("400 No") "\r\n" ERROR("invalid_request_error", "bad"), false },
                { "a wrong key", JSON_HEAD("401 No") "\r\n" ERROR("authentication_error", "x"),
                  false },
                { "no such model", JSON_HEAD("404 No") "\r\n" ERROR("not_found_error", "x"),
                  false },
        };
        struct model_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                const struct fake_answer script[] = {
                        { rows[i].answer, .end = FAKE_CLOSE },
                        { anthropic_call, .end = FAKE_CLOSE },
                };

                print_message("             %s\n", rows[i].what);
                model_rig_serve(r, &anthropic_wire, "claude-sonnet-4-5", script, 2);
                model_rig_ask(r);
                assert_int_equal(r->retries, rows[i].again);
                assert_int_equal(fake_server_requests(r->server), rows[i].again ? 2 : 1);
                assert_int_equal(r->answer.failure == NULL, rows[i].again);
        }
}

static void an_answer_that_was_begun_is_not_asked_for_again(void **state)
{
        static const char begun[] = SSE EV(
                "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1000}}}")
                EV("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":"
                   "{\"type\":\"text\",\"text\":\"Half an answer\"}}") OVERLOADED;
        static const struct fake_answer script[] = { { begun, .end = FAKE_CLOSE } };
        struct model_rig *r = *state;

        model_rig_serve(r, &anthropic_wire, "claude-sonnet-4-5", script, 1);
        model_rig_ask(r);
        assert_int_equal(r->retries, 0);
        assert_int_equal(r->answer.failure->kind, ERR_LIMIT);
        assert_string_equal(json_str(r->message, "stopReason", ""), "error");
        /* the prompt as told, the output as a guess */
        assert_int_equal(r->answer.usage.in, 1000);
        assert_true(r->answer.usage.out > 0);
        assert_true(r->answer.cost_estimated);
        assert_true(r->answer.cost_microusd > 3000);
        assert_non_null(strstr(r->notice.data, "busy right now"));
}

/* ---- too long ---- */

static void every_word_for_too_long_is_understood(void **state)
{
        static const char *const words[] = {
                "prompt is too long: 210000 tokens > 200000 maximum",
                "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
                "This model's maximum context length is 128000 tokens. However, you requested ...",
                "Your input exceeds the context window of this model.",
                "Input is too long for requested model.",
                "The input token count (1196265) exceeds the maximum number of tokens allowed",
                "This model's maximum prompt length is 131072 but the request contains 537812",
                "Please reduce the length of the messages or completion.",
                "The prompt (500000 tokens) is longer than the model's context length (131072).",
                "Prompt has 84000 tokens, too large for model with 32768 maximum context length",
                "invalid params, context window exceeds limit",
                "Your request exceeded model token limit: 262144",
                "the request exceeds the available context size. try increasing it",
                "tokens to keep from the initial prompt is greater than the context length",
                "prompt too long; exceeded max context length by 4 tokens",
                "Range of input length should be [1, 129024]",
                "Prompt too long",
                "PROMPT IS TOO LONG",
        };
        static const char *const others[] = {
                "Too many tokens, please wait before trying again.",
                "Rate limit reached: input is too long for requested model tier",
                "max_tokens: must be at most 64000",
                "",
        };

        (void)state;
        for (size_t i = 0; i < COUNT(words); i++) {
                if (!llm_failure_is_overflow(words[i]))
                        fail_msg("%s", words[i]);
        }
        for (size_t i = 0; i < COUNT(others); i++) {
                if (llm_failure_is_overflow(others[i]))
                        fail_msg("%s", others[i]);
        }
}

static void too_long_is_a_failure_that_says_so(void **state)
{
        static const struct {
                const char *what, *answer;
                bool too_long, too_large;
        } rows[] = {
                { "Anthropic's words",
                  JSON_HEAD("400 No") "\r\n" ERROR("invalid_request_error",
                                                   "prompt is too long: 2 > 1"),
                  true, false },
                { "too many bytes",
                  JSON_HEAD("413 No") "\r\n" ERROR("request_too_large",
                                                   "Request exceeds the maximum size"),
                  true, true },
                { "quoted by a router",
                  JSON_HEAD("400 No") "\r\n{\"error\":{\"message\":\"Provider returned error\","
                                      "\"metadata\":{\"raw\":\"prompt is too long\"}}}",
                  true, false },
                { "400 without a body", JSON_HEAD("400 No") "\r\n", true, false },
                { "413 without a body", JSON_HEAD("413 No") "\r\n", true, true },
                { "in the stream",
                  SSE EV("{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\","
                         "\"message\":\"prompt is too long\"}}"),
                  true, false },
                { "a rate limit with the same words",
                  JSON_HEAD("429 No") "\r\n" ERROR("rate_limit_error", "maximum context length"),
                  false, false },
                { "another mistake",
                  JSON_HEAD("400 No") "\r\n" ERROR("invalid_request_error", "bad"), false, false },
        };
        struct model_rig *r = *state;

        r->conf.retries = 0;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const struct fake_answer script[] = { { rows[i].answer, .end = FAKE_CLOSE } };

                print_message("             %s\n", rows[i].what);
                model_rig_serve(r, &anthropic_wire, "claude-sonnet-4-5", script, 1);
                model_rig_ask(r);
                assert_non_null(r->answer.failure);
                assert_int_equal(r->answer.failure->too_long, rows[i].too_long);
                assert_int_equal(r->answer.failure->too_large, rows[i].too_large);
        }
}

static void a_window_filled_by_the_prompt_is_full(void **state)
{
        static const char nothing[] = SSE EV(
                "{\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}")
                EV("{\"choices\":[],\"usage\":{\"prompt_tokens\":9000,\"completion_tokens\":0}}")
                        EV("[DONE]");
        static const char refused[] =
                SSE EV("{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5}}}")
                        EV("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\","
                           "\"stop_details\":{\"category\":\"bio\",\"explanation\":\"not this\"}},"
                           "\"usage\":{\"output_tokens\":1}}") EV("{\"type\":\"message_stop\"}");
        static const struct fake_answer full = { nothing, .end = FAKE_CLOSE };
        static const struct fake_answer refusal = { refused, .end = FAKE_CLOSE };
        struct model_rig *r = *state;

        model_rig_serve(r, &openai_wire, "m", &full, 1);
        model_rig_ask(r);
        assert_int_equal(r->answer.stop, MODEL_FULL);
        model_rig_serve(r, &anthropic_wire, "m", &refusal, 1);
        model_rig_ask(r);
        assert_int_equal(r->answer.stop, MODEL_REFUSED);
        assert_string_equal(json_str(r->message, "errorMessage", ""), "bio: not this");
}

/* ---- names ---- */

static void a_tool_is_called_by_its_own_name(void **state)
{
        static const char called[] = SSE EV(
                "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":"
                "{\"name\":\"my_tool_177d3031\",\"arguments\":\"{}\"}}]},"
                "\"finish_reason\":\"tool_calls\"}]}") EV("[DONE]");
        static const struct fake_answer script[] = { { called, .end = FAKE_CLOSE } };
        struct model_rig *r = *state;
        json_t *sent;

        model_rig_serve(r, &openai_wire, "gpt-5", script, 1);
        r->q.tools = json_of("[{'name':'my.tool','description':'d','parameters':{}}]");
        model_rig_ask(r);
        assert_string_equal(r->calls.data, "my.tool ");
        assert_json(json_object_get(r->message, "content"),
                    "[{'type':'toolCall','id':'a','name':'my.tool','arguments':{}}]");
        sent = model_rig_sent(r, 0);
        assert_null(json_object_get(sent, "temperature"));
        json_decref(sent);
}

static void the_wire_is_chosen_by_the_model_or_the_setting(void **state)
{
        static const struct {
                const char *wire, *name, *base_url;
                const struct llm_wire *chosen;
                const char *model;
        } rows[] = {
                { "auto", "anthropic/claude-x", NULL, &anthropic_wire, "claude-x" },
                { "auto", "anthropic/claude-x", "http://h", &anthropic_wire, "claude-x" },
                { "auto", "openai/gpt-5", NULL, &responses_wire, "gpt-5" },
                { NULL, "openai/gpt-5", "http://h/v1", &openai_wire, "gpt-5" },
                { "auto", "qwen3:8b", "http://h/v1", &openai_wire, "qwen3:8b" },
                { "auto", "google/gemini", "http://h/v1", &openai_wire, "google/gemini" },
                { "auto", "gpt-5", NULL, NULL, NULL },
                { "openai", "openai/gpt-5", NULL, &openai_wire, "gpt-5" },
                { "openai", "anthropic/claude-x", "http://h/v1", &openai_wire,
                  "anthropic/claude-x" },
                { "responses", "gpt-5", "http://h/v1", &responses_wire, "gpt-5" },
                { "anthropic", "claude-x", NULL, &anthropic_wire, "claude-x" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const char *model = NULL;

                assert_ptr_equal(
                        llm_wire_find(rows[i].wire, rows[i].name, rows[i].base_url, &model),
                        rows[i].chosen);
                if (rows[i].chosen)
                        assert_string_equal(model, rows[i].model);
        }
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(an_answer_is_a_message_with_blocks_usage_and_cost),
                T(chat_completions_answer_the_same_way),
                T(what_cannot_be_sent_is_not),
                T(an_aborted_call_says_nothing_but_has_its_price),
                T(a_service_with_a_problem_is_asked_again),
                T(an_answer_that_was_begun_is_not_asked_for_again),
                T(every_word_for_too_long_is_understood),
                T(too_long_is_a_failure_that_says_so),
                T(a_window_filled_by_the_prompt_is_full),
                T(a_tool_is_called_by_its_own_name),
                T(the_wire_is_chosen_by_the_model_or_the_setting),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
