/* Several agents: failover, circuits, queues, and what is never done twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "../lib/fake_server.h"
#include "../lib/scratch.h"
#include "base/json.h"
#include "base/log.h"
#include "fake_turn.h"

#define DEAD "http://127.0.0.1:1/"

struct agent_rig {
        char *dir;
        struct loop *loop;
        struct http_client *http;
        struct agents *agents;
};

static void swallow(const char *line, void *arg)
{
        (void)line;
        (void)arg;
}

/* The script of the agents here. */
static void write_script(const struct agent_rig *b, const char *text)
{
        scratch_put(b->dir, "bad.txt", text);
}

static int setup(void **state)
{
        struct agent_rig *b = mem_zalloc(sizeof(*b));
        struct error err = { 0 };

        log_divert(swallow, NULL);
        b->dir = scratch_new();
        write_script(b, "when half*\n  piece \"half \"\n  fail net It broke.\n"
                        "when *\n  fail net It is down.\n");
        b->loop = loop_new();
        b->http = http_client_new(b->loop, &(struct http_client_options){ 0 }, &err);
        b->agents = agents_new(b->loop, b->http, b->dir);
        *state = b;
        return 0;
}

static int teardown(void **state)
{
        struct agent_rig *b = *state;

        agents_free(b->agents);
        http_client_free(b->http);
        loop_free(b->loop);
        scratch_free(b->dir);
        free(b);
        log_divert(NULL, NULL);
        return 0;
}

/* name, type, JSON; ended by a NULL name */
static void apply(struct agent_rig *b, const char *const *rows)
{
        struct agent_conf *confs[8];
        struct error err = { 0 };
        size_t n = 0;

        for (; *rows; rows += 3) {
                confs[n] = agent_conf_make(rows[0], rows[1], rows[2], &err);
                if (!confs[n++])
                        fail_msg("%s", err.text);
        }
        if (agents_apply(b->agents, confs, n, &err) < 0)
                fail_msg("%s", err.text);
}

static void run(struct agent_rig *b, struct fake_turn *t, const char *agent, const char *text)
{
        fake_turn_init(t, agent, text);
        fake_turn_start(t, b->agents);
        fake_turn_await(t, b->loop);
}

static void keep_health(void *arg, const struct agent *a, const struct agent_health *h)
{
        struct agent_health *out = arg;

        if (strcmp(a->name, "a") == 0)
                *out = *h;
}

static struct agent_health health(struct agent_rig *b)
{
        struct agent_health h = { 0 };

        agents_each(b->agents, keep_health, &h);
        return h;
}

static void assert_has(const char *text, const char *part)
{
        if (!strstr(text, part))
                fail_msg("'%s' is not in '%s'", part, text);
}

static void another_agent_answers_when_the_first_did_nothing(void **state)
{
        static const char *const rows[] = {
                "a",
                "webhook",
                "{\"url\": \"" DEAD "\", \"retries\": 0, \"failover\": [\"gone\", \"b\", \"c\"]}",
                "b",
                "script",
                "{\"file\": \"bad.txt\"}",
                "c",
                "echo",
                "{}",
                NULL
        };
        struct fake_turn t;

        apply(*state, rows);
        run(*state, &t, "a", "hello");
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "hello");
        assert_non_null(strstr(t.failovers.data, "a>b: "));
        assert_non_null(strstr(t.failovers.data, "b>c: "));
        fake_turn_release(&t);
}

/* Its runs may have effects, but none began. */
static void another_agent_answers_for_an_unreachable_agentos(void **state)
{
        static const char *const rows[] = { "a",
                                            "agno",
                                            "{\"url\": \"" DEAD
                                            "\", \"id\": \"x\", \"retries\": 0, "
                                            "\"failover\": [\"b\"]}",
                                            "b",
                                            "echo",
                                            "{}",
                                            NULL };
        struct fake_turn t;

        apply(*state, rows);
        run(*state, &t, "a", "hello");
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "hello");
        fake_turn_release(&t);
}

