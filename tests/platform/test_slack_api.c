/* Calls of the Web API: requests, limits, failures, what to do about errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>

#include "../lib/scratch.h"
#include "call_rig.h"
#include "platform/slack/sl_api.h"
#include "platform/slack/sl_rate_limit.h"

#define BOT_TOKEN "xoxb-1-bot"
#define APP_TOKEN "xapp-1-app"

/* What only Slack has; of the test that runs. */
static struct {
        struct sl_api *api;
        struct secret *bot_token, *app_token;
        unsigned lacked, works;
        char revoked[40], lacking[300];
        /* of the last answer */
        bool unavailable, has_result;
        char error[60], ts[30], scopes[60];
} slack;

static void on_unauthorized(void *arg, const struct sl_method *method, const char *error)
{
        struct rig *g = arg;

        g->unauthorized++;
        snprintf(slack.revoked, sizeof(slack.revoked), "%s %s", method->name, error);
}

static void on_scoped(void *arg, const struct sl_method *method, const struct sl_answer *a)
{
        (void)arg;
        assert_false(method->app_level);
        if (!a->ok)
                snprintf(slack.lacking, sizeof(slack.lacking), "%s", a->why);
        a->ok ? slack.works++ : slack.lacked++;
}

static struct rig *rig_new(void)
{
        memset(&slack, 0, sizeof(slack));
        slack.bot_token = secret_new(BOT_TOKEN, strlen(BOT_TOKEN));
        slack.app_token = secret_new(APP_TOKEN, strlen(APP_TOKEN));
        return call_rig_new();
}

static void rig_open_at(struct rig *g, const char *base)
{
        slack.api = sl_api_new(&(struct sl_api_options){ .loop = g->loop,
                                                         .http = g->http,
                                                         .base = base,
                                                         .bot_token = slack.bot_token,
                                                         .app_token = slack.app_token,
                                                         .name = "sl",
                                                         .unauthorized = on_unauthorized,
                                                         .scoped = on_scoped,
                                                         .arg = g });
}

static void rig_open(struct rig *g)
{
        char *base;

        g->server = fake_server_new(g->loop, g->script, g->count);
        base = fake_server_url(g->server, "/api/");
        rig_open_at(g, base);
        free(base);
}

static void rig_free(struct rig *g)
{
        sl_api_free(slack.api);
        call_rig_free(g);
        secret_free(slack.bot_token);
        secret_free(slack.app_token);
}

static void on_answer(void *arg, const struct sl_answer *a)
{
        answered(arg,
                 &(struct call_answer){ .ok = a->ok,
                                        .status = a->status,
                                        .reach = a->reach,
                                        .kind = a->kind,
                                        .retry_after_ms = a->retry_after_ms },
                 a->why);
        slack.unavailable = sl_api_is_unavailable(a);
        slack.has_result = a->result;
        snprintf(slack.error, sizeof(slack.error), "%s", a->error ? a->error : "");
        snprintf(slack.scopes, sizeof(slack.scopes), "%s", a->scopes ? a->scopes : "");
        snprintf(slack.ts, sizeof(slack.ts), "%s", json_str(a->result, "ts", ""));
}

static struct sl_call *ask(struct rig *g, char letter, struct sl_request q)
{
        return sl_api_call(slack.api, &q, on_answer, named(g, letter));
}

static struct sl_request to(const char *method)
{
        return (struct sl_request){ .method = method, .priority = SL_NORMAL };
}

/* ---- requests ---- */

static void arguments_are_json_where_the_method_takes_it(void **state)
{
        struct rig *g = rig_new();
        struct sl_request q = to("chat.postMessage");
        json_t *args = json_pack("{s:s, s:s, s:b}", "channel", "C1", "text", "a & b", "mrkdwn", 1);

        (void)state;
        says(g, 200, "", "{\"ok\":true,\"ts\":\"1.2\"}");
        rig_open(g);
        q.args = args;
        ask(g, 'a', q);
        json_decref(args);
        assert_int_equal(g->answers, 0); /* not before the call has returned */
        until_answers(g, 1);
        assert_true(g->last.ok);
        assert_string_equal(slack.ts, "1.2");
        assert_string_equal(g->last.why, "");
        assert_true(asked_for(g, 0, "POST /api/chat.postMessage HTTP"));
        assert_true(asked_for(g, 0, "Authorization: Bearer " BOT_TOKEN "\r\n"));
        assert_true(asked_for(g, 0, "Content-Type: application/json; charset=utf-8\r\n"));
        assert_true(asked_for(g, 0, "{\"channel\":\"C1\",\"text\":\"a & b\",\"mrkdwn\":true}"));
        rig_free(g);
}

