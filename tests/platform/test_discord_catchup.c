/* Catch-up: messages that a lost session missed are read back, once and in order. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "discord_intake_rig.h"
#include "rows/journal_row.h"
#include "rows/person_row.h"
#include "rows/policy_rows.h"
#include "rows/schema.h"

/* ---- reading back ---- */

/* Introduces the guild: channel 10 has a new message. */
static void introduce_guild(struct rig *g)
{
        char now[24], *guild;

        dc_id_at(clock_wall_ms(), now);
        guild = mem_printf(GUILD("\"%s\""), now, now);
        fake_dispatch(&g->fake, g->fake.last, "GUILD_CREATE", guild);
        free(guild);
}

static void replace_session(struct rig *g)
{
        unsigned identifies = g->fake.identifies;

        fake_say(&g->fake, g->fake.last, "{\"op\":9,\"d\":false}");
        await(g, &g->fake.identifies, identifies + 1);
}

/* The new session introduces the guild. */
static void lose_session(struct rig *g)
{
        replace_session(g);
        introduce_guild(g);
}

/* The session is lost after a message in channel 10, which is about to be read back. */
static void lose_session_after(struct rig *g, const char *id)
{
        connected(g);
        write_in(g, "10", "1", id, "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        lose_session(g);
        await(g, &g->get_count, 1);
}

/* "ID&limit=100" of the n-th recent message. */
static const char *id_and(const struct rig *g, unsigned n, const char *rest)
{
        static char text[60];

        snprintf(text, sizeof(text), "%s%s", recent(g, n), rest);
        return text;
}

/* Answers the i-th call with the messages of b, and then the lookup of their author. */
static void answer_page(struct rig *g, unsigned i, struct buf *b)
{
        buf_addch(b, ']');
        answer(g, i, 200, b->data);
        buf_release(b);
        if (g->member.done && g->member_is)
                answer_member(g, 200, g->member_is);
}

/* Recent messages, newest first; fewer than 100 end with an old one. */
static void page(struct rig *g, unsigned i, unsigned first, unsigned count)
{
        uint64_t id = g->recent + first + count - 1;
        struct buf b;

        buf_init(&b, 0);
        buf_addch(&b, '[');
        for (unsigned k = 0; k < count; k++)
                buf_addf(&b,
                         "%s{\"id\":\"%llu\",\"channel_id\":\"10\",\"type\":0,"
                         "\"content\":\"missed\",\"author\":{\"id\":\"5\",\"username\":\"ann\"}}",
                         k ? "," : "", (unsigned long long)(id - k));
        if (count < 100)
                buf_addstr(&b, ",{\"id\":\"1\",\"channel_id\":\"10\",\"content\":\"old\"}");
        answer_page(g, i, &b);
}

static void missed_messages_come_before_live_ones(void **state)
{
        struct rig *g = *state;

        lose_session_after(g, "100");
        assert_string_equal(g->gets[0].path, "/channels/10/messages?limit=100");
        write_in(g, "10", "1", "900", "");
        write_in(g, "12", "1", "901", "");
        await(g, &fake_road.received_count, 2);
        assert_string_equal(key(1), "901"); /* the quiet channel does not wait */
        page(g, 0, 200, 3);
        assert_int_equal(fake_road.received_count, 6);
        assert_string_equal(key(2), recent(g, 200));
        assert_string_equal(key(3), recent(g, 201));
        assert_string_equal(key(4), recent(g, 202));
        assert_string_equal(key(5), "900");
        assert_string_equal(fake_road.received.guild, "1");
        assert_int_equal(g->get_count, 1); /* neither the forum nor the quiet channel was read */
}

/* Messages k of [first, first + count), those in `to_us` mention the bot; newest first. */
#define ALL UINT_MAX

static void chatter(struct rig *g, unsigned i, unsigned first, unsigned count, unsigned to_us)
{
        struct buf b;

        buf_init(&b, 0);
        for (unsigned k = first + count; k-- > first;)
                buf_addf(&b,
                         "%s{\"id\":\"%s\",\"channel_id\":\"10\",\"type\":0,"
                         "\"content\":\"talk\",\"author\":{\"id\":\"5\"}%s}",
                         b.len ? "," : "[", recent(g, k),
                         k == to_us || to_us == ALL ? ",\"mentions\":[{\"id\":\"42\"}]" : "");
        answer_page(g, i, &b);
}

/* Of 320 messages 120 may be taken: the newest, and the oldest because it mentions the bot. */
static void a_limit_drops_the_oldest_chatter(void **state)
{
        struct rig *g = *state;

        lose_session_after(g, "100");
        chatter(g, 0, 420, 100, 0);
        assert_string_equal(g->gets[1].path + strlen("/channels/10/messages?before="),
                            id_and(g, 420, "&limit=100"));
        chatter(g, 1, 320, 100, 0);
        chatter(g, 2, 220, 100, 0);
        assert_int_equal(fake_road.received_count, 1); /* nothing before the oldest is known */
        chatter(g, 3, 200, 20, 200);
        assert_int_equal(g->get_count, 5);
        answer(g, 4, 200, "[]");
        if (g->member.done)
                answer_member(g, 200, g->member_is);
        assert_int_equal(fake_road.received_count, 1 + 1 + 120);
        assert_string_equal(key(1), recent(g, 200));
        assert_true(fake_road.arrivals[1].is_mention);
        assert_string_equal(key(2), recent(g, 400));
        assert_string_equal(key(121), recent(g, 519));
        assert_int_equal(g->get_count, 5);
}

/* Messages to the bot beyond the limit are limited, too. */
static void mentions_are_limited(void **state)
{
        struct rig *g = *state;

        g->o.catchup_messages = 1;
        lose_session_after(g, "100");
        chatter(g, 0, 300, 5, ALL);
        answer(g, 1, 200, "[]");
        if (g->member.done)
                answer_member(g, 200, g->member_is);
        assert_int_equal(fake_road.received_count, 1 + 2);
        assert_string_equal(key(1), recent(g, 303));
        assert_string_equal(key(2), recent(g, 304));
}

static void pages_before_a_refusal_are_kept(void **state)
{
        struct rig *g = *state;

        lose_session_after(g, "100");
        chatter(g, 0, 420, 100, 0);
        answer(g, 1, 403, NULL);
        if (g->member.done)
                answer_member(g, 200, g->member_is);
        assert_int_equal(fake_road.received_count, 1 + 100);
        assert_string_equal(key(1), recent(g, 420));
}

static int store_recent(struct store_tx *tx, void *arg, struct error *err)
{
        const struct rig *g = arg;

        for (unsigned k = 300; k < 400; k++) {
                int64_t seq;

                if (journal_row_insert(tx,
                                       &(struct journal_row){ .type = "message.received",
                                                              .adapter = "dc",
                                                              .channel = "10",
                                                              .key = recent(g, k),
                                                              .payload = "{}" },
                                       &seq, err) < 0)
                        return -1;
        }
        return 0;
}

/* The adapter's store, with what fill writes. */
static struct store *open_store(struct rig *g, store_fn *fill, void *arg)
{
        struct error err = { 0 };
        struct store *store =
                store_open(g->loop,
                           &(struct store_options){
                                   .url = "sqlite", .dir = g->dir, .migrations = schema_steps },
                           &err);

        assert_non_null(store);
        assert_int_equal(store_write_now(store, fill, arg, &err), 0);
        g->adapter.store = store;
        return store;
}

/* A hundred newer messages are stored already: all twenty missed ones are taken. */
static void stored_messages_do_not_count(void **state)
{
        struct rig *g = *state;
        struct store *store = open_store(g, store_recent, g);

        g->o.catchup_messages = 20;
        lose_session_after(g, "100");
        chatter(g, 0, 300, 100, 0);
        await(g, &g->get_count, 2);
        page(g, 1, 200, 20);
        await(g, &g->member_count, 1);
        answer_member(g, 200, g->member_is);
        await(g, &fake_road.received_count, 21);
        assert_string_equal(key(1), recent(g, 200));
        assert_string_equal(key(20), recent(g, 219));
        close_it(g);
        store_close(store);
}

/* However a server orders its pages. */
static void pages_are_sorted(void **state)
{
        static const unsigned order[] = { 203, 200, 202, 201 };
        struct rig *g = *state;
        struct buf b;

        lose_session_after(g, "100");
        buf_init(&b, 0);
        for (unsigned i = 0; i < COUNT(order); i++)
                buf_addf(&b,
                         "%s{\"id\":\"%s\",\"channel_id\":\"10\",\"content\":\"x\","
                         "\"author\":{\"id\":\"5\"}}",
                         i ? "," : "[", recent(g, order[i]));
        answer_page(g, 0, &b);
        assert_string_equal(g->gets[1].path + strlen("/channels/10/messages?before="),
                            id_and(g, 200, "&limit=100"));
        answer(g, 1, 200, "[]");
        answer_member(g, 200, g->member_is);
        assert_int_equal(fake_road.received_count, 5);
        for (unsigned i = 0; i < 4; i++)
                assert_string_equal(key(1 + i), recent(g, 200 + i));
}

/* A channel where only the bot and the past are to be found, page after page. */
static void endless_pages_are_bounded(void **state)
{
        struct rig *g = *state;
        unsigned asked = 0;

        lose_session_after(g, "100");
        for (; asked < 200 && asked < g->get_count; asked++) {
                struct buf b;

                buf_init(&b, 0);
                for (unsigned k = 0; k < 100; k++)
                        buf_addf(&b,
                                 "%s{\"id\":\"%s\",\"channel_id\":\"10\",\"author\":{\"id\":"
                                 "\"42\"}}",
                                 k ? "," : "[", recent(g, 90000 - asked * 100 - k));
                answer_page(g, asked % GETS, &b);
        }
        assert_int_equal(asked, 51); /* 50, and one for catchUpMessages */
        assert_int_equal(fake_road.received_count, 1);
}

static void an_unreadable_channel_holds_nothing(void **state)
{
        struct rig *g = *state;

        lose_session_after(g, "100");
        write_in(g, "10", "1", "900", "");
        answer(g, 0, 503, NULL);
        await(g, &g->get_count, 2);
        answer(g, 1, 403, NULL);
        await(g, &fake_road.received_count, 2);
        assert_string_equal(key(1), "900");
}

static void live_messages_do_not_wait_for_ever(void **state)
{
        struct rig *g = *state;

        g->o.catchup_times.hold_ms = 100;
        lose_session_after(g, "100");
        write_in(g, "10", "1", "900", "");
        write_in(g, "12", "1", "901", "");
        await(g, &fake_road.received_count, 2);
        assert_string_equal(key(1), "901");
        await(g, &fake_road.received_count, 3); /* Discord has not answered */
        assert_string_equal(key(2), "900");
        page(g, 0, 200, 1);
        assert_string_equal(key(3), recent(g, 200)); /* late, but not lost */
}

static void a_second_gap_is_read_back_too(void **state)
{
        struct rig *g = *state;

        lose_session_after(g, "100");
        lose_session(g); /* while the first is being read */
        write_in(g, "12", "1", "901", "");
        await(g, &fake_road.received_count, 2);
        page(g, 0, 200, 1);
        assert_int_equal(g->get_count, 2);
        assert_string_equal(g->gets[1].path, "/channels/10/messages?limit=100");
        page(g, 1, 201, 1);
        assert_int_equal(g->get_count, 2);
        fake_road_ack(1, ERR_NONE);
        fake_road_ack(2, ERR_NONE);
        fake_road_ack(3, ERR_NONE);
        lose_session(g); /* and after it */
        await(g, &g->get_count, 3);
        page(g, 2, 202, 1);
        assert_string_equal(key(4), recent(g, 202));
}

/* An earlier run was reading back; this one resumes, and no guild is introduced. */
static void resumed_with_a_gap(struct rig *g)
{
        char now[24];

        dc_id_at(clock_wall_ms(), now);
        lose_session_after(g, now);
        close_it(g);
        fake_road_reset();
        g->get_count = g->ups = 0;
        begin(g);
        await(g, &g->get_count, 1);
}

/* A resumed session introduces no guilds: they are listed by REST. */
static void a_restart_resumes_catch_up(void **state)
{
        struct rig *g = *state;
        char now[24], *channels;

        resumed_with_a_gap(g);
        dc_id_at(clock_wall_ms(), now);
        assert_int_equal(g->ups, 1);
        assert_int_equal(g->fake.resumes, 1);
        assert_string_equal(g->gets[0].path, "/users/@me/guilds?limit=200&after=0");
        answer(g, 0, 200, "[{\"id\":\"1\",\"name\":\"Home\"}]");
        assert_string_equal(g->gets[1].path, "/guilds/1/channels");
        channels =
                mem_printf("[{\"id\":\"10\",\"type\":0,\"last_message_id\":\"%s\"},{\"id\":\"12\","
                           "\"type\":0,\"last_message_id\":null},{\"id\":\"14\",\"type\":0}]",
                           now);
        answer(g, 1, 200, channels);
        free(channels);
        assert_int_equal(g->get_count, 5);
        assert_non_null(strstr(g->gets[2].path, "/channels/10/messages?limit=100"));
        /* null is an empty channel, a missing member says nothing */
        assert_non_null(strstr(g->gets[3].path, "/channels/14/messages?limit=100"));
        assert_string_equal(g->gets[4].path, "/guilds/1/threads/active");
        channels = mem_printf(
                "{\"threads\":[{\"id\":\"13\",\"type\":11,\"last_message_id\":\"%s\"}]}", now);
        answer(g, 4, 200, channels);
        free(channels);
        assert_int_equal(g->get_count, 6);
        assert_non_null(strstr(g->gets[5].path, "/channels/13/messages?limit=100"));
}

/* Answers with ids from `first` on, in the order of Discord's list. */
static void list_guilds(struct rig *g, unsigned i, unsigned first, unsigned count)
{
        struct buf b;

        buf_init(&b, 0);
        buf_addch(&b, '[');
        for (unsigned k = 0; k < count; k++)
                buf_addf(&b, "%s{\"id\":\"%u\"}", k ? "," : "", first + k);
        buf_addch(&b, ']');
        answer(g, i, 200, b.data);
        buf_release(&b);
}

static void a_list_that_is_unavailable_is_asked_for_again(void **state)
{
        struct rig *g = *state;

        g->o.catchup_times.wait_ms = 1;
        resumed_with_a_gap(g);
        answer(g, 0, 503, NULL);
        await(g, &g->get_count, 2);
        assert_string_equal(g->gets[1].path, g->gets[0].path);
        list_guilds(g, 1, 1000, 1);
        answer(g, 2, 503, NULL);
        await(g, &g->get_count, 4);
        assert_string_equal(g->gets[3].path, "/guilds/1000/channels");
}

static void any_number_of_guilds_is_listed(void **state)
{
        struct rig *g = *state;
        unsigned at = 0;

        resumed_with_a_gap(g);
        list_guilds(g, 0, 1000, 200);
        for (unsigned k = 0; k < 200; k++) {
                char path[60];

                at = g->get_count - 1;
                snprintf(path, sizeof(path), "/guilds/%u/channels", 1000 + k);
                assert_string_equal(g->gets[at % GETS].path, path);
                /* a refusal stops nothing */
                answer(g, at % GETS, k == 7 ? 403 : 200, "[]");
                at = g->get_count - 1;
                snprintf(path, sizeof(path), "/guilds/%u/threads/active", 1000 + k);
                assert_string_equal(g->gets[at % GETS].path, path);
                answer(g, at % GETS, 200, "{\"threads\":[]}");
        }
        at = g->get_count - 1;
        assert_string_equal(g->gets[at % GETS].path, "/users/@me/guilds?limit=200&after=1199");
        list_guilds(g, at % GETS, 1200, 1);
        assert_string_equal(g->gets[(g->get_count - 1) % GETS].path, "/guilds/1200/channels");
}

/* One of two shards has lost its session; the id of a guild names its shard. */
static void only_guilds_of_the_shard_with_a_gap_are_listed(void **state)
{
        struct rig *g = *state;
        bool first;

        g->o.gateway.shards = 2;
        resumed_with_a_gap(g);
        answer(g, 0, 200, "[{\"id\":\"4194304\"},{\"id\":\"8388608\"}]");
        first = strcmp(g->gets[1].path, "/guilds/4194304/channels") == 0;
        assert_string_equal(g->gets[1].path,
                            first ? "/guilds/4194304/channels" : "/guilds/8388608/channels");
        answer(g, 1, 200, "[]");
        answer(g, 2, 200, "{}");
        assert_int_equal(g->get_count, 3);
}

/* Marks the session of a shard as lost before: its catch-up has not finished. Returns its id. */
static char *leave_gap(struct rig *g, unsigned shard)
{
        char name[40], *path, *id;
        json_t *session;

        snprintf(name, sizeof(name), "state/gateway-dc-%u.json", shard);
        path = scratch_path(g->dir, name);
        session = json_load_file(path, 0, NULL);
        id = mem_strdup(json_str(session, "session", NULL));
        assert_non_null(id);
        json_object_set_new(session, "missingMs", json_integer(clock_wall_ms()));
        assert_int_equal(json_dump_file(session, path, 0), 0);
        json_decref(session);
        free(path);
        return id;
}

/*
 * A session with a gap is resumed, and a message without a guild is replayed before the gap is
 * known: it is held.
 */
static void replay_before_the_gap(struct rig *g, unsigned shard)
{
        static const char message[] = "{\"id\":\"900\",\"channel_id\":\"80\",\"type\":0,"
                                      "\"content\":\"hi\",\"author\":{\"id\":\"8\"}}";
        char *session;

        g->o.gateway.shards = shard + 1;
        connected(g);
        close_it(g);
        g->fake.unanswered = session = leave_gap(g, shard);
        begin(g);
        for (int i = 0; i < STEPS && !g->fake.unanswered_conn; i++)
                loop_step(g->loop, true);
        assert_non_null(g->fake.unanswered_conn);
        fake_dispatch(&g->fake, g->fake.unanswered_conn, "MESSAGE_CREATE", message);
        for (int i = 0; i < 50; i++)
                loop_step(g->loop, false);
        assert_int_equal(fake_road.received_count, 0);
        fake_dispatch(&g->fake, g->fake.unanswered_conn, "RESUMED", "{}");
        g->fake.unanswered = NULL;
        free(session);
}

/*
 * Only the first shard reads recent conversations, after which everything is released; the others
 * have to release it themselves.
 */
static void no_shard_holds_all_channels_for_ever(void **state)
{
        struct rig *g = *state;

        replay_before_the_gap(g, 1);
        await(g, &fake_road.received_count, 1);
}

/* 300 channels of one guild have messages: the next guild waits until most are read. */
static void guilds_wait_for_room_to_read_their_channels(void **state)
{
        struct rig *g = *state;
        struct buf b;
        char now[24];
        unsigned before;

        resumed_with_a_gap(g);
        dc_id_at(clock_wall_ms(), now);
        list_guilds(g, 0, 1000, 2);
        buf_init(&b, 0);
        for (unsigned k = 0; k < 300; k++)
                buf_addf(&b, "%s{\"id\":\"%u\",\"type\":0,\"last_message_id\":\"%s\"}",
                         k ? "," : "[", 5000 + k, now);
        buf_addch(&b, ']');
        answer(g, 1, 200, b.data);
        buf_release(&b);
        before = g->get_count;
        assert_string_equal(g->gets[before - 1].path, "/guilds/1000/threads/active");
        answer(g, before - 1, 200, "{\"threads\":[]}");
        /* four channels are being read, nothing else */
        assert_int_equal(g->get_count, before);
        for (unsigned k = 0; k < 200; k++) {
                unsigned i;

                for (i = 0; i < GETS && !(g->gets[i].done && strstr(g->gets[i].path, "/messages?"));
                     i++) {
                }
                assert_true(i < GETS);
                answer(g, i, 200, "[]");
        }
        for (before = 0;
             before < GETS && strcmp(g->gets[before].path, "/guilds/1001/channels") != 0;
             before++) {
        }
        assert_true(before < GETS);
}

/* With a full disk, say, missed messages stay in memory until they are stored. */
static void reading_back_waits_for_the_inbox(void **state)
{
        struct rig *g = *state;

        g->o.catchup_messages = 1000;
        lose_session_after(g, "100");
        for (unsigned i = 0; i < 6; i++)
                chatter(g, i, 1500 - i * 100, 100, 0);
        answer(g, 6, 200, "[]");
        answer_member(g, 200, g->member_is);
        assert_int_equal(fake_road.received_count, 501);
        assert_string_equal(key(1), recent(g, 1000));
        for (unsigned i = 1; i <= 500; i++)
                fake_road_ack(i, ERR_NONE);
        await(g, &fake_road.received_count, 601);
        assert_string_equal(key(600), recent(g, 1599));
}

/* A broken connection does not restart catch-up. */
static void a_resume_does_not_restart_catch_up(void **state)
{
        struct rig *g = *state;
        unsigned asked;

        resumed_with_a_gap(g);
        list_guilds(g, 0, 1000, 2);
        answer(g, 1, 200, "[]");
        asked = g->get_count;
        fake_say(&g->fake, g->fake.last, "{\"op\":7,\"d\":null}");
        await(g, &g->fake.resumes, 2);
        write_in(g, "12", "1", "901", "");
        await(g, &g->get_count, asked + 1);
        assert_string_equal(g->gets[asked].path, "/channels/12"); /* and no guild again */
        answer(g, asked, 200, "{\"id\":\"12\",\"type\":0,\"guild_id\":\"1\"}");
        await(g, &fake_road.received_count, 1); /* nothing stays held */
        answer(g, asked - 1, 200, "{\"threads\":[]}");
        assert_string_equal(g->gets[asked + 1].path, "/guilds/1001/channels");
}

/* Does the session's file say that catch-up has not finished? */
static bool is_missing(struct rig *g)
{
        char *path = scratch_path(g->dir, "state/gateway-dc-0.json");
        json_t *session = json_load_file(path, 0, NULL);
        bool missing = json_int(session, "missingMs", -1) != 0;

        json_decref(session);
        free(path);
        return missing;
}

static void a_gap_closes_when_all_is_stored(void **state)
{
        struct rig *g = *state;
        char now[24];

        g->o.catchup_times.done_ms = 5;
        dc_id_at(clock_wall_ms(), now);
        lose_session_after(g, now);
        page(g, 0, 200, 1);
        for (int i = 0; i < 20; i++)
                loop_step(g->loop, true);
        assert_true(is_missing(g)); /* read, not stored */
        fake_road_ack(1, ERR_NONE);
        for (int i = 0; i < STEPS && is_missing(g); i++)
                loop_step(g->loop, true);
        assert_false(is_missing(g));
}

static void failed_catch_up_is_repeated_later(void **state)
{
        struct rig *g = *state;
        unsigned at = 0;
        char now[24], *places;

        g->o.catchup_times = (struct dc_catchup_times){ .wait_ms = 1, .done_ms = 5, .again_ms = 5 };
        lose_session_after(g, "100");
        dc_id_at(clock_wall_ms(), now);
        do { /* until it is given up, and catch-up starts over */
                await(g, &g->get_count, at + 1);
                assert_true(at < GETS - 4);
                answer(g, at++, 503, NULL);
                for (int i = 0; i < STEPS && g->get_count == at; i++)
                        loop_step(g->loop, true);
        } while (strstr(g->gets[at].path, "/messages?"));
        assert_true(is_missing(g));
        assert_string_equal(g->gets[at].path, "/users/@me/guilds?limit=200&after=0");
        list_guilds(g, at, 1, 1);
        places = mem_printf("[{\"id\":\"10\",\"type\":0,\"last_message_id\":\"%s\"}]", now);
        answer(g, at + 1, 200, places);
        free(places);
        assert_non_null(strstr(g->gets[at + 2].path, "/channels/10/messages?limit=100"));
        answer(g, at + 2, 200, "[]");
        answer(g, at + 3, 200, "{}");
        for (int i = 0; i < STEPS && is_missing(g); i++)
                loop_step(g->loop, true);
        assert_false(is_missing(g));
}

/* ---- first DMs ---- */

/* Discord lists no DMs, so those of people who may write are opened. */
static void first_dms_of_named_people_are_read_back(void **state)
{
        struct rig *g = *state;
        char seven[] = "7", user[] = "user:8", role[] = "role:9", none[] = "none", six[] = "6",
             channel[] = "10";
        char *admins[] = { seven }, *dm[] = { user, role, none, seven },
             *allow[] = { channel, six };
        const struct adapter_common common = { .admins = { admins, 1, true },
                                               .dm = { dm, 4, true },
                                               .allow = { allow, 2, true } };
        char *body =
                mem_printf("{\"id\":\"70\",\"type\":1,\"last_message_id\":\"%s\"}", recent(g, 1));

        g->adapter.common = &common;
        g->o.catchup_times.wait_ms = 1;
        lose_session_after(g, "100");
        await(g, &g->opened_count, 1);
        assert_string_equal(g->opened.path, "7");
        answer_it(&g->opened, 503, NULL);
        await(g, &g->opened_count, 2);
        assert_string_equal(g->opened.path, "7");
        answer_it(&g->opened, 200, body);
        free(body);
        assert_string_equal(g->dm, "7 in 70");
        assert_string_equal(g->gets[1].path, "/channels/70/messages?limit=100");
        assert_int_equal(g->opened_count, 3);
        assert_string_equal(g->opened.path, "8");
        answer_it(&g->opened, 200, "{\"id\":\"80\",\"type\":1,\"last_message_id\":null}");
        assert_string_equal(g->opened.path, "6");
        answer_it(&g->opened, 200, "{\"id\":\"60\",\"type\":1,\"last_message_id\":null}");
        assert_int_equal(g->opened_count, 4); /* not a role, not 7 again, not the channel */
        assert_int_equal(g->get_count, 2);    /* 80 and 60 are empty */
}

/* Catch-up opens the DM of the admin 7. */
static void lose_session_with_an_admin(struct rig *g)
{
        static char seven[] = "7";
        static char *admins[] = { seven };
        static const struct adapter_common common = { .admins = { admins, 1, true } };

        g->adapter.common = &common;
        g->o.catchup_times = (struct dc_catchup_times){ .wait_ms = 1, .done_ms = 5, .again_ms = 5 };
        lose_session_after(g, "100");
        await(g, &g->opened_count, 1);
        assert_string_equal(g->opened.path, "7");
}

#define QUIET_DM "{\"id\":\"70\",\"type\":1,\"last_message_id\":null}"

static void dms_opened_too_fast_are_opened_later(void **state)
{
        struct rig *g = *state;

        lose_session_with_an_admin(g);
        answer_it(&g->opened, 403, "{\"code\":40003}");
        await(g, &g->opened_count, 2);
        assert_string_equal(g->opened.path, "7");
        answer_it(&g->opened, 403, "{\"code\":50278}"); /* a refusal is final */
        for (int i = 0; i < 20; i++)
                loop_step(g->loop, false);
        assert_int_equal(g->opened_count, 2);
}

/* A message may have arrived after the first look, but in the second gap. */
static void a_second_gap_opens_dms_again(void **state)
{
        struct rig *g = *state;

        lose_session_with_an_admin(g);
        lose_session(g);
        write_in(g, "12", "1", "901", ""); /* it is up */
        await(g, &fake_road.received_count, 2);
        assert_int_equal(g->opened_count, 1);
        answer_it(&g->opened, 200, QUIET_DM);
        assert_int_equal(g->opened_count, 2);
        answer_it(&g->opened, 200, QUIET_DM);
        assert_int_equal(g->opened_count, 2);
}

static void dms_that_could_not_be_opened_keep_the_gap_open(void **state)
{
        struct rig *g = *state;
        unsigned at = 1;

        lose_session_with_an_admin(g);
        answer(g, 0, 200, "[]"); /* channel 10 */
        for (; g->get_count == 1 && at < 20; at++) {
                answer_it(&g->opened, 503, NULL);
                for (int i = 0; i < STEPS && g->opened_count == at; i++)
                        loop_step(g->loop, true);
        }
        assert_int_equal(at, 12); /* ten retries, then catch-up starts over */
        assert_true(is_missing(g));
        assert_string_equal(g->opened.path, "7");
        await(g, &g->get_count, 2);
        answer(g, 1, 200, "[]"); /* no guilds */
        for (int i = 0; i < 20; i++)
                loop_step(g->loop, true);
        assert_true(is_missing(g)); /* until the DM is opened */
        answer_it(&g->opened, 200, QUIET_DM);
        for (int i = 0; i < STEPS && is_missing(g); i++)
                loop_step(g->loop, true);
        assert_false(is_missing(g));
}

/* Rules for 7 and a person with the account 21, and one for everyone, if given; 11 was met. */
static int store_people(struct store_tx *tx, void *everyone, struct error *err)
{
        static const struct access_rule rules[] = {
                { .user = "discord:7", .place = "dm", .enabled = true },
                { .user = "6" },
                { .user = "5", .adapter = "other", .enabled = true },
                { .user = "4", .place = "group", .enabled = true },
                { .user = "3", .enabled = true, .expires_ms = 1 },
                { .user = "2", .enabled = true, .deny = true },
        };
        const struct identity met = { "discord", "11" }, known = { "discord", "21" },
                              elsewhere = { "telegram", "13" };
        struct access_rule of_person = { .enabled = true },
                           of_everyone = { .user = everyone, .enabled = true };
        int64_t id, person;

        for (size_t i = 0; i < COUNT(rules); i++)
                if (access_rule_row_insert(tx, &rules[i], &id, err) < 0)
                        return -1;
        if (person_row_insert(tx, 1, &of_person.person, err) < 0 ||
            person_row_add_identity(tx, &elsewhere, of_person.person, 1, &id, err) < 0 ||
            person_row_add_identity(tx, &known, of_person.person, 1, &id, err) < 0 ||
            access_rule_row_insert(tx, &of_person, &id, err) < 0 ||
            (everyone && access_rule_row_insert(tx, &of_everyone, &id, err) < 0) ||
            person_row_insert(tx, 1, &person, err) < 0 ||
            person_row_add_identity(tx, &met, person, 1, &id, err) < 0)
                return -1;
        return person_row_update_identity(
                tx, id, &(struct person_sighting){ .identity = met, .adapter = "dc" }, err);
}

/* everyone: the user of a rule; NULL: none. met: the DMs of people who were met are opened, too. */
static void read_dms_of_stored_people(struct rig *g, const char *everyone, bool met)
{
        static const char *const expected[] = { "7", "21", "11" };
        struct store *store = open_store(g, store_people, (char *)(uintptr_t)everyone);
        unsigned count = met ? 3 : 2;

        lose_session_after(g, "100");
        for (unsigned i = 0; i < count; i++) {
                await(g, &g->opened_count, i + 1);
                assert_string_equal(g->opened.path, expected[i]);
                answer_it(&g->opened, 200, QUIET_DM);
        }
        assert_int_equal(g->opened_count, count);
        close_it(g);
        store_close(store);
}

static void first_dms_of_people_in_rules_are_read_back(void **state)
{
        read_dms_of_stored_people(*state, NULL, false);
}

static void first_dms_of_people_met_are_read_back(void **state)
{
        read_dms_of_stored_people(*state, "*", true);
}

static void a_rule_may_let_everyone_on_discord_write(void **state)
{
        read_dms_of_stored_people(*state, "discord:*", true);
}

static void a_setting_may_let_everyone_write(void **state)
{
        struct rig *g = *state;
        char word[] = "everyone", *list[] = { word };
        const struct adapter_common common = { .dm = { list, 1, true } };

        g->adapter.common = &common;
        read_dms_of_stored_people(g, NULL, true);
}

/* DM 80 is read by the i-th call: what was missed comes first. */
static void find_missed_dm(struct rig *g, unsigned i)
{
        char *body = mem_printf("[{\"id\":\"%s\",\"channel_id\":\"80\",\"content\":\"first\","
                                "\"author\":{\"id\":\"8\"}},{\"id\":\"1\"}]",
                                recent(g, 1));
        unsigned received = fake_road.received_count, asked = g->get_count;

        assert_string_equal(g->gets[i].path, "/channels/80/messages?limit=100");
        answer(g, i, 200, body);
        free(body);
        assert_string_equal(g->gets[asked].path, "/channels/80");
        answer(g, asked, 200, "{\"id\":\"80\",\"type\":1}");
        await(g, &fake_road.received_count, received + 2);
        assert_string_equal(key(received), recent(g, 1));
        assert_string_equal(key(received + 1), "900");
}

/* A person who is not named writes again. */
static void a_live_dm_shows_where_one_was_missed(void **state)
{
        struct rig *g = *state;

        lose_session_after(g, "100");
        write_in(g, "80", "", "900", "");
        await(g, &g->get_count, 2);
        find_missed_dm(g, 1);
        write_in(g, "80", "", "901", "");                       /* it is read once */
        fake_dispatch(&g->fake, g->fake.last, "MESSAGE_CREATE", /* by the bot: it misses nothing */
                      "{\"id\":\"902\",\"channel_id\":\"81\",\"author\":{\"id\":\"42\"}}");
        write_in(g, "12", "1", "903", "");
        await(g, &fake_road.received_count, 5);
        assert_int_equal(g->get_count, 3);
}

static void a_replayed_dm_shows_where_one_was_missed(void **state)
{
        struct rig *g = *state;

        replay_before_the_gap(g, 0);
        await(g, &g->get_count, 1);
        find_missed_dm(g, 0);
}

/* Long after a gap, a DM or a guild is a new one. */
static void new_chats_long_after_a_gap_are_not_read_back(void **state)
{
        struct rig *g = *state;
        int64_t start;

        g->o.catchup_times.introduce_ms = 1;
        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        replace_session(g);
        write_in(g, "12", "1", "101", "");
        await(g, &fake_road.received_count, 2);
        for (start = loop_now_ms(g->loop); loop_now_ms(g->loop) < start + 3;)
                loop_step(g->loop, false);
        introduce_guild(g);
        write_in(g, "80", "", "900", "");
        await(g, &fake_road.received_count, 3);
        assert_string_equal(key(2), "900");
        assert_int_equal(g->get_count, 0);
}

/* ---- members of messages read back ---- */

/* A session was lost, and channel 10 is about to be read; member lookups stay open. */
static void missed_something(struct rig *g)
{
        g->member_is = NULL;
        g->o.catchup_times.wait_ms = 1;
        lose_session_after(g, "100");
        assert_int_equal(g->member_count, 0); /* live events carry their member */
}

/* And Ann's messages 200 to 202 are read back. */
static void missed_by_a_stranger(struct rig *g)
{
        missed_something(g);
        page(g, 0, 200, 3);
}

static void messages_read_back_have_their_senders_roles(void **state)
{
        struct rig *g = *state;

        missed_by_a_stranger(g);
        write_in(g, "10", "1", "900", "");
        write_in(g, "12", "1", "901", "");
        await(g, &fake_road.received_count, 2);
        assert_string_equal(key(1), "901"); /* only her channel waits */
        assert_string_equal(g->member.path, "/guilds/1/members/5");
        assert_int_equal(g->member_count, 1); /* once for three messages */
        answer_member(g, 200, "{\"nick\":\"Annie\",\"roles\":[\"77\"]}");
        await(g, &fake_road.received_count, 6);
        assert_string_equal(key(2), recent(g, 200));
        assert_string_equal(key(3), recent(g, 201));
        assert_string_equal(key(4), recent(g, 202));
        assert_string_equal(key(5), "900");
        assert_non_null(strstr(fake_road.arrivals[2].metadata, "\"roles\":[\"77\"]"));
        assert_non_null(strstr(fake_road.arrivals[4].metadata, "\"roles\":[\"77\"]"));
        assert_int_equal(g->member_count, 1);
}

static void a_person_who_left_has_no_roles(void **state)
{
        struct rig *g = *state;

        missed_by_a_stranger(g);
        answer_member(g, 404, NULL);
        assert_int_equal(fake_road.received_count, 4);
        assert_non_null(strstr(metadata(), "\"roles\":[]"));
        assert_null(strstr(metadata(), "rolesUnknown"));
}

static void a_member_lookup_retries(void **state)
{
        struct rig *g = *state;

        missed_by_a_stranger(g);
        answer_member(g, 503, NULL);
        assert_int_equal(fake_road.received_count, 1);
        await(g, &g->member_count, 2);
        answer_member(g, 200, "{\"roles\":[\"77\"]}");
        assert_int_equal(fake_road.received_count, 4);
        assert_non_null(strstr(metadata(), "\"roles\":[\"77\"]"));
}

static void unavailable_roles_become_unknown(void **state)
{
        struct rig *g = *state;
        unsigned asked = 0;

        missed_by_a_stranger(g);
        while (fake_road.received_count == 1 && asked < 20) {
                await(g, &g->member_count, ++asked);
                answer_member(g, 500, NULL);
        }
        assert_int_equal(asked, 9);
        assert_int_equal(fake_road.received_count, 4);
        assert_non_null(strstr(metadata(), "\"rolesUnknown\":true"));
        assert_null(strstr(metadata(), "\"roles\""));
}

static void few_members_are_looked_up_at_once(void **state)
{
        struct rig *g = *state;
        struct buf b;

        missed_something(g);
        buf_init(&b, 0);
        for (unsigned i = 0; i < 6; i++)
                buf_addf(&b,
                         "%c{\"id\":\"%s\",\"channel_id\":\"10\",\"type\":0,\"content\":\"hi\","
                         "\"author\":{\"id\":\"%u\"}}",
                         i ? ',' : '[', recent(g, 400 - i), 50 + i);
        buf_addstr(&b, ",{\"id\":\"1\"}]");
        answer(g, 0, 200, b.data);
        buf_release(&b);
        assert_int_equal(g->member_count, 4);
        answer_member(g, 503, NULL); /* one that waits makes room */
        assert_int_equal(g->member_count, 5);
        close_it(g);
}

static void the_first_session_reads_nothing_back(void **state)
{
        struct rig *g = *state;
        char now[24], *guild;

        dc_id_at(clock_wall_ms(), now);
        begin(g);
        await(g, &g->ups, 1);
        guild = mem_printf("{\"id\":\"1\",\"channels\":[{\"id\":\"10\",\"type\":0,"
                           "\"last_message_id\":\"%s\"}]}",
                           now);
        fake_dispatch(&g->fake, g->fake.last, "GUILD_CREATE", guild);
        free(guild);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        assert_int_equal(g->get_count, 0);
}

/* Channel 10 has a message from before the first session and one from after it: only that counts.
 */
static void only_the_later_one_is_missed(struct rig *g)
{
        char before[24], after[24], *body;

        dc_id_at(clock_wall_ms() - 20000, before);
        dc_id_at(clock_wall_ms() + 20000, after);
        body = mem_printf("[{\"id\":\"%s\",\"channel_id\":\"10\",\"content\":\"new\",\"author\":"
                          "{\"id\":\"5\"}},{\"id\":\"%s\",\"channel_id\":\"10\",\"content\":"
                          "\"old\",\"author\":{\"id\":\"5\"}}]",
                          after, before);
        answer(g, 0, 200, body);
        free(body);
        answer_member(g, 200, g->member_is);
        assert_int_equal(g->get_count, 1);
        assert_int_equal(fake_road.received_count, 2);
        assert_string_equal(key(1), after);
}

/* The margin for differing clocks must not reach behind the first session. */
static void messages_from_before_the_first_session_are_not_read(void **state)
{
        struct rig *g = *state;
        char now[24];

        dc_id_at(clock_wall_ms(), now);
        lose_session_after(g, now);
        only_the_later_one_is_missed(g);
}

static void the_first_session_is_known_after_a_restart(void **state)
{
        struct rig *g = *state;
        char now[24];

        connected(g);
        close_it(g);
        g->ups = 0;
        dc_id_at(clock_wall_ms(), now);
        lose_session_after(g, now); /* of the second run, which resumes */
        assert_int_equal(g->fake.resumes, 1);
        only_the_later_one_is_missed(g);
}

static int64_t wall_ms_ahead(void)
{
        return clock_wall_ms() + 1800000;
}

/* A clock that is ahead would hide what is missed after the first session: a message corrects it.
 */
static void the_first_session_begins_by_discords_clock(void **state)
{
        struct rig *g = *state;
        char now[24];

        g->o.gateway.wall_ms = wall_ms_ahead;
        dc_id_at(clock_wall_ms(), now);
        lose_session_after(g, now);
        only_the_later_one_is_missed(g);
}

static void closing_with_everything_in_flight_is_safe(void **state)
{
        struct rig *g = *state;

        lose_session_after(g, "100");
        write_in(g, "10", "1", "900",
                 ",\"attachments\":[{\"id\":\"70\",\"url\":\"http://127.0.0.1:1/x\"}]");
        write_in(g, "33", "1", "901", "");
        write_in(g, "12", "1", "902", "");
        await(g, &fake_road.received_count, 2);
        close_it(g);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                T(missed_messages_come_before_live_ones),
                T(a_limit_drops_the_oldest_chatter),
                T(mentions_are_limited),
                T(pages_before_a_refusal_are_kept),
                T(stored_messages_do_not_count),
                T(pages_are_sorted),
                T(endless_pages_are_bounded),
                T(an_unreadable_channel_holds_nothing),
                T(live_messages_do_not_wait_for_ever),
                T(a_second_gap_is_read_back_too),
                T(a_restart_resumes_catch_up),
                T(a_list_that_is_unavailable_is_asked_for_again),
                T(any_number_of_guilds_is_listed),
                T(only_guilds_of_the_shard_with_a_gap_are_listed),
                T(no_shard_holds_all_channels_for_ever),
                T(guilds_wait_for_room_to_read_their_channels),
                T(reading_back_waits_for_the_inbox),
                T(a_resume_does_not_restart_catch_up),
                T(a_gap_closes_when_all_is_stored),
                T(failed_catch_up_is_repeated_later),
                T(first_dms_of_named_people_are_read_back),
                T(dms_opened_too_fast_are_opened_later),
                T(a_second_gap_opens_dms_again),
                T(dms_that_could_not_be_opened_keep_the_gap_open),
                T(first_dms_of_people_in_rules_are_read_back),
                T(first_dms_of_people_met_are_read_back),
                T(a_rule_may_let_everyone_on_discord_write),
                T(a_setting_may_let_everyone_write),
                T(a_live_dm_shows_where_one_was_missed),
                T(a_replayed_dm_shows_where_one_was_missed),
                T(new_chats_long_after_a_gap_are_not_read_back),
                T(messages_read_back_have_their_senders_roles),
                T(a_person_who_left_has_no_roles),
                T(a_member_lookup_retries),
                T(unavailable_roles_become_unknown),
                T(few_members_are_looked_up_at_once),
                T(the_first_session_reads_nothing_back),
                T(messages_from_before_the_first_session_are_not_read),
                T(the_first_session_is_known_after_a_restart),
                T(the_first_session_begins_by_discords_clock),
                T(closing_with_everything_in_flight_is_safe),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
