/*
 * The gateway: identify, resume, heartbeats, close codes, budgets, shards, and a misbehaving
 * Discord.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "../lib/scratch.h"
#include "base/clock.h"
#include "fake_gateway.h"
#include "platform/discord/dc_gateway.h"
#include "platform/discord/dc_shard.h"

#define STEPS 50000

struct rig {
        char *dir;
        struct loop *loop;
        struct http_client *http;
        struct secret *token;
        struct fake_gateway fake;
        struct dc_gateway *gateway;
        struct dc_gateway_options o;
        int bot_status; /* of /gateway/bot */
        int64_t remaining, reset_after, concurrency, shards, since_ms;
        bool keep; /* tickets are not acknowledged */
        uint64_t tickets[2000];
        unsigned asks, events, readies, gaps, behinds, ups, losts, stops;
        struct dc_gateway_stats stats;
        char why[300], types[500], user[50];
        bool resumed, bad_token, free_on_event;
};

static int64_t jump;

static int64_t jumping_wall_ms(void)
{
        return clock_wall_ms() + jump;
}

/* ---- the owner ---- */

static void answer_later(void *arg)
{
        struct rig *g = arg;
        char *text = mem_printf(
                "{\"url\":\"ws://127.0.0.1:%d\",\"shards\":%lld,"
                "\"session_start_limit\":{\"total\":1000,\"remaining\":%lld,\"reset_after\":%lld,"
                "\"max_concurrency\":%lld}}",
                fake_ws_port(g->fake.ws), (long long)g->shards, (long long)g->remaining,
                (long long)g->reset_after, (long long)g->concurrency);
        json_t *body = json_read(text, strlen(text), NULL);

        if (g->gateway)
                dc_gateway_bot(g->gateway, g->bot_status, g->bot_status == 200 ? body : NULL,
                               "as configured");
        json_decref(body);
        free(text);
}

static void on_ask(void *arg)
{
        struct rig *g = arg;

        g->asks++;
        loop_defer(g->loop, answer_later, g);
}

static void on_event(void *arg, const struct dc_dispatch *e)
{
        struct rig *g = arg;
        size_t n = strlen(g->types);

        assert_non_null(e->d);
        g->tickets[g->events++ % COUNT(g->tickets)] = e->ticket;
        snprintf(g->types + n, sizeof(g->types) - n, "%s ", e->type);
        if (g->free_on_event) {
                dc_gateway_free(g->gateway);
                g->gateway = NULL;
        } else if (!g->keep) {
                dc_gateway_committed(g->gateway, e->ticket);
        }
}

static void on_ready(void *arg, const struct dc_gateway_ready *r)
{
        struct rig *g = arg;

        g->readies++;
        g->resumed = r->resumed;
        snprintf(g->user, sizeof(g->user), "%s/%s/%s", r->user_id, r->username, r->application_id);
}

static void on_behind(void *arg)
{
        ((struct rig *)arg)->behinds++;
}

static void on_gap(void *arg, const struct dc_gateway_ready *ready, int64_t since_ms)
{
        struct rig *g = arg;

        (void)ready;
        g->gaps++;
        g->since_ms = since_ms;
}

static void on_state(void *arg, enum dc_gateway_state state, const char *why)
{
        struct rig *g = arg;

        g->ups += state == DC_GATEWAY_UP;
        g->losts += state == DC_GATEWAY_LOST;
        g->stops += state == DC_GATEWAY_STOPPED || state == DC_GATEWAY_BAD_TOKEN;
        g->bad_token = state == DC_GATEWAY_BAD_TOKEN;
        if (why)
                snprintf(g->why, sizeof(g->why), "%s", why);
}

static const struct dc_gateway_handlers handlers = { .ask = on_ask,
                                                     .event = on_event,
                                                     .ready = on_ready,
                                                     .gap = on_gap,
                                                     .behind = on_behind,
                                                     .state = on_state };