static void arguments_are_a_form_for_methods_that_read(void **state)
{
        struct rig *g = rig_new();
        struct sl_request q = to("conversations.history");
        json_t *args = json_pack("{s:s, s:i, s:b, s:n, s:[s]}", "channel", "C1", "limit", 15,
                                 "inclusive", 1, "cursor", "types", "a b");

        (void)state;
        says(g, 200, "", "{\"ok\":true}");
        rig_open(g);
        q.args = args;
        ask(g, 'a', q);
        json_decref(args);
        until_answers(g, 1);
        assert_true(asked_for(g, 0, "Content-Type: application/x-www-form-urlencoded\r\n"));
        assert_true(asked_for(
                g, 0, "\r\n\r\nchannel=C1&limit=15&inclusive=true&types=%5B%22a%20b%22%5D"));
        rig_free(g);
}

static void opening_a_connection_uses_the_app_level_token(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 200, "", "{\"ok\":true,\"url\":\"wss://x\"}");
        rig_open(g);
        ask(g, 'a', to("apps.connections.open"));
        until_answers(g, 1);
        assert_true(asked_for(g, 0, "Authorization: Bearer " APP_TOKEN "\r\n"));
        assert_false(asked_for(g, 0, BOT_TOKEN));
        rig_free(g);
}

static void a_call_without_its_token_or_row_is_not_tried(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        secret_free(slack.app_token);
        slack.app_token = NULL;
        rig_open(g);
        ask(g, 'a', to("apps.connections.open"));
        until_answers(g, 1);
        assert_int_equal(g->last.kind, ERR_REFUSED);
        assert_string_equal(g->last.why, "there is no app-level token (xapp-...)");
        ask(g, 'b', to("chat.sing"));
        until_answers(g, 2);
        assert_int_equal(g->last.kind, ERR_INVALID);
        assert_int_equal(g->last.reach, HTTP_NOT_SENT);
        assert_int_equal(fake_server_requests(g->server), 0);
        rig_free(g);
}

/* ---- posts to addresses that Slack gave ---- */

static void posts_have_no_token(void **state)
{
        struct rig *g = rig_new();
        char *dir = scratch_new(), *path = scratch_path(dir, "a.txt");
        json_t *json = json_pack("{s:s}", "text", "done");
        struct http_file file = { -1, 9 };
        char *url;

        (void)state;
        scratch_put(dir, "a.txt", "the bytes");
        file.fd = open(path, O_RDONLY | O_CLOEXEC);
        says(g, 200, "", "ok");
        says(g, 200, "", "OK - 9");
        says(g, 404, "", "{\"ok\":false,\"error\":\"used_url\"}");
        rig_open(g);
        url = fake_server_url(g->server, "/commands/T1/secret");
        sl_api_post(slack.api, &(struct sl_post){ .url = url, .json = json }, on_answer,
                    named(g, 'a'));
        until_answers(g, 1);
        assert_true(g->last.ok);
        sl_api_post(slack.api, &(struct sl_post){ .url = url, .file = &file }, on_answer,
                    named(g, 'b'));
        close(file.fd); /* the call has its own */
        until_answers(g, 2);
        assert_true(g->last.ok);
        sl_api_post(slack.api, &(struct sl_post){ .url = url, .json = json }, on_answer,
                    named(g, 'c'));
        until_answers(g, 3);
        assert_false(g->last.ok);
        assert_string_equal(slack.error, "used_url");
        assert_true(asked_for(g, 0, "POST /commands/T1/secret HTTP"));
        assert_true(asked_for(g, 0, "{\"text\":\"done\"}"));
        assert_true(asked_for(g, 1, "the bytes"));
        for (unsigned i = 0; i < 3; i++)
                assert_false(asked_for(g, i, "Authorization"));
        rig_free(g);
        json_decref(json);
        free(url);
        free(path);
        scratch_free(dir);
}

