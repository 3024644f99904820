/* Large bodies are parsed on a pool thread, which these tests can keep busy. */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/api_rig.h"
#include "api/core/api_core.h"
#include "base/json.h"
#include "base/mem.h"

#define INBOUND "/api/v2/messages/inbound"
#define LARGE   ((size_t)300 * 1024)

static sem_t gate;
static unsigned opened;

static void wait_at_gate(void *arg)
{
        (void)arg;
        sem_wait(&gate);
}

static void on_opened(void *arg)
{
        (void)arg;
        opened++;
}

/* Blocks the one pool thread (see main) until open_gate. */
static void close_gate(struct api_rig *r)
{
        opened = 0;
        loop_work(r->loop, wait_at_gate, on_opened, NULL);
}

static void open_gate(struct api_rig *r)
{
        sem_post(&gate);
        api_rig_until(r, &opened, 1);
}

/* `json` with so many blanks after it; yours to free. */
static char *padded(const char *json, size_t n)
{
        return mem_printf("%s%*s", json, (int)n, "");
}

static const char *code_of(const struct api_answer *a)
{
        return json_str(json_object_get(a->json, "error"), "code", "");
}

static bool has_jobs(void *arg)
{
        return ((struct api *)arg)->jobs != NULL;
}

/* Sends it and lets the server read it, up to the blocked pool. */
static void send_to_gate(struct api_rig *r, struct http_raw *c, const char *path, const char *body)
{
        close_gate(r);
        api_rig_send(r, c, "POST", path, "", body);
        assert_true(http_raw_until(r->loop, has_jobs, r->api));
}

static void expect_alive(struct api_rig *r)
{
        struct api_answer a = api_rig_ask(r, "GET", "/healthz", NULL);

        assert_int_equal(a.status, 200);
        api_answer_release(&a);
}

static void large_and_small_bodies_are_answered_the_same(void **state)
{
        static const struct {
                const char *body;
                int status;
                const char *code;
        } rows[] = {
                { "{\"text\":\"hello\",\"externalId\":\"a\"}", 202, "" },
                { "{\"text\":\"hello\",\"externalId\":\"a\"}", 202, "" },
                { "{\"text\":1}", 400, "VALIDATION_ERROR" },
                { "{\"txet\":\"hello\"}", 400, "VALIDATION_ERROR" },
                { "{\"text\":\"hello\",}", 400, "VALIDATION_ERROR" },
                { "[]", 400, "VALIDATION_ERROR" },
                { "{\"text\":\"a\",\"instanceId\":\"nobody\"}", 404, "NOT_FOUND" },
        };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                char *body = padded(rows[i].body, LARGE);
                struct api_answer large = api_rig_ask(r, "POST", INBOUND, body),
                                  small = api_rig_ask(r, "POST", INBOUND, rows[i].body);

                assert_int_equal(large.status, rows[i].status);
                assert_int_equal(small.status, rows[i].status);
                assert_string_equal(code_of(&large), rows[i].code);
                if (small.status != 202)
                        assert_string_equal(
                                json_str(json_object_get(large.json, "error"), "message", "-"),
                                json_str(json_object_get(small.json, "error"), "message", "+"));
                api_answer_release(&large);
                api_answer_release(&small);
                free(body);
        }
        assert_int_equal(r->turns, 1);
}

static void a_body_beyond_the_limit_is_refused(void **state)
{
        struct api_rig *r = *state;
        char *body = padded("{\"text\":\"hello\"}", (size_t)1024 * 1024);
        struct api_answer a = api_rig_ask(r, "POST", INBOUND, body);

        assert_int_equal(a.status, 413);
        assert_string_equal(code_of(&a), "PAYLOAD_TOO_LARGE");
        api_answer_release(&a);
        free(body);
}

/* `n` brackets; yours to free. */
static char *with_metadata(size_t n)
{
        struct buf b;

        buf_init(&b, 0);
        buf_addstr(&b, "{\"text\":\"hello\",\"metadata\":{\"a\":[");
        for (size_t i = 0; i < n; i++)
                buf_addstr(&b, i > 0 ? ",[]" : "[]");
        buf_addstr(&b, "]}}");
        return buf_take(&b);
}

/* Every reader of the event parses it again. */
static void metadata_has_a_limit_of_its_own(void **state)
{
        static const struct {
                size_t brackets;
                int status;
        } rows[] = { { 1000, 202 }, { 21000, 202 }, { 22000, 400 }, { 300000, 400 } };
        struct api_rig *r = *state;

        for (size_t i = 0; i < COUNT(rows); i++) {
                char *body = with_metadata(rows[i].brackets);
                struct api_answer a = api_rig_ask(r, "POST", INBOUND, body);

                assert_int_equal(a.status, rows[i].status);
                if (a.status == 400)
                        assert_non_null(strstr(a.text, "metadata: must have at most 65536 bytes"));
                api_answer_release(&a);
                free(body);
        }
}

