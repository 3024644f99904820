/*
 * What Discord tells on its way to the inbox: in order, acknowledged after the commit, nothing
 * missing after a lost session.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "../lib/fake_server.h"
#include "../lib/scratch.h"
#include "base/clock.h"
#include "fake_gateway.h"
#include "fake_road.h"
#include "platform/discord/dc_call.h"
#include "platform/discord/dc_catchup.h"
#include "platform/discord/dc_inbound.h"
#include "platform/discord/dc_intents.h"
#include "platform/discord/discord.h"

#define STEPS 50000
#define GETS  32

/* A question to REST that the test answers. */
struct asked {
        char path[200];
        dc_answer_fn *done; /* NULL: answered */
        void *arg;
};

struct rig {
        char *dir;
        struct loop *loop;
        struct http_client *http;
        struct secret *token;
        struct fake_gateway fake;
        struct platform_ops ops;
        struct adapter adapter;
        struct dc_inbound_options o;
        struct dc_inbound *in;
        struct asked gets[GETS];
        /* the last question for one; they are not counted among the others */
        struct asked member;
        const char *member_is; /* what page() answers to it; NULL: nothing */
        unsigned member_count;
        unsigned get_count, ups, stops, stored, completed, dms;
        struct dc_gateway_stats stats;
        bool bad_token;
        char dm[100], interaction[100];
};

/* ---- the owner ---- */

/* "/channels/10/messages?limit=100" */
static void make_path(const struct dc_get *q, char *out, size_t size)
{
        const struct dc_request request = { .route = q->route,
                                            .args = { q->args[0], q->args[1] },
                                            .query = q->query };
        struct error err = { 0 };
        struct buf path, major;

        buf_init(&path, 0);
        buf_init(&major, 0);
        assert_int_equal(dc_call_path(&request, &path, &major, &err), 0);
        snprintf(out, size, "%s", path.data);
        buf_release(&path);
        buf_release(&major);
}

static void answer_bot(void *arg)
{
        struct asked *a = arg;
        json_t *body =
                json_pack("{s:i, s:{s:i, s:i, s:i, s:i}}", "shards", 1, "session_start_limit",
                          "total", 1000, "remaining", 900, "reset_after", 0, "max_concurrency", 1);

        if (a->done)
                a->done(a->arg, &(struct dc_answer){ .ok = true, .status = 200, .result = body });
        a->done = NULL;
        json_decref(body);
}

static void on_get(void *ctx, const struct dc_get *q, dc_answer_fn *done, void *arg)
{
        struct rig *g = ctx;
        bool of_member = strstr(q->route, "/members/") != NULL;
        struct asked *a = of_member ? &g->member : &g->gets[g->get_count++ % GETS];

        g->member_count += of_member;
        make_path(q, a->path, sizeof(a->path));
        a->done = done;
        a->arg = arg;
        if (strcmp(a->path, "/gateway/bot") == 0) {
                g->get_count--; /* not what the tests are about */
                struct asked *bot = &g->gets[GETS - 1];

                *bot = *a;
                loop_defer(g->loop, answer_bot, bot);
        }
}

static void on_ready(void *ctx, const struct dc_gateway_ready *ready)
{
        (void)ctx, (void)ready;
}

static void on_state(void *ctx, enum dc_gateway_state state, const char *why)
{
        struct rig *g = ctx;

        (void)why;
        g->ups += state == DC_GATEWAY_UP;
        g->stops += state == DC_GATEWAY_STOPPED || state == DC_GATEWAY_BAD_TOKEN;
        g->bad_token = state == DC_GATEWAY_BAD_TOKEN;
}

static void on_stored(void *ctx, const json_t *interaction)
{
        struct rig *g = ctx;

        g->stored++;
        snprintf(g->interaction, sizeof(g->interaction), "%s", json_str(interaction, "token", ""));
}

static void on_complete(void *ctx, const json_t *interaction)
{
        (void)interaction;
        ((struct rig *)ctx)->completed++;
}

static void on_dm(void *ctx, const char *user, const char *channel)
{
        struct rig *g = ctx;

        g->dms++;
        snprintf(g->dm, sizeof(g->dm), "%s in %s", user, channel);
}

