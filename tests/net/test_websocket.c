/* The WebSocket client against a server that behaves well, badly, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/fake_server.h"
#include "../lib/fake_tls.h"
#include "../lib/fake_ws.h"
#include "base/buf.h"
#include "base/mem.h"
#include "net/websocket.h"
#include "net/ws_handshake.h"

#define STEPS 20000

struct rig {
        struct loop *loop;
        struct http_client *http;
        struct fake_ws *server;
        struct fake_ws_conn *conn;
        struct websocket *ws;
        struct buf server_got, client_got;
        unsigned messages, opens, closes, pongs;
        struct websocket_end end;
        char reason[200], why[300];
        bool free_on_message, echo;
};

static void server_open(void *arg, struct fake_ws_conn *c)
{
        struct rig *g = arg;

        g->conn = c;
}

static void server_message(void *arg, struct fake_ws_conn *c, const char *bytes, size_t n)
{
        struct rig *g = arg;

        (void)c;
        buf_add(&g->server_got, bytes, n);
        buf_addch(&g->server_got, '|');
}

static void server_gone(void *arg, struct fake_ws_conn *c)
{
        struct rig *g = arg;

        if (g->conn == c)
                g->conn = NULL;
}

static void on_open(void *arg)
{
        struct rig *g = arg;

        g->opens++;
}

static void on_message(void *arg, bool binary, const char *bytes, size_t n)
{
        struct rig *g = arg;

        g->messages++;
        buf_addch(&g->client_got, binary ? 'b' : 't');
        buf_add(&g->client_got, bytes, n < 100 ? n : 100);
        buf_addch(&g->client_got, '|');
        if (g->free_on_message) {
                websocket_free(g->ws);
                g->ws = NULL;
        }
}

static void on_pong(void *arg)
{
        struct rig *g = arg;

        g->pongs++;
}

static void on_closed(void *arg, const struct websocket_end *end)
{
        struct rig *g = arg;

        g->closes++;
        g->end = *end;
        snprintf(g->reason, sizeof(g->reason), "%s", end->reason);
        snprintf(g->why, sizeof(g->why), "%s", end->why);
        websocket_free(g->ws);
        g->ws = NULL;
}

static int set_up(void **state)
{
        static const struct fake_ws_handlers handlers = { .on_open = server_open,
                                                          .on_message = server_message,
                                                          .on_gone = server_gone };
        struct rig *g = mem_zalloc(sizeof(*g));

        g->loop = loop_new();
        g->http = http_client_new(g->loop, NULL, NULL);
        g->server = fake_ws_new(g->loop, &handlers, g);
        buf_init(&g->server_got, 0);
        buf_init(&g->client_got, 0);
        *state = g;
        return 0;
}

static int tear_down(void **state)
{
        struct rig *g = *state;

        websocket_free(g->ws);
        fake_ws_free(g->server);
        http_client_free(g->http);
        loop_free(g->loop);
        buf_release(&g->server_got);
        buf_release(&g->client_got);
        free(g);
        return 0;
}

static void open_with(struct rig *g, struct websocket_options o)
{
        static const struct websocket_handlers handlers = { .on_open = on_open,
                                                            .on_message = on_message,
                                                            .on_pong = on_pong,
                                                            .on_closed = on_closed };
        char *url = o.url ? NULL : fake_ws_url(g->server, "/path?v=10");

        if (url)
                o.url = url;
        g->ws = websocket_open(g->loop, g->http, &o, &handlers, g);
        free(url);
}

/* Runs the loop until *what reaches n. */
static void await(struct rig *g, const unsigned *what, unsigned n)
{
        for (int i = 0; i < STEPS && *what < n; i++)
                loop_step(g->loop, true);
        assert_int_equal(*what, n);
}

static void await_text(struct rig *g, const struct buf *b, const char *text)
{
        for (int i = 0; i < STEPS && strcmp(b->data, text) != 0; i++)
                loop_step(g->loop, true);
        assert_string_equal(b->data, text);
}

/* The client may learn of it before the server does. */
static void await_conn(struct rig *g)
{
        await(g, &g->opens, 1);
        for (int i = 0; i < STEPS && !g->conn; i++)
                loop_step(g->loop, true);
        assert_non_null(g->conn);
}

static void opened(struct rig *g)
{
        open_with(g, (struct websocket_options){ 0 });
        await_conn(g);
}

/* ---- messages and closing ---- */

