#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "agent/llm/llm.h"
#include "agent_rig.h"
#include "base/json.h"

#define SSE      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define EV(e, j) "event: " e "\ndata: {\"event\":\"" e "\"," j "}\n\n"
#define STARTED  EV("RunStarted", "\"run_id\":\"run/1\",\"session_id\":\"s\"")
#define PIECE(t) EV("RunContent", "\"content\":\"" t "\",\"content_type\":\"str\"")
#define COMPLETED                        \
        EV("RunCompleted",               \
           "\"content\":\"Grüße, Ann " \
           "🎲\",\"metrics\":{\"input_tokens\":20,\"output_tokens\":7,\"cost\":0.002}")
#define RUN                                          \
        STARTED EV("ToolCallStarted", "\"tool\":{}") \
                PIECE("Grüße") ": heartbeat\n\n" PIECE(", Ann 🎲") COMPLETED
#define TEAM                                                         \
        EV("TeamRunStarted", "\"run_id\":\"t1\"")                    \
        PIECE("a member thinks")                                     \
        COMPLETED EV("TeamRunContent", "\"content\":\"the \"")       \
                EV("RunContent", "\"content\":\"noise\"")            \
                        EV("TeamRunContent", "\"content\":\"team\"") \
                                EV("TeamRunCompleted", "\"content\":\"the team\"")
#define FLOW                                                                     \
        EV("WorkflowStarted", "\"run_id\":\"w1\"")                               \
        STARTED PIECE("step") COMPLETED EV("StepCompleted", "\"content\":\"x\"") \
                EV("WorkflowCompleted", "\"content\":\"the result\"")
#define JSON(body) \
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body
#define FAILS(s, b) \
        "HTTP/1.1 " s "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" b

static void serve(struct agent_rig *b, const char *more, const struct fake_answer *script,
                  size_t count)
{
        struct error err = { 0 };
        char *url, *json;

        b->server = fake_server_new(b->loop, script, count);
        url = fake_server_url(b->server, "/");
        json = mem_printf("{\"url\": \"%s\", \"id\": \"game night\", \"apiKey\": \"os-key-1\"%s%s}",
                          url, strstr(more, "retries") ? "" : ", \"retries\": 0", more);
        if (fake_apply(b->agents, "g", "agno", json, &err) < 0)
                fail_msg("%s", err.text);
        free(json);
        free(url);
}

static void talk(struct agent_rig *b, struct fake_turn *t, const char *more, const char *answer,
                 size_t piece)
{
        struct fake_answer script = { answer, .end = FAKE_CLOSE, .piece = piece };

        serve(b, more, &script, 1);
        fake_turn_init(t, "g", "hi");
        fake_turn_start(t, b->agents);
        fake_turn_await(t, b->loop);
}

static void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is not in '%s'", part, text);
}

static void a_run_streams_increments_and_reports_its_cost(void **state)
{
        struct fake_turn t;

        talk(*state, &t, "", SSE RUN, 3);
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "Grüße, Ann 🎲");
        assert_string_equal(t.streamed.data, "Grüße, Ann 🎲");
        assert_int_equal(t.reply.tokens_in, 20);
        assert_int_equal(t.reply.tokens_out, 7);
        assert_int_equal(t.reply.cost_microusd, 2000);
        fake_turn_release(&t);
}

/* Split in two at every byte, and fed byte by byte. */
static void read_cut(const struct llm_wire *wire, const char *stream, size_t n, size_t cut,
                     const char *text)
{
        struct llm_reader r;

        llm_reader_init(&r, wire, NULL, NULL);
        assert_int_equal(llm_reader_stream(&r, stream, cut), 0);
        assert_int_equal(llm_reader_stream(&r, stream + cut, n - cut), 0);
        assert_true(r.ended);
        assert_string_equal(r.text.data, text);
        llm_reader_release(&r);
}

