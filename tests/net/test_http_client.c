/* The HTTP client against a server that misbehaves on request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../lib/fake_server.h"
#include "../lib/fake_tls.h"
#include "base/buf.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/http_text.h"

#define OK_TEXT "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define SCRIPT(w, ...)                                               \
        static const struct fake_answer script_[] = { __VA_ARGS__ }; \
        world_open(w, script_, COUNT(script_))

struct world {
        struct loop *loop;
        struct fake_server *server;
        struct http_client *client;
};

/* Records of the handlers of one call. */
struct seen {
        struct http_call *call;
        struct http_client *client;
        bool started, done, stream;
        unsigned heads, pieces, abort_at_piece;
        bool abort_at_head, free_client_at_piece, free_client_at_done;
        int head_status;
        char *header;
        struct buf data;
        struct http_result result;
        char why[500];
        char *body;
};

static void world_open(struct world *w, const struct fake_answer *script, size_t count)
{
        w->loop = loop_new();
        w->server = fake_server_new(w->loop, script, count);
        w->client = http_client_new(w->loop, NULL, NULL);
        assert_non_null(w->client);
}

static void world_close(struct world *w)
{
        http_client_free(w->client);
        fake_server_free(w->server);
        loop_free(w->loop);
}

static void on_head(void *arg, struct http_call *call, int status)
{
        struct seen *s = arg;

        assert_true(s->started);
        s->heads++;
        s->head_status = status;
        if (http_call_header(call, "x-test"))
                s->header = mem_strdup(http_call_header(call, "x-test"));
        if (s->abort_at_head)
                http_call_abort(call);
}

static void on_data(void *arg, const char *bytes, size_t n)
{
        struct seen *s = arg;

        s->pieces++;
        buf_add(&s->data, bytes, n);
        if (s->pieces == s->abort_at_piece)
                http_call_abort(s->call);
        if (s->free_client_at_piece)
                http_client_free(s->client);
}

static void on_done(void *arg, const struct http_result *result)
{
        struct seen *s = arg;

        assert_true(s->started);
        assert_false(s->done);
        s->done = true;
        s->result = *result;
        s->body = mem_strndup(result->body, result->body_n);
        snprintf(s->why, sizeof(s->why), "%s", result->why);
        if (s->free_client_at_done)
                http_client_free(s->client);
}

static void seen_release(struct seen *s)
{
        free(s->header);
        free(s->body);
        buf_release(&s->data);
}

static void begin(struct world *w, struct http_request r, const char *path, struct seen *s)
{
        struct http_handlers h = { on_head, s->stream ? on_data : NULL, on_done };
        char *url = fake_server_url(w->server, path);

        if (!r.url)
                r.url = url;
        buf_init(&s->data, 0);
        s->client = w->client;
        s->call = http_call_start(w->client, &r, &h, s);
        s->started = true;
        free(url);
}

static void await(struct world *w, struct seen *s)
{
        for (int i = 0; i < 1000000 && !s->done; i++)
                assert_true(loop_step(w->loop, true));
        assert_true(s->done);
}

static void ask(struct world *w, struct http_request r, const char *path, struct seen *s)
{
        begin(w, r, path, s);
        await(w, s);
}

static void an_answer_is_collected_with_its_status_and_headers(void **state)
{
        struct world w;
        struct seen s = { 0 };
        const char *headers[] = { "Authorization: Bearer xyz", NULL };

        (void)state;
        SCRIPT(&w, { "HTTP/1.1 201 Made\r\nX-Test: yes\r\nContent-Length: 5\r\n\r\nhello" });
        ask(&w, (struct http_request){ .headers = headers }, "/a?b=c", &s);
        assert_int_equal(s.result.kind, ERR_NONE);
        assert_int_equal(s.result.status, 201);
        assert_int_equal(s.result.reach, HTTP_ANSWERED);
        assert_int_equal(s.result.retry_after_ms, -1);
        assert_string_equal(s.body, "hello");
        assert_string_equal(s.header, "yes");
        assert_int_equal(s.heads, 1);
        assert_memory_equal(fake_server_request(w.server, 0), "GET /a?b=c HTTP/1.1\r\n", 21);
        assert_non_null(strstr(fake_server_request(w.server, 0), "Authorization: Bearer xyz\r\n"));
        assert_non_null(strstr(fake_server_request(w.server, 0), "User-Agent: dragoman/"));
        assert_int_equal(http_client_active(w.client), 0);
        seen_release(&s);
        world_close(&w);
}

static void a_body_is_posted_unchanged(void **state)
{
        struct world w;
        struct seen s = { 0 };
        const char *headers[] = { "Content-Type: application/json", NULL };

        (void)state;
        SCRIPT(&w, { OK_TEXT });
        ask(&w, (struct http_request){ .headers = headers, .body = "{\"a\":1}", .body_n = 7 }, "/",
            &s);
        assert_memory_equal(fake_server_request(w.server, 0), "POST / HTTP/1.1\r\n", 17);
        assert_non_null(
                strstr(fake_server_request(w.server, 0), "Content-Type: application/json\r\n"));
        assert_non_null(strstr(fake_server_request(w.server, 0), "\r\n\r\n{\"a\":1}"));
        assert_null(strstr(fake_server_request(w.server, 0), "Expect"));
        seen_release(&s);
        world_close(&w);
}

