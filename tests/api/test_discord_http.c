/* Discord's adapters over HTTP: signed interactions, and tools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/evp.h>

#include "../lib/api_rig.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"

#define INTERACTIONS "/api/v2/channels/discord/dc/interactions"

static EVP_PKEY *key; /* the application's */

static char *make_settings(void)
{
        unsigned char raw[ED25519_KEY_SIZE];
        size_t n = sizeof(raw);
        char hex[2 * ED25519_KEY_SIZE + 1];

        assert_int_equal(EVP_PKEY_get_raw_public_key(key, raw, &n), 1);
        return mem_printf(
                "{\"botToken\":\"a.b.c\",\"apiBase\":\"http://127.0.0.1:9\",\"publicKey\":\"%s\"}",
                crypto_hex(raw, n, hex));
}

/* A bot that cannot reach Discord, and one without a token. */
static int setup(void **state)
{
        struct api_rig *r = api_rig_new();
        struct error err = { 0 };
        struct adapter_conf *confs[3];
        char *settings;

        unsetenv("DISCORD_BOT_TOKEN");
        key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
        assert_non_null(key);
        settings = make_settings();
        confs[0] = adapter_conf_make("api", "api", "{}", &err);
        confs[1] = adapter_conf_make("dc", "discord", settings, &err);
        confs[2] = adapter_conf_make("mute", "discord", "{}", &err);
        free(settings);
        for (size_t i = 0; i < COUNT(confs); i++)
                assert_non_null(confs[i]);
        assert_int_equal(adapters_apply(r->adapters, confs, COUNT(confs), &err), 0);
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        api_rig_free(*state);
        EVP_PKEY_free(key);
        return 0;
}

/* The headers of a request that signs `signed_text`; yours to free. */
static char *sign(const char *when, const char *signed_text)
{
        unsigned char signature[ED25519_SIGNATURE_SIZE];
        char hex[2 * ED25519_SIGNATURE_SIZE + 1], *text = mem_printf("%s%s", when, signed_text);
        size_t n = sizeof(signature);
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();

        assert_int_equal(EVP_DigestSignInit(ctx, NULL, NULL, NULL, key), 1);
        assert_int_equal(
                EVP_DigestSign(ctx, signature, &n, (const unsigned char *)text, strlen(text)), 1);
        EVP_MD_CTX_free(ctx);
        free(text);
        return mem_printf(
                "Host: 127.0.0.1\r\nX-Signature-Ed25519: %s\r\nX-Signature-Timestamp: %s\r\n",
                crypto_hex(signature, n, hex), when);
}

/* Posts a body that was signed this many seconds ago. */
static struct api_answer post_after(struct api_rig *r, int64_t seconds, const char *signed_text,
                                    const char *body)
{
        char when[32], *headers;
        struct api_answer a;

        snprintf(when, sizeof(when), "%lld", (long long)(clock_wall_ms() / 1000 - seconds));
        headers = sign(when, signed_text);
        a = api_rig_ask_as(r, "POST", INTERACTIONS, headers, body);
        free(headers);
        return a;
}

static struct api_answer post(struct api_rig *r, const char *signed_text, const char *body)
{
        return post_after(r, 0, signed_text, body);
}

static void a_signed_ping_is_answered(void **state)
{
        struct api_answer a = post(*state, "{\"type\":1}", "{\"type\":1}");

        assert_int_equal(a.status, 200);
        assert_int_equal(json_int(a.json, "type", 0), 1);
        api_answer_release(&a);
}

static void a_wrong_signature_is_refused(void **state)
{
        static const char *const headers[] = {
                "Host: 127.0.0.1\r\n",
                "Host: 127.0.0.1\r\nX-Signature-Ed25519: 00\r\nX-Signature-Timestamp: 1\r\n",
                "Host: 127.0.0.1\r\nX-Signature-Timestamp: 1\r\n",
        };
        struct api_answer a = post(*state, "{\"type\":2}", "{\"type\":1}");

        assert_int_equal(a.status, 401);
        api_answer_release(&a);
        for (size_t i = 0; i < COUNT(headers); i++) {
                a = api_rig_ask_as(*state, "POST", INTERACTIONS, headers[i], "{\"type\":1}");
                assert_int_equal(a.status, 401);
                api_answer_release(&a);
        }
}

