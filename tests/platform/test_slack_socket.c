/*
 * Socket Mode: acknowledgements, refresh without a gap, backoff, liveness, sleep, and a misbehaving
 * Slack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/fake_ws.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/slack/sl_socket.h"

#define STEPS 200000
#define CONNS 64
#define HELLO "{\"type\":\"hello\",\"num_connections\":1,\"connection_info\":{\"app_id\":\"A1\"}}"
#define EVENT(id)                                                                                 \
        "{\"envelope_id\":\"" id "\",\"type\":\"events_api\",\"accepts_response_payload\":false," \
        "\"retry_attempt\":0,\"payload\":{\"type\":\"event_callback\",\"event_id\":\"" id "\"}}"
#define TIMED(id, ts)                                                      \
        "{\"envelope_id\":\"" id                                           \
        "\",\"type\":\"events_api\",\"payload\":{\"event\":{\"event_ts\":" \
        "\"" ts "\"}}}"
#define DISCONNECT(reason) "{\"type\":\"disconnect\",\"reason\":\"" reason "\"}"

struct rig {
        struct loop *loop;
        struct http_client *http;
        struct fake_ws *ws;
        struct sl_socket *socket;
        struct sl_socket_options o;
        /* Slack */
        struct fake_ws_conn *conns[CONNS]; /* in the order of their opening; NULL: gone */
        unsigned opens, gone, acks;
        bool no_hello, no_url;
        const char *greeting;    /* instead of hello */
        const char *after_hello; /* sent with each hello */
        unsigned others;         /* connections of other adapters */
        const char *scheme;
        int64_t retry_after_ms;
        char acked[2000], last_ack[500];
        struct fake_ws_conn *ack_conn;
        /* the owner */
        unsigned asks, taken, ups, losts, stops;
        char order[200]; /* the last three digits of each event_ts, or "-" */
        char last_ts[30];
        unsigned inversions;
        bool keep, full, refuse;
        json_t *response;
        struct {
                sl_stored_fn *stored;
                void *arg;
        } open[2000];
        unsigned open_count;
        int retry;
        enum sl_arrival kind;
        char why[300], app[20];
};

static int64_t jump;

static int64_t jumping_wall_ms(void)
{
        return clock_wall_ms() + jump;
}

/* ---- Slack ---- */

static void on_open(void *arg, struct fake_ws_conn *c)
{
        struct rig *g = arg;

        assert_true(g->opens < CONNS);
        g->conns[g->opens++] = c;
        if (g->greeting)
                fake_ws_text(c, g->greeting);
        else if (!g->no_hello)
                fake_ws_text(c, HELLO);
        if (g->after_hello)
                fake_ws_text(c, g->after_hello);
}

static void on_message(void *arg, struct fake_ws_conn *c, const char *bytes, size_t n)
{
        struct rig *g = arg;
        json_t *j = json_read(bytes, n, NULL);
        size_t at = strlen(g->acked);

        g->acks++;
        g->ack_conn = c;
        snprintf(g->last_ack, sizeof(g->last_ack), "%.*s", (int)n, bytes);
        snprintf(g->acked + at, sizeof(g->acked) - at, "%s ", json_str(j, "envelope_id", "?"));
        json_decref(j);
}

static void on_gone(void *arg, struct fake_ws_conn *c)
{
        struct rig *g = arg;

        g->gone++;
        for (size_t i = 0; i < CONNS; i++)
                if (g->conns[i] == c)
                        g->conns[i] = NULL;
}

/* ---- the owner ---- */

struct later {
        struct rig *g;
        unsigned slot;
};

static void answer_later(void *arg)
{
        struct later *l = arg;
        struct rig *g = l->g;
        char *url = mem_printf("%s://127.0.0.1:%d/link", g->scheme, fake_ws_port(g->ws));

        if (g->socket)
                sl_socket_url(g->socket, l->slot, g->no_url ? NULL : url, "as configured",
                              g->retry_after_ms);
        free(url);
        free(l);
}

static void on_ask(void *arg, unsigned slot)
{
        struct rig *g = arg;
        struct later *l = mem_zalloc(sizeof(*l));

        g->asks++;
        l->g = g;
        l->slot = slot;
        loop_defer(g->loop, answer_later, l);
}

