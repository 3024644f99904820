/*
 * The Events API of the simulated Slack: posts to an app's request URL, their signatures, retries
 * and forms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "../lib/fake_server.h"
#include "../lib/sim_sl.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"

#define OK(body)          "HTTP/1.1 200 OK\r\nContent-Length: " body
#define NOTHING           OK("0\r\n\r\n")
#define ERROR_500(header) "HTTP/1.1 500 No\r\n" header "Content-Length: 0\r\n\r\n"

/* Enters the URL of s, which must answer the challenge first. */
static void enter_url(struct sim_rig *r, const struct fake_server *s)
{
        char *url = fake_server_url(s, "/events"), *request = mem_printf("{\"url\":\"%s\"}", url);

        sim_rig_control_ok(r, "endpoint", request);
        free(request);
        free(url);
}

static const char *await_request(struct sim_rig *r, const struct fake_server *s, unsigned i)
{
        while (!fake_server_request(s, i))
                assert_true(loop_step(r->loop, true));
        return fake_server_request(s, i);
}

/* The value of a header, in room; "" without one. */
static const char *header_of(const char *request, const char *name, char room[128])
{
        const char *at = strcasestr(request, name);

        room[0] = '\0';
        if (at && at < strstr(request, "\r\n\r\n"))
                snprintf(room, 128, "%.*s", (int)strcspn(at + strlen(name) + 2, "\r"),
                         at + strlen(name) + 2);
        return room;
}

static const char *body_of(const char *request)
{
        return strstr(request, "\r\n\r\n") + 4;
}

static void assert_signed(struct sim_rig *r, const char *request)
{
        const char *secret = sim_sl_world(r)->apps->signing_secret;
        unsigned char mac[SHA256_SIZE];
        char hex[SHA256_HEX_SIZE], room[128], *base, *wanted;

        base = mem_printf("v0:%s:%s", header_of(request, "X-Slack-Request-Timestamp", room),
                          body_of(request));
        crypto_hmac_sha256(secret, strlen(secret), base, strlen(base), mac);
        wanted = mem_printf("v0=%s", crypto_hex(mac, sizeof(mac), hex));
        assert_string_equal(header_of(request, "X-Slack-Signature", room), wanted);
        free(wanted);
        free(base);
}

static void say(struct sim_rig *r, const char *text)
{
        char *request = mem_printf("{\"channel\":\"general\",\"text\":\"%s\"}", text);

        sim_rig_control_ok(r, "send", request);
        free(request);
}

/* ---- tests ---- */

static void a_url_is_verified_before_events_come(void **state)
{
        static const struct fake_answer script[] = { { .bytes = OK("5\r\n\r\nwrong") },
                                                     { .bytes = NOTHING } };
        struct sim_rig *r = *state;
        struct fake_server *s = fake_server_new(r->loop, script, COUNT(script));
        json_t *entry, *body;
        int64_t seen = 0;

        enter_url(r, s);
        assert_signed(r, await_request(r, s, 0));
        body = json_read(body_of(fake_server_request(s, 0)),
                         strlen(body_of(fake_server_request(s, 0))), NULL);
        assert_string_equal(json_str(body, "type", ""), "url_verification");
        assert_non_null(json_str(body, "challenge", NULL));
        json_decref(body);
        entry = sim_sl_entry(r, "verified", &seen);
        assert_false(json_flag(entry, "good", true));
        json_decref(entry);
        say(r, "hello");
        assert_signed(r, await_request(r, s, 1));
        assert_non_null(strstr(fake_server_request(s, 1), "\"type\":\"event_callback\""));
        fake_server_free(s);
}

static void a_failed_post_is_repeated_with_its_reason(void **state)
{
        static const struct fake_answer script[] = { { .bytes = NOTHING },
                                                     { .bytes = ERROR_500("") },
                                                     { .bytes = "HTTP/1.1 302 There\r\nLocation: "
                                                                "/x\r\nContent-Length: 0\r\n\r\n" },
                                                     { .bytes = NOTHING } };
        static const char *const reasons[] = { "", "http_error", "too_many_redirects" };
        struct sim_rig *r = *state;
        struct fake_server *s = fake_server_new(r->loop, script, COUNT(script));
        char room[128], number[8];
        json_t *entry;
        int64_t seen = 0;

        sim_rig_control_ok(r, "settings", "{\"retry_2_ms\":1}");
        enter_url(r, s);
        await_request(r, s, 0);
        say(r, "hello");
        for (unsigned i = 0; i < COUNT(reasons); i++) {
                const char *request = await_request(r, s, i + 1);

                snprintf(number, sizeof(number), "%u", i);
                assert_string_equal(header_of(request, "X-Slack-Retry-Num", room), i ? number : "");
                assert_string_equal(header_of(request, "X-Slack-Retry-Reason", room), reasons[i]);
        }
        entry = sim_sl_entry(r, "ack", &seen);
        assert_int_equal(json_int(entry, "attempt", 0), 2);
        json_decref(entry);
        fake_server_free(s);
}

static void an_app_may_refuse_retries(void **state)
{
        static const struct fake_answer script[] = {
                { .bytes = NOTHING }, { .bytes = ERROR_500("X-Slack-No-Retry: 1\r\n") }
        };
        struct sim_rig *r = *state;
        struct fake_server *s = fake_server_new(r->loop, script, COUNT(script));
        json_t *entry;
        int64_t seen = 0;

        enter_url(r, s);
        await_request(r, s, 0);
        say(r, "hello");
        entry = sim_sl_entry(r, "dropped", &seen);
        assert_int_equal(json_int(entry, "attempt", -1), 0);
        json_decref(entry);
        fake_server_free(s);
}