static void nothing_is_posted_to_other_hosts(void **state)
{
        static const char *const others[] = { "https://evil.example/files.slack.com",
                                              "http://files.slack.com/upload",
                                              "https://files.slack.com.evil.example/",
                                              "https://files.slack.com@evil.example/",
                                              "https://files.slack.com:8443/",
                                              "http://127.0.0.1:1/api",
                                              "file:///etc/passwd",
                                              "" };
        struct rig *g = rig_new();

        (void)state;
        rig_open_at(g, "https://slack.com/api");
        for (unsigned i = 0; i < COUNT(others); i++) {
                assert_false(sl_api_owns_url(slack.api, others[i]));
                sl_api_post(slack.api, &(struct sl_post){ .url = others[i] }, on_answer,
                            named(g, 'a'));
                until_answers(g, i + 1);
                assert_int_equal(g->last.kind, ERR_INVALID);
                assert_int_equal(g->last.reach, HTTP_NOT_SENT);
        }
        assert_true(sl_api_owns_url(slack.api, "https://files.slack.com/upload/v1/x"));
        assert_true(sl_api_owns_url(slack.api, "https://hooks.slack.com/actions/T1/2/3"));
        assert_true(sl_api_owns_url(slack.api, "https://slack.com/x"));
        rig_free(g);
}

/* ---- failures ---- */

static void ok_false_is_a_failure_with_advice(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 200, "", "{\"ok\":false,\"error\":\"not_in_channel\"}");
        says(g, 200, "",
             "{\"ok\":false,\"error\":\"invalid_arguments\",\"response_metadata\":{\"messages\":"
             "[\"[ERROR] missing required field: channel\"]}}");
        rig_open(g);
        ask(g, 'a', to("chat.postMessage"));
        until_answers(g, 1);
        assert_false(g->last.ok);
        assert_false(slack.unavailable);
        assert_int_equal(g->last.status, 200);
        assert_int_equal(g->last.kind, ERR_NONE);
        assert_string_equal(slack.error, "not_in_channel");
        assert_string_equal(g->last.why, "Slack says: not_in_channel: the app is not in the "
                                         "channel: /invite the app there");
        ask(g, 'b', to("chat.postMessage"));
        until_answers(g, 2);
        assert_string_equal(g->last.why, "Slack says: invalid_arguments: [ERROR] missing required "
                                         "field: channel");
        rig_free(g);
}

static void errors_of_slack_itself_pass(void **state)
{
        static const char *const passing[] = { "internal_error", "fatal_error",
                                               "service_unavailable", "request_timeout" };
        struct rig *g = rig_new();

        (void)state;
        for (unsigned i = 0; i < COUNT(passing); i++) {
                char body[80];

                snprintf(body, sizeof(body), "{\"ok\":false,\"error\":\"%s\"}", passing[i]);
                says(g, 200, "", body);
        }
        says(g, 503, "", "{\"ok\":false,\"error\":\"unknown\"}");
        rig_open(g);
        for (unsigned i = 0; i <= COUNT(passing); i++) {
                ask(g, 'a', to("chat.postMessage"));
                until_answers(g, i + 1);
                assert_false(g->last.ok);
                assert_true(slack.unavailable);
                assert_int_equal(g->last.reach, HTTP_ANSWERED);
        }
        rig_free(g);
}

static void a_web_page_is_no_answer(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 200, "Content-Type: text/html\r\n", "\n<!DOCTYPE html><title>Login</title>");
        says(g, 502, "Content-Type: text/html\r\n", "<html>Bad Gateway</html>");
        says(g, 200, "", "[1,2]");
        says(g, 200, "", "");
        says(g, 302, "Location: https://login.example/\r\n", "");
        rig_open(g);
        ask(g, 'a', to("chat.postMessage"));
        until_answers(g, 1);
        assert_false(g->last.ok);
        assert_false(slack.has_result);
        assert_true(slack.unavailable);
        assert_int_equal(g->last.kind, ERR_PROTOCOL);
        assert_int_equal(g->last.reach, HTTP_ANSWERED);
        assert_string_equal(g->last.why, "Slack answered 200 with a web page instead of JSON: is "
                                         "apiBase right, or a proxy in between?");
        ask(g, 'b', to("chat.postMessage"));
        until_answers(g, 2);
        assert_string_equal(g->last.why, "Slack answered 502 with a web page instead of JSON");
        for (unsigned i = 3; i <= 5; i++) {
                ask(g, 'c', to("chat.postMessage"));
                until_answers(g, i);
                assert_false(g->last.ok);
                assert_true(slack.unavailable);
                assert_int_equal(g->last.kind, ERR_PROTOCOL);
        }
        rig_free(g);
}

