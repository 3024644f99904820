/*
 * The simulated gateway: sessions, intents, close codes, compression, and its faults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/sim_dc.h"
#include "base/json.h"
#include "base/mem.h"
#include "sim/discord/dc_session.h"

#define AGENT 46593u /* guilds, messages, reactions, direct messages and reactions, content */

static json_t *connect_agent(struct sim_rig *r, struct sim_dc_link *l)
{
        json_t *ready = sim_dc_identify(r, l, AGENT);

        json_decref(sim_dc_event(l, "GUILD_CREATE"));
        return ready;
}

static void a_session_begins_with_ready_and_the_guilds(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        json_t *ready = sim_dc_identify(r, &l, AGENT), *guild = sim_dc_event(&l, "GUILD_CREATE");
        const json_t *channel = json_array_get(json_object_get(guild, "channels"), 0);

        assert_string_equal(json_str(json_object_get(ready, "user"), "id", ""), "900");
        assert_int_equal(json_array_size(json_object_get(ready, "guilds")), 1);
        assert_string_equal(json_str(guild, "id", ""), LAB);
        assert_string_equal(json_str(channel, "name", ""), "general");
        json_decref(ready);
        json_decref(guild);
        sim_dc_disconnect(&l);
}

static void heartbeats_are_acked_unless_muted(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        json_t *frame;

        sim_dc_connect(r, &l, "/", "");
        sim_rig_control_ok(r, "faults", "{\"kind\":\"mute\",\"method\":\"heartbeat\"}");
        sim_dc_send(&l, "{\"op\":1,\"d\":null}"); /* gets no ACK */
        sim_dc_send(&l, "{\"op\":1,\"d\":7}");
        frame = sim_dc_receive(&l);
        assert_int_equal(json_int(frame, "op", -1), 11);
        json_decref(frame);
        frame = sim_rig_control(r, "links?kind=heartbeat", NULL);
        assert_int_equal(json_array_size(json_object_get(frame, "items")), 2);
        json_decref(frame);
        assert_int_equal(l.count, 0);
        sim_dc_disconnect(&l);
}

/* ---- intents ---- */

static void without_the_intent_content_is_hidden(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        json_t *m;

        json_decref(sim_dc_identify(r, &l, AGENT & ~(1u << 15)));
        sim_rig_control_ok(
                r, "send",
                "{\"channel\":\"general\",\"text\":\"secret\",\"embeds\":[{}],\"files\":[{}]}");
        m = sim_dc_event(&l, "MESSAGE_CREATE");
        assert_string_equal(json_str(m, "content", "?"), "");
        assert_int_equal(json_array_size(json_object_get(m, "attachments")), 0);
        json_decref(m);
        sim_rig_control_ok(r, "send", "{\"channel\":\"general\",\"text\":\"<@dragoman> open\"}");
        m = sim_dc_event(&l, "MESSAGE_CREATE");
        assert_string_equal(json_str(m, "content", ""), "<@900> open");
        json_decref(m);
        sim_rig_control_ok(r, "send", "{\"text\":\"direct\"}");
        m = sim_dc_event(&l, "MESSAGE_CREATE");
        assert_string_equal(json_str(m, "content", ""), "direct");
        json_decref(m);
        sim_dc_disconnect(&l);
}

static void events_without_their_intent_are_not_sent(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        json_t *said, *m;
        char *request;

        json_decref(sim_dc_identify(r, &l, 1u << 0 | 1u << 9));
        said = sim_rig_control(r, "send", "{\"channel\":\"general\",\"text\":\"one\"}");
        request = mem_printf("{\"message_id\":\"%s\",\"emoji\":\"👍\"}",
                             json_str(said, "message_id", ""));
        sim_rig_control_ok(r, "react", request);
        sim_rig_control_ok(r, "typing", "{\"channel\":\"general\"}");
        sim_rig_control_ok(r, "send", "{\"text\":\"direct\"}");
        sim_rig_control_ok(r, "send", "{\"channel\":\"general\",\"text\":\"two\"}");
        json_decref(sim_dc_event(&l, "GUILD_CREATE"));
        m = sim_dc_receive(&l);
        assert_string_equal(json_str(m, "t", ""), "MESSAGE_CREATE");
        json_decref(m);
        m = sim_dc_receive(&l);
        assert_string_equal(json_str(m, "t", ""), "MESSAGE_CREATE");
        json_decref(m);
        free(request);
        json_decref(said);
        sim_dc_disconnect(&l);
}

