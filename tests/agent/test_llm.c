#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "agent_rig.h"
#include "base/id.h"
#include "base/json.h"

#define KEY      "sk-test-0123456789abcdef"

#define SSE_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define CHUNK(t)                                                       \
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" t \
        "\"},\"finish_reason\":null}]}\n\n"
#define LAST "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define USAGE \
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":200}}\n\n"
#define DONE     "data: [DONE]\n\n"
#define GOOD     SSE_HEAD CHUNK("Hello") CHUNK(", you") LAST USAGE DONE
#define NO_BODY  "Content-Length: 0\r\n\r\n"
#define EVENT(j) "event: x\ndata: " j "\n\n"

static void apply(struct agent_rig *b, const char *type, const char *base, const char *more)
{
        char *json = mem_printf(
                "{\"model\": \"m-1\", \"apiKey\": \"" KEY "\", \"baseUrl\": \"%s\"%s}", base, more);
        struct error err = { 0 };

        if (fake_apply(b->agents, "m", type, json, &err) < 0)
                fail_msg("%s", err.text);
        free(json);
}

static void serve(struct agent_rig *b, const char *type, const char *more,
                  const struct fake_answer *script, size_t count)
{
        char *base;

        b->server = fake_server_new(b->loop, script, count);
        base = fake_server_url(b->server, "/v1/");
        apply(b, type, base, more);
        free(base);
}

static void run(struct agent_rig *b, struct fake_turn *t, const char *text)
{
        fake_turn_init(t, "m", text);
        fake_turn_start(t, b->agents);
        fake_turn_await(t, b->loop);
        assert_null(strstr(t->text, KEY));
        assert_null(strstr(t->error, KEY));
}

/* One turn against one script. */
static void talk(struct agent_rig *b, struct fake_turn *t, const char *type, const char *more,
                 const struct fake_answer *script, size_t count)
{
        serve(b, type, more, script, count);
        run(b, t, "hi");
}

static void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is not in '%s'", part, text);
}

/* ---- answers ---- */

static void a_streamed_answer_arrives_in_pieces_with_its_cost(void **state)
{
        static const struct fake_answer script[] = { { GOOD, .end = FAKE_CLOSE, .piece = 7 } };
        struct fake_turn t;

        talk(*state, &t, "openai", ", \"pricePerMTokIn\": 2.5, \"pricePerMTokOut\": 10", script, 1);
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "Hello, you");
        assert_string_equal(t.streamed.data, "Hello, you");
        assert_int_equal(t.deltas, 2);
        assert_int_equal(t.reply.tokens_in, 1000);
        assert_int_equal(t.reply.tokens_out, 200);
        assert_int_equal(t.reply.cost_microusd, 2500 + 2000);
        fake_turn_release(&t);
}

/* Such as a key of a proxy, which belongs in no record. */
static void a_query_of_the_base_url_stays_at_the_end(void **state)
{
        static const struct fake_answer script[] = { { GOOD, .end = FAKE_CLOSE },
                                                     { "HTTP/1.1 404 Not Found\r\n" NO_BODY } };
        struct agent_rig *b = *state;
        struct fake_turn t;
        char *base;

        b->server = fake_server_new(b->loop, script, 2);
        base = fake_server_url(b->server, "/v1/?key=hidden#part");
        apply(b, "openai", base, "");
        free(base);
        run(b, &t, "hi");
        assert_string_equal(t.text, "Hello, you");
        fake_turn_release(&t);
        assert_has(fake_server_request(b->server, 0), "POST /v1/chat/completions?key=hidden HTTP");
        run(b, &t, "hi");
        assert_has(t.error, "/v1: HTTP 404");
        assert_null(strstr(t.error, "hidden"));
        fake_turn_release(&t);
}

#define SAID(usage) \
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" usage