static void a_recorded_post_is_refused(void **state)
{
        static const struct {
                int64_t seconds;
                int status;
        } rows[] = { { 0, 200 }, { 240, 200 }, { -240, 200 }, { 310, 401 }, { -310, 401 } };
        static const char *const times[] = { "",     "now",        "-1",
                                             "17e8", "1700000000", "99999999999999999999" };
        struct api_answer a;

        for (size_t i = 0; i < COUNT(rows); i++) {
                a = post_after(*state, rows[i].seconds, "{\"type\":1}", "{\"type\":1}");
                assert_int_equal(a.status, rows[i].status);
                api_answer_release(&a);
        }
        for (size_t i = 0; i < COUNT(times); i++) {
                char *headers = sign(times[i], "{\"type\":1}");

                a = api_rig_ask_as(*state, "POST", INTERACTIONS, headers, "{\"type\":1}");
                assert_int_equal(a.status, 401);
                api_answer_release(&a);
                free(headers);
        }
}

/* The signature is over the body, so all else is checked before. */
static void strangers_are_refused_before_their_body_is_read(void **state)
{
        struct api_rig *r = *state;
        char now[32], *headers[3];
        const int statuses[] = { 401, 413, 401 };

        snprintf(now, sizeof(now), "%lld", (long long)(clock_wall_ms() / 1000));
        headers[0] = sign("1700000000", "");
        headers[1] = sign(now, "");
        headers[2] = mem_printf("Host: 127.0.0.1\r\nX-Signature-Timestamp: %s\r\n"
                                "X-Signature-Ed25519: %0128d\r\n",
                                now, 0);
        *strchr(strstr(headers[2], "Ed25519: "), '0') = 'g';
        for (size_t i = 0; i < COUNT(headers); i++) {
                char *request = mem_printf("POST " INTERACTIONS " HTTP/1.1\r\n%s"
                                           "Content-Length: 65537\r\n\r\n",
                                           headers[i]);
                struct http_raw c;

                http_raw_open(&c, r->loop, api_address(r->api));
                http_raw_say(&c, request);
                assert_true(http_raw_wait_closed(&c));
                assert_int_equal(http_raw_status(&c, 0), statuses[i]);
                http_raw_close(&c);
                free(request);
                free(headers[i]);
        }
}

static void a_signed_body_must_be_an_interaction(void **state)
{
        struct api_answer a = post(*state, "{}", "{}");

        assert_int_equal(a.status, 400);
        api_answer_release(&a);
        a = post(*state, "{\"type\":2,\"id\":\"5\",\"token\":\"t\"}",
                 "{\"type\":2,\"id\":\"5\",\"token\":\"t\"}");
        /* the token has not been tried yet: nothing is accepted before */
        assert_int_equal(a.status, 503);
        api_answer_release(&a);
}

static void tools_are_listed_with_their_parameters(void **state)
{
        struct api_answer a = api_rig_ask(*state, "GET", "/api/v2/instances/dc/tools", NULL);
        const json_t *items = json_object_get(a.json, "items");

        assert_int_equal(a.status, 200);
        assert_int_equal(json_array_size(items), 10);
        assert_string_equal(json_str(json_array_get(items, 0), "name", ""), "discord_send");
        assert_true(json_is_object(json_object_get(json_array_get(items, 0), "parameters")));
        api_answer_release(&a);
        a = api_rig_ask(*state, "GET", "/api/v2/instances/api/tools", NULL);
        assert_int_equal(json_array_size(json_object_get(a.json, "items")), 0);
        api_answer_release(&a);
}

