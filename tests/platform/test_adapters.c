#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "../lib/scratch.h"
#include "base/json.h"
#include "bus/bus.h"
#include "fake_road.h"
#include "platform/platform.h"
#include "rows/schema.h"
#include "store/store.h"

struct fixture {
        struct loop *loop;
        struct adapters *adapters;
};

static int begin(void **state)
{
        struct fixture *f = mem_zalloc(sizeof(*f));

        fake_road_reset();
        f->loop = loop_new();
        f->adapters = adapters_new(f->loop, NULL, "data");
        adapters_set_road(f->adapters, FAKE_ROAD);
        *state = f;
        return 0;
}

static int end(void **state)
{
        struct fixture *f = *state;

        adapters_free(f->adapters);
        loop_free(f->loop);
        free(f);
        return 0;
}

static struct adapter_conf *conf(const char *name, const char *type, const char *json)
{
        struct error err = { 0 };
        struct adapter_conf *c = adapter_conf_make(name, type, json, &err);

        if (!c)
                fail_msg("%s", err.text);
        return c;
}

static void apply(struct fixture *f, struct adapter_conf *one, struct adapter_conf *two)
{
        struct adapter_conf *confs[] = { one, two };
        struct error err;

        assert_int_equal(adapters_apply(f->adapters, confs, two ? 2 : one ? 1 : 0, &err), 0);
        assert_null(confs[0]);
}

static void count_one(void *arg, struct adapter *a)
{
        (void)a;
        ++*(size_t *)arg;
}

static void adapters_connect_and_wake_the_outbox(void **state)
{
        struct fixture *f = *state;
        size_t n = 0;

        apply(f, conf("terminal", "cli", NULL), conf("api", "api", NULL));
        assert_true(adapters_ready(f->adapters, "terminal"));
        assert_true(adapters_ready(f->adapters, "api"));
        assert_false(adapters_ready(f->adapters, "other"));
        assert_int_equal(fake_road.wakes, 2);
        assert_string_equal(fake_road.woken, "api");
        adapters_each(f->adapters, count_one, &n);
        assert_int_equal(n, 2);
}

static void a_reload_keeps_unchanged_adapters(void **state)
{
        struct fixture *f = *state;
        struct adapter *terminal;
        int64_t since;

        apply(f, conf("terminal", "cli", NULL), conf("api", "api", NULL));
        terminal = adapters_find(f->adapters, "terminal");
        since = terminal->since_ms;
        apply(f, conf("api", "api", "{\"callbackUrl\": \"http://localhost/x\"}"),
              conf("terminal", "cli", NULL));
        assert_ptr_equal(adapters_find(f->adapters, "terminal"), terminal);
        assert_int_equal(terminal->since_ms, since);
        assert_int_equal(fake_road.wakes, 3); /* api again, terminal not */
        assert_int_equal(adapters_abilities(f->adapters, "api") & ADAPTER_JOURNALED, 0);
        apply(f, conf("terminal", "cli", NULL), NULL);
        assert_null(adapters_find(f->adapters, "api"));
        assert_int_equal(adapters_abilities(f->adapters, "api"), 0);
        assert_ptr_equal(adapters_find(f->adapters, "terminal"), terminal);
}

/* What was wrong may have been put right on the platform. */
static void a_reload_opens_a_stopped_adapter_again(void **state)
{
        struct fixture *f = *state;

        apply(f, conf("terminal", "cli", NULL), conf("api", "api", NULL));
        adapter_stopped(adapters_find(f->adapters, "terminal"), "its token was revoked");
        assert_false(adapters_ready(f->adapters, "terminal"));
        apply(f, conf("terminal", "cli", NULL), conf("api", "api", NULL));
        assert_true(adapters_ready(f->adapters, "terminal"));
        assert_int_equal(fake_road.wakes, 3); /* terminal again, api not */
}