static void posts_of_one_conversation_go_one_after_the_other(void **state)
{
        static const struct fake_answer script[] = { { .bytes = NOTHING } };
        static const struct fake_answer late = { .bytes = NOTHING };
        struct sim_rig *r = *state;
        struct fake_server *s = fake_server_new(r->loop, script, COUNT(script));

        enter_url(r, s);
        await_request(r, s, 0);
        say(r, "one");
        say(r, "two");
        assert_non_null(strstr(await_request(r, s, 1), "\"one\""));
        for (int i = 0; i < 20; i++)
                loop_step(r->loop, false);
        assert_null(fake_server_request(s, 2));
        fake_server_answer(s, &late);
        assert_non_null(strstr(await_request(r, s, 2), "\"two\""));
        fake_server_free(s);
}

static void commands_and_buttons_are_forms(void **state)
{
        static const struct fake_answer script[] = { { .bytes = NOTHING },
                                                     { .bytes = OK("7\r\n\r\nbecause") },
                                                     { .bytes = NOTHING } };
        struct sim_rig *r = *state;
        struct slack_world *w = sim_sl_world(r);
        struct fake_server *s = fake_server_new(r->loop, script, COUNT(script));
        struct slack_message *m =
                sl_message_new(sl_channel_find(w, SL_GENERAL), w->apps->user, "choose");
        const char *request;
        char room[128], *press = mem_printf("{\"message_id\":\"%s\",\"text\":\"Yes\"}", m->ts);
        json_t *page;

        m->app = w->apps;
        m->blocks = json_pack("[{s:s,s:[{s:s,s:s,s:s,s:{s:s,s:s}}]}]", "type", "actions",
                              "elements", "type", "button", "action_id", "yes", "value", "1",
                              "text", "type", "plain_text", "text", "Yes");
        sl_message_post(w, m);
        enter_url(r, s);
        await_request(r, s, 0);
        sim_rig_control_ok(r, "command", "{\"name\":\"ask\",\"text\":\"why not\"}");
        request = await_request(r, s, 1);
        assert_signed(r, request);
        assert_string_equal(header_of(request, "Content-Type", room),
                            "application/x-www-form-urlencoded");
        assert_non_null(strstr(body_of(request), "command=%2Fask&text=why%20not"));
        page = sim_rig_control(r, "messages?kind=ephemeral&wait=60000", NULL);
        assert_string_equal(json_str(json_array_get(json_object_get(page, "items"), 0), "text", ""),
                            "because");
        json_decref(page);
        sim_rig_control_ok(r, "press", press);
        request = await_request(r, s, 2);
        assert_signed(r, request);
        assert_int_equal(strncmp(body_of(request), "payload=%7B%22type%22", 20), 0);
        free(press);
        fake_server_free(s);
}

static void forged_posts_differ_where_they_should(void **state)
{
        static const struct fake_answer script[] = {
                { .bytes = NOTHING },
                { .bytes = "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n" },
        };
        struct sim_rig *r = *state;
        struct fake_server *s = fake_server_new(r->loop, script, COUNT(script));
        char room[128];
        json_t *entry;
        int64_t seen = 0;

        enter_url(r, s);
        await_request(r, s, 0);
        sim_rig_control_ok(r, "gateway", "{\"action\":\"forge\",\"what\":\"unsigned\"}");
        assert_string_equal(header_of(await_request(r, s, 1), "X-Slack-Signature", room), "");
        entry = sim_sl_entry(r, "forged", &seen);
        assert_int_equal(json_int(entry, "status", 0), 401);
        json_decref(entry);
        fake_server_free(s);
}

static void a_url_that_always_fails_is_disabled(void **state)
{
        static const struct fake_answer script[] = { { .bytes = NOTHING },
                                                     { .bytes = ERROR_500("") },
                                                     { .bytes = ERROR_500("") },
                                                     { .bytes = ERROR_500("") } };
        struct sim_rig *r = *state;
        struct fake_server *s = fake_server_new(r->loop, script, COUNT(script));
        json_t *entry;
        int64_t seen = 0;

        sim_rig_control_ok(r, "settings",
                           "{\"disable_after\":3,\"retry_2_ms\":1,\"retry_3_ms\":1}");
        enter_url(r, s);
        await_request(r, s, 0);
        say(r, "hello");
        json_decref(sim_sl_entry(r, "disabled", &seen));
        entry = sim_sl_entry(r, "dropped", &seen);
        assert_string_equal(json_str(entry, "reason", ""), "disabled");
        json_decref(entry);
        assert_null(fake_server_request(s, 4));
        fake_server_free(s);
}

int main(void)
{
#define POST_TEST(name) cmocka_unit_test_setup_teardown(name, sim_sl_setup, sim_sl_teardown)
        const struct CMUnitTest tests[] = {
                POST_TEST(a_url_is_verified_before_events_come),
                POST_TEST(a_failed_post_is_repeated_with_its_reason),
                POST_TEST(an_app_may_refuse_retries),
                POST_TEST(posts_of_one_conversation_go_one_after_the_other),
                POST_TEST(commands_and_buttons_are_forms),
                POST_TEST(forged_posts_differ_where_they_should),
                POST_TEST(a_url_that_always_fails_is_disabled),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