static void other_methods_and_empty_bodies_are_sent(void **state)
{
        static const struct {
                const char *method, *starts;
        } rows[] = {
                { "DELETE", "DELETE / HTTP/1.1\r\n" },
                { "POST", "POST / HTTP/1.1\r\n" },
                { "PUT", "PUT / HTTP/1.1\r\n" },
                { "PATCH", "PATCH / HTTP/1.1\r\n" },
        };
        struct world w;

        (void)state;
        SCRIPT(&w, { OK_TEXT }, { OK_TEXT }, { OK_TEXT }, { OK_TEXT });
        for (unsigned i = 0; i < COUNT(rows); i++) {
                struct seen s = { 0 };

                ask(&w, (struct http_request){ .method = rows[i].method }, "/", &s);
                assert_int_equal(s.result.status, 200);
                assert_memory_equal(fake_server_request(w.server, i), rows[i].starts,
                                    strlen(rows[i].starts));
                seen_release(&s);
        }
        world_close(&w);
}

static void a_head_request_has_no_body(void **state)
{
        struct world w;
        struct seen s = { 0 };

        (void)state;
        SCRIPT(&w, { "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" });
        ask(&w, (struct http_request){ .method = "HEAD" }, "/", &s);
        assert_int_equal(s.result.status, 200);
        assert_int_equal(s.result.kind, ERR_NONE);
        assert_int_equal(s.result.body_n, 0);
        seen_release(&s);
        world_close(&w);
}

static void parts_are_sent_as_a_form_with_a_file(void **state)
{
        struct world w;
        struct seen s = { 0 };
        char path[] = "/tmp/test_http_client.XXXXXX";
        struct http_file file = { mkstemp(path), 7 };
        struct http_part parts[] = {
                { .name = "chat_id", .data = "42", .data_n = 2 },
                { .name = "photo", .file = &file, .file_name = "cat.png" },
        };
        const char *sent;

        (void)state;
        assert_int_equal(write(file.fd, "PNGDATA and later lines", 23), 23);
        unlink(path);
        SCRIPT(&w, { OK_TEXT });
        ask(&w, (struct http_request){ .parts = parts, .part_count = 2 }, "/", &s);
        sent = fake_server_request(w.server, 0);
        assert_memory_equal(sent, "POST ", 5);
        assert_non_null(strstr(sent, "multipart/form-data; boundary="));
        assert_non_null(strstr(sent, "name=\"chat_id\"\r\n\r\n42\r\n"));
        assert_non_null(strstr(
                sent, "filename=\"cat.png\"\r\nContent-Type: application/octet-stream\r\n\r\n"
                      "PNGDATA\r\n"));
        close(file.fd);
        seen_release(&s);
        world_close(&w);
}

/* The announced bytes can never follow; waiting for them would only take until the deadline. */
static void a_file_that_shrank_ends_the_call(void **state)
{
        struct world w;
        struct seen s = { 0 };
        char path[] = "/tmp/test_http_client.XXXXXX";
        struct http_file file = { mkstemp(path), 7 };
        struct http_part part = { .name = "photo", .file = &file };

        (void)state;
        unlink(path);
        assert_int_equal(write(file.fd, "PNG", 3), 3);
        SCRIPT(&w, { OK_TEXT });
        ask(&w, (struct http_request){ .parts = &part, .part_count = 1 }, "/", &s);
        assert_int_not_equal(s.result.kind, ERR_NONE);
        assert_int_equal(s.result.status, 0);
        close(file.fd);
        seen_release(&s);
        world_close(&w);
}

static void a_closed_file_fails_and_nothing_is_sent(void **state)
{
        struct world w;
        struct seen s = { 0 };
        struct http_file closed = { -1, 7 };
        struct http_part part = { .name = "photo", .file = &closed };

        (void)state;
        SCRIPT(&w, { OK_TEXT });
        ask(&w, (struct http_request){ .parts = &part, .part_count = 1 }, "/", &s);
        assert_int_equal(s.result.kind, ERR_IO);
        assert_int_equal(s.result.reach, HTTP_NOT_SENT);
        assert_int_equal(fake_server_accepted(w.server), 0);
        seen_release(&s);
        world_close(&w);
}

static void a_chunked_answer_in_tiny_pieces_streams(void **state)
{
        struct world w;
        struct seen s = { .stream = true };

        (void)state;
        SCRIPT(&w, { .bytes = "HTTP/1.1 200 OK\r\n"
                              "Transfer-Encoding: chunked\r\n"
                              "\r\n"
                              "3\r\n"
                              "abc\r\n"
                              "4\r\n"
                              "defg\r\n"
                              "0\r\n"
                              "\r\n",
                     .piece = 1 });
        ask(&w, (struct http_request){ .silence_ms = 60000 }, "/", &s);
        assert_int_equal(s.result.kind, ERR_NONE);
        assert_string_equal(s.data.data, "abcdefg");
        assert_true(s.pieces >= 7);
        assert_int_equal(s.result.body_n, 0);
        seen_release(&s);
        world_close(&w);
}

static void an_error_status_is_collected_even_when_streaming(void **state)
{
        struct world w;
        struct seen s = { .stream = true };

        (void)state;
        SCRIPT(&w, { "HTTP/1.1 429 Slow down\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nslow" });
        ask(&w, (struct http_request){ 0 }, "/", &s);
        assert_int_equal(s.result.kind, ERR_NONE);
        assert_int_equal(s.result.status, 429);
        assert_int_equal(s.result.retry_after_ms, 7000);
        assert_string_equal(s.body, "slow");
        assert_int_equal(s.pieces, 0);
        seen_release(&s);
        world_close(&w);
}

