/* The reply URL of a turn, with a real webhook agent on a real road. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/api_rig.h"
#include "../lib/fake_server.h"
#include "../lib/patience.h"
#include "agent/agents_private.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#define ACCEPTED "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
#define TAKEN                                                                   \
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " \
        "11\r\n\r\n{\"ok\":true}"
#define ANSWER                                                                  \
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " \
        "23\r\n\r\n{\"reply\":\"better late\"}\n"

struct stage {
        struct api_rig *rig;
        struct fake_server *server;
        unsigned seen; /* requests at the webhook */
};

static struct stage stage_new(const char *more, const struct fake_answer *script, size_t count)
{
        struct stage s = { .rig = api_rig_new() };
        struct agent_conf *conf;
        struct error err = { 0 };
        char *url, *json;

        s.server = fake_server_new(s.rig->loop, script, count);
        url = fake_server_url(s.server, "/hook");
        json = mem_printf("{\"url\": \"%s\"%s}", url, more);
        conf = agent_conf_make("hook", "webhook", json, &err);
        if (!conf || agents_apply(s.rig->agents, &conf, 1, &err) < 0)
                fail_msg("%s", err.text);
        s.rig->agent = "hook";
        free(json);
        free(url);
        return s;
}

static void stage_free(struct stage *s)
{
        fake_server_free(s->server);
        api_rig_free(s->rig);
}

/* Runs the loop until there is such a row. */
#define await_row(s, from)                                         \
        do {                                                       \
                int64_t deadline_ = clock_mono_ms() + PATIENCE_MS; \
                                                                   \
                while (api_rig_count((s)->rig, from) == 0) {       \
                        loop_step((s)->rig->loop, false);          \
                        assert_true(clock_mono_ms() < deadline_);  \
                }                                                  \
        } while (0)

/* Posts a message to the webhook; returns the path of its reply URL, yours to free. */
static char *say(struct stage *s, const char *text)
{
        char *body = mem_printf("{\"instanceId\":\"api\",\"chatId\":\"c\",\"text\":\"%s\","
                                "\"sender\":{\"id\":\"ann\"}}",
                                text);
        struct api_answer a = api_rig_ask(s->rig, "POST", "/api/v2/messages/inbound", body);
        const char *request;
        json_t *json;
        char *path;

        assert_int_equal(a.status, 202);
        api_answer_release(&a);
        free(body);
        while (fake_server_requests(s->server) == s->seen)
                loop_step(s->rig->loop, true);
        request = fake_server_request(s->server, s->seen++);
        json = json_loads(strstr(request, "\r\n\r\n") + 4, 0, NULL);
        assert_non_null(json);
        path = strstr(json_str(json, "replyUrl", ""), "/api/v2/turns/");
        assert_non_null(path);
        path = mem_strdup(path);
        json_decref(json);
        return path;
}

static void post(struct stage *s, const char *path, const char *more, const char *body, int status,
                 const char *part)
{
        char *headers = mem_printf("Host: %s\r\nContent-Type: application/json\r\n%s",
                                   api_address(s->rig->api), more);
        struct api_answer a = api_rig_ask_as(s->rig, "POST", path, headers, body);

        if (a.status != status || !strstr(a.text, part))
                fail_msg("expected %d and '%s', got %s", status, part, a.text);
        api_answer_release(&a);
        free(headers);
}

static void the_first_answer_ends_a_waiting_turn(void **state)
{
        static const struct fake_answer script[] = { { ACCEPTED } };
        struct stage s = stage_new("", script, 1);
        char *path = say(&s, "hi");

        (void)state;
        post(&s, path, "", "{\"reply\":\"from outside\",\"metadata\":{\"inputTokens\":5}}", 202,
             "\"status\":\"answered\"");
        assert_int_equal(api_rig_count(s.rig, "turns WHERE state = 'done' AND tokens_in = 5"), 1);
        assert_int_equal(api_rig_count(s.rig, "deliveries WHERE payload LIKE '%from outside%'"), 1);
        post(&s, path, "", "{\"reply\":\"again\"}", 409, "has had its 1 answer");
        free(path);
        stage_free(&s);
}

