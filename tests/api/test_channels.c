/* Webhooks of platforms: no key is needed there, so a stranger must cost nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "base/mem.h"

#define FLOOD  100
#define SECRET "X-Telegram-Bot-Api-Secret-Token: "

/* Two bots that cannot reach Telegram: one with a webhook, one that polls. */
static int setup(void **state)
{
        struct api_rig *r = api_rig_new();
        struct error err = { 0 };
        struct adapter_conf *confs[] = {
                adapter_conf_make("api", "api", "{}", &err),
                adapter_conf_make("hook", "telegram",
                                  "{\"botToken\":\"1:a\",\"apiBase\":\"http://127.0.0.1:9\","
                                  "\"mode\":\"webhook\",\"webhookSecret\":\"the-right-secret\"}",
                                  &err),
                adapter_conf_make("poll", "telegram",
                                  "{\"botToken\":\"2:b\",\"apiBase\":\"http://127.0.0.1:9\"}",
                                  &err),
        };

        adapters_set_public_url(r->adapters, "https://bot.example");
        for (size_t i = 0; i < COUNT(confs); i++)
                assert_non_null(confs[i]);
        assert_int_equal(adapters_apply(r->adapters, confs, COUNT(confs), &err), 0);
        *state = r;
        return 0;
}

/* The head of a request with a body, and only the first bytes of that. */
static void begin_post(struct api_rig *r, struct http_raw *c, const char *channel,
                       const char *header, size_t size)
{
        char *text = mem_printf("POST /api/v2/channels/%s/webhook HTTP/1.1\r\n"
                                "Host: %s\r\n"
                                "%sContent-Length: %zu\r\n"
                                "\r\n"
                                "{\"update_id\"",
                                channel, api_address(r->api), header, size);

        http_raw_open(c, r->loop, api_address(r->api));
        assert_true(http_raw_say(c, text));
        free(text);
}

static void expect_farewell(struct http_raw *c, int status)
{
        assert_true(http_raw_wait_answers(c, 1));
        assert_int_equal(http_raw_status(c, 0), status);
        assert_true(http_raw_wait_closed(c));
        http_raw_close(c);
}

static void a_stranger_is_refused_before_the_body(void **state)
{
        static const struct {
                const char *channel, *header;
                int status;
        } rows[] = {
                { "telegram/hook", "", 401 },
                { "telegram/hook", SECRET "wrong\r\n", 401 },
                { "telegram/hook", SECRET "righ\r\n", 401 },
                { "telegram/poll", SECRET "the-right-secret\r\n", 404 },
                { "telegram/nobody", SECRET "the-right-secret\r\n", 404 },
                { "api/api", SECRET "the-right-secret\r\n", 404 },
                { "slack/hook", SECRET "the-right-secret\r\n", 404 },
        };
        struct http_raw c;

        for (size_t i = 0; i < COUNT(rows); i++) {
                begin_post(*state, &c, rows[i].channel, rows[i].header, 400000);
                expect_farewell(&c, rows[i].status);
        }
}

static void a_flood_of_half_sent_bodies_is_refused(void **state)
{
        static struct http_raw flood[FLOOD];

        for (size_t i = 0; i < FLOOD; i++)
                begin_post(*state, &flood[i], "telegram/hook", "", 500000);
        for (size_t i = 0; i < FLOOD; i++)
                expect_farewell(&flood[i], 401);
}

static void the_platform_may_post_up_to_its_limit(void **state)
{
        struct api_rig *r = *state;
        struct http_raw c;

        begin_post(r, &c, "telegram/hook", SECRET "the-right-secret\r\n", 600000);
        expect_farewell(&c, 413);
        begin_post(r, &c, "telegram/hook", SECRET "the-right-secret\r\n",
                   strlen("{\"update_id\":1}"));
        assert_true(http_raw_say(&c, ":1}"));
        assert_true(http_raw_wait_answers(&c, 1));
        assert_int_equal(http_raw_status(&c, 0), 503); /* it has not reached Telegram yet */
        http_raw_close(&c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, api_rig_teardown)
        const struct CMUnitTest tests[] = {
                TEST(a_stranger_is_refused_before_the_body),
                TEST(a_flood_of_half_sent_bodies_is_refused),
                TEST(the_platform_may_post_up_to_its_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
