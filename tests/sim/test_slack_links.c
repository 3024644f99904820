/*
 * Socket Mode and the Events API of the simulated Slack: envelopes, acks, retries, refreshes, posts
 * with signatures, and their faults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/sim_sl.h"
#include "base/json.h"
#include "base/mem.h"

static void say(struct sim_rig *r, const char *text)
{
        char *request = mem_printf("{\"channel\":\"general\",\"text\":\"%s\"}", text);

        sim_rig_control_ok(r, "send", request);
        free(request);
}

static const json_t *event_of(const json_t *envelope)
{
        return json_object_get(json_object_get(envelope, "payload"), "event");
}

static const char *event_id_of(const json_t *envelope)
{
        return json_str(json_object_get(envelope, "payload"), "event_id", "");
}

/* ---- Socket Mode ---- */

static void hello_counts_the_connections_of_the_app(void **state)
{
        struct sim_sl_link one, two;
        json_t *hello;

        sim_sl_connect(*state, &one, "");
        hello = sim_sl_receive(&one);
        assert_string_equal(json_str(hello, "type", ""), "hello");
        assert_int_equal(json_int(hello, "num_connections", 0), 1);
        assert_string_equal(json_str(json_object_get(hello, "connection_info"), "app_id", ""),
                            sim_sl_world(*state)->apps->id);
        json_decref(hello);
        sim_sl_connect(*state, &two, "");
        hello = sim_sl_receive(&two);
        assert_int_equal(json_int(hello, "num_connections", 0), 2);
        json_decref(hello);
        sim_sl_disconnect(&one);
        sim_sl_disconnect(&two);
}

static void a_ticket_that_is_unknown_or_used_opens_nothing(void **state)
{
        struct sim_sl_link l;

        sim_sl_connect(*state, &l, "&ticket=wrong");
        assert_int_equal(sim_sl_close_code(&l), 1008);
        sim_sl_disconnect(&l);
}

static void an_event_has_an_envelope_and_what_slack_wraps_around_it(void **state)
{
        struct sim_sl_link l;
        json_t *envelope;
        const json_t *payload, *event;

        sim_sl_hello(*state, &l);
        say(*state, "hello");
        envelope = sim_sl_event(&l, "message", true);
        payload = json_object_get(envelope, "payload");
        event = json_object_get(payload, "event");
        assert_string_equal(json_str(envelope, "type", ""), "events_api");
        assert_false(json_flag(envelope, "accepts_response_payload", true));
        assert_int_equal(json_int(envelope, "retry_attempt", -1), 0);
        assert_string_equal(json_str(envelope, "retry_reason", "?"), "");
        assert_string_equal(json_str(payload, "type", ""), "event_callback");
        assert_string_equal(json_str(payload, "api_app_id", ""), sim_sl_world(*state)->apps->id);
        assert_int_equal(json_array_size(json_object_get(payload, "authorizations")), 1);
        assert_string_equal(json_str(event, "text", ""), "hello");
        assert_string_equal(json_str(event, "user", ""), SL_ADA);
        assert_non_null(json_str(event, "client_msg_id", NULL));
        assert_non_null(json_str(event, "event_ts", NULL));
        json_decref(envelope);
        sim_sl_disconnect(&l);
}

static void payloads_are_spread_over_the_connections(void **state)
{
        struct sim_sl_link one, two;

        sim_sl_hello(*state, &one);
        sim_sl_hello(*state, &two);
        for (int i = 0; i < 4; i++)
                say(*state, "hello");
        for (int i = 0; i < 2; i++) {
                json_decref(sim_sl_event(&one, "message", true));
                json_decref(sim_sl_event(&two, "message", true));
        }
        assert_int_equal(one.count + two.count, 0);
        sim_sl_disconnect(&one);
        sim_sl_disconnect(&two);
}

static void what_is_not_acknowledged_comes_again_three_times(void **state)
{
        struct sim_sl_link l;
        json_t *envelope, *dropped;
        char first[64] = "", id[40] = "";
        int64_t seen = 0;

        sim_rig_control_ok(*state, "settings", "{\"ack_ms\":20,\"retry_2_ms\":1,\"retry_3_ms\":1}");
        sim_sl_hello(*state, &l);
        say(*state, "anyone?");
        for (int i = 0; i <= 3; i++) {
                envelope = sim_sl_event(&l, "message", false);
                assert_int_equal(json_int(envelope, "retry_attempt", -1), i);
                assert_string_equal(json_str(envelope, "retry_reason", "?"), i ? "timeout" : "");
                if (i == 0)
                        snprintf(first, sizeof(first), "%s", event_id_of(envelope));
                assert_string_equal(event_id_of(envelope), first);
                assert_string_not_equal(json_str(envelope, "envelope_id", ""), id);
                snprintf(id, sizeof(id), "%s", json_str(envelope, "envelope_id", ""));
                json_decref(envelope);
        }
        dropped = sim_sl_entry(*state, "dropped", &seen);
        assert_string_equal(json_str(dropped, "event_id", ""), first);
        json_decref(dropped);
        sim_sl_disconnect(&l);
}