static void an_answer_by_reply_url_ends_the_running_call(void **state)
{
        struct stage s = stage_new("", NULL, 0);
        char *path = say(&s, "hi");

        (void)state;
        assert_int_equal(fake_server_open(s.server), 1);
        post(&s, path, "", "{\"reply\":\"quicker this way\"}", 202, "\"status\":\"answered\"");
        assert_int_equal(api_rig_count(s.rig, "turns WHERE state = 'done'"), 1);
        assert_int_equal(api_rig_count(s.rig, "deliveries"), 1);
        while (fake_server_open(s.server) > 0)
                loop_step(s.rig->loop, true);
        free(path);
        stage_free(&s);
}

/* The reply URL of the first turn, five seconds after its end. */
static char *expired_path(const struct stage *s)
{
        char token[REPLY_TOKEN_SIZE];

        reply_token_write(s->rig->agents->secret, "trn-1", clock_wall_ms() / 1000 - 5, token);
        return mem_printf("/api/v2/turns/trn-1/reply?token=%s", token);
}

static void only_the_turns_token_is_accepted_until_it_expires(void **state)
{
        static const struct fake_answer script[] = { { ACCEPTED } };
        struct stage s = stage_new("", script, 1);
        char *path = say(&s, "hi"), *old = expired_path(&s);
        char *other = mem_printf("/api/v2/turns/trn-2/reply%s", strchr(path, '?'));

        (void)state;
        post(&s, "/api/v2/turns/trn-1/reply", "", "{\"reply\":\"x\"}", 401, "token");
        post(&s, "/api/v2/turns/trn-1/reply?token=1.2", "", "{\"reply\":\"x\"}", 401,
             "not the reply token");
        post(&s, "/api/v2/turns/trn-1/reply?token=zzz", "", "{\"reply\":\"x\"}", 401,
             "not the reply token");
        post(&s, other, "", "{\"reply\":\"x\"}", 401, "not the reply token of turn 'trn-2'");
        post(&s, old, "", "{\"reply\":\"x\"}", 410, "has expired");
        post(&s, path, "", "{\"answer\":\"x\"}", 400, "needs \\\"reply\\\"");
        post(&s, path, "", "{\"reply\":", 400, "VALIDATION_ERROR");
        assert_int_equal(api_rig_count(s.rig, "turns WHERE state = 'running'"), 1);
        free(other);
        free(old);
        free(path);
        stage_free(&s);
}

static void the_token_may_be_in_the_header(void **state)
{
        static const struct fake_answer script[] = { { ACCEPTED } };
        struct stage s = stage_new("", script, 1);
        char *path = say(&s, "hi"),
             *header = mem_printf("Authorization: Bearer %s\r\n", strstr(path, "token=") + 6);

        (void)state;
        *strchr(path, '?') = '\0';
        post(&s, path, header, "{\"text\":\"by header\"}", 202, "answered");
        free(header);
        free(path);
        stage_free(&s);
}

static void a_fire_and_forget_turn_takes_limited_late_replies(void **state)
{
        static const struct fake_answer script[] = { { TAKEN } };
        struct stage s = stage_new(", \"mode\": \"fire-and-forget\", \"maxReplies\": 3", script, 1);
        char *path = say(&s, "hi");

        (void)state;
        await_row(&s, "turns WHERE state = 'done'");
        assert_int_equal(api_rig_count(s.rig, "deliveries"), 0);
        post(&s, path, "Idempotency-Key: a\r\n", "{\"reply\":\"one\"}", 202,
             "\"status\":\"delivered\"");
        post(&s, path, "Idempotency-Key: a\r\n", "{\"reply\":\"one\"}", 202,
             "\"status\":\"duplicate\"");
        post(&s, path, "", "{\"parts\":[\"two\",\"and a half\"]}", 202, "\"deliveryId\"");
        post(&s, path, "", "{\"reply\":\"three\"}", 202, "delivered");
        post(&s, path, "", "{\"reply\":\"four\"}", 409, "3 answers");
        post(&s, path, "Idempotency-Key: a\r\n", "{\"reply\":\"one\"}", 202, "duplicate");
        assert_int_equal(api_rig_count(s.rig, "deliveries WHERE state = 'sent'"), 4);
        assert_int_equal(api_rig_number(s.rig, "count(DISTINCT trace) FROM journal"), 1);
        assert_int_equal(api_rig_count(s.rig, "journal WHERE type = 'turn.reply'"), 3);
        /* the transcript has the late reply */
        assert_int_equal(
                api_rig_count(s.rig, "transcript WHERE role = 'assistant' AND name = 'hook'"), 4);
        free(path);
        stage_free(&s);
}