static void cuts_before_and_after_sending_differ(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        g->script[g->count++] = (struct fake_answer){ .bytes = NULL, .end = FAKE_RESET };
        g->script[g->count++] = (struct fake_answer){
                .bytes = "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\n{\"ok\":tr",
                .end = FAKE_CLOSE
        };
        rig_open(g);
        ask(g, 'a', to("chat.postMessage"));
        until_answers(g, 1);
        assert_int_equal(g->last.status, 0);
        assert_int_equal(g->last.reach, HTTP_UNSURE);
        assert_true(slack.unavailable);
        ask(g, 'b', to("chat.postMessage"));
        until_answers(g, 2);
        assert_false(g->last.ok);
        assert_int_equal(g->last.status, 200);
        assert_true(slack.unavailable);
        assert_non_null(strstr(g->last.why, "Slack's answer broke off"));
        rig_free(g);

        g = rig_new();
        rig_open_at(g, "http://127.0.0.1:1/api");
        ask(g, 'a', to("chat.postMessage"));
        until_answers(g, 1);
        assert_int_equal(g->last.reach, HTTP_NOT_SENT);
        assert_non_null(strstr(g->last.why, "Slack could not be reached: "));
        rig_free(g);
}

static void a_silent_server_ends_the_call_unsure(void **state)
{
        struct rig *g = rig_new();
        struct sl_request q = to("chat.postMessage");

        (void)state;
        rig_open(g); /* its script is empty: no answer */
        q.total_ms = 50;
        ask(g, 'a', q);
        until_answers(g, 1);
        assert_int_equal(g->last.status, 0);
        assert_int_equal(g->last.reach, HTTP_UNSURE);
        assert_int_equal(g->last.kind, ERR_TIMEOUT);
        assert_true(slack.unavailable);
        rig_free(g);
}

/* {"ok":true,"ts":"7","pad":"xxx..."} */
static char *padded(size_t n)
{
        static const char head[] = "{\"ok\":true,\"ts\":\"7\",\"pad\":\"";
        char *text = mem_alloc(sizeof(head) + n + 3);

        memcpy(text, head, sizeof(head) - 1);
        memset(text + sizeof(head) - 1, 'x', n);
        memcpy(text + sizeof(head) - 1 + n, "\"}", 3);
        return text;
}

static void large_answers_are_read_and_huge_ones_are_not(void **state)
{
        struct rig *g = rig_new();
        char *large = padded(600 * 1024), *huge = padded((size_t)9 << 20);

        (void)state;
        says(g, 200, "", large);
        says(g, 200, "", large);
        says(g, 200, "", huge);
        rig_open(g);
        ask(g, 'a', to("conversations.history"));
        until_answers(g, 1);
        assert_true(g->last.ok);
        assert_string_equal(slack.ts, "7");
        /* aborted at whichever point it has reached */
        sl_api_abort(ask(g, 'b', to("conversations.history")));
        assert_int_equal(g->answers, 1);
        ask(g, 'c', to("conversations.history"));
        until_answers(g, 2);
        if (g->last.ok) { /* the aborted one was not sent: this has got its answer */
                ask(g, 'd', to("conversations.history"));
                until_answers(g, 3);
        }
        assert_false(g->last.ok);
        assert_int_equal(g->last.kind, ERR_PROTOCOL); /* not as one that was not tried */
        assert_int_equal(g->last.reach, HTTP_ANSWERED);
        assert_string_equal(g->last.why, "Slack's answer (status 200) is too large");
        rig_free(g);
        free(large);
        free(huge);
}

/* ---- limits ---- */

