/* The intake of Discord: events in order, acknowledged after the commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "../lib/fake_server.h"
#include "discord_intake_rig.h"

/* ---- messages ---- */

static void a_message_is_acknowledged_after_its_commit(void **state)
{
        struct rig *g = *state;

        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        assert_string_equal(key(0), "100");
        assert_string_equal(fake_road.received.adapter, "dc");
        assert_int_equal(uncommitted(g), 1); /* the guild before it needs no commit */
        fake_road_ack(0, ERR_NONE);
        assert_int_equal(uncommitted(g), 0);
        assert_int_equal(g->get_count, 0);
}

static void other_events_do_not_hold_the_sequence(void **state)
{
        struct rig *g = *state;

        connected(g);
        fake_dispatch(&g->fake, g->fake.last, "TYPING_START", "{\"channel_id\":\"10\"}");
        fake_dispatch(&g->fake, g->fake.last, "MESSAGE_CREATE",
                      "{\"id\":\"9\",\"channel_id\":\"10\",\"type\":7}");
        fake_dispatch(&g->fake, g->fake.last, "SOMETHING_NEW", "[1,2]");
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        assert_int_equal(uncommitted(g), 1);
}

/* The journal has what the bot does as deliveries. */
static void what_the_bot_does_is_not_stored_again(void **state)
{
        struct rig *g = *state;

        connected(g);
        fake_dispatch(&g->fake, g->fake.last, "MESSAGE_CREATE",
                      "{\"id\":\"90\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"type\":0,"
                      "\"content\":\"ours\",\"author\":{\"id\":\"42\",\"bot\":true}}");
        fake_dispatch(
                &g->fake, g->fake.last, "MESSAGE_UPDATE",
                "{\"id\":\"90\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"type\":0,"
                "\"content\":\"ours!\",\"edited_timestamp\":\"2026-01-01T00:00:00.000000+00:00\","
                "\"author\":{\"id\":\"42\",\"bot\":true}}");
        fake_dispatch(&g->fake, g->fake.last, "MESSAGE_REACTION_ADD",
                      "{\"user_id\":\"42\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"message_id\":"
                      "\"90\",\"emoji\":{\"name\":\"x\"}}");
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        assert_string_equal(key(0), "100");
        assert_int_equal(uncommitted(g), 1);
        assert_int_equal(g->owns, 1); /* looked at for another process with the same token */
}

static void a_refused_message_is_offered_again(void **state)
{
        struct rig *g = *state;

        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_LIMIT);
        assert_int_equal(uncommitted(g), 1);
        await(g, &fake_road.received_count, 2);
        assert_string_equal(key(1), "100");
        fake_road_ack(1, ERR_NONE);
        assert_int_equal(uncommitted(g), 0);
}

static void an_unstorable_message_is_dropped(void **state)
{
        struct rig *g = *state;

        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_INVALID);
        assert_int_equal(uncommitted(g), 0);
}

static void an_unknown_channel_is_looked_up_once_in_order(void **state)
{
        struct rig *g = *state;

        connected(g);
        write_in(g, "20", "1", "100", "");
        write_in(g, "20", "1", "101", "");
        write_in(g, "10", "1", "102", "");
        await(g, &fake_road.received_count, 1);
        assert_string_equal(key(0), "102"); /* others do not wait for it */
        assert_int_equal(g->get_count, 1);
        assert_string_equal(g->gets[0].path, "/channels/20");
        answer(g, 0, 200,
               "{\"id\":\"20\",\"type\":11,\"parent_id\":\"10\",\"name\":\"topic\","
               "\"guild_id\":\"1\"}");
        assert_int_equal(fake_road.received_count, 3);
        assert_string_equal(key(1), "100");
        assert_string_equal(key(2), "101");
        assert_string_equal(fake_road.received.channel, "10");
        assert_string_equal(fake_road.received.thread, "20");
}

static void a_channel_discord_hides_is_a_plain_one(void **state)
{
        struct rig *g = *state;
        struct dc_channel_info place;

        connected(g);
        write_in(g, "20", "1", "100", "");
        await(g, &g->get_count, 1);
        answer(g, 0, 403, NULL);
        assert_int_equal(fake_road.received_count, 1);
        write_in(g, "20", "1", "101", "");
        await(g, &fake_road.received_count, 2);
        assert_int_equal(g->get_count, 1);
        assert_true(dc_intake_channel(g->in, "20", &place));
        assert_string_equal(place.guild, "1");
        assert_string_equal(dc_intake_user_named(g->in, "ann"), "5");
}

