#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/http_raw_client.h"
#include "base/mem.h"
#include "net/http_server.h"
#include "net/sse.h"

struct site {
        struct loop *loop;
        struct http_server *server;
        struct sse_hub *hub;
        int64_t after;
        char *preface;
        unsigned filters;
};

static void free_filter(void *filter)
{
        struct site *t = filter;

        t->filters--;
}

/* No client wants events about "secret". */
static bool wants(const void *filter, const char *type, const char *topic)
{
        assert_non_null(filter);
        assert_non_null(type);
        return !topic || strcmp(topic, "secret") != 0;
}

static void run_stream(struct http_exchange *x)
{
        struct site *t = http_server_arg(x);
        char *preface = t->preface;

        t->preface = NULL;
        t->filters++;
        sse_attach(t->hub, x, t->after, preface, preface ? strlen(preface) : 0, t, free_filter);
}

static const struct http_route routes[] = { { "GET", "/stream", run_stream, 0, NULL } };

static void open_site(struct site *t, const struct sse_options *more)
{
        struct http_server_options o = { .listen = "127.0.0.1:0" };
        struct sse_options so = more ? *more : (struct sse_options){ 0 };
        struct error err;

        memset(t, 0, sizeof(*t));
        t->loop = loop_new();
        t->server = http_server_new(t->loop, &o, routes, COUNT(routes), NULL, t, &err);
        assert_non_null(t->server);
        t->hub = sse_hub_new(t->loop, &so, wants);
}

static void close_site(struct site *t)
{
        sse_hub_free(t->hub);
        http_server_free(t->server);
        loop_free(t->loop);
        free(t->preface);
        assert_int_equal(t->filters, 0);
}