static void a_report_shows_answers_by_reply_url(void **state)
{
        static const struct fake_answer script[] = { { TAKEN } };
        struct stage s = stage_new(", \"mode\": \"fire-and-forget\", \"maxReplies\": 3", script, 1);
        char *path = say(&s, "hi");
        struct api_answer a;

        (void)state;
        await_row(&s, "turns WHERE state = 'done'");
        api_rig_expect(s.rig, "GET", "/api/v2/why/evt-1", NULL, 200,
                       "silent because agent 'hook' took the message and has not answered yet");
        post(&s, path, "", "{\"parts\":[\"two\",\"and a half\"]}", 202, "\"deliveryId\"");
        a = api_rig_ask(s.rig, "GET", "/api/v2/why/evt-1", NULL);
        assert_non_null(strstr(a.text, "\"summary\":\"answered late, in "));
        assert_int_equal(
                json_array_size(json_object_get(json_object_get(a.json, "data"), "deliveries")), 2);
        api_answer_release(&a);
        api_rig_expect(s.rig, "GET", "/api/v2/deliveries?turnId=trn-1", NULL, 200,
                       "\"replyOf\":\"trn-1\"");
        free(path);
        stage_free(&s);
}

/* `json` in 300 KB of blanks, so that it is parsed on a pool thread. */
static void post_large(struct stage *s, const char *path, const char *more, const char *json,
                       int status, const char *part)
{
        char *body = mem_printf("%s%*s", json, 300 * 1024, "");

        post(s, path, more, body, status, part);
        free(body);
}

static void large_answers_are_taken_like_small_ones(void **state)
{
        static const struct fake_answer script[] = { { TAKEN } };
        struct stage s = stage_new(", \"mode\": \"fire-and-forget\", \"maxReplies\": 3", script, 1);
        char *path = say(&s, "hi");

        (void)state;
        await_row(&s, "turns WHERE state = 'done'");
        post_large(&s, path, "Idempotency-Key: a\r\n", "{\"reply\":\"one\"}", 202,
                   "\"status\":\"delivered\"");
        post_large(&s, path, "Idempotency-Key: a\r\n", "{\"reply\":\"one\"}", 202,
                   "\"status\":\"duplicate\"");
        post_large(&s, path, "", "{\"reply\":1}", 400, "is not a string");
        post_large(&s, path, "", "{\"ok\":true}", 400, "the body needs");
        assert_int_equal(api_rig_count(s.rig, "deliveries WHERE state = 'sent'"), 1);
        free(path);
        stage_free(&s);
}

static void a_repeated_answer_is_recognised_by_its_key(void **state)
{
        static const struct fake_answer script[] = { { ACCEPTED } };
        struct stage s = stage_new(", \"maxReplies\": 2", script, 1);
        char *path = say(&s, "hi");

        (void)state;
        post(&s, path, "Idempotency-Key: a\r\n", "{\"parts\":[\"one\",\"two\"]}", 202,
             "\"status\":\"answered\"");
        post(&s, path, "Idempotency-Key: a\r\n", "{\"parts\":[\"one\",\"two\"]}", 202,
             "\"status\":\"duplicate\"");
        assert_int_equal(api_rig_count(s.rig, "deliveries"), 2);
        post(&s, path, "Idempotency-Key: b\r\n", "{\"reply\":\"three\"}", 202,
             "\"status\":\"delivered\"");
        post(&s, path, "Idempotency-Key: c\r\n", "{\"reply\":\"four\"}", 409, "2 answers");
        post(&s, path, "Idempotency-Key: a\r\n", "{\"parts\":[\"one\",\"two\"]}", 202, "duplicate");
        assert_int_equal(api_rig_count(s.rig, "deliveries"), 3);
        free(path);
        stage_free(&s);
}