static int set_up(void **state)
{
        struct rig *g = mem_zalloc(sizeof(*g));
        char *folder;

        jump = 0;
        g->dir = scratch_new();
        folder = scratch_path(g->dir, "state");
        mkdir(folder, 0700);
        free(folder);
        g->loop = loop_new();
        g->http = http_client_new(g->loop, NULL, NULL);
        g->token = secret_new("a.secret.token", 14);
        fake_gateway_init(&g->fake, g->loop);
        g->bot_status = 200;
        g->remaining = 900;
        g->concurrency = g->shards = 1;
        g->o = (struct dc_gateway_options){
                .loop = g->loop,
                .http = g->http,
                .name = "dc",
                .token = g->token,
                .dir = g->dir,
                .intents = DC_INTENTS,
                .times = { .backoff_ms = 2,
                           .backoff_max_ms = 10,
                           .identify_ms = 1,
                           .invalid_ms = 5,
                           .save_ms = 1,
                           .grace_ms = 1000 },
                .wall_ms = jumping_wall_ms,
        };
        *state = g;
        return 0;
}

static int tear_down(void **state)
{
        struct rig *g = *state;

        dc_gateway_free(g->gateway);
        g->gateway = NULL;
        loop_step(g->loop, false);
        fake_gateway_release(&g->fake);
        http_client_free(g->http);
        secret_free(g->token);
        loop_free(g->loop);
        scratch_free(g->dir);
        free(g);
        return 0;
}

static void begin(struct rig *g)
{
        g->gateway = dc_gateway_new(&g->o, &handlers, g);
}

static void await(struct rig *g, const unsigned *what, unsigned n)
{
        for (int i = 0; i < STEPS && *what < n; i++)
                loop_step(g->loop, true);
        assert_true(*what >= n);
}

static void connected(struct rig *g)
{
        begin(g);
        await(g, &g->ups, 1);
}

static void restart(struct rig *g)
{
        dc_gateway_free(g->gateway);
        g->gateway = NULL;
        g->ups = g->readies = g->gaps = g->behinds = 0;
        begin(g);
}

static void look(struct rig *g)
{
        dc_gateway_stats(g->gateway, &g->stats);
}

/* ---- beginning ---- */

static void identify_has_intents_and_the_bare_token(void **state)
{
        struct rig *g = *state;
        const json_t *d;

        connected(g);
        d = g->fake.identified;
        assert_string_equal(json_str(d, "token", ""), "a.secret.token");
        assert_int_equal(json_int(d, "intents", 0), 112129);
        assert_int_equal(json_array_size(json_object_get(d, "shard")), 2);
        assert_non_null(json_str(json_object_get(d, "properties"), "os", NULL));
        assert_string_equal(g->fake.path, "/?v=10&encoding=json");
        assert_non_null(strstr(fake_ws_request(g->fake.ws), "User-Agent: DiscordBot ("));
        assert_string_equal(g->user, "42/TestBot/43");
        assert_false(g->resumed);
        assert_int_equal(g->gaps, 1);
        assert_int_equal(g->losts, 0);
}

static void events_keep_their_order_in_every_compression(void **state)
{
        static const char *const kinds[] = { NULL, "zlib-stream", "zstd-stream" };
        struct rig *g = *state;

        for (size_t i = 0; i < COUNT(kinds); i++) {
                g->o.compress = g->fake.compress = kinds[i];
                g->o.dir = NULL;
                g->events = g->ups = 0;
                g->types[0] = '\0';
                connected(g);
                fake_dispatch(&g->fake, g->fake.last, "ONE", "{}");
                fake_dispatch(&g->fake, g->fake.last, "TWO", "{\"text\":\"\\u0000\"}");
                fake_dispatch(&g->fake, g->fake.last, "THREE", "{}");
                await(g, &g->events, 3);
                assert_string_equal(g->types, "ONE TWO THREE ");
                dc_gateway_free(g->gateway);
                g->gateway = NULL;
        }
        assert_string_equal(g->fake.path, "/?v=10&encoding=json&compress=zstd-stream");
}

