/* Slack's posts: signatures, url_verification, forms, retries, and answers after the commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "platform/slack/sl_webhook.h"

#define STEPS 200000
#define KEY   "8f742231b10e8888abcd99yyyzzz85a5"
#define FORM  "application/x-www-form-urlencoded"
#define EVENT "{\"type\":\"event_callback\",\"event_id\":\"Ev1\",\"event\":{\"type\":\"message\"}}"

struct rig {
        struct loop *loop;
        struct http_client *http;
        struct http_server *server;
        struct secret *secret;
        struct sl_webhook *webhook;
        struct sl_webhook_options o;
        /* the owner */
        bool keep, full, refuse;
        json_t *response, *payload;
        unsigned taken, admitted;
        enum sl_arrival kind;
        int retry;
        sl_stored_fn *stored;
        void *stored_arg;
        /* the answer */
        int status;
        char body[500];
        unsigned answers;
        char proof[60];
};

static void on_take(void *arg, enum sl_arrival kind, json_t *payload, int retry,
                    sl_stored_fn *stored, void *stored_arg)
{
        struct rig *g = arg;

        g->taken++;
        g->kind = kind;
        g->retry = retry;
        json_decref(g->payload);
        g->payload = json_incref(payload);
        if (g->keep) {
                g->stored = stored;
                g->stored_arg = stored_arg;
        } else {
                stored(stored_arg, !g->refuse, g->response);
        }
}

static bool on_is_full(void *arg)
{
        return ((struct rig *)arg)->full;
}

static void on_proved(void *arg, bool right)
{
        struct rig *g = arg;

        snprintf(g->proof + strlen(g->proof), sizeof(g->proof) - strlen(g->proof), "%s ",
                 right ? "right" : "wrong");
}

static bool gate(void *arg, struct http_exchange *x)
{
        struct rig *g = arg;
        bool ok = sl_webhook_admit(g->webhook, x);

        g->admitted += ok;
        return ok;
}

static void receive(struct http_exchange *x)
{
        struct rig *g = http_server_arg(x);

        sl_webhook_post(g->webhook, x);
}

static const struct http_route routes[] = { { "POST", "/events", receive } };

static int set_up(void **state)
{
        static const struct sl_webhook_handlers handlers = { .take = on_take,
                                                             .is_full = on_is_full,
                                                             .proved = on_proved };
        struct rig *g = mem_zalloc(sizeof(*g));
        struct error err = { 0 };

        g->loop = loop_new();
        g->http = http_client_new(g->loop, &(struct http_client_options){ 0 }, NULL);
        g->secret = secret_new(KEY, strlen(KEY));
        g->server = http_server_new(
                g->loop, &(struct http_server_options){ .listen = "127.0.0.1:0" }, routes,
                COUNT(routes), &(struct http_server_hooks){ .gate = gate }, g, &err);
        assert_non_null(g->server);
        g->webhook = sl_webhook_new(
                &(struct sl_webhook_options){
                        .loop = g->loop, .name = "slack", .secret = g->secret, .answer_ms = 150 },
                &handlers, g);
        *state = g;
        return 0;
}

static int tear_down(void **state)
{
        struct rig *g = *state;

        sl_webhook_free(g->webhook);
        if (g->stored)
                g->stored(g->stored_arg, true, NULL); /* a late receipt is ignored */
        http_client_free(g->http);
        http_server_free(g->server);
        loop_free(g->loop);
        secret_free(g->secret);
        json_decref(g->response);
        json_decref(g->payload);
        free(g);
        return 0;
}

static void on_done(void *arg, const struct http_result *r)
{
        struct rig *g = arg;

        g->answers++;
        g->status = r->status;
        snprintf(g->body, sizeof(g->body), "%s", r->body ? r->body : "");
}

/* "v0=..." of a body and a time; yours to free. */
static char *sign(const char *when, const char *body)
{
        unsigned char digest[SHA256_SIZE];
        char hex[SHA256_HEX_SIZE], *text = mem_printf("v0:%s:%s", when, body);

        crypto_hmac_sha256(KEY, strlen(KEY), text, strlen(text), digest);
        free(text);
        return mem_printf("v0=%s", crypto_hex(digest, sizeof(digest), hex));
}

struct post {
        const char *body, *type, *retry;
        const char *signature; /* instead of the right one */
        const char *when;      /* instead of now; signed as it is */
        int64_t ago;           /* seconds */
};

static void begin_post(struct rig *g, struct post p)
{
        static const struct http_handlers handlers = { .on_done = on_done };
        char now[32], *signature,
                *headers[5] = { 0 },
                *url = mem_printf("http://%s/events", http_server_address(g->server));

        snprintf(now, sizeof(now), "%lld", (long long)(clock_wall_ms() / 1000 - p.ago));
        if (!p.when)
                p.when = now;
        signature = sign(p.when, p.body);
        headers[0] = mem_printf("Content-Type: %s", p.type ? p.type : "application/json");
        headers[1] = mem_printf("X-Slack-Request-Timestamp: %s", p.when);
        headers[2] = mem_printf("X-Slack-Signature: %s", p.signature ? p.signature : signature);
        headers[3] = p.retry ? mem_printf("X-Slack-Retry-Num: %s", p.retry) : NULL;
        http_call_start(g->http,
                        &(struct http_request){ .url = url,
                                                .headers = (const char *const *)headers,
                                                .body = p.body,
                                                .body_n = strlen(p.body) },
                        &handlers, g);
        for (size_t i = 0; i < COUNT(headers); i++)
                free(headers[i]);
        free(signature);
        free(url);
}