static void on_take(void *arg, enum sl_arrival kind, json_t *payload, int retry,
                    sl_stored_fn *stored, void *stored_arg)
{
        struct rig *g = arg;

        const char *ts = json_str(json_object_get(payload, "event"), "event_ts", "-");
        size_t at = strlen(g->order), n = strlen(ts);

        assert_true(json_is_object(payload));
        g->taken++;
        g->inversions += strcmp(ts, g->last_ts) < 0;
        snprintf(g->last_ts, sizeof(g->last_ts), "%s", ts);
        snprintf(g->order + at, sizeof(g->order) - at, "%s ", n > 3 ? ts + n - 3 : ts);
        g->retry = retry;
        g->kind = kind;
        if (!g->keep) {
                stored(stored_arg, !g->refuse, g->response);
                return;
        }
        g->open[g->open_count].stored = stored;
        g->open[g->open_count++].arg = stored_arg;
}

static bool on_is_full(void *arg)
{
        return ((struct rig *)arg)->full;
}

static void on_app(void *arg, const char *id)
{
        struct rig *g = arg;

        snprintf(g->app, sizeof(g->app), "%s", id);
}

static void on_state(void *arg, enum sl_socket_state state, const char *why)
{
        struct rig *g = arg;

        g->ups += state == SL_SOCKET_UP;
        g->losts += state == SL_SOCKET_LOST;
        g->stops += state == SL_SOCKET_STOPPED;
        if (why)
                snprintf(g->why, sizeof(g->why), "%s", why);
}

static unsigned on_others(void *arg)
{
        return ((struct rig *)arg)->others;
}

static const struct sl_socket_handlers handlers = { .ask = on_ask,
                                                    .take = on_take,
                                                    .is_full = on_is_full,
                                                    .app = on_app,
                                                    .others = on_others,
                                                    .state = on_state };

static int set_up(void **state)
{
        static const struct fake_ws_handlers fake = { .on_open = on_open,
                                                      .on_message = on_message,
                                                      .on_gone = on_gone };
        struct rig *g = mem_zalloc(sizeof(*g));

        jump = 0;
        g->loop = loop_new();
        g->http = http_client_new(g->loop, &(struct http_client_options){ 0 }, NULL);
        g->ws = fake_ws_new(g->loop, &fake, g);
        g->scheme = "ws";
        g->retry_after_ms = -1;
        g->o = (struct sl_socket_options){ .loop = g->loop,
                                           .http = g->http,
                                           .name = "slack",
                                           .connections = 1,
                                           .plain = true,
                                           .times = { .backoff_ms = 2,
                                                      .backoff_max_ms = 20,
                                                      .crowded_ms = 2,
                                                      .grace_ms = 1,
                                                      .room_ms = 2 },
                                           .wall_ms = jumping_wall_ms };
        *state = g;
        return 0;
}

static void store_all(struct rig *g)
{
        for (unsigned i = 0; i < g->open_count; i++)
                g->open[i].stored(g->open[i].arg, true, g->response);
        g->open_count = 0;
}

static int tear_down(void **state)
{
        struct rig *g = *state;

        sl_socket_free(g->socket);
        g->socket = NULL;
        store_all(g); /* late receipts are ignored */
        for (size_t i = 0; i < CONNS; i++)
                if (g->conns[i])
                        fake_ws_cut(g->conns[i]);
        for (int i = 0; i < 10; i++)
                loop_step(g->loop, false);
        fake_ws_free(g->ws);
        http_client_free(g->http);
        loop_free(g->loop);
        json_decref(g->response);
        free(g);
        return 0;
}

static void begin(struct rig *g)
{
        g->socket = sl_socket_new(&g->o, &handlers, g);
}

static void await(struct rig *g, const unsigned *count, unsigned n)
{
        for (int i = 0; i < STEPS && *count < n; i++)
                loop_step(g->loop, true);
        assert_true(*count >= n);
}

static void begin_up(struct rig *g)
{
        begin(g);
        await(g, &g->ups, 1);
}

/* ---- tests ---- */

