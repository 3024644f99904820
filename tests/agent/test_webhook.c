#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "agent/http/http_agent.h"
#include "agent_rig.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"

#define SECRET "a-webhook-secret"
#define JSON(body) \
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body
#define TEXT(body)                                                       \
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n" \
        "Connection: close\r\n\r\n" body
#define HTML                                                                      \
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" \
        "<html><body>Welcome</body></html>"
#define STATUS(s) "HTTP/1.1 " s "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define QUICK     ", \"retryMs\": 1"

static void apply(struct agent_rig *b, const char *url, const char *more)
{
        char *json = mem_printf("{\"url\": \"%s\"%s}", url, more);
        struct error err = { 0 };

        if (fake_apply(b->agents, "w", "webhook", json, &err) < 0)
                fail_msg("%s", err.text);
        free(json);
}

static void serve(struct agent_rig *b, const char *more, const struct fake_answer *script,
                  size_t count)
{
        char *url;

        b->server = fake_server_new(b->loop, script, count);
        url = fake_server_url(b->server, "/hook?key=hidden");
        apply(b, url, more);
        free(url);
}

static void run(struct agent_rig *b, struct fake_turn *t)
{
        fake_turn_init(t, "w", "hi");
        fake_turn_start(t, b->agents);
        fake_turn_await(t, b->loop);
        assert_null(strstr(t->error, "hidden"));
}

static void talk(struct agent_rig *b, struct fake_turn *t, const char *more,
                 const struct fake_answer *script, size_t count)
{
        serve(b, more, script, count);
        run(b, t);
}

static void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is not in '%s'", part, text);
}

/* ---- the request ---- */

static json_t *body_of(const struct agent_rig *b, unsigned i)
{
        const char *body = strstr(fake_server_request(b->server, i), "\r\n\r\n");
        json_t *json;

        assert_non_null(body);
        json = json_loads(body + 4, 0, NULL);
        assert_non_null(json);
        return json;
}

/* "a.b" of an object. */
static const char *at(const json_t *json, const char *path)
{
        const char *dot = strchr(path, '.');
        char *key;

        if (!dot)
                return json_str(json, path, "(none)");
        key = mem_strndup(path, (size_t)(dot - path));
        json = json_object_get(json, key);
        free(key);
        return at(json, dot + 1);
}

static int64_t known_person(void *ctx, const char *platform, const char *user)
{
        (void)ctx;
        return strcmp(platform, "telegram") == 0 && strcmp(user, "7") == 0 ? 3 : 0;
}

static void the_request_describes_message_sender_chat_and_session(void **state)
{
        static const struct fake_answer script[] = { { JSON("{\"reply\":\"ok\"}"),
                                                       .end = FAKE_CLOSE } };
        static const struct {
                const char *path, *value;
        } rows[] = {
                { "event.id", "evt-41" },
                { "event.type", "message.received" },
                { "instance.id", "test" },
                { "instance.channelType", "telegram" },
                { "source.channelType", "telegram" },
                { "source.instanceId", "test" },
                { "source.chatId", "c1" },
                { "source.messageId", "m-9" },
                { "chat.id", "c1" },
                { "chat.type", "group" },
                { "sender.id", "7" },
                { "sender.name", "Ann" },
                { "sender.personId", "per-3" },
                { "content.text", "hi" },
                { "text", "hi" },
                { "messageId", "m-9" },
                { "threadId", "t-3" },
                { "replyTo", "m-8" },
                { "sessionId", "telegram:test:7" },
                { "conversationId", "conv-12" },
                { "turnId", "turn-1" },
                { "traceId", "0af7651916cd43dd8448eb211c80319c" },
                { "replyEndpoint", "POST /api/v2/messages/send" },
        };
        struct attachment file = {
                .kind = "image", .name = "a.png", .mime = "image/png", .size = 12
        };
        struct agent_rig *b = *state;
        struct fake_turn t;
        json_t *body;

        agents_set_persons(b->agents, known_person, NULL);
        serve(b, "", script, 1);
        fake_turn_init(&t, "w", "hi");
        t.input.event = 41;
        t.input.id = "m-9";
        t.input.platform = "telegram";
        t.input.chat = CHAT_GROUP;
        t.input.reply_to = "m-8";
        t.input.attachments = &file;
        t.input.attachment_count = 1;
        t.run.thread = "t-3";
        t.run.session = "telegram:test:7";
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_string_equal(t.text, "ok");
        body = body_of(b, 0);
        for (size_t i = 0; i < COUNT(rows); i++)
                assert_string_equal(at(body, rows[i].path), rows[i].value);
        assert_string_equal(
                json_str(json_array_get(json_object_get(body, "attachments"), 0), "name", ""),
                "a.png");
        assert_int_equal(json_array_size(json_object_get(body, "messages")), 1);
        json_decref(body);
        fake_turn_release(&t);
}