static void a_large_payload_is_parsed_off_the_loop_in_order(void **state)
{
        struct rig *g = *state;
        size_t n = (size_t)2 << 20;
        char *big = mem_alloc(n + 10);

        memset(big, 'x', n + 9);
        memcpy(big, "{\"a\":\"", 6);
        memcpy(big + n + 7, "\"}", 3);
        connected(g);
        fake_dispatch(&g->fake, g->fake.last, "BEFORE", "{}");
        fake_dispatch(&g->fake, g->fake.last, "GUILD_CREATE", big);
        fake_dispatch(&g->fake, g->fake.last, "AFTER", "{}");
        fake_dispatch(&g->fake, g->fake.last, "LAST", "{}");
        free(big);
        await(g, &g->events, 4);
        assert_string_equal(g->types, "BEFORE GUILD_CREATE AFTER LAST ");
        for (int i = 0; i < STEPS && !timer_active(g->gateway->trimming); i++)
                loop_step(g->loop, false);
        assert_true(timer_active(g->gateway->trimming)); /* it was parsed off the loop */
}

static void a_failed_question_for_the_gateway_is_repeated(void **state)
{
        struct rig *g = *state;

        g->bot_status = 503;
        begin(g);
        await(g, &g->asks, 3);
        assert_true(g->losts >= 2);
        g->bot_status = 200;
        await(g, &g->ups, 1);
        assert_int_equal(g->fake.identifies, 1);
}

static void an_unknown_token_stops_the_gateway(void **state)
{
        struct rig *g = *state;

        g->bot_status = 401;
        begin(g);
        await(g, &g->stops, 1);
        assert_true(g->bad_token);
        assert_int_equal(g->asks, 1);
}

/* ---- heartbeats ---- */

static void heartbeats_carry_the_committed_sequence(void **state)
{
        struct rig *g = *state;

        g->fake.interval = 50;
        g->keep = true;
        connected(g);
        fake_dispatch(&g->fake, g->fake.last, "ONE", "{}");
        fake_dispatch(&g->fake, g->fake.last, "TWO", "{}");
        await(g, &g->events, 2);
        g->fake.beats = 0;
        await(g, &g->fake.beats, 2);
        assert_string_equal(g->fake.beat_d, "1");
        dc_gateway_committed(g->gateway, g->tickets[1]); /* out of order: nothing moves */
        await(g, &g->fake.beats, 4);
        assert_string_equal(g->fake.beat_d, "1");
        dc_gateway_committed(g->gateway, g->tickets[0]);
        await(g, &g->fake.beats, 6);
        assert_string_equal(g->fake.beat_d, "3");
        look(g);
        assert_int_equal(g->stats.uncommitted, 0);
        assert_true(g->stats.ping_ms >= 0);
}

static void a_requested_heartbeat_is_sent_at_once(void **state)
{
        struct rig *g = *state;

        connected(g);
        fake_say(&g->fake, g->fake.last, "{\"op\":1,\"d\":null}");
        await(g, &g->fake.beats, 1);
        /* but never beyond Discord's limit of frames */
        for (int i = 0; i < 300; i++)
                fake_say(&g->fake, g->fake.last, "{\"op\":1,\"d\":null}");
        fake_dispatch(&g->fake, g->fake.last, "END", "{}");
        await(g, &g->events, 1);
        for (int i = 0; i < 50; i++)
                loop_step(g->loop, false);
        assert_true(g->fake.beats <= 115);
}

static void a_zombie_connection_is_closed_and_resumed(void **state)
{
        struct rig *g = *state;

        g->fake.interval = 10;
        g->fake.no_ack = true;
        connected(g);
        await(g, &g->fake.gone, 1);
        assert_int_equal(fake_ws_last_close(g->fake.ws), 4000);
        g->fake.no_ack = false;
        g->fake.interval = 60000;
        await(g, &g->fake.resumes, 1);
        for (int i = 0; i < STEPS && !g->resumed; i++)
                loop_step(g->loop, true);
        assert_string_equal(g->fake.resume_session, "session-1");
        look(g);
        assert_int_equal(g->stats.zombies, 1);
        assert_int_equal(g->fake.identifies, 1);
        assert_int_equal(g->losts, 0); /* it was back within the grace time */
}