static void other_requests_are_answered_during_a_large_parse(void **state)
{
        struct api_rig *r = *state;
        char *body = padded("{\"text\":\"hello\"}", LARGE);
        struct api_answer a;
        struct http_raw c;

        send_to_gate(r, &c, INBOUND "?wait=15000", body);
        for (int i = 0; i < 3; i++)
                expect_alive(r);
        assert_int_equal(http_raw_answers(&c), 0);
        assert_int_equal(r->turns, 0);
        open_gate(r);
        a = api_rig_receive(&c);
        assert_int_equal(a.status, 202);
        assert_non_null(strstr(a.text, "re: hello"));
        api_answer_release(&a);
        free(body);
}

static void a_connection_gets_its_answers_in_order(void **state)
{
        struct api_rig *r = *state;
        char *body = padded("{\"text\":\"hello\"}", LARGE);
        char *next =
                mem_printf("POST " INBOUND
                           " HTTP/1.1\r\nHost: %s\r\nx-api-key: %s\r\nContent-Length: 2\r\n\r\n{}",
                           api_address(r->api), r->key);
        struct http_raw c;

        send_to_gate(r, &c, INBOUND, body);
        assert_true(http_raw_say(&c, next));
        expect_alive(r);
        assert_int_equal(http_raw_answers(&c), 0);
        open_gate(r);
        assert_true(http_raw_wait_answers(&c, 2));
        assert_int_equal(http_raw_status(&c, 0), 202);
        assert_int_equal(http_raw_status(&c, 1), 400);
        http_raw_close(&c);
        free(body);
        free(next);
}

static void a_client_cut_off_during_a_parse_is_harmless(void **state)
{
        struct api_rig *r = *state;
        char *body = padded("{\"text\":\"hello\",\"externalId\":\"a\"}", LARGE);
        struct api_answer a;
        struct http_raw c;

        send_to_gate(r, &c, INBOUND, body);
        http_raw_reset(&c);
        http_raw_close(&c);
        expect_alive(r);
        open_gate(r);
        /* stored or not, asking again gives the one answer */
        a = api_rig_ask(r, "POST", INBOUND "?wait=15000", body);
        assert_int_equal(a.status, 202);
        assert_non_null(strstr(a.text, "re: hello"));
        assert_int_equal(r->turns, 1);
        api_answer_release(&a);
        free(body);
}

static void closing_during_a_parse_answers_the_client(void **state)
{
        struct api_rig *r = *state;
        char *body = padded("{\"text\":\"hello\"}", LARGE);
        struct api_answer a;
        struct http_raw c;

        send_to_gate(r, &c, INBOUND, body);
        api_rig_restart(r);
        open_gate(r);
        a = api_rig_receive(&c);
        assert_int_equal(a.status, 503);
        assert_int_equal(r->turns, 0);
        api_answer_release(&a);
        free(body);
}

static void ending_during_a_parse_leaks_nothing(void **state)
{
        struct api_rig *r = *state;
        char *body = padded("{\"text\":\"hello\"}", LARGE);
        struct http_raw c;

        send_to_gate(r, &c, INBOUND, body);
        http_raw_close(&c);
        sem_post(&gate); /* the teardown ends everything while the body waits for its thread */
        free(body);
}

/* The row's adapter is looked up first, then the body is parsed. */
static void a_restricted_key_may_send_large_bodies_of_its_own(void **state)
{
        struct api_rig *r = *state;
        char *headers = api_rig_key_headers(
                r, "{\"name\":\"k\",\"scopes\":[\"write\"],\"adapters\":[\"terminal\"]}");
        char *body = padded("{}", LARGE);
        static const char *const chats[] = { "terminal", "api" };
        const int expected[] = { 202, 404 };

        for (size_t i = 0; i < COUNT(chats); i++) {
                char *text = mem_printf("{\"text\":\"hang\",\"instanceId\":\"%s\"}", chats[i]),
                     *path;
                struct api_answer a = api_rig_ask(r, "POST", INBOUND, text);

                assert_int_equal(a.status, 202);
                api_answer_release(&a);
                api_rig_until(r, &r->hanging_count, (unsigned)i + 1);
                path = mem_printf("/api/v2/turns/trn-%zu/cancel", i + 1);
                a = api_rig_ask_as(r, "POST", path, headers, body);
                assert_int_equal(a.status, expected[i]);
                api_answer_release(&a);
                free(text);
                free(path);
        }
        free(headers);
        free(body);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                API_RIG_CASE(large_and_small_bodies_are_answered_the_same),
                API_RIG_CASE(a_body_beyond_the_limit_is_refused),
                API_RIG_CASE(metadata_has_a_limit_of_its_own),
                API_RIG_CASE(other_requests_are_answered_during_a_large_parse),
                API_RIG_CASE(a_connection_gets_its_answers_in_order),
                API_RIG_CASE(a_client_cut_off_during_a_parse_is_harmless),
                API_RIG_CASE(closing_during_a_parse_answers_the_client),
                API_RIG_CASE(ending_during_a_parse_leaks_nothing),
                API_RIG_CASE(a_restricted_key_may_send_large_bodies_of_its_own),
        };

        setenv("UV_THREADPOOL_SIZE", "1", 1);
        sem_init(&gate, 0, 0);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
