#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "../lib/fake_server.h"
#include "base/crypto.h"
#include "base/json.h"
#include "fake_road.h"
#include "platform/platform.h"

#define SECRET "a-secret-of-the-callback"
#define TRACE  "0123456789abcdef0123456789abcdef"

struct fixture {
        struct loop *loop;
        struct http_client *http;
        struct adapters *adapters;
        struct fake_server *server;
};

static int begin(void **state)
{
        struct fixture *f = mem_zalloc(sizeof(*f));

        fake_road_reset();
        f->loop = loop_new();
        f->http = http_client_new(f->loop, &(struct http_client_options){ 0 }, NULL);
        f->adapters = adapters_new(f->loop, f->http, "data");
        adapters_set_road(f->adapters, FAKE_ROAD);
        *state = f;
        return 0;
}

static int end(void **state)
{
        struct fixture *f = *state;

        adapters_free(f->adapters);
        http_client_free(f->http);
        if (f->server)
                fake_server_free(f->server);
        loop_free(f->loop);
        free(f);
        return 0;
}

/* An API adapter that posts to the URL; `more` are further settings. */
static void adapter_to(struct fixture *f, const char *url, const char *more)
{
        char *json = mem_printf("{\"callbackUrl\": \"%s\"%s}", url, more);
        struct error err = { 0 };
        struct adapter_conf *c = adapter_conf_make("api", "api", json, &err);

        if (!c)
                fail_msg("%s", err.text);
        assert_int_equal(adapters_apply(f->adapters, &c, 1, &err), 0);
        free(json);
}

static void server_says(struct fixture *f, const struct fake_answer *answer, const char *more)
{
        char *url;

        f->server = fake_server_new(f->loop, answer, 1);
        url = fake_server_url(f->server, "/answers");
        adapter_to(f, url, more);
        free(url);
}

static void deliver_traced(struct fixture *f, bool unsampled)
{
        adapters_send(f->adapters,
                      &(struct delivery){ .id = 42,
                                          .fence = 5,
                                          .turn = 9,
                                          .attempt = 1,
                                          .adapter = "api",
                                          .channel = "c1",
                                          .kind = DELIVER_SEND,
                                          .class = PACE_FINAL,
                                          .payload = "{\"text\":\"gr\xc3\xbc\xc3\x9f dich\"}",
                                          .trace = TRACE,
                                          .unsampled = unsampled,
                                          .created_ms = 1000 });
}

static void deliver(struct fixture *f)
{
        deliver_traced(f, false);
}

static const struct fake_sent *await(struct fixture *f)
{
        assert_int_equal(fake_road.count, 0); /* never before send has returned */
        for (int i = 0; i < 10000 && fake_road.count == 0; i++)
                loop_step(f->loop, true);
        assert_int_equal(fake_road.count, 1);
        assert_int_equal(fake_road.sent[0].delivery, 42);
        assert_int_equal(fake_road.sent[0].fence, 5);
        return &fake_road.sent[0];
}

static void without_a_callback_the_journal_is_the_delivery(void **state)
{
        struct fixture *f = *state;
        struct error err;
        struct adapter_conf *c = adapter_conf_make("api", "api", NULL, &err);

        assert_int_equal(adapters_apply(f->adapters, &c, 1, &err), 0);
        assert_int_equal(adapters_abilities(f->adapters, "api"),
                         ADAPTER_JOURNALED | ADAPTER_THREADS);
}

