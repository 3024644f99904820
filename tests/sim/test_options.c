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

struct world {
        struct world_base base;
        int64_t wait;
        size_t size;
        double rate;
};

static const struct world_setting settings[] = {
        { "wait", WORLD_SETTING_INT, offsetof(struct world, wait), 0, 0 },
        { "size", WORLD_SETTING_SIZE, offsetof(struct world, size), 8, 100 },
        { "rate", WORLD_SETTING_REAL, offsetof(struct world, rate), 0, 0 },
        { 0 },
};

static void options_apply_to_a_world(void **state)
{
        struct world_base w = { .keep_messages = 200, .faults = { .rng = 1 } };
        struct options o;

        (void)state;
        read_line(&o, "");
        world_base_apply(&w, NULL, &o);
        assert_true(w.limits && w.strict && !w.quiet);
        assert_int_equal(w.keep_messages, 200);
        assert_int_equal(w.faults.rng, 1);
        read_line(&o, "--no-limits --lax --keep 9 --seed 7 -q");
        world_base_apply(&w, NULL, &o);
        assert_false(w.limits || w.strict || !w.quiet);
        assert_int_equal(w.keep_messages, 9);
        assert_int_equal(w.faults.rng, 7);
}

static int change(struct world *w, const char *request)
{
        json_t *j = json_loads(request, 0, NULL);
        struct error err = { 0 };
        int rc = world_settings_change(&w->base, j, &err);

        json_decref(j);
        assert_true((rc == 0) == (err.kind == ERR_NONE));
        return rc;
}

static void settings_change_all_or_nothing(void **state)
{
        struct world w = {
                { .strict = true, .keep_messages = 10, .own_settings = settings }, 1, 10, 0.5
        };
        struct buf b;

        (void)state;
        assert_int_equal(change(&w, "{\"strict\":false,\"wait\":-1,\"size\":100,\"rate\":2}"), 0);
        assert_int_equal(change(&w, "{\"strict\":true,\"size\":101}"), -1);
        assert_int_equal(change(&w, "{\"strict\":true,\"wait\":\"long\"}"), -1);
        assert_int_equal(change(&w, "{\"rate\":1.5,\"strict\":1}"), -1);
        assert_int_equal(change(&w, "{\"strict\":true,\"keep_messages\":9}"), -1);
        assert_int_equal(change(&w, "{\"strict\":true,\"keep_messages\":-1}"), -1);
        assert_int_equal(change(&w, "{\"keep_messages\":11}"), 0);
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        world_settings_write(&w.base, &b);
        jsonw_close(&b, '}');
        assert_string_equal(b.data, "{\"settings\":{\"strict\":false,\"limits\":false,"
                                    "\"record_calls\":false,\"keep_messages\":11,"
                                    "\"wait\":-1,\"size\":100,\"rate\":2}}");
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(shared_and_own_options_are_read),
                cmocka_unit_test(usage_errors_return_64_and_help_minus_1),
                cmocka_unit_test(options_apply_to_a_world),
                cmocka_unit_test(settings_change_all_or_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
