/* Which chat an event file means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schedule/event_address.h"

static const struct event_adapter one_slack[] = { { "acme", "slack" },
                                                  { "tg", "telegram" },
                                                  { "api", "api" } };
static const struct event_adapter two_slacks[] = { { "acme", "slack" },
                                                   { "umbrella", "slack" },
                                                   { "tg", "telegram" } };
static const struct event_adapter one_chat[] = { { "dc", "discord" },
                                                 { "api", "api" },
                                                 { "terminal", "cli" } };
static const struct event_adapter only_api[] = { { "api", "api" } };

static void a_chat_is_found_or_the_mistake_is_named(void **state)
{
        static const struct {
                const struct event_adapter *adapters;
                size_t count;
                const char *id, *expected; /* "adapter/channel", or the error */
        } rows[] = {
                { one_slack, 3, "tg/-100/7", "tg/-100/7" },
                { one_slack, 3, "acme/C1", "acme/C1" },
                { one_slack, 3, "C1", "acme/C1" },
                { one_chat, 3, "123", "dc/123" },
                { only_api, 1, "123", "api/123" },
                { two_slacks, 3, "C1",
                  "channelId: 'C1' does not say which adapter; expected \"adapter/channel\", with "
                  "one of 'acme/...', 'umbrella/...', 'tg/...'" },
                { two_slacks, 3, "umbrela/C1",
                  "channelId: there is no adapter 'umbrela' (did you mean 'umbrella'?)" },
                { two_slacks, 3, "matrix/C1",
                  "channelId: there is no adapter 'matrix'; the configured ones are 'acme', "
                  "'umbrella', 'tg'" },
                { one_slack, 3, "tg/", "channelId: 'tg/' does not say" },
                { one_slack, 3, "/C1", "channelId: there is no adapter ''" },
                { NULL, 0, "C1", "channelId: 'C1' does not say which adapter" },
                { one_slack, 3, NULL, "missing key 'channelId'" },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct event_address_query q = { rows[i].id, rows[i].adapters, rows[i].count, NULL,
                                                 NULL };
                const char *adapter, *channel;
                struct error err = { 0 };
                char *got = event_address_find(&q, &adapter, &channel, &err) < 0
                                    ? mem_strdup(err.text)
                                    : mem_printf("%s/%s", adapter, channel);

                if (strncmp(got, rows[i].expected, strlen(rows[i].expected)) != 0)
                        fail_msg("row %zu: %s", i, got);
                free(got);
        }
}

static void a_file_of_a_chat_means_that_chat_only(void **state)
{
        static const char *const own[] = { NULL, "42", "tg/42" };
        static const char *const others[] = { "43", "tg/43", "acme/42", "tg42", "tg/4", "tg/" };
        struct event_address_query q = {
                .adapters = one_slack, .count = 3, .home_adapter = "tg", .home_channel = "42"
        };
        const char *adapter, *channel;
        struct error err = { 0 };

        (void)state;
        for (size_t i = 0; i < COUNT(own); i++) {
                q.id = own[i];
                assert_int_equal(event_address_find(&q, &adapter, &channel, &err), 0);
                assert_string_equal(adapter, "tg");
                assert_string_equal(channel, "42");
        }
        for (size_t i = 0; i < COUNT(others); i++) {
                q.id = others[i];
                assert_int_equal(event_address_find(&q, &adapter, &channel, &err), -1);
                assert_int_equal(err.kind, ERR_REFUSED);
                assert_non_null(strstr(err.text, "can only mean that chat, 'tg/42'"));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_chat_is_found_or_the_mistake_is_named),
                cmocka_unit_test(a_file_of_a_chat_means_that_chat_only),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
