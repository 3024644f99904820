#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "base/mem.h"
#include "base/utf8.h"

static const char openai_stream[] =
        ": a comment\r\n\r\n"
        "data: "
        "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
        "\"finish_reason\":"
        "null}]}\n\n"
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Gr\xc3\xbc\xc3\x9f "
        "\"},\"finish_reason\":null}],\"usage\":null}\n"
        "\n"
        "data: "
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\ud83d\\ude00\"},"
        "\"finish_reason\":null}]}\n"
        "\n"
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n"
        "\n"
        "data: "
        "{\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,"
        "\"total_tokens\":13}}\n"
        "\n"
        "data: [DONE]\n"
        "\n";

static const char anthropic_stream[] =
        "event: message_start\n"
        "data: "
        "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],"
        "\"usage\":{\"input_tokens\":7,"
        "\"cache_read_input_tokens\":2,\"output_tokens\":1}}}\n\n"
        "event: content_block_start\n"
        "data: "
        "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\","
        "\"text\":\"\"}}"
        "\n\n"
        "event: ping\ndata: {\"type\": \"ping\"}\n\n"
        "event: content_block_delta\n"
        "data: "
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":"
        "\"Gr\xc3\xbc\xc3\x9f \"}}\n\n"
        "event: content_block_delta\n"
        "data: "
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":"
        "\"\xf0\x9f\x98\x80\"}}\n\n"
        "event: something_new\n"
        "data: {\"type\":\"something_new\"}\n"
        "\n"
        "event: content_block_stop\n"
        "data: {\"type\":\"content_block_stop\",\"index\":0}\n"
        "\n"
        "event: message_delta\n"
        "data: "
        "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"
        "\"usage\":{\"output_tokens\":4}}\n"
        "\n"
        "event: message_stop\n"
        "data: {\"type\":\"message_stop\"}\n"
        "\n";

static const struct {
        const struct llm_wire *wire;
        const char *bytes;
} streams[] = {
        { &openai_wire, openai_stream },
        { &anthropic_wire, anthropic_stream },
};

static void gather(void *arg, const char *text, size_t n)
{
        buf_add(arg, text, n);
}

static void assert_whole(struct llm_reader *r, struct buf *streamed)
{
        assert_int_equal(r->failure.kind, ERR_NONE);
        assert_true(r->ended);
        assert_int_equal(r->stop, LLM_STOPPED);
        assert_string_equal(r->text.data, "Gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
        assert_string_equal(streamed->data, r->text.data);
        assert_int_equal(usage_tokens_in(&r->usage), 9);
        assert_int_equal(r->usage.out, 4);
}

static void a_stream_reads_the_same_however_it_is_split(void **state)
{
        (void)state;
        for (size_t s = 0; s < COUNT(streams); s++) {
                size_t n = strlen(streams[s].bytes);

                for (size_t cut = 0; cut <= n; cut++) {
                        struct llm_reader r;
                        struct buf streamed;

                        buf_init(&streamed, 0);
                        llm_reader_init(&r, streams[s].wire, gather, &streamed);
                        assert_int_equal(llm_reader_stream(&r, streams[s].bytes, cut), 0);
                        assert_int_equal(llm_reader_stream(&r, streams[s].bytes + cut, n - cut), 0);
                        assert_whole(&r, &streamed);
                        llm_reader_release(&r);
                        buf_release(&streamed);
                }
        }
}

static void a_stream_reads_the_same_byte_by_byte(void **state)
{
        (void)state;
        for (size_t s = 0; s < COUNT(streams); s++) {
                struct llm_reader r;
                struct buf streamed;

                buf_init(&streamed, 0);
                llm_reader_init(&r, streams[s].wire, gather, &streamed);
                for (const char *p = streams[s].bytes; *p; p++)
                        assert_int_equal(llm_reader_stream(&r, p, 1), 0);
                assert_whole(&r, &streamed);
                llm_reader_release(&r);
                buf_release(&streamed);
        }
}

static void whole_answers_are_read(void **state)
{
        static const struct {
                const struct llm_wire *wire;
                const char *body, *text;
                enum llm_stop stop;
        } rows[] = {
                { &openai_wire,
                  "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},"
                  "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,"
                  "\"completion_tokens\":1}}",
                  "Hi", LLM_STOPPED },
                { &openai_wire,
                  "{\"choices\":[{\"message\":{\"content\":null,\"refusal\":\"No.\"},"
                  "\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":3,"
                  "\"completion_tokens\":1}}",
                  "No.", LLM_LENGTH },
                { &anthropic_wire,
                  "{\"type\":\"message\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"},"
                  "{\"type\":\"text\",\"text\":\"Hi\"}],\"stop_reason\":\"refusal\","
                  "\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}",
                  "Hi", LLM_FILTERED },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct llm_reader r;

                llm_reader_init(&r, rows[i].wire, NULL, NULL);
                assert_int_equal(llm_reader_body(&r, rows[i].body, strlen(rows[i].body)), 0);
                assert_int_equal(llm_reader_body_end(&r), 0);
                assert_string_equal(r.text.data, rows[i].text);
                assert_int_equal(r.stop, rows[i].stop);
                assert_int_equal(usage_tokens_in(&r.usage), 3);
                assert_int_equal(r.usage.out, 1);
                llm_reader_release(&r);
        }
}

