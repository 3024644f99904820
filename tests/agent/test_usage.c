/* What a run used and costs, in all the forms agents and services report it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/usage.h"
#include "base/json.h"
#include "base/mem.h"

static void read_text(struct usage *u, const char *text)
{
        json_t *object = json_read(text, strlen(text), NULL);

        usage_read(u, object);
        json_decref(object);
}

/* 90 000 read, 2 000 written, 500 new and 800 written by the model. */
static void every_report_of_cached_tokens_costs_the_same(void **state)
{
        static const char *const reports[] = {
                /* Anthropic */
                "{\"input_tokens\":500,\"cache_read_input_tokens\":90000,"
                "\"cache_creation_input_tokens\":2000,\"cache_creation\":{"
                "\"ephemeral_5m_input_tokens\":2000,\"ephemeral_1h_input_tokens\":0},"
                "\"output_tokens\":800}",
                /* OpenAI, and those who say as much */
                "{\"prompt_tokens\":92500,\"completion_tokens\":800,\"prompt_tokens_details\":{"
                "\"cached_tokens\":90000,\"cache_write_tokens\":2000}}",
                /* OpenAI's responses */
                "{\"input_tokens\":92500,\"output_tokens\":800,\"input_tokens_details\":{"
                "\"cached_tokens\":90000,\"cache_write_tokens\":2000}}",
                /* DeepSeek and Moonshot have no price for writing: 2 000 of them as if */
                "{\"prompt_tokens\":92500,\"completion_tokens\":800,"
                "\"prompt_cache_hit_tokens\":90000,\"prompt_cache_miss_tokens\":2500,"
                "\"cache_write_tokens\":2000}",
                "{\"prompt_tokens\":92500,\"completion_tokens\":800,\"cached_tokens\":90000,"
                "\"cache_write_tokens\":2000}",
                /* a proxy before Anthropic */
                "{\"prompt_tokens\":92500,\"completion_tokens\":800,"
                "\"cache_read_input_tokens\":90000,\"cache_creation_input_tokens\":2000}",
                /* Agno, with the counts of either */
                "{\"input_tokens\":92500,\"output_tokens\":800,\"cache_read_tokens\":90000,"
                "\"cache_write_tokens\":2000}",
                "{\"input_tokens\":500,\"output_tokens\":800,\"cache_read_tokens\":90000,"
                "\"cache_write_tokens\":2000}",
                /* webhooks */
                "{\"inputTokens\":92500,\"outputTokens\":800,\"cachedInputTokens\":90000,"
                "\"cacheWriteTokens\":2000}",
                "{\"inputTokens\":92500,\"outputTokens\":800,\"cachedTokens\":90000,"
                "\"cacheWriteTokens\":2000}",
        };
        static const struct usage_prices prices = { 3, 15, 0.3, 3.75, 6 };

        (void)state;
        for (size_t i = 0; i < COUNT(reports); i++) {
                struct usage u = { 0 };

                read_text(&u, reports[i]);
                if (usage_tokens_in(&u) != 92500 || u.cached != 90000 || u.out != 800 ||
                    usage_cost(&u, &prices) != 48000)
                        fail_msg("%lld in, %lld cached, %lld out, %lld microdollars: %s",
                                 (long long)usage_tokens_in(&u), (long long)u.cached,
                                 (long long)u.out, (long long)usage_cost(&u, &prices), reports[i]);
        }
}

static void a_stream_reports_in_parts(void **state)
{
        static const struct usage_prices prices = { 3, 15, 0.3, 3.75, 6 };
        struct usage u = { 0 };

        (void)state;
        read_text(&u, "{\"input_tokens\":500,\"cache_read_input_tokens\":90000,"
                      "\"cache_creation_input_tokens\":2000,\"cache_creation\":{"
                      "\"ephemeral_1h_input_tokens\":2000},\"output_tokens\":1}");
        read_text(&u, "{\"input_tokens\":500,\"output_tokens\":800}"); /* totals, not additions */
        read_text(&u, "null");
        assert_int_equal(usage_tokens_in(&u), 92500);
        assert_int_equal(u.cached, 90000);
        assert_int_equal(usage_cost(&u, &prices), 48000 + 2000 * 9 / 4); /* kept for an hour */
}

static void a_reported_cost_wins_and_nonsense_does_no_harm(void **state)
{
        static const struct usage_prices prices = { 100000, 100000, 100000, 100000, 100000 };
        struct usage u = { 0 };

        (void)state;
        read_text(&u, "{\"prompt_tokens\":10,\"cost\":0.25}");
        assert_int_equal(usage_cost(&u, &prices), 250000);
        u = (struct usage){ 0 };
        read_text(&u, "{\"prompt_tokens\":-5,\"completion_tokens\":\"many\",\"cost\":-1,"
                      "\"prompt_tokens_details\":7}");
        assert_int_equal(usage_tokens_in(&u), 0);
        assert_int_equal(usage_cost(&u, &prices), 0);
        read_text(&u, "{\"input_tokens\":9223372036854775807,\"output_tokens\":"
                      "9223372036854775807,\"cache_read_input_tokens\":9223372036854775807,"
                      "\"cache_creation_input_tokens\":9223372036854775807,\"cost\":{}}");
        assert_true(usage_cost(&u, &prices) > 0);
        read_text(&u, "[1]");
        usage_read(&u, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_report_of_cached_tokens_costs_the_same),
                cmocka_unit_test(a_stream_reports_in_parts),
                cmocka_unit_test(a_reported_cost_wins_and_nonsense_does_no_harm),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
