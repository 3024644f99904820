#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "../lib/http_raw_client.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/http_server.h"

/* The server under test and what its routes saw. */
struct site {
        struct loop *loop;
        struct http_server *server;
        struct http_exchange *waiting[8]; /* exchanges of /later, not answered yet */
        size_t waiting_count;
        unsigned asked, answered, identities, streams;
        int last_status;
};

static void answer_text(struct http_exchange *x, const char *text)
{
        http_answer(x, 200, "text/plain", text, strlen(text));
}

static void run_hello(struct http_exchange *x)
{
        struct site *t = http_server_arg(x);

        t->asked++;
        answer_text(x, "hello");
}

static void run_echo(struct http_exchange *x)
{
        struct site *t = http_server_arg(x);
        const char *body;
        size_t n;

        t->asked++;
        body = http_body(x, &n);
        http_answer(x, 200, "text/plain", body, n);
}

static void run_param(struct http_exchange *x)
{
        char text[200];

        snprintf(text, sizeof(text), "id=%s q=%s path=%s peer=%s key=%s", http_param(x, "id"),
                 http_query(x, "q") ? http_query(x, "q") : "-", http_path(x), http_peer(x),
                 http_header(x, "X-Key") ? http_header(x, "X-Key") : "-");
        http_add_header(x, "X-Seen", "yes");
        answer_text(x, text);
}

static void run_literal(struct http_exchange *x)
{
        answer_text(x, "literal");
}

static void run_later(struct http_exchange *x)
{
        struct site *t = http_server_arg(x);

        t->asked++;
        t->waiting[t->waiting_count++] = x;
}

static void run_big(struct http_exchange *x)
{
        size_t n = 4 * 1024 * 1024;
        char *text = mem_alloc(n);

        memset(text, 'x', n);
        http_answer_take(x, 200, "text/plain", text, n);
}

static ssize_t pull_endless(void *arg, char *out, size_t max)
{
        (void)arg;
        memset(out, 'x', max);
        return (ssize_t)max;
}

static ssize_t pull_nothing(void *arg, char *out, size_t max)
{
        (void)arg, (void)out, (void)max;
        return 0;
}

static void on_stream_closed(void *arg)
{
        struct site *t = arg;

        t->streams--;
}

static void run_endless(struct http_exchange *x)
{
        static const struct http_stream_ops ops = { pull_endless, on_stream_closed };
        struct site *t = http_server_arg(x);
        struct http_stream *stream;

        t->streams++;
        http_answer_stream(x, "text/plain", &ops, t, &stream);
}

static void run_quiet(struct http_exchange *x)
{
        static const struct http_stream_ops ops = { pull_nothing, on_stream_closed };
        struct site *t = http_server_arg(x);
        struct http_stream *stream;

        t->streams++;
        http_answer_stream(x, "text/plain", &ops, t, &stream);
}

static void run_json(struct http_exchange *x)
{
        http_answer_json(x, 201, json_pack("{s:s}", "made", "it"));
}

static const struct http_route routes[] = {
        { "GET", "/hello", run_hello, 0, NULL },
        { "POST", "/echo", run_echo, 0, NULL },
        { "POST", "/small", run_echo, 10, NULL },
        { "GET", "/things/:id", run_param, 0, NULL },
        { "DELETE", "/things/:id", run_param, 0, NULL },
        { "GET", "/things/list", run_literal, 0, NULL },
        { "GET", "/things/:id/parts/:part", run_param, 0, NULL },
        { "POST", "/later", run_later, 0, NULL },
        { "POST", "/strange", run_later, 0, NULL, .unproven = true },
        { "GET", "/big", run_big, 0, NULL },
        { "GET", "/endless", run_endless, 0, NULL },
        { "GET", "/quiet", run_quiet, 0, NULL },
        { "POST", "/json", run_json, 0, NULL },
};

static void free_identity(void *identity)
{
        struct site *t = identity;

        t->identities--;
}

static bool gate(void *arg, struct http_exchange *x)
{
        struct site *t = arg;
        const char *key = http_header(x, "Authorization");

        t->identities++;
        http_set_identity(x, t, free_identity);
        if (!key || strcmp(key, "wrong") != 0)
                return true;
        http_refuse(x, 401, "unauthorized", "the key '%s' is unknown", key);
        return false;
}

