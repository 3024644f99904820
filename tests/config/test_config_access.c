/* Access and rate settings, from the file to dispatch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/placement_stub.h"
#include "../lib/scratch.h"
#include "base/mem.h"
#include "config/config.h"

#define TG "\"type\": \"telegram\", \"botToken\": \"env:TELEGRAM_BOT_TOKEN\""

static int begin(void **state)
{
        setenv("TELEGRAM_BOT_TOKEN", "1:secret-of-the-test", 1);
        *state = scratch_new();
        return 0;
}

static int end(void **state)
{
        unsetenv("TELEGRAM_BOT_TOKEN");
        scratch_free(*state);
        return 0;
}

/* Loads an adapter "tg" with these additional members. */
static int load(const char *dir, const char *members, struct config **out, struct error *err)
{
        char *path = scratch_path(dir, "config.json");
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        fprintf(f,
                "{ \"agents\": { \"echo\": { \"type\": \"echo\" } },\n\"adapters\": { \"tg\": { " TG
                "%s%s } } }",
                *members ? ",\n" : "", members);
        fclose(f);
        free(path);
        return config_load(dir, out, err);
}

static struct dispatch *dispatch_by(const char *dir, const char *members)
{
        struct dispatch *d = dispatch_new();
        struct config *c = NULL;
        struct error err = { 0 };

        if (load(dir, members, &c, &err) < 0)
                fail_msg("%s", err.text);
        config_dispatch_apply(c, d);
        assert_int_equal(c->rule_count, 0);
        config_free(c);
        return d;
}

static void without_access_settings_all_are_refused_with_a_warning(void **state)
{
        struct incoming in = { .adapter = "tg", .channel = "7", .sender_id = "7", .text = "hi" };
        struct dispatch *d = dispatch_by(*state, "");
        struct config *c = NULL;
        struct decision out;
        struct error err;
        struct buf line;

        buf_init(&line, 0);
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        assert_true(dispatch_describe(d, "tg", &line));
        assert_string_equal(line.data, "telegram tg: DMs: none; groups: none");
        assert_false(dispatch_describe(d, "terminal", &line));
        assert_int_equal(load(*state, "", &c, &err), 0);
        assert_non_null(strstr(config_warnings(c), "adapters.tg: answers no one"));
        config_free(c);
        buf_release(&line);
        dispatch_free(d);
}

static void a_person_in_dm_is_answered(void **state)
{
        struct incoming in = { .adapter = "tg", .channel = "7", .sender_id = "7", .text = "hi" };
        struct dispatch *d = dispatch_by(*state, "\"dm\": [\"7\"]");
        struct decision out;

        dispatch_decide(d, &in, NULL, &out);
        assert_true(out.trigger);
        in.sender_id = in.channel = "8";
        dispatch_decide(d, &in, NULL, &out);
        assert_false(out.trigger);
        dispatch_free(d);
}

static unsigned turns_admitted(struct dispatch *d, const char *adapter)
{
        struct incoming in = { .adapter = adapter, .channel = "7", .sender_id = "7", .text = "hi" };
        struct decision out;
        unsigned n = 0;

        for (int i = 0; i < 20; i++) {
                dispatch_decide(d, &in, NULL, &out);
                assert_true(out.trigger);
                dispatch_decide(d, &in, BEGINS_TURN, &out);
                n += out.trigger;
        }
        return n;
}

static void the_rate_limit_is_five_and_off_on_trusted_platforms(void **state)
{
        struct dispatch *plain = dispatch_by(*state, "\"dm\": \"everyone\"");
        struct dispatch *two =
                dispatch_by(*state, "\"dm\": \"everyone\", \"rateLimit\": { \"turns\": 2 }");
        struct dispatch *none =
                dispatch_by(*state, "\"dm\": \"everyone\", \"rateLimit\": { \"turns\": 0 }");

        assert_int_equal(turns_admitted(plain, "tg"), 5);
        assert_int_equal(turns_admitted(plain, "terminal"), 20);
        assert_int_equal(turns_admitted(two, "tg"), 2);
        assert_int_equal(turns_admitted(none, "tg"), 20);
        dispatch_free(plain);
        dispatch_free(two);
        dispatch_free(none);
}

static void one_bot_in_two_adapters_is_an_error_without_its_token(void **state)
{
        struct config *c = NULL;
        struct error err = { 0 };

        assert_int_equal(load(*state, "\"dm\": \"everyone\" }, \n\"again\": { " TG, &c, &err), -1);
        assert_non_null(strstr(err.text, "again.botToken"));
        assert_non_null(strstr(err.text, "adapter 'tg' has the same token"));
        assert_null(strstr(err.text, "secret-of-the-test"));
        assert_int_equal(load(*state,
                              "\"dm\": \"everyone\" }, \n\"again\": { \"enabled\": false, " TG, &c,
                              &err),
                         0);
        config_free(c);
}

static void access_mistakes_are_reported_with_their_line(void **state)
{
        static const struct {
                const char *members, *sentence;
        } rows[] = {
                { "\"block\": [\"rle:7\"]",
                  "config.json:3: adapters.tg.block: 'rle:7' begins with neither 'user:'" },
                { "\"admins\": \"*\"",
                  "config.json:3: adapters.tg.admins: '*' would allow everyone; name each" },
                { "\"dm\": [\"none\", \"7\"]",
                  "adapters.tg.dm: 'none' cannot be combined with other entries" },
                { "\"dm\": [7]", "adapters.tg.dm[0]: expected a string, not a number" },
                { "\"rateLimit\": { \"turns\": 5000 }", "5000 is too large (-1 to 1000)" },
                { "\"allowed\": []", "unknown key 'allowed' (did you mean 'allow'?)" },
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct config *c = NULL;
                struct error err = { 0 };

                assert_int_equal(load(*state, rows[i].members, &c, &err), -1);
                if (!strstr(err.text, rows[i].sentence))
                        fail_msg("'%s' does not say '%s'", err.text, rows[i].sentence);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        without_access_settings_all_are_refused_with_a_warning, begin, end),
                cmocka_unit_test_setup_teardown(a_person_in_dm_is_answered, begin, end),
                cmocka_unit_test_setup_teardown(the_rate_limit_is_five_and_off_on_trusted_platforms,
                                                begin, end),
                cmocka_unit_test_setup_teardown(
                        one_bot_in_two_adapters_is_an_error_without_its_token, begin, end),
                cmocka_unit_test_setup_teardown(access_mistakes_are_reported_with_their_line, begin,
                                                end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
