/* What people do with scheduled events of Discord reaches the inbox: once, in order, also later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "discord_intake_rig.h"
#include "platform/discord/dc_scheduled_event.h"

#define EVENT(id, name, more)                                                       \
        "{\"id\":\"" id "\",\"guild_id\":\"1\",\"name\":\"" name "\",\"status\":1," \
        "\"creator_id\":\"5\",\"creator\":{\"id\":\"5\",\"username\":\"ann\"},"     \
        "\"scheduled_start_time\":\"2126-11-20T18:00:00+00:00\"" more "}"
#define INTEREST "{\"guild_scheduled_event_id\":\"77\",\"user_id\":\"5\",\"guild_id\":\"1\"}"
#define CREATE   "GUILD_SCHEDULED_EVENT_CREATE"
#define UPDATE   "GUILD_SCHEDULED_EVENT_UPDATE"
#define DELETE   "GUILD_SCHEDULED_EVENT_DELETE"
#define ADD      "GUILD_SCHEDULED_EVENT_USER_ADD"
#define REMOVE   "GUILD_SCHEDULED_EVENT_USER_REMOVE"
#define USERS    "/guilds/1/scheduled-events/77/users?limit=100&with_member=true"

static void say(struct rig *g, const char *type, const char *d)
{
        fake_dispatch(&g->fake, g->fake.last, type, d);
}

/* A server with these events, by a new session. */
static void introduce(struct rig *g, const char *events)
{
        char *guild = mem_printf("{\"id\":\"1\",\"name\":\"Home\",\"channels\":[],\"threads\":[],"
                                 "\"guild_scheduled_events\":[%s]}",
                                 events);

        say(g, "GUILD_CREATE", guild);
        free(guild);
}

static void expect(unsigned i, const char *metadata)
{
        if (!strstr(fake_road.arrivals[i].metadata, metadata))
                fail_msg("%s lacks %s", fake_road.arrivals[i].metadata, metadata);
}

static void changes_are_stored_before_the_sequence_moves(void **state)
{
        struct rig *g = *state;

        connected(g);
        say(g, CREATE, EVENT("77", "Catan", ""));
        say(g, UPDATE, EVENT("77", "Azul", ""));
        say(g, DELETE, EVENT("77", "Azul", ""));
        await(g, &fake_road.received_count, 3);
        assert_string_equal(key(0), "scheduled:77:create");
        assert_string_equal(key(2), "scheduled:77:delete");
        expect(0, "\"op\":\"put\"");
        expect(1, "\"title\":\"Azul\"");
        expect(2, "\"op\":\"delete\"");
        assert_string_equal(fake_road.received.channel, "guild:1");
        assert_string_equal(fake_road.received.type, EVENT_CALENDAR);
        assert_int_equal(uncommitted(g), 3);
        for (unsigned i = 0; i < 3; i++)
                fake_road_ack(i, ERR_NONE);
        assert_int_equal(uncommitted(g), 0);
}

/* Discord gives no revision: a change back to an earlier state is a change, too. */
static void each_change_has_a_key_of_its_own(void **state)
{
        struct rig *g = *state;
        char keys[3][100];

        connected(g);
        say(g, UPDATE, EVENT("77", "Catan", ""));
        say(g, UPDATE, EVENT("77", "Azul", ""));
        say(g, UPDATE, EVENT("77", "Catan", ""));
        await(g, &fake_road.received_count, 3);
        for (unsigned i = 0; i < 3; i++)
                snprintf(keys[i], sizeof(keys[i]), "%s", key(i));
        assert_string_not_equal(keys[0], keys[2]);
        assert_string_not_equal(keys[0], keys[1]);
}

static void who_is_interested_has_a_name(void **state)
{
        struct rig *g = *state;

        connected(g);
        say(g, ADD, INTEREST);
        await(g, &g->member_count, 1);
        answer_member(
                g, 200,
                "{\"roles\":[],\"nick\":\"Annie\",\"user\":{\"id\":\"5\",\"username\":\"ann\"}}");
        await(g, &fake_road.received_count, 1);
        expect(0, "\"op\":\"join\"");
        expect(0, "\"user\":{\"id\":\"5\",\"name\":\"Annie\"}");
        assert_string_equal(fake_road.received.sender_id, "5");
        say(g, REMOVE, INTEREST);
        await(g, &fake_road.received_count, 2);
        expect(1, "\"op\":\"leave\"");
        assert_string_not_equal(key(0), key(1));
}

/* ---- a new session ---- */

static void a_new_session_lists_what_there_is(void **state)
{
        struct rig *g = *state;

        connected(g);
        introduce(g, EVENT("77", "Catan", "") "," EVENT("78", "Azul", ""));
        await(g, &fake_road.received_count, 3);
        expect(0, "\"eventId\":\"77\"");
        expect(1, "\"eventId\":\"78\"");
        expect(2, "\"op\":\"list\",\"guildId\":\"1\",\"events\":[\"77\",\"78\"]");
        assert_int_equal(uncommitted(g), 1);
        for (unsigned i = 0; i < 3; i++)
                fake_road_ack(i, ERR_NONE);
        assert_int_equal(uncommitted(g), 0);
}