static void refuse(void *arg, struct http_exchange *x, int status, const char *code,
                   const char *message)
{
        char text[600];

        (void)arg;
        snprintf(text, sizeof(text), "{\"error\":\"%s\",\"message\":\"%s\"}", code, message);
        http_answer(x, status, "application/json", text, strlen(text));
}

static void answered(void *arg, const struct http_route *route, int status, int64_t micros)
{
        struct site *t = arg;

        (void)route;
        assert_true(micros >= 0);
        t->answered++;
        t->last_status = status;
}

static const struct http_server_hooks hooks = { gate, refuse, answered };

static void open_site(struct site *t, const struct http_server_options *more)
{
        struct http_server_options o = more ? *more : (struct http_server_options){ 0 };
        struct error err;

        memset(t, 0, sizeof(*t));
        o.listen = "127.0.0.1:0";
        t->loop = loop_new();
        t->server = http_server_new(t->loop, &o, routes, COUNT(routes), &hooks, t, &err);
        assert_non_null(t->server);
}

static void close_site(struct site *t)
{
        http_server_free(t->server);
        for (size_t i = 0; i < t->waiting_count; i++) {
                if (t->waiting[i])
                        answer_text(t->waiting[i], "too late");
        }
        loop_free(t->loop);
        assert_int_equal(t->identities, 0);
}

static void visit(struct site *t, struct http_raw *c)
{
        http_raw_open(c, t->loop, http_server_address(t->server));
}

/*
 * Sends it on a new connection, waits for the answer and returns its status. The client stays
 * open.
 */
static int ask(struct site *t, struct http_raw *c, const char *request)
{
        visit(t, c);
        http_raw_say(c, request);
        http_raw_wait_answers(c, 1);
        return http_raw_status(c, 0);
}

static void expect(const char *request, int status, const char *text)
{
        struct site t;
        struct http_raw c;

        open_site(&t, NULL);
        assert_int_equal(ask(&t, &c, request), status);
        if (text && !strstr(c.in.data, text))
                fail_msg("'%s' is not in: %s", text, c.in.data);
        http_raw_close(&c);
        close_site(&t);
}

static void a_route_answers(void **state)
{
        (void)state;
        expect("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n", 200, "\r\n\r\nhello");
        expect("POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 201,
               "{\"made\":\"it\"}");
}

static void parameters_and_queries_are_decoded(void **state)
{
        (void)state;
        expect("GET /things/a%2Fb%20c?q=x+y%26&z HTTP/1.1\r\nHost: a\r\nX-Key: k  \r\n\r\n", 200,
               "id=a/b c q=x y& path=/things/a%2Fb%20c peer=127.0.0.1 key=k");
        expect("GET /things/1/parts/2 HTTP/1.1\r\nHost: a\r\n\r\n", 200, "id=1 q=-");
        expect("GET /things/1 HTTP/1.1\r\nHost: a\r\n\r\n", 200, "X-Seen: yes");
}

static void a_literal_wins_over_a_parameter(void **state)
{
        (void)state;
        expect("GET /things/list HTTP/1.1\r\nHost: a\r\n\r\n", 200, "literal");
}

static void a_broken_escape_is_a_bad_request(void **state)
{
        (void)state;
        expect("GET /things/%4 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request");
        expect("GET /things/%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request");
        expect("GET /things/%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request");
        expect("GET /hello?a=%1 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_request");
}

static void an_unknown_path_is_404_and_an_unknown_method_405_with_allow(void **state)
{
        (void)state;
        expect("GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", 404, "not_found");
        expect("GET /hello/ HTTP/1.1\r\nHost: a\r\n\r\n", 404, "not_found");
        expect("GET /things/ HTTP/1.1\r\nHost: a\r\n\r\n", 404, "not_found");
        expect("GET /1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17 HTTP/1.1\r\nHost: a\r\n\r\n", 404,
               "not_found");
        expect("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 405,
               "Allow: GET, HEAD");
        expect("PUT /things/4 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 405,
               "Allow: GET, HEAD, DELETE");
        expect("BREW /hello HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed");
}