static void messages_go_both_ways_and_a_close_is_answered(void **state)
{
        static const char *const headers[] = { "User-Agent: test (1)", NULL };
        struct rig *g = *state;

        open_with(g, (struct websocket_options){ .headers = headers });
        await_conn(g);
        assert_non_null(strstr(fake_ws_request(g->server), "GET /path?v=10 HTTP/1.1\r\n"));
        assert_non_null(strstr(fake_ws_request(g->server), "\r\nUser-Agent: test (1)\r\n"));
        assert_int_equal(websocket_send(g->ws, false, "one", 3, NULL), 0);
        assert_int_equal(websocket_send(g->ws, true, "two", 3, NULL), 0);
        fake_ws_text(g->conn, "hello");
        fake_ws_binary(g->conn, "\0x", 2);
        await(g, &g->messages, 2);
        await_text(g, &g->server_got, "one|two|");
        assert_memory_equal(g->client_got.data, "thello|b\0x|", 11);
        websocket_close(g->ws, 4000, "going");
        assert_int_equal(websocket_send(g->ws, false, "three", 5, NULL), -1);
        await(g, &g->closes, 1);
        assert_int_equal(fake_ws_last_close(g->server), 4000);
        assert_int_equal(g->end.sent, 4000);
        assert_int_equal(g->end.kind, ERR_NONE);
}

static void a_server_close_is_reported_with_code_and_reason(void **state)
{
        struct rig *g = *state;

        opened(g);
        fake_ws_text(g->conn, "last");
        fake_ws_close(g->conn, 4014, "Disallowed intent(s).");
        await(g, &g->closes, 1);
        assert_string_equal(g->client_got.data, "tlast|");
        assert_int_equal(g->end.code, 4014);
        assert_int_equal(g->end.sent, 0);
        assert_int_equal(g->end.kind, ERR_NONE);
        assert_string_equal(g->reason, "Disallowed intent(s).");
        assert_true(g->end.opened);
}

static void a_cut_connection_is_abnormal(void **state)
{
        struct rig *g = *state;

        opened(g);
        fake_ws_cut(g->conn);
        await(g, &g->closes, 1);
        assert_int_equal(g->end.code, WEBSOCKET_ABNORMAL);
        assert_int_equal(g->end.kind, ERR_NET);
}

static void pings_are_answered_and_pongs_reported(void **state)
{
        struct rig *g = *state;

        opened(g);
        fake_ws_ping(g->conn);
        websocket_ping(g->ws);
        await(g, &g->pongs, 1);
        for (int i = 0; i < STEPS && fake_ws_pongs(g->server) == 0; i++)
                loop_step(g->loop, true);
        assert_int_equal(fake_ws_pongs(g->server), 1);
}

static void frames_that_come_with_the_handshake_are_read(void **state)
{
        struct rig *g = *state;

        fake_ws_greet(g->server, "\x81\x05hello", 7);
        open_with(g, (struct websocket_options){ 0 });
        await(g, &g->messages, 1);
        assert_string_equal(g->client_got.data, "thello|");
}

static void it_may_be_freed_inside_a_message(void **state)
{
        struct rig *g = *state;

        opened(g);
        g->free_on_message = true;
        fake_ws_text(g->conn, "one");
        fake_ws_text(g->conn, "two");
        await(g, &g->messages, 1);
        for (int i = 0; i < STEPS && g->conn; i++)
                loop_step(g->loop, true);
        assert_null(g->conn);
        assert_int_equal(g->closes, 0);
        assert_int_equal(g->messages, 1);
}

static void a_paused_socket_reads_nothing_until_resumed(void **state)
{
        struct rig *g = *state;

        opened(g);
        websocket_pause(g->ws, true);
        fake_ws_text(g->conn, "later");
        for (int i = 0; i < 50; i++)
                loop_step(g->loop, false);
        assert_int_equal(g->messages, 0);
        websocket_pause(g->ws, false);
        await(g, &g->messages, 1);
}

static void a_message_of_many_megabytes_arrives_whole(void **state)
{
        struct rig *g = *state;
        size_t n = (size_t)3 << 20;
        char *big = mem_alloc(n + 1);

        memset(big, 'x', n);
        big[n] = '\0';
        opened(g);
        fake_ws_text(g->conn, big);
        free(big);
        await(g, &g->messages, 1);
        assert_int_equal(g->closes, 0);
}

/* ---- TLS ---- */