static void retry_after_closes_one_method_only(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 429, "Retry-After: 0.2\r\n", "{\"ok\":false,\"error\":\"ratelimited\"}");
        says(g, 200, "", "{\"ok\":true}");
        says(g, 200, "", "{\"ok\":true}");
        says(g, 200, "", "{\"ok\":true}");
        rig_open(g);
        ask(g, 'a', to("chat.postMessage"));
        for (int i = 0; i < 100000 && sl_api_limited(slack.api) == 0; i++)
                loop_step(g->loop, true);
        ask(g, 'b', to("chat.postMessage"));
        ask(g, 'c', to("chat.update"));
        until_answers(g, 1);
        assert_string_equal(g->order, "c");
        until_answers(g, 3);
        assert_string_equal(g->order, "cab"); /* the refused one goes first */
        assert_true(g->last.ok);
        assert_int_equal(sl_api_limited(slack.api), 1);
        assert_int_equal(fake_server_requests(g->server), 4);
        rig_free(g);
}

static void a_long_retry_after_is_answered_at_once(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 429, "Retry-After: 30\r\n", "");
        says(g, 200, "", "{\"ok\":true}");
        rig_open(g);
        ask(g, 'a', to("chat.postMessage"));
        until_answers(g, 1);
        assert_int_equal(g->last.status, 429);
        assert_int_equal(g->last.retry_after_ms, 30000);
        assert_true(slack.unavailable);
        assert_string_equal(g->last.why, "Slack's rate limit of chat.postMessage is reached");
        ask(g, 'b', to("chat.postMessage"));
        until_answers(g, 2);
        assert_int_equal(g->last.status, 0); /* not tried */
        assert_int_equal(g->last.kind, ERR_LIMIT);
        assert_in_range(g->last.retry_after_ms, 20000, 30000);
        ask(g, 'c', to("chat.delete"));
        until_answers(g, 3);
        assert_true(g->last.ok);
        rig_free(g);
}

static void ratelimited_with_status_200_counts_as_429(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 200, "Retry-After: 30\r\n", "{\"ok\":false,\"error\":\"ratelimited\"}");
        rig_open(g);
        ask(g, 'a', to("users.info"));
        until_answers(g, 1);
        assert_int_equal(g->last.status, 429);
        assert_int_equal(g->last.retry_after_ms, 30000);
        rig_free(g);
}

static void without_retry_after_the_wait_doubles(void **state)
{
        struct sl_rate_limits l;
        struct sl_lane *lane;
        int64_t now = 1000;

        (void)state;
        sl_rate_limits_init(&l, true);
        lane = sl_rate_limits_lane(&l, sl_method_find("chat.postMessage"));
        for (int64_t ms = 1000; ms <= 32000; ms *= 2) {
                assert_int_equal(sl_rate_limit_take(lane, false, now), 0);
                assert_int_equal(sl_rate_limit_close(lane, -1, now), ms);
                assert_int_equal(sl_rate_limit_take(lane, false, now), ms);
                now += ms;
        }
        assert_int_equal(sl_rate_limit_close(lane, 0, now), 60000);
        assert_int_equal(sl_rate_limit_close(lane, 5000, now), 5000); /* what Slack says counts */
        sl_rate_limits_release(&l);
}

/* However calls are spread, no minute has more than the tier's. */
static void no_minute_has_more_calls_than_the_tier(void **state)
{
        static const struct {
                const char *method;
                int tier;
        } rows[] = { { "users.list", 20 }, { "conversations.history", 50 }, { "users.info", 100 } };

        (void)state;
        for (unsigned r = 0; r < COUNT(rows); r++) {
                struct sl_rate_limits l;
                struct sl_lane *lane;
                int64_t sent[1000];
                int n = 0;

                sl_rate_limits_init(&l, true);
                lane = sl_rate_limits_lane(&l, sl_method_find(rows[r].method));
                for (int64_t now = 0; now < 300000 && n < 1000; now += 50) {
                        while (n < 1000 && sl_rate_limit_take(lane, false, now) == 0)
                                sent[n++] = now;
                }
                assert_true(n > rows[r].tier * 3); /* and most of it is used */
                for (int i = rows[r].tier; i < n; i++)
                        assert_true(sent[i] - sent[i - rows[r].tier] >= 60000);
                sl_rate_limits_release(&l);
        }
}