static void visit(struct site *t, struct http_raw *c)
{
        http_raw_open(c, t->loop, http_server_address(t->server));
        http_raw_say(c, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
}

static void publish(struct site *t, int64_t id, const char *topic, const char *data)
{
        sse_publish(t->hub, id, "thing", topic, data, strlen(data));
}

static void an_event_is_formatted_line_by_line(void **state)
{
        static const struct {
                int64_t id;
                const char *data, *text;
        } rows[] = {
                { 7, "one", "id: 7\nevent: e\ndata: one\n\n" },
                { 0, "", "event: e\ndata: \n\n" },
                { 0, "a\nb\r\nc\rd", "event: e\ndata: a\ndata: b\ndata: c\ndata: d\n\n" },
                { 0, "a\n", "event: e\ndata: a\ndata: \n\n" },
        };
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        for (size_t i = 0; i < COUNT(rows); i++) {
                buf_clear(&b);
                sse_format(&b, rows[i].id, "e", rows[i].data, strlen(rows[i].data));
                assert_string_equal(b.data, rows[i].text);
        }
        buf_release(&b);
}

static void a_client_gets_the_preface_then_what_is_published(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        publish(&t, 1, NULL, "old");
        publish(&t, 2, NULL, "in both");
        publish(&t, 0, NULL, "stale");
        publish(&t, 3, NULL, "in the ring only");
        t.after = 2;
        t.preface = mem_strdup("id: 2\nevent: thing\ndata: in the preface\n\n");
        visit(&t, &c);
        assert_true(http_raw_wait_for(&c, "in the ring only"));
        publish(&t, 4, NULL, "live");
        publish(&t, 0, NULL, "transient");
        assert_true(http_raw_wait_for(&c, "transient"));
        assert_non_null(strstr(c.in.data, "Content-Type: text/event-stream\r\n"));
        assert_true(strstr(c.in.data, "retry: ") < strstr(c.in.data, "in the preface"));
        assert_true(strstr(c.in.data, "in the preface") < strstr(c.in.data, "in the ring only"));
        assert_true(strstr(c.in.data, "in the ring only") <
                    strstr(c.in.data, "id: 4\nevent: thing\ndata: live\n\n"));
        assert_null(strstr(c.in.data, "old"));
        assert_null(strstr(c.in.data, "in both"));
        assert_null(strstr(c.in.data, "stale"));
        http_raw_close(&c);
        close_site(&t);
}

static void events_are_filtered_per_client(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        assert_true(http_raw_wait_for(&c, "retry: "));
        publish(&t, 1, "secret", "hidden");
        publish(&t, 2, "public", "shown");
        assert_true(http_raw_wait_for(&c, "shown"));
        assert_null(strstr(c.in.data, "hidden"));
        http_raw_close(&c);
        close_site(&t);
}

static void events_arrive_once_over_many_laps_of_the_ring(void **state)
{
        struct sse_options o = { .ring_bytes = 5000 };
        struct site t;
        struct http_raw c;
        char text[900], line[40];
        const char *p;

        (void)state;
        open_site(&t, &o);
        visit(&t, &c);
        assert_true(http_raw_wait_for(&c, "retry: "));
        for (int64_t id = 1; id <= 300; id++) {
                size_t n = (size_t)(id * 37 % 800);

                memset(text, 'a' + (int)(id % 26), n);
                snprintf(text + n, sizeof(text) - n, "#%lld", (long long)id);
                publish(&t, id, NULL, text);
                snprintf(line, sizeof(line), "#%lld\n", (long long)id);
                assert_true(http_raw_wait_for(&c, line));
        }
        p = c.in.data;
        for (int64_t id = 1; id <= 300; id++) {
                snprintf(line, sizeof(line), "id: %lld\n", (long long)id);
                p = strstr(p, line);
                assert_non_null(p);
        }
        assert_null(strstr(c.in.data, "gone"));
        http_raw_close(&c);
        close_site(&t);
}

static void the_ring_reports_its_oldest_event(void **state)
{
        struct sse_options o = { .ring_bytes = 2048 };
        struct site t;
        char text[301];

        (void)state;
        open_site(&t, &o);
        assert_true(sse_oldest_after(t.hub) == INT64_MAX);
        publish(&t, 0, NULL, "transient");
        assert_true(sse_oldest_after(t.hub) == INT64_MAX);
        publish(&t, 51, NULL, "first");
        assert_int_equal(sse_oldest_after(t.hub), 50);
        memset(text, 'x', 300);
        text[300] = '\0';
        for (int64_t id = 52; id < 80; id++)
                publish(&t, id, NULL, text);
        assert_true(sse_oldest_after(t.hub) > 70 && sse_oldest_after(t.hub) < 79);
        close_site(&t);
}

static void a_client_older_than_the_ring_must_reconnect(void **state)
{
        struct sse_options o = { .ring_bytes = 1024 };
        struct site t;
        struct http_raw c;
        char text[301];

        (void)state;
        open_site(&t, &o);
        memset(text, 'x', 300);
        text[300] = '\0';
        for (int64_t id = 1; id < 20; id++)
                publish(&t, id, NULL, text);
        t.after = 3;
        visit(&t, &c);
        assert_true(http_raw_wait_closed(&c));
        assert_non_null(strstr(c.in.data, "event: gone\n"));
        assert_null(strstr(c.in.data, "xxx"));
        http_raw_close(&c);
        close_site(&t);
}

static void an_oversized_event_is_read_from_the_journal(void **state)
{
        struct sse_options o = { .ring_bytes = 1024 };
        struct site t;
        struct http_raw c;
        char text[901];

        (void)state;
        open_site(&t, &o);
        visit(&t, &c);
        assert_true(http_raw_wait_for(&c, "retry: "));
        memset(text, 'x', 900);
        text[900] = '\0';
        publish(&t, 0, NULL, text); /* transient: it is not missed */
        publish(&t, 1, NULL, "still here");
        assert_true(http_raw_wait_for(&c, "still here"));
        publish(&t, 2, NULL, text);
        assert_true(http_raw_wait_closed(&c));
        assert_non_null(strstr(c.in.data, "event: gone\n"));
        assert_int_equal(sse_oldest_after(t.hub), 2);
        http_raw_close(&c);
        close_site(&t);
}

static bool has_one_client(void *arg)
{
        struct site *t = arg;

        return sse_clients(t->hub) == 1;
}

static bool has_no_clients(void *arg)
{
        struct site *t = arg;

        return sse_clients(t->hub) == 0;
}

static void a_stalled_client_is_cut_and_delays_no_one(void **state)
{
        struct sse_options o = { .ring_bytes = 64 * 1024, .ping_ms = 100 };
        struct site t;
        struct http_raw lazy, keen;
        char *text = mem_zalloc(20001);
        char line[40];

        (void)state;
        open_site(&t, &o);
        visit(&t, &lazy);
        assert_true(http_raw_until(t.loop, has_one_client, &t));
        visit(&t, &keen);
        assert_true(http_raw_wait_for(&keen, "retry: "));
        memset(text, 'x', 20000);
        for (int64_t id = 1; id <= 1000 && sse_clients(t.hub) > 1; id++) {
                publish(&t, id, NULL, text);
                snprintf(line, sizeof(line), "id: %lld\n", (long long)id);
                assert_true(http_raw_wait_for(&keen, line));
                buf_clear(&keen.in);
        }
        assert_true(http_raw_until(t.loop, has_one_client, &t));
        http_raw_close(&lazy);
        http_raw_close(&keen);
        close_site(&t);
        free(text);
}

static void pings_detect_clients_that_left(void **state)
{
        struct sse_options o = { .ping_ms = 60 };
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, &o);
        visit(&t, &c);
        assert_true(http_raw_wait_for(&c, ": ping\n\n"));
        buf_clear(&c.in);
        assert_true(http_raw_wait_for(&c, ": ping\n\n"));
        http_raw_close(&c);
        assert_true(http_raw_until(t.loop, has_no_clients, &t));
        assert_int_equal(http_server_connections(t.server), 0);
        close_site(&t);
}