static void tls_works_and_checks_the_name(void **state)
{
        struct rig *g = *state;
        struct fake_tls *tls = fake_tls_before(fake_ws_port(g->server), 2);
        char *right = mem_printf("wss://localhost:%d/", fake_tls_port(tls)),
             *wrong = mem_printf("wss://127.0.0.1:%d/", fake_tls_port(tls));
        struct http_client_options o = { .ca_file = fake_tls_ca_file(tls) };

        http_client_free(g->http);
        g->http = http_client_new(g->loop, &o, NULL);
        open_with(g, (struct websocket_options){ .url = wrong });
        await(g, &g->closes, 1);
        assert_int_equal(g->end.kind, ERR_NET);
        assert_false(g->end.opened);
        open_with(g, (struct websocket_options){ .url = right });
        await_conn(g);
        websocket_send(g->ws, false, "secret", 6, NULL);
        fake_ws_text(g->conn, "answer");
        await_text(g, &g->server_got, "secret|");
        await_text(g, &g->client_got, "tanswer|");
        websocket_free(g->ws);
        g->ws = NULL;
        for (int i = 0; i < STEPS && g->conn; i++)
                loop_step(g->loop, true);
        fake_tls_free(tls);
        free(right);
        free(wrong);
}

/* ---- failures before it is open ---- */

