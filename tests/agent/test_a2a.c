/* An agent that speaks A2A, and what a service that does not keep to it does to a turn. */
#include "a2a_rig.h"

#include "base/file.h"

/* ---- answers ---- */

/* What a chat that shows drafts would see. */
struct shown {
        struct buf text, labels;
        unsigned asides;
};

static void on_live(void *arg, const struct bus_event *e)
{
        struct shown *s = arg;
        json_t *payload = json_loads(e->payload, 0, NULL);

        if (strcmp(e->type, "turn.delta") == 0)
                buf_addstr(&s->text, json_str(payload, "text", ""));
        else if (strcmp(e->type, "turn.progress") == 0)
                buf_addf(&s->labels, "%s;", json_str(payload, "label", ""));
        else if (strcmp(e->type, "turn.aside") == 0) {
                buf_clear(&s->text);
                s->asides++;
        }
        json_decref(payload);
}

static struct bus_listener *watch(struct a2a_rig *r, struct shown *s)
{
        buf_init(&s->text, 0);
        buf_init(&s->labels, 0);
        s->asides = 0;
        return bus_listen_live(r->road->bus, on_live, s);
}

static void unwatch(struct a2a_rig *r, struct shown *s, struct bus_listener *l)
{
        bus_unlisten(r->road->bus, l);
        buf_release(&s->text);
        buf_release(&s->labels);
}

static void pieces_and_words_are_shown_while_the_task_runs(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        struct bus_listener *l;
        struct shown s;

        (void)state;
        l = watch(r, &s);
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "SendStreamingMessage");
        a2a_rig_answer_so(r,
                          SSE(EVENT(TASK(STATE("WORKING"), ""))
                                      EVENT(STATUS(SAYS("WORKING", "1", "reading\\nit")))
                                              EVENT(PIECE("a", "one ", "false"))),
                          0, FAKE_KEEP);
        while (s.text.len < 4)
                rig_run_for(r->road, 1);
        assert_string_equal(s.text.data, "one ");
        assert_string_equal(s.labels.data, "reading it;");
        a2a_rig_answer_so(r, EVENT(PIECE("a", "two", "true")), 0, FAKE_KEEP);
        while (s.text.len < 7)
                rig_run_for(r->road, 1);
        assert_string_equal(s.text.data, "one two");
        assert_int_equal(s.asides, 0);
        /* the agent thinks again */
        a2a_rig_answer(r, EVENT(PIECE("a", "three", "false")) EVENT(STATUS(STATE("COMPLETED"))));
        assert_string_equal(a2a_rig_said(r), "three");
        assert_string_equal(s.text.data, "three");
        assert_int_equal(s.asides, 1);
        unwatch(r, &s, l);
        a2a_rig_free(r);
}

static void an_answer_is_read_from_its_artifacts(void **state)
{
        static const char stream[] = SSE(
                ": hello\n\n" EVENT(TASK(STATE("SUBMITTED"), ""))
                        EVENT(STATUS(SAYS("WORKING", "1", "thinking about it"))) EVENT(
                                PIECE("a", "one ", "false")) EVENT(PIECE("b", "other", "false"))
                                EVENT(PIECE("a", "two", "true")) EVENT(STATUS(STATE("COMPLETED"))));

        (void)state;
        for (size_t piece = 0; piece < 3; piece++) {
                struct a2a_rig *r = a2a_rig_new("");

                a2a_rig_say(r, "hi");
                a2a_rig_serve(r, AGENT_CARD, CARD("true"));
                a2a_rig_expect(r, "\"SendStreamingMessage\"");
                a2a_rig_answer_so(r, stream, piece, FAKE_CLOSE);
                assert_string_equal(a2a_rig_said(r), "one two\n\nother");
                assert_string_equal(a2a_rig_state(r), "done");
                a2a_rig_free(r);
        }
}

static void the_request_carries_message_key_and_trace(void **state)
{
        struct a2a_rig *r = a2a_rig_new("\"headers\": [\"X-Team: red\"]");
        const char *request;
        char *id;

        (void)state;
        a2a_rig_say(r, "what & when?");
        request = a2a_rig_expect(r, AGENT_CARD);
        assert_has(request, "Authorization: Bearer far-key\r\n");
        assert_has(request, "A2A-Version: 1.0\r\n");
        a2a_rig_answer(r, CARD("true"));
        request = a2a_rig_expect(r, "POST /rpc ");
        assert_has(request, "Authorization: Bearer far-key\r\n");
        assert_has(request, "X-Team: red\r\n");
        assert_has(request, "A2A-Version: 1.0\r\n");
        assert_has(request, "Accept: text/event-stream, application/json\r\n");
        assert_has(request, "\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"what & when?\"}]");
        assert_has(request, rig_text(r->road, "'traceparent: 00-' || trace FROM turns"));
        assert_lacks(request, "contextId");
        assert_lacks(request, "taskId");
        id = a2a_rig_sent(r, "messageId");
        assert_non_null(id);
        a2a_rig_answer(r, SSE(EVENT(DONE("soon"))));
        assert_string_equal(a2a_rig_said(r), "soon");
        assert_has(rig_text(r->road, "payload FROM journal WHERE type = 'agent.task'"), id);
        free(id);
        a2a_rig_free(r);
}

static void an_agent_may_answer_without_a_task(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "SendStreamingMessage",
                      JSON(REPLY("{\"message\":{\"messageId\":\"m\",\"contextId\":\"c\",\"role\":"
                                 "\"ROLE_AGENT\",\"parts\":[{\"text\":\"hello\"}]}}")));
        assert_string_equal(a2a_rig_said(r), "hello");
        a2a_rig_free(r);
}

static void old_agents_are_spoken_to_in_their_version(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        const char *request;

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, OLD_CARD("true"));
        request = a2a_rig_expect(r, "\"method\":\"message/stream\"");
        assert_has(request, "A2A-Version: 0.3\r\n");
        assert_has(request, "\"kind\":\"message\"");
        assert_has(request, "\"role\":\"user\",\"parts\":[{\"kind\":\"text\",\"text\":\"hi\"}]");
        a2a_rig_answer(
                r,
                SSE(EVENT("{\"kind\":\"task\",\"id\":\"t\",\"contextId\":\"c\",\"status\":{"
                          "\"state\":\"submitted\"}}")
                            EVENT("{\"kind\":\"artifact-update\",\"taskId\":\"t\",\"artifact\":{"
                                  "\"artifactId\":\"a\",\"parts\":[{\"kind\":\"text\",\"text\":"
                                  "\"hello\"}]}}")
                                    EVENT("{\"kind\":\"status-update\",\"taskId\":\"t\",\"final\":"
                                          "true,\"status\":{\"state\":\"completed\"}}")));
        assert_string_equal(a2a_rig_said(r), "hello");
        a2a_rig_free(r);
}

/* Some say their result as their last words, some only among those said. */
static void what_an_agent_says_without_artifacts_is_its_answer(void **state)
{
        static const char *const ends[] = {
                SSE(EVENT(TASK(STATE("WORKING"), ""))
                            EVENT(STATUS(SAYS("COMPLETED", "1", "my last words")))),
                JSON(REPLY("{\"task\":{\"id\":\"t\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"}"
                           ",\"history\":[{\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"my last "
                           "words\"}]},{\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"no\"}]}]}}")),
                SSE(EVENT(TASK(STATE("WORKING"), "")) EVENT(STATUS(STATE("COMPLETED")))),
        };

        (void)state;
        for (size_t i = 0; i < COUNT(ends); i++) {
                struct a2a_rig *r = a2a_rig_new("");

                a2a_rig_say(r, "hi");
                a2a_rig_serve(r, AGENT_CARD, CARD("true"));
                a2a_rig_serve(r, "SendStreamingMessage", ends[i]);
                assert_string_equal(a2a_rig_said(r),
                                    i < 2 ? "my last words"
                                          : "The agent has finished without saying anything.");
                a2a_rig_free(r);
        }
}