static void after_a_suspend_it_reconnects(void **state)
{
        struct rig *g = *state;

        g->o.times.suspend_ms = 40;
        connected(g);
        jump = 3600000;
        await(g, &g->fake.resumes, 1);
        assert_int_equal(g->fake.identifies, 1);
}

/* ---- resuming ---- */

static void a_cut_connection_is_resumed(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        connected(g);
        fake_dispatch(&g->fake, g->fake.last, "ONE", "{}");
        await(g, &g->events, 1);
        g->fake.replay = "{}";
        fake_ws_cut(g->fake.last);
        await(g, &g->readies, 2);
        assert_true(g->resumed);
        assert_string_equal(g->fake.path, "/resume/?v=10&encoding=json");
        assert_int_equal(g->fake.resume_seq,
                         2); /* received, not committed: it is still in memory */
        assert_string_equal(g->types, "ONE REPLAYED ");
        assert_int_equal(g->gaps, 1);
}

static void a_replayed_dispatch_is_handed_over_once(void **state)
{
        struct rig *g = *state;

        connected(g);
        fake_dispatch(&g->fake, g->fake.last, "ONE", "{}");
        g->fake.seq--;
        fake_dispatch(&g->fake, g->fake.last, "AGAIN", "{}");
        fake_dispatch(&g->fake, g->fake.last, "TWO", "{}");
        await(g, &g->events, 2);
        assert_string_equal(g->types, "ONE TWO ");
}

static void a_restart_resumes_after_the_last_commit(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        connected(g);
        fake_dispatch(&g->fake, g->fake.last, "ONE", "{}");
        fake_dispatch(&g->fake, g->fake.last, "TWO", "{}");
        await(g, &g->events, 2);
        dc_gateway_committed(g->gateway, g->tickets[0]);
        restart(g);
        await(g, &g->ups, 1);
        assert_int_equal(g->fake.resumes, 1);
        assert_int_equal(g->fake.resume_seq, 2);
        assert_string_equal(g->fake.resume_session, "session-1");
        assert_string_equal(g->user, "42/TestBot/43");
        assert_int_equal(g->gaps, 0);
        assert_int_equal(g->fake.identifies, 1);
}

static void other_token_intents_or_shards_do_not_resume(void **state)
{
        struct rig *g = *state;

        connected(g);
        g->o.intents &= ~DC_INTENT_MESSAGE_CONTENT;
        restart(g);
        await(g, &g->ups, 1);
        assert_int_equal(g->fake.identifies, 2);
        g->o.shards = 2;
        g->o.times.identify_ms = 1;
        restart(g);
        await(g, &g->ups, 1);
        assert_int_equal(g->fake.identifies, 4);
        assert_int_equal(g->fake.resumes, 0);
}

/* A proxy: resuming goes through it as well, and without it the session is another's. */
static void the_gateway_of_the_settings_is_used_for_everything(void **state)
{
        struct rig *g = *state;
        char *url = fake_ws_url(g->fake.ws, "/mine");

        g->o.url = url;
        connected(g);
        assert_string_equal(g->fake.path, "/mine/?v=10&encoding=json");
        fake_ws_cut(g->fake.last);
        await(g, &g->fake.resumes, 1);
        assert_string_equal(g->fake.path, "/mine/?v=10&encoding=json");
        await(g, &g->readies, 2);
        restart(g);
        await(g, &g->ups, 1);
        assert_int_equal(g->fake.resumes, 2); /* the same setting */
        assert_string_equal(g->fake.path, "/mine/?v=10&encoding=json");
        g->o.url = NULL;
        restart(g);
        await(g, &g->ups, 1);
        assert_int_equal(g->fake.resumes, 2);
        assert_int_equal(g->fake.identifies, 2);
        assert_string_equal(g->fake.path, "/?v=10&encoding=json");
        assert_true(g->since_ms > 0); /* and missed messages are read back */
        free(url);
}