static void head_gives_the_length_without_the_body(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(&c, "HEAD /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_status(&c, 0), 200);
        assert_non_null(strstr(c.in.data, "Content-Length: 5\r\n"));
        assert_null(strstr(c.in.data, "hello"));
        http_raw_close(&c);
        close_site(&t);
}

static void a_refused_request_without_a_body_keeps_the_connection(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        assert_int_equal(ask(&t, &c, "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"), 404);
        http_raw_say(&c, "GET /hello HTTP/1.1\r\nHost: a\r\nAuthorization: wrong\r\n\r\n");
        assert_true(http_raw_wait_answers(&c, 2));
        assert_int_equal(http_raw_status(&c, 1), 401);
        http_raw_say(&c, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(http_raw_wait_answers(&c, 3));
        assert_int_equal(http_raw_status(&c, 2), 200);
        assert_int_equal(t.answered, 3);
        http_raw_close(&c);
        close_site(&t);
}

static void the_gate_refuses_before_the_body_is_read(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(&c,
                     "POST /echo HTTP/1.1\r\nHost: a\r\nAuthorization: wrong\r\nContent-Length: "
                     "5000\r\n\r\nabc");
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_status(&c, 0), 401);
        assert_int_equal(t.asked, 0);
        http_raw_close(&c);
        close_site(&t);
}

static void a_body_is_collected_however_it_is_sent(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc");
        http_raw_say(&c, "def");
        assert_true(http_raw_wait_answers(&c, 1));
        assert_non_null(strstr(c.in.data, "\r\n\r\nabcdef"));
        http_raw_say(
                &c,
                "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n"
                "2;e=1\r\n");
        http_raw_say(&c, "uv\r\n0\r\n\r\n");
        assert_true(http_raw_wait_answers(&c, 2));
        assert_non_null(strstr(c.in.data, "\r\n\r\nxyzuv"));
        assert_true(http_raw_wait_closed(&c)); /* nothing after a chunked body is believed */
        http_raw_close(&c);
        close_site(&t);
}

static void a_large_body_up_to_the_limit_is_accepted(void **state)
{
        struct site t;
        struct http_raw c;
        size_t n = 1024 * 1024;
        char *body = mem_alloc(n);
        char head[100];

        (void)state;
        memset(body, 'b', n);
        open_site(&t, NULL);
        visit(&t, &c);
        snprintf(head, sizeof(head),
                 "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", n);
        http_raw_say(&c, head);
        assert_true(http_raw_send(&c, body, n));
        assert_true(http_raw_wait_answers(&c, 1));
        assert_true(c.in.len > n);
        http_raw_close(&c);
        close_site(&t);
        free(body);
}

/* Posts n bytes to be answered later; the client stays open. */
static void post_later(struct site *t, struct http_raw *c, const char *path, size_t n)
{
        char head[200], *body = mem_alloc(n);

        memset(body, 'b', n);
        snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
                 path, n);
        visit(t, c);
        http_raw_say(c, head);
        http_raw_send(c, body, n);
        free(body);
}

static bool has_asked_two(void *arg)
{
        const struct site *t = arg;

        return t->asked == 2;
}

static bool has_waiting_three(void *arg)
{
        const struct site *t = arg;

        return t->waiting_count == 3;
}

static void the_bodies_of_all_requests_are_limited(void **state)
{
        struct http_server_options o = { .max_body = 1000, .max_bodies = 2500 };
        struct http_raw held[2], c;
        struct site t;
        char chunk[1200];

        (void)state;
        open_site(&t, &o);
        post_later(&t, &held[0], "/strange", 1000);
        post_later(&t, &held[1], "/later", 1000);
        assert_true(http_raw_until(t.loop, has_asked_two, &t));

        /* nothing of a body is read when it would not fit */
        post_later(&t, &c, "/later", 600);
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_status(&c, 0), 503);
        assert_non_null(strstr(c.in.data, "Retry-After: 1\r\n"));
        http_raw_close(&c);
        visit(&t, &c); /* nor waited for */
        http_raw_say(&c, "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 600\r\n\r\n");
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_status(&c, 0), 503);
        http_raw_close(&c);
        snprintf(chunk, sizeof(chunk),
                 "POST /later HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "258\r\n%0600d\r\n0\r\n\r\n",
                 0);
        assert_int_equal(ask(&t, &c, chunk), 503);
        assert_non_null(strstr(c.in.data, "Retry-After: 1\r\n"));
        http_raw_close(&c);
        /* requests without a key share half of it */
        post_later(&t, &c, "/strange", 300);
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_status(&c, 0), 503);
        http_raw_close(&c);
        assert_int_equal(t.asked, 2);

        answer_text(t.waiting[0], "done");
        assert_true(http_raw_wait_answers(&held[0], 1));
        t.waiting[0] = NULL;
        /* what was answered leaves its room to others */
        snprintf(chunk, sizeof(chunk),
                 "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n%01000d", 0);
        assert_int_equal(ask(&t, &c, chunk), 200);
        http_raw_close(&c);
        post_later(&t, &c, "/strange", 1000);
        assert_true(http_raw_until(t.loop, has_waiting_three, &t));
        http_raw_close(&c);
        http_raw_close(&held[0]); /* a client that goes away gives its bytes back later */
        http_raw_close(&held[1]);
        close_site(&t);
}