static void a_refused_handshake_names_the_status_and_the_wait(void **state)
{
        struct rig *g = *state;

        fake_ws_answer(g->server,
                       "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
        open_with(g, (struct websocket_options){ 0 });
        await(g, &g->closes, 1);
        assert_int_equal(g->end.status, 429);
        assert_int_equal(g->end.retry_after_ms, 7000);
        assert_int_equal(g->end.kind, ERR_LIMIT);
        assert_int_equal(g->opens, 0);
}

static void a_wrong_accept_is_refused(void **state)
{
        struct rig *g = *state;

        fake_ws_answer(g->server, "HTTP/1.1 101 Switching Protocols\r\n"
                                  "Upgrade: websocket\r\n"
                                  "Connection: Upgrade\r\n"
                                  "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n"
                                  "\r\n");
        open_with(g, (struct websocket_options){ 0 });
        await(g, &g->closes, 1);
        assert_int_equal(g->end.kind, ERR_PROTOCOL);
        assert_non_null(strstr(g->why, "Sec-WebSocket-Accept"));
}

static void a_server_that_does_not_answer_meets_the_deadline(void **state)
{
        struct rig *g = *state;

        fake_ws_answer(g->server, "");
        open_with(g, (struct websocket_options){ .open_ms = 30 });
        await(g, &g->closes, 1);
        assert_int_equal(g->end.kind, ERR_TIMEOUT);
}

static void a_proxy_is_asked_for_a_tunnel(void **state)
{
        static const struct fake_answer script[] = {
                { .bytes = "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n" }
        };
        struct rig *g = *state;
        struct fake_server *proxy = fake_server_new(g->loop, script, COUNT(script));
        char *url = fake_server_url(proxy, ""),
             *line = mem_printf("CONNECT 127.0.0.1:%d", fake_ws_port(g->server));

        http_client_free(g->http);
        g->http = http_client_new(g->loop, &(struct http_client_options){ .proxy = url }, NULL);
        open_with(g, (struct websocket_options){ 0 });
        await(g, &g->closes, 1);
        assert_int_equal(g->end.kind, ERR_NET);
        assert_non_null(fake_server_request(proxy, 0));
        assert_memory_equal(fake_server_request(proxy, 0), line, strlen(line));
        assert_int_equal(fake_ws_accepted(g->server), 0);
        fake_server_free(proxy);
        free(url);
        free(line);
}

static void an_invalid_address_is_reported_later(void **state)
{
        struct rig *g = *state;

        open_with(g, (struct websocket_options){ .url = "https://example.org/" });
        assert_int_equal(g->closes, 0);
        await(g, &g->closes, 1);
        assert_int_equal(g->end.kind, ERR_INVALID);
        open_with(g, (struct websocket_options){ .url = "ws://127.0.0.1:1/" });
        await(g, &g->closes, 2);
        assert_int_equal(g->end.kind, ERR_NET);
}

static void it_may_be_freed_or_closed_before_it_is_open(void **state)
{
        struct rig *g = *state;

        open_with(g, (struct websocket_options){ 0 });
        websocket_free(g->ws);
        open_with(g, (struct websocket_options){ 0 });
        websocket_close(g->ws, 4000, NULL);
        await(g, &g->closes, 1);
        assert_int_equal(g->end.kind, ERR_NONE);
        assert_int_equal(g->opens, 0);
        fake_ws_answer(g->server, "HTTP/1.1 101");
        open_with(g, (struct websocket_options){ 0 });
        for (int i = 0; i < STEPS && fake_ws_accepted(g->server) == 0; i++)
                loop_step(g->loop, true);
        for (int i = 0; i < STEPS && !*fake_ws_request(g->server); i++)
                loop_step(g->loop, true);
        websocket_close(g->ws, 4000, NULL); /* between question and answer */
        await(g, &g->closes, 2);
        assert_int_equal(g->end.kind, ERR_NONE);
}

/* ---- hostile frames ---- */

static void a_message_beyond_the_limit_closes_with_1009(void **state)
{
        struct rig *g = *state;

        open_with(g, (struct websocket_options){ .max_message = 10 });
        await_conn(g);
        fake_ws_text(g->conn, "eleven char");
        await(g, &g->closes, 1);
        assert_int_equal(g->end.kind, ERR_LIMIT);
        assert_int_equal(g->end.sent, 1009);
        assert_int_equal(g->messages, 0);
}

static void the_limit_covers_all_fragments(void **state)
{
        static const char pieces[] = "\x01\x06sixsix\x80\x06sixsix";
        struct rig *g = *state;

        open_with(g, (struct websocket_options){ .max_message = 10 });
        await_conn(g);
        fake_ws_raw(g->conn, pieces, sizeof(pieces) - 1);
        await(g, &g->closes, 1);
        assert_int_equal(g->end.kind, ERR_LIMIT);
        assert_int_equal(g->messages, 0);
}

/* Each piece costs memory of its own, many times what is in it. */
static void a_message_in_tiny_fragments_is_refused(void **state)
{
        struct rig *g = *state;
        char crumbs[3 * 1000];

        opened(g);
        for (size_t i = 0; i < sizeof(crumbs); i += 3)
                memcpy(crumbs + i, "\x00\x01x", 3);
        fake_ws_raw(g->conn, "\x01\x00", 2);
        for (int i = 0; i < 100 && g->closes == 0 && g->conn; i++) {
                fake_ws_raw(g->conn, crumbs, sizeof(crumbs));
                loop_step(g->loop, true);
        }
        await(g, &g->closes, 1);
        assert_int_equal(g->end.kind, ERR_PROTOCOL);
        assert_non_null(strstr(g->why, "pieces"));
}

static void nonsense_frames_end_the_connection(void **state)
{
        static const struct {
                const char *what, *bytes;
                size_t n;
        } rows[] = {
                { "reserved opcode", "\x83\x00", 2 },
                { "reserved bit", "\xc1\x00", 2 },
                { "text that is no UTF-8", "\x81\x02\xff\xff", 4 },
                { "a fragmented ping", "\x09\x00", 2 },
                { "a ping of 126 bytes", "\x89\x7e\x00\x7e", 4 },
                { "a continuation of nothing", "\x80\x00", 2 },
                { "a new message inside another", "\x01\x01x\x81\x01y", 6 },
                { "2^63 bytes", "\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00", 10 },
                { "a masked message", "\x81\x81\x00\x00\x00\x00x", 7 },
                { "a reason that is no UTF-8", "\x88\x03\x03\xe8\xff", 5 },
                { "a close code that may not be sent", "\x88\x02\x03\xed", 4 },
        };
        struct rig *g = *state;

        for (unsigned i = 0; i < COUNT(rows); i++) {
                g->opens = 0;
                g->conn = NULL;
                opened(g);
                fake_ws_raw(g->conn, rows[i].bytes, rows[i].n);
                await(g, &g->closes, i + 1);
                if (g->end.kind != ERR_PROTOCOL && g->end.kind != ERR_LIMIT)
                        fail_msg("%s: %d %s", rows[i].what, g->end.kind, g->why);
                assert_int_equal(g->messages, 0);
        }
}

static void a_ping_flood_from_a_stalled_peer_ends(void **state)
{
        struct rig *g = *state;

        opened(g);
        fake_ws_deaf(g->conn);
        for (int i = 0; i < STEPS && g->closes == 0 && g->conn; i++) {
                char ping[127] = "\x89\x7d";

                fake_ws_raw(g->conn, ping, sizeof(ping));
                for (int k = 0; k < 400; k++)
                        fake_ws_raw(g->conn, ping, sizeof(ping));
                loop_step(g->loop, true);
        }
        assert_int_equal(g->closes, 1);
        assert_int_equal(g->end.kind, ERR_PROTOCOL);
}

static void the_send_queue_is_bounded_and_a_stalled_peer_dropped(void **state)
{
        struct rig *g = *state;
        char *piece = mem_zalloc(100000);
        struct error err = { 0 };

        open_with(g, (struct websocket_options){ .max_queued = 200000, .stall_ms = 50 });
        await_conn(g);
        fake_ws_deaf(g->conn);
        for (int i = 0; i < STEPS && g->closes == 0; i++) {
                while (websocket_send(g->ws, true, piece, 100000, &err) == 0)
                        ;
                assert_int_equal(err.kind, ERR_LIMIT);
                assert_true(websocket_queued(g->ws) <= 200000);
                loop_step(g->loop, true);
        }
        await(g, &g->closes, 1);
        assert_int_equal(g->end.kind, ERR_TIMEOUT);
        free(piece);
}

static void a_peer_that_does_not_answer_our_close_is_dropped(void **state)
{
        struct rig *g = *state;

        open_with(g, (struct websocket_options){ .close_ms = 20 });
        await_conn(g);
        fake_ws_deaf(g->conn);
        websocket_close(g->ws, 1000, "bye");
        await(g, &g->closes, 1);
        assert_int_equal(g->end.code, WEBSOCKET_ABNORMAL);
        assert_int_equal(g->end.kind, ERR_NONE);
}

/* ---- the handshake, row by row ---- */

static void answers_are_read_as_the_standard_says(void **state)
{
#define OK    "Upgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\n"
#define KEY   "dGhlIHNhbXBsZSBub25jZQ=="
#define RIGHT "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define HEAD  "HTTP/1.1 101 Switching Protocols\r\n"
        static const struct {
                const char *text;
                int rc, status;
        } rows[] = {
                { HEAD OK RIGHT "\r\n", 1, 101 },
                { HEAD "upgrade:websocket\r\nconnection:Upgrade\r\nX: y\r\n" RIGHT "\r\nrest", 1,
                  101 },
                { HEAD OK RIGHT, 0, 0 },
                { HEAD RIGHT "\r\n", -1, 101 },
                { HEAD OK "\r\n", -1, 101 },
                { HEAD "\r\n", -1, 101 },
                { HEAD OK RIGHT RIGHT "\r\n", -1, 101 },
                { HEAD OK RIGHT "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", -1, 101 },
                { HEAD OK RIGHT "Sec-WebSocket-Protocol: chat\r\n\r\n", -1, 101 },
                { HEAD "Upgrade: websocket\r\nConnection: upgraded\r\n" RIGHT "\r\n", -1, 101 },
                { HEAD OK RIGHT "no colon\r\n\r\n", -1, 101 },
                { "HTTP/1.1 503 Later\r\n\r\n", -1, 503 },
                { "SSH-2.0-OpenSSH\r\n\r\n", -1, 0 },
                { "\r\n\r\n", -1, 0 },
        };
        struct ws_handshake_answer answer;

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                int rc = ws_handshake_read(&answer, rows[i].text, strlen(rows[i].text), KEY, NULL);

                if (rc != rows[i].rc || answer.status != rows[i].status)
                        fail_msg("row %zu: %d, status %d", i, rc, answer.status);
        }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                T(messages_go_both_ways_and_a_close_is_answered),
                T(a_server_close_is_reported_with_code_and_reason),
                T(a_cut_connection_is_abnormal),
                T(pings_are_answered_and_pongs_reported),
                T(frames_that_come_with_the_handshake_are_read),
                T(it_may_be_freed_inside_a_message),
                T(a_paused_socket_reads_nothing_until_resumed),
                T(a_message_of_many_megabytes_arrives_whole),
                T(tls_works_and_checks_the_name),
                T(a_refused_handshake_names_the_status_and_the_wait),
                T(a_wrong_accept_is_refused),
                T(a_server_that_does_not_answer_meets_the_deadline),
                T(a_proxy_is_asked_for_a_tunnel),
                T(an_invalid_address_is_reported_later),
                T(it_may_be_freed_or_closed_before_it_is_open),
                T(a_message_beyond_the_limit_closes_with_1009),
                T(the_limit_covers_all_fragments),
                T(a_message_in_tiny_fragments_is_refused),
                T(nonsense_frames_end_the_connection),
                T(a_ping_flood_from_a_stalled_peer_ends),
                T(the_send_queue_is_bounded_and_a_stalled_peer_dropped),
                T(a_peer_that_does_not_answer_our_close_is_dropped),
                cmocka_unit_test(answers_are_read_as_the_standard_says),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