static int post(struct rig *g, struct post p)
{
        unsigned before = g->answers;

        begin_post(g, p);
        for (int i = 0; i < STEPS && g->answers == before; i++)
                loop_step(g->loop, true);
        assert_int_equal(g->answers, before + 1);
        return g->status;
}

/* ---- tests ---- */

/* https://docs.slack.dev/authentication/verifying-requests-from-slack */
static void slacks_own_example_of_a_signature_is_accepted(void **state)
{
        static const char body[] =
                "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
                "&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
                "&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2F"
                "commands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id="
                "398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        static const char right[] =
                "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        char wrong[sizeof(right)];
        struct secret *secret = secret_new("8f742231b10e8888abcd99yyyzzz85a5", 32),
                      *other = secret_new("8f742231b10e8888abcd99yyyzzz85a6", 32);

        (void)state;
        assert_true(sl_webhook_is_signed(secret, "1531420618", right, body, sizeof(body) - 1));
        assert_false(sl_webhook_is_signed(other, "1531420618", right, body, sizeof(body) - 1));
        assert_false(sl_webhook_is_signed(secret, "1531420619", right, body, sizeof(body) - 1));
        assert_false(sl_webhook_is_signed(secret, "1531420618", right, body, sizeof(body) - 2));
        for (size_t i = 0; i < sizeof(right) - 1; i++) {
                memcpy(wrong, right, sizeof(right));
                wrong[i] = wrong[i] == '1' ? '2' : '1';
                assert_false(
                        sl_webhook_is_signed(secret, "1531420618", wrong, body, sizeof(body) - 1));
        }
        assert_false(sl_webhook_is_signed(secret, "1531420618", "v0=", body, sizeof(body) - 1));
        assert_false(sl_webhook_is_signed(secret, "1531420618", NULL, body, sizeof(body) - 1));
        assert_false(sl_webhook_is_signed(secret, NULL, right, body, sizeof(body) - 1));
        secret_free(secret);
        secret_free(other);
}

static void url_verification_returns_the_challenge(void **state)
{
        struct rig *g = *state;

        assert_int_equal(
                post(g, (struct post){ .body = "{\"type\":\"url_verification\",\"token\":\"x\","
                                               "\"challenge\":\"3eZbrw1aBm2rZ\"}" }),
                200);
        assert_string_equal(g->body, "{\"challenge\":\"3eZbrw1aBm2rZ\"}");
        assert_int_equal(g->taken, 0);
}

static void an_event_is_answered_only_after_the_commit(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        begin_post(g, (struct post){ .body = EVENT });
        for (int i = 0; i < STEPS && g->taken == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(g->kind, SL_EVENT);
        assert_int_equal(g->answers, 0);
        g->stored(g->stored_arg, true, NULL);
        g->stored = NULL;
        for (int i = 0; i < STEPS && g->answers == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(g->status, 200);
        assert_string_equal(g->body, "");
        assert_string_equal(json_str(g->payload, "event_id", ""), "Ev1");
}

static void what_is_not_stored_in_time_is_refused(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        assert_int_equal(post(g, (struct post){ .body = EVENT }), 503);
        g->stored(g->stored_arg, true, NULL); /* later; Slack's retry is recognised */
        g->stored = NULL;
        g->keep = false;
        assert_int_equal(post(g, (struct post){ .body = EVENT, .retry = "1" }), 200);
        assert_int_equal(g->retry, 1);
}

static void what_the_inbox_refuses_is_refused(void **state)
{
        struct rig *g = *state;

        g->refuse = true;
        assert_int_equal(post(g, (struct post){ .body = EVENT }), 503);
        g->refuse = false;
        g->full = true;
        assert_int_equal(post(g, (struct post){ .body = EVENT }), 503);
        assert_int_equal(g->taken, 1);
}

static void retries_are_told(void **state)
{
        static const struct {
                const char *header;
                int retry;
        } rows[] = { { NULL, 0 }, { "1", 1 }, { "3", 3 }, { "-1", 0 }, { "x", 0 }, { "99", 0 } };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                assert_int_equal(post(g, (struct post){ .body = EVENT, .retry = rows[i].header }),
                                 200);
                assert_int_equal(g->retry, rows[i].retry);
        }
}

static void a_wrong_signature_is_refused(void **state)
{
        struct rig *g = *state;

        assert_int_equal(
                post(g, (struct post){ .body = EVENT,
                                       .signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a1"
                                                    "0bd27519666489c69b503" }),
                401);
        assert_int_equal(g->admitted, 1); /* only the body could tell */
        assert_int_equal(post(g, (struct post){ .body = EVENT, .signature = "v0=12" }), 401);
        assert_int_equal(post(g, (struct post){ .body = EVENT, .signature = "v1=12" }), 401);
        assert_int_equal(g->admitted, 1);
        assert_int_equal(g->taken, 0);
        assert_string_equal(g->proof, "wrong ");
}

/* Forged posts say nothing about a secret that Slack's posts have proved. */
static void a_wrong_secret_is_reported_once(void **state)
{
        static const char forged[] =
                "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        struct rig *g = *state;

        assert_int_equal(post(g, (struct post){ .body = EVENT, .signature = forged }), 401);
        assert_int_equal(post(g, (struct post){ .body = EVENT, .signature = forged }), 401);
        assert_int_equal(post(g, (struct post){ .body = EVENT }), 200);
        assert_int_equal(post(g, (struct post){ .body = EVENT, .signature = forged }), 401);
        assert_int_equal(post(g, (struct post){ .body = EVENT }), 200);
        assert_string_equal(g->proof, "wrong right ");
}

static void a_recorded_post_is_refused_before_its_body_is_read(void **state)
{
        static const struct {
                int64_t ago;
                int status;
        } rows[] = { { 0, 200 }, { 240, 200 }, { -240, 200 }, { 310, 401 }, { -310, 401 } };
        static const char *const times[] = { "now", "-1", "17e8", "1700000000",
                                             "99999999999999999999" };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(rows); i++)
                assert_int_equal(post(g, (struct post){ .body = EVENT, .ago = rows[i].ago }),
                                 rows[i].status);
        for (size_t i = 0; i < COUNT(times); i++)
                assert_int_equal(post(g, (struct post){ .body = EVENT, .when = times[i] }), 401);
        assert_int_equal(g->admitted, 3);
        assert_int_equal(g->taken, 3);
}