static void links_and_data_are_shown_and_cannot_break_out(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(
                r, "SendStreamingMessage",
                JSON(REPLY(TASK(STATE("COMPLETED"),
                                "{\"artifactId\":\"a\",\"parts\":[{\"text\":\"see\"},{\"url\":"
                                "\"https://f.example/x\",\"filename\":\"](https://evil) x\"},{"
                                "\"url\":\"javascript:alert(1)\"},{\"data\":{\"n\":1}}]}"))));
        assert_string_equal(a2a_rig_said(r), "see\n[\\](https://evil) x](<https://f.example/x>)\n"
                                             "(a file at an address that cannot be shown)\n"
                                             "```json\n{\n  \"n\": 1\n}\n```");
        a2a_rig_free(r);
}

static void an_endless_answer_is_cut(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        struct buf body;

        (void)state;
        buf_init(&body, 0);
        buf_addstr(&body, OK("text/event-stream") EVENT(TASK(STATE("WORKING"), "")));
        for (int i = 0; i < 5000; i++) {
                buf_addstr(&body, EVENT(PIECE("a",
                                              "0123456789012345678901234567890123456789"
                                              "0123456789012345678901234567890123456789",
                                              "true")));
                if (i % 10 == 0) /* and other artifacts without end */
                        buf_addf(&body,
                                 "data: {\"id\":1,\"result\":{\"artifactUpdate\":{\"taskId\":\"t\","
                                 "\"artifact\":{\"artifactId\":\"n%d\",\"parts\":[{\"text\":\"%d\"}"
                                 "]}}}}\n\n",
                                 i, i);
        }
        buf_addstr(&body, EVENT(STATUS(STATE("COMPLETED"))));
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "SendStreamingMessage", body.data);
        rig_until_idle(r->road);
        assert_int_equal(
                rig_count(r->road, "transcript WHERE text LIKE '%longer than can be shown%'"), 1);
        assert_true(rig_number(r->road, "length(text) FROM transcript WHERE role = 'assistant'") <
                    270000);
        buf_release(&body);
        a2a_rig_free(r);
}

/* ---- the end is the state of the task ---- */

static void without_a_stream_the_task_is_asked_for(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        const char *request;

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("false"));
        request = a2a_rig_expect(r, "\"method\":\"SendMessage\"");
        assert_has(request, "\"returnImmediately\":true");
        a2a_rig_answer(r, JSON(REPLY(TASK(STATE("SUBMITTED"), ""))));
        a2a_rig_serve(r, "\"method\":\"GetTask\",\"params\":{\"id\":\"t\"",
                      JSON(REPLY(BARE(STATE("WORKING"), ""))));
        /* what we do not know is not an end */
        a2a_rig_serve(r, "\"GetTask\"", JSON(REPLY(BARE(STATE("PONDERING"), ""))));
        a2a_rig_serve(r, "\"GetTask\"", "HTTP/1.1 500 Oops\r\n" CLOSE);
        a2a_rig_serve(r, "\"GetTask\"",
                      JSON(REPLY(BARE(STATE("COMPLETED"), ARTIFACT("a", "here")))));
        assert_string_equal(a2a_rig_said(r), "here");
        a2a_rig_free(r);
}

/* However the stream ends, the message is sent once. */
static void a_broken_stream_is_resumed(void **state)
{
        static const struct {
                const char *stream;
                enum fake_end end;
        } rows[] = {
                { SSE(EVENT(TASK(STATE("WORKING"), "")) EVENT(PIECE("a", "one ", "false"))),
                  FAKE_CLOSE },
                { SSE(EVENT(TASK(STATE("WORKING"), "")) "data: {\"jsonrpc\":\"2.0\",\"id"),
                  FAKE_RESET },
                { SSE(EVENT(TASK(STATE("WORKING"), "")) "data: no json\n\n"), FAKE_CLOSE },
                { SSE(EVENT(TASK(STATE("WORKING"), "")) "event: error\ndata: " ERROR(
                          "-32603") "\n\n"),
                  FAKE_CLOSE },
                { SSE(EVENT(TASK(STATE("WORKING"), ""))), FAKE_KEEP }, /* and then silence */
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                bool is_silent = rows[i].end == FAKE_KEEP;
                struct a2a_rig *r = a2a_rig_new(is_silent ? "\"silenceMs\": 300" : "");

                a2a_rig_say(r, "hi");
                a2a_rig_serve(r, AGENT_CARD, CARD("true"));
                a2a_rig_expect(r, "SendStreamingMessage");
                a2a_rig_answer_so(r, rows[i].stream, 0, FAKE_KEEP);
                rig_until_count(r->road, "a2a_turns WHERE task = 't'", 1);
                if (fake_server_open(r->server) > 0) /* else we have hung up already */
                        a2a_rig_answer_so(r, NULL, 0, rows[i].end);
                a2a_rig_serve(r, "\"GetTask\"",
                              JSON(REPLY(BARE(STATE("WORKING"), ARTIFACT("a", "one ")))));
                a2a_rig_serve(r, "\"SubscribeToTask\"",
                              SSE(EVENT(TASK(STATE("WORKING"), ARTIFACT("a", "one "))) EVENT(PIECE(
                                      "a", "two", "true")) EVENT(STATUS(STATE("COMPLETED")))));
                a2a_rig_serve(r, "\"GetTask\"", /* pieces may have been missed */
                              JSON(REPLY(BARE(STATE("COMPLETED"), ARTIFACT("a", "one two")))));
                assert_string_equal(a2a_rig_said(r), "one two");
                assert_int_equal(fake_server_requests(r->server), 5);
                a2a_rig_free(r);
        }
}

static void an_agent_that_cannot_be_subscribed_to_is_asked(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        /* nor does it stream, whatever its card says */
        a2a_rig_serve(r, "SendStreamingMessage", JSON(ERROR("-32004")));
        a2a_rig_serve(r, "\"SendMessage\"", JSON(REPLY(TASK(STATE("WORKING"), ""))));
        a2a_rig_serve(r, "GetTask", JSON(REPLY(BARE(STATE("WORKING"), ""))));
        a2a_rig_serve(r, "SubscribeToTask", JSON(ERROR("-32601")));
        a2a_rig_serve(r, "GetTask", JSON(REPLY(BARE(STATE("WORKING"), ""))));
        a2a_rig_serve(r, "GetTask", JSON(REPLY(BARE(STATE("COMPLETED"), ARTIFACT("a", "so")))));
        assert_string_equal(a2a_rig_said(r), "so");
        a2a_rig_free(r);
}

#define OF_OTHER_TASK                                                    \
        "{\"statusUpdate\":{\"taskId\":\"other\",\"status\":{\"state\":" \
        "\"TASK_STATE_FAILED\"}}}"
#define PIECE_OF_OTHER_TASK                                                             \
        "{\"artifactUpdate\":{\"taskId\":\"other\",\"artifact\":{\"artifactId\":\"a\"," \
        "\"parts\":[{\"text\":\"not ours\"}]}}}"
#define OF_OTHER_REQUEST \
        "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"result\":" DONE("of another request") "}\n\n"