static int set_up(void **state)
{
        struct rig *g = mem_zalloc(sizeof(*g));
        char *folder;

        fake_road_reset();
        g->dir = scratch_new();
        folder = scratch_path(g->dir, "state");
        mkdir(folder, 0700);
        free(folder);
        g->loop = loop_new();
        g->http = http_client_new(g->loop, NULL, NULL);
        g->token = secret_new("a.secret.token", 14);
        fake_gateway_init(&g->fake, g->loop);
        g->member_is = "{\"roles\":[]}";
        g->ops.name = "discord";
        g->adapter = (struct adapter){ .ops = &g->ops,
                                       .name = "dc",
                                       .loop = g->loop,
                                       .http = g->http,
                                       .road = FAKE_ROAD,
                                       .dir = g->dir };
        g->o = (struct dc_inbound_options){ .adapter = &g->adapter,
                                            .token = g->token,
                                            .gateway_url = fake_ws_url(g->fake.ws, ""),
                                            .intents = DC_INTENTS,
                                            .media_max_bytes = 1000,
                                            .catchup_seconds = 3600,
                                            .catchup_messages = 120,
                                            .times = { .backoff_ms = 2,
                                                       .backoff_max_ms = 10,
                                                       .identify_ms = 1,
                                                       .invalid_ms = 5,
                                                       .save_ms = 1 } };
        *state = g;
        return 0;
}

static void close_it(struct rig *g)
{
        dc_inbound_free(g->in);
        g->in = NULL;
        /* late acknowledgements find nobody */
        for (unsigned i = 0; i < COUNT(fake_road.arrivals); i++)
                if (fake_road.arrivals[i].ack)
                        fake_road_ack(i, ERR_NONE);
        for (unsigned i = 0; i < GETS; i++)
                g->gets[i].done = NULL;
        g->member.done = NULL;
}

static int tear_down(void **state)
{
        struct rig *g = *state;

        close_it(g);
        loop_step(g->loop, false);
        fake_gateway_release(&g->fake);
        http_client_free(g->http);
        secret_free(g->token);
        loop_free(g->loop);
        free((char *)(uintptr_t)g->o.gateway_url);
        scratch_free(g->dir);
        free(g);
        return 0;
}

static void await(struct rig *g, const unsigned *what, unsigned n)
{
        for (int i = 0; i < STEPS && *what < n; i++)
                loop_step(g->loop, true);
        assert_true(*what >= n);
}

static void begin(struct rig *g)
{
        const struct dc_inbound_hooks hooks = { .ctx = g,
                                                .get = on_get,
                                                .ready = on_ready,
                                                .state = on_state,
                                                .stored = on_stored,
                                                .dm = on_dm,
                                                .complete = on_complete };

        g->in = dc_inbound_new(&g->o, &hooks);
}

#define GUILD(last)                                                                 \
        "{\"id\":\"1\",\"name\":\"Home\",\"channels\":[{\"id\":\"10\",\"type\":0,"  \
        "\"name\":\"general\","                                                     \
        "\"last_message_id\":" last                                                 \
        "},{\"id\":\"12\",\"type\":0,\"name\":\"quiet\",\"last_message_id\":null}," \
        "{\"id\":\"15\",\"type\":15,\"name\":\"forum\",\"last_message_id\":" last   \
        "}],\"threads\":[]}"

static void connected(struct rig *g)
{
        begin(g);
        await(g, &g->ups, 1);
        fake_dispatch(&g->fake, g->fake.last, "GUILD_CREATE", GUILD("\"5\""));
}

/* Somebody writes in a channel; guild "": a DM. */
static void write_in(struct rig *g, const char *channel, const char *guild, const char *id,
                     const char *more)
{
        char *d = mem_printf("{\"id\":\"%s\",\"channel_id\":\"%s\",\"type\":0,\"content\":\"text "
                             "%s\",\"author\":{\"id\":\"5\",\"username\":\"ann\"}%s%s%s%s}",
                             id, channel, id, *guild ? ",\"guild_id\":\"" : "", guild,
                             *guild ? "\",\"member\":{\"roles\":[]}" : "", more);

        fake_dispatch(&g->fake, g->fake.last, "MESSAGE_CREATE", d);
        free(d);
}