static void one_client_too_many_is_refused(void **state)
{
        struct sse_options o = { .max_clients = 1 };
        struct site t;
        struct http_raw a, b;

        (void)state;
        open_site(&t, &o);
        visit(&t, &a);
        assert_true(http_raw_until(t.loop, has_one_client, &t));
        t.preface = mem_strdup("never sent");
        visit(&t, &b);
        assert_true(http_raw_wait_answers(&b, 1));
        assert_int_equal(http_raw_status(&b, 0), 503);
        assert_non_null(strstr(b.in.data, "Retry-After: "));
        http_raw_close(&a);
        http_raw_close(&b);
        close_site(&t);
}

static void head_asks_only_for_the_headers(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        http_raw_open(&c, t.loop, http_server_address(t.server));
        http_raw_say(&c, "HEAD /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_true(http_raw_wait_closed(&c));
        assert_non_null(strstr(c.in.data, "Content-Type: text/event-stream\r\n"));
        assert_int_equal(sse_clients(t.hub), 0);
        http_raw_close(&c);
        close_site(&t);
}

static void an_http_1_0_client_is_served_until_it_is_closed(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        http_raw_open(&c, t.loop, http_server_address(t.server));
        http_raw_say(&c, "GET /stream HTTP/1.0\r\n\r\n");
        assert_true(http_raw_wait_for(&c, "retry: "));
        publish(&t, 1, NULL, "live");
        assert_true(http_raw_wait_for(&c, "data: live\n\n"));
        http_raw_close(&c);
        close_site(&t);
}

static void freeing_the_hub_ends_the_streams(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        assert_true(http_raw_wait_for(&c, "retry: "));
        sse_hub_free(t.hub);
        t.hub = NULL;
        assert_true(http_raw_wait_closed(&c));
        http_raw_close(&c);
        close_site(&t);
}

static void the_server_may_be_freed_before_the_hub(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, NULL);
        visit(&t, &c);
        assert_true(http_raw_wait_for(&c, "retry: "));
        http_server_free(t.server);
        t.server = NULL;
        assert_int_equal(sse_clients(t.hub), 0);
        publish(&t, 1, NULL, "to nobody");
        http_raw_close(&c);
        close_site(&t);
}

static void clients_may_vanish_at_any_moment(void **state)
{
        struct sse_options o = { .ping_ms = 40 };
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t, &o);
        for (int i = 0; i < 12; i++) {
                visit(&t, &c);
                for (int round = 0; round < i; round++)
                        loop_step(t.loop, false);
                publish(&t, i + 1, NULL, "news");
                if (i % 2)
                        http_raw_reset(&c);
                else
                        http_raw_close(&c);
        }
        assert_true(http_raw_until(t.loop, has_no_clients, &t));
        close_site(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_event_is_formatted_line_by_line),
                cmocka_unit_test(a_client_gets_the_preface_then_what_is_published),
                cmocka_unit_test(events_are_filtered_per_client),
                cmocka_unit_test(events_arrive_once_over_many_laps_of_the_ring),
                cmocka_unit_test(the_ring_reports_its_oldest_event),
                cmocka_unit_test(a_client_older_than_the_ring_must_reconnect),
                cmocka_unit_test(an_oversized_event_is_read_from_the_journal),
                cmocka_unit_test(a_stalled_client_is_cut_and_delays_no_one),
                cmocka_unit_test(pings_detect_clients_that_left),
                cmocka_unit_test(one_client_too_many_is_refused),
                cmocka_unit_test(head_asks_only_for_the_headers),
                cmocka_unit_test(an_http_1_0_client_is_served_until_it_is_closed),
                cmocka_unit_test(freeing_the_hub_ends_the_streams),
                cmocka_unit_test(the_server_may_be_freed_before_the_hub),
                cmocka_unit_test(clients_may_vanish_at_any_moment),
        };

        return cmocka_run_group_tests_name("sse", tests, NULL, NULL);
}
