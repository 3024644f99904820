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

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(an_answer_is_a_message_with_blocks_usage_and_cost),
                T(chat_completions_answer_the_same_way),
                T(what_cannot_be_sent_is_not),
                T(an_aborted_call_says_nothing_but_has_its_price),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