static void answer_it(struct asked *a, int status, const char *text)
{
        json_t *body = text ? json_read(text, strlen(text), NULL) : NULL;
        const struct dc_answer answer = {
                .ok = status == 200, .status = status, .result = body, .why = "as told"
        };
        dc_answer_fn *done = a->done;

        assert_non_null(done);
        a->done = NULL;
        done(a->arg, &answer);
        json_decref(body);
}

/* The i-th question of REST is answered. */
static void answer(struct rig *g, unsigned i, int status, const char *text)
{
        answer_it(&g->gets[i], status, text);
}

static void answer_member(struct rig *g, int status, const char *text)
{
        answer_it(&g->member, status, text);
}

static size_t uncommitted(struct rig *g)
{
        dc_inbound_stats(g->in, &g->stats);
        return g->stats.uncommitted;
}

static const char *key(unsigned i)
{
        return fake_road.arrivals[i].key;
}

/* ---- the way ---- */

static void a_message_is_acknowledged_after_its_commit(void **state)
{
        struct rig *g = *state;

        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        assert_string_equal(key(0), "100");
        assert_string_equal(fake_road.received.adapter, "dc");
        assert_int_equal(uncommitted(g), 1); /* the guild before it was nothing to be stored */
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
        assert_true(dc_inbound_channel(g->in, "20", &place));
        assert_string_equal(place.guild, "1");
        assert_string_equal(dc_inbound_user_named(g->in, "ann"), "5");
}

/* A thread that passes for a channel would be out of its channel's rules. */
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