/* A session ends an outage: its loss does not wait as long as the last attempt. */
static void a_session_after_an_outage_is_replaced_soon(void **state)
{
        struct rig *g = *state;

        g->o.times.backoff_max_ms = 3600000;
        connected(g);
        g->gateway->shards[0]->failures = 40; /* attempts that failed before */
        fake_say(&g->fake, g->fake.last, "{\"op\":7,\"d\":null}");
        await(g, &g->readies, 2);
        assert_int_equal(g->gateway->shards[0]->wait_ms, 0); /* at once */
        assert_int_equal(g->gateway->shards[0]->failures, 0);
        assert_int_equal(g->gateway->shards[0]->short_lived, 1);
        /* but sessions that end one after the other wait longer */
        fake_say(&g->fake, g->fake.last, "{\"op\":7,\"d\":null}");
        await(g, &g->readies, 3);
        assert_int_equal(g->gateway->shards[0]->wait_ms, -1);
        assert_int_equal(g->gateway->shards[0]->short_lived, 2);
        g->gateway->o.times.stable_ms = 1;
        for (int64_t now = loop_now_ms(g->loop); loop_now_ms(g->loop) < now + 2;)
                loop_step(g->loop, true);
        fake_ws_cut(g->fake.last);
        await(g, &g->readies, 4);
        assert_int_equal(g->gateway->shards[0]->short_lived, 1);
}

/* A new shard takes guilds over from others, with what those missed. */
static void a_new_shard_knows_when_its_gap_began(void **state)
{
        struct rig *g = *state;

        connected(g);
        fake_dispatch(&g->fake, g->fake.last, "X", "{}");
        await(g, &g->events, 1);
        g->o.shards = 2;
        g->o.times.identify_ms = 1;
        restart(g);
        await(g, &g->gaps, 1);
        assert_true(g->since_ms > 0);
        await(g, &g->gaps, 2);
        assert_true(g->since_ms > 0);
        assert_int_equal(g->fake.resumes, 0);
}

static void op_7_resumes_even_before_hello(void **state)
{
        struct rig *g = *state;

        connected(g);
        fake_say(&g->fake, g->fake.last, "{\"op\":7,\"d\":null}");
        await(g, &g->readies, 2);
        assert_int_equal(fake_ws_last_close(g->fake.ws), 4000);
        g->fake.no_hello = true;
        fake_say(&g->fake, g->fake.last, "{\"op\":7,\"d\":null}");
        await(g, &g->fake.opens, 3);
        fake_say(&g->fake, g->fake.last, "{\"op\":7,\"d\":null}");
        await(g, &g->fake.gone, 3);
        g->fake.no_hello = false;
        await(g, &g->readies, 3);
        assert_int_equal(g->fake.identifies, 1);
}

static void op_9_resumes_or_identifies(void **state)
{
        struct rig *g = *state;

        connected(g);
        fake_say(&g->fake, g->fake.last, "{\"op\":9,\"d\":true}");
        await(g, &g->readies, 2);
        assert_int_equal(g->fake.resumes, 1);
        assert_int_equal(g->gaps, 1);
        fake_say(&g->fake, g->fake.last, "{\"op\":9,\"d\":false}");
        await(g, &g->readies, 3);
        assert_int_equal(g->fake.resumes, 1);
        assert_int_equal(g->fake.identifies, 2);
        assert_int_equal(g->gaps, 2);
        fake_dispatch(&g->fake, g->fake.last, "ONE", "{}");
        await(g, &g->events, 1); /* sequence numbers start again with a session */
}

static void three_failed_resumes_end_the_session(void **state)
{
        struct rig *g = *state;

        connected(g);
        g->fake.resume = SAY_CUT;
        fake_ws_cut(g->fake.last);
        await(g, &g->readies, 2);
        assert_int_equal(g->fake.resumes, 3);
        assert_int_equal(g->fake.identifies, 2);
}