static void events_of_other_tasks_and_requests_are_ignored(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "SendStreamingMessage");
        a2a_rig_answer(r, OK("text/event-stream") EVENT(TASK(STATE("WORKING"), ""))
                                  EVENT(OF_OTHER_TASK) EVENT(PIECE_OF_OTHER_TASK) EVENT(
                                          "{\"something\":\"new\"}") EVENT("[1, 2]") EVENT("null")
                                          OF_OTHER_REQUEST EVENT(PIECE("a", "ours", "false"))
                                                  EVENT(STATUS(STATE("COMPLETED"))));
        assert_string_equal(a2a_rig_said(r), "ours");
        a2a_rig_free(r);
}

static void a_repeated_artifact_counts_once(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "SendStreamingMessage",
                      SSE(EVENT(TASK(STATE("WORKING"), "")) EVENT(PIECE("a", "draft", "false"))
                                  EVENT(PIECE("a", "fair copy", "false"))
                                          EVENT(PIECE("a", "fair copy", "false"))
                                                  EVENT(STATUS(STATE("COMPLETED")))));
        assert_string_equal(a2a_rig_said(r), "fair copy");
        a2a_rig_free(r);
}

static void a_task_that_is_lost_ends_the_turn(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("false"));
        a2a_rig_serve(r, "SendMessage", JSON(REPLY(TASK(STATE("WORKING"), ""))));
        a2a_rig_serve(r, "GetTask", JSON(ERROR("-32001")));
        assert_string_equal(a2a_rig_said(r), "The agent has lost its task. Please ask again.");
        assert_has(a2a_rig_error(r), "task t: no way (-32001)");
        a2a_rig_free(r);
}

/* Asked again, the agent would say the same. */
static void a_task_too_large_to_read_ends_the_turn(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        char *answer = mem_printf("%s%*s", OK("application/json"), 25 << 20, "{");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("false"));
        a2a_rig_serve(r, "SendMessage", JSON(REPLY(TASK(STATE("WORKING"), ""))));
        a2a_rig_serve(r, "GetTask", answer);
        assert_string_equal(a2a_rig_said(r), "The agent's answer is too long to be sent.");
        a2a_rig_free(r);
        free(answer);
}

static void an_agent_is_asked_no_sooner_than_it_wishes(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        int64_t begin;

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("false"));
        a2a_rig_serve(r, "SendMessage", JSON(REPLY(TASK(STATE("WORKING"), ""))));
        begin = clock_mono_ms();
        a2a_rig_serve(r, "GetTask", "HTTP/1.1 429 Busy\r\nRetry-After: 1\r\n" CLOSE);
        a2a_rig_serve(r, "GetTask", JSON(REPLY(BARE(STATE("COMPLETED"), ARTIFACT("a", "so")))));
        assert_true(clock_mono_ms() - begin >= 1000); /* else after pollMs */
        assert_string_equal(a2a_rig_said(r), "so");
        a2a_rig_free(r);
}

static void failures_have_the_agents_reason(void **state)
{
        static const struct {
                const char *result, *text;
        } rows[] = {
                { TASK(SAYS("FAILED", "1", "the printer burns"), ""),
                  "The agent failed: the printer burns" },
                { TASK(SAYS("FAILED", "1", "the printer burns"), ARTIFACT("a", "half")),
                  "half\n\n(The answer breaks off here. The agent failed: the printer burns)" },
                { TASK(STATE("FAILED"), ""), "The agent failed." },
                { TASK(SAYS("REJECTED", "1", "not my job"), ""),
                  "The agent declined this: not my job" },
                { TASK(STATE("CANCELED"), ""), "The agent's task was canceled there." },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct a2a_rig *r = a2a_rig_new("");
                char *answer = mem_printf(OK("application/json") "{\"jsonrpc\":\"2.0\",\"id\":1,"
                                                                 "\"result\":%s}",
                                          rows[i].result);

                a2a_rig_say(r, "hi");
                a2a_rig_serve(r, AGENT_CARD, CARD("true"));
                a2a_rig_serve(r, "SendStreamingMessage", answer);
                assert_string_equal(a2a_rig_said(r), rows[i].text);
                assert_string_equal(a2a_rig_state(r), "failed");
                free(answer);
                a2a_rig_free(r);
        }
}

/* ---- a message is sent once ---- */

static void a_message_that_may_have_arrived_is_looked_for(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        char *id, *list, *answer;

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "SendStreamingMessage");
        id = a2a_rig_sent(r, "messageId");
        a2a_rig_answer_so(r, NULL, 0, FAKE_RESET);
        /* at first it is not there yet */
        a2a_rig_serve(r, "\"ListTasks\"", JSON(REPLY("{\"tasks\":[{\"id\":\"x\"}]}")));
        /* as a stream, which may say it twice */
        list = mem_printf(
                "{\"id\":1,\"result\":{\"tasks\":[{\"id\":\"x\",\"history\":[{\"messageId\""
                ":\"y\"}]},{\"id\":\"t\",\"history\":[{\"messageId\":\"%s\"}]}]}}",
                id);
        answer = mem_printf(OK("text/event-stream") "data: %s\n\ndata: %s\n\n", list, list);
        a2a_rig_serve(r, "\"ListTasks\"", answer);
        a2a_rig_serve(r, "\"GetTask\",\"params\":{\"id\":\"t\"",
                      JSON(REPLY(BARE(STATE("COMPLETED"), ARTIFACT("a", "found")))));
        assert_string_equal(a2a_rig_said(r), "found");
        free(answer);
        free(list);
        free(id);
        a2a_rig_free(r);
}

static void a_message_of_which_nothing_is_known_is_not_repeated(void **state)
{
        static const struct {
                const char *answer;
                enum fake_end end;
        } rows[] = {
                { NULL, FAKE_RESET },
                { NULL, FAKE_CLOSE },
                { "HTTP/1.1 502 Bad Gateway\r\n" CLOSE "<html>", FAKE_CLOSE },
                { JSON("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":" DONE("of another") "}"),
                  FAKE_CLOSE },
                { JSON("<html>welcome</html>"), FAKE_CLOSE },
                { JSON("{\"jsonrpc\":\"2.0\",\"id\":1"), FAKE_CLOSE },
                { JSON("[]"), FAKE_CLOSE },
                { JSON(REPLY("{}")), FAKE_CLOSE },
                { SSE(""), FAKE_CLOSE },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct a2a_rig *r = a2a_rig_new("");

                a2a_rig_say(r, "hi");
                a2a_rig_serve(r, AGENT_CARD, OLD_CARD("true")); /* which cannot list tasks */
                a2a_rig_expect(r, "message/stream");
                a2a_rig_answer_so(r, rows[i].answer, 0, rows[i].end);
                assert_has(a2a_rig_said(r), "it does not say whether it works on this");
                assert_string_equal(a2a_rig_state(r), "failed");
                assert_int_equal(fake_server_requests(r->server), 2);
                a2a_rig_free(r);
        }
}

static void an_agent_that_knows_its_messages_gets_it_again(void **state)
{
        struct a2a_rig *r = a2a_rig_new("\"repeatable\": true");
        char *first, *second;

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "SendStreamingMessage");
        first = a2a_rig_sent(r, "messageId");
        a2a_rig_answer_so(r, NULL, 0, FAKE_RESET);
        a2a_rig_expect(r, "SendStreamingMessage");
        second = a2a_rig_sent(r, "messageId");
        assert_string_equal(first, second);
        a2a_rig_answer(r, SSE(EVENT(DONE("once"))));
        assert_string_equal(a2a_rig_said(r), "once");
        free(first);
        free(second);
        a2a_rig_free(r);
}