static void a_tool_that_sends_leaves_a_delivery(void **state)
{
        struct api_answer a =
                api_rig_ask(*state, "POST", "/api/v2/instances/dc/tools/discord_send",
                            "{\"arguments\":{\"channel_id\":\"7\",\"content\":\"**hi**\"}}");
        const char *id;
        char *path;

        assert_int_equal(a.status, 200);
        id = json_str(json_object_get(a.json, "data"), "deliveryId", NULL);
        assert_non_null(id);
        path = mem_printf("/api/v2/deliveries/%s", id);
        api_answer_release(&a);
        a = api_rig_ask(*state, "GET", path, NULL);
        free(path);
        assert_int_equal(a.status, 200);
        assert_non_null(strstr(a.text, "**hi**"));
        api_answer_release(&a);
}

static struct api_answer send_with_key(struct api_rig *r, const char *once, const char *text)
{
        char *header = mem_printf("Idempotency-Key: %s\r\n", once);
        char *body = mem_printf("{\"arguments\":{\"channel_id\":\"7\",\"content\":\"%s\"}}", text);
        struct api_answer a;
        struct http_raw c;

        api_rig_send(r, &c, "POST", "/api/v2/instances/dc/tools/discord_send", header, body);
        a = api_rig_receive(&c);
        free(header);
        free(body);
        return a;
}

static void a_repeated_tool_call_is_one_delivery(void **state)
{
        struct api_answer first = send_with_key(*state, "k1", "hi"),
                          again = send_with_key(*state, "k1", "hi"),
                          other = send_with_key(*state, "k1", "bye"),
                          new = send_with_key(*state, "k2", "hi");
        const json_t *data = json_object_get(first.json, "data"),
                     *same = json_object_get(again.json, "data");

        assert_int_equal(first.status, 200);
        assert_int_equal(again.status, 200);
        assert_string_equal(json_str(data, "status", ""), "queued");
        assert_string_equal(json_str(same, "status", ""), "duplicate");
        assert_string_equal(json_str(data, "deliveryId", ""), json_str(same, "deliveryId", "-"));
        assert_int_equal(other.status, 409);
        assert_string_equal(json_str(json_object_get(new.json, "data"), "status", ""), "queued");
        api_answer_release(&first);
        api_answer_release(&again);
        api_answer_release(&other);
        api_answer_release(&new);
}

static void a_tool_that_fails_reports_why(void **state)
{
        static const struct {
                const char *path, *body;
                int status;
                const char *why;
        } rows[] = {
                { "dc/tools/discord_send", "{\"arguments\":{\"content\":\"hi\"}}", 400,
                  "'channel_id' is missing" },
                { "dc/tools/discord_send",
                  "{\"arguments\":{\"chanel_id\":\"7\",\"content\":\"hi\"}}", 400,
                  "has no argument 'chanel_id' (did you mean 'channel_id'?)" },
                { "dc/tools/discord_fly", "{}", 404, "discord_fly" },
                { "nobody/tools/discord_send", "{}", 404, "nobody" },
                { "mute/tools/discord_whoami", "{}", 409,
                  "set DISCORD_BOT_TOKEN in the environment, or adapters.mute.botToken" },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                char *path = mem_printf("/api/v2/instances/%s", rows[i].path);
                struct api_answer a = api_rig_ask(*state, "POST", path, rows[i].body);

                assert_int_equal(a.status, rows[i].status);
                assert_non_null(strstr(a.text, rows[i].why));
                api_answer_release(&a);
                free(path);
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(a_signed_ping_is_answered),
                TEST(a_wrong_signature_is_refused),
                TEST(a_recorded_post_is_refused),
                TEST(strangers_are_refused_before_their_body_is_read),
                TEST(a_signed_body_must_be_an_interaction),
                TEST(tools_are_listed_with_their_parameters),
                TEST(a_tool_that_sends_leaves_a_delivery),
                TEST(a_repeated_tool_call_is_one_delivery),
                TEST(a_tool_that_fails_reports_why),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