static void what_happens_without_a_connection_comes_as_a_retry(void **state)
{
        struct sim_sl_link l;
        json_t *envelope;

        sim_rig_control_ok(*state, "settings",
                           "{\"ack_ms\":300,\"retry_2_ms\":5000,\"retry_3_ms\":20000}");
        say(*state, "while away");
        sim_sl_hello(*state, &l);
        envelope = sim_sl_event(&l, "message", true);
        assert_true(json_int(envelope, "retry_attempt", -1) >= 1);
        json_decref(envelope);
        sim_sl_disconnect(&l);
}

static void the_ack_of_an_earlier_attempt_counts(void **state)
{
        struct sim_sl_link l;
        json_t *first, *entry;
        int64_t seen = 0;

        sim_rig_control_ok(*state, "settings", "{\"ack_ms\":20,\"retry_1_ms\":60000}");
        sim_sl_hello(*state, &l);
        say(*state, "slow");
        first = sim_sl_event(&l, "message", false);
        json_decref(sim_sl_entry(*state, "retry", &seen));
        sim_sl_ack(&l, first, NULL);
        entry = sim_sl_entry(*state, "ack", &seen);
        assert_string_equal(json_str(entry, "event_id", ""), event_id_of(first));
        json_decref(entry);
        json_decref(first);
        entry = sim_rig_control(*state, "state", NULL);
        assert_int_equal(json_int(entry, "unacknowledged", -1), 0);
        json_decref(entry);
        sim_sl_disconnect(&l);
}

static void faults_drop_repeat_delay_and_reorder_events(void **state)
{
        struct sim_rig *r = *state;
        struct sim_sl_link l;
        const char *wanted[] = { "kept", "twice", "twice", "second", "first", "soon", "late" };
        json_t *envelope;

        sim_sl_hello(r, &l);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"drop\",\"method\":\"message\"}");
        say(r, "lost");
        say(r, "kept");
        sim_rig_control_ok(r, "faults", "{\"kind\":\"duplicate\",\"method\":\"message\"}");
        say(r, "twice");
        for (size_t i = 0; i < 3; i++) {
                envelope = sim_sl_event(&l, "message", true);
                assert_string_equal(json_str(event_of(envelope), "text", ""), wanted[i]);
                json_decref(envelope);
        }
        sim_rig_control_ok(r, "faults",
                           "{\"kind\":\"reorder\",\"method\":\"message\",\"ms\":60000}");
        say(r, "first");
        say(r, "second");
        sim_rig_control_ok(r, "faults", "{\"kind\":\"slow\",\"method\":\"message\",\"ms\":1000}");
        say(r, "late");
        say(r, "soon");
        for (size_t i = 3; i < COUNT(wanted); i++) {
                envelope = sim_sl_event(&l, "message", true);
                assert_string_equal(json_str(event_of(envelope), "text", ""), wanted[i]);
                json_decref(envelope);
        }
        sim_sl_disconnect(&l);
}

static void a_connection_is_warned_before_its_end(void **state)
{
        struct sim_rig *r = *state;
        struct sim_sl_link old, new;
        const char *reasons[] = { "warning", "refresh_requested" };
        json_t *frame;

        sim_rig_control_ok(r, "settings", "{\"connection_ms\":100}");
        sim_sl_hello(r, &old);
        sim_rig_control_ok(r, "settings", "{\"connection_ms\":0}");
        for (size_t i = 0; i < COUNT(reasons); i++) {
                frame = sim_sl_receive(&old);
                assert_string_equal(json_str(frame, "type", ""), "disconnect");
                assert_string_equal(json_str(frame, "reason", ""), reasons[i]);
                json_decref(frame);
        }
        assert_int_equal(sim_sl_close_code(&old), 1000);
        sim_sl_hello(r, &new);
        say(r, "hello");
        json_decref(sim_sl_event(&new, "message", true));
        sim_sl_disconnect(&old);
        sim_sl_disconnect(&new);
}

static void one_connection_too_many_is_refused(void **state)
{
        struct sim_sl_link one, two;
        json_t *frame;

        sim_rig_control_ok(*state, "settings", "{\"max_connections\":1}");
        sim_sl_hello(*state, &one);
        sim_sl_connect(*state, &two, "");
        frame = sim_sl_receive(&two);
        assert_string_equal(json_str(frame, "reason", ""), "too_many_websockets");
        json_decref(frame);
        assert_int_equal(sim_sl_close_code(&two), 1000);
        sim_sl_disconnect(&one);
        sim_sl_disconnect(&two);
}