static void a_busy_agent_is_asked_again(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "SendStreamingMessage", "HTTP/1.1 429 Busy\r\nRetry-After: 0\r\n" CLOSE);
        a2a_rig_serve(r, "SendStreamingMessage", SSE(EVENT(DONE("now"))));
        assert_string_equal(a2a_rig_said(r), "now");
        a2a_rig_free(r);
}

static void refusals_are_told_with_their_reason(void **state)
{
        static const struct {
                const char *answer, *notice, *record;
        } rows[] = {
                { "HTTP/1.1 401 Who\r\n" CLOSE "no key", "refused our key", "HTTP 401: no key" },
                { "HTTP/1.1 404 Gone\r\n" CLOSE, "did not accept", "HTTP 404: empty response" },
                { "HTTP/1.1 403 No\r\n" CLOSE ERROR("-32000"), "refused our key",
                  "HTTP 403: no way (-32000)" },
                { "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\n" CLOSE, "did not accept",
                  "HTTP 301" },
                { JSON(ERROR("-32602")), "did not accept", "no way (-32602)" },
                { JSON(ERROR("-32009")), "did not accept", "no way (-32009)" },
                { JSON("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700}}"),
                  "did not accept", "error (-32700)" },
                { JSON(ERROR("-32603")), "has a problem right now", "no way (-32603)" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct a2a_rig *r = a2a_rig_new("");

                a2a_rig_say(r, "hi");
                a2a_rig_serve(r, AGENT_CARD, CARD("false"));
                a2a_rig_serve(r, "SendMessage", rows[i].answer);
                assert_has(a2a_rig_said(r), rows[i].notice);
                assert_has(a2a_rig_error(r), rows[i].record);
                assert_int_equal(fake_server_requests(r->server), 2);
                a2a_rig_free(r);
        }
}

/* ---- contexts and tasks that go on ---- */

static void the_context_is_kept_across_restarts_until_new(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "one");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "SendStreamingMessage", SSE(EVENT(DONE("1"))));
        rig_until_idle(r->road);
        a2a_rig_say(r, "two");
        a2a_rig_serve(r, "\"contextId\":\"c\"", SSE(EVENT(DONE("2"))));
        rig_until_idle(r->road);
        a2a_rig_restart(r);
        a2a_rig_say(r, "three");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        assert_lacks(a2a_rig_expect(r, "\"contextId\":\"c\""), "taskId");
        a2a_rig_answer(r, SSE(EVENT(DONE("3"))));
        rig_until_idle(r->road);
        a2a_rig_say(r, "/new");
        rig_until_idle(r->road);
        a2a_rig_say(r, "four");
        assert_lacks(a2a_rig_expect(r, "SendStreamingMessage"), "contextId");
        a2a_rig_answer(r, SSE(EVENT(DONE("4"))));
        assert_string_equal(a2a_rig_said(r), "4");
        a2a_rig_free(r);
}

static void the_session_may_name_the_context(void **state)
{
        struct a2a_rig *r = a2a_rig_new("\"contextId\": \"session\", \"session\": \"perChat\"");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "\"contextId\":\"test:nonce:c\"", SSE(EVENT(DONE("1"))));
        assert_string_equal(a2a_rig_said(r), "1");
        a2a_rig_free(r);
}

/* Agents begin with the task as it was before the answer. */
static void the_next_message_continues_a_task_that_asks(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "paint it");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "SendStreamingMessage",
                      SSE(EVENT(TASK(STATE("WORKING"), "")) EVENT(PIECE("a", "a plan", "false"))
                                  EVENT(STATUS(SAYS("INPUT_REQUIRED", "1", "which colour?")))));
        assert_string_equal(a2a_rig_said(r), "a plan\n\nwhich colour?");
        assert_string_equal(a2a_rig_state(r), "done");
        a2a_rig_restart(r);
        a2a_rig_say(r, "blue");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "\"contextId\":\"c\",\"taskId\":\"t\"");
        a2a_rig_answer(r, SSE(EVENT(TASK(SAYS("INPUT_REQUIRED", "1", "which colour?"),
                                         ARTIFACT("a", "a plan")))
                                      EVENT(STATUS(SAYS("INPUT_REQUIRED", "2", "which blue?")))));
        assert_string_equal(a2a_rig_said(r), "which blue?"); /* the plan was shown before */
        a2a_rig_say(r, "dark");
        a2a_rig_serve(r, "\"contextId\":\"c\",\"taskId\":\"t\"",
                      SSE(EVENT(TASK(STATE("WORKING"), "")) EVENT(PIECE("b", "painted", "false"))
                                  EVENT(STATUS(STATE("COMPLETED")))));
        assert_string_equal(a2a_rig_said(r), "painted");
        a2a_rig_say(r, "more");
        assert_lacks(a2a_rig_expect(r, "\"contextId\":\"c\""), "taskId");
        a2a_rig_answer(r, SSE(EVENT(DONE("new"))));
        assert_string_equal(a2a_rig_said(r), "new");
        a2a_rig_free(r);
}

/* Agents made with the older libraries say so with general errors. */
static void a_message_to_a_task_that_has_ended_begins_another(void **state)
{
        static const char *const errors[] = { JSON(ERROR("-32001")), JSON(ERROR("-32004")),
                                              JSON(ERROR("-32600")), JSON(ERROR("-32602")) };

        (void)state;
        for (size_t i = 0; i < COUNT(errors); i++) {
                struct a2a_rig *r = a2a_rig_new("");

                a2a_rig_say(r, "paint it");
                a2a_rig_serve(r, AGENT_CARD, CARD("false"));
                a2a_rig_serve(r, "SendMessage",
                              JSON(REPLY(TASK(SAYS("INPUT_REQUIRED", "1", "which?"), ""))));
                assert_string_equal(a2a_rig_said(r), "which?");
                a2a_rig_say(r, "blue");
                a2a_rig_serve(r, "\"taskId\":\"t\"", errors[i]);
                assert_lacks(a2a_rig_expect(r, "\"referenceTaskIds\":[\"t\"]"), "taskId\"");
                a2a_rig_answer(r, JSON(REPLY(DONE("all blue"))));
                assert_string_equal(a2a_rig_said(r), "all blue");
                a2a_rig_free(r);
        }
}

/* A task that waits does not forget it because a message could not be sent. */
static void a_failed_message_to_a_task_may_be_repeated(void **state)
{
        static const struct {
                const char *answer; /* NULL: the connection breaks, and the task still waits */
                bool waits;
        } rows[] = {
                { "HTTP/1.1 401 Who\r\n" CLOSE, true }, { "HTTP/1.1 429 Busy\r\n" CLOSE, true },
                { JSON(ERROR("-32005")), true },        { NULL, true },
                { JSON(ERROR("-32603")), false }, /* the task may have the message */
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct a2a_rig *r = a2a_rig_new("\"retries\": 0");
                const char *request;

                a2a_rig_say(r, "paint it");
                a2a_rig_serve(r, AGENT_CARD, CARD("false"));
                a2a_rig_serve(r, "SendMessage",
                              JSON(REPLY(TASK(SAYS("INPUT_REQUIRED", "1", "which?"), ""))));
                assert_string_equal(a2a_rig_said(r), "which?");
                a2a_rig_say(r, "blue");
                a2a_rig_expect(r, "\"taskId\":\"t\"");
                if (rows[i].answer) {
                        a2a_rig_answer(r, rows[i].answer);
                } else {
                        a2a_rig_answer_so(r, NULL, 0, FAKE_RESET);
                        a2a_rig_serve(r, "GetTask",
                                      JSON(REPLY(BARE(SAYS("INPUT_REQUIRED", "1", "which?"), ""))));
                }
                rig_until_idle(r->road);
                assert_string_equal(a2a_rig_state(r), "failed");
                a2a_rig_say(r, "blue!");
                request = a2a_rig_expect(r, "blue!");
                (rows[i].waits ? assert_has : assert_lacks)(request, "\"taskId\":\"t\"");
                a2a_rig_answer(r, JSON(REPLY(DONE("blue it is"))));
                assert_string_equal(a2a_rig_said(r), "blue it is");
                a2a_rig_free(r);
        }
}