/* ---- close codes ---- */

static void each_mistake_has_its_close_code(void **state)
{
        static const struct {
                const char *frame;
                int code;
        } rows[] = {
                { "{\"op\":99}", 4001 },
                { "no json", 4002 },
                { "{\"op\":3,\"d\":{}}", 4003 },
                { "{\"op\":2,\"d\":{\"token\":\"wrong\",\"intents\":0}}", 4004 },
                { "{\"op\":2,\"d\":{\"token\":\"" TOKEN "\",\"intents\":0,\"shard\":[2,2]}}",
                  4010 },
                { "{\"op\":2,\"d\":{\"token\":\"" TOKEN "\",\"intents\":0}}", 4011 },
                { "{\"op\":2,\"d\":{\"token\":\"" TOKEN
                  "\",\"intents\":1073741824,\"shard\":[0,2]}}",
                  4013 },
                { "{\"op\":2,\"d\":{\"token\":\"" TOKEN "\",\"intents\":2,\"shard\":[0,2]}}",
                  4014 },
        };
        struct sim_rig *r = *state;

        sim_rig_control_ok(r, "settings", "{\"min_shards\":2}");
        sim_rig_control_ok(r, "bots", "{\"bot\":\"dragoman\",\"intents\":[\"MESSAGE_CONTENT\"]}");
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct sim_dc_link l;

                sim_dc_connect(r, &l, "/", "");
                sim_dc_send(&l, rows[i].frame);
                assert_int_equal(sim_dc_close_code(&l), rows[i].code);
                sim_dc_disconnect(&l);
        }
}

static void identifying_twice_or_flooding_closes(void **state)
{
        static const char identify[] = "{\"op\":2,\"d\":{\"token\":\"" TOKEN "\",\"intents\":0}}";
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        char *large = mem_zalloc(5000);

        json_decref(sim_dc_identify(r, &l, 0));
        sim_dc_send(&l, identify);
        assert_int_equal(sim_dc_close_code(&l), 4005);
        sim_dc_disconnect(&l);
        sim_dc_connect(r, &l, "/", "");
        memset(large, ' ', 4999);
        large[0] = '{';
        large[4998] = '}';
        sim_dc_send(&l, large);
        assert_int_equal(sim_dc_close_code(&l), 4002);
        sim_dc_disconnect(&l);
        free(large);
        sim_rig_control_ok(r, "settings", "{\"limits\":true}");
        sim_dc_connect(r, &l, "/", "");
        for (int i = 0; i < 121; i++)
                sim_dc_send(&l, "{\"op\":1,\"d\":null}");
        assert_int_equal(sim_dc_close_code(&l), 4008);
        sim_dc_disconnect(&l);
}

/* ---- resuming ---- */

/* Disconnects and reconnects with RESUME at this seq. */
static void resume(struct sim_rig *r, struct sim_dc_link *l, const char *session, int seq)
{
        char *frame = mem_printf("{\"op\":6,\"d\":{\"token\":\"" TOKEN
                                 "\",\"session_id\":\"%s\",\"seq\":%d}}",
                                 session, seq);

        sim_dc_disconnect(l);
        sim_dc_connect(r, l, "/resume", "");
        sim_dc_send(l, frame);
        free(frame);
}

static void resume_replays_missed_events_with_their_seq(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        json_t *ready = connect_agent(r, &l), *frame;

        sim_rig_control_ok(r, "send", "{\"channel\":\"general\",\"text\":\"seen\"}");
        json_decref(sim_dc_event(&l, "MESSAGE_CREATE"));
        sim_rig_control_ok(r, "gateway", "{\"action\":\"cut\"}");
        assert_int_equal(sim_dc_close_code(&l), WEBSOCKET_ABNORMAL);
        sim_rig_control_ok(r, "send", "{\"channel\":\"general\",\"text\":\"missed\"}");
        resume(r, &l, json_str(ready, "session_id", ""), 3);
        frame = sim_dc_receive(&l);
        assert_int_equal(json_int(frame, "s", -1), 4);
        assert_string_equal(json_str(json_object_get(frame, "d"), "content", ""), "missed");
        json_decref(frame);
        json_decref(sim_dc_event(&l, "RESUMED"));
        json_decref(ready);
        sim_dc_disconnect(&l);
}