static void an_informational_answer_is_not_the_answer(void **state)
{
        struct world w;
        struct seen s = { 0 };

        (void)state;
        SCRIPT(&w, { "HTTP/1.1 103 Early Hints\r\nX-Test: no\r\n\r\n" OK_TEXT });
        ask(&w, (struct http_request){ 0 }, "/", &s);
        assert_int_equal(s.result.status, 200);
        assert_int_equal(s.heads, 1);
        assert_null(s.header);
        seen_release(&s);
        world_close(&w);
}

static void trailers_are_not_mistaken_for_a_head(void **state)
{
        struct world w;
        struct seen s = { 0 };

        (void)state;
        SCRIPT(&w, { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Test: "
                     "late\r\n\r\n" });
        ask(&w, (struct http_request){ 0 }, "/", &s);
        assert_int_equal(s.result.kind, ERR_NONE);
        assert_int_equal(s.heads, 1);
        assert_string_equal(s.body, "ok");
        seen_release(&s);
        world_close(&w);
}

static void connections_are_kept_alive(void **state)
{
        struct world w;

        (void)state;
        SCRIPT(&w, { OK_TEXT }, { OK_TEXT }, { OK_TEXT });
        for (int i = 0; i < 3; i++) {
                struct seen s = { 0 };

                ask(&w, (struct http_request){ 0 }, "/", &s);
                assert_int_equal(s.result.status, 200);
                seen_release(&s);
        }
        assert_int_equal(fake_server_accepted(w.server), 1);
        world_close(&w);
}

static void a_cut_answer_is_an_error_with_its_status(void **state)
{
        struct world w;
        struct seen s = { 0 };

        (void)state;
        SCRIPT(&w, { .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
                     .end = FAKE_CLOSE });
        ask(&w, (struct http_request){ 0 }, "/", &s);
        assert_int_equal(s.result.kind, ERR_NET);
        assert_int_equal(s.result.reach, HTTP_ANSWERED);
        assert_int_equal(s.result.status, 200);
        assert_true(strlen(s.why) > 0);
        seen_release(&s);
        world_close(&w);
}

static void a_cut_chunked_answer_is_an_error(void **state)
{
        struct world w;
        struct seen s = { .stream = true };

        (void)state;
        SCRIPT(&w, { .bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                     .end = FAKE_CLOSE });
        ask(&w, (struct http_request){ 0 }, "/", &s);
        assert_int_equal(s.result.kind, ERR_NET);
        assert_int_equal(s.result.reach, HTTP_ANSWERED);
        assert_string_equal(s.data.data, "abc");
        seen_release(&s);
        world_close(&w);
}

static void a_connection_closed_or_reset_without_an_answer_is_unsure(void **state)
{
        struct world w;

        (void)state;
        SCRIPT(&w, { .end = FAKE_CLOSE }, { .end = FAKE_RESET });
        for (int i = 0; i < 2; i++) {
                struct seen s = { 0 };

                ask(&w, (struct http_request){ .body = "x", .body_n = 1, .repeatable = i }, "/",
                    &s);
                assert_int_equal(s.result.kind, ERR_NET);
                assert_int_equal(s.result.reach, HTTP_UNSURE);
                assert_int_equal(s.result.status, 0);
                seen_release(&s);
        }
        /* a fresh connection is never retried, repeatable or not */
        assert_int_equal(fake_server_requests(w.server), 2);
        world_close(&w);
}

static void a_stale_connection_is_retried_once_when_repeatable(void **state)
{
        struct world w;
        struct seen first = { 0 }, second = { 0 };

        (void)state;
        SCRIPT(&w, { OK_TEXT }, { .end = FAKE_CLOSE }, { OK_TEXT });
        ask(&w, (struct http_request){ 0 }, "/1", &first);
        ask(&w, (struct http_request){ .body = "x", .body_n = 1, .repeatable = true }, "/2",
            &second);
        assert_int_equal(second.result.status, 200);
        assert_int_equal(fake_server_requests(w.server), 3);
        assert_int_equal(fake_server_accepted(w.server), 2);
        seen_release(&first);
        seen_release(&second);
        world_close(&w);
}

static void a_stale_connection_is_not_retried_when_not_repeatable(void **state)
{
        struct world w;
        struct seen first = { 0 }, second = { 0 };

        (void)state;
        SCRIPT(&w, { OK_TEXT }, { .end = FAKE_CLOSE }, { OK_TEXT });
        ask(&w, (struct http_request){ 0 }, "/1", &first);
        ask(&w, (struct http_request){ .body = "x", .body_n = 1 }, "/2", &second);
        assert_int_equal(second.result.kind, ERR_NET);
        assert_int_equal(second.result.reach, HTTP_UNSURE);
        assert_int_equal(fake_server_requests(w.server), 2);
        seen_release(&first);
        seen_release(&second);
        world_close(&w);
}

/* A port without a listener: bound, so that no other program gets it. */
static int refused_port(int *fd)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        socklen_t n = sizeof(at);

        *fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(*fd, (struct sockaddr *)&at, n), 0);
        assert_int_equal(getsockname(*fd, (struct sockaddr *)&at, &n), 0);
        return ntohs(at.sin_port);
}