/* It may not have arrived: then it is sent again, because the task shows that. */
static void an_answer_to_a_task_is_looked_for_in_it(void **state)
{
        static const struct {
                const char *settings, *known; /* the message in the task's history; NULL: none */
                int question;
                const char *said; /* NULL: it is sent again, and answered */
        } rows[] = {
                { "", "first", 1, NULL },
                { "", "ours", 2, "which?" },
                { "", "first", 2, "which?" }, /* what we wrote does not answer this question */
                { "", NULL, 1, "does not say whether" },
                { "\"repeatable\": true", NULL, 1, NULL },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct a2a_rig *r = a2a_rig_new(rows[i].settings);
                char *id, *history, *answer;
                bool ours;

                a2a_rig_say(r, "paint it");
                a2a_rig_serve(r, AGENT_CARD, CARD("false"));
                a2a_rig_serve(r, "SendMessage",
                              JSON(REPLY(TASK(SAYS("INPUT_REQUIRED", "1", "which?"), ""))));
                rig_until_idle(r->road);
                a2a_rig_say(r, "blue");
                a2a_rig_expect(r, "SendMessage");
                id = a2a_rig_sent(r, "messageId");
                a2a_rig_answer_so(r, NULL, 0, FAKE_RESET);
                assert_lacks(a2a_rig_expect(r, "GetTask"), "historyLength");
                ours = rows[i].known && strcmp(rows[i].known, "ours") == 0;
                history = rows[i].known
                                  ? mem_printf("{\"messageId\":\"%s\"}", ours ? id : rows[i].known)
                                  : mem_strdup("");
                answer = mem_printf(
                        OK("application/json") "{\"id\":1,\"result\":{\"id\":\"t\"," SAYS(
                                "INPUT_REQUIRED", "%d", "which?") ",\"history\":[%s]}}",
                        rows[i].question, rows[i].question, history);
                a2a_rig_answer(r, answer);
                if (!rows[i].said) {
                        a2a_rig_expect(r, "\"taskId\":\"t\"");
                        free(history);
                        history = a2a_rig_sent(r, "messageId");
                        assert_string_equal(history, id);
                        a2a_rig_answer(r, JSON(REPLY(DONE("blue it is"))));
                }
                assert_has(a2a_rig_said(r), rows[i].said ? rows[i].said : "blue it is");
                a2a_rig_free(r);
                free(answer);
                free(history);
                free(id);
        }
}

static void an_authorization_is_told_and_its_answer_follows(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        const char *text;

        (void)state;
        r->road->late_replies =
                (struct late_reply_policy){ .deliver_failed = true, .max_replies = 2 };
        a2a_rig_say(r, "pay it");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "SendStreamingMessage",
                      SSE(EVENT(TASK(STATE("WORKING"), "")) EVENT(
                              STATUS(SAYS("AUTH_REQUIRED", "1", "open https://bank.example/x")))));
        text = a2a_rig_said(r);
        assert_has(text, "open https://bank.example/x\n\n(The agent waits for an authorization.");
        assert_string_equal(a2a_rig_state(r), "done");
        a2a_rig_serve(
                r, "GetTask",
                JSON(REPLY(BARE(SAYS("AUTH_REQUIRED", "1", "open https://bank.example/x"), ""))));
        a2a_rig_serve(r, "SubscribeToTask",
                      SSE(EVENT(TASK(SAYS("AUTH_REQUIRED", "1", "open"), ""))
                                  EVENT(STATUS(STATE("WORKING"))) EVENT(PIECE("a", "paid", "false"))
                                          EVENT(STATUS(STATE("COMPLETED")))));
        a2a_rig_serve(r, "GetTask", JSON(REPLY(BARE(STATE("COMPLETED"), ARTIFACT("a", "paid")))));
        rig_until_count(r->road, "deliveries WHERE reply_of IS NOT NULL AND state = 'sent'", 1);
        assert_string_equal(a2a_rig_said(r), "paid");
        rig_until_count(r->road, "a2a_turns WHERE open = 0", 1);
        a2a_rig_free(r);
}

static void an_answer_is_promised_only_if_it_is_waited_for(void **state)
{
        struct a2a_rig *r = a2a_rig_new("\"late\": \"discard\"");

        (void)state;
        a2a_rig_say(r, "pay it");
        a2a_rig_serve(r, AGENT_CARD, CARD("false"));
        a2a_rig_serve(r, "SendMessage",
                      JSON(REPLY(TASK(SAYS("AUTH_REQUIRED", "1", "log in"), ""))));
        assert_string_equal(a2a_rig_said(r),
                            "log in\n\n(The agent waits for an authorization. Do what it asks for, "
                            "then write here to go on.)");
        a2a_rig_say(r, "done");
        a2a_rig_serve(r, "\"taskId\":\"t\"", JSON(REPLY(DONE("paid"))));
        assert_string_equal(a2a_rig_said(r), "paid");
        a2a_rig_free(r);
}

static void an_authorization_that_is_asked_for_late_is_waited_for(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        r->road->late_replies =
                (struct late_reply_policy){ .deliver_failed = true, .max_replies = 2 };
        a2a_rig_say(r, "pay it");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "SendStreamingMessage");
        a2a_rig_answer_so(r, SSE(EVENT(TASK(STATE("WORKING"), ""))), 0, FAKE_KEEP);
        rig_until_count(r->road, "a2a_turns WHERE task = 't'", 1);
        a2a_rig_time_is_up(r);
        rig_until_count(r->road, "turns WHERE state = 'failed'", 1);
        a2a_rig_answer(r, EVENT(STATUS(SAYS("AUTH_REQUIRED", "1", "log in"))));
        rig_until_count(r->road, "deliveries WHERE reply_of IS NOT NULL AND state = 'sent'", 1);
        assert_has(a2a_rig_said(r), "log in\n\n(The agent waits for an authorization. Do what it "
                                    "asks for; its answer follows");
        a2a_rig_serve(r, "GetTask", JSON(REPLY(BARE(STATE("COMPLETED"), ARTIFACT("a", "paid")))));
        rig_until_count(r->road, "deliveries WHERE reply_of IS NOT NULL AND state = 'sent'", 2);
        assert_string_equal(a2a_rig_said(r), "paid");
        a2a_rig_free(r);
}