static void a_callback_keeps_the_sampled_flag_of_its_trace(void **state)
{
        struct fixture *f = *state;
        const struct fake_answer ok = { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" };
        const char *sent;

        server_says(f, &ok, "");
        deliver_traced(f, true);
        await(f);
        sent = strstr(fake_server_request(f->server, 0), "\r\ntraceparent: 00-" TRACE "-");
        assert_non_null(sent);
        assert_memory_equal(strchr(sent + 2, '\r') - 3, "-00", 3);
}

static void an_answer_is_posted_with_key_and_trace(void **state)
{
        struct fixture *f = *state;
        const struct fake_answer ok = {
                "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"id\":\"m-7\"}"
        };
        const struct fake_sent *sent;
        const char *request, *body, *traced;
        struct error err;
        json_t *j;

        server_says(f, &ok, "");
        assert_int_equal(adapters_abilities(f->adapters, "api"),
                         ADAPTER_IDEMPOTENT | ADAPTER_THREADS);
        deliver(f);
        sent = await(f);
        assert_int_equal(sent->result.outcome, SEND_DONE);
        assert_string_equal(sent->platform_id, "m-7");
        request = fake_server_request(f->server, 0);
        assert_non_null(strstr(request, "POST /answers HTTP/1.1\r\n"));
        assert_non_null(strstr(request, "\r\nIdempotency-Key: dlv-42-" TRACE "\r\n"));
        traced = strstr(request, "\r\ntraceparent: 00-" TRACE "-");
        assert_non_null(traced);
        assert_memory_equal(strchr(traced + 2, '\r') - 3, "-01", 3);
        assert_null(strstr(request, "X-Dragoman-Signature"));
        body = strstr(request, "\r\n\r\n") + 4;
        j = json_read(body, strlen(body), &err);
        assert_string_equal(json_str(j, "id", ""), "dlv-42");
        assert_string_equal(json_str(j, "turnId", ""), "trn-9");
        assert_string_equal(json_str(j, "instanceId", ""), "api");
        assert_string_equal(json_str(j, "channel", ""), "c1");
        assert_true(json_is_null(json_object_get(j, "threadId")));
        assert_string_equal(json_str(json_object_get(j, "payload"), "text", ""),
                            "gr\xc3\xbc\xc3\x9f dich");
        json_decref(j);
}

static void the_receiver_can_check_the_signature(void **state)
{
        struct fixture *f = *state;
        const struct fake_answer ok = { "HTTP/1.1 204 No Content\r\n\r\n" };
        unsigned char digest[SHA256_SIZE];
        char hex[SHA256_HEX_SIZE], said[80] = "", *text;
        const char *request, *header;
        long long t = 0;

        server_says(f, &ok, ", \"callbackSecret\": \"" SECRET "\"");
        deliver(f);
        assert_int_equal(await(f)->result.outcome, SEND_DONE);
        /* the receiver gave no id */
        assert_string_equal(fake_road.sent[0].platform_id, "dlv-42");
        request = fake_server_request(f->server, 0);
        header = strstr(request, "X-Dragoman-Signature: ");
        assert_non_null(header);
        assert_int_equal(sscanf(header, "X-Dragoman-Signature: t=%lld,v1=%64[0-9a-f]", &t, said),
                         2);
        text = mem_printf("%lld.%s", t, strstr(request, "\r\n\r\n") + 4);
        crypto_hmac_sha256(SECRET, strlen(SECRET), text, strlen(text), digest);
        assert_string_equal(said, crypto_hex(digest, sizeof(digest), hex));
        free(text);
}

static void each_status_has_its_outcome(void **state)
{
        /* clang-format off */
        static const struct {
                const char *answer, *more;
                enum send_outcome outcome;
                enum error_kind kind;
                int64_t retry_after_ms;
        } rows[] = {
                { "HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\nnope", "", SEND_DONE,
                  ERR_NONE, -1 },
                { "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\ncut", "", SEND_DONE, ERR_NONE,
                  -1 },
                { "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", "",
                  SEND_RETRY, ERR_LIMIT, 7000 },
                { "HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n", "", SEND_RETRY, ERR_NET, -1 },
                { "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", "", SEND_RETRY, ERR_NET, -1 },
                { "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", ", \"callbackIdempotent\": "
                  "false",
                  SEND_UNSURE, ERR_NET, -1 },
                { "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n", "", SEND_REJECTED, ERR_REFUSED,
                  -1 },
                { "HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
                  "",
                  SEND_REJECTED, ERR_REFUSED, -1 },
        };
        /* clang-format on */

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const struct fake_answer answer = { .bytes = rows[i].answer, .end = FAKE_CLOSE };
                const struct fake_sent *sent;
                void *fixture;

                begin(&fixture);
                server_says(fixture, &answer, rows[i].more);
                deliver(fixture);
                sent = await(fixture);
                assert_int_equal(sent->result.outcome, rows[i].outcome);
                assert_int_equal(sent->result.kind, rows[i].kind);
                assert_int_equal(sent->result.retry_after_ms, rows[i].retry_after_ms);
                end(&fixture);
        }
}

static void an_unreachable_receiver_is_retried(void **state)
{
        struct fixture *f = *state;
        struct fake_server *gone = fake_server_new(f->loop, NULL, 0);
        char *url = fake_server_url(gone, "/");

        fake_server_free(gone);
        adapter_to(f, url, "");
        free(url);
        deliver(f);
        assert_int_equal(await(f)->result.outcome, SEND_RETRY);
        assert_non_null(strstr(fake_road.sent[0].why, "the callback could not be made: "));
}

static void a_cut_connection_leaves_the_post_unsure(void **state)
{
        struct fixture *f = *state;
        const struct fake_answer cut = { .end = FAKE_RESET };

        server_says(f, &cut, ", \"callbackIdempotent\": false");
        assert_int_equal(adapters_abilities(f->adapters, "api"), ADAPTER_THREADS);
        deliver(f);
        assert_int_equal(await(f)->result.outcome, SEND_UNSURE);
}

static void a_post_of_a_removed_adapter_is_unsure(void **state)
{
        struct fixture *f = *state;
        const struct fake_answer silent = { .end = FAKE_KEEP };

        server_says(f, &silent, "");
        deliver(f);
        for (int i = 0; i < 10000 && fake_server_requests(f->server) == 0; i++)
                loop_step(f->loop, true);
        assert_int_equal(adapters_apply(f->adapters, NULL, 0, NULL), 0);
        assert_int_equal(fake_road.count, 1);
        assert_int_equal(fake_road.sent[0].result.outcome, SEND_UNSURE);
        assert_int_equal(http_client_active(f->http), 0);
}

static void a_post_in_flight_at_exit_is_not_reported(void **state)
{
        struct fixture *f = *state;
        const struct fake_answer silent = { .end = FAKE_KEEP };

        server_says(f, &silent, "");
        deliver(f);
        adapters_free(f->adapters);
        f->adapters = NULL;
        assert_int_equal(fake_road.count, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(without_a_callback_the_journal_is_the_delivery,
                                                begin, end),
                cmocka_unit_test_setup_teardown(an_answer_is_posted_with_key_and_trace, begin, end),
                cmocka_unit_test_setup_teardown(a_callback_keeps_the_sampled_flag_of_its_trace,
                                                begin, end),
                cmocka_unit_test_setup_teardown(the_receiver_can_check_the_signature, begin, end),
                cmocka_unit_test(each_status_has_its_outcome),
                cmocka_unit_test_setup_teardown(an_unreachable_receiver_is_retried, begin, end),
                cmocka_unit_test_setup_teardown(a_cut_connection_leaves_the_post_unsure, begin,
                                                end),
                cmocka_unit_test_setup_teardown(a_post_of_a_removed_adapter_is_unsure, begin, end),
                cmocka_unit_test_setup_teardown(a_post_in_flight_at_exit_is_not_reported, begin,
                                                end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