static void without_a_pace_only_429s_count(void **state)
{
        struct sl_rate_limits l;
        struct sl_lane *lane;

        (void)state;
        sl_rate_limits_init(&l, false);
        lane = sl_rate_limits_lane(&l, sl_method_find("users.list"));
        for (int i = 0; i < 1000; i++)
                assert_int_equal(sl_rate_limit_take(lane, i % 2, 0), 0);
        sl_rate_limit_close(lane, 7000, 0);
        assert_int_equal(sl_rate_limit_take(lane, false, 0), 7000);
        sl_rate_limits_release(&l);
}

static void methods_do_not_share_a_tier(void **state)
{
        struct sl_rate_limits l;
        struct sl_lane *info, *members;

        (void)state;
        sl_rate_limits_init(&l, true);
        info = sl_rate_limits_lane(&l, sl_method_find("users.info"));
        members = sl_rate_limits_lane(&l, sl_method_find("conversations.members"));
        while (sl_rate_limit_take(info, false, 0) == 0)
                ;
        assert_int_equal(sl_rate_limit_take(members, false, 0), 0);
        assert_ptr_equal(info, sl_rate_limits_lane(&l, sl_method_find("users.info")));
        sl_rate_limits_release(&l);
}

static void a_call_that_would_wait_too_long_is_refused(void **state)
{
        struct rig *g = rig_new();
        struct sl_request q = to("chat.startStream");

        (void)state;
        for (int i = 0; i < 5; i++) /* a quarter of the tier may go at once */
                says(g, 200, "", "{\"ok\":true}");
        rig_open(g);
        q.wait_ms = 10;
        for (int i = 0; i < 6; i++)
                ask(g, 'a', q);
        until_answers(g, 6);
        assert_int_equal(fake_server_requests(g->server), 5);
        rig_free(g);
}

static void urgent_calls_go_before_idle_ones(void **state)
{
        struct rig *g = rig_new();
        struct sl_request q = to("chat.update");

        (void)state;
        says(g, 429, "Retry-After: 0.1\r\n", "");
        for (int i = 0; i < 4; i++)
                says(g, 200, "", "{\"ok\":true}");
        rig_open(g);
        ask(g, 'a', q);
        for (int i = 0; i < 100000 && sl_api_limited(slack.api) == 0; i++)
                loop_step(g->loop, true);
        q.priority = SL_IDLE;
        ask(g, 'i', q);
        q.priority = SL_URGENT;
        ask(g, 'u', q);
        until_answers(g, 3);
        assert_string_equal(g->order, "uai");
        rig_free(g);
}

static void too_many_waiting_calls_are_refused(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        rig_open(g); /* nothing is answered */
        for (unsigned i = 0; i < SL_WAITING_MAX + CALL_FLYING_MAX; i++)
                ask(g, 'a', to("chat.postMessage"));
        for (int i = 0; i < 5; i++)
                loop_step(g->loop, false);
        assert_int_equal(g->answers, 0);
        ask(g, 'b', to("chat.postMessage"));
        until_answers(g, 1);
        assert_string_equal(g->order, "b");
        assert_int_equal(g->last.kind, ERR_LIMIT);
        rig_free(g);
}

/* ---- tokens and scopes ---- */

static void a_revoked_token_ends_all_calls_once(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 429, "Retry-After: 5\r\n", "");
        says(g, 200, "", "{\"ok\":false,\"error\":\"token_revoked\"}");
        says(g, 200, "", "{\"ok\":false,\"error\":\"token_revoked\"}");
        rig_open(g);
        ask(g, 'w', to("chat.postMessage")); /* waits for its method */
        for (int i = 0; i < 100000 && sl_api_limited(slack.api) == 0; i++)
                loop_step(g->loop, true);
        ask(g, 'a', to("auth.test"));
        ask(g, 'b', to("users.info"));
        until_answers(g, 3);
        assert_int_equal(g->unauthorized, 1);
        assert_non_null(strstr(slack.revoked, "token_revoked"));
        ask(g, 'c', to("chat.update"));
        until_answers(g, 4);
        assert_int_equal(g->last.kind, ERR_REFUSED);
        assert_int_equal(fake_server_requests(g->server), 3);
        assert_int_equal(g->unauthorized, 1);
        rig_free(g);
}