static void a_storm_of_op_7_and_9_ends_in_one_session(void **state)
{
        struct rig *g = *state;

        connected(g);
        for (unsigned i = 2; i < 30; i++) {
                fake_say(&g->fake, g->fake.last,
                         i % 5 == 4 ? "{\"op\":9,\"d\":false}" : "{\"op\":7,\"d\":null}");
                await(g, &g->readies, i);
        }
        assert_int_equal(fake_ws_open(g->fake.ws), 1);
        fake_dispatch(&g->fake, g->fake.last, "ONE", "{}");
        await(g, &g->events, 1);
}

static void a_new_session_waits_for_commits_of_the_last(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        connected(g);
        fake_dispatch(&g->fake, g->fake.last, "OLD", "{}");
        await(g, &g->events, 1);
        fake_say(&g->fake, g->fake.last, "{\"op\":9,\"d\":false}");
        await(g, &g->readies, 2);
        restart(g); /* OLD was never committed: the file has the old session */
        await(g, &g->ups, 1);
        assert_string_equal(g->fake.resume_session, "session-1");
        assert_int_equal(g->fake.resume_seq, 1);
}

static void a_gap_begins_after_the_last_commit(void **state)
{
        struct rig *g = *state;
        int64_t first;

        connected(g);
        assert_int_equal(g->since_ms, 0); /* there was nothing before */
        jump = 1000000;
        fake_dispatch(&g->fake, g->fake.last, "ONE", "{}");
        await(g, &g->events, 1);
        first = jumping_wall_ms();
        jump = 2000000;
        g->keep = true;
        fake_dispatch(&g->fake, g->fake.last, "TWO", "{}");
        await(g, &g->events, 2);
        fake_say(&g->fake, g->fake.last, "{\"op\":9,\"d\":false}");
        await(g, &g->gaps, 2);
        assert_in_range(g->since_ms, first - 900000, first);
}

static void a_gap_is_reported_until_it_is_caught_up(void **state)
{
        struct rig *g = *state;
        const int64_t message_ms = 1462015105796; /* from the id below, not from our clock */

        connected(g);
        fake_dispatch(&g->fake, g->fake.last, "MESSAGE_CREATE", "{\"id\":\"175928847299117063\"}");
        await(g, &g->events, 1);
        fake_say(&g->fake, g->fake.last, "{\"op\":9,\"d\":false}");
        await(g, &g->gaps, 2);
        assert_int_equal(g->since_ms, message_ms);
        restart(g);
        await(g, &g->ups, 1);
        assert_int_equal(g->behinds, 1); /* before anything is replayed */
        assert_int_equal(g->gaps, 1);
        assert_int_equal(g->since_ms, message_ms);
        dc_gateway_caught_up(g->gateway, 0);
        restart(g);
        await(g, &g->ups, 1);
        assert_int_equal(g->behinds, 0);
        assert_int_equal(g->gaps, 0);
}

static void unreadable_frames_end_the_session(void **state)
{
        struct rig *g = *state;

        connected(g);
        for (unsigned i = 1; i <= 3; i++) {
                await(g, &g->readies, i);
                fake_say(&g->fake, g->fake.last, "this is no JSON");
                await(g, &g->fake.gone, i);
        }
        await(g, &g->readies, 4);
        look(g);
        assert_int_equal(g->stats.lost, 3);
}

/* ---- close codes ---- */

static void each_close_code_is_handled_as_the_table_says(void **state)
{
        static const struct {
                int code;
                unsigned resumes, identifies, mistakes;
        } rows[] = {
                { 1000, 1, 0, 0 }, { 1001, 1, 0, 0 }, { 4000, 1, 0, 0 }, { 4001, 1, 0, 1 },
                { 4002, 1, 0, 1 }, { 4003, 0, 1, 0 }, { 4005, 1, 0, 1 }, { 4007, 0, 1, 0 },
                { 4008, 1, 0, 1 }, { 4009, 0, 1, 0 }, { 4999, 1, 0, 0 },
        };
        struct rig *g = *state;
        unsigned resumes = 0, identifies = 1, mistakes = 0;

        connected(g);
        for (unsigned i = 0; i < COUNT(rows); i++) {
                fake_ws_close(g->fake.last, rows[i].code, "");
                await(g, &g->readies, i + 2);
                resumes += rows[i].resumes;
                identifies += rows[i].identifies;
                mistakes += rows[i].mistakes;
                look(g);
                if (g->fake.resumes != resumes || g->fake.identifies != identifies ||
                    g->stats.our_mistakes != mistakes)
                        fail_msg("code %d: %u resumes, %u identifies", rows[i].code,
                                 g->fake.resumes, g->fake.identifies);
        }
}