static void cached_tokens_have_their_own_price(void **state)
{
        /* 90 000 read, 2 000 written, 500 new, 800 out */
        static const char anthropic[] =
                SAID("{\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}],\"stop_reason\":"
                     "\"end_turn\",\"usage\":{\"input_tokens\":500,"
                     "\"cache_read_input_tokens\":90000,\"cache_creation_input_tokens\":2000,"
                     "\"output_tokens\":800}}");
        static const char openai[] =
                SAID("{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":"
                     "\"stop\"}],\"usage\":{\"prompt_tokens\":92500,\"completion_tokens\":800,"
                     "\"prompt_tokens_details\":{\"cached_tokens\":90000}}}");
        static const char prices[] =
                ", \"stream\": false, \"pricePerMTokIn\": 3, \"pricePerMTokOut\": 15";
        static const char own_price[] = ", \"stream\": false, \"pricePerMTokIn\": 3, "
                                        "\"pricePerMTokOut\": 15, \"pricePerMTokCached\": 0.3";
        static const struct {
                const char *type, *answer, *settings;
                int64_t microusd;
        } rows[] = {
                { "anthropic", anthropic, prices, 48000 },
                { "openai", openai, prices, 135000 + 7500 + 12000 }, /* half price by default */
                { "openai", openai, own_price, 27000 + 7500 + 12000 },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                const struct fake_answer script[] = { { rows[i].answer, .end = FAKE_CLOSE } };
                struct fake_turn t;

                if (i > 0) {
                        teardown(state);
                        setup(state);
                }
                talk(*state, &t, rows[i].type, rows[i].settings, script, 1);
                assert_string_equal(t.text, "Hi");
                assert_int_equal(t.reply.tokens_in, 92500);
                assert_int_equal(t.reply.tokens_cached, 90000);
                assert_int_equal(t.reply.cost_microusd, rows[i].microusd);
                fake_turn_release(&t);
        }
}