/* Which question it is must be known, although the turn has ended: the agent begins with it. */
static void a_question_after_an_authorization_is_answered(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        r->road->late_replies =
                (struct late_reply_policy){ .deliver_failed = true, .max_replies = 2 };
        a2a_rig_say(r, "pay it");
        a2a_rig_serve(r, AGENT_CARD, CARD("false"));
        a2a_rig_serve(r, "SendMessage",
                      JSON(REPLY(TASK(SAYS("AUTH_REQUIRED", "1", "log in"), ""))));
        assert_has(a2a_rig_said(r), "log in");
        a2a_rig_serve(r, "GetTask",
                      JSON(REPLY(BARE(SAYS("INPUT_REQUIRED", "2", "which account?"), ""))));
        rig_until_count(r->road, "deliveries WHERE reply_of IS NOT NULL AND state = 'sent'", 1);
        assert_string_equal(a2a_rig_said(r), "which account?");
        a2a_rig_say(r, "the blue one");
        a2a_rig_serve(r, "\"taskId\":\"t\"",
                      SSE(EVENT(TASK(SAYS("INPUT_REQUIRED", "2", "which account?"), "")) EVENT(
                              PIECE("a", "paid", "false")) EVENT(STATUS(STATE("COMPLETED")))));
        assert_string_equal(a2a_rig_said(r), "paid");
        a2a_rig_free(r);
}

/* ---- time ---- */

static void a_late_answer_is_delivered_when_it_comes(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        r->road->late_replies =
                (struct late_reply_policy){ .deliver_failed = true, .max_replies = 2 };
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "SendStreamingMessage");
        a2a_rig_answer_so(r, SSE(EVENT(TASK(STATE("WORKING"), ""))), 0, FAKE_KEEP);
        rig_until_count(r->road, "a2a_turns WHERE task = 't'", 1);
        a2a_rig_time_is_up(r);
        rig_until_count(r->road, "turns WHERE state = 'failed'", 1);
        assert_has(a2a_rig_said(r), "The answer follows when it is ready");
        a2a_rig_answer(r, EVENT(PIECE("a", "at last", "false")) EVENT(STATUS(STATE("COMPLETED"))));
        rig_until_count(r->road, "deliveries WHERE reply_of IS NOT NULL AND state = 'sent'", 1);
        assert_string_equal(a2a_rig_said(r), "at last");
        a2a_rig_free(r);
}

static void a_task_out_of_time_is_canceled_if_late_answers_are_not_wanted(void **state)
{
        struct a2a_rig *r = a2a_rig_new("\"late\": \"discard\"");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "SendStreamingMessage");
        a2a_rig_answer_so(r, SSE(EVENT(TASK(STATE("WORKING"), ""))), 0, FAKE_KEEP);
        rig_until_count(r->road, "a2a_turns WHERE task = 't'", 1);
        a2a_rig_time_is_up(r);
        a2a_rig_serve(r, "\"CancelTask\",\"params\":{\"id\":\"t\"}", JSON(REPLY("{}")));
        assert_has(a2a_rig_said(r), "took too long");
        a2a_rig_free(r);
}

static void a_stopped_turn_cancels_its_task(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        const char *request;

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "SendStreamingMessage");
        a2a_rig_answer_so(r, SSE(EVENT(TASK(STATE("WORKING"), ""))), 0, FAKE_KEEP);
        rig_until_count(r->road, "a2a_turns WHERE task = 't'", 1);
        turn_cancel(r->road->road, 1, "stopped by the test", NULL, NULL);
        request = a2a_rig_expect(r, "\"CancelTask\",\"params\":{\"id\":\"t\"}");
        assert_has(request, rig_text(r->road, "'traceparent: 00-' || trace FROM turns"));
        rig_until_idle(r->road);
        assert_string_equal(a2a_rig_state(r), "cancelled");
        a2a_rig_free(r);
}

/* The agent tells the task only afterwards. */
static void a_turn_stopped_before_its_task_is_known_cancels_it_later(void **state)
{
        static const char *const tells[] = {
                SSE(EVENT(TASK(STATE("WORKING"), ""))),
                SSE(EVENT(STATUS(STATE("WORKING")))),
                SSE(EVENT("{\"laterKind\":{}}") EVENT(PIECE("a", "x", "false"))),
        };

        (void)state;
        for (size_t i = 0; i < COUNT(tells); i++) {
                struct a2a_rig *r = a2a_rig_new("");

                a2a_rig_say(r, "hi");
                a2a_rig_serve(r, AGENT_CARD, CARD("true"));
                a2a_rig_expect(r, "SendStreamingMessage");
                turn_cancel(r->road->road, 1, "stopped by the test", NULL, NULL);
                rig_until_count(r->road, "turns WHERE state = 'cancelled'", 1);
                a2a_rig_answer(r, tells[i]);
                a2a_rig_serve(r, "\"CancelTask\",\"params\":{\"id\":\"t\"}", JSON(REPLY("{}")));
                a2a_rig_free(r);
        }
}

/* ---- restarts ---- */

static void a_turn_goes_on_with_its_task_after_a_restart(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "SendStreamingMessage");
        a2a_rig_answer_so(r, SSE(EVENT(TASK(STATE("WORKING"), ""))), 0, FAKE_KEEP);
        rig_until_count(r->road, "a2a_turns WHERE task = 't'", 1);
        for (int i = 0; i < 5; i++) { /* more often than a turn may be interrupted */
                a2a_rig_restart(r);
                a2a_rig_serve(r, AGENT_CARD, CARD("false"));
                a2a_rig_serve(r, "\"GetTask\",\"params\":{\"id\":\"t\"",
                              JSON(REPLY(BARE(STATE("WORKING"), ""))));
                a2a_rig_expect(r, "GetTask");
        }
        a2a_rig_answer(r, JSON(REPLY(BARE(STATE("COMPLETED"), ARTIFACT("a", "still here")))));
        assert_string_equal(a2a_rig_said(r), "still here");
        assert_string_equal(a2a_rig_answers(r), "still here");
        a2a_rig_free(r);
}

static void a_message_is_not_sent_again_after_a_restart(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_expect(r, "SendStreamingMessage");
        a2a_rig_restart(r);
        /* an agent that is away has not said that it does not know */
        for (int i = 0; i < 5; i++) {
                a2a_rig_expect(r, AGENT_CARD);
                a2a_rig_answer_so(r, NULL, 0, FAKE_RESET);
        }
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        for (int i = 0; i < 5; i++)
                a2a_rig_serve(r, "ListTasks", "HTTP/1.1 503 Busy\r\n" CLOSE);
        for (int i = 0; i < 3; i++)
                a2a_rig_serve(r, "ListTasks", JSON(REPLY("{\"tasks\":[]}")));
        assert_has(a2a_rig_said(r), "does not say whether it works on this");
        a2a_rig_free(r);
}

/* Before it was sent, nothing has happened. */
static void a_message_that_was_not_sent_is_sent_after_a_restart(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_expect(r, AGENT_CARD);
        a2a_rig_restart(r);
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "SendStreamingMessage", SSE(EVENT(DONE("now"))));
        assert_string_equal(a2a_rig_said(r), "now");
        a2a_rig_free(r);
}

static void an_operators_retry_is_another_message(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        char *first, *second;

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, CARD("false"));
        a2a_rig_expect(r, "SendMessage");
        first = a2a_rig_sent(r, "messageId");
        a2a_rig_answer(r, JSON(REPLY(TASK(STATE("FAILED"), ""))));
        rig_until_idle(r->road);
        turn_retry(r->road->road, 1, (store_done_fn *)(void (*)(void))free, NULL);
        a2a_rig_expect(r, "SendMessage");
        second = a2a_rig_sent(r, "messageId");
        assert_string_not_equal(first, second);
        a2a_rig_answer(r, JSON(REPLY(DONE("second try"))));
        assert_string_equal(a2a_rig_said(r), "second try");
        free(first);
        free(second);
        a2a_rig_free(r);
}

/* ---- cards ---- */

#define NO_USE "cannot be used right now"