static void a_rotated_secret_restarts_the_adapter(void **state)
{
        static const char text[] = "{\"callbackUrl\": \"http://localhost/x\", \"callbackSecret\": "
                                   "\"env:DRAGOMAN_TEST_SECRET\"}";
        struct fixture *f = *state;

        setenv("DRAGOMAN_TEST_SECRET", "the-first-secret-of-two", 1);
        apply(f, conf("api", "api", text), NULL);
        apply(f, conf("api", "api", text), NULL);
        assert_int_equal(fake_road.wakes, 1);
        setenv("DRAGOMAN_TEST_SECRET", "the-second-secret-of-two", 1);
        apply(f, conf("api", "api", text), NULL);
        assert_int_equal(fake_road.wakes, 2);
        unsetenv("DRAGOMAN_TEST_SECRET");
}

static void a_disabled_adapter_is_listed_as_off(void **state)
{
        struct fixture *f = *state;

        apply(f, conf("terminal", "cli", "{\"enabled\": false}"), NULL);
        assert_int_equal(adapters_find(f->adapters, "terminal")->state, ADAPTER_OFF);
        assert_false(adapters_ready(f->adapters, "terminal"));
        apply(f, conf("terminal", "cli", NULL), NULL);
        assert_true(adapters_ready(f->adapters, "terminal"));
        apply(f, conf("terminal", "cli", "{\"enabled\": false}"), NULL);
        assert_int_equal(adapters_find(f->adapters, "terminal")->state, ADAPTER_OFF);
}

static void an_adapter_with_its_own_ca_has_its_own_client(void **state)
{
        struct fixture *f = *state;
        struct adapter *a;

        apply(f, conf("api", "api", "{\"caFile\": \"tests/no-such-file.pem\"}"), NULL);
        a = adapters_find(f->adapters, "api");
        assert_int_equal(a->state, ADAPTER_STOPPED);
        assert_string_equal(
                a->why,
                "cannot read certificates 'tests/no-such-file.pem': No such file or directory");
        apply(f, conf("api", "api", "{\"caFile\": \"/dev/null\"}"), NULL);
        assert_true(adapters_ready(f->adapters, "api"));
        assert_non_null(a->http);
        apply(f, conf("api", "api", NULL), NULL);
        assert_null(a->http); /* the shared client, which this test lacks */
}

static void a_duplicate_name_changes_nothing(void **state)
{
        struct fixture *f = *state;
        struct adapter_conf *confs[] = { conf("a", "cli", NULL), conf("a", "api", NULL) };
        struct error err;

        apply(f, conf("terminal", "cli", NULL), NULL);
        assert_int_equal(adapters_apply(f->adapters, confs, 2, &err), -1);
        assert_string_equal(err.text, "two adapters have the name 'a'");
        assert_null(confs[1]);
        assert_true(adapters_ready(f->adapters, "terminal"));
}

static void a_lost_or_stopped_adapter_says_why(void **state)
{
        struct fixture *f = *state;
        struct adapter *a;

        apply(f, conf("terminal", "cli", NULL), NULL);
        a = adapters_find(f->adapters, "terminal");
        adapter_lost(a, "connection reset");
        assert_int_equal(a->state, ADAPTER_LOST);
        assert_string_equal(a->why, "connection reset");
        assert_false(adapters_ready(f->adapters, "terminal"));
        adapter_ready(a);
        assert_string_equal(a->why, "");
        adapter_stopped(a, "the token was refused");
        assert_string_equal(adapter_state_name(a->state), "stopped");
}

static void received_events_name_adapter_and_platform(void **state)
{
        struct fixture *f = *state;
        struct incoming in = { .key = "k", .channel = "c" };

        apply(f, conf("shell", "cli", NULL), NULL);
        adapter_received(adapters_find(f->adapters, "shell"), &in, NULL, NULL);
        assert_int_equal(fake_road.received_count, 1);
        assert_string_equal(fake_road.received.adapter, "shell");
        assert_string_equal(fake_road.received.platform, "cli");
}