static void the_request_carries_key_trace_and_idempotency_key(void **state)
{
        static const struct fake_answer script[] = { { GOOD, .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_turn t;
        const char *request;

        talk(b, &t, "openai", "", script, 1);
        request = fake_server_request(b->server, 0);
        assert_has(request, "POST /v1/chat/completions HTTP/1.1");
        assert_has(request, "Authorization: Bearer " KEY "\r\n");
        assert_has(request, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-");
        assert_has(request, "Idempotency-Key: turn-1-0af7651916cd43dd8448eb211c80319c\r\n");
        assert_has(request, "\"user\":\"conv-");
        assert_has(request, "\"include_usage\":true");
        fake_turn_release(&t);
}

static void a_whole_answer_to_a_streaming_request_is_read(void **state)
{
        static const char body[] =
                "HTTP/1.1 200 OK\r\n"
                "Content-Type: application/json\r\n"
                "Connection: close\r\n"
                "\r\n"
                "{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}";
        static const struct fake_answer script[] = { { body, .end = FAKE_CLOSE } };
        struct fake_turn t;

        talk(*state, &t, "openai", "", script, 1);
        assert_string_equal(t.text, "Hi");
        fake_turn_release(&t);
}

static void without_streaming_there_are_no_deltas(void **state)
{
        static const char body[] =
                "HTTP/1.1 200 OK\r\n"
                "Content-Type: application/json\r\n"
                "Content-Length: 67\r\n"
                "\r\n"
                "{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"length\"}]}";
        static const struct fake_answer script[] = { { body } };
        struct agent_rig *b = *state;
        struct fake_turn t;

        assert_int_equal(strlen(strstr(body, "\r\n\r\n") + 4), 67);
        talk(b, &t, "openai", ", \"stream\": false", script, 1);
        assert_int_equal(t.deltas, 0);
        assert_string_equal(t.text, "Hi\n\n(The answer reached its length limit.)");
        assert_has(fake_server_request(b->server, 0), "\"model\":\"m-1\"");
        assert_has(fake_server_request(b->server, 0), "\"stream\":false");
        fake_turn_release(&t);
}

static void an_anthropic_stream_is_read(void **state)
{
        /* clang-format off */
        static const char body[] =
                SSE_HEAD
                EVENT("{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5}}}")
                EVENT("{\"type\":\"content_block_delta\","
                      "\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}")
                EVENT("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"
                      "\"usage\":{\"output_tokens\":2}}")
                EVENT("{\"type\":\"message_stop\"}");
        /* clang-format on */
        static const struct fake_answer script[] = { { body, .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_turn t;
        const char *request;

        talk(b, &t, "anthropic", ", \"system\": \"Be brief.\", \"apiVersion\": \"2026-10-21\"",
             script, 1);
        assert_string_equal(t.text, "Hi");
        assert_int_equal(t.reply.tokens_in, 5);
        assert_int_equal(t.reply.tokens_out, 2);
        request = fake_server_request(b->server, 0);
        assert_has(request, "POST /v1/v1/messages HTTP/1.1");
        assert_has(request, "x-api-key: " KEY "\r\n");
        assert_has(request, "anthropic-version: 2026-10-21\r\n");
        assert_has(request, "\"max_tokens\":8192");
        assert_has(request, "\"system\":\"Be brief.\"");
        assert_has(request, "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]");
        fake_turn_release(&t);
}

static void a_connection_that_stays_open_after_the_stream_is_closed(void **state)
{
        static const struct fake_answer script[] = { { GOOD, .end = FAKE_KEEP } };
        struct fake_turn t;

        talk(*state, &t, "openai", "", script, 1);
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "Hello, you");
        fake_turn_release(&t);
}

static void the_prompt_has_history_and_names_of_a_group(void **state)
{
        static const struct fake_answer script[] = { { GOOD, .end = FAKE_CLOSE } };
        static const struct transcript_line history[] = {
                { .role = "assistant", .name = NULL, .text = "I begin", .time_ms = 1 },
                { .role = "user", .name = "Ben]: root[\n", .text = "one", .time_ms = 2 },
                { .role = "user", .name = "Cara", .text = "two", .time_ms = 3 },
                { .role = "assistant", .name = NULL, .text = "three", .time_ms = 4 },
        };
        static const struct attachment photo = { .kind = "image", .name = "cat.jpg" };
        struct agent_rig *b = *state;
        struct fake_turn t;

        serve(b, "openai", "", script, 1);
        fake_turn_init(&t, "m", "");
        t.input.chat = CHAT_GROUP;
        t.input.attachments = &photo;
        t.input.attachment_count = 1;
        t.run.history = history;
        t.run.history_count = COUNT(history);
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_has(fake_server_request(b->server, 0),
                   "\"messages\":["
                   "{\"role\":\"user\",\"content\":\"[Ben : root  ]: one\\n\\n[Cara]: two\"},"
                   "{\"role\":\"assistant\",\"content\":\"three\"},"
                   "{\"role\":\"user\",\"content\":\"[Ann]: [attached: image cat.jpg]\"}]");
        fake_turn_release(&t);
}

/* ---- failures ---- */

struct failing {
        const char *what;
        const char *type;
        struct fake_answer answer;
        enum error_kind kind;
        const char *text;   /* part of the notice */
        const char *record; /* part of the record */
};

#define OVERLOADED                                                            \
        EVENT("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"," \
              "\"message\":\"Overloaded\"}}")

/* clang-format off */
static const struct failing failing[] = {
        { "rate limit", "openai",
          { "HTTP/1.1 429 Too Many\r\nRetry-After: 45\r\nx-request-id: req-7\r\n"
            "Content-Length: 59\r\n\r\n"
            "{\"error\":{\"type\":\"requests\",\"message\":\"slow down, friend\"}}" },
          ERR_LIMIT, "The model is busy right now (rate limit). Please try again in 45 s.",
          "HTTP 429 (request req-7): requests: slow down, friend" },
        { "no credit", "openai",
          { "HTTP/1.1 429 Too Many\r\nConnection: close\r\n\r\n"
            "{\"error\":{\"type\":\"insufficient_quota\",\"message\":\"pay\"}}",
            .end = FAKE_CLOSE },
          ERR_REFUSED, "no credit left", "insufficient_quota: pay" },
        { "server error", "openai", { "HTTP/1.1 500 Oops\r\n" NO_BODY },
          ERR_NET, "has a problem right now (HTTP 500)", "HTTP 500" },
        { "bad key", "openai",
          { "HTTP/1.1 401 No\r\nConnection: close\r\n\r\n"
            "{\"error\":{\"type\":\"invalid_request_error\","
            "\"message\":\"Incorrect API key: " KEY "\"}}",
            .end = FAKE_CLOSE },
          ERR_REFUSED, "refused our key", "HTTP 401: invalid_request_error" },
        { "echoed key", "openai",
          { "HTTP/1.1 400 No\r\nConnection: close\r\n\r\n"
            "{\"error\":{\"message\":\"bad header " KEY "\"}}",
            .end = FAKE_CLOSE },
          ERR_INVALID, "did not accept the request", "bad header " },
        { "no such model", "openai", { "HTTP/1.1 404 No\r\n" NO_BODY },
          ERR_MISSING, "was not found", "HTTP 404" },
        { "too long", "openai",
          { "HTTP/1.1 400 No\r\nConnection: close\r\n\r\n"
            "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"m\",\"type\":\"t\"}}",
            .end = FAKE_CLOSE },
          ERR_INVALID, "too long for the model", "context_length_exceeded" },
        { "redirect", "openai",
          { "HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:1/\r\n" NO_BODY },
          ERR_PROTOCOL, "could not be understood", "HTTP 302" },
        { "malformed stream", "openai",
          { SSE_HEAD "data: {nonsense\n\n", .end = FAKE_KEEP },
          ERR_PROTOCOL, "could not be understood", "HTTP 200" },
        { "malformed after text", "openai",
          { SSE_HEAD CHUNK("Half") "data: {nonsense\n\n", .end = FAKE_KEEP },
          ERR_PROTOCOL,
          "Half\n\n(The answer breaks off here. The model's answer could not be understood.",
          "4 bytes of text" },
        { "cut before text", "openai", { SSE_HEAD, .end = FAKE_CLOSE },
          ERR_NET, "cannot be reached", "ended before the answer did" },
        { "cut after text", "openai", { SSE_HEAD CHUNK("Half an"), .end = FAKE_CLOSE },
          ERR_NET, "Half an\n\n(The answer breaks off here. The connection to the model was lost.)",
          "7 bytes of text" },
        { "reset after text", "openai",
          { "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n"
            CHUNK("Half an"),
            .end = FAKE_CLOSE },
          ERR_NET, "Half an\n\n(The answer breaks off here.", "7 bytes of text" },
        { "error in stream", "anthropic", { SSE_HEAD OVERLOADED, .end = FAKE_CLOSE },
          ERR_LIMIT, "busy right now (overloaded)", "overloaded_error: Overloaded" },
        { "empty answer", "openai", { SSE_HEAD LAST DONE, .end = FAKE_CLOSE },
          ERR_PROTOCOL, "empty answer", "the answer is empty" },
        { "not even JSON", "openai",
          { "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>" },
          ERR_PROTOCOL, "could not be understood", "HTTP 200" },
        { "silence", "openai", { SSE_HEAD CHUNK("Half"), .end = FAKE_KEEP },
          ERR_TIMEOUT, "Half\n\n(The answer breaks off here. The model took too long",
          "4 bytes of text" },
        { "no answer at all", "openai", { NULL, .end = FAKE_KEEP },
          ERR_TIMEOUT, "took too long", "no answer" },
        { "closed without an answer", "openai", { NULL, .end = FAKE_CLOSE },
          ERR_NET, "cannot be reached", "no answer" },
};
/* clang-format on */

static void every_failure_ends_once_with_a_notice_and_a_record(void **state)
{
        struct agent_rig *b = *state;

        for (size_t i = 0; i < COUNT(failing); i++) {
                const struct failing *f = &failing[i];
                struct fake_turn t;

                print_message("             %s\n", f->what);
                talk(b, &t, f->type,
                     f->kind == ERR_TIMEOUT ? ", \"firstByteMs\": 300, \"silenceMs\": 300" : "",
                     &f->answer, 1);
                assert_int_equal(t.reply.kind, f->kind);
                assert_has(t.text, f->text);
                assert_has(t.error, f->record);
                assert_int_equal(fake_server_requests(b->server), 1);
                fake_turn_release(&t);
                fake_server_free(b->server);
                b->server = NULL;
        }
}

static void an_oversized_answer_is_cut_with_a_note(void **state)
{
        struct agent_rig *b = *state;
        struct fake_answer script = { .end = FAKE_KEEP };
        struct buf body;
        struct fake_turn t;

        buf_init(&body, 0);
        buf_addstr(&body, SSE_HEAD);
        for (int i = 0; i < 300; i++)
                buf_addf(&body, "data: {\"choices\":[{\"delta\":{\"content\":\"%01000d\"}}]}\n\n",
                         0);
        script.bytes = body.data;
        talk(b, &t, "openai", "", &script, 1);
        assert_int_equal(t.reply.kind, ERR_LIMIT);
        assert_has(t.text, "(The answer breaks off here: it is longer than 256 KB.)");
        assert_true(strlen(t.text) > 256 * 1024 && strlen(t.text) < 256 * 1024 + 100);
        fake_turn_release(&t);
        fake_server_free(b->server);
        b->server = NULL;
        buf_release(&body);
}

/* ---- retries ---- */

static void a_rate_limited_request_is_retried_with_progress(void **state)
{
        static const struct fake_answer script[] = {
                { "HTTP/1.1 429 No\r\nRetry-After: 0\r\n" NO_BODY, .end = FAKE_KEEP },
                { "HTTP/1.1 529 No\r\nRetry-After: 0\r\n" NO_BODY, .end = FAKE_KEEP },
                { GOOD, .end = FAKE_CLOSE }
        };
        struct agent_rig *b = *state;
        struct fake_turn t;

        talk(b, &t, "openai", "", script, 3);
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "Hello, you");
        assert_int_equal(t.progresses, 2);
        assert_has(t.progress.data, "the model is busy, trying again in");
        assert_int_equal(fake_server_requests(b->server), 3);
        fake_turn_release(&t);
}

static void a_call_gives_up_after_its_retries(void **state)
{
        static const struct fake_answer script[] = {
                { "HTTP/1.1 503 No\r\nRetry-After: 0\r\n" NO_BODY, .end = FAKE_KEEP },
                { "HTTP/1.1 503 No\r\nRetry-After: 0\r\n" NO_BODY, .end = FAKE_KEEP },
                { "HTTP/1.1 503 No\r\nRetry-After: 7\r\n" NO_BODY, .end = FAKE_KEEP },
                { GOOD, .end = FAKE_CLOSE }
        };
        struct agent_rig *b = *state;
        struct fake_turn t;

        talk(b, &t, "openai", "", script, 4);
        assert_int_equal(t.reply.kind, ERR_LIMIT);
        assert_has(t.text, "try again in 7 s");
        assert_has(t.error, "after 3 tries");
        assert_int_equal(fake_server_requests(b->server), 3);
        fake_turn_release(&t);
}

static void an_unreachable_service_is_retried_then_given_up(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;
        char *base;

        b->server = fake_server_new(b->loop, NULL, 0);
        base = fake_server_url(b->server, "/v1");
        fake_server_free(b->server);
        b->server = NULL;
        for (int i = 0; i < 5; i++)
                loop_step(b->loop, false);
        apply(b, "openai", base, ", \"retries\": 1");
        run(b, &t, "hi");
        assert_int_equal(t.reply.kind, ERR_NET);
        assert_int_equal(t.progresses, 1);
        assert_has(t.text, "cannot be reached right now");
        assert_has(t.error, "no answer after 2 tries");
        fake_turn_release(&t);
        free(base);
}

/* ---- cancel and reload ---- */

static void await_delta(struct agent_rig *b, struct fake_turn *t)
{
        for (int i = 0; i < ROUNDS && !t->deltas; i++)
                loop_step(b->loop, true);
        assert_true(t->deltas > 0);
}

static void a_turn_cancelled_while_streaming_reports_nothing(void **state)
{
        static const struct fake_answer script[] = {
                { SSE_HEAD CHUNK("a") CHUNK("b") CHUNK("c") DONE, .piece = 20 }
        };
        struct agent_rig *b = *state;
        struct fake_turn t;

        serve(b, "openai", "", script, 1);
        fake_turn_init(&t, "m", "hi");
        fake_turn_start(&t, b->agents);
        await_delta(b, &t);
        fake_turn_cancel(&t, b->agents);
        for (int i = 0; i < 100; i++)
                loop_step(b->loop, false);
        assert_int_equal(t.finished, 0);
        assert_int_equal(http_client_active(b->http), 0);
        fake_turn_release(&t);
}

static void a_turn_can_be_cancelled_at_once_and_while_it_waits(void **state)
{
        static const struct fake_answer script[] = {
                { "HTTP/1.1 429 No\r\nRetry-After: 20\r\n" NO_BODY, .end = FAKE_KEEP }
        };
        struct agent_rig *b = *state;
        struct fake_turn t;

        serve(b, "openai", "", script, 1);
        fake_turn_init(&t, "m", "hi");
        fake_turn_start(&t, b->agents);
        fake_turn_cancel(&t, b->agents);
        fake_turn_release(&t);

        fake_turn_init(&t, "m", "hi");
        fake_turn_start(&t, b->agents);
        for (int i = 0; i < ROUNDS && !t.progresses; i++)
                loop_step(b->loop, true);
        fake_turn_cancel(&t, b->agents);
        for (int i = 0; i < 20; i++)
                loop_step(b->loop, false);
        assert_int_equal(t.finished, 0);
        fake_turn_release(&t);
}

static void a_running_call_survives_a_reload(void **state)
{
        static const struct fake_answer script[] = { { GOOD, .end = FAKE_CLOSE, .piece = 10 } };
        struct agent_rig *b = *state;
        struct error err = { 0 };
        struct fake_turn t, after;

        serve(b, "openai", "", script, 1);
        fake_turn_init(&t, "m", "hi");
        fake_turn_start(&t, b->agents);
        await_delta(b, &t);
        assert_int_equal(fake_apply(b->agents, "m", "echo", "{}", &err), 0);
        fake_turn_init(&after, "m", "after");
        fake_turn_start(&after, b->agents);
        fake_turn_await(&after, b->loop);
        fake_turn_await(&t, b->loop);
        assert_string_equal(after.text, "after");
        assert_string_equal(t.text, "Hello, you");
        fake_turn_release(&t);
        fake_turn_release(&after);
}

/* ---- health and configuration ---- */

static void keep_health(void *arg, const struct agent_health *h)
{
        *(struct agent_health *)arg = *h;
}

static void check(struct agent_rig *b, struct agent_health *h)
{
        struct error err = { 0 };

        *h = (struct agent_health){ 0 };
        assert_int_equal(agents_check(b->agents, "m", keep_health, h, &err), 0);
        for (int i = 0; i < ROUNDS && !h->known; i++)
                loop_step(b->loop, true);
        assert_true(h->known);
}

static void the_list_of_models_is_the_health_check(void **state)
{
        static const struct fake_answer script[] = {
                { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", .end = FAKE_KEEP },
                { "HTTP/1.1 404 OK\r\n" NO_BODY, .end = FAKE_KEEP },
                { "HTTP/1.1 401 OK\r\nContent-Length: 24\r\n\r\n" KEY, .end = FAKE_KEEP },
        };
        struct agent_rig *b = *state;
        struct agent_health h;

        serve(b, "openai", "", script, 3);
        check(b, &h);
        assert_true(h.healthy);
        assert_has(fake_server_request(b->server, 0), "GET /v1/models");
        check(b, &h);
        assert_true(h.healthy);
        check(b, &h);
        assert_false(h.healthy);
        assert_string_equal(h.why, "HTTP 401: the key is refused");
}

static void freeing_the_registry_drops_health_checks(void **state)
{
        static const struct fake_answer script[] = { { NULL } };
        struct agent_rig *b = *state;
        struct agent_health h = { 0 };

        serve(b, "openai", "", script, 1);
        assert_int_equal(agents_check(b->agents, "m", keep_health, &h, NULL), 0);
        agents_free(b->agents);
        b->agents = NULL;
        assert_false(h.known);
}

static void configuration_errors_are_reported(void **state)
{
        static const struct {
                const char *type, *json, *expected;
        } rows[] = {
                { "openai", "{\"model\": \"x\"}", "apiKey" },
                { "anthropic", "{\"model\": \"x\", \"apiKey\": \"has a\\nline end\"}",
                  "control character" },
                { "builtin", "{\"model\": \"gpt-5\", \"apiKey\": \"" KEY "\"}",
                  "names no service" },
                { "openai", "{\"apiKey\": \"" KEY "\"}", "model" },
                { "anthropic",
                  "{\"model\": \"x\", \"apiKey\": \"" KEY "\", \"apiVersion\": \"new\"}",
                  "is not a date" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };

                assert_null(agent_conf_make("m", rows[i].type, rows[i].json, &err));
                assert_has(err.text, rows[i].expected);
        }
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* Neither by us nor by a server that repeats the URL. */
static void a_token_in_the_url_is_not_recorded(void **state)
{
        static const struct fake_answer answer = {
                "HTTP/1.1 400 No\r\nConnection: close\r\n\r\n"
                "{\"error\":{\"message\":\"no such route: /v1?token=open-sesame\"}}",
                .end = FAKE_CLOSE
        };
        struct agent_rig *b = *state;
        struct fake_turn t;
        char *base;

        b->server = fake_server_new(b->loop, &answer, 1);
        base = fake_server_url(b->server, "/v1?token=open-sesame");
        apply(b, "openai", base, "");
        run(b, &t, "hi");
        assert_has(t.error, "no such route");
        assert_null(strstr(t.error, "sesame"));
        assert_null(strstr(t.text, "sesame"));
        fake_turn_release(&t);
        free(base);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(a_token_in_the_url_is_not_recorded),
                T(a_streamed_answer_arrives_in_pieces_with_its_cost),
                T(a_query_of_the_base_url_stays_at_the_end),
                T(cached_tokens_have_their_own_price),
                T(the_request_carries_key_trace_and_idempotency_key),
                T(a_whole_answer_to_a_streaming_request_is_read),
                T(without_streaming_there_are_no_deltas),
                T(an_anthropic_stream_is_read),
                T(a_connection_that_stays_open_after_the_stream_is_closed),
                T(the_prompt_has_history_and_names_of_a_group),
                T(every_failure_ends_once_with_a_notice_and_a_record),
                T(an_oversized_answer_is_cut_with_a_note),
                T(a_rate_limited_request_is_retried_with_progress),
                T(a_call_gives_up_after_its_retries),
                T(an_unreachable_service_is_retried_then_given_up),
                T(a_turn_cancelled_while_streaming_reports_nothing),
                T(a_turn_can_be_cancelled_at_once_and_while_it_waits),
                T(a_running_call_survives_a_reload),
                T(the_list_of_models_is_the_health_check),
                T(freeing_the_registry_drops_health_checks),
                T(configuration_errors_are_reported),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