static void is_up_with_the_first_hello_and_opens_all_connections(void **state)
{
        struct rig *g = *state;

        g->o.connections = 3;
        begin_up(g);
        assert_string_equal(g->app, "A1");
        for (int i = 0; i < STEPS && sl_socket_connections(g->socket) < 3; i++)
                loop_step(g->loop, true);
        assert_int_equal(sl_socket_connections(g->socket), 3);
        assert_int_equal(g->asks, 3);
        assert_int_equal(g->ups, 1);
        assert_int_equal(g->losts, 0);
}

static void acknowledges_only_after_the_commit(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        begin_up(g);
        fake_ws_text(g->conns[0], EVENT("e1"));
        fake_ws_text(g->conns[0], EVENT("e2"));
        await(g, &g->taken, 2);
        fake_ws_ping(g->conns[0]); /* answered after everything that was sent before */
        for (int i = 0; i < STEPS && fake_ws_pongs(g->ws) == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(g->acks, 0);
        store_all(g);
        await(g, &g->acks, 2);
        assert_string_equal(g->acked, "e1 e2 ");
        assert_string_equal(g->last_ack, "{\"envelope_id\":\"e2\"}");
}

static void does_not_acknowledge_what_the_inbox_refused(void **state)
{
        struct rig *g = *state;

        g->refuse = true;
        begin_up(g);
        fake_ws_text(g->conns[0], EVENT("e1"));
        await(g, &g->taken, 1);
        g->refuse = false;
        fake_ws_text(g->conns[0], EVENT("e2"));
        await(g, &g->acks, 1);
        assert_string_equal(g->acked, "e2 ");
}

static void tells_kinds_and_retries_and_gives_responses_where_allowed(void **state)
{
        struct rig *g = *state;

        begin_up(g);
        fake_ws_text(g->conns[0],
                     "{\"envelope_id\":\"r\",\"type\":\"events_api\",\"retry_attempt\":2,"
                     "\"retry_reason\":\"timeout\",\"payload\":{\"a\":1}}");
        await(g, &g->acks, 1);
        assert_int_equal(g->kind, SL_EVENT);
        assert_int_equal(g->retry, 2);
        g->response = json_pack("{s:s}", "text", "hi");
        fake_ws_text(g->conns[0], "{\"envelope_id\":\"c\",\"type\":\"slash_commands\","
                                  "\"accepts_response_payload\":true,\"payload\":{\"a\":1}}");
        await(g, &g->acks, 2);
        assert_int_equal(g->kind, SL_COMMAND);
        assert_string_equal(g->last_ack, "{\"envelope_id\":\"c\",\"payload\":{\"text\":\"hi\"}}");
        fake_ws_text(g->conns[0], "{\"envelope_id\":\"i\",\"type\":\"interactive\","
                                  "\"accepts_response_payload\":false,\"payload\":{\"a\":1}}");
        await(g, &g->acks, 3);
        assert_int_equal(g->kind, SL_INTERACTIVE);
        assert_string_equal(g->last_ack, "{\"envelope_id\":\"i\"}");
}

static void survives_frames_that_make_no_sense(void **state)
{
        static const char *const frames[] = { "",
                                              "nonsense",
                                              "[]",
                                              "{}",
                                              "null",
                                              "{\"type\":5}",
                                              "{\"type\":\"novelty\"}",
                                              HELLO,
                                              "{\"envelope_id\":\"\",\"type\":\"events_api\"}",
                                              "{\"envelope_id\":7,\"type\":\"events_api\"}" };
        struct rig *g = *state;

        begin_up(g);
        for (size_t i = 0; i < COUNT(frames); i++)
                fake_ws_text(g->conns[0], frames[i]);
        fake_ws_binary(g->conns[0], "\x00\xff", 2);
        /* acknowledged, or Slack would repeat it */
        fake_ws_text(g->conns[0], "{\"envelope_id\":\"n\",\"type\":\"novelty\",\"payload\":{}}");
        fake_ws_text(g->conns[0], "{\"envelope_id\":\"p\",\"type\":\"events_api\",\"payload\":1}");
        fake_ws_text(g->conns[0], EVENT("e1"));
        await(g, &g->acks, 3);
        assert_string_equal(g->acked, "n p e1 ");
        assert_int_equal(g->taken, 1);
        assert_int_equal(g->losts, 0);
}

static void large_envelopes_keep_their_order(void **state)
{
        struct rig *g = *state;
        char *text = mem_alloc(400001), *frame;

        memset(text, 'x', 400000);
        text[400000] = '\0';
        frame = mem_printf("{\"envelope_id\":\"big\",\"type\":\"events_api\",\"payload\":"
                           "{\"text\":\"%s\"}}",
                           text);
        begin_up(g);
        fake_ws_text(g->conns[0], frame);
        fake_ws_text(g->conns[0], EVENT("e1"));
        await(g, &g->acks, 2);
        assert_string_equal(g->acked, "big e1 ");
        free(frame);
        free(text);
}

static void a_refresh_opens_the_new_connection_before_it_closes_the_old_one(void **state)
{
        static const char *const warnings[] = { DISCONNECT("warning"),
                                                DISCONNECT("refresh_requested"),
                                                DISCONNECT("a_new_reason") };
        struct rig *g = *state;

        begin_up(g);
        for (unsigned i = 0; i < COUNT(warnings); i++) {
                fake_ws_text(g->conns[i], warnings[i]);
                await(g, &g->opens, i + 2);
                assert_non_null(g->conns[i]); /* the new one is open, the old one still, too */
                assert_int_equal(g->gone, i);
                await(g, &g->gone, i + 1);
                assert_int_equal(fake_ws_last_close(g->ws), 1000);
                assert_int_equal(sl_socket_connections(g->socket), 1);
        }
        assert_int_equal(g->losts, 0);
        assert_int_equal(g->ups, 1);
}

static void the_old_connection_serves_until_the_new_one_says_hello(void **state)
{
        struct rig *g = *state;

        begin_up(g);
        g->no_hello = true;
        fake_ws_text(g->conns[0], DISCONNECT("warning"));
        await(g, &g->opens, 2);
        fake_ws_text(g->conns[0], EVENT("e1"));
        await(g, &g->acks, 1);
        assert_int_equal(g->gone, 0);
        fake_ws_text(g->conns[1], HELLO);
        await(g, &g->gone, 1);
        assert_null(g->conns[0]);
        fake_ws_text(g->conns[1], EVENT("e2"));
        await(g, &g->acks, 2);
        assert_string_equal(g->acked, "e1 e2 ");
}

static void a_drained_connection_sends_its_outstanding_acknowledgements(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        begin_up(g);
        fake_ws_text(g->conns[0], EVENT("e1"));
        await(g, &g->taken, 1);
        fake_ws_text(g->conns[0], DISCONNECT("warning"));
        await(g, &g->opens, 2);
        fake_ws_text(g->conns[1], EVENT("e2"));
        await(g, &g->taken, 2); /* the new one said hello */
        assert_non_null(g->conns[0]);
        g->open[0].stored(g->open[0].arg, true, NULL);
        g->open[0] = g->open[1];
        g->open_count = 1;
        await(g, &g->acks, 1);
        assert_ptr_equal(g->ack_conn, g->conns[0]);
        await(g, &g->gone, 1);
        assert_string_equal(g->acked, "e1 ");
}

static void draining_is_bounded(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        g->o.times.drain_ms = 20;
        begin_up(g);
        fake_ws_text(g->conns[0], EVENT("e1"));
        await(g, &g->taken, 1);
        fake_ws_text(g->conns[0], DISCONNECT("warning"));
        await(g, &g->gone, 1);
        store_all(g); /* too late: dropped */
        fake_ws_text(g->conns[1], EVENT("e2"));
        await(g, &g->taken, 2);
        store_all(g);
        await(g, &g->acks, 1);
        assert_string_equal(g->acked, "e2 ");
}

static void an_acknowledgement_is_never_sent_on_another_connection(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        begin_up(g);
        fake_ws_text(g->conns[0], EVENT("e1"));
        await(g, &g->taken, 1);
        fake_ws_cut(g->conns[0]);
        await(g, &g->opens, 2);
        store_all(g);
        for (int i = 0; i < STEPS && sl_socket_connections(g->socket) == 0; i++)
                loop_step(g->loop, true);
        fake_ws_text(g->conns[1], EVENT("e1")); /* Slack sends it again */
        await(g, &g->taken, 2);
        store_all(g);
        await(g, &g->acks, 1);
        assert_string_equal(g->acked, "e1 ");
        assert_ptr_equal(g->ack_conn, g->conns[1]);
}

static void one_of_several_connections_lost_is_no_loss(void **state)
{
        struct rig *g = *state;

        g->o.connections = 2;
        begin(g);
        for (int i = 0; i < STEPS && (g->opens < 2 || sl_socket_connections(g->socket) < 2); i++)
                loop_step(g->loop, true);
        fake_ws_cut(g->conns[0]);
        await(g, &g->opens, 3);
        assert_int_equal(g->losts, 0);
        assert_int_equal(g->ups, 1);
}

static void is_lost_with_the_last_connection_and_up_again(void **state)
{
        struct rig *g = *state;

        begin_up(g);
        g->no_hello = true;
        fake_ws_close(g->conns[0], 1011, "broken");
        await(g, &g->losts, 1);
        assert_non_null(strstr(g->why, "1011"));
        await(g, &g->opens, 2);
        fake_ws_text(g->conns[1], HELLO);
        await(g, &g->ups, 2);
}

/* Each connection has its own delay. */
static void events_of_several_connections_are_taken_in_their_order(void **state)
{
        struct rig *g = *state;

        g->o.connections = 2;
        g->o.times.order_ms = 1500;
        begin(g);
        for (int i = 0; i < STEPS && (g->opens < 2 || sl_socket_connections(g->socket) < 2); i++)
                loop_step(g->loop, true);
        fake_ws_text(g->conns[0], TIMED("e2", "1700000000.000200"));
        fake_ws_text(g->conns[0], TIMED("e4", "1700000000.000400"));
        for (int i = 0; i < 20; i++)
                loop_step(g->loop, false);
        fake_ws_text(g->conns[1], TIMED("e1", "1700000000.000100"));
        fake_ws_text(g->conns[1], TIMED("e3", "1700000000.000300"));
        /* a command does not wait */
        fake_ws_text(g->conns[1], "{\"envelope_id\":\"c\",\"type\":\"slash_commands\","
                                  "\"payload\":{\"a\":1}}");
        await(g, &g->acks, 5);
        assert_string_equal(g->order, "- 100 200 300 400 ");
}

static void a_connection_that_is_far_ahead_waits_for_the_others(void **state)
{
        struct rig *g = *state;

        g->o.connections = 2;
        begin(g);
        for (int i = 0; i < STEPS && (g->opens < 2 || sl_socket_connections(g->socket) < 2); i++)
                loop_step(g->loop, true);
        for (unsigned i = 0; i < 1000; i++) {
                char *text = mem_printf("{\"envelope_id\":\"e\",\"type\":\"events_api\","
                                        "\"payload\":{\"event\":{\"ts\":\"1700000000.%06u\","
                                        "\"event_ts\":\"1700000000.%06u\"}}}",
                                        i, i);

                fake_ws_text(g->conns[i % 2], text);
                free(text);
        }
        await(g, &g->taken, 1000);
        assert_int_equal(g->inversions, 0);
        await(g, &g->acks, 1000);
}

static void events_that_wait_for_older_ones_are_given_back_when_it_closes(void **state)
{
        struct rig *g = *state;

        g->o.connections = 2;
        g->o.times.order_ms = 60000;
        begin(g);
        for (int i = 0; i < STEPS && (g->opens < 2 || sl_socket_connections(g->socket) < 2); i++)
                loop_step(g->loop, true);
        fake_ws_text(g->conns[0], TIMED("e1", "1700000000.000100"));
        fake_ws_ping(g->conns[0]);
        for (int i = 0; i < STEPS && fake_ws_pongs(g->ws) == 0; i++)
                loop_step(g->loop, true);
        sl_socket_free(g->socket);
        g->socket = NULL;
        await(g, &g->gone, 2);
        assert_int_equal(g->taken, 0);
        assert_int_equal(g->acks, 0);
}

/* But that there was a gap is: what Slack could not deliver, it repeats a minute later. */
static void a_short_loss_is_not_reported(void **state)
{
        struct rig *g = *state;

        g->o.times.grace_ms = 60000;
        begin_up(g);
        fake_ws_cut(g->conns[0]);
        await(g, &g->ups, 2);
        assert_int_equal(g->losts, 0);
}

static void a_failed_open_is_lost_with_why_and_retried(void **state)
{
        struct rig *g = *state;

        g->no_url = true;
        begin(g);
        await(g, &g->losts, 3);
        assert_string_equal(g->why, "as configured");
        assert_true(g->asks >= 3);
        g->no_url = false;
        await(g, &g->ups, 1);
}

static void retry_after_is_obeyed(void **state)
{
        struct rig *g = *state;
        int64_t begun;

        g->no_url = true;
        g->retry_after_ms = 150;
        begin(g);
        await(g, &g->asks, 1);
        begun = clock_mono_ms();
        await(g, &g->asks, 2);
        assert_true(clock_mono_ms() - begun >= 149);
}

static void a_plain_address_is_refused_when_the_api_uses_tls(void **state)
{
        struct rig *g = *state;

        g->o.plain = false;
        begin(g);
        await(g, &g->losts, 1);
        assert_non_null(strstr(g->why, "wss:"));
        assert_int_equal(g->opens, 0);
}

static void link_disabled_stops_and_says_what_to_do(void **state)
{
        struct rig *g = *state;

        g->o.connections = 2;
        begin_up(g);
        fake_ws_text(g->conns[0], DISCONNECT("link_disabled"));
        await(g, &g->stops, 1);
        assert_non_null(strstr(g->why, "page Socket Mode"));
        assert_non_null(strstr(g->why, "adapters.slack.mode"));
        await(g, &g->gone, g->opens);
        assert_int_equal(sl_socket_connections(g->socket), 0);
        assert_int_equal(g->losts, 0);
}

static void too_many_connections_back_off_and_name_the_setting(void **state)
{
        struct rig *g = *state;

        g->o.times.crowded_ms = 40;
        g->greeting = DISCONNECT("too_many_websockets");
        begin(g);
        await(g, &g->losts, 1);
        assert_non_null(strstr(g->why, "adapters.slack.connections"));
        await(g, &g->losts, 3);
        g->greeting = NULL;
        await(g, &g->ups, 1);
}

/* Slack repeats an event at once, and then only after a minute. */
static void count_warnings(const char *line, void *arg)
{
        *(unsigned *)arg += strstr(line, "not ours") != NULL;
}

static void connections_of_another_process_are_reported_once(void **state)
{
        struct rig *g = *state;
        unsigned warnings = 0;

        g->greeting = "{\"type\":\"hello\",\"num_connections\":4}";
        g->others = 3; /* of other adapters with this app */
        g->o.times.stable_ms = 1;
        log_divert(count_warnings, &warnings);
        begin_up(g);
        for (unsigned i = 0; i < 4; i++) {
                fake_ws_text(g->conns[i], DISCONNECT("warning"));
                await(g, &g->gone, i + 1);
                assert_int_equal(warnings, i < 2 ? 0 : 1);
                if (i == 1)
                        g->others = 0;
        }
        log_divert(NULL, NULL);
}

static void a_lost_connection_is_replaced_at_once(void **state)
{
        struct rig *g = *state;

        g->o.times.backoff_ms = g->o.times.backoff_max_ms = INT32_MAX;
        begin_up(g);
        fake_ws_text(g->conns[0], DISCONNECT("refresh_requested"));
        fake_ws_close(g->conns[0], 1000, "refresh_requested");
        await(g, &g->opens, 2);
}

static void a_loop_of_opening_and_closing_slows_down(void **state)
{
        struct rig *g = *state;
        int64_t begun = clock_mono_ms();

        g->o.times.backoff_ms = 64;
        g->o.times.backoff_max_ms = 1000;
        g->after_hello = DISCONNECT("warning"); /* at once, each time */
        begin(g);
        await(g, &g->opens, 9);
        /* eight waits of 64 to 1000 ms at most, about half of that with jitter */
        assert_true(clock_mono_ms() - begun >= 300);
}

static void a_connection_that_answers_no_pings_is_replaced(void **state)
{
        struct rig *g = *state;

        g->o.times.ping_ms = 10;
        g->o.times.pong_ms = 40;
        begin_up(g);
        fake_ws_deaf(g->conns[0]);
        await(g, &g->losts, 1);
        assert_string_equal(g->why, "Slack does not answer pings");
        await(g, &g->ups, 2);
}

static void a_connection_without_pings_of_slack_is_replaced(void **state)
{
        struct rig *g = *state;

        g->o.times.ping_ms = 10;
        g->o.times.quiet_ms = 60;
        begin_up(g);
        fake_ws_ping(g->conns[0]);
        await(g, &g->losts, 1);
        assert_string_equal(g->why, "Slack stopped sending pings");
        await(g, &g->ups, 2);
}

static void a_connection_without_hello_is_replaced(void **state)
{
        struct rig *g = *state;

        g->no_hello = true;
        g->o.times.hello_ms = 100;
        begin(g);
        await(g, &g->losts, 1);
        g->no_hello = false;
        await(g, &g->ups, 1);
}

static void reading_pauses_while_the_owner_is_full(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        g->o.times.ping_ms = 5;
        g->o.times.pong_ms = 10;
        begin_up(g);
        g->full = true;
        fake_ws_text(g->conns[0], EVENT("e1"));
        await(g, &g->taken, 1);
        fake_ws_text(g->conns[0], EVENT("e2"));
        for (int64_t until = clock_mono_ms() + 60; clock_mono_ms() < until;)
                loop_step(g->loop, true);
        assert_int_equal(g->taken, 1);
        assert_int_equal(g->losts, 0); /* and not for dead */
        g->full = false;
        await(g, &g->taken, 2);
        store_all(g);
        await(g, &g->acks, 2);
}

static void after_sleep_all_connections_are_renewed_and_the_loss_is_told(void **state)
{
        struct rig *g = *state;

        g->o.connections = 2;
        g->o.times.suspend_ms = 40;
        g->o.times.grace_ms = 60000;
        begin(g);
        await(g, &g->opens, 2);
        await(g, &g->ups, 1);
        jump = 3600000;
        await(g, &g->losts, 1);
        assert_string_equal(g->why, "the machine was asleep");
        await(g, &g->ups, 2);
        await(g, &g->opens, 4);
        await(g, &g->gone, 2);
}

static void closing_forgets_everything(void **state)
{
        struct rig *g = *state;

        g->keep = true;
        begin_up(g);
        fake_ws_text(g->conns[0], EVENT("e1"));
        await(g, &g->taken, 1);
        sl_socket_free(g->socket);
        g->socket = NULL;
        store_all(g);
        await(g, &g->gone, 1);
        assert_int_equal(g->acks, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                T(is_up_with_the_first_hello_and_opens_all_connections),
                T(acknowledges_only_after_the_commit),
                T(does_not_acknowledge_what_the_inbox_refused),
                T(tells_kinds_and_retries_and_gives_responses_where_allowed),
                T(survives_frames_that_make_no_sense),
                T(large_envelopes_keep_their_order),
                T(a_refresh_opens_the_new_connection_before_it_closes_the_old_one),
                T(the_old_connection_serves_until_the_new_one_says_hello),
                T(a_drained_connection_sends_its_outstanding_acknowledgements),
                T(draining_is_bounded),
                T(an_acknowledgement_is_never_sent_on_another_connection),
                T(one_of_several_connections_lost_is_no_loss),
                T(is_lost_with_the_last_connection_and_up_again),
                T(events_of_several_connections_are_taken_in_their_order),
                T(a_connection_that_is_far_ahead_waits_for_the_others),
                T(events_that_wait_for_older_ones_are_given_back_when_it_closes),
                T(a_short_loss_is_not_reported),
                T(a_failed_open_is_lost_with_why_and_retried),
                T(retry_after_is_obeyed),
                T(a_plain_address_is_refused_when_the_api_uses_tls),
                T(link_disabled_stops_and_says_what_to_do),
                T(too_many_connections_back_off_and_name_the_setting),
                T(connections_of_another_process_are_reported_once),
                T(a_lost_connection_is_replaced_at_once),
                T(a_loop_of_opening_and_closing_slows_down),
                T(a_connection_that_answers_no_pings_is_replaced),
                T(a_connection_without_pings_of_slack_is_replaced),
                T(a_connection_without_hello_is_replaced),
                T(reading_pauses_while_the_owner_is_full),
                T(after_sleep_all_connections_are_renewed_and_the_loss_is_told),
                T(closing_forgets_everything),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