static void files_are_fetched_before_the_message_is_stored(void **state)
{
        static const struct fake_answer script[] = {
                { .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nthe bytes" }
        };
        struct rig *g = *state;
        struct fake_server *cdn = fake_server_new(g->loop, script, COUNT(script));
        char *more = mem_printf(
                     ",\"attachments\":[{\"id\":\"70\",\"filename\":\"a.txt\",\"size\":9,"
                     "\"url\":\"http://127.0.0.1:%d/a.txt\"},{\"id\":\"71\",\"filename\":\"big\","
                     "\"size\":5000,\"url\":\"http://127.0.0.1:1/big\"}]",
                     fake_server_port(cdn)),
             *path;

        connected(g);
        write_in(g, "10", "1", "100", more);
        write_in(g, "10", "1", "101", "");
        await(g, &fake_road.received_count, 2);
        assert_string_equal(key(0), "100");
        assert_int_equal(fake_road.arrivals[0].attachments, 2);
        assert_non_null(strstr(fake_road.arrivals[0].metadata, "it is larger than mediaMaxBytes"));
        assert_string_equal(key(1), "101");
        path = mem_printf("%s/workspace/channels/dc/10/attachments/100-a.txt", g->dir);
        assert_int_equal(access(path, R_OK), 0);
        free(path);
        free(more);
        fake_server_free(cdn);
}

/* Whatever is pasted is called image.png. */
static void files_with_one_name_do_not_collide(void **state)
{
        static const struct fake_answer script[] = {
                { .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none" },
                { .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo" },
        };
        static const char *const names[] = { "100-image.png", "100-2-image.png" };
        struct rig *g = *state;
        struct fake_server *cdn = fake_server_new(g->loop, script, COUNT(script));
        int port = fake_server_port(cdn);
        char *more = mem_printf(
                ",\"attachments\":[{\"id\":\"70\",\"filename\":\"image.png\",\"size\":3,"
                "\"url\":\"http://127.0.0.1:%d/1\"},{\"id\":\"71\",\"filename\":\"image.png\","
                "\"size\":3,\"url\":\"http://127.0.0.1:%d/2\"}]",
                port, port);

        connected(g);
        write_in(g, "10", "1", "100", more);
        await(g, &fake_road.received_count, 1);
        free(more);
        fake_server_free(cdn);
        for (size_t i = 0; i < COUNT(names); i++) {
                char *path =
                        mem_printf("%s/workspace/channels/dc/10/attachments/%s", g->dir, names[i]);
                int found = access(path, R_OK);

                free(path);
                assert_int_equal(found, 0);
        }
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
        snprintf(command, sizeof(command), COMMAND, 4);
        fake_dispatch(&g->fake, g->fake.last, "INTERACTION_CREATE", command);
        await(g, &g->completed, 1);
        assert_int_equal(uncommitted(g), 0);
}

/*
 * Its three seconds run while a file of an earlier message is on its way, or a lost session is read
 * back.
 */
static void an_interaction_does_not_wait_for_earlier_events(void **state)
{
        struct rig *g = *state;
        struct fake_server *cdn = fake_server_new(g->loop, NULL, 0); /* never answers */
        char *more = mem_printf(
                     ",\"attachments\":[{\"id\":\"70\",\"filename\":\"a.txt\",\"size\":9,"
                     "\"url\":\"http://127.0.0.1:%d/a.txt\"}]",
                     fake_server_port(cdn)),
             command[400];

        connected(g);
        write_in(g, "10", "1", "100", more);
        snprintf(command, sizeof(command), COMMAND, 2);
        fake_dispatch(&g->fake, g->fake.last, "INTERACTION_CREATE", command);
        await(g, &fake_road.received_count, 1);
        assert_string_equal(key(0), "interaction:2000");
        fake_road_ack(0, ERR_NONE);
        assert_int_equal(g->stored, 1);
        assert_true(uncommitted(g) > 0); /* the message is told again when we end now */
        close_it(g);
        free(more);
        fake_server_free(cdn);
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
        dc_inbound_interaction(g->in, j, on_posted, NULL);
        assert_int_equal(posted, 0);
        fake_road_ack(1, ERR_NONE);
        assert_int_equal(posted, 1);
        assert_int_equal(g->stored, 0); /* the post itself is the acknowledgement */
        dc_inbound_interaction(g->in, j, on_posted, NULL);
        fake_road_ack(2, ERR_LIMIT);
        assert_int_equal(posted, -1);
        posted = 0;
        dc_inbound_interaction(g->in, j, on_posted, NULL);
        close_it(g);
        assert_int_equal(posted, -1);
        json_decref(j);
}

/* ---- after a gap ---- */

/*
 * A session is lost, and a new one begins that tells of the guild again; newest: the last message
 * of channel 10.
 */
static void lose_session(struct rig *g, const char *newest)
{
        unsigned identifies = g->fake.identifies;
        char *guild;

        fake_say(&g->fake, g->fake.last, "{\"op\":9,\"d\":false}");
        await(g, &g->fake.identifies, identifies + 1);
        guild = mem_printf(
                "%.*s\"%s\"%s", (int)(strstr(GUILD("@"), "@") - GUILD("@")), GUILD("@"), newest,
                "},{\"id\":\"15\",\"type\":15,\"last_message_id\":\"9\"}],\"threads\":[]}");
        fake_dispatch(&g->fake, g->fake.last, "GUILD_CREATE", guild);
        free(guild);
}

static void page(struct rig *g, unsigned i, const char *first, unsigned count)
{
        uint64_t id = strtoull(first, NULL, 10) + count - 1;
        struct buf b;

        buf_init(&b, 0);
        buf_addch(&b, '[');
        for (unsigned k = 0; k < count; k++)
                buf_addf(&b,
                         "%s{\"id\":\"%llu\",\"channel_id\":\"10\",\"type\":0,"
                         "\"content\":\"missed\",\"author\":{\"id\":\"5\",\"username\":\"ann\"}}",
                         k ? "," : "", (unsigned long long)(id - k));
        buf_addch(&b, ']');
        answer(g, i, 200, b.data);
        buf_release(&b);
        if (g->member.done && g->member_is)
                answer_member(g, 200, g->member_is);
}

static void missed_messages_come_before_live_ones(void **state)
{
        struct rig *g = *state;
        char now[24], after[24];

        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        dc_id_at(clock_wall_ms(), now);
        lose_session(g, now);
        await(g, &g->get_count, 1);
        assert_non_null(strstr(g->gets[0].path, "/channels/10/messages?after="));
        assert_non_null(strstr(g->gets[0].path, "&limit=100"));
        snprintf(after, sizeof(after), "%.*s",
                 (int)strcspn(strstr(g->gets[0].path, "after=") + 6, "&"),
                 strstr(g->gets[0].path, "after=") + 6);
        assert_true(dc_id_time_ms(after) <= clock_wall_ms() - 60000);
        write_in(g, "10", "1", "900", "");
        write_in(g, "12", "1", "901", "");
        await(g, &fake_road.received_count, 2);
        assert_string_equal(key(1), "901"); /* the quiet channel does not wait */
        page(g, 0, "200", 3);
        assert_int_equal(fake_road.received_count, 6);
        assert_string_equal(key(2), "200");
        assert_string_equal(key(3), "201");
        assert_string_equal(key(4), "202");
        assert_string_equal(key(5), "900");
        assert_string_equal(fake_road.received.guild, "1");
        assert_int_equal(g->get_count, 1); /* neither the forum nor the quiet channel was asked */
}

static void reading_back_stops_at_the_limit(void **state)
{
        struct rig *g = *state;
        char now[24];

        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        dc_id_at(clock_wall_ms(), now);
        lose_session(g, now);
        await(g, &g->get_count, 1);
        page(g, 0, "200", 100);
        assert_int_equal(g->get_count, 2);
        assert_string_equal(g->gets[1].path, "/channels/10/messages?after=299&limit=20");
        page(g, 1, "300", 20);
        assert_int_equal(g->get_count, 2);
        assert_int_equal(fake_road.received_count, 121);
}

static void an_unreadable_channel_holds_nothing(void **state)
{
        struct rig *g = *state;
        char now[24];

        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        dc_id_at(clock_wall_ms(), now);
        lose_session(g, now);
        await(g, &g->get_count, 1);
        write_in(g, "10", "1", "900", "");
        answer(g, 0, 503, NULL);
        await(g, &g->get_count, 2);
        answer(g, 1, 403, NULL);
        await(g, &fake_road.received_count, 2);
        assert_string_equal(key(1), "900");
}

static void a_second_gap_is_read_back_too(void **state)
{
        struct rig *g = *state;
        char now[24];

        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        dc_id_at(clock_wall_ms(), now);
        lose_session(g, now);
        await(g, &g->get_count, 1);
        lose_session(g, now); /* while the first is being read */
        write_in(g, "12", "1", "901", "");
        await(g, &fake_road.received_count, 2);
        page(g, 0, "200", 1);
        assert_int_equal(g->get_count, 2);
        assert_string_equal(g->gets[1].path, "/channels/10/messages?after=200&limit=100");
        page(g, 1, "201", 1);
        assert_int_equal(g->get_count, 2);
        fake_road_ack(1, ERR_NONE);
        fake_road_ack(2, ERR_NONE);
        fake_road_ack(3, ERR_NONE);
        lose_session(g, now); /* and after it */
        await(g, &g->get_count, 3);
        page(g, 2, "202", 1);
        assert_string_equal(key(4), "202");
}

/* Another life was at it: this one is told of no guild. */
static void resumed_with_a_gap(struct rig *g)
{
        char now[24];

        connected(g);
        dc_id_at(clock_wall_ms(), now);
        write_in(g, "10", "1", now, "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        lose_session(g, now);
        await(g, &g->get_count, 1);
        close_it(g);
        fake_road_reset();
        g->get_count = g->ups = 0;
        begin(g);
        await(g, &g->get_count, 1);
}

/* A session that is resumed tells of no guilds: they are asked for. */
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
                           "\"type\":0}]",
                           now);
        answer(g, 1, 200, channels);
        free(channels);
        assert_int_equal(g->get_count, 4);
        assert_non_null(strstr(g->gets[2].path, "/channels/10/messages?after="));
        assert_string_equal(g->gets[3].path, "/guilds/1/threads/active");
        channels = mem_printf(
                "{\"threads\":[{\"id\":\"13\",\"type\":11,\"last_message_id\":\"%s\"}]}", now);
        answer(g, 3, 200, channels);
        free(channels);
        assert_int_equal(g->get_count, 5);
        assert_non_null(strstr(g->gets[4].path, "/channels/13/messages?after="));
}

/* Ids from `first` on, in the order of Discord's list. */
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
                /* one that tells nothing stops nobody */
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

/* One of two shards has lost its session; guilds belong to a shard by their id. */
static void only_guilds_of_the_shard_with_a_gap_are_listed(void **state)
{
        struct rig *g = *state;
        bool first;

        g->o.shards = 2;
        resumed_with_a_gap(g);
        answer(g, 0, 200, "[{\"id\":\"4194304\"},{\"id\":\"8388608\"}]");
        first = strcmp(g->gets[1].path, "/guilds/4194304/channels") == 0;
        assert_string_equal(g->gets[1].path,
                            first ? "/guilds/4194304/channels" : "/guilds/8388608/channels");
        answer(g, 1, 200, "[]");
        answer(g, 2, 200, "{}");
        assert_int_equal(g->get_count, 3);
}

/*
 * Only the first shard looks up recent conversations, at the end of which everything goes on; the
 * others have to let it go themselves.
 */
static void no_shard_holds_all_channels_for_ever(void **state)
{
        struct rig *g = *state;
        const struct dc_inbound_hooks hooks = { .ctx = g, .get = on_get };
        struct dc_cache *cache = dc_cache_new();
        struct dc_intake *intake = dc_intake_new(&g->o, &hooks, cache);
        struct dc_catchup *catchup = dc_catchup_new(&g->o, &hooks, intake, NULL, NULL);
        json_t *message =
                json_pack("{s:s, s:s, s:i, s:s, s:{s:s, s:s}}", "id", "900", "channel_id", "77",
                          "type", 0, "content", "hi", "author", "id", "5", "username", "ann");
        bool held;

        dc_catchup_hold(catchup);
        dc_intake_event(intake, &(struct dc_dispatch){ .type = "MESSAGE_CREATE", .d = message });
        held = fake_road.received_count == 0;
        dc_catchup_resumed(catchup, 1, 2, clock_wall_ms());
        json_decref(message);
        dc_catchup_free(catchup);
        dc_intake_free(intake);
        dc_cache_free(cache);
        assert_true(held);
        assert_int_equal(fake_road.received_count, 1);
}

/*
 * 300 channels of one guild have news: the next guild is not even asked before most of them are
 * read.
 */
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
        /* four channels are being read, nothing else is asked */
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

/* A full disk, say: what was read is in memory until it is stored. */
static void reading_back_waits_for_the_inbox(void **state)
{
        struct rig *g = *state;
        char now[24];

        g->o.catchup_messages = 2000;
        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        dc_id_at(clock_wall_ms(), now);
        lose_session(g, now);
        await(g, &g->get_count, 1);
        for (unsigned i = 0; i < 5; i++) {
                char first[24];

                snprintf(first, sizeof(first), "%u", 1000 + i * 100);
                page(g, i, first, 100);
        }
        assert_int_equal(fake_road.received_count, 501);
        assert_int_equal(g->get_count, 5);
        for (unsigned i = 1; i <= 500; i++)
                fake_road_ack(i, ERR_NONE);
        await(g, &g->get_count, 6);
        assert_string_equal(g->gets[5].path, "/channels/10/messages?after=1499&limit=100");
}

/* A connection that breaks does not make reading back begin anew. */
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
        assert_string_equal(g->gets[asked].path, "/channels/12"); /* and no guild once more */
        answer(g, asked, 200, "{\"id\":\"12\",\"type\":0,\"guild_id\":\"1\"}");
        await(g, &fake_road.received_count, 1); /* nothing is held for ever */
        answer(g, asked - 1, 200, "{\"threads\":[]}");
        assert_string_equal(g->gets[asked + 1].path, "/guilds/1001/channels");
}

/* Does the file of the session say that something is still to be read? */
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
        connected(g);
        dc_id_at(clock_wall_ms(), now);
        write_in(g, "10", "1", now, "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        lose_session(g, now);
        await(g, &g->get_count, 1);
        page(g, 0, "200", 1);
        for (int i = 0; i < 20; i++)
                loop_step(g->loop, true);
        assert_true(is_missing(g)); /* it is read, and not stored */
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
        connected(g);
        dc_id_at(clock_wall_ms(), now);
        write_in(g, "10", "1", now, "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        lose_session(g, now);
        do { /* until it is given up, and everything is looked at once more */
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
        assert_non_null(strstr(g->gets[at + 2].path, "/channels/10/messages?after="));
        answer(g, at + 2, 200, "[]");
        answer(g, at + 3, 200, "{}");
        for (int i = 0; i < STEPS && is_missing(g); i++)
                loop_step(g->loop, true);
        assert_false(is_missing(g));
}

/* ---- who it was ---- */

static const char *metadata(void)
{
        return fake_road.arrivals[fake_road.received_count - 1].metadata;
}

/* A session was lost, and channel 10 is about to be read; nobody tells yet who wrote there. */
static void missed_something(struct rig *g)
{
        char now[24];

        g->member_is = NULL;
        g->o.catchup_times.wait_ms = 1;
        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        assert_int_equal(g->member_count, 0); /* what happens now tells its member */
        dc_id_at(clock_wall_ms(), now);
        lose_session(g, now);
        await(g, &g->get_count, 1);
}

/* And Ann's messages 200 to 202 are read. */
static void missed_by_a_stranger(struct rig *g)
{
        missed_something(g);
        page(g, 0, "200", 3);
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
        assert_string_equal(key(2), "200");
        assert_string_equal(key(3), "201");
        assert_string_equal(key(4), "202");
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
        assert_int_equal(g->member_count, 1); /* the answer is remembered for a while */
        assert_non_null(strstr(metadata(), "\"roles\":[\"77\"]"));
}

static void few_members_are_looked_up_at_once(void **state)
{
        struct rig *g = *state;
        struct buf b;

        missed_something(g);
        buf_init(&b, 0);
        for (unsigned i = 0; i < 6; i++)
                buf_addf(&b,
                         "%c{\"id\":\"%u\",\"channel_id\":\"10\",\"type\":0,\"content\":\"hi\","
                         "\"author\":{\"id\":\"%u\"}}",
                         i ? ',' : '[', 400 - i, 50 + i);
        buf_addch(&b, ']');
        answer(g, 0, 200, b.data);
        buf_release(&b);
        assert_int_equal(g->member_count, 4);
        answer_member(g, 503, NULL); /* one that must wait makes room */
        assert_int_equal(g->member_count, 5);
        close_it(g);
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

/* ---- the end ---- */

static void a_bad_token_is_reported(void **state)
{
        struct rig *g = *state;

        g->fake.identify = 4004;
        begin(g);
        await(g, &g->stops, 1);
        assert_true(g->bad_token);
}

static void closing_with_everything_in_flight_is_safe(void **state)
{
        struct rig *g = *state;
        char now[24];

        connected(g);
        write_in(g, "10", "1", "100", "");
        await(g, &fake_road.received_count, 1);
        fake_road_ack(0, ERR_NONE);
        dc_id_at(clock_wall_ms(), now);
        lose_session(g, now);
        await(g, &g->get_count, 1);
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
                T(a_message_is_acknowledged_after_its_commit),
                T(other_events_do_not_hold_the_sequence),
                T(a_refused_message_is_offered_again),
                T(an_unstorable_message_is_dropped),
                T(an_unknown_channel_is_looked_up_once_in_order),
                T(a_channel_discord_hides_is_a_plain_one),
                T(a_channel_lookup_retries),
                T(a_dm_shows_where_a_person_is_reached),
                T(files_are_fetched_before_the_message_is_stored),
                T(files_with_one_name_do_not_collide),
                T(an_interaction_is_acknowledged_after_its_commit),
                T(an_interaction_does_not_wait_for_earlier_events),
                T(an_interaction_over_http_is_answered_by_its_post),
                T(missed_messages_come_before_live_ones),
                T(reading_back_stops_at_the_limit),
                T(an_unreadable_channel_holds_nothing),
                T(a_second_gap_is_read_back_too),
                T(a_restart_resumes_catch_up),
                T(any_number_of_guilds_is_listed),
                T(only_guilds_of_the_shard_with_a_gap_are_listed),
                T(no_shard_holds_all_channels_for_ever),
                T(guilds_wait_for_room_to_read_their_channels),
                T(reading_back_waits_for_the_inbox),
                T(a_resume_does_not_restart_catch_up),
                T(a_gap_closes_when_all_is_stored),
                T(failed_catch_up_is_repeated_later),
                T(messages_read_back_have_their_senders_roles),
                T(a_person_who_left_has_no_roles),
                T(a_member_lookup_retries),
                T(unavailable_roles_become_unknown),
                T(live_events_without_a_member_are_looked_up),
                T(few_members_are_looked_up_at_once),
                T(dms_and_webhooks_need_no_member),
                T(a_waiting_event_does_not_stop_other_channels),
                T(the_first_session_reads_nothing_back),
                T(a_bad_token_is_reported),
                T(closing_with_everything_in_flight_is_safe),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