static void socket_mode_that_is_switched_off_stays_off(void **state)
{
        struct sim_sl_link l, again;
        json_t *frame;

        sim_sl_hello(*state, &l);
        sim_rig_control_ok(*state, "gateway",
                           "{\"action\":\"disconnect\",\"reason\":\"link_disabled\"}");
        frame = sim_sl_receive(&l);
        assert_string_equal(json_str(frame, "reason", ""), "link_disabled");
        json_decref(frame);
        sim_sl_connect(*state, &again, "");
        frame = sim_sl_receive(&again);
        assert_string_equal(json_str(frame, "reason", ""), "link_disabled");
        json_decref(frame);
        sim_sl_disconnect(&l);
        sim_sl_disconnect(&again);
        sim_rig_control_ok(*state, "gateway", "{\"action\":\"enable\"}");
        sim_sl_hello(*state, &l);
        sim_sl_disconnect(&l);
}

static void a_revoked_app_hears_of_it_and_of_nothing_more(void **state)
{
        struct sim_sl_link l;

        sim_sl_hello(*state, &l);
        sim_rig_control_ok(*state, "gateway", "{\"action\":\"uninstall\"}");
        json_decref(sim_sl_event(&l, "tokens_revoked", true));
        json_decref(sim_sl_event(&l, "app_uninstalled", true));
        say(*state, "anyone?");
        assert_int_equal(l.count, 0);
        assert_string_equal(sim_sl_world(*state)->apps->token_error, "account_inactive");
        sim_sl_disconnect(&l);
}

static void expired_events_are_only_in_the_history(void **state)
{
        struct sim_rig *r = *state;
        struct sim_sl_link l;
        json_t *envelope, *history;

        say(r, "lost");
        sim_rig_control_ok(r, "gateway", "{\"action\":\"expire\"}");
        sim_sl_hello(r, &l);
        say(r, "next");
        envelope = sim_sl_event(&l, "message", true);
        assert_string_equal(json_str(event_of(envelope), "text", ""), "next");
        json_decref(envelope);
        history = sim_rig_control(r, "history?channel=general", NULL);
        assert_int_equal(json_array_size(json_object_get(history, "messages")), 2);
        json_decref(history);
        sim_sl_disconnect(&l);
}

static void only_events_of_the_named_app_expire(void **state)
{
        struct sim_rig *r = *state;
        json_t *page;

        sim_rig_control_ok(r, "apps", "{\"token\":\"xoxb-two\"}");
        say(r, "for both");
        sim_rig_control_ok(r, "gateway", "{\"action\":\"expire\",\"app\":\"dragoman\"}");
        page = sim_rig_control(r, "state", NULL);
        assert_int_equal(json_int(page, "unacknowledged", -1), 1);
        json_decref(page);
}

static void frames_that_are_no_acks_are_listed(void **state)
{
        struct sim_sl_link l;
        int64_t seen = 0;

        sim_sl_hello(*state, &l);
        sim_sl_send(&l, "no json");
        sim_sl_send(&l, "{\"payload\":{}}");
        json_decref(sim_sl_entry(*state, "bad_frame", &seen));
        json_decref(sim_sl_entry(*state, "bad_frame", &seen));
        sim_sl_disconnect(&l);
}

/* ---- commands and buttons ---- */

static void a_command_may_be_answered_in_its_ack(void **state)
{
        struct sim_sl_link l;
        json_t *envelope, *page;
        const json_t *entry;

        sim_sl_hello(*state, &l);
        sim_rig_control_ok(*state, "command",
                           "{\"channel\":\"general\",\"name\":\"ask\",\"text\":\"why\"}");
        envelope = sim_sl_event(&l, "/ask", false);
        assert_string_equal(json_str(envelope, "type", ""), "slash_commands");
        assert_true(json_flag(envelope, "accepts_response_payload", false));
        assert_string_equal(json_str(json_object_get(envelope, "payload"), "text", ""), "why");
        sim_sl_ack(&l, envelope, "{\"text\":\"because\"}");
        json_decref(envelope);
        page = sim_rig_control(*state, "messages?kind=ephemeral&wait=60000", NULL);
        entry = json_array_get(json_object_get(page, "items"), 0);
        assert_string_equal(json_str(entry, "text", ""), "because");
        assert_string_equal(json_str(entry, "user", ""), SL_ADA);
        json_decref(page);
        sim_sl_disconnect(&l);
}

static void a_command_is_not_retried(void **state)
{
        struct sim_sl_link l;
        json_t *entry;
        int64_t seen = 0;

        sim_rig_control_ok(*state, "settings", "{\"ack_ms\":20}");
        sim_sl_hello(*state, &l);
        sim_rig_control_ok(*state, "command", "{\"name\":\"ask\",\"text\":\"why\"}");
        entry = sim_sl_entry(*state, "dropped", &seen);
        assert_string_equal(json_str(entry, "type", ""), "slash_commands");
        assert_int_equal(json_int(entry, "attempt", -1), 0);
        json_decref(entry);
        sim_sl_disconnect(&l);
}