static void which_errors_mean_that_a_token_is_gone(void **state)
{
        static const char *const gone[] = {
                "account_inactive",      "invalid_auth",  "not_authed",
                "team_disabled",         "token_revoked", "token_expired",
                "user_removed_from_team"
        };

        (void)state;
        for (unsigned i = 0; i < COUNT(gone); i++) {
                assert_true(sl_api_is_revoked(gone[i]));
                assert_non_null(sl_error_advice(gone[i]));
        }
        assert_false(sl_api_is_revoked("missing_scope"));
        assert_false(sl_api_is_revoked("internal_error"));
        assert_false(sl_api_is_revoked(NULL));
}

static void what_to_do_about_a_token_fits_the_status(void **state)
{
        const struct sl_method *bot = sl_method_find("auth.test"),
                               *app = sl_method_find("apps.connections.open");
        char why[200];

        (void)state;
        sl_error_token_text("a-name-that-is-as-long-as-names-can-be", bot, "invalid_auth", why,
                            sizeof(why));
        assert_non_null(strstr(why, "botToken or SLACK_BOT_TOKEN"));
        sl_error_token_text("a-name-that-is-as-long-as-names-can-be", bot, "user_removed_from_team",
                            why, sizeof(why));
        assert_non_null(strstr(why, "botToken or SLACK_BOT_TOKEN"));
        sl_error_token_text("work", app, "invalid_auth", why, sizeof(why));
        assert_string_equal(why, "Slack does not accept the app-level token (invalid_auth): make "
                                 "one with connections:write and put it into "
                                 "adapters.work.appToken or SLACK_APP_TOKEN");
}

static void a_missing_scope_is_named_with_the_line_that_adds_it(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 200, "",
             "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"reactions:write\","
             "\"provided\":\"chat:write\"}");
        says(g, 200, "",
             "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"channels:history,"
             "groups:history\"}");
        says(g, 200, "", "{\"ok\":false,\"error\":\"missing_scope\"}");
        says(g, 200, "", "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"<b>x\"}");
        says(g, 200, "", "{\"ok\":false,\"error\":\"missing_scope\"}");
        says(g, 200, "X-OAuth-Scopes: chat:write,users:read\r\n", "{\"ok\":true}");
        rig_open(g);
        ask(g, 'a', to("reactions.add"));
        until_answers(g, 1);
        assert_string_equal(g->last.why,
                            "the app lacks a scope: add \"reactions:write\" to "
                            "oauth_config.scopes.bot of its manifest and reinstall it");
        assert_int_equal(slack.lacked, 1);
        assert_string_equal(slack.lacking, g->last.why);
        ask(g, 'b', to("conversations.history"));
        until_answers(g, 2);
        assert_string_equal(g->last.why, "the app lacks one of the scopes "
                                         "channels:history,groups:history: add it to "
                                         "oauth_config.scopes.bot of its manifest and reinstall "
                                         "it");
        ask(g, 'c', to("users.info")); /* our table knows it */
        until_answers(g, 3);
        assert_non_null(strstr(g->last.why, "add \"users:read\" to"));
        ask(g, 'd', to("files.info"));
        until_answers(g, 4);
        assert_non_null(strstr(g->last.why, "add \"files:read\" to"));
        ask(g, 'e', to("apps.connections.open"));
        until_answers(g, 5);
        assert_string_equal(g->last.why,
                            "the app-level token lacks the scope connections:write: make a new one "
                            "with it (Basic Information, App-Level Tokens)");
        assert_int_equal(slack.works, 0);
        ask(g, 'f', to("reactions.add"));
        until_answers(g, 6);
        assert_int_equal(slack.works, 1);
        assert_string_equal(slack.scopes, "chat:write,users:read");
        rig_free(g);
}