static void an_expired_session_is_refused(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        json_t *ready = connect_agent(r, &l), *frame;

        resume(r, &l, json_str(ready, "session_id", ""), 99);
        assert_int_equal(sim_dc_close_code(&l), 4007);
        sim_rig_control_ok(r, "faults", "{\"kind\":\"refuse\",\"method\":\"resume\"}");
        resume(r, &l, json_str(ready, "session_id", ""), 2);
        frame = sim_dc_receive(&l);
        assert_int_equal(json_int(frame, "op", -1), 9);
        assert_false(json_flag(frame, "d", true));
        json_decref(frame);
        sim_rig_control_ok(r, "gateway", "{\"action\":\"expire\"}");
        resume(r, &l, json_str(ready, "session_id", ""), 2);
        frame = sim_dc_receive(&l);
        assert_int_equal(json_int(frame, "op", -1), 9);
        json_decref(frame);
        json_decref(ready);
        sim_dc_disconnect(&l);
}

static void a_lost_session_ends_after_a_while(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;

        sim_rig_control_ok(r, "settings", "{\"resume_ms\":1}");
        json_decref(connect_agent(r, &l));
        assert_false(LIST_EMPTY(&r->world->gateway->sessions));
        sim_dc_disconnect(&l);
        while (!LIST_EMPTY(&r->world->gateway->sessions))
                assert_true(loop_step(r->loop, true));
}

static void exceeding_the_daily_starts_resets_the_token(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        json_t *answer;

        sim_rig_control_ok(r, "bots", "{\"bot\":\"dragoman\",\"starts_left\":1}");
        json_decref(sim_dc_identify(r, &l, 0));
        sim_dc_disconnect(&l);
        answer = sim_dc_call(r, NULL, "/gateway/bot", NULL, 200);
        assert_int_equal(json_int(json_object_get(answer, "session_start_limit"), "remaining", -1),
                         0);
        json_decref(answer);
        sim_dc_connect(r, &l, "/", "");
        sim_dc_send(&l, "{\"op\":2,\"d\":{\"token\":\"" TOKEN "\",\"intents\":0}}");
        assert_int_equal(sim_dc_close_code(&l), 4004);
        sim_dc_disconnect(&l);
        sim_dc_refused(r, NULL, "/users/@me", NULL, 401, 0);
}

/* ---- compression, shards, faults ---- */

static void streams_are_compressed_on_request(void **state)
{
        static const char *const names[] = { "zlib-stream", "zstd-stream" };
        struct sim_rig *r = *state;

        for (size_t i = 0; i < COUNT(names); i++) {
                struct sim_dc_link l;
                json_t *m;

                sim_dc_connect(r, &l, "/", names[i]);
                sim_dc_send(&l, "{\"op\":2,\"d\":{\"token\":\"" TOKEN "\",\"intents\":46593}}");
                json_decref(sim_dc_event(&l, "GUILD_CREATE"));
                sim_rig_control_ok(r, "send", "{\"channel\":\"general\",\"text\":\"compressed\"}");
                m = sim_dc_event(&l, "MESSAGE_CREATE");
                assert_string_equal(json_str(m, "content", ""), "compressed");
                json_decref(m);
                sim_dc_disconnect(&l);
        }
}

static void a_guild_belongs_to_one_shard(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l[2];
        json_t *ready;

        sim_rig_control_ok(r, "guilds",
                           "{\"id\":\"4194304\",\"name\":\"Other\"}"); /* 1 << 22: shard 1 of 2 */
        for (int i = 0; i < 2; i++) {
                char *frame = mem_printf("{\"op\":2,\"d\":{\"token\":\"" TOKEN
                                         "\",\"intents\":46593,\"shard\":[%d,2]}}",
                                         i);
                const json_t *guilds;

                sim_dc_connect(r, &l[i], "/", "");
                sim_dc_send(&l[i], frame);
                ready = sim_dc_event(&l[i], "READY");
                guilds = json_object_get(ready, "guilds");
                assert_int_equal(json_array_size(guilds), 1);
                assert_string_equal(json_str(json_array_get(guilds, 0), "id", ""),
                                    i ? "4194304" : LAB);
                json_decref(ready);
                json_decref(sim_dc_event(&l[i], "GUILD_CREATE"));
                free(frame);
        }
        sim_rig_control_ok(r, "send", "{\"text\":\"direct messages are the first shard's\"}");
        json_decref(sim_dc_event(&l[0], "MESSAGE_CREATE"));
        assert_int_equal(l[1].count, 0);
        sim_dc_disconnect(&l[0]);
        sim_dc_disconnect(&l[1]);
}