static void a_slash_command_is_a_form_and_may_get_a_response(void **state)
{
        struct rig *g = *state;

        g->response = json_pack("{s:s, s:s}", "response_type", "ephemeral", "text", "ok");
        assert_int_equal(post(g, (struct post){ .type = FORM,
                                                .body = "command=%2Fdragoman&text=what+is+%C3%A4%3F"
                                                        "&user_id=U1&trigger_id=1.2&bad=%FF" }),
                         200);
        assert_int_equal(g->kind, SL_COMMAND);
        assert_string_equal(json_str(g->payload, "command", ""), "/dragoman");
        assert_string_equal(json_str(g->payload, "text", ""), "what is \xc3\xa4?");
        assert_string_equal(g->body, "{\"response_type\":\"ephemeral\",\"text\":\"ok\"}");
}

static void an_interaction_is_json_in_a_form(void **state)
{
        struct rig *g = *state;

        assert_int_equal(
                post(g, (struct post){ .type = FORM "; charset=utf-8",
                                       .body = "payload=%7B%22type%22%3A%22block_actions%22%7D" }),
                200);
        assert_int_equal(g->kind, SL_INTERACTIVE);
        assert_string_equal(json_str(g->payload, "type", ""), "block_actions");
}

static void notices_are_answered_and_nonsense_refused(void **state)
{
        static const struct {
                const char *type, *body;
                int status;
        } rows[] = {
                { NULL, "{\"type\":\"app_rate_limited\",\"minute_rate_limited\":1}", 200 },
                { FORM, "ssl_check=1&token=x", 200 },
                { NULL, "", 400 },
                { NULL, "[]", 400 },
                { NULL, "{\"type\":\"url_verification\"}", 400 },
                { NULL, "{\"type\":\"novelty\"}", 400 },
                { FORM, "a=b", 400 },
                { FORM, "payload=%5B%5D", 400 },
                { FORM, "payload=%zz", 400 },
                { FORM, "command=%2", 400 },
        };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(rows); i++)
                assert_int_equal(
                        post(g, (struct post){ .type = rows[i].type, .body = rows[i].body }),
                        rows[i].status);
        assert_int_equal(g->taken, 0);
}

static void closing_answers_open_posts(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        begin_post(g, (struct post){ .body = EVENT });
        for (int i = 0; i < STEPS && g->taken == 0; i++)
                loop_step(g->loop, true);
        sl_webhook_free(g->webhook);
        g->webhook = NULL;
        for (int i = 0; i < STEPS && g->answers == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(g->status, 503);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(slacks_own_example_of_a_signature_is_accepted),
                T(url_verification_returns_the_challenge),
                T(an_event_is_answered_only_after_the_commit),
                T(what_is_not_stored_in_time_is_refused),
                T(what_the_inbox_refuses_is_refused),
                T(retries_are_told),
                T(a_wrong_signature_is_refused),
                T(a_wrong_secret_is_reported_once),
                T(a_recorded_post_is_refused_before_its_body_is_read),
                T(a_slash_command_is_a_form_and_may_get_a_response),
                T(an_interaction_is_json_in_a_form),
                T(notices_are_answered_and_nonsense_refused),
                T(closing_answers_open_posts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