static void a_refused_connection_was_not_sent(void **state)
{
        struct world w;
        struct seen s = { 0 };
        int fd, port = refused_port(&fd);
        char *url = mem_printf("http://127.0.0.1:%d/bot-secret-token/x", port);

        (void)state;
        SCRIPT(&w, { OK_TEXT });
        ask(&w, (struct http_request){ .url = url, .body = "x", .body_n = 1 }, "", &s);
        assert_int_equal(s.result.kind, ERR_NET);
        assert_int_equal(s.result.reach, HTTP_NOT_SENT);
        assert_non_null(strstr(s.why, "cannot reach '127.0.0.1'"));
        assert_null(strstr(s.why, "token"));
        close(fd);
        free(url);
        seen_release(&s);
        world_close(&w);
}

static void an_unknown_host_was_not_sent(void **state)
{
        struct world w;
        struct seen s = { 0 };

        (void)state;
        SCRIPT(&w, { OK_TEXT });
        ask(&w, (struct http_request){ .url = "http://nobody.invalid/", .connect_ms = 60000 }, "",
            &s);
        assert_int_equal(s.result.kind, ERR_NET);
        assert_int_equal(s.result.reach, HTTP_NOT_SENT);
        seen_release(&s);
        world_close(&w);
}

static void an_invalid_request_is_reported_later(void **state)
{
        static const char *const bad_header[] = { "X: a\r\nEvil: b", NULL };
        static const char *const no_colon[] = { "nonsense", NULL };
        const struct http_request rows[] = {
                { .url = "ftp://127.0.0.1/" }, { .url = "no url at all" },
                { .url = "http://" },          { .url = "file:///etc/passwd" },
                { .method = "GE T" },          { .headers = bad_header },
                { .headers = no_colon },       { .url = "" },
        };
        struct world w;

        (void)state;
        SCRIPT(&w, { OK_TEXT });
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct seen s = { 0 };

                ask(&w, rows[i], "/", &s);
                assert_int_equal(s.result.kind, ERR_INVALID);
                assert_int_equal(s.result.reach, HTTP_NOT_SENT);
                assert_int_equal(fake_server_accepted(w.server), 0);
                seen_release(&s);
        }
        world_close(&w);
}

static void a_missing_answer_hits_the_first_byte_deadline(void **state)
{
        struct world w;
        struct seen s = { 0 };

        (void)state;
        SCRIPT(&w, { 0 });
        ask(&w, (struct http_request){ .first_byte_ms = 30 }, "/", &s);
        assert_int_equal(s.result.kind, ERR_TIMEOUT);
        assert_int_equal(s.result.reach, HTTP_UNSURE);
        assert_string_equal(s.why, "no answer from '127.0.0.1' within 30 ms");
        assert_true(s.result.elapsed_ms >= 30);
        seen_release(&s);
        world_close(&w);
}

static void a_stalled_answer_hits_its_deadline(void **state)
{
        struct world w;
        struct seen s = { .stream = true };

        (void)state;
        SCRIPT(&w, { "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello" });
        ask(&w, (struct http_request){ .silence_ms = 30, .first_byte_ms = 600000 }, "/", &s);
        assert_int_equal(s.result.kind, ERR_TIMEOUT);
        assert_int_equal(s.result.reach, HTTP_ANSWERED);
        assert_string_equal(s.data.data, "hello");
        seen_release(&s);
        world_close(&w);
}

static void a_slow_answer_hits_the_total_deadline(void **state)
{
        static char drip[200000];
        static struct fake_answer script[] = { { .bytes = drip, .n = sizeof(drip), .piece = 1 } };
        struct world w;
        struct seen s = { .stream = true };
        static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n";

        (void)state;
        memset(drip, 'x', sizeof(drip));
        memcpy(drip, head, sizeof(head) - 1);
        world_open(&w, script, 1);
        ask(&w, (struct http_request){ .total_ms = 150, .silence_ms = 600000 }, "/", &s);
        assert_int_equal(s.result.kind, ERR_TIMEOUT);
        assert_non_null(strstr(s.why, "within 150 ms"));
        seen_release(&s);
        world_close(&w);
}

/* The backlog of a listener that never accepts is full: connecting hangs. */
static void a_hanging_connect_times_out_unsent(void **state)
{
        struct world w;
        struct seen s = { 0 };
        int fd, port = refused_port(&fd), fill[4];
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = { htonl(INADDR_LOOPBACK) } };
        char *url = mem_printf("http://127.0.0.1:%d/", port);

        (void)state;
        assert_int_equal(listen(fd, 0), 0);
        for (size_t i = 0; i < COUNT(fill); i++) {
                fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
                (void)!connect(fill[i], (struct sockaddr *)&at, sizeof(at));
        }
        SCRIPT(&w, { OK_TEXT });
        ask(&w, (struct http_request){ .url = url, .connect_ms = 50 }, "", &s);
        assert_int_equal(s.result.kind, ERR_TIMEOUT);
        assert_int_equal(s.result.reach, HTTP_NOT_SENT);
        for (size_t i = 0; i < COUNT(fill); i++)
                close(fill[i]);
        close(fd);
        free(url);
        seen_release(&s);
        world_close(&w);
}