static void a_card_that_cannot_be_used_says_why(void **state)
{
        static const struct {
                const char *answer, *said, *record;
        } rows[] = {
                { "HTTP/1.1 404 No\r\n" CLOSE, NO_USE, "HTTP 404: there is no agent card at " },
                { "HTTP/1.1 401 No\r\n" CLOSE, "refused our key", "is refused with our key" },
                { "HTTP/1.1 302 Over there\r\nLocation: http://x.example/y\r\n" CLOSE, NO_USE,
                  "but at http://x.example/y; set 'url'" },
                { JSON("<html>"), NO_USE, "the agent card is not JSON" },
                { JSON("[]"), NO_USE, "the agent card is no JSON object" },
                { JSON("{\"name\":\"x\"}"), NO_USE, "no JSON-RPC interface of version 1.0 or 0.3" },
                { JSON("{\"url\":\"http://x\",\"protocolVersion\":\"0.2.5\"}"), NO_USE,
                  "speaks version 0.2.5 of A2A; 1.0 and 0.3 are supported" },
                { JSON("{\"supportedInterfaces\":[{\"url\":\"http://x\",\"protocolBinding\":"
                       "\"GRPC\",\"protocolVersion\":\"1.0\"},{\"url\":\"http://x\","
                       "\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":\"2.0\"}]}"),
                  NO_USE, "no JSON-RPC interface" },
                { NULL, "cannot be reached right now", "" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct a2a_rig *r = a2a_rig_new("\"retries\": 0");

                a2a_rig_say(r, "hi");
                a2a_rig_expect(r, AGENT_CARD);
                a2a_rig_answer_so(r, rows[i].answer, 0, rows[i].answer ? FAKE_CLOSE : FAKE_RESET);
                assert_has(a2a_rig_said(r), rows[i].said);
                assert_has(a2a_rig_error(r), rows[i].record);
                a2a_rig_free(r);
        }
}

static void a_card_that_is_not_there_yet_is_fetched_again(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");

        (void)state;
        a2a_rig_say(r, "hi");
        a2a_rig_expect(r, AGENT_CARD);
        a2a_rig_answer_so(r, NULL, 0, FAKE_RESET);
        a2a_rig_serve(r, AGENT_CARD, "HTTP/1.1 502 Not yet\r\n" CLOSE);
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "SendStreamingMessage", SSE(EVENT(DONE("now"))));
        assert_string_equal(a2a_rig_said(r), "now");
        a2a_rig_free(r);
}

static void a_huge_card_is_refused(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        struct buf card;

        (void)state;
        buf_init(&card, 0);
        buf_addstr(&card, OK("application/json") "{\"name\":\"");
        for (int i = 0; i < 30000; i++)
                buf_addstr(&card, "0123456789012345678901234567890123456789");
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, card.data);
        assert_has(a2a_rig_said(r), NO_USE);
        assert_has(a2a_rig_error(r), "larger than 1048576 bytes");
        buf_release(&card);
        a2a_rig_free(r);
}

#define CARD_AT(url)                                                                           \
        OK("application/json")                                                                 \
        "{\"capabilities\":{},\"supportedInterfaces\":[{\"url\":\"" url "\",\"protocolBinding" \
        "\":\"JSONRPC\",\"protocolVersion\":\"1.0\"}]}"

static void a_card_leads_neither_inside_nor_to_our_key(void **state)
{
        static const struct {
                const char *card, *record;
        } rows[] = {
                { CARD_AT("http://rpc.example/x"), "which is elsewhere and not https" },
                { CARD_AT("file:///etc/passwd"), "which is elsewhere and not https" },
                { CARD_AT("https://127.0.0.1:9/x"), "of this machine or of a private network" },
                { CARD_AT("https://169.254.169.254/x"), "of a private network" },
                { CARD_AT("https://localhost:9/x"), "of this machine or of a private network" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct a2a_rig *r = a2a_rig_new_with("", true);

                a2a_rig_say(r, "hi");
                a2a_rig_serve(r, AGENT_CARD, rows[i].card);
                assert_has(a2a_rig_said(r), "right now");
                assert_has(a2a_rig_error(r), rows[i].record);
                a2a_rig_free(r);
        }
}

static void the_card_names_the_interface_and_the_tenant(void **state)
{
        struct a2a_rig *r = a2a_rig_new_with("", true);
        char *url = fake_server_url(r->server, "/there"), *card;

        (void)state;
        card = mem_printf(OK("application/json") "{\"capabilities\":{},\"supportedInterfaces\":["
                                                 "{\"url\":\"%s/old\",\"protocolBinding\":"
                                                 "\"JSONRPC\",\"protocolVersion\":\"0.3\"},"
                                                 "{\"url\":\"%s\",\"protocolBinding\":\"JSONRPC\","
                                                 "\"protocolVersion\":\"1.0\",\"tenant\":\"acme\"}"
                                                 "]}",
                          url, url);
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, card);
        assert_has(a2a_rig_expect(r, "POST /there "), "\"params\":{\"tenant\":\"acme\",");
        assert_has(fake_server_request(r->server, 1), "Authorization: Bearer far-key\r\n");
        a2a_rig_answer(r, JSON(REPLY(DONE("yes"))));
        assert_string_equal(a2a_rig_said(r), "yes");
        free(card);
        free(url);
        a2a_rig_free(r);
}

/* Another port is another origin. */
static void an_origin_that_is_listed_gets_the_key(void **state)
{
        struct a2a_rig *r = a2a_rig_new_with("", true);
        struct fake_server *other = fake_server_new(r->road->loop, NULL, 0);
        char *url = fake_server_url(other, ""), *members, *card;

        (void)state;
        members = mem_printf("\"origins\": [\"%s\"]", url);
        agents_free(r->agents);
        r->members = members;
        a2a_rig_open(r);
        card = mem_printf(CARD_AT("%s/x"), url);
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, AGENT_CARD, card);
        while (fake_server_requests(other) == 0)
                rig_run_for(r->road, 1);
        assert_has(fake_server_request(other, 0), "Authorization: Bearer far-key\r\n");
        fake_server_answer(other,
                           &(struct fake_answer){ JSON(REPLY(DONE("yes"))), .end = FAKE_CLOSE });
        assert_string_equal(a2a_rig_said(r), "yes");
        fake_server_free(other);
        free(card);
        free(url);
        a2a_rig_free(r);
        free(members);
}

static void on_health(void *arg, const struct agent_health *h)
{
        snprintf(arg, sizeof(h->why), "%s", h->healthy ? "healthy" : h->why);
}

static void health_is_that_of_the_card_and_an_old_card_serves_on(void **state)
{
        struct a2a_rig *r = a2a_rig_new("");
        static const char *const rows[][2] = { { CARD("true"), "healthy" },
                                               { "HTTP/1.1 500 No\r\n" CLOSE, "HTTP 500" },
                                               { JSON("{}"), "no JSON-RPC interface" } };
        char why[200];

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                why[0] = '\0';
                assert_int_equal(agents_check(r->agents, "steps", on_health, why, NULL), 0);
                a2a_rig_serve(r, AGENT_CARD, rows[i][0]);
                while (!why[0])
                        rig_run_for(r->road, 1);
                assert_has(why, rows[i][1]);
        }
        a2a_rig_say(r, "hi");
        a2a_rig_serve(r, "SendStreamingMessage", SSE(EVENT(DONE("as before"))));
        assert_string_equal(a2a_rig_said(r), "as before");
        a2a_rig_free(r);
}