static void the_request_is_signed_and_carries_key_and_trace(void **state)
{
        static const struct fake_answer script[] = { { JSON("{\"reply\":\"ok\"}"),
                                                       .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_turn t;
        const char *request, *body, *signature;
        unsigned char mac[SHA256_SIZE];
        char hex[SHA256_HEX_SIZE], *text, *expected;
        long long seconds;

        talk(b, &t,
             ", \"secret\": \"" SECRET
             "\", \"apiKey\": \"k-123456\", \"headers\": [\"X-Env: test\"]",
             script, 1);
        request = fake_server_request(b->server, 0);
        assert_has(request, "Authorization: Bearer k-123456\r\n");
        assert_has(request, "X-Env: test\r\n");
        assert_has(request, "X-Omni-Provider: webhook\r\n");
        assert_has(request, "Idempotency-Key: turn-1-0af7651916cd43dd8448eb211c80319c\r\n");
        assert_has(request, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-");
        assert_has(request, "X-Trace-Id: 0af7651916cd43dd8448eb211c80319c\r\n");
        signature = strstr(request, "X-Dragoman-Signature: t=");
        assert_non_null(signature);
        seconds = strtoll(signature + strlen("X-Dragoman-Signature: t="), NULL, 10);
        assert_true(seconds > 1600000000);
        body = strstr(request, "\r\n\r\n") + 4;
        text = mem_printf("%lld.%s", seconds, body);
        crypto_hmac_sha256(SECRET, strlen(SECRET), text, strlen(text), mac);
        expected = mem_printf("X-Dragoman-Signature: t=%lld,v1=%s\r\n", seconds,
                              crypto_hex(mac, sizeof(mac), hex));
        assert_has(request, expected);
        free(expected);
        expected = mem_printf("X-Dragoman-Timestamp: %lld\r\n", seconds);
        assert_has(request, expected);
        free(expected);
        free(text);
        fake_turn_release(&t);
}

/* ---- replies ---- */

static void replies_are_json_or_text_and_parts_come_first(void **state)
{
        static const struct {
                const char *answer, *text;
                unsigned parts;
        } rows[] = {
                { JSON("{\"reply\":\"one\"}"), "one", 0 },
                { JSON("{\"text\":\"two\"}"), "two", 0 },
                { JSON("{\"reply\":\"no\",\"parts\":[\"a\",{\"text\":\"b\"}]}"), "a\n\nb", 2 },
                { JSON("\"just text\""), "just text", 0 },
                { TEXT("plain\n"), "plain\n", 0 },
                { JSON("{\"reply\":\"[SILENT]\"}"), "", 0 },
                { JSON("{\"reply\":\" \"}"), "", 0 },
                { JSON("{\"parts\":[]}"), "", 0 },
                { JSON("{}"), "", 0 },
                { JSON(""), "", 0 },
                { TEXT(" [SILENT] \n"), "", 0 },
                { STATUS("204 No Content"), "", 0 },
                { STATUS("200 OK"), "", 0 },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct fake_answer script = { rows[i].answer, .end = FAKE_CLOSE };
                struct agent_rig *b = *state;
                struct fake_turn t;

                talk(b, &t, "", &script, 1);
                assert_int_equal(t.reply.kind, ERR_NONE);
                assert_string_equal(t.text, rows[i].text);
                assert_int_equal(t.reply.part_count, rows[i].parts);
                fake_turn_release(&t);
                teardown(state);
                setup(state);
        }
}

static void the_content_type_tells_json_text_and_pages_apart(void **state)
{
        static const struct {
                const char *type, *body, *text; /* text NULL: unreadable */
        } rows[] = {
                { "application/json", "{\"reply\":\"x\"}", "x" },
                { "APPLICATION/JSON; charset=utf-8", "{\"reply\":\"x\"}", "x" },
                { "text/json", "{\"reply\":\"x\"}", "x" },
                { "application/problem+json; v=1", "{\"reply\":\"x\"}", "x" },
                { "", " {\"reply\":\"x\"}", "x" },
                { "", "plain", "plain" },
                { "text/plain", "{\"reply\":\"x\"}", "{\"reply\":\"x\"}" },
                { "text/markdown", "**x**", "**x**" },
                { "text/html", "plain", NULL },
                { "text/plain", " <HTML>x", NULL },
                { "text/plain", "<!doctype html>x", NULL },
                { "application/jsonp", "{\"reply\":\"x\"}", NULL },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct http_agent_reply r;
                struct error err = { 0 };
                int rc = http_agent_reply_read(&r, http_agent_reply_members, rows[i].type,
                                               rows[i].body, strlen(rows[i].body), &err);

                if ((rc == 0) != (rows[i].text != NULL))
                        fail_msg("%s as %s: %d", rows[i].body, rows[i].type, rc);
                if (rc == 0)
                        assert_string_equal(r.text, rows[i].text);
                http_agent_reply_release(&r);
        }
}

static void parts_beyond_the_limit_join_the_last(void **state)
{
        enum { PARTS = 50000 };
        struct http_agent_reply a;
        struct error err = { 0 };
        struct buf body;
        size_t length = 0;

        (void)state;
        buf_init(&body, 0);
        buf_addstr(&body, "{\"parts\":[\"a\"");
        for (int i = 1; i < PARTS; i++)
                buf_addstr(&body, ",\"a\"");
        buf_addstr(&body, "]}");
        assert_int_equal(http_agent_reply_read(&a, http_agent_reply_members, "application/json",
                                               body.data, body.len, &err),
                         0);
        assert_int_equal(a.part_count, HTTP_AGENT_PARTS_MAX);
        assert_string_equal(a.parts[0], "a");
        for (unsigned i = 0; i < a.part_count; i++)
                length += strlen(a.parts[i]);
        assert_int_equal(strlen(a.text), 3 * PARTS - 2);
        assert_int_equal(length, strlen(a.text) - 2 * (HTTP_AGENT_PARTS_MAX - 1));
        http_agent_reply_release(&a);
        buf_release(&body);
}

/* `json` and 300 KB of blanks, which is parsed on a pool thread; yours to free. */
static char *large(const char *json)
{
        return mem_printf(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n"
                "%s%*s",
                strlen(json) + 300 * 1024, json, 300 * 1024, "");
}

static void large_replies_are_read_like_small_ones(void **state)
{
        static const struct {
                const char *json;
                enum error_kind kind;
                const char *text;
        } rows[] = {
                { "{\"reply\":\"one\"}", ERR_NONE, "one" },
                { "{\"parts\":[\"a\",\"b\"]}", ERR_NONE, "a\n\nb" },
                { "{\"reply\":7}", ERR_PROTOCOL,
                  "The agent's answer could not be understood. Please tell the operator." },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                char *answer = large(rows[i].json);
                struct fake_answer script = { answer, .end = FAKE_CLOSE };
                struct fake_turn t;

                talk(*state, &t, "", &script, 1);
                assert_int_equal(t.reply.kind, rows[i].kind);
                assert_string_equal(t.text, rows[i].text);
                fake_turn_release(&t);
                teardown(state);
                setup(state);
                free(answer);
        }
}

static sem_t gate;

static void wait_at_gate(void *arg)
{
        (void)arg;
        sem_wait(&gate);
}

static void on_open(void *arg)
{
        *(bool *)arg = true;
}

/* Keeps the pool busy, so that the parse waits while its turn is cancelled or the registry freed.
 */
static void a_turn_may_end_while_its_reply_is_being_parsed(void **state)
{
        char *answer = large("{\"reply\":\"one\"}");
        struct fake_answer script = { answer };

        for (int cancelled = 0; cancelled < 2; cancelled++) {
                struct agent_rig *b = *state;
                bool open = false;
                struct fake_turn t;

                serve(b, "", &script, 1);
                for (int i = 0; i < 4; i++) /* no fewer than the pool has threads */
                        loop_work(b->loop, wait_at_gate, on_open, &open);
                fake_turn_init(&t, "w", "hi");
                fake_turn_start(&t, b->agents);
                for (int i = 0; i < 20000 && fake_server_requests(b->server) == 0; i++)
                        loop_step(b->loop, true);
                for (int i = 0; i < 2000; i++)
                        loop_step(b->loop, false);
                assert_int_equal(t.finished, 0);
                if (cancelled)
                        fake_turn_cancel(&t, b->agents);
                for (int i = 0; i < 4; i++)
                        sem_post(&gate);
                while (cancelled && !open)
                        loop_step(b->loop, true);
                teardown(state);
                setup(state);
                assert_int_equal(t.finished, 0);
                fake_turn_release(&t);
        }
        free(answer);
}

static void tokens_and_cost_of_the_metadata_are_recorded(void **state)
{
        static const struct fake_answer script[] = {
                { JSON("{\"reply\":\"ok\",\"metadata\":{\"runId\":\"r\","
                       "\"cost\":{\"inputTokens\":120,\"outputTokens\":30,\"cachedTokens\":100},"
                       "\"costUsd\":0.0125}}"),
                  .end = FAKE_CLOSE }
        };
        struct fake_turn t;

        talk(*state, &t, "", script, 1);
        assert_int_equal(t.reply.tokens_in, 120);
        assert_int_equal(t.reply.tokens_cached, 100);
        assert_int_equal(t.reply.tokens_out, 30);
        assert_int_equal(t.reply.cost_microusd, 12500);
        fake_turn_release(&t);
}

static void absurd_metadata_is_not_counted(void **state)
{
        static const struct {
                const char *metadata;
                int64_t tokens_in, cost_microusd;
        } rows[] = {
                { "{\"inputTokens\":-5,\"costUsd\":-1}", 0, 0 },
                { "{\"inputTokens\":9223372036854775807,\"costUsd\":1e300}", 1000000000, 0 },
                { "{\"usage\":{\"input_tokens\":7,\"usd\":2}}", 7, 2000000 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *body = mem_printf("{\"reply\":\"x\",\"metadata\":%s}", rows[i].metadata);
                struct http_agent_reply r;
                struct error err;

                assert_int_equal(http_agent_reply_read(&r, http_agent_reply_members, NULL, body,
                                                       strlen(body), &err),
                                 0);
                assert_int_equal(r.usage.in, rows[i].tokens_in);
                assert_int_equal(r.usage.cost_microusd, rows[i].cost_microusd);
                http_agent_reply_release(&r);
                free(body);
        }
}

/* ---- failures ---- */

static void unreadable_responses_are_failures(void **state)
{
        static const struct {
                const char *answer;
                enum error_kind kind;
                const char *notice, *record;
        } rows[] = {
                { HTML, ERR_PROTOCOL, "could not be understood", "web page: <html>" },
                { JSON("<!DOCTYPE html><p>x"), ERR_PROTOCOL, "could not be understood",
                  "web page" },
                { JSON("{\"reply\": \"half"), ERR_PROTOCOL, "could not be understood", "half" },
                { JSON("[1]"), ERR_PROTOCOL, "could not be understood", "neither an object" },
                { JSON("{\"reply\": 7}"), ERR_PROTOCOL, "could not be understood",
                  "'reply' of the answer is not a string" },
                { JSON("{\"parts\": \"x\"}"), ERR_PROTOCOL, "could not be understood",
                  "not a list" },
                { JSON("{\"parts\": [7]}"), ERR_PROTOCOL, "could not be understood", "part 1" },
                { "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nConnection: close\r\n\r\nPNG",
                  ERR_PROTOCOL, "could not be understood", "image/png" },
                { "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
                  "Content-Length: 0\r\n\r\n",
                  ERR_PROTOCOL, "did not accept", "HTTP 302" },
                { STATUS("401 Unauthorized"), ERR_REFUSED, "did not accept the request (HTTP 401)",
                  "HTTP 401" },
                { STATUS("404 Not Found"), ERR_MISSING, "(HTTP 404)", "HTTP 404" },
                { STATUS("422 No"), ERR_INVALID, "(HTTP 422)", "HTTP 422" },
                { STATUS("429 Slow Down"), ERR_LIMIT, "busy", "HTTP 429" },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct fake_answer script[] = { { rows[i].answer, .end = FAKE_CLOSE },
                                                { JSON("{\"reply\":\"a second time\"}"),
                                                  .end = FAKE_CLOSE } };
                struct agent_rig *b = *state;
                struct fake_turn t;

                talk(b, &t, QUICK, script, 2);
                assert_int_equal(t.reply.kind, rows[i].kind);
                assert_has(t.text, rows[i].notice);
                assert_has(t.error, rows[i].record);
                assert_true(strlen(t.text) < 120);
                assert_int_equal(fake_server_requests(b->server), 1);
                fake_turn_release(&t);
                teardown(state);
                setup(state);
        }
}

static void a_text_beyond_its_limit_is_not_posted(void **state)
{
        struct buf answer;
        struct fake_answer script = { .end = FAKE_CLOSE };
        struct fake_turn t;

        buf_init(&answer, 0);
        buf_addstr(&answer, TEXT(""));
        while (answer.len < HTTP_AGENT_TEXT_MAX + 1000)
                buf_addstr(&answer, "many words ");
        script.bytes = answer.data;
        talk(*state, &t, "", &script, 1);
        assert_int_equal(t.reply.kind, ERR_LIMIT);
        assert_has(t.text, "too long");
        fake_turn_release(&t);
        teardown(state);
        setup(state);
        buf_release(&answer);
}

static void ten_megabytes_are_not_read(void **state)
{
        size_t n = (size_t)10 << 20;
        const char *head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n";
        char *big = mem_alloc(n);
        struct fake_answer script = { .bytes = big, .n = n, .end = FAKE_CLOSE };
        struct fake_turn t;

        memset(big, 'x', n);
        memcpy(big, head, strlen(head));
        talk(*state, &t, "", &script, 1);
        assert_int_equal(t.reply.kind, ERR_LIMIT);
        assert_has(t.text, "too long");
        assert_true(strlen(t.error) < 400);
        fake_turn_release(&t);
        teardown(state);
        setup(state);
        free(big);
}

static void a_5xx_is_retried_once_with_the_same_key(void **state)
{
        static const struct fake_answer once[] = { { STATUS("500 Oops"), .end = FAKE_CLOSE },
                                                   { JSON("{\"reply\":\"ok\"}"),
                                                     .end = FAKE_CLOSE } };
        static const struct fake_answer twice[] = { { STATUS("500 Oops"), .end = FAKE_CLOSE },
                                                    { STATUS("502 Oops"), .end = FAKE_CLOSE },
                                                    { JSON("{\"reply\":\"ok\"}"),
                                                      .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_turn t;

        talk(b, &t, QUICK, once, 2);
        assert_string_equal(t.text, "ok");
        assert_has(fake_server_request(b->server, 0),
                   "Idempotency-Key: turn-1-0af7651916cd43dd8448eb211c80319c\r\n");
        assert_has(fake_server_request(b->server, 1),
                   "Idempotency-Key: turn-1-0af7651916cd43dd8448eb211c80319c\r\n");
        fake_turn_release(&t);
        teardown(state);
        setup(state);
        b = *state;
        talk(b, &t, QUICK, twice, 3);
        assert_int_equal(t.reply.kind, ERR_NET);
        assert_has(t.text, "has a problem right now (HTTP 502)");
        assert_has(t.error, "after 2 tries");
        assert_int_equal(fake_server_requests(b->server), 2);
        fake_turn_release(&t);
}

static void a_retry_that_would_come_too_late_is_not_tried(void **state)
{
        static const char *const settings[] = { QUICK ", \"timeoutMs\": 600000",
                                                ", \"retryMs\": 500, \"timeoutMs\": 400" };
        static const struct fake_answer scripts[][2] = {
                { { "HTTP/1.1 503 Busy\r\nRetry-After: 31\r\nContent-Length: 0\r\n"
                    "Connection: close\r\n\r\n",
                    .end = FAKE_CLOSE },
                  { JSON("{\"reply\":\"ok\"}"), .end = FAKE_CLOSE } },
                { { STATUS("500 Oops"), .end = FAKE_CLOSE },
                  { JSON("{\"reply\":\"ok\"}"), .end = FAKE_CLOSE } },
        };

        for (size_t i = 0; i < COUNT(scripts); i++) {
                struct agent_rig *b = *state;
                struct fake_turn t;

                talk(b, &t, settings[i], scripts[i], 2);
                assert_int_not_equal(t.reply.kind, ERR_NONE);
                assert_has(t.text, "has a problem right now");
                assert_int_equal(fake_server_requests(b->server), 1);
                fake_turn_release(&t);
                teardown(state);
                setup(state);
        }
}

static void a_failed_connection_is_retried_once(void **state)
{
        struct fake_turn t;

        apply(*state, "http://127.0.0.1:1/hook", QUICK);
        run(*state, &t);
        assert_int_equal(t.reply.kind, ERR_NET);
        assert_has(t.text, "cannot be reached");
        assert_has(t.error, "after 2 tries");
        fake_turn_release(&t);
}

static void a_connection_lost_after_the_request_is_not_retried(void **state)
{
        static const struct fake_answer script[] = {
                { NULL, .end = FAKE_CLOSE }, { JSON("{\"reply\":\"twice\"}"), .end = FAKE_CLOSE }
        };
        struct agent_rig *b = *state;
        struct fake_turn t;

        talk(b, &t, QUICK, script, 2);
        assert_int_equal(t.reply.kind, ERR_NET);
        assert_has(t.text, "was lost");
        assert_int_equal(fake_server_requests(b->server), 1);
        fake_turn_release(&t);
}

static void a_slow_webhook_is_not_asked_twice(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        talk(b, &t, QUICK ", \"timeoutMs\": 50, \"late\": \"discard\"", NULL, 0);
        assert_int_equal(t.reply.kind, ERR_TIMEOUT);
        assert_has(t.text, "took too long");
        assert_has(t.error, "50 ms");
        assert_int_equal(fake_server_requests(b->server), 1);
        fake_turn_release(&t);
}

static void a_slow_webhook_may_reply_late(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        talk(b, &t, ", \"timeoutMs\": 50", NULL, 0);
        assert_int_equal(t.reply.kind, ERR_TIMEOUT);
        assert_has(t.text, "The answer follows");
        assert_int_equal(fake_server_open(b->server), 1);
        fake_turn_release(&t);
}

static void a_late_call_that_fails_is_not_tried_again(void **state)
{
        static const struct fake_answer failure = { STATUS("500 Oops"), .end = FAKE_CLOSE };
        struct agent_rig *b = *state;
        struct fake_turn t;

        talk(b, &t, QUICK ", \"timeoutMs\": 50", NULL, 0);
        assert_has(t.text, "The answer follows");
        fake_turn_release(&t);
        fake_server_answer(b->server, &failure);
        for (int i = 0; i < ROUNDS && fake_server_open(b->server) > 0; i++)
                loop_step(b->loop, true);
        for (int i = 0; i < 100; i++)
                loop_step(b->loop, false);
        assert_int_equal(fake_server_requests(b->server), 1);
}

static void a_silent_turn_waits_for_no_late_reply(void **state)
{
        static const struct fake_answer script[] = { { STATUS("202 Accepted"),
                                                       .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_turn t;

        for (size_t i = 0; i < 2; i++) {
                serve(b, ", \"timeoutMs\": 50", script, i);
                fake_turn_init(&t, "w", "hi");
                t.run.mode = MODE_SILENT;
                fake_turn_start(&t, b->agents);
                fake_turn_await(&t, b->loop);
                assert_int_equal(t.reply.kind, i == 0 ? ERR_TIMEOUT : ERR_NONE);
                assert_null(strstr(t.text, "follows"));
                fake_turn_release(&t);
                teardown(state);
                setup(state);
                b = *state;
        }
}

/* ---- modes ---- */

static void fire_and_forget_ends_when_the_request_is_accepted(void **state)
{
        static const struct fake_answer script[] = { { JSON("{\"reply\":\"not shown\"}"),
                                                       .end = FAKE_CLOSE } };
        struct fake_turn t;

        talk(*state, &t, ", \"mode\": \"fire-and-forget\"", script, 1);
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "");
        fake_turn_release(&t);
}

static void fire_and_forget_is_never_late(void **state)
{
        struct fake_turn t;

        talk(*state, &t, ", \"mode\": \"fire-and-forget\", \"timeoutMs\": 50", NULL, 0);
        assert_int_equal(t.reply.kind, ERR_TIMEOUT);
        assert_has(t.text, "took too long");
        fake_turn_release(&t);
}

static void a_202_with_a_reply_ends_the_turn(void **state)
{
        static const struct fake_answer script[] = {
                { "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\n"
                  "Connection: close\r\n\r\n{\"reply\":\"at once\"}",
                  .end = FAKE_CLOSE }
        };
        struct fake_turn t;

        talk(*state, &t, "", script, 1);
        assert_string_equal(t.text, "at once");
        fake_turn_release(&t);
}

static void a_202_keeps_the_turn_open_until_the_reply_deadline(void **state)
{
        static const struct fake_answer script[] = { { STATUS("202 Accepted"),
                                                       .end = FAKE_CLOSE } };
        struct fake_turn t;

        talk(*state, &t, ", \"replySeconds\": 1", script, 1);
        assert_int_equal(t.reply.kind, ERR_TIMEOUT);
        assert_has(t.error, "no reply reached the reply URL");
        fake_turn_release(&t);
}

static void a_turn_can_be_cancelled_in_every_state(void **state)
{
        static const struct fake_answer busy[] = { { STATUS("500 Oops"), .end = FAKE_CLOSE } };
        static const struct fake_answer accepted[] = { { STATUS("202 Accepted"),
                                                         .end = FAKE_CLOSE } };
        const struct {
                const struct fake_answer *script;
                size_t count;
                int progresses;
        } rows[] = { { NULL, 0, 0 }, { busy, 1, 1 }, { accepted, 1, 1 } };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct agent_rig *b = *state;
                struct fake_turn t;

                serve(b, "", rows[i].script, rows[i].count);
                fake_turn_init(&t, "w", "hi");
                fake_turn_start(&t, b->agents);
                for (int n = 0; n < ROUNDS && (t.progresses < rows[i].progresses ||
                                               fake_server_requests(b->server) == 0);
                     n++)
                        loop_step(b->loop, true);
                fake_turn_cancel(&t, b->agents);
                assert_int_equal(t.finished, 0);
                fake_turn_release(&t);
                teardown(state);
                setup(state);
        }
}

/* ---- configuration and health ---- */

static void configuration_errors_are_reported(void **state)
{
        static const struct {
                const char *json, *expected;
        } rows[] = {
                { "{}", "url" },
                { "{\"url\": \"ftp://x\"}", "url" },
                { "{\"url\": \"http://x\", \"mode\": \"both\"}", "mode" },
                { "{\"url\": \"http://x\", \"headers\": [\"no colon\"]}",
                  "is not written as \"Name: value\"" },
                { "{\"url\": \"http://x\", \"headers\": [\"Content-Length: 3\"]}",
                  "the request sets itself" },
                { "{\"url\": \"http://x\", \"headers\": [\"X-A: 1\\r\\nX-B: 2\"]}",
                  "contains a control character" },
                { "{\"url\": \"http://x\", \"headers\": ["
                  "\"A: 1\",\"A: 1\",\"A: 1\",\"A: 1\",\"A: 1\","
                  "\"A: 1\",\"A: 1\",\"A: 1\",\"A: 1\",\"A: 1\","
                  "\"A: 1\",\"A: 1\",\"A: 1\",\"A: 1\",\"A: 1\","
                  "\"A: 1\",\"A: 1\",\"A: 1\",\"A: 1\",\"A: 1\","
                  "\"A: 1\",\"A: 1\",\"A: 1\",\"A: 1\",\"A: 1\"]}",
                  "more than 24 lines" },
                { "{\"url\": \"http://x\", \"apiKey\": \"two words\"}", "blank" },
                { "{\"url\": \"http://x\", \"format\": \"openclaw\"}", "fire-and-forget" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };

                assert_null(agent_conf_make("w", "webhook", rows[i].json, &err));
                assert_has(err.text, rows[i].expected);
        }
}

static void keep_health(void *arg, const struct agent_health *h)
{
        *(struct agent_health *)arg = *h;
}

static void check(struct agent_rig *b, struct agent_health *h)
{
        struct error err = { 0 };

        *h = (struct agent_health){ 0 };
        assert_int_equal(agents_check(b->agents, "w", keep_health, h, &err), 0);
        for (int i = 0; i < ROUNDS && !h->known; i++)
                loop_step(b->loop, true);
        assert_true(h->known);
}

static void health_is_checked_by_head_or_at_a_health_url(void **state)
{
        static const struct fake_answer script[] = {
                { STATUS("405 No"), .end = FAKE_CLOSE },
                { STATUS("404 Not Found"), .end = FAKE_CLOSE },
                { JSON("{\"status\":\"ok\"}"), .end = FAKE_CLOSE },
                { STATUS("405 No"), .end = FAKE_CLOSE },
        };
        struct agent_rig *b = *state;
        struct agent_health h;
        char *more, *url;

        serve(b, "", script, COUNT(script));
        check(b, &h);
        assert_true(h.healthy);
        assert_has(fake_server_request(b->server, 0), "HEAD /hook");
        check(b, &h);
        assert_false(h.healthy);
        assert_has(h.why, "HTTP 404");
        url = fake_server_url(b->server, "/healthz");
        more = mem_printf(", \"healthUrl\": \"%s\"", url);
        free(url);
        url = fake_server_url(b->server, "/hook");
        apply(b, url, more);
        check(b, &h);
        assert_true(h.healthy);
        assert_has(fake_server_request(b->server, 2), "GET /healthz");
        check(b, &h);
        assert_false(h.healthy);
        free(more);
        free(url);
}

static void a_response_that_quotes_the_key_is_not_recorded_with_it(void **state)
{
        static const struct fake_answer quotes = {
                "HTTP/1.1 400 No\r\nConnection: close\r\n\r\nbad key k-93-not-for-logs",
                .end = FAKE_CLOSE
        };
        const struct fake_answer script[] = { quotes, quotes };
        struct agent_rig *b = *state;
        struct agent_health h;
        struct fake_turn t;
        char *url, *more;

        talk(b, &t, ", \"apiKey\": \"k-93-not-for-logs\"", script, 2);
        assert_has(fake_server_request(b->server, 0), "Bearer k-93-not-for-logs");
        assert_has(t.error, "bad key ");
        assert_null(strstr(t.error, "k-93"));
        fake_turn_release(&t);
        url = fake_server_url(b->server, "/healthz");
        more = mem_printf(", \"apiKey\": \"k-93-not-for-logs\", \"healthUrl\": \"%s\"", url);
        apply(b, url, more);
        check(b, &h);
        assert_has(h.why, "bad key ");
        assert_null(strstr(h.why, "k-93"));
        free(more);
        free(url);
}

static void a_reload_reads_secrets_again(void **state)
{
        static const struct fake_answer script[] = { { STATUS("200 OK"), .end = FAKE_CLOSE },
                                                     { STATUS("200 OK"), .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        char *url;

        b->server = fake_server_new(b->loop, script, 2);
        url = fake_server_url(b->server, "/");
        for (unsigned i = 0; i < 2; i++) {
                struct fake_turn t;

                assert_int_equal(setenv("TEST_WEBHOOK_KEY", i == 0 ? "first" : "second", 1), 0);
                apply(b, url, ", \"apiKey\": \"env:TEST_WEBHOOK_KEY\"");
                run(b, &t);
                assert_has(fake_server_request(b->server, i),
                           i == 0 ? "Authorization: Bearer first" : "Authorization: Bearer second");
                fake_turn_release(&t);
        }
        unsetenv("TEST_WEBHOOK_KEY");
        free(url);
}

static void only_a_repeatable_webhook_is_asked_again_after_a_crash(void **state)
{
        struct agent_rig *b = *state;

        apply(b, "http://127.0.0.1:1/", "");
        assert_int_equal(agents_abilities(b->agents, "w") & (AGENT_REPEATABLE | AGENT_HISTORY), 0);
        apply(b, "http://127.0.0.1:1/", ", \"repeatable\": true, \"history\": true");
        assert_true(agents_abilities(b->agents, "w") & AGENT_REPEATABLE);
        assert_true(agents_abilities(b->agents, "w") & AGENT_HISTORY);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(the_request_describes_message_sender_chat_and_session),
                TEST(the_request_is_signed_and_carries_key_and_trace),
                TEST(replies_are_json_or_text_and_parts_come_first),
                cmocka_unit_test(the_content_type_tells_json_text_and_pages_apart),
                TEST(parts_beyond_the_limit_join_the_last),
                TEST(large_replies_are_read_like_small_ones),
                TEST(a_turn_may_end_while_its_reply_is_being_parsed),
                TEST(tokens_and_cost_of_the_metadata_are_recorded),
                cmocka_unit_test(absurd_metadata_is_not_counted),
                TEST(unreadable_responses_are_failures),
                TEST(a_text_beyond_its_limit_is_not_posted),
                TEST(ten_megabytes_are_not_read),
                TEST(a_5xx_is_retried_once_with_the_same_key),
                TEST(a_retry_that_would_come_too_late_is_not_tried),
                TEST(a_failed_connection_is_retried_once),
                TEST(a_connection_lost_after_the_request_is_not_retried),
                TEST(a_slow_webhook_is_not_asked_twice),
                TEST(a_slow_webhook_may_reply_late),
                TEST(a_late_call_that_fails_is_not_tried_again),
                TEST(a_silent_turn_waits_for_no_late_reply),
                TEST(fire_and_forget_ends_when_the_request_is_accepted),
                TEST(fire_and_forget_is_never_late),
                TEST(a_202_with_a_reply_ends_the_turn),
                TEST(a_202_keeps_the_turn_open_until_the_reply_deadline),
                TEST(a_turn_can_be_cancelled_in_every_state),
                TEST(configuration_errors_are_reported),
                TEST(health_is_checked_by_head_or_at_a_health_url),
                TEST(a_response_that_quotes_the_key_is_not_recorded_with_it),
                TEST(a_reload_reads_secrets_again),
                TEST(only_a_repeatable_webhook_is_asked_again_after_a_crash),
        };

        sem_init(&gate, 0, 0);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