/* A thread mistaken for a channel would escape the rules of its channel. */
static void a_channel_lookup_retries(void **state)
{
        struct rig *g = *state;

        connected(g);
        write_in(g, "20", "1", "100", "");
        await(g, &g->get_count, 1);
        answer(g, 0, 503, NULL);
        assert_int_equal(fake_road.received_count, 0);
        await(g, &g->get_count, 2);
        assert_string_equal(g->gets[1].path, "/channels/20");
        answer(g, 1, 200,
               "{\"id\":\"20\",\"type\":11,\"parent_id\":\"10\",\"name\":\"topic\","
               "\"guild_id\":\"1\"}");
        assert_int_equal(fake_road.received_count, 1);
        assert_string_equal(fake_road.received.channel, "10");
        assert_string_equal(fake_road.received.thread, "20");
}

static void a_dm_shows_where_a_person_is_reached(void **state)
{
        struct rig *g = *state;

        connected(g);
        write_in(g, "500", "", "100", "");
        await(g, &fake_road.received_count, 1);
        assert_int_equal(g->dms, 0);
        fake_road_ack(0, ERR_NONE);
        assert_string_equal(g->dm, "5 in 500");
}

/* Its sender has not been judged yet; the turn that needs the files fetches them. */
static void a_message_is_stored_without_its_files(void **state)
{
        struct rig *g = *state;
        struct fake_server *cdn = fake_server_new(g->loop, NULL, 0); /* never answers */
        char *more =
                mem_printf(",\"attachments\":[{\"id\":\"70\",\"filename\":\"a.txt\",\"size\":9,"
                           "\"url\":\"http://127.0.0.1:%d/a.txt\"}]",
                           fake_server_port(cdn));

        connected(g);
        write_in(g, "10", "1", "100", more);
        write_in(g, "10", "1", "101", "");
        await(g, &fake_road.received_count, 2);
        assert_string_equal(key(0), "100");
        assert_int_equal(fake_road.arrivals[0].attachments, 1);
        assert_string_equal(key(1), "101");
        assert_int_equal(fake_server_accepted(cdn), 0);
        free(more);
        fake_server_free(cdn);
}

/* ---- interactions ---- */

#define COMMAND                                                                     \
        "{\"id\":\"2000\",\"type\":%d,\"token\":\"tok\",\"channel_id\":\"10\","     \
        "\"guild_id\":\"1\","                                                       \
        "\"member\":{"                                                              \
        "\"user\":{\"id\":\"5\",\"username\":\"ann\"}},\"data\":{\"name\":\"ask\"," \
        "\"options\":[{\"value\":"                                                  \
        "\"why?\"}]}}"

static void an_interaction_is_acknowledged_after_its_commit(void **state)
{
        struct rig *g = *state;
        char command[400];

        connected(g);
        snprintf(command, sizeof(command), COMMAND, 2);
        fake_dispatch(&g->fake, g->fake.last, "INTERACTION_CREATE", command);
        await(g, &fake_road.received_count, 1);
        assert_string_equal(fake_road.arrivals[0].text, "why?");
        assert_int_equal(g->stored, 0);
        fake_road_ack(0, ERR_NONE);
        assert_int_equal(g->stored, 1);
        assert_string_equal(g->interaction, "tok");
        assert_int_equal(uncommitted(g), 0);
        snprintf(command, sizeof(command), COMMAND, 4); /* autocompletion: ignored */
        fake_dispatch(&g->fake, g->fake.last, "INTERACTION_CREATE", command);
        snprintf(command, sizeof(command), COMMAND, 2);
        fake_dispatch(&g->fake, g->fake.last, "INTERACTION_CREATE", command);
        await(g, &fake_road.received_count, 2);
        assert_int_equal(uncommitted(g), 1);
        fake_road_ack(1, ERR_NONE);
        assert_int_equal(uncommitted(g), 0);
}

/* It has three seconds, even while a session is read back. */
static void an_interaction_does_not_wait_for_earlier_events(void **state)
{
        struct rig *g = *state;
        char command[400];

        connected(g);
        intake_hold(&g->in->window, "10");
        write_in(g, "10", "1", "100", "");
        snprintf(command, sizeof(command), COMMAND, 2);
        fake_dispatch(&g->fake, g->fake.last, "INTERACTION_CREATE", command);
        await(g, &fake_road.received_count, 1);
        assert_string_equal(key(0), "interaction:2000");
        fake_road_ack(0, ERR_NONE);
        assert_int_equal(g->stored, 1);
        assert_true(uncommitted(g) > 0); /* the message would be replayed after a crash */
        close_it(g);
}

static int posted;

static void on_posted(void *arg, bool ok)
{
        (void)arg;
        posted = ok ? 1 : -1;
}