static void fatal_close_codes_stop_with_advice(void **state)
{
        static const struct {
                int code;
                const char *says;
        } rows[] = {
                { 4004, "token" },
                { 4010, "set adapters.dc.shards" },
                { 4011, "adapters.dc.shards" },
                { 4012, "version" },
                { 4013, "adapters.dc.intents" },
                { 4014, "Message Content Intent: switch it on in the developer portal" },
        };
        struct rig *g = *state;

        g->o.dir = NULL;
        for (unsigned i = 0; i < COUNT(rows); i++) {
                g->fake.identify = rows[i].code;
                begin(g);
                await(g, &g->stops, i + 1);
                if (!strstr(g->why, rows[i].says))
                        fail_msg("code %d: %s", rows[i].code, g->why);
                assert_int_equal(g->bad_token, rows[i].code == 4004);
                for (int k = 0; k < 100; k++)
                        loop_step(g->loop, false);
                assert_int_equal(g->fake.identifies, i + 1); /* and never again */
                dc_gateway_free(g->gateway);
                g->gateway = NULL;
        }
}

static void a_missing_intent_is_named(void **state)
{
        struct rig *g = *state;

        g->fake.identify = 4014;
        g->o.intents |= dc_gateway_intent("GUILD_MEMBERS");
        g->o.flags = 1 << 19; /* message content is granted */
        begin(g);
        await(g, &g->stops, 1);
        assert_non_null(strstr(g->why, "Server Members Intent"));
        assert_null(strstr(g->why, "Message Content"));
        dc_gateway_free(g->gateway);
        g->gateway = NULL;
        g->o.flags |= 1 << 15; /* outdated flags grant everything: any may be missing */
        begin(g);
        await(g, &g->stops, 2);
        assert_non_null(strstr(g->why, "Message Content Intent and Server Members Intent"));
}

/* ---- budgets ---- */

static void a_low_session_budget_is_not_spent(void **state)
{
        struct rig *g = *state;

        g->remaining = 10;
        g->reset_after = 50;
        begin(g);
        await(g, &g->losts, 1);
        assert_non_null(strstr(g->why, "only 10 of 1000 sessions a day"));
        assert_int_equal(g->fake.opens, 0);
        g->remaining = 1000;
        await(g, &g->ups, 1);
        assert_int_equal(g->asks, 2);
}

static void shards_identify_in_order_and_by_slot(void **state)
{
        struct rig *g = *state;

        g->shards = 4;
        g->concurrency = 2;
        g->o.times.identify_ms = 30;
        begin(g);
        await(g, &g->fake.identifies, 2);
        for (int i = 0; i < STEPS && g->readies < 2; i++)
                loop_step(g->loop, true);
        assert_int_equal(g->fake.identifies, 2); /* the next two wait for their slots */
        await(g, &g->ups, 1);
        assert_int_equal(g->fake.identifies, 4);
        assert_int_equal(g->fake.shard_order[0] + g->fake.shard_order[1], 1);
        assert_int_equal(g->fake.shard_order[2] + g->fake.shard_order[3], 5);
        assert_int_equal(g->readies, 4);
        look(g);
        assert_int_equal(g->stats.ready, 4);
        assert_int_equal(g->ups, 1);
}

static void a_lost_shard_does_not_affect_others(void **state)
{
        struct rig *g = *state;

        g->o.shards = 2;
        g->o.times.grace_ms = 1;
        connected(g);
        g->fake.resume = SAY_NOTHING;
        fake_ws_cut(g->fake.last);
        await(g, &g->losts, 1);
        look(g);
        assert_int_equal(g->stats.ready, 1);
        assert_int_equal(fake_ws_open(g->fake.ws) >= 1, 1);
}