static void mistakes_in_the_settings_are_found(void **state)
{
        static const char *const rows[][2] = {
                { "{\"url\": \"http://x\", \"origins\": [\"x.example\"]}", "is not an origin" },
                { "{\"url\": \"http://x\", \"apiKey\": \"a b\"}", "contains a blank" },
                { "{\"url\": \"http://x\", \"headers\": [\"Host: y\"]}", "sets itself" },
                { "{\"url\": \"http://x\", \"contextId\": \"mine\"}", "contextId" },
                { "{\"url\": \"x.example\"}", "url" },
                { "{\"url\": \"http://x\", \"pollMS\": 5}", "pollMs" },
                { "{}", "url" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct error err = { 0 };

                assert_null(agent_conf_make("x", "a2a", rows[i][0], &err));
                assert_has(err.text, rows[i][1]);
        }
}

/* ---- files ---- */

static void files_of_a_message_are_sent_along(void **state)
{
        struct attachment file = {
                .kind = "document", .name = "a.txt", .mime = "text/plain", .source = "F1"
        };
        struct a2a_rig *r = a2a_rig_new("");
        char *folder = mem_printf("%s/workspace/channels/nonce/c/attachments", r->road->dir);
        char *path = mem_printf("%s/1-a.txt", folder);
        FILE *f;

        (void)state;
        assert_int_equal(file_make_dirs(folder, NULL), 0);
        f = fopen(path, "w");
        assert_non_null(f);
        fputs("hello", f);
        fclose(f);
        rig_receive(r->road, &(struct incoming){ .adapter = "nonce",
                                                 .guild = "steps",
                                                 .text = "read this",
                                                 .attachments = &file,
                                                 .attachment_count = 1 });
        rig_until(r->road, &r->road->held_count, 1);
        rig_file(r->road, 0, "channels/nonce/c/attachments/1-a.txt", NULL);
        a2a_rig_serve(r, AGENT_CARD, OLD_CARD("true"));
        a2a_rig_expect(r, "{\"kind\":\"file\",\"file\":{\"bytes\":\"aGVsbG8=\",\"name\":");
        a2a_rig_answer(r, JSON(REPLY(DONE("read"))));
        assert_string_equal(a2a_rig_said(r), "read");
        free(folder);
        free(path);
        a2a_rig_free(r);
}

static void files_of_an_answer_are_sent_to_the_chat(void **state)
{
        static const char answer[] = JSON(
                REPLY(TASK(STATE("COMPLETED"),
                           "{\"artifactId\":\"a\",\"parts\":[{\"text\":\"here\"},{\"raw\":"
                           "\"YSxiCg==\",\"filename\":\"../t.csv\",\"mediaType\":\"text/csv\"},"
                           "{\"raw\":\"not base64!\",\"filename\":\"bad\"}]}")));
        struct a2a_rig *r = a2a_rig_new("");
        const struct rig_sent *s;
        unsigned file;

        (void)state;
        rig_say(r->road, "tools", "c", "steps", "make it", NULL);
        a2a_rig_serve(r, AGENT_CARD, CARD("true"));
        a2a_rig_serve(r, "SendStreamingMessage", answer);
        rig_until_idle(r->road);
        assert_int_equal(r->road->sent_count, 2);
        file = strcmp(r->road->sent[0].kind, "upload") == 0 ? 0 : 1;
        s = &r->road->sent[file];
        assert_string_equal(s->kind, "upload");
        assert_string_equal(s->name, "../t.csv"); /* adapters make it a safe one */
        assert_has(rig_text(r->road, "payload FROM deliveries WHERE kind = 'upload'"),
                   "channels/tools/c/attachments/1-");
        assert_string_equal(r->road->sent[1 - file].text,
                            "here\n\n(The agent also sent, which cannot be shown here: bad)");
        a2a_rig_free(r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_answer_is_read_from_its_artifacts),
                cmocka_unit_test(pieces_and_words_are_shown_while_the_task_runs),
                cmocka_unit_test(the_request_carries_message_key_and_trace),
                cmocka_unit_test(an_agent_may_answer_without_a_task),
                cmocka_unit_test(old_agents_are_spoken_to_in_their_version),
                cmocka_unit_test(what_an_agent_says_without_artifacts_is_its_answer),
                cmocka_unit_test(links_and_data_are_shown_and_cannot_break_out),
                cmocka_unit_test(an_endless_answer_is_cut),
                cmocka_unit_test(without_a_stream_the_task_is_asked_for),
                cmocka_unit_test(a_broken_stream_is_resumed),
                cmocka_unit_test(an_agent_that_cannot_be_subscribed_to_is_asked),
                cmocka_unit_test(events_of_other_tasks_and_requests_are_ignored),
                cmocka_unit_test(a_repeated_artifact_counts_once),
                cmocka_unit_test(a_task_that_is_lost_ends_the_turn),
                cmocka_unit_test(a_task_too_large_to_read_ends_the_turn),
                cmocka_unit_test(an_agent_is_asked_no_sooner_than_it_wishes),
                cmocka_unit_test(failures_have_the_agents_reason),
                cmocka_unit_test(a_message_that_may_have_arrived_is_looked_for),
                cmocka_unit_test(a_message_of_which_nothing_is_known_is_not_repeated),
                cmocka_unit_test(an_agent_that_knows_its_messages_gets_it_again),
                cmocka_unit_test(a_busy_agent_is_asked_again),
                cmocka_unit_test(refusals_are_told_with_their_reason),
                cmocka_unit_test(the_context_is_kept_across_restarts_until_new),
                cmocka_unit_test(the_session_may_name_the_context),
                cmocka_unit_test(the_next_message_continues_a_task_that_asks),
                cmocka_unit_test(a_message_to_a_task_that_has_ended_begins_another),
                cmocka_unit_test(a_failed_message_to_a_task_may_be_repeated),
                cmocka_unit_test(an_answer_to_a_task_is_looked_for_in_it),
                cmocka_unit_test(an_authorization_is_told_and_its_answer_follows),
                cmocka_unit_test(an_answer_is_promised_only_if_it_is_waited_for),
                cmocka_unit_test(an_authorization_that_is_asked_for_late_is_waited_for),
                cmocka_unit_test(a_question_after_an_authorization_is_answered),
                cmocka_unit_test(a_late_answer_is_delivered_when_it_comes),
                cmocka_unit_test(a_task_out_of_time_is_canceled_if_late_answers_are_not_wanted),
                cmocka_unit_test(a_stopped_turn_cancels_its_task),
                cmocka_unit_test(a_turn_stopped_before_its_task_is_known_cancels_it_later),
                cmocka_unit_test(a_turn_goes_on_with_its_task_after_a_restart),
                cmocka_unit_test(a_message_is_not_sent_again_after_a_restart),
                cmocka_unit_test(a_message_that_was_not_sent_is_sent_after_a_restart),
                cmocka_unit_test(an_operators_retry_is_another_message),
                cmocka_unit_test(a_card_that_cannot_be_used_says_why),
                cmocka_unit_test(a_card_that_is_not_there_yet_is_fetched_again),
                cmocka_unit_test(a_huge_card_is_refused),
                cmocka_unit_test(a_card_leads_neither_inside_nor_to_our_key),
                cmocka_unit_test(the_card_names_the_interface_and_the_tenant),
                cmocka_unit_test(an_origin_that_is_listed_gets_the_key),
                cmocka_unit_test(health_is_that_of_the_card_and_an_old_card_serves_on),
                cmocka_unit_test(mistakes_in_the_settings_are_found),
                cmocka_unit_test(files_of_a_message_are_sent_along),
                cmocka_unit_test(files_of_an_answer_are_sent_to_the_chat),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