static void an_interaction_over_http_is_answered_by_its_post(void **state)
{
        struct rig *g = *state;
        char command[400];
        json_t *j;

        connected(g);
        snprintf(command, sizeof(command), COMMAND, 2);
        j = json_read(command, strlen(command), NULL);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        posted = 0;
        dc_intake_post(g->in, j, on_posted, NULL);
        assert_int_equal(posted, 0);
        fake_road_ack(1, ERR_NONE);
        assert_int_equal(posted, 1);
        assert_int_equal(g->stored, 0); /* the post itself is the acknowledgement */
        dc_intake_post(g->in, j, on_posted, NULL);
        fake_road_ack(2, ERR_LIMIT);
        assert_int_equal(posted, -1);
        posted = 0;
        dc_intake_post(g->in, j, on_posted, NULL);
        close_it(g);
        assert_int_equal(posted, -1);
        json_decref(j);
}

/* ---- members ---- */

static void live_events_without_a_member_are_looked_up(void **state)
{
        struct rig *g = *state;

        connected(g);
        fake_dispatch(
                &g->fake, g->fake.last, "MESSAGE_REACTION_REMOVE",
                "{\"user_id\":\"5\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"message_id\":\"8\","
                "\"emoji\":{\"id\":null,\"name\":\"x\"}}");
        await(g, &g->member_count, 1);
        answer_member(g, 200, "{\"roles\":[\"77\"],\"user\":{\"id\":\"5\",\"username\":\"ann\"}}");
        assert_int_equal(fake_road.received_count, 1);
        assert_non_null(strstr(metadata(), "\"roles\":[\"77\"]"));
        fake_dispatch(
                &g->fake, g->fake.last, "MESSAGE_UPDATE",
                "{\"id\":\"8\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"content\":\"changed\","
                "\"edited_timestamp\":\"2026-01-02T03:04:05.000000+00:00\","
                "\"author\":{\"id\":\"5\",\"username\":\"ann\"}}");
        await(g, &fake_road.received_count, 2);
        assert_int_equal(g->member_count, 1); /* the result is used for a while */
        assert_non_null(strstr(metadata(), "\"roles\":[\"77\"]"));
}

static void dms_and_webhooks_need_no_member(void **state)
{
        struct rig *g = *state;

        connected(g);
        write_in(g, "30", "", "100", "");
        fake_dispatch(
                &g->fake, g->fake.last, "MESSAGE_CREATE",
                "{\"id\":\"101\",\"channel_id\":\"10\",\"guild_id\":\"1\",\"content\":\"news\","
                "\"webhook_id\":\"6\",\"author\":{\"id\":\"6\",\"username\":\"feed\"}}");
        await(g, &fake_road.received_count, 2);
        assert_int_equal(g->member_count, 0);
}

static void a_waiting_event_does_not_stop_other_channels(void **state)
{
        struct rig *g = *state;

        connected(g);
        write_in(g, "20", "1", "100", "");
        await(g, &g->get_count, 1);
        for (unsigned i = 0; i < 3000; i++) {
                fake_dispatch(&g->fake, g->fake.last, "TYPING_START", "{}");
                if (i % 100 == 0)
                        loop_step(g->loop, false);
        }
        write_in(g, "10", "1", "101", "");
        await(g, &fake_road.received_count, 1);
        assert_string_equal(key(0), "101");
        assert_int_equal(uncommitted(g), 2);
}

/* ---- the token ---- */

static void a_bad_token_is_reported(void **state)
{
        struct rig *g = *state;

        g->fake.identify = 4004;
        begin(g);
        await(g, &g->stops, 1);
        assert_true(g->bad_token);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                T(a_message_is_acknowledged_after_its_commit),
                T(other_events_do_not_hold_the_sequence),
                T(what_the_bot_does_is_not_stored_again),
                T(a_refused_message_is_offered_again),
                T(an_unstorable_message_is_dropped),
                T(an_unknown_channel_is_looked_up_once_in_order),
                T(a_channel_discord_hides_is_a_plain_one),
                T(a_channel_lookup_retries),
                T(a_dm_shows_where_a_person_is_reached),
                T(a_message_is_stored_without_its_files),
                T(an_interaction_is_acknowledged_after_its_commit),
                T(an_interaction_does_not_wait_for_earlier_events),
                T(an_interaction_over_http_is_answered_by_its_post),
                T(live_events_without_a_member_are_looked_up),
                T(dms_and_webhooks_need_no_member),
                T(a_waiting_event_does_not_stop_other_channels),
                T(a_bad_token_is_reported),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