#define COMPLETION(text)                     \
        "HTTP/1.1 200 OK\r\n"                \
        "Content-Type: application/json\r\n" \
        "Connection: close\r\n"              \
        "\r\n"                               \
        "{\"choices\":[{\"message\":{\"content\":\"" text "\"},\"finish_reason\":\"stop\"}]}"

static void a_silent_answer_does_not_fail_over(void **state)
{
        static const struct fake_answer script[] = { { COMPLETION(""), .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_server *server = fake_server_new(b->loop, script, 1);
        char *url = fake_server_url(server, "/v1"),
             *model = mem_printf("{\"baseUrl\": \"%s\", \"model\": \"m\", \"stream\": false, "
                                 "\"failover\": [\"b\"]}",
                                 url);
        const char *const rows[] = { "a", "openai", model, "b", "echo", "{}", NULL };
        struct fake_turn t;

        apply(b, rows);
        fake_turn_init(&t, "a", "hello");
        t.run.mode = MODE_AMBIENT;
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_int_equal(t.reply.kind, ERR_NONE);
        assert_string_equal(t.text, "");
        fake_turn_release(&t);
        fake_server_free(server);
        free(model);
        free(url);
}

/* Both kinds keep their call with the turn. */
static void a_model_takes_over_from_a_webhook(void **state)
{
        static const struct fake_answer script[] = { { COMPLETION("hi"), .end = FAKE_CLOSE } };
        struct agent_rig *b = *state;
        struct fake_server *server = fake_server_new(b->loop, script, 1);
        char *url = fake_server_url(server, "/v1"),
             *model = mem_printf("{\"baseUrl\": \"%s\", \"model\": \"m\", \"stream\": false}", url);
        const char *const rows[] = {
                "a", "webhook", "{\"url\": \"" DEAD "\", \"retries\": 0, \"failover\": [\"b\"]}",
                "b", "openai",  model,
                NULL
        };
        struct fake_turn t;

        apply(b, rows);
        run(b, &t, "a", "hello");
        assert_string_equal(t.text, "hi");
        fake_turn_release(&t);
        fake_server_free(server);
        free(model);
        free(url);
}

static void a_turn_that_may_have_had_effects_does_not_fail_over(void **state)
{
        static const struct fake_answer broken[] = { { NULL, .end = FAKE_CLOSE } };
        static const struct fake_answer fails[] = {
                { "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n" }
        };
        const struct fake_answer *const scripts[] = { broken, fails };

        for (size_t i = 0; i < COUNT(scripts); i++) {
                struct agent_rig *b = *state;
                struct fake_server *server = fake_server_new(b->loop, scripts[i], 1);
                char *url = fake_server_url(server, "/"),
                     *json = mem_printf("{\"url\": \"%s\", \"retries\": 0, \"failover\": [\"b\"]}",
                                        url);
                const char *const rows[] = { "a", "webhook", json, "b", "echo", "{}", NULL };
                struct fake_turn t;

                apply(b, rows);
                run(b, &t, "a", "hello");
                assert_int_equal(t.reply.kind, ERR_NET);
                fake_turn_release(&t);
                fake_server_free(server);
                free(json);
                free(url);
                teardown(state);
                setup(state);
        }
}

static void fail_with_stored_steps(void *arg, const struct agent *a, const struct agent_health *h)
{
        struct fake_turn *t = arg;
        struct turn_reply reply = { .kind = ERR_NET, .error = "its model is down" };

        (void)h;
        if (strcmp(a->name, "a") != 0)
                return;
        a->ops->cancel((struct agent *)a, &t->run);
        agent_finish((struct agent *)a, &t->run, &reply, EFFECT_STORED);
}

/* They would begin the turn anew. */
static void stored_steps_are_not_given_to_started_programs_and_a2a(void **state)
{
        static const char *const rows[] = {
                "a",
                "webhook",
                "{\"url\": \"" DEAD "\", "
                "\"failover\": [\"pi\", \"omp\", \"acp\", \"a2a\", \"b\"]}",
                "pi",
                "pi",
                "{}",
                "omp",
                "omp",
                "{}",
                "acp",
                "acp",
                "{\"command\": \"true\"}",
                "a2a",
                "a2a",
                "{\"url\": \"" DEAD "\"}",
                NULL
        };
        struct agent_rig *b = *state;
        struct fake_turn t;

        apply(b, rows);
        fake_turn_init(&t, "a", "hello");
        fake_turn_start(&t, b->agents);
        agents_each(b->agents, fail_with_stored_steps, &t);
        fake_turn_await(&t, b->loop);
        assert_int_equal(t.reply.kind, ERR_NET);
        assert_string_equal(t.failovers.data, "");
        fake_turn_release(&t);
}

static void a_turn_with_streamed_text_does_not_fail_over(void **state)
{
        static const char *const rows[] = {
                "a",  "script", "{\"file\": \"bad.txt\", \"failover\": [\"b\"]}", "b", "echo",
                "{}", NULL
        };
        struct fake_turn t;

        apply(*state, rows);
        run(*state, &t, "a", "half a word");
        assert_int_equal(t.reply.kind, ERR_NET);
        assert_has(t.text, "half");
        fake_turn_release(&t);
}

static void a_broken_stream_or_run_does_not_fail_over(void **state)
{
        static const char stream[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                     "Connection: close\r\n\r\n";
        static const struct {
                const char *type, *settings, *answer, *text;
        } rows[] = {
                { "openai", "\"model\": \"m\", \"baseUrl\"",
                  "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n", "half" },
                { "agno", "\"id\": \"a\", \"url\"",
                  "data: {\"event\":\"RunStarted\",\"run_id\":\"r\"}\n\n", "" },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct agent_rig *b = *state;
                char *bytes = mem_printf("%s%s", stream, rows[i].answer);
                struct fake_answer script = { bytes, .end = FAKE_CLOSE };
                struct fake_server *server = fake_server_new(b->loop, &script, 1);
                char *url = fake_server_url(server, "/"),
                     *json = mem_printf("{%s: \"%s\", \"failover\": [\"b\"]}", rows[i].settings,
                                        url);
                const char *const agents[] = { "a", rows[i].type, json, "b", "echo", "{}", NULL };
                struct fake_turn t;

                apply(b, agents);
                run(b, &t, "a", "hello");
                assert_int_equal(t.reply.kind, ERR_NET);
                assert_has(t.text, rows[i].text);
                fake_turn_release(&t);
                fake_server_free(server);
                free(json);
                free(url);
                free(bytes);
                teardown(state);
                setup(state);
        }
}

/* What the others may do does not matter: after a crash it is known which one had the turn. */
static void a_turn_is_repeatable_if_its_agent_is(void **state)
{
        static const char *const rows[] = { "a", "echo",    "{\"failover\": [\"b\"]}",
                                            "b", "webhook", "{\"url\": \"" DEAD "\"}",
                                            NULL };
        struct agent_rig *b = *state;

        apply(b, rows);
        assert_true(agents_abilities(b->agents, "a") & AGENT_REPEATABLE);
        assert_false(agents_abilities(b->agents, "b") & AGENT_REPEATABLE);
}

static const char *const down_down_echo[] = {
        "a", "webhook", "{\"url\": \"" DEAD "\", \"retries\": 0, \"failover\": [\"b\", \"c\"]}",
        "b", "webhook", "{\"url\": \"" DEAD "\", \"retries\": 0}",
        "c", "echo",    "{}",
        NULL
};

static void the_next_agent_begins_when_the_failover_is_stored(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        apply(b, down_down_echo);
        fake_turn_init(&t, "a", "hello");
        t.holds_failover = true;
        fake_turn_start(&t, b->agents);
        while (!t.on_failover)
                loop_step(b->loop, true);
        for (int i = 0; i < 100; i++)
                loop_step(b->loop, false);
        assert_null(strstr(t.failovers.data, "b>c"));
        t.holds_failover = false;
        fake_turn_store_failover(&t, true);
        fake_turn_await(&t, b->loop);
        assert_non_null(strstr(t.failovers.data, "b>c"));
        assert_string_equal(t.text, "hello");
        fake_turn_release(&t);
}

static void a_failover_of_a_turn_that_others_have_ends_it(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        apply(b, down_down_echo);
        fake_turn_init(&t, "a", "hello");
        t.holds_failover = true;
        fake_turn_start(&t, b->agents);
        while (!t.on_failover)
                loop_step(b->loop, true);
        fake_turn_store_failover(&t, false);
        fake_turn_await(&t, b->loop);
        assert_int_equal(t.reply.kind, ERR_CONFLICT);
        fake_turn_release(&t);
        fake_turn_init(&t, "a", "hello"); /* stopped meanwhile */
        t.holds_failover = true;
        fake_turn_start(&t, b->agents);
        while (!t.on_failover)
                loop_step(b->loop, true);
        fake_turn_cancel(&t, b->agents);
        fake_turn_store_failover(&t, true);
        fake_turn_release(&t);
}

static void a_turn_goes_on_with_the_agent_that_took_over_before_a_crash(void **state)
{
        struct agent_rig *b = *state;
        struct fake_turn t;

        apply(b, down_down_echo);
        fake_turn_init(&t, "a", "hello");
        t.run.goes_on_with = "b";
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_null(strstr(t.failovers.data, "a>"));
        assert_int_equal(strncmp(t.failovers.data, "b>c", 3), 0);
        assert_string_equal(t.text, "hello");
        fake_turn_release(&t);
}

/* A model that used up its tokens without an answer has cost money as well. */
static void the_cost_of_failed_agents_is_counted(void **state)
{
        static const struct fake_answer script[] = {
                { "HTTP/1.1 200 OK\r\n"
                  "Content-Type: application/json\r\n"
                  "Connection: close\r\n"
                  "\r\n"
                  "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                  "\"content\":\"\"},\"finish_reason\":\"length\"}],"
                  "\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":50}}",
                  .end = FAKE_CLOSE }
        };
        struct agent_rig *b = *state;
        struct fake_server *server = fake_server_new(b->loop, script, 1);
        char *url = fake_server_url(server, "/v1"),
             *first = mem_printf(
                     "{\"baseUrl\": \"%s\", \"model\": \"m\", \"stream\": false, "
                     "\"pricePerMTokIn\": 2, \"pricePerMTokOut\": 4, \"failover\": [\"b\"]}",
                     url);
        const char *const rows[] = { "a", "openai", first, "b", "echo", "{}", NULL };
        struct fake_turn t;

        apply(b, rows);
        run(b, &t, "a", "hello");
        assert_string_equal(t.text, "hello");
        assert_int_equal(t.reply.tokens_in, 100);
        assert_int_equal(t.reply.tokens_out, 50);
        assert_int_equal(t.reply.cost_microusd, 400);
        fake_turn_release(&t);
        fake_server_free(server);
        free(first);
        free(url);
}

/* The road gathers history before it is known which agent answers. */
static void history_is_gathered_if_any_agent_of_the_list_wants_it(void **state)
{
        static const char ok[] = "HTTP/1.1 200 OK\r\n"
                                 "Content-Type: application/json\r\n"
                                 "Content-Length: 14\r\n"
                                 "\r\n"
                                 "{\"reply\":\"ok\"}";
        static const char busy[] = "HTTP/1.1 429 Busy\r\nContent-Length: 0\r\n\r\n";
        static const struct fake_answer script[] = { { busy }, { ok }, { ok } };
        static const struct transcript_line line = { .role = "user",
                                                     .text = "what was said before" };
        struct agent_rig *b = *state;
        struct fake_server *server = fake_server_new(b->loop, script, 3);
        char *url = fake_server_url(server, "/"),
             *first = mem_printf("{\"url\": \"%s\", \"failover\": [\"b\"]}", url),
             *other = mem_printf("{\"url\": \"%s\", \"history\": true}", url);
        const char *const rows[] = { "a", "webhook", first, "b", "webhook", other, NULL };
        struct fake_turn t;

        apply(b, rows);
        assert_true(agents_abilities(b->agents, "a") & AGENT_HISTORY);
        fake_turn_init(&t, "a", "hello");
        t.run.history = &line;
        t.run.history_count = 1;
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_string_equal(t.text, "ok");
        assert_int_equal(fake_server_requests(server), 2);
        assert_null(strstr(fake_server_request(server, 0), "what was said before"));
        assert_has(fake_server_request(server, 1), "what was said before");
        fake_turn_release(&t);
        fake_turn_init(&t, "a", "hello");
        t.run.mode = MODE_AMBIENT; /* the room's messages are the input */
        t.run.history = &line;
        t.run.history_count = 1;
        fake_turn_start(&t, b->agents);
        fake_turn_await(&t, b->loop);
        assert_has(fake_server_request(server, 2), "what was said before");
        fake_turn_release(&t);
        fake_server_free(server);
        free(first);
        free(other);
        free(url);
}

static void when_all_agents_fail_the_record_names_each(void **state)
{
        static const char *const rows[] = {
                "a", "webhook", "{\"url\": \"" DEAD "\", \"retries\": 0, \"failover\": [\"b\"]}",
                "b", "script",  "{\"file\": \"bad.txt\"}",
                NULL
        };
        struct fake_turn t;

        apply(*state, rows);
        run(*state, &t, "a", "hello");
        assert_int_equal(t.reply.kind, ERR_NET);
        assert_string_equal(t.text, "It is down.");
        assert_has(t.error, "a: webhook at " DEAD);
        assert_has(t.error, "then the script says so");
        fake_turn_release(&t);
}

static void turns_show_whether_an_agent_works(void **state)
{
        static const char *const rows[] = { "a", "script", "{\"file\": \"bad.txt\"}", NULL };
        static const struct {
                const char *text;
                bool healthy;
        } turns[] = { { "good", true }, { "refused", false }, { "bad", false }, { "good", true } };
        struct agent_rig *b = *state;
        struct fake_turn t;

        write_script(b, "when bad\n fail invalid no\nwhen refused\n fail refused no\n"
                        "when *\n say fine\n");
        apply(b, rows);
        assert_false(health(b).known);
        for (size_t i = 0; i < COUNT(turns); i++) {
                run(b, &t, "a", turns[i].text);
                assert_true(health(b).known);
                assert_int_equal(health(b).healthy, turns[i].healthy);
                assert_int_equal(health(b).why[0] == '\0', turns[i].healthy);
                assert_int_equal(health(b).latency_ms, -1);
                fake_turn_release(&t);
        }
}

static void an_open_circuit_refuses_at_once_and_a_probe_closes_it(void **state)
{
        static const char *const bad[] = { "a", "script",
                                           "{\"file\": \"bad.txt\", \"breakerFailures\": 2, "
                                           "\"breakerSeconds\": 1, \"concurrency\": 1}",
                                           NULL };
        struct agent_rig *b = *state;
        struct fake_turn t, other;

        write_script(b, "when bad\n fail net down\nwhen *\n wait 20\n say fine\n");
        apply(b, bad);
        for (int i = 0; i < 2; i++) {
                run(b, &t, "a", "bad");
                fake_turn_release(&t);
        }
        assert_string_equal(health(b).circuit, "open");
        assert_true(health(b).retry_ms > 0);
        run(b, &t, "a", "good");
        assert_int_equal(t.reply.kind, ERR_LIMIT);
        assert_has(t.text, "not available");
        assert_has(t.error, "its circuit is open after 2 failures, the last: the script says so");
        fake_turn_release(&t);
        while (health(b).retry_ms > 0)
                loop_step(b->loop, false);
        for (int i = 0; i < 2; i++) {
                fake_turn_init(&t, "a", "good");
                fake_turn_start(&t, b->agents);
                if (i == 0) { /* a cancelled probe admits the next one */
                        fake_turn_cancel(&t, b->agents);
                        fake_turn_release(&t);
                }
        }
        run(b, &other, "a", "good"); /* does not wait for the probe */
        assert_int_equal(other.reply.kind, ERR_LIMIT);
        fake_turn_release(&other);
        fake_turn_await(&t, b->loop);
        assert_string_equal(t.text, "fine");
        assert_string_equal(health(b).circuit, "closed");
        assert_int_equal(health(b).opened, 1);
        fake_turn_release(&t);
}

static void a_circuit_that_opens_refuses_waiting_turns(void **state)
{
        static const char *const rows[] = {
                "a", "script",
                "{\"file\": \"bad.txt\", \"breakerFailures\": 1, \"concurrency\": 1}", NULL
        };
        struct agent_rig *b = *state;
        struct fake_turn t[2];

        write_script(b, "when bad\n wait 2\n fail net down\nwhen *\n say fine\n");
        apply(b, rows);
        for (int i = 0; i < 2; i++) {
                fake_turn_init(&t[i], "a", i == 0 ? "bad" : "good");
                fake_turn_start(&t[i], b->agents);
        }
        assert_int_equal(health(b).waiting, 1);
        fake_turn_await(&t[1], b->loop);
        assert_int_equal(t[1].reply.kind, ERR_LIMIT);
        assert_has(t[1].error, "its circuit is open after 1 failures");
        for (int i = 0; i < 2; i++)
                fake_turn_release(&t[i]);
}

/* The list names the agent itself, one with an open circuit, and one without room. */
static void failover_skips_agents_that_cannot_take_the_turn(void **state)
{
        static const char *const rows[] = {
                "a",
                "webhook",
                "{\"url\": \"" DEAD "\", \"retries\": 0, "
                "\"failover\": [\"a\", \"open\", \"full\", \"d\"]}",
                "open",
                "script",
                "{\"file\": \"bad.txt\", \"breakerFailures\": 1}",
                "full",
                "echo",
                "{\"delayMs\": 60000, \"concurrency\": 1, \"queue\": 0}",
                "d",
                "echo",
                "{\"prefix\": \"d \"}",
                NULL
        };
        struct agent_rig *b = *state;
        struct fake_turn t, slow;

        apply(b, rows);
        run(b, &t, "open", "x");
        fake_turn_release(&t);
        fake_turn_init(&slow, "full", "x");
        fake_turn_start(&slow, b->agents);
        run(b, &t, "a", "x");
        assert_string_equal(t.text, "d x");
        assert_int_equal(health(b).turns, 1);
        fake_turn_cancel(&slow, b->agents);
        fake_turn_release(&slow);
        fake_turn_release(&t);
}

static void an_open_circuit_fails_over(void **state)
{
        static const char *const rows[] = {
                "a",
                "script",
                "{\"file\": \"bad.txt\", \"breakerFailures\": 1, \"failover\": [\"b\"]}",
                "b",
                "echo",
                "{}",
                NULL
        };
        struct agent_rig *b = *state;
        struct fake_turn t;

        apply(b, rows);
        for (int i = 0; i < 3; i++) {
                run(b, &t, "a", "hello");
                assert_string_equal(t.text, "hello");
                fake_turn_release(&t);
        }
        assert_int_equal(health(b).turns, 1); /* the others were not tried */
}

static void turns_beyond_the_concurrency_wait_in_order(void **state)
{
        static const char *const rows[] = { "a", "echo",
                                            "{\"delayMs\": 2, \"concurrency\": 2, \"queue\": 3}",
                                            NULL };
        struct agent_rig *b = *state;
        struct fake_turn t[6];
        struct agent_health h;
        int order[6], ended = 0;

        apply(b, rows);
        for (int i = 0; i < 6; i++) {
                fake_turn_init(&t[i], "a", "x");
                t[i].run.conversation = i;
                fake_turn_start(&t[i], b->agents);
        }
        h = health(b);
        assert_int_equal(h.running, 2);
        assert_int_equal(h.waiting, 3);
        fake_turn_await(&t[5], b->loop);
        assert_int_equal(t[5].reply.kind, ERR_LIMIT);
        assert_has(t[5].text, "busy");
        assert_has(t[5].error, "3 turns wait for it already");
        for (int n = 0; n < ROUNDS && ended < 5; n++) {
                loop_step(b->loop, true);
                assert_true(health(b).running <= 2);
                for (int i = 0; i < 5; i++) {
                        if (t[i].finished == 1) {
                                order[ended++] = i;
                                t[i].finished = 2;
                        }
                }
        }
        for (int i = 0; i < 5; i++)
                assert_int_equal(order[i], i);
        assert_int_equal(health(b).waiting, 0);
        for (int i = 0; i < 6; i++)
                fake_turn_release(&t[i]);
}

static void waiting_turns_keep_their_order_when_one_is_cancelled(void **state)
{
        static const char *const rows[] = { "a", "echo",
                                            "{\"delayMs\": 2, \"concurrency\": 1, \"queue\": 3}",
                                            NULL };
        static const int expected[] = { 0, 1, 3, 4 };
        struct agent_rig *b = *state;
        struct fake_turn t[5];
        size_t ended = 0;

        apply(b, rows);
        for (int i = 0; i < 4; i++) {
                fake_turn_init(&t[i], "a", "x");
                fake_turn_start(&t[i], b->agents);
        }
        assert_int_equal(health(b).waiting, 3);
        fake_turn_cancel(&t[2], b->agents);
        assert_int_equal(health(b).waiting, 2);
        fake_turn_init(&t[4], "a", "x"); /* there is room again */
        fake_turn_start(&t[4], b->agents);
        for (int n = 0; n < ROUNDS && ended < COUNT(expected); n++) {
                loop_step(b->loop, true);
                for (int i = 0; i < 5; i++) {
                        if (t[i].finished == 1) {
                                assert_int_equal(t[i].reply.kind, ERR_NONE);
                                assert_int_equal(i, expected[ended++]);
                                t[i].finished = 2;
                        }
                }
        }
        assert_int_equal(ended, COUNT(expected));
        assert_int_equal(health(b).waiting, 0);
        for (int i = 0; i < 5; i++)
                fake_turn_release(&t[i]);
}

static void a_reload_takes_waiting_turns_along(void **state)
{
        static const char *const slow[] = { "a", "echo", "{\"delayMs\": 60000, \"concurrency\": 1}",
                                            NULL };
        static const char *const quick[] = { "a", "echo", "{\"prefix\": \"new \"}", NULL };
        struct agent_rig *b = *state;
        struct fake_turn t[4];

        apply(b, slow);
        for (int i = 0; i < 4; i++) {
                fake_turn_init(&t[i], "a", "x");
                fake_turn_start(&t[i], b->agents);
        }
        fake_turn_cancel(&t[1], b->agents);
        assert_int_equal(health(b).waiting, 2);
        apply(b, quick);
        fake_turn_await(&t[2], b->loop);
        fake_turn_await(&t[3], b->loop);
        assert_string_equal(t[2].text, "new x");
        assert_string_equal(t[3].text, "new x");
        fake_turn_cancel(&t[0], b->agents);
        fake_turn_init(&t[1], "a", "x");
        for (int i = 0; i < 4; i++)
                fake_turn_release(&t[i]);
}

static void a_turn_waiting_for_a_removed_agent_fails(void **state)
{
        static const char *const slow[] = { "a", "echo", "{\"delayMs\": 60000, \"concurrency\": 1}",
                                            NULL };
        struct agent_rig *b = *state;
        struct fake_turn t[2];

        apply(b, slow);
        for (int i = 0; i < 2; i++) {
                fake_turn_init(&t[i], "a", "x");
                fake_turn_start(&t[i], b->agents);
        }
        assert_int_equal(agents_apply(b->agents, NULL, 0, NULL), 0);
        fake_turn_await(&t[1], b->loop);
        assert_int_equal(t[1].reply.kind, ERR_MISSING);
        fake_turn_cancel(&t[0], b->agents);
        for (int i = 0; i < 2; i++)
                fake_turn_release(&t[i]);
}

#define FAILS_OVER "{\"url\": \"" DEAD "\", \"retries\": 0, \"failover\": [\"b\", \"c\"]}"

static void waits_for(void *arg, const struct agent *a, const struct agent_health *h)
{
        if (strcmp(a->name, "b") == 0)
                *(size_t *)arg = h->waiting;
}

static void a_turn_waiting_for_a_removed_substitute_fails_over(void **state)
{
        static const char *const three[] = {
                "a", "webhook", FAILS_OVER,
                "b", "echo",    "{\"delayMs\": 60000, \"concurrency\": 1}",
                "c", "echo",    "{\"prefix\": \"c \"}",
                NULL
        };
        static const char *const two[] = { "a", "webhook", FAILS_OVER,
                                           "c", "echo",    "{\"prefix\": \"c \"}",
                                           NULL };
        struct agent_rig *b = *state;
        struct fake_turn t[2];
        size_t waiting = 0;

        apply(b, three);
        for (int i = 0; i < 2; i++) {
                fake_turn_init(&t[i], i == 0 ? "b" : "a", "x");
                fake_turn_start(&t[i], b->agents);
        }
        while (waiting == 0) {
                loop_step(b->loop, true);
                agents_each(b->agents, waits_for, &waiting);
        }
        apply(b, two);
        fake_turn_await(&t[1], b->loop);
        assert_string_equal(t[1].text, "c x");
        fake_turn_cancel(&t[0], b->agents);
        for (int i = 0; i < 2; i++)
                fake_turn_release(&t[i]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(another_agent_answers_when_the_first_did_nothing),
                TEST(another_agent_answers_for_an_unreachable_agentos),
                TEST(a_silent_answer_does_not_fail_over),
                TEST(a_model_takes_over_from_a_webhook),
                TEST(a_turn_that_may_have_had_effects_does_not_fail_over),
                TEST(stored_steps_are_not_given_to_started_programs_and_a2a),
                TEST(a_turn_with_streamed_text_does_not_fail_over),
                TEST(a_broken_stream_or_run_does_not_fail_over),
                TEST(a_turn_is_repeatable_if_its_agent_is),
                TEST(the_next_agent_begins_when_the_failover_is_stored),
                TEST(a_failover_of_a_turn_that_others_have_ends_it),
                TEST(a_turn_goes_on_with_the_agent_that_took_over_before_a_crash),
                TEST(history_is_gathered_if_any_agent_of_the_list_wants_it),
                TEST(the_cost_of_failed_agents_is_counted),
                TEST(when_all_agents_fail_the_record_names_each),
                TEST(turns_show_whether_an_agent_works),
                TEST(an_open_circuit_refuses_at_once_and_a_probe_closes_it),
                TEST(a_circuit_that_opens_refuses_waiting_turns),
                TEST(an_open_circuit_fails_over),
                TEST(failover_skips_agents_that_cannot_take_the_turn),
                TEST(turns_beyond_the_concurrency_wait_in_order),
                TEST(a_reload_takes_waiting_turns_along),
                TEST(waiting_turns_keep_their_order_when_one_is_cancelled),
                TEST(a_turn_waiting_for_a_removed_agent_fails),
                TEST(a_turn_waiting_for_a_removed_substitute_fails_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