static void a_send_to_a_missing_adapter_is_retried(void **state)
{
        struct fixture *f = *state;

        adapters_send(f->adapters, &(struct delivery){ .id = 7, .fence = 3, .adapter = "gone" });
        adapters_reconcile(f->adapters,
                           &(struct delivery){ .id = 8, .fence = 4, .adapter = "gone" });
        assert_int_equal(fake_road.count, 0);
        for (int i = 0; i < 100 && fake_road.count < 2; i++)
                loop_step(f->loop, true);
        assert_int_equal(fake_road.count, 2);
        assert_int_equal(fake_road.sent[0].delivery, 7);
        assert_int_equal(fake_road.sent[0].fence, 3);
        assert_int_equal(fake_road.sent[0].result.outcome, SEND_RETRY);
        assert_string_equal(fake_road.sent[0].why, "adapter 'gone' is not configured");
        assert_int_equal(fake_road.sent[1].result.outcome, SEND_UNSURE);
}

static void pending_refusals_are_freed_with_the_registry(void **state)
{
        struct fixture *f = *state;

        adapters_send(f->adapters, &(struct delivery){ .id = 7, .fence = 3, .adapter = "gone" });
        assert_int_equal(fake_road.count, 0);
}

static void cli_and_api_get_text_as_written(void **state)
{
        struct fixture *f = *state;
        struct rendered out;
        struct error err;

        apply(f, conf("terminal", "cli", NULL), conf("api", "api", NULL));
        assert_int_equal(
                adapters_render(f->adapters, "api", "**bold**\n\n- <x>", false, &out, &err), 0);
        assert_int_equal(out.count, 1);
        assert_string_equal(out.parts[0].text, "**bold**\n\n- <x>");
        assert_null(out.parts[0].plain);
        rendered_release(&out);
        assert_int_equal(adapters_render(f->adapters, "other", "x", false, &out, &err), -1);
        assert_int_equal(err.kind, ERR_MISSING);
}

static void limits_default_to_the_platforms(void **state)
{
        struct fixture *f = *state;
        struct pace_limits limits;

        apply(f, conf("terminal", "cli", NULL),
              conf("api", "api", "{\"pace\": {\"perSecond\": 2.5}}"));
        adapters_limits(f->adapters, "api", &limits);
        assert_true(limits.per_second > 2.4 && limits.per_second < 2.6);
        assert_true(limits.per_channel_second < 0.1);
        adapters_limits(f->adapters, "terminal", &limits);
        assert_true(limits.per_second < 0.1);
        assert_false(adapters_channel_is_group(f->adapters, "api", "c"));
}

/* ---- the journal ---- */

static void note_type(void *arg, const struct bus_event *e)
{
        struct buf *types = arg;

        buf_addf(types, "%s %s %s\n", e->type, e->adapter, e->payload);
}

static void state_changes_are_journaled(void **state)
{
        struct fixture *f = *state;
        char *dir = scratch_new();
        struct error err = { 0 };
        struct store *s = store_open(
                f->loop,
                &(struct store_options){ .url = "sqlite", .dir = dir, .migrations = schema_steps },
                &err);
        struct bus *b =
                s ? bus_open(f->loop, s, &(struct bus_options){ .url = "local" }, &err) : NULL;
        struct bus_listener *listener;
        struct buf types;

        if (!b)
                fail_msg("%s", err.text);
        buf_init(&types, 0);
        listener = bus_listen(b, BUS_ALL_STREAMS, note_type, &types);
        adapters_set_journal(f->adapters, s, b);
        apply(f, conf("terminal", "cli", NULL), NULL);
        adapter_lost(adapters_find(f->adapters, "terminal"), "reset");
        adapter_lost(adapters_find(f->adapters, "terminal"), "refused");
        apply(f, NULL, NULL);
        for (int i = 0; i < 1000 && !strstr(types.data, "adapter.stopped"); i++)
                loop_step(f->loop, true);
        assert_string_equal(
                types.data,
                "adapter.connected terminal {\"platform\":\"cli\",\"state\":\"connected\"}\n"
                "adapter.lost terminal "
                "{\"platform\":\"cli\",\"state\":\"lost\",\"why\":\"reset\"}\n"
                "adapter.stopped terminal "
                "{\"platform\":\"cli\",\"state\":\"stopped\",\"why\":\"removed from the "
                "configuration\"}\n");
        apply(f, conf("terminal", "cli", NULL), NULL); /* written, not published */
        adapters_set_journal(f->adapters, NULL, NULL);
        bus_unlisten(b, listener);
        bus_close(b);
        store_close(s);
        buf_release(&types);
        scratch_free(dir);
}