static void garbage_is_a_protocol_failure(void **state)
{
        static const struct {
                const struct llm_wire *wire;
                const char *bytes;
                enum error_kind kind;
                const char *expected;
        } rows[] = {
                { &openai_wire, "data: {\"choices\n\n", ERR_PROTOCOL, "" },
                { &openai_wire, "data: [1]\n\n", ERR_PROTOCOL, "not a JSON object" },
                { &openai_wire,
                  "data: {\"error\":{\"message\":\"boom\",\"type\":\"server_error\"}}\n\n", ERR_NET,
                  "server_error: boom" },
                { &anthropic_wire, "event: x\ndata: nonsense\n\n", ERR_PROTOCOL, "" },
                { &anthropic_wire,
                  "event: error\n"
                  "data: "
                  "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
                  "\"message\":\"Overloaded\"}}\n"
                  "\n",
                  ERR_LIMIT, "Overloaded" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct llm_reader r;

                llm_reader_init(&r, rows[i].wire, NULL, NULL);
                assert_int_equal(llm_reader_stream(&r, rows[i].bytes, strlen(rows[i].bytes)), -1);
                assert_int_equal(r.failure.kind, rows[i].kind);
                assert_non_null(strstr(r.failure.text, rows[i].expected));
                llm_reader_release(&r);
        }
}

static void nothing_is_read_after_the_end_or_a_failure(void **state)
{
        static const char failed[] = "data: {\"error\":{\"message\":\"boom\"}}\n\n"
                                     "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
                                     "data: nonsense\n\n";
        struct llm_reader r;

        (void)state;
        for (size_t s = 0; s < COUNT(streams); s++) {
                llm_reader_init(&r, streams[s].wire, NULL, NULL);
                for (int i = 0; i < 2; i++)
                        llm_reader_stream(&r, streams[s].bytes, strlen(streams[s].bytes));
                assert_string_equal(r.text.data, "Gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
                llm_reader_release(&r);
        }
        llm_reader_init(&r, &openai_wire, NULL, NULL);
        assert_int_equal(llm_reader_stream(&r, failed, strlen(failed)), -1);
        assert_int_equal(r.failure.kind, ERR_NET);
        assert_string_equal(r.failure.text, "boom");
        assert_int_equal(r.text.len, 0);
        llm_reader_fail(&r, ERR_PROTOCOL, "later");
        assert_string_equal(r.failure.text, "boom");
        llm_reader_release(&r);
}

static void unusual_valid_answers_do_no_harm(void **state)
{
        static const char huge_counts[] =
                "{\"content\":[],\"usage\":{\"input_tokens\":9223372036854775807,"
                "\"cache_read_input_tokens\":9223372036854775807}}";
        static const char *const bodies[] = { "{}",
                                              "{\"choices\":7}",
                                              "{\"choices\":[]}",
                                              "{\"choices\":[null]}",
                                              "{\"content\":{}}",
                                              huge_counts,
                                              "{\"content\":[7,null,{\"type\":5}],\"usage\":[]}",
                                              "{\"type\":\"error\",\"error\":\"x\"}",
                                              "{\"error\":[]}" };

        (void)state;
        for (size_t i = 0; i < COUNT(bodies); i++) {
                for (size_t s = 0; s < COUNT(streams); s++) {
                        struct llm_reader r;

                        llm_reader_init(&r, streams[s].wire, NULL, NULL);
                        llm_reader_body(&r, bodies[i], strlen(bodies[i]));
                        llm_reader_body_end(&r);
                        assert_int_equal(r.text.len, 0);
                        llm_reader_release(&r);
                }
        }
}

static void an_answer_is_cut_at_its_limit_between_characters(void **state)
{
        struct buf chunk;
        struct llm_reader r;
        int rc = 0;

        (void)state;
        buf_init(&chunk, 0);
        buf_addstr(&chunk, "data: {\"choices\":[{\"delta\":{\"content\":\"x");
        for (int i = 0; i < 1000; i++)
                buf_addstr(&chunk, "\xc3\xbc");
        buf_addstr(&chunk, "\"}}]}\n\n");
        llm_reader_init(&r, &openai_wire, NULL, NULL);
        for (int i = 0; i < 1000 && rc == 0; i++)
                rc = llm_reader_stream(&r, chunk.data, chunk.len);
        assert_int_equal(rc, -1);
        assert_true(r.too_large);
        assert_true(r.text.len <= LLM_ANSWER_MAX && r.text.len > LLM_ANSWER_MAX - 4);
        assert_true(utf8_valid(r.text.data, r.text.len));
        llm_reader_release(&r);
        buf_release(&chunk);
}

static void a_refused_key_is_not_quoted(void **state)
{
        static const char body[] =
                "{\"error\":{\"message\":\"Incorrect API key provided: "
                "sk-ab***yz\",\"type\":\"invalid_request_error\",\"code\":\"invalid_api_key\"}}";
        struct llm_failure f = { 0 };

        (void)state;
        llm_reader_read_failure(&f, ERR_REFUSED, body, strlen(body));
        assert_string_equal(f.text, "invalid_request_error");
        llm_reader_read_failure(&f, ERR_REFUSED, "sk-ab***yz is wrong", 19);
        assert_string_equal(f.text, "");
}

static void failure_texts_of_services_are_clipped(void **state)
{
        struct llm_failure f = { 0 };
        char body[4000];

        (void)state;
        memset(body, 'x', sizeof(body));
        body[10] = '\n';
        llm_reader_read_failure(&f, ERR_NET, body, sizeof(body));
        assert_int_equal(strlen(f.text), LLM_MESSAGE_MAX);
        assert_null(strchr(f.text, '\n'));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_stream_reads_the_same_however_it_is_split),
                cmocka_unit_test(a_stream_reads_the_same_byte_by_byte),
                cmocka_unit_test(whole_answers_are_read),
                cmocka_unit_test(garbage_is_a_protocol_failure),
                cmocka_unit_test(nothing_is_read_after_the_end_or_a_failure),
                cmocka_unit_test(unusual_valid_answers_do_no_harm),
                cmocka_unit_test(an_answer_is_cut_at_its_limit_between_characters),
                cmocka_unit_test(a_refused_key_is_not_quoted),
                cmocka_unit_test(failure_texts_of_services_are_clipped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