static void an_empty_list_matters_where_there_were_events(void **state)
{
        struct rig *g = *state;

        connected(g);
        introduce(g, "");
        say(g, CREATE, EVENT("77", "Catan", ""));
        await(g, &fake_road.received_count, 1);
        expect(0, "\"op\":\"put\"");
        fake_road_ack(0, ERR_NONE);
        assert_true(g->had_events);
        introduce(g, "");
        await(g, &fake_road.received_count, 2);
        expect(1, "\"op\":\"list\",\"guildId\":\"1\",\"events\":[]");
        assert_true(g->had_events); /* until it is stored */
        fake_road_ack(1, ERR_NONE);
        assert_false(g->had_events);
}

static void members_are_asked_for_after_a_new_session(void **state)
{
        struct rig *g = *state;

        connected(g);
        introduce(g, EVENT("77", "Catan", ""));
        await(g, &fake_road.received_count, 2);
        await(g, &g->get_count, 1);
        assert_string_equal(g->gets[0].path, USERS);
        answer(g, 0, 200,
               "[{\"user_id\":\"5\",\"response\":1,\"user\":{\"id\":\"5\",\"username\":\"ann\"}},"
               "{\"user_id\":\"6\",\"response\":0,\"user\":{\"id\":\"6\",\"username\":\"bob\"}}]");
        await(g, &fake_road.received_count, 3);
        expect(2,
               "\"op\":\"members\",\"guildId\":\"1\",\"eventId\":\"77\",\"users\":[{\"id\":\"5\","
               "\"name\":\"ann\"}],\"complete\":true");
}

static void many_members_come_in_pages(void **state)
{
        struct rig *g = *state;
        struct buf page;

        connected(g);
        introduce(g, EVENT("77", "Catan", ""));
        await(g, &g->get_count, 1);
        buf_init(&page, 0);
        for (int i = 0; i < 100; i++)
                buf_addf(&page, "%s{\"user_id\":\"%d\",\"response\":1}", i ? "," : "[", 1000 + i);
        buf_addch(&page, ']');
        answer(g, 0, 200, page.data);
        buf_release(&page);
        await(g, &g->get_count, 2);
        assert_string_equal(g->gets[1].path, USERS "&after=1099");
        answer(g, 1, 200, "[{\"user_id\":\"2000\",\"response\":1}]");
        await(g, &fake_road.received_count, 3);
        expect(2, "{\"id\":\"1000\"}");
}

/* The list may be older than what the gateway said in the meantime. */
static void a_list_read_while_somebody_joins_is_read_again(void **state)
{
        struct rig *g = *state;

        connected(g);
        introduce(g, EVENT("77", "Catan", ""));
        await(g, &g->get_count, 1);
        say(g, ADD, INTEREST);
        await(g, &g->member_count, 1);
        answer(g, 0, 200, "[]");
        await(g, &g->get_count, 2);
        answer(g, 1, 200, "[{\"user_id\":\"5\",\"response\":1}]");
        answer_member(g, 200, "{\"roles\":[],\"user\":{\"id\":\"5\",\"username\":\"ann\"}}");
        await(g, &fake_road.received_count, 4);
        expect(2, "\"op\":\"join\"");
        expect(3, "{\"id\":\"5\"}");
}

static void members_that_cannot_be_read_are_left_out(void **state)
{
        struct rig *g = *state;

        connected(g);
        g->in->o.catchup_times.wait_ms = 1;
        introduce(g, EVENT("77", "Catan", "") "," EVENT("78", "Azul", ""));
        await(g, &g->get_count, 1);
        answer(g, 0, 503, NULL);
        await(g, &g->get_count, 2); /* asked again */
        answer(g, 1, 404, "{\"code\":10070}");
        await(g, &g->get_count, 3);
        assert_non_null(strstr(g->gets[2].path, "/78/users"));
        answer(g, 2, 200, "[]");
        await(g, &fake_road.received_count, 4);
        expect(3, "\"eventId\":\"78\"");
        assert_true(dc_event_list_is_idle(g->in->events));
        assert_false(dc_event_list_take_failed(g->in->events));
}

/* ---- our own ---- */

static bool on_wrote(void *ctx, const char *type, const json_t *event)
{
        (void)ctx;
        return strcmp(type, UPDATE) == 0 && strcmp(json_str(event, "name", ""), "ours") == 0;
}

static void our_own_changes_are_no_events(void **state)
{
        struct rig *g = *state;

        connected(g);
        g->in->hooks.wrote = on_wrote;
        say(g, CREATE,
            "{\"id\":\"76\",\"guild_id\":\"1\",\"name\":\"x\",\"creator_id\":\"42\","
            "\"scheduled_start_time\":\"2126-11-20T18:00:00Z\"}");
        say(g, UPDATE, EVENT("77", "ours", ""));
        say(g, UPDATE, EVENT("77", "theirs", ""));
        await(g, &fake_road.received_count, 1);
        expect(0, "theirs");
        assert_int_equal(uncommitted(g), 1);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                UNIT(changes_are_stored_before_the_sequence_moves),
                UNIT(each_change_has_a_key_of_its_own),
                UNIT(who_is_interested_has_a_name),
                UNIT(a_new_session_lists_what_there_is),
                UNIT(an_empty_list_matters_where_there_were_events),
                UNIT(members_are_asked_for_after_a_new_session),
                UNIT(many_members_come_in_pages),
                UNIT(a_list_read_while_somebody_joins_is_read_again),
                UNIT(members_that_cannot_be_read_are_left_out),
                UNIT(our_own_changes_are_no_events),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