static void expect_continue_is_answered_with_100(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(
                &c,
                "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n"
                "\r\n");
        assert_true(http_raw_wait_for(&c, "HTTP/1.1 100 Continue\r\n\r\n"));
        http_raw_say(&c, "abc");
        assert_true(http_raw_wait_answers(&c, 1));
        assert_int_equal(http_raw_status(&c, 0), 200);
        http_raw_close(&c);
        close_site(&t);
}

static void a_body_over_the_limit_is_413_and_closed_without_reading_it(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(
                &c,
                "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nExpect: 100-continue\r\n"
                "\r\n");
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_status(&c, 0), 413);
        assert_non_null(strstr(c.in.data, "too_large"));
        http_raw_close(&c);
        visit(&t, &c);
        http_raw_say(&c,
                     "POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n"
                     "12345678901");
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_status(&c, 0), 413);
        assert_non_null(strstr(c.in.data, "too_large"));
        assert_int_equal(t.asked, 0);
        http_raw_close(&c);
        close_site(&t);
}

static bool has_waiting(void *arg)
{
        struct site *t = arg;

        return t->waiting_count > 0;
}

static bool has_no_connections(void *arg)
{
        struct site *t = arg;

        return http_server_connections(t->server) == 0;
}

#define LATER "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"

static void an_answer_may_come_later(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(&c, LATER);
        assert_true(http_raw_until(t.loop, has_waiting, &t));
        for (int i = 0; i < 10; i++)
                loop_step(t.loop, false); /* nothing happens meanwhile */
        assert_string_equal(http_body(t.waiting[0], NULL), "hi");
        assert_string_equal(http_header(t.waiting[0], "host"), "a");
        answer_text(t.waiting[0], "at last");
        t.waiting[0] = NULL;
        assert_true(http_raw_wait_answers(&c, 1));
        assert_non_null(strstr(c.in.data, "at last"));
        http_raw_say(&c, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(http_raw_wait_answers(&c, 2));
        http_raw_close(&c);
        close_site(&t);
}

static void a_half_closed_client_still_gets_its_answer(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(&c, LATER);
        http_raw_half_close(&c);
        assert_true(http_raw_until(t.loop, has_waiting, &t));
        answer_text(t.waiting[0], "at last");
        t.waiting[0] = NULL;
        assert_true(http_raw_wait_answers(&c, 1));
        assert_true(http_raw_wait_closed(&c));
        http_raw_close(&c);
        close_site(&t);
}

static void a_client_that_closes_after_its_request_is_released(void **state)
{
        static const char request[] = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        /* without letting the server run in between */
        assert_int_equal(send(c.fd, request, strlen(request), 0), strlen(request));
        http_raw_half_close(&c);
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_answers(&c), 1);
        http_raw_close(&c);
        close_site(&t);
}