static void a_full_ack_window_pauses_reading(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        g->fake.interval = 150;
        connected(g);
        for (int i = 0; i < 3000; i++)
                fake_dispatch(&g->fake, g->fake.last, "X", "{}");
        await(g, &g->events, 1000);
        g->fake.beats = 0;
        await(g, &g->fake.beats,
              4); /* heartbeats go on, and unread ACKs do not end the connection */
        look(g);
        assert_true(g->events < 1200);
        assert_int_equal(g->fake.opens, 1);
        g->keep = false;
        for (unsigned i = 0, n = g->events; i < n; i++)
                dc_gateway_committed(g->gateway, g->tickets[i]);
        await(g, &g->events, 3000);
        assert_int_equal(g->fake.opens, 1);
}

/* ---- silence ---- */

static void hello_and_ready_have_deadlines(void **state)
{
        struct rig *g = *state;

        g->o.times.hello_ms = g->o.times.ready_ms = 15;
        g->fake.no_hello = true;
        begin(g);
        await(g, &g->fake.gone, 2);
        g->fake.no_hello = false;
        g->fake.identify = SAY_NOTHING;
        g->fake.bad_answers = 2;
        await(g, &g->ups, 1);
        assert_int_equal(g->fake.identifies, 3);
        assert_true(g->losts > 0);
}

static void an_invalid_identify_is_retried(void **state)
{
        struct rig *g = *state;

        g->fake.identify = SAY_INVALID;
        g->fake.bad_answers = 2;
        begin(g);
        await(g, &g->ups, 1);
        assert_int_equal(g->fake.identifies, 3);
}

static void the_gateway_may_be_freed_inside_an_event(void **state)
{
        struct rig *g = *state;

        connected(g);
        g->free_on_event = true;
        fake_dispatch(&g->fake, g->fake.last, "ONE", "{}");
        fake_dispatch(&g->fake, g->fake.last, "TWO", "{}");
        await(g, &g->fake.gone, 1);
        assert_int_equal(g->events, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                T(identify_has_intents_and_the_bare_token),
                T(events_keep_their_order_in_every_compression),
                T(a_large_payload_is_parsed_off_the_loop_in_order),
                T(a_failed_question_for_the_gateway_is_repeated),
                T(an_unknown_token_stops_the_gateway),
                T(heartbeats_carry_the_committed_sequence),
                T(a_requested_heartbeat_is_sent_at_once),
                T(a_zombie_connection_is_closed_and_resumed),
                T(after_a_suspend_it_reconnects),
                T(a_cut_connection_is_resumed),
                T(a_replayed_dispatch_is_handed_over_once),
                T(a_restart_resumes_after_the_last_commit),
                T(other_token_intents_or_shards_do_not_resume),
                T(the_gateway_of_the_settings_is_used_for_everything),
                T(a_session_after_an_outage_is_replaced_soon),
                T(a_new_shard_knows_when_its_gap_began),
                T(op_7_resumes_even_before_hello),
                T(op_9_resumes_or_identifies),
                T(three_failed_resumes_end_the_session),
                T(a_storm_of_op_7_and_9_ends_in_one_session),
                T(a_new_session_waits_for_commits_of_the_last),
                T(a_gap_begins_after_the_last_commit),
                T(a_gap_is_reported_until_it_is_caught_up),
                T(unreadable_frames_end_the_session),
                T(each_close_code_is_handled_as_the_table_says),
                T(fatal_close_codes_stop_with_advice),
                T(a_missing_intent_is_named),
                T(a_low_session_budget_is_not_spent),
                T(shards_identify_in_order_and_by_slot),
                T(a_lost_shard_does_not_affect_others),
                T(a_full_ack_window_pauses_reading),
                T(hello_and_ready_have_deadlines),
                T(an_invalid_identify_is_retried),
                T(the_gateway_may_be_freed_inside_an_event),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