static void events_are_duplicated_or_dropped_on_request(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        json_t *first, *second;

        json_decref(connect_agent(r, &l));
        sim_rig_control_ok(r, "faults", "{\"kind\":\"drop\",\"method\":\"MESSAGE_CREATE\"}");
        sim_rig_control_ok(r, "send", "{\"channel\":\"general\",\"text\":\"lost\"}");
        sim_rig_control_ok(r, "faults", "{\"kind\":\"duplicate\",\"method\":\"MESSAGE_CREATE\"}");
        sim_rig_control_ok(r, "send", "{\"channel\":\"general\",\"text\":\"doubled\"}");
        first = sim_dc_event(&l, "MESSAGE_CREATE");
        second = sim_dc_event(&l, "MESSAGE_CREATE");
        assert_string_equal(json_str(first, "content", ""), "doubled");
        assert_string_equal(json_str(first, "id", ""), json_str(second, "id", ""));
        json_decref(first);
        json_decref(second);
        sim_dc_disconnect(&l);
}

static void the_gateway_misbehaves_on_request(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        json_t *frame;

        json_decref(connect_agent(r, &l));
        sim_rig_control_ok(r, "gateway", "{\"action\":\"reconnect\"}");
        frame = sim_dc_receive(&l);
        assert_int_equal(json_int(frame, "op", -1), 7);
        json_decref(frame);
        sim_rig_control_ok(r, "gateway", "{\"action\":\"heartbeat\"}");
        frame = sim_dc_receive(&l);
        assert_int_equal(json_int(frame, "op", -1), 1);
        json_decref(frame);
        sim_rig_control_ok(r, "gateway", "{\"action\":\"invalid_session\",\"resumable\":true}");
        frame = sim_dc_receive(&l);
        assert_true(json_flag(frame, "d", false));
        json_decref(frame);
        sim_rig_control_ok(r, "gateway", "{\"action\":\"close\",\"code\":4014}");
        assert_int_equal(sim_dc_close_code(&l), 4014);
        sim_dc_disconnect(&l);
}

static void padding_makes_guild_create_large(void **state)
{
        struct sim_rig *r = *state;
        struct sim_dc_link l;
        json_t *guild;

        sim_rig_control_ok(r, "guilds", "{\"id\":\"" LAB "\",\"members\":500,\"channels\":50}");
        json_decref(sim_dc_identify(r, &l, AGENT));
        guild = sim_dc_event(&l, "GUILD_CREATE");
        assert_int_equal(json_array_size(json_object_get(guild, "members")), 502);
        assert_int_equal(json_array_size(json_object_get(guild, "channels")), 51);
        assert_true(json_flag(guild, "large", false));
        json_decref(guild);
        sim_dc_disconnect(&l);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, sim_dc_setup, sim_dc_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_session_begins_with_ready_and_the_guilds),
                TEST(heartbeats_are_acked_unless_muted),
                TEST(without_the_intent_content_is_hidden),
                TEST(events_without_their_intent_are_not_sent),
                TEST(each_mistake_has_its_close_code),
                TEST(identifying_twice_or_flooding_closes),
                TEST(resume_replays_missed_events_with_their_seq),
                TEST(an_expired_session_is_refused),
                TEST(a_lost_session_ends_after_a_while),
                TEST(exceeding_the_daily_starts_resets_the_token),
                TEST(streams_are_compressed_on_request),
                TEST(a_guild_belongs_to_one_shard),
                TEST(events_are_duplicated_or_dropped_on_request),
                TEST(the_gateway_misbehaves_on_request),
                TEST(padding_makes_guild_create_large),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