static void scopes_that_the_token_lacks_are_listed(void **state)
{
        static const char all[] = "app_mentions:read,channels:history,channels:read,chat:write,"
                                  "files:read,files:write,groups:history,groups:read,im:history,"
                                  "im:read,im:write,mpim:history,mpim:read,reactions:read,"
                                  "reactions:write,users:read";
        char out[200];

        (void)state;
        assert_false(sl_error_lacking(all, out, sizeof(out)));
        assert_true(sl_error_lacking(strchr(all, ',') + 1, out, sizeof(out)));
        assert_string_equal(out, "the app lacks scopes: add \"app_mentions:read\" to "
                                 "oauth_config.scopes.bot of its manifest and reinstall it");
        /* mpim:read does not contain im:read */
        assert_true(sl_error_lacking("app_mentions:read,channels:history,channels:read,chat:write,"
                                     "files:read,files:write,groups:history,groups:read,"
                                     "mpim:history,mpim:read,im:write,reactions:read,"
                                     "reactions:write,users:read",
                                     out, sizeof(out)));
        assert_non_null(strstr(out, "\"im:history\", \"im:read\" to"));
        assert_true(sl_error_lacking("", out, sizeof(out))); /* all of them do not fit */
        assert_non_null(strstr(out, " more to oauth_config.scopes.bot of its manifest and "
                                    "reinstall it"));
}

/* ---- the end ---- */

static void cancelled_asks_are_answered_or_dropped(void **state)
{
        struct rig *g = rig_new();
        struct sl_request kept = to("users.info"), dropped = to("users.info");

        (void)state;
        rig_open(g); /* nothing is answered */
        dropped.drop_on_cancel = true;
        sl_api_ask(slack.api, &kept, on_answer, named(g, 'a'));
        sl_api_ask(slack.api, &dropped, on_answer, named(g, 'b'));
        sl_api_ask(slack.api, &kept, NULL, NULL);
        assert_true(sl_api_begun(ask(g, 'c', kept))); /* has a handle: not cancelled */
        sl_api_cancel(slack.api);
        assert_int_equal(g->answers, 1);
        assert_string_equal(g->order, "a");
        assert_int_equal(g->last.kind, ERR_CANCELLED);
        rig_free(g); /* no answer follows */
}

static void slacks_clock_is_that_of_its_answers(void **state)
{
        struct rig *g = rig_new();

        (void)state;
        says(g, 200, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "{\"ok\":true}");
        rig_open(g);
        ask(g, 'a', to("auth.test"));
        until_answers(g, 1);
        assert_in_range(sl_api_now_ms(slack.api) / 1000, 784111777, 784111777 + 600);
        rig_free(g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(arguments_are_json_where_the_method_takes_it),
                cmocka_unit_test(arguments_are_a_form_for_methods_that_read),
                cmocka_unit_test(opening_a_connection_uses_the_app_level_token),
                cmocka_unit_test(a_call_without_its_token_or_row_is_not_tried),
                cmocka_unit_test(posts_have_no_token),
                cmocka_unit_test(nothing_is_posted_to_other_hosts),
                cmocka_unit_test(ok_false_is_a_failure_with_advice),
                cmocka_unit_test(errors_of_slack_itself_pass),
                cmocka_unit_test(a_web_page_is_no_answer),
                cmocka_unit_test(cuts_before_and_after_sending_differ),
                cmocka_unit_test(a_silent_server_ends_the_call_unsure),
                cmocka_unit_test(large_answers_are_read_and_huge_ones_are_not),
                cmocka_unit_test(retry_after_closes_one_method_only),
                cmocka_unit_test(a_long_retry_after_is_answered_at_once),
                cmocka_unit_test(ratelimited_with_status_200_counts_as_429),
                cmocka_unit_test(without_retry_after_the_wait_doubles),
                cmocka_unit_test(no_minute_has_more_calls_than_the_tier),
                cmocka_unit_test(without_a_pace_only_429s_count),
                cmocka_unit_test(methods_do_not_share_a_tier),
                cmocka_unit_test(a_call_that_would_wait_too_long_is_refused),
                cmocka_unit_test(urgent_calls_go_before_idle_ones),
                cmocka_unit_test(too_many_waiting_calls_are_refused),
                cmocka_unit_test(a_revoked_token_ends_all_calls_once),
                cmocka_unit_test(which_errors_mean_that_a_token_is_gone),
                cmocka_unit_test(what_to_do_about_a_token_fits_the_status),
                cmocka_unit_test(a_missing_scope_is_named_with_the_line_that_adds_it),
                cmocka_unit_test(scopes_that_the_token_lacks_are_listed),
                cmocka_unit_test(cancelled_asks_are_answered_or_dropped),
                cmocka_unit_test(slacks_clock_is_that_of_its_answers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
