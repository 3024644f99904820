/* Options and settings of simulators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/options.h"
#include "sim/world_settings.h"

static const struct own_option own[] = { { "data", "DIR", "files" }, { 0 } };
static const struct options_about about = { .name = "test",
                                            .about = "A test.\n",
                                            .port = "8081",
                                            .token = "1:a",
                                            .own = own,
                                            .controls = "" };

/* Reads a command line; the words stay valid until the next call. */
static int read_line(struct options *o, const char *words)
{
        static char line[200];
        char *argv[20] = { 0 }, *rest = line;
        int argc = 0;

        snprintf(line, sizeof(line), "test %s", words);
        while ((argv[argc] = strsep(&rest, " ")))
                argc += *argv[argc] != '\0';
        return options_read(o, &about, argc, argv);
}

static void shared_and_own_options_are_read(void **state)
{
        struct options o;
        char *address;

        (void)state;
        assert_int_equal(read_line(&o, ""), 0);
        assert_string_equal(o.host, "127.0.0.1");
        assert_string_equal(o.port, "8081");
        assert_string_equal(o.tokens[0], "1:a");
        assert_null(o.own[0]);
        assert_int_equal(read_line(&o, "--token 2:b --token=3:c --data /d --keep 9 -q"), 0);
        assert_int_equal(o.token_count, 2);
        assert_string_equal(o.tokens[1], "3:c");
        assert_string_equal(o.own[0], "/d");
        assert_int_equal(o.keep, 9);
        assert_true(o.quiet);
        assert_false(o.lax);
        assert_int_equal(read_line(&o, "--listen [::1]:90"), 0);
        address = options_address(&o, o.port);
        assert_string_equal(address, "[::1]:90");
        free(address);
        assert_int_equal(read_line(&o, "--listen 0.0.0.0 --port 0"), 0);
        address = options_address(&o, o.port);
        assert_string_equal(address, "0.0.0.0:0");
        free(address);
}

static void usage_errors_return_64_and_help_minus_1(void **state)
{
        struct options o;

        (void)state;
        assert_int_equal(read_line(&o, "--keep 7"), 64);
        assert_int_equal(read_line(&o, "--keep many"), 64);
        assert_int_equal(read_line(&o, "--tls-cert c"), 64);
        assert_int_equal(read_line(&o, "--listen :1"), 64);
        assert_int_equal(read_line(&o, "--bogus"), 64);
        assert_int_equal(read_line(&o, "more"), 64);
        assert_int_equal(read_line(&o, "--help"), -1);
}

struct settings {
        bool strict;
        int64_t wait;
        size_t keep;
        double rate;
};

static const struct world_setting settings[] = {
        { "strict", WORLD_SETTING_FLAG, offsetof(struct settings, strict), 0, 0 },
        { "wait", WORLD_SETTING_INT, offsetof(struct settings, wait), 0, 0 },
        { "keep", WORLD_SETTING_SIZE, offsetof(struct settings, keep), 8, 100 },
        { "rate", WORLD_SETTING_REAL, offsetof(struct settings, rate), 0, 0 },
        { 0 },
};

static int change(struct settings *s, const char *request)
{
        json_t *j = json_loads(request, 0, NULL);
        struct error err = { 0 };
        int rc = world_settings_change(settings, s, sizeof(*s), j, &err);

        json_decref(j);
        assert_true((rc == 0) == (err.kind == ERR_NONE));
        return rc;
}

static void settings_change_all_or_nothing(void **state)
{
        struct settings s = { true, 1, 10, 0.5 };
        struct buf b;

        (void)state;
        assert_int_equal(change(&s, "{\"strict\":false,\"wait\":-1,\"keep\":100,\"rate\":2}"), 0);
        assert_int_equal(change(&s, "{\"strict\":true,\"keep\":101}"), -1);
        assert_int_equal(change(&s, "{\"strict\":true,\"wait\":\"long\"}"), -1);
        assert_int_equal(change(&s, "{\"rate\":1.5,\"strict\":1}"), -1);
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        world_settings_write(settings, &s, &b);
        jsonw_close(&b, '}');
        assert_string_equal(
                b.data, "{\"settings\":{\"strict\":false,\"wait\":-1,\"keep\":100,\"rate\":2}}");
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(shared_and_own_options_are_read),
                cmocka_unit_test(usage_errors_return_64_and_help_minus_1),
                cmocka_unit_test(settings_change_all_or_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