static void a_body_over_the_cap_ends_the_call(void **state)
{
        static char huge[300000];
        static struct fake_answer script[] = { { .bytes = huge, .n = sizeof(huge) },
                                               { .bytes = huge, .n = sizeof(huge) } };
        static const char head[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
        struct world w;

        (void)state;
        memset(huge, 'x', sizeof(huge));
        memcpy(huge, head, sizeof(head) - 1);
        world_open(&w, script, 2);
        for (int i = 0; i < 2; i++) {
                struct seen s = { .stream = i == 1 };

                ask(&w, (struct http_request){ .max_body = 100000 }, "/", &s);
                assert_int_equal(s.result.kind, ERR_LIMIT);
                assert_int_equal(s.result.reach, HTTP_ANSWERED);
                assert_true(s.result.body_n <= 100000 && s.data.len <= 100000);
                seen_release(&s);
        }
        world_close(&w);
}

static void endless_headers_end_the_call(void **state)
{
        static char huge[600000];
        static struct fake_answer script[] = { { .bytes = huge, .n = sizeof(huge) } };
        static const char head[] = "HTTP/1.1 200 OK\r\n",
                          line[] = "X-Filler: 0123456789012345678901234567890\r\n";
        struct world w;
        struct seen s = { 0 };
        size_t at = sizeof(head) - 1;

        (void)state;
        memcpy(huge, head, at);
        for (; at + sizeof(line) - 1 <= sizeof(huge); at += sizeof(line) - 1)
                memcpy(huge + at, line, sizeof(line) - 1);
        script[0].n = at;
        world_open(&w, script, 1);
        ask(&w, (struct http_request){ 0 }, "/", &s);
        assert_int_equal(s.result.kind, ERR_LIMIT);
        assert_int_equal(s.heads, 0);
        seen_release(&s);
        world_close(&w);
}

static void nonsense_instead_of_http_is_an_error(void **state)
{
        struct world w;
        struct seen s = { 0 };

        (void)state;
        SCRIPT(&w, { .bytes = "what do you want\r\n\r\n", .end = FAKE_CLOSE });
        ask(&w, (struct http_request){ 0 }, "/", &s);
        assert_int_not_equal(s.result.kind, ERR_NONE);
        assert_int_equal(s.result.reach, HTTP_UNSURE);
        assert_int_equal(s.result.status, 0);
        seen_release(&s);
        world_close(&w);
}

static void settle(struct world *w)
{
        while (fake_server_open(w->server) > 0)
                assert_true(loop_step(w->loop, true));
}

static void an_aborted_call_reports_nothing_and_disconnects(void **state)
{
        struct world w;
        struct seen at_once = { 0 }, at_head = { .abort_at_head = true },
                    at_data = { .stream = true, .abort_at_piece = 2 };

        (void)state;
        SCRIPT(&w, { .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhello" },
               { .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello hello",
                 .piece = 1 });
        begin(&w, (struct http_request){ 0 }, "/", &at_once);
        http_call_abort(at_once.call);
        assert_int_equal(http_client_active(w.client), 0);
        begin(&w, (struct http_request){ 0 }, "/", &at_head);
        while (at_head.heads == 0)
                assert_true(loop_step(w.loop, true));
        settle(&w);
        begin(&w, (struct http_request){ 0 }, "/", &at_data);
        while (at_data.pieces < 2)
                assert_true(loop_step(w.loop, true));
        settle(&w);
        assert_int_equal(at_data.pieces, 2);
        assert_false(at_once.done || at_head.done || at_data.done);
        assert_int_equal(fake_server_requests(w.server), 2);
        http_call_abort(NULL);
        seen_release(&at_once);
        seen_release(&at_head);
        seen_release(&at_data);
        world_close(&w);
}

static void aborting_outside_callbacks_works_in_every_state(void **state)
{
        struct world w;

        (void)state;
        SCRIPT(&w, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, { 0 });
        for (int steps = 0; steps < 8; steps++) {
                struct seen s = { 0 };

                begin(&w, (struct http_request){ 0 }, "/", &s);
                for (int i = 0; i < steps; i++)
                        loop_step(w.loop, false);
                http_call_abort(s.call);
                loop_step(w.loop, false);
                assert_false(s.done);
                seen_release(&s);
        }
        world_close(&w);
}

static void freeing_the_client_aborts_all_calls(void **state)
{
        struct world w;
        struct seen s[5] = { { 0 } };

        (void)state;
        SCRIPT(&w, { 0 });
        for (int i = 0; i < 4; i++)
                begin(&w, (struct http_request){ 0 }, "/", &s[i]);
        while (fake_server_requests(w.server) < 4)
                assert_true(loop_step(w.loop, true));
        begin(&w, (struct http_request){ 0 }, "/", &s[4]);
        assert_int_equal(http_client_active(w.client), 5);
        http_client_free(w.client);
        w.client = NULL;
        settle(&w);
        for (int i = 0; i < 5; i++) {
                assert_false(s[i].done);
                seen_release(&s[i]);
        }
        world_close(&w);
}

static void the_client_may_be_freed_inside_callbacks(void **state)
{
        for (int i = 0; i < 2; i++) {
                struct world w;
                struct seen other = { 0 };
                struct seen s = { .stream = true,
                                  .free_client_at_piece = i == 0,
                                  .free_client_at_done = i == 1 };

                (void)state;
                SCRIPT(&w, { OK_TEXT });
                begin(&w, (struct http_request){ 0 }, "/", &s);
                while (fake_server_requests(w.server) < 1)
                        assert_true(loop_step(w.loop, true));
                begin(&w, (struct http_request){ 0 }, "/", &other);
                while (fake_server_open(w.server) > 0)
                        assert_true(loop_step(w.loop, true));
                assert_int_equal(s.done, i == 1);
                assert_false(other.done);
                w.client = NULL;
                seen_release(&s);
                seen_release(&other);
                world_close(&w);
        }
}

static void a_redirected_get_keeps_headers_on_the_same_host(void **state)
{
        struct world w;
        struct seen s = { .stream = true };
        const char *headers[] = { "X-Api-Key: k", NULL };

        (void)state;
        SCRIPT(&w, { "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 4\r\n\r\ngone" },
               { OK_TEXT });
        ask(&w, (struct http_request){ .headers = headers, .follow = true }, "/here", &s);
        assert_int_equal(s.result.status, 200);
        assert_int_equal(s.heads, 1);
        assert_string_equal(s.data.data, "hello");
        assert_memory_equal(fake_server_request(w.server, 1), "GET /there ", 11);
        assert_non_null(strstr(fake_server_request(w.server, 1), "X-Api-Key: k"));
        seen_release(&s);
        world_close(&w);
}

static void a_redirect_to_another_host_gets_no_credentials(void **state)
{
        struct world w;
        struct seen s = { 0 };
        static struct fake_answer script[] = { { OK_TEXT } };
        static struct fake_answer redirect[1];
        const char *headers[] = { "X-Api-Key: k", "Authorization: Bearer t", "Cookie: c=1",
                                  "Accept: text/plain", NULL };
        struct fake_server *other;
        char *location;
        const char *got;

        (void)state;
        world_open(&w, redirect, 1);
        other = fake_server_new(w.loop, script, 1);
        location = mem_printf(
                "HTTP/1.1 307 Go\r\nLocation: http://u:p@127.0.0.1:%d/x\r\nContent-Length: 0\r\n"
                "\r\n",
                fake_server_port(other));
        redirect[0].bytes = location;
        ask(&w, (struct http_request){ .headers = headers, .follow = true }, "/", &s);
        assert_int_equal(s.result.status, 200);
        got = fake_server_request(other, 0);
        assert_null(strstr(got, "X-Api-Key"));
        assert_null(strstr(got, "Authorization"));
        assert_null(strstr(got, "Cookie"));
        assert_non_null(strstr(got, "Accept: text/plain"));
        free(location);
        fake_server_free(other);
        seen_release(&s);
        world_close(&w);
}

static void redirects_are_not_followed_for_posts_nor_unasked(void **state)
{
        struct world w;

        (void)state;
        SCRIPT(&w, { "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n" },
               { "HTTP/1.1 307 Go\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n" });
        for (int i = 0; i < 2; i++) {
                struct seen s = { 0 };
                struct http_request r = { .follow = i == 1,
                                          .body = i ? "x" : NULL,
                                          .body_n = (size_t)i };

                ask(&w, r, "/", &s);
                assert_int_equal(s.result.status, i ? 307 : 302);
                assert_int_equal(s.result.kind, ERR_NONE);
                seen_release(&s);
        }
        assert_int_equal(fake_server_requests(w.server), 2);
        world_close(&w);
}

/* Nor by a connection that an earlier request has made. */
static void a_strangers_url_reaches_no_private_network(void **state)
{
        static const char *const hosts[] = { "127.0.0.1", "localhost",  "[::1]", "[::ffff:7f00:1]",
                                             "0.0.0.0",   "2130706433", "127.1" };
        struct seen first = { 0 };
        struct world w;

        (void)state;
        SCRIPT(&w, { OK_TEXT }, { OK_TEXT });
        ask(&w, (struct http_request){ 0 }, "/", &first);
        assert_int_equal(first.result.status, 200);
        seen_release(&first);
        for (size_t i = 0; i < COUNT(hosts); i++) {
                char *url = mem_printf("http://%s:%d/", hosts[i], fake_server_port(w.server));
                struct seen s = { 0 };

                ask(&w, (struct http_request){ .url = url, .public_only = true }, "", &s);
                assert_int_equal(s.result.kind, ERR_REFUSED);
                assert_int_equal(s.result.reach, HTTP_NOT_SENT);
                assert_non_null(strstr(s.why, "of this machine or of a private network"));
                seen_release(&s);
                free(url);
        }
        assert_int_equal(fake_server_requests(w.server), 1);
        assert_int_equal(fake_server_accepted(w.server), 1);
        world_close(&w);
}

/* The proxy looks the name up; no_proxy is for hosts that the operator names. */
static void a_strangers_url_goes_through_the_proxy(void **state)
{
        static const char *const urls[] = { "http://agent.example/", "http://10.0.0.7/" };
        struct http_client_options options = { 0 };
        struct world w;
        char *proxy;

        (void)state;
        SCRIPT(&w, { OK_TEXT });
        proxy = fake_server_url(w.server, "");
        options.proxy = proxy;
        http_client_free(w.client);
        w.client = http_client_new(w.loop, &options, NULL);
        setenv("no_proxy", "*", 1);
        for (size_t i = 0; i < COUNT(urls); i++) {
                struct seen s = { 0 };

                ask(&w, (struct http_request){ .url = urls[i], .public_only = true }, "", &s);
                assert_int_equal(s.result.kind, i ? ERR_REFUSED : ERR_NONE);
                seen_release(&s);
        }
        unsetenv("no_proxy");
        assert_int_equal(fake_server_requests(w.server), 1);
        assert_non_null(strstr(fake_server_request(w.server, 0), "GET http://agent.example/"));
        free(proxy);
        world_close(&w);
}

#define AROUND                                                                        \
        {                                                                             \
                "HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n" \
        }

static void redirect_loops_end(void **state)
{
        struct world w;
        struct seen s = { 0 };

        (void)state;
        SCRIPT(&w, AROUND, AROUND, AROUND, AROUND, AROUND, AROUND, AROUND);
        ask(&w, (struct http_request){ .follow = true }, "/", &s);
        assert_int_equal(s.result.kind, ERR_PROTOCOL);
        assert_int_equal(fake_server_requests(w.server), 6);
        seen_release(&s);
        world_close(&w);
}

static void a_redirect_to_another_scheme_is_refused(void **state)
{
        struct world w;
        struct seen s = { 0 };

        (void)state;
        SCRIPT(&w, { "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: "
                     "0\r\n\r\n" });
        ask(&w, (struct http_request){ .follow = true }, "/", &s);
        assert_int_equal(s.result.kind, ERR_PROTOCOL);
        seen_release(&s);
        world_close(&w);
}

static void a_proxy_is_taken_from_the_options_or_the_environment(void **state)
{
        struct world w;
        char *proxy;

        (void)state;
        SCRIPT(&w, { OK_TEXT }, { OK_TEXT });
        proxy = fake_server_url(w.server, "");
        for (unsigned i = 0; i < 2; i++) {
                struct http_client_options options = { .proxy = i == 0 ? proxy : NULL };
                struct seen s = { 0 };

                if (i == 1)
                        setenv("http_proxy", proxy, 1);
                http_client_free(w.client);
                w.client = http_client_new(w.loop, &options, NULL);
                ask(&w, (struct http_request){ .url = "http://example.invalid/x" }, "", &s);
                assert_int_equal(s.result.status, 200);
                assert_memory_equal(fake_server_request(w.server, i),
                                    "GET http://example.invalid/x HTTP/1.1\r\n", 39);
                seen_release(&s);
        }
        unsetenv("http_proxy");
        free(proxy);
        world_close(&w);
}

static void calls_beyond_the_connections_wait(void **state)
{
        struct http_client_options options = { .max_connections = 1 };
        struct world w;
        struct seen s[3] = { { 0 } };

        (void)state;
        SCRIPT(&w, { OK_TEXT }, { OK_TEXT }, { OK_TEXT });
        http_client_free(w.client);
        w.client = http_client_new(w.loop, &options, NULL);
        for (size_t i = 0; i < COUNT(s); i++)
                begin(&w, (struct http_request){ 0 }, "/", &s[i]);
        for (size_t i = 0; i < COUNT(s); i++) {
                await(&w, &s[i]);
                assert_int_equal(s[i].result.status, 200);
                seen_release(&s[i]);
        }
        assert_int_equal(fake_server_accepted(w.server), 1);
        world_close(&w);
}

static void a_missing_certificate_file_is_an_error(void **state)
{
        struct loop *l = loop_new();
        struct http_client_options options = { .ca_file = "/nonexistent/ca.pem" };
        struct error err;

        (void)state;
        assert_null(http_client_new(l, &options, &err));
        assert_int_equal(err.kind, ERR_IO);
        loop_free(l);
}

static void tls_accepts_only_a_trusted_certificate_with_the_right_name(void **state)
{
        static const struct {
                const char *host;
                bool trusted, accepted;
        } rows[] = {
                { "localhost", true, true },
                { "127.0.0.1", true, false },  /* not in the certificate */
                { "localhost", false, false }, /* unknown signer */
        };
        struct fake_tls *tls = fake_tls_new(COUNT(rows));

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                struct http_client_options options = { .ca_file = rows[i].trusted
                                                                          ? fake_tls_ca_file(tls)
                                                                          : NULL };
                struct world w;
                struct seen s = { 0 };
                char *url = mem_printf("https://%s:%d/", rows[i].host, fake_tls_port(tls));

                SCRIPT(&w, { OK_TEXT });
                http_client_free(w.client);
                w.client = http_client_new(w.loop, &options, NULL);
                ask(&w, (struct http_request){ .url = url, .body = "x", .body_n = 1 }, "", &s);
                assert_int_equal(s.result.kind, rows[i].accepted ? ERR_NONE : ERR_NET);
                assert_int_equal(s.result.reach, rows[i].accepted ? HTTP_ANSWERED : HTTP_NOT_SENT);
                free(url);
                seen_release(&s);
                world_close(&w);
        }
        assert_int_equal(fake_tls_served(tls), 1);
        fake_tls_free(tls);
}

static void retry_after_is_seconds_or_a_date(void **state)
{
        static const struct {
                const char *value;
                int64_t ms;
        } rows[] = {
                { "0", 0 },
                { "120", 120000 },
                { " 3 ", 3000 },
                { "0.25", 250 },
                { "1.5678", 1567 },
                { "Sun, 06 Nov 1994 08:49:37 GMT", 37000 },
                { "Sun, 06 Nov 1994 08:48:00 GMT", 0 }, /* over */
                { "99999999999999999999999", 366LL * 86400 * 1000 },
                { "", -1 },
                { "-5", -1 },
                { "12x", -1 },
                { "soon", -1 },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++)
                assert_int_equal(http_text_retry_after_ms(rows[i].value, 784111740000), rows[i].ms);
        assert_int_equal(http_text_retry_after_ms(NULL, 0), -1);
}

static void escaping_keeps_only_unreserved_characters(void **state)
{
        char *escaped = http_text_escape("a-Z_0.9~ /?&=%\xc3\xa4");

        (void)state;
        assert_string_equal(escaped, "a-Z_0.9~%20%2F%3F%26%3D%25%C3%A4");
        free(escaped);
}

struct chain {
        struct world w;
        int left;
};

static void on_link(void *arg, const struct http_result *result)
{
        struct chain *c = arg;
        struct http_handlers h = { NULL, NULL, on_link };
        char *url = fake_server_url(c->w.server, "/");

        assert_int_equal(result->status, 200);
        if (--c->left > 0)
                http_call_start(c->w.client, &(struct http_request){ .url = url }, &h, c);
        free(url);
}

static void on_bad_link(void *arg, const struct http_result *result)
{
        struct chain *c = arg;
        struct http_handlers h = { NULL, NULL, on_bad_link };

        assert_int_equal(result->kind, ERR_INVALID);
        if (--c->left > 0)
                http_call_start(c->w.client, &(struct http_request){ .url = "" }, &h, c);
}

static void a_call_restarted_when_it_fails_does_not_block_the_loop(void **state)
{
        struct chain c = { .left = 1000 };
        struct http_handlers h = { NULL, NULL, on_bad_link };

        (void)state;
        SCRIPT(&c.w, { OK_TEXT });
        http_call_start(c.w.client, &(struct http_request){ .url = "" }, &h, &c);
        for (int rounds = 0; rounds < 10; rounds++)
                loop_step(c.w.loop, false);
        assert_in_range(c.left, 900, 999);
        world_close(&c.w);
}

static void a_call_may_be_started_inside_on_done(void **state)
{
        static struct fake_answer script[50];
        struct chain c = { .left = COUNT(script) };
        struct http_handlers h = { NULL, NULL, on_link };
        char *url;

        (void)state;
        for (size_t i = 0; i < COUNT(script); i++)
                script[i].bytes = OK_TEXT;
        world_open(&c.w, script, COUNT(script));
        url = fake_server_url(c.w.server, "/");
        http_call_start(c.w.client, &(struct http_request){ .url = url }, &h, &c);
        while (c.left > 0)
                assert_true(loop_step(c.w.loop, true));
        assert_int_equal(fake_server_accepted(c.w.server), 1);
        free(url);
        world_close(&c.w);
}

int main(void)
{
        static const char *const proxies[] = { "http_proxy", "https_proxy", "HTTPS_PROXY",
                                               "all_proxy",  "ALL_PROXY",   "no_proxy",
                                               "NO_PROXY" };
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_answer_is_collected_with_its_status_and_headers),
                cmocka_unit_test(a_body_is_posted_unchanged),
                cmocka_unit_test(other_methods_and_empty_bodies_are_sent),
                cmocka_unit_test(a_head_request_has_no_body),
                cmocka_unit_test(parts_are_sent_as_a_form_with_a_file),
                cmocka_unit_test(a_closed_file_fails_and_nothing_is_sent),
                cmocka_unit_test(a_file_that_shrank_ends_the_call),
                cmocka_unit_test(a_chunked_answer_in_tiny_pieces_streams),
                cmocka_unit_test(an_error_status_is_collected_even_when_streaming),
                cmocka_unit_test(an_informational_answer_is_not_the_answer),
                cmocka_unit_test(trailers_are_not_mistaken_for_a_head),
                cmocka_unit_test(connections_are_kept_alive),
                cmocka_unit_test(a_cut_answer_is_an_error_with_its_status),
                cmocka_unit_test(a_cut_chunked_answer_is_an_error),
                cmocka_unit_test(a_connection_closed_or_reset_without_an_answer_is_unsure),
                cmocka_unit_test(a_stale_connection_is_retried_once_when_repeatable),
                cmocka_unit_test(a_stale_connection_is_not_retried_when_not_repeatable),
                cmocka_unit_test(a_refused_connection_was_not_sent),
                cmocka_unit_test(an_unknown_host_was_not_sent),
                cmocka_unit_test(an_invalid_request_is_reported_later),
                cmocka_unit_test(a_missing_answer_hits_the_first_byte_deadline),
                cmocka_unit_test(a_stalled_answer_hits_its_deadline),
                cmocka_unit_test(a_slow_answer_hits_the_total_deadline),
                cmocka_unit_test(a_hanging_connect_times_out_unsent),
                cmocka_unit_test(a_body_over_the_cap_ends_the_call),
                cmocka_unit_test(endless_headers_end_the_call),
                cmocka_unit_test(nonsense_instead_of_http_is_an_error),
                cmocka_unit_test(an_aborted_call_reports_nothing_and_disconnects),
                cmocka_unit_test(aborting_outside_callbacks_works_in_every_state),
                cmocka_unit_test(freeing_the_client_aborts_all_calls),
                cmocka_unit_test(the_client_may_be_freed_inside_callbacks),
                cmocka_unit_test(a_redirected_get_keeps_headers_on_the_same_host),
                cmocka_unit_test(a_redirect_to_another_host_gets_no_credentials),
                cmocka_unit_test(a_strangers_url_reaches_no_private_network),
                cmocka_unit_test(a_strangers_url_goes_through_the_proxy),
                cmocka_unit_test(redirects_are_not_followed_for_posts_nor_unasked),
                cmocka_unit_test(redirect_loops_end),
                cmocka_unit_test(a_redirect_to_another_scheme_is_refused),
                cmocka_unit_test(a_proxy_is_taken_from_the_options_or_the_environment),
                cmocka_unit_test(calls_beyond_the_connections_wait),
                cmocka_unit_test(a_missing_certificate_file_is_an_error),
                cmocka_unit_test(tls_accepts_only_a_trusted_certificate_with_the_right_name),
                cmocka_unit_test(retry_after_is_seconds_or_a_date),
                cmocka_unit_test(escaping_keeps_only_unreserved_characters),
                cmocka_unit_test(a_call_may_be_started_inside_on_done),
                cmocka_unit_test(a_call_restarted_when_it_fails_does_not_block_the_loop),
        };

        for (size_t i = 0; i < COUNT(proxies); i++)
                unsetenv(proxies[i]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