static void a_client_may_vanish_in_every_phase(void **state)
{
        static const char *const said[] = {
                "",
                "GET /he",
                "GET /hello HTTP/1.1\r\nHo",
                "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab",
                "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
                "GET /big HTTP/1.1\r\nHost: a\r\n\r\n",
        };
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        for (size_t i = 0; i < 3 * COUNT(said); i++) {
                visit(&t, &c);
                http_raw_say(&c, said[i / 3]);
                for (int round = 0; round < 3; round++)
                        loop_step(t.loop, false);
                if (i % 3 == 0)
                        http_raw_close(&c);
                else if (i % 3 == 1)
                        http_raw_reset(&c);
                else
                        http_raw_half_close(&c);
                if (i % 3 == 2) {
                        assert_true(http_raw_wait_closed(&c));
                        http_raw_close(&c);
                }
                assert_true(http_raw_until(t.loop, has_no_connections, &t));
        }
        assert_int_equal(ask(&t, &c, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
        http_raw_close(&c);
        close_site(&t);
}

static void an_exchange_outlives_its_client(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(&c, LATER);
        assert_true(http_raw_until(t.loop, has_waiting, &t));
        http_raw_reset(&c);
        for (int i = 0; i < 10; i++)
                loop_step(t.loop, false);
        assert_string_equal(http_body(t.waiting[0], NULL), "hi");
        answer_text(t.waiting[0], "nobody there");
        t.waiting[0] = NULL;
        assert_true(http_raw_until(t.loop, has_no_connections, &t));
        assert_int_equal(t.answered, 1);
        close_site(&t);
}

static void an_exchange_outlives_the_server(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(&c, LATER);
        assert_true(http_raw_until(t.loop, has_waiting, &t));
        close_site(&t); /* answers afterwards */
        http_raw_close(&c);
}

static void pipelined_requests_are_answered_once_each_and_in_order(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(&c, "POST /echo HTTP/1.1\r\n"
                         "Host: a\r\n"
                         "Content-Length: 3\r\n"
                         "\r\n"
                         "onePOST /later HTTP/1.1\r\n"
                         "Host: a\r\n"
                         "Content-Length: 3\r\n"
                         "\r\n"
                         "twoPOST /echo HTTP/1.1\r\n"
                         "Host: a\r\n"
                         "Content-Length: 5\r\n"
                         "Connection: close\r\n"
                         "\r\n"
                         "three");
        assert_true(http_raw_until(t.loop, has_waiting, &t));
        assert_int_equal(t.asked, 2);
        answer_text(t.waiting[0], "TWO");
        t.waiting[0] = NULL;
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_answers(&c), 3);
        assert_true(strstr(c.in.data, "one") < strstr(c.in.data, "TWO"));
        assert_true(strstr(c.in.data, "TWO") < strstr(c.in.data, "three"));
        http_raw_close(&c);
        close_site(&t);
}

static void a_slow_loris_is_cut(void **state)
{
        static const char *const starts[] = {
                "G", "GET /hello HTTP/1.1\r\nHost: a\r\nX: ",
                "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n",
                "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n"
        };
        struct http_server_options o = { .idle_seconds = 1, .request_seconds = 1 };
        struct site t;
        struct http_raw c;

        (void)state;
        for (size_t i = 0; i < COUNT(starts); i++) {
                open_site(&t, &o);
                visit(&t, &c);
                http_raw_say(&c, starts[i]);
                for (int n = 0; n < 5000 && !c.closed; n++) {
                        if (!http_raw_say(&c, "a"))
                                break;
                        http_raw_pause(&c, 20);
                }
                assert_true(http_raw_wait_closed(&c));
                assert_int_equal(http_raw_answers(&c), 0);
                http_raw_close(&c);
                close_site(&t);
        }
}

static void an_idle_connection_is_closed(void **state)
{
        struct http_server_options o = { .idle_seconds = 1 };
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, &o);
        assert_int_equal(ask(&t, &c, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_answers(&c), 1);
        http_raw_close(&c);
        close_site(&t);
}

static void a_client_that_does_not_read_is_cut(void **state)
{
        struct http_server_options o = { .request_seconds = 1 };
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, &o);
        visit(&t, &c);
        for (int i = 0; i < 4; i++)
                http_raw_say(&c, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(http_raw_until(t.loop, has_no_connections, &t));
        http_raw_close(&c);
        close_site(&t);
}

static bool has_one_connection(void *arg)
{
        struct site *t = arg;

        return http_server_connections(t->server) == 1;
}

static bool has_two_connections(void *arg)
{
        struct site *t = arg;

        return http_server_connections(t->server) == 2;
}

static bool has_two_streams(void *arg)
{
        struct site *t = arg;

        return t->streams == 2;
}

static void a_slow_reader_is_not_cut(void **state)
{
        struct http_server_options o = { .request_seconds = 1 };
        int64_t end = clock_mono_ms() + 2500; /* two deadlines */
        static char piece[65536];
        struct http_raw c;
        struct site t;

        (void)state;
        open_site(&t, &o);
        visit(&t, &c);
        http_raw_say(&c, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
        while (clock_mono_ms() < end) {
                loop_step(t.loop, false);
                poll(NULL, 0, 20);
                assert_int_not_equal(recv(c.fd, piece, sizeof(piece), MSG_DONTWAIT), 0);
        }
        assert_int_equal(t.streams, 1);
        http_raw_close(&c);
        close_site(&t);
}

/* A client that does not read its stream is cut; a stream without events stays open. */
static void an_unread_stream_is_cut_and_a_quiet_one_is_not(void **state)
{
        struct http_server_options o = { .request_seconds = 1 };
        struct http_raw lazy, quiet;
        struct site t;

        (void)state;
        open_site(&t, &o);
        visit(&t, &quiet);
        http_raw_say(&quiet, "GET /quiet HTTP/1.1\r\nHost: a\r\n\r\n");
        visit(&t, &lazy);
        http_raw_say(&lazy, "GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(http_raw_until(t.loop, has_two_streams, &t));
        assert_true(http_raw_until(t.loop, has_one_connection, &t));
        assert_int_equal(t.streams, 1);
        assert_false(quiet.closed);
        http_raw_close(&lazy);
        http_raw_close(&quiet);
        close_site(&t);
}

static void connections_are_limited_per_address(void **state)
{
        struct http_server_options o = { .max_per_address = 2 };
        struct site t;
        struct http_raw c[3];

        (void)state;
        open_site(&t, &o);
        visit(&t, &c[0]);
        visit(&t, &c[1]);
        assert_true(http_raw_until(t.loop, has_two_connections, &t));
        visit(&t, &c[2]);
        assert_true(http_raw_wait_closed(&c[2]));
        http_raw_close(&c[2]);
        http_raw_close(&c[0]);
        assert_true(http_raw_until(t.loop, has_one_connection, &t));
        assert_int_equal(ask(&t, &c[0], "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
        http_raw_close(&c[0]);
        http_raw_close(&c[1]);
        close_site(&t);
}

static void the_number_of_connections_is_limited(void **state)
{
        struct http_server_options o = { .max_connections = 2 };
        struct site t;
        struct http_raw c[3];

        (void)state;
        open_site(&t, &o);
        visit(&t, &c[0]);
        visit(&t, &c[1]);
        assert_true(http_raw_until(t.loop, has_two_connections, &t));
        visit(&t, &c[2]); /* waits until another one leaves */
        http_raw_say(&c[2], "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        for (int i = 0; i < 20; i++)
                loop_step(t.loop, false);
        assert_int_equal(http_server_connections(t.server), 2);
        http_raw_close(&c[0]);
        assert_true(http_raw_wait_answers(&c[2], 1));
        http_raw_close(&c[1]);
        http_raw_close(&c[2]);
        close_site(&t);
}

static bool has_eight_connections(void *arg)
{
        return http_server_connections(((struct site *)arg)->server) == 8;
}

static void clients_cannot_take_every_descriptor(void **state)
{
        struct rlimit many, few;
        struct site t;
        struct http_raw c[10];

        (void)state;
        getrlimit(RLIMIT_NOFILE, &many);
        few = (struct rlimit){ 16, many.rlim_max };
        setrlimit(RLIMIT_NOFILE, &few);
        open_site(&t, NULL);
        setrlimit(RLIMIT_NOFILE, &many); /* this process plays the clients, too */
        for (size_t i = 0; i < COUNT(c); i++)
                visit(&t, &c[i]);
        assert_true(http_raw_until(t.loop, has_eight_connections, &t));
        for (int i = 0; i < 20; i++)
                loop_step(t.loop, false);
        assert_int_equal(http_server_connections(t.server), 8);
        for (size_t i = 0; i < COUNT(c); i++)
                http_raw_close(&c[i]);
        close_site(&t);
}

static void quiesce_finishes_answers_and_refuses_clients(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        http_raw_say(&c, LATER);
        assert_true(http_raw_until(t.loop, has_waiting, &t));
        http_server_quiesce(t.server);
        assert_true(http_raw_refused(http_server_address(t.server)));
        answer_text(t.waiting[0], "at last");
        t.waiting[0] = NULL;
        assert_true(http_raw_wait_answers(&c, 1));
        http_raw_close(&c);
        close_site(&t);
}

static void an_address_in_use_or_malformed_is_an_error(void **state)
{
        struct http_server_options o = { .listen = "127.0.0.1" };
        struct site t;
        struct error err;

        (void)state;
        open_site(&t, NULL);
        assert_null(http_server_new(t.loop, &o, routes, COUNT(routes), NULL, NULL, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        /* a number that does not fit would otherwise be cut to another port */
        o.listen = "127.0.0.1:99999";
        assert_null(http_server_new(t.loop, &o, routes, COUNT(routes), NULL, NULL, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.text, "expected 0 to 65535"));
        o.listen = http_server_address(t.server);
        assert_null(http_server_new(t.loop, &o, routes, COUNT(routes), NULL, NULL, &err));
        assert_int_equal(err.kind, ERR_BUSY);
        o.listen = "127.0.0.1:0";
        o.tls_cert_file = "/nonexistent";
        assert_null(http_server_new(t.loop, &o, routes, COUNT(routes), NULL, NULL, &err));
        o.tls_key_file = "/nonexistent";
        assert_null(http_server_new(t.loop, &o, routes, COUNT(routes), NULL, NULL, &err));
        assert_int_equal(err.kind, ERR_IO);
        close_site(&t);
}

static void without_hooks_errors_are_plain_text(void **state)
{
        struct http_server_options o = { .listen = "127.0.0.1:0" };
        struct loop *l = loop_new();
        struct error err;
        struct http_server *s = http_server_new(l, &o, routes, COUNT(routes), NULL, NULL, &err);
        struct http_raw c;

        (void)state;
        assert_non_null(s);
        http_raw_open(&c, l, http_server_address(s));
        http_raw_say(&c, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(http_raw_wait_answers(&c, 1));
        assert_non_null(strstr(c.in.data, "there is nothing at '/none'"));
        http_raw_close(&c);
        http_server_free(s);
        loop_free(l);
}

/* libmicrohttpd loops when query parameters exhaust its pool; we do not let it count them. */
static void a_thousand_parameters_do_no_harm(void **state)
{
        struct site t;
        struct http_raw c;
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        buf_addstr(&b, "GET /things/1?q=3");
        for (int i = 0; i < 800; i++)
                buf_addstr(&b, "&a=b");
        buf_addstr(&b, " HTTP/1.1\r\nHost: a\r\n\r\n");
        open_site(&t, NULL);
        assert_int_equal(ask(&t, &c, b.data), 200);
        assert_non_null(strstr(c.in.data, "q=3"));
        http_raw_close(&c);
        close_site(&t);
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_route_answers),
                cmocka_unit_test(parameters_and_queries_are_decoded),
                cmocka_unit_test(a_literal_wins_over_a_parameter),
                cmocka_unit_test(a_broken_escape_is_a_bad_request),
                cmocka_unit_test(an_unknown_path_is_404_and_an_unknown_method_405_with_allow),
                cmocka_unit_test(head_gives_the_length_without_the_body),
                cmocka_unit_test(a_refused_request_without_a_body_keeps_the_connection),
                cmocka_unit_test(the_gate_refuses_before_the_body_is_read),
                cmocka_unit_test(a_body_is_collected_however_it_is_sent),
                cmocka_unit_test(the_bodies_of_all_requests_are_limited),
                cmocka_unit_test(a_large_body_up_to_the_limit_is_accepted),
                cmocka_unit_test(expect_continue_is_answered_with_100),
                cmocka_unit_test(a_body_over_the_limit_is_413_and_closed_without_reading_it),
                cmocka_unit_test(an_answer_may_come_later),
                cmocka_unit_test(a_half_closed_client_still_gets_its_answer),
                cmocka_unit_test(a_client_that_closes_after_its_request_is_released),
                cmocka_unit_test(a_client_may_vanish_in_every_phase),
                cmocka_unit_test(an_exchange_outlives_its_client),
                cmocka_unit_test(an_exchange_outlives_the_server),
                cmocka_unit_test(pipelined_requests_are_answered_once_each_and_in_order),
                cmocka_unit_test(a_slow_loris_is_cut),
                cmocka_unit_test(an_idle_connection_is_closed),
                cmocka_unit_test(a_client_that_does_not_read_is_cut),
                cmocka_unit_test(a_slow_reader_is_not_cut),
                cmocka_unit_test(an_unread_stream_is_cut_and_a_quiet_one_is_not),
                cmocka_unit_test(connections_are_limited_per_address),
                cmocka_unit_test(the_number_of_connections_is_limited),
                cmocka_unit_test(clients_cannot_take_every_descriptor),
                cmocka_unit_test(quiesce_finishes_answers_and_refuses_clients),
                cmocka_unit_test(an_address_in_use_or_malformed_is_an_error),
                cmocka_unit_test(without_hooks_errors_are_plain_text),
                cmocka_unit_test(a_thousand_parameters_do_no_harm),
        };

        return cmocka_run_group_tests_name("http server", tests, NULL, NULL);
}