static void a_late_reply_is_delivered_or_discarded_by_rule(void **state)
{
        static const struct {
                const char *late, *status, *outcome;
                int64_t messages;
        } rows[] = { { "deliver", "\"status\":\"delivered\"", "delivered", 2 },
                     { "discard", "\"status\":\"discarded\"", "discarded", 1 } };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *more = mem_printf(", \"timeoutMs\": 50, \"late\": \"%s\"", rows[i].late);
                struct stage s = stage_new(more, NULL, 0);
                char *path = say(&s, "hi");

                await_row(&s, "turns WHERE state = 'failed' AND error_kind = 'timeout'");
                post(&s, path, "", "{\"reply\":\"sorry I am late\"}", 202, rows[i].status);
                assert_int_equal(api_rig_count(s.rig, "deliveries"), rows[i].messages);
                assert_int_equal(api_rig_count(s.rig, "journal WHERE type = 'turn.reply'"), 1);
                free(path);
                free(more);
                stage_free(&s);
        }
}

static void a_response_after_the_deadline_is_delivered_once(void **state)
{
        static const struct fake_answer answer = { ANSWER };
        struct stage s = stage_new(", \"timeoutMs\": 50", NULL, 0);

        (void)state;
        free(say(&s, "hi"));
        await_row(&s, "turns WHERE state = 'failed'");
        fake_server_answer(s.server, &answer);
        await_row(&s, "journal WHERE type = 'turn.reply' AND payload LIKE"
                      " '%\"late\":true%'");
        assert_int_equal(api_rig_count(s.rig, "deliveries WHERE payload LIKE '%better late%'"), 1);
        assert_int_equal(fake_server_requests(s.server), 1);
        stage_free(&s);
}

static void an_answer_to_a_cancelled_turn_is_not_delivered(void **state)
{
        static const struct fake_answer script[] = { { ACCEPTED } };
        struct stage s = stage_new("", script, 1);
        char *path = say(&s, "hi");
        struct api_answer a = api_rig_ask(s.rig, "POST", "/api/v2/turns/trn-1/cancel", "{}");

        (void)state;
        assert_int_equal(a.status, 202);
        api_answer_release(&a);
        post(&s, path, "", "{\"reply\":\"too late\"}", 202, "the turn was cancelled");
        assert_int_equal(api_rig_count(s.rig, "deliveries"), 0);
        free(path);
        stage_free(&s);
}

static void one_trace_covers_event_webhook_and_reply(void **state)
{
        static const struct fake_answer script[] = { { ACCEPTED } };
        struct stage s = stage_new("", script, 1);
        char *path = say(&s, "hi"), *line;
        const char *trace;

        (void)state;
        post(&s, path, "", "{\"reply\":\"x\"}", 202, "answered");
        trace = strstr(fake_server_request(s.server, 0), "X-Trace-Id: ");
        assert_non_null(trace);
        line = mem_strndup(trace + 12, 32);
        assert_int_equal(api_rig_number(s.rig,
                                        "count(DISTINCT trace) FROM (SELECT trace FROM journal"
                                        " UNION ALL SELECT trace FROM trigger_log"
                                        " UNION ALL SELECT trace FROM deliveries) AS t"),
                         1);
        assert_non_null(strstr(strstr(fake_server_request(s.server, 0), "traceparent: 00-"), line));
        free(line);
        free(path);
        stage_free(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_answer_ends_a_waiting_turn),
                cmocka_unit_test(an_answer_by_reply_url_ends_the_running_call),
                cmocka_unit_test(only_the_turns_token_is_accepted_until_it_expires),
                cmocka_unit_test(the_token_may_be_in_the_header),
                cmocka_unit_test(a_fire_and_forget_turn_takes_limited_late_replies),
                cmocka_unit_test(a_report_shows_answers_by_reply_url),
                cmocka_unit_test(large_answers_are_taken_like_small_ones),
                cmocka_unit_test(a_repeated_answer_is_recognised_by_its_key),
                cmocka_unit_test(a_late_reply_is_delivered_or_discarded_by_rule),
                cmocka_unit_test(a_response_after_the_deadline_is_delivered_once),
                cmocka_unit_test(an_answer_to_a_cancelled_turn_is_not_delivered),
                cmocka_unit_test(one_trace_covers_event_webhook_and_reply),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