/* ---- the descriptions ---- */

/* Is there something at "debug_info.host"? */
static bool has_path(const json_t *value, const char *path)
{
        while (value && *path) {
                size_t n = strcspn(path, ".");
                char *name = mem_strndup(path, n);

                value = json_object_get(value, name);
                free(name);
                path += n + (path[n] == '.');
        }
        return value != NULL;
}

static void assert_frame(const json_t *frames, const json_t *frame)
{
        const json_t *row = json_object_get(frames, json_str(frame, "type", "")), *field;
        size_t i;

        assert_non_null(row);
        json_array_foreach(json_object_get(row, "fields"), i, field) {
                if (!has_path(frame, json_string_value(field)))
                        fail_msg("%s has no %s", json_str(frame, "type", ""),
                                 json_string_value(field));
        }
}

static void frames_and_events_have_the_members_of_the_descriptions(void **state)
{
        static const char *const acts[][2] = {
                { "send", "{\"channel\":\"general\",\"text\":\"<@dragoman> hello\"}" },
                { "members", "{\"from\":\"bob\",\"channel\":\"general\"}" },
                { "rename", "{\"channel\":\"general\",\"name\":\"lobby\"}" },
                { "command", "{\"name\":\"ask\"}" },
                { "gateway", "{\"action\":\"disconnect\",\"reason\":\"warning\"}" },
        };
        struct sim_rig *r = *state;
        json_t *hello,
                *supplement = json_load_file("tests/data/slack_supplement.json", 0, NULL),
                *events = json_load_file("tests/data/slack_events_api_async_v1.json", 0, NULL);
        const json_t *frames = json_object_get(json_object_get(supplement, "socket_mode"),
                                               "frames_in"),
                     *wrapper = json_object_get(
                             json_object_get(json_object_get(events, "components"), "schemas"),
                             "GenericEventWrapper"),
                     *name;
        struct sim_sl_link l;
        size_t i;

        sim_sl_connect(r, &l, "");
        hello = sim_sl_receive(&l);
        assert_frame(frames, hello);
        json_decref(hello);
        for (i = 0; i < COUNT(acts); i++)
                sim_rig_control_ok(r, acts[i][0], acts[i][1]);
        for (bool ended = false; !ended;) {
                json_t *frame = sim_sl_receive(&l);
                const json_t *payload = json_object_get(frame, "payload");

                assert_frame(frames, frame);
                ended = strcmp(json_str(frame, "type", ""), "disconnect") == 0;
                json_array_foreach(json_object_get(wrapper, "required"), i, name) {
                        /* Slack has replaced authed_users by authorizations */
                        if (json_object_get(payload, "event") &&
                            strcmp(json_string_value(name), "authed_users") != 0 &&
                            !json_object_get(payload, json_string_value(name)))
                                fail_msg("the event has no %s", json_string_value(name));
                }
                if (payload)
                        sim_sl_ack(&l, frame, NULL);
                json_decref(frame);
        }
        json_decref(supplement);
        json_decref(events);
        sim_sl_disconnect(&l);
}

int main(void)
{
#define LINK_TEST(name) cmocka_unit_test_setup_teardown(name, sim_sl_setup, sim_sl_teardown)
        const struct CMUnitTest tests[] = {
                LINK_TEST(hello_counts_the_connections_of_the_app),
                LINK_TEST(a_ticket_that_is_unknown_or_used_opens_nothing),
                LINK_TEST(an_event_has_an_envelope_and_what_slack_wraps_around_it),
                LINK_TEST(payloads_are_spread_over_the_connections),
                LINK_TEST(what_is_not_acknowledged_comes_again_three_times),
                LINK_TEST(what_happens_without_a_connection_comes_as_a_retry),
                LINK_TEST(the_ack_of_an_earlier_attempt_counts),
                LINK_TEST(faults_drop_repeat_delay_and_reorder_events),
                LINK_TEST(a_connection_is_warned_before_its_end),
                LINK_TEST(one_connection_too_many_is_refused),
                LINK_TEST(socket_mode_that_is_switched_off_stays_off),
                LINK_TEST(a_revoked_app_hears_of_it_and_of_nothing_more),
                LINK_TEST(expired_events_are_only_in_the_history),
                LINK_TEST(only_events_of_the_named_app_expire),
                LINK_TEST(frames_that_are_no_acks_are_listed),
                LINK_TEST(a_command_may_be_answered_in_its_ack),
                LINK_TEST(a_command_is_not_retried),
                LINK_TEST(frames_and_events_have_the_members_of_the_descriptions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