/* ---- configuration ---- */

static void configuration_errors_name_their_line(void **state)
{
        /* clang-format off */
        static const struct {
                const char *text, *error;
        } rows[] = {
                { "{\n\"a\": 7}", "config.json:2: adapters.a: expected an object such as { "
                  "\"type\": \"api\" }" },
                { "{\"a\":\n{}}", "config.json:1: adapters.a: missing key 'type'" },
                { "{\"a\": {\n\"type\": 3}}", "config.json:2: adapters.a.type: expected a string" },
                { "{\"a\": {\n\"type\": \"matrix\"}}",
                  "config.json:2: adapters.a.type: unknown type 'matrix' (one of api, cli, discord,"
                  " slack, telegram)" },
                { "{\"a\": {\n\"type\": \"clii\"}}",
                  "config.json:2: adapters.a.type: unknown type 'clii' (did you mean 'cli'?)" },
                { "{\"a\": {\"type\": \"api\",\n\"callbackURL\": \"\"}}",
                  "config.json:2: adapters.a: unknown key 'callbackURL' (did you mean "
                  "'callbackUrl'?)" },
                { "{\"a\": {\"type\": \"api\",\n\"debounceMS\": 1}}",
                  "config.json:2: adapters.a: unknown key 'debounceMS' (did you mean "
                  "'debounceMs'?)" },
                { "{\"a\": {\"type\": \"cli\",\n\"debounceMs\": 700000}}",
                  "config.json:2: adapters.a.debounceMs: 700000 is too large (-1 to 600000)" },
                { "{\"a\": {\"type\": \"api\",\n\n\"timeoutMs\": 1}}",
                  "config.json:3: adapters.a.timeoutMs: 1 is too small (100 to 600000)" },
                { "{\"a\": {\"type\": \"api\", \"callbackSecret\": \"abcdefghijklmnop\"}}",
                  "config.json:1: adapters.a: 'callbackSecret' has no use without 'callbackUrl'" },
        };
        /* clang-format on */

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                char *text = mem_printf("{\"adapters\": %s}", rows[i].text);
                struct error err = { 0 };
                struct settings_source *src =
                        settings_source_new("config.json", NULL, text, strlen(text), &err);
                const json_t *adapters = json_object_get(settings_source_root(src), "adapters");

                assert_null(adapter_conf_read(src, "a", json_object_get(adapters, "a"), &err));
                assert_int_equal(err.kind, ERR_INVALID);
                assert_string_equal(err.text, rows[i].error);
                settings_source_free(src);
                free(text);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(adapters_connect_and_wake_the_outbox, begin, end),
                cmocka_unit_test_setup_teardown(a_reload_keeps_unchanged_adapters, begin, end),
                cmocka_unit_test_setup_teardown(a_reload_opens_a_stopped_adapter_again, begin, end),
                cmocka_unit_test_setup_teardown(a_rotated_secret_restarts_the_adapter, begin, end),
                cmocka_unit_test_setup_teardown(a_disabled_adapter_is_listed_as_off, begin, end),
                cmocka_unit_test_setup_teardown(an_adapter_with_its_own_ca_has_its_own_client,
                                                begin, end),
                cmocka_unit_test_setup_teardown(a_duplicate_name_changes_nothing, begin, end),
                cmocka_unit_test_setup_teardown(a_lost_or_stopped_adapter_says_why, begin, end),
                cmocka_unit_test_setup_teardown(received_events_name_adapter_and_platform, begin,
                                                end),
                cmocka_unit_test_setup_teardown(a_send_to_a_missing_adapter_is_retried, begin, end),
                cmocka_unit_test_setup_teardown(pending_refusals_are_freed_with_the_registry, begin,
                                                end),
                cmocka_unit_test_setup_teardown(cli_and_api_get_text_as_written, begin, end),
                cmocka_unit_test_setup_teardown(limits_default_to_the_platforms, begin, end),
                cmocka_unit_test_setup_teardown(state_changes_are_journaled, begin, end),
                cmocka_unit_test(configuration_errors_name_their_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
