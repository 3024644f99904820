/* Small translations of the Slack platform: emoji and timestamps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "platform/slack/sl_emoji.h"
#include "platform/slack/sl_ts.h"

static void emoji_have_names_in_slack(void **state)
{
        static const struct {
                const char *emoji, *name; /* name NULL: there is none */
        } rows[] = {
                { "👀", "eyes" },
                { "✅", "white_check_mark" },
                { "❤️", "heart" },
                { "❤", "heart" },
                { "👍🏽", "thumbsup" },
                { ":party-parrot:", "party-parrot" },
                { "shipit", "shipit" },
                { "1️⃣", "one" },
                { "", NULL },
                { "🜁", NULL },
                { "no spaces", NULL },
        };
        char name[32];

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                assert_int_equal(sl_emoji_name(rows[i].emoji, name, sizeof(name)),
                                 rows[i].name ? 0 : -1);
                if (rows[i].name)
                        assert_string_equal(name, rows[i].name);
        }
        assert_int_equal(sl_emoji_name("a_name_that_is_too_long", name, 8), -1);
}

static void names_of_slack_are_emoji(void **state)
{
        (void)state;
        assert_string_equal(sl_emoji_text("eyes"), "👀");
        assert_string_equal(sl_emoji_text("+1"), "👍");
        assert_string_equal(sl_emoji_text("thumbsup::skin-tone-3"), "👍");
        assert_null(sl_emoji_text("party-parrot"));
        assert_null(sl_emoji_text("ey")); /* no prefix of a name */
}

static void timestamps_are_compared_as_numbers(void **state)
{
        char text[SL_TS_SIZE];

        (void)state;
        assert_true(sl_ts_valid("1700000000.000100"));
        assert_false(sl_ts_valid(NULL));
        assert_false(sl_ts_valid(""));
        assert_false(sl_ts_valid("1700000000"));
        assert_false(sl_ts_valid("1700000000.0001"));
        assert_false(sl_ts_valid("1700000000.000100 "));
        assert_false(sl_ts_valid("../5"));
        assert_true(sl_ts_us("1700000000.000100") < sl_ts_us("1700000000.000101"));
        assert_true(sl_ts_us("999999999.999999") < sl_ts_us("1700000000.000000"));
        assert_int_equal(sl_ts_us("x"), 0);
        assert_string_equal(sl_ts_write(1700000000000100, text), "1700000000.000100");
        assert_string_equal(sl_ts_write(-5, text), "0.000000");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(emoji_have_names_in_slack),
                cmocka_unit_test(names_of_slack_are_emoji),
                cmocka_unit_test(timestamps_are_compared_as_numbers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