static void an_agno_stream_reads_the_same_however_it_is_split(void **state)
{
        static const struct {
                const struct llm_wire *wire;
                const char *stream, *text;
        } rows[] = {
                { &agno_agent_wire, RUN, "Grüße, Ann 🎲" },
                { &agno_team_wire, TEAM, "the team" },
                { &agno_workflow_wire, FLOW, "the result" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                size_t n = strlen(rows[i].stream);
                struct llm_reader r;

                for (size_t cut = 0; cut <= n; cut++)
                        read_cut(rows[i].wire, rows[i].stream, n, cut, rows[i].text);
                llm_reader_init(&r, rows[i].wire, NULL, NULL);
                for (size_t at = 0; at < n; at++)
                        assert_int_equal(llm_reader_stream(&r, rows[i].stream + at, 1), 0);
                assert_string_equal(r.text.data, rows[i].text);
                llm_reader_release(&r);
        }
}

static void the_request_is_a_form_with_session_and_user(void **state)
{
        static const struct fake_answer script[] = { { SSE RUN, .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_turn t;
        const char *request;

        serve(b, "", script, 1);
        fake_turn_init(&t, "g", "what & when?");
        t.input.chat = CHAT_GROUP;
        t.input.platform = "discord";
        t.run.session = "discord-channel-9";
        t.run.prompt = "Read the room.";
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        request = fake_server_request(b->server, 0);
        assert_has(request, "POST /agents/game%20night/runs HTTP/1.1");
        assert_has(request, "Authorization: Bearer os-key-1\r\n");
        assert_has(request, "Content-Type: application/x-www-form-urlencoded\r\n");
        assert_has(request, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-");
        assert_has(
                request,
                "message=Read%20the%20room.%0A%0A%5BAnn%5D%3A%20what%20%26%20when%3F&stream=true&"
                "session_id=discord-channel-9&user_id=discord%3A7");
        fake_turn_release(&t);
}

struct where {
        const char *agent, *adapter, *channel, *thread;
        int64_t begun;
};

/* The session_id of the request; yours to free. */
static char *session_at(struct agent_rig *b, const struct where *w, unsigned request)
{
        struct fake_turn t;
        const char *at;

        fake_turn_init(&t, w->agent, "hi");
        t.run.adapter = w->adapter;
        t.run.channel = w->channel;
        t.run.thread = w->thread;
        t.run.reset_turn = w->begun;
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        fake_turn_release(&t);
        at = strstr(fake_server_request(b->server, request), "session_id=");
        assert_non_null(at);
        return mem_strndup(at + 11, strcspn(at + 11, "&"));
}

/* AgentOS remembers by this name, so no conversation may get the memory of another. */
static void a_conversation_without_a_session_has_a_unique_name(void **state)
{
        static const struct where places[] = {
                { "g", "tg", "1234567", NULL, 0 },  { "g", "tg", "1234567", NULL, 0 },
                { "g", "tg2", "1234567", NULL, 0 }, { "g", "tg", "7654321", NULL, 0 },
                { "g", "tg", "1234567", "9", 0 },   { "g", "tg", "1234567", NULL, 12 },
        };
        struct fake_answer script[COUNT(places)];
        struct agent_rig *b = *state;
        char *names[COUNT(places)];

        for (size_t i = 0; i < COUNT(places); i++)
                script[i] = (struct fake_answer){ SSE RUN, .end = FAKE_CLOSE };
        serve(b, "", script, COUNT(places));
        for (size_t i = 0; i < COUNT(places); i++)
                names[i] = session_at(b, &places[i], (unsigned)i);
        assert_string_equal(names[0], names[1]);
        assert_null(strstr(names[0], "1234567"));
        for (size_t i = 1; i < COUNT(places); i++)
                for (size_t j = i + 1; j < COUNT(places); j++)
                        assert_string_not_equal(names[i], names[j]);
        for (size_t i = 0; i < COUNT(places); i++)
                free(names[i]);
}

/* AgentOS refuses a run without a message. */
static void a_picture_without_text_is_a_message(void **state)
{
        static const struct attachment picture = { .kind = "image", .name = "cat.jpg" };
        static const struct fake_answer script[] = { { SSE RUN, .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_turn t;

        serve(b, "", script, 1);
        fake_turn_init(&t, "g", NULL);
        t.input.attachments = (struct attachment *)&picture;
        t.input.attachment_count = 1;
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_has(fake_server_request(b->server, 0),
                   "\r\n\r\nmessage=%5Battached%3A%20image%20cat.jpg%5D&");
        fake_turn_release(&t);
}

static void whole_answers_and_structured_content_are_read(void **state)
{
        static const struct {
                const char *answer, *text;
                enum error_kind kind;
        } rows[] = {
                { JSON("{\"run_id\":\"r\",\"content\":\"done\",\"status\":\"COMPLETED\"}"), "done",
                  ERR_NONE },
                { JSON("{\"content\":{\"when\":\"eight\"},\"status\":\"COMPLETED\"}"),
                  "{\"when\":\"eight\"}", ERR_NONE },
                { JSON("{\"content\":\"the database is gone\",\"status\":\"ERROR\"}"),
                  "The agent failed. Please try again.", ERR_NET },
                { JSON("{\"content\":\"\",\"status\":\"PAUSED\"}"),
                  "The agent has paused: it waits for an approval in its own console.",
                  ERR_CONFLICT },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct fake_turn t;

                talk(*state, &t, ", \"stream\": false", rows[i].answer, 0);
                assert_int_equal(t.reply.kind, rows[i].kind);
                assert_string_equal(t.text, rows[i].text);
                fake_turn_release(&t);
                teardown(state);
                setup(state);
        }
}

static void failures_are_reported_and_a_failed_runs_text_is_not_posted(void **state)
{
        static const struct {
                const char *answer;
                enum error_kind kind;
                const char *notice, *record;
        } rows[] = {
                { SSE STARTED EV("RunError", "\"content\":\"tool exploded\""), ERR_NET,
                  "The agent failed", "tool exploded" },
                { SSE STARTED EV("RunCancelled", "\"reason\":\"by hand\""), ERR_NET,
                  "The agent failed", "by hand" },
                { SSE STARTED EV("RunPaused", "\"x\":1"), ERR_CONFLICT, "approval", "approval" },
                { SSE STARTED PIECE("half"), ERR_NET, "half\n\n(The answer breaks off here.",
                  "stream ended before" },
                { SSE STARTED, ERR_NET, "cannot be reached", "stream ended before" },
                { SSE "data: nonsense\n\n", ERR_PROTOCOL, "could not be understood", "" },
                { FAILS("401 No", "{\"detail\":\"Invalid authentication token\"}"), ERR_REFUSED,
                  "refused our key", "Invalid authentication" },
                { FAILS("404 No", "{\"detail\":\"Agent not found\"}"), ERR_MISSING, "was not found",
                  "Agent not found" },
                { FAILS("422 No", "{\"detail\":[{\"loc\":[\"message\"]}]}"), ERR_INVALID,
                  "did not accept", "loc" },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct fake_turn t;

                talk(*state, &t, "", rows[i].answer, 0);
                assert_int_equal(t.reply.kind, rows[i].kind);
                assert_has(t.text, rows[i].notice);
                assert_has(t.error, rows[i].record);
                assert_null(strstr(t.error, "os-key-1"));
                fake_turn_release(&t);
                teardown(state);
                setup(state);
        }
}

static void a_run_that_may_have_started_is_not_retried(void **state)
{
        static const struct fake_answer script[] = {
                { FAILS("503 Unavailable", "{\"detail\":\"went away\"}"), .end = FAKE_CLOSE },
                { SSE RUN, .end = FAKE_CLOSE },
        };
        struct agent_rig *b = *state;
        struct fake_turn t;

        serve(b, ", \"retries\": 2", script, 2);
        fake_turn_init(&t, "g", "hi");
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_int_equal(t.reply.kind, ERR_LIMIT);
        assert_int_equal(fake_server_requests(b->server), 1);
        fake_turn_release(&t);
}

static void a_cancelled_run_is_cancelled_at_the_agentos_too(void **state)
{
        static const struct fake_answer script[] = { { SSE STARTED PIECE("working") },
                                                     { JSON("{}") } };
        struct agent_rig *b = *state;
        struct fake_turn t;

        serve(b, "", script, 2);
        fake_turn_init(&t, "g", "hi");
        fake_turn_start(&t, b->agents);
        for (int i = 0; i < ROUNDS && t.deltas == 0; i++)
                loop_step(b->loop, true);
        fake_turn_cancel(&t, b->agents);
        for (int i = 0; i < ROUNDS && fake_server_requests(b->server) < 2; i++)
                loop_step(b->loop, true);
        assert_has(fake_server_request(b->server, 1),
                   "POST /agents/game%20night/runs/run%2F1/cancel HTTP/1.1");
        assert_has(fake_server_request(b->server, 1), "Authorization: Bearer os-key-1\r\n");
        fake_turn_release(&t);
}

static void keep_health(void *arg, const struct agent_health *h)
{
        *(struct agent_health *)arg = *h;
}

static void the_agentos_health_endpoint_is_checked(void **state)
{
        static const struct fake_answer script[] = { { JSON("{\"status\":\"ok\"}"),
                                                       .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct agent_health h = { 0 };
        struct error err;

        serve(b, ", \"kind\": \"team\"", script, 1);
        assert_int_equal(agents_check(b->agents, "g", keep_health, &h, &err), 0);
        for (int i = 0; i < ROUNDS && !h.known; i++)
                loop_step(b->loop, true);
        assert_true(h.healthy);
        assert_has(fake_server_request(b->server, 0), "GET /health HTTP/1.1");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_run_streams_increments_and_reports_its_cost),
                TEST(an_agno_stream_reads_the_same_however_it_is_split),
                TEST(the_request_is_a_form_with_session_and_user),
                TEST(a_conversation_without_a_session_has_a_unique_name),
                TEST(a_picture_without_text_is_a_message),
                TEST(whole_answers_and_structured_content_are_read),
                TEST(failures_are_reported_and_a_failed_runs_text_is_not_posted),
                TEST(a_run_that_may_have_started_is_not_retried),
                TEST(a_cancelled_run_is_cancelled_at_the_agentos_too),
                TEST(the_agentos_health_endpoint_is_checked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
