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
#include "net/http_guard.h"
#include "net/http_server.h"

/* ---- the guard alone ---- */

#define H(n, v)                                           \
        {                                                 \
                n, sizeof(n) - 1, v, sizeof(v) - 1, false \
        }

struct row {
        const char *method, *target, *version;
        struct http_guard_header headers[3];
        const char *why; /* a part of the reason; NULL: fine */
};

/* clang-format off */
static const struct row rows[] = {
        { "GET", "/", "HTTP/1.1", { H("Host", "a") }, NULL },
        { "GET", "/", "HTTP/1.0", { { 0 } }, NULL },
        { "GET", "/a?b=c", "HTTP/1.1", { H("host", "[::1]:80"), H("X-Y", "tab\there \xc3\xbc") },
          NULL },
        { "POST", "/", "HTTP/1.1", { H("Host", ""), H("Content-Length", "0") }, NULL },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Transfer-Encoding", "Chunked") }, NULL },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Expect", "100-Continue") }, NULL },

        { "GET", "/", "HTTP/1.1", { { 0 } }, "Host is missing" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a"), H("HOST", "a") }, "Host is repeated" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a b") }, "Host is malformed" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a,b") }, "Host is malformed" },
        { "GET", "/", "HTTP/1.2", { H("Host", "a") }, "HTTP/1.0 and HTTP/1.1"},
        { "GET", "/", "HTTP/2.0", { H("Host", "a") }, "HTTP/1.0 and HTTP/1.1"},
        { "GET", "http://a/", "HTTP/1.1", { H("Host", "a") }, "must be a path" },
        { "OPTIONS", "*", "HTTP/1.1", { H("Host", "a") }, "must be a path" },
        { "CONNECT", "a:80", "HTTP/1.1", { H("Host", "a") }, "must be a path" },
        { "GET", "", "HTTP/1.1", { H("Host", "a") }, "must be a path" },
        { "GET", "/a b", "HTTP/1.1", { H("Host", "a") }, "does not belong" },
        { "GET", "/a\x01", "HTTP/1.1", { H("Host", "a") }, "does not belong" },
        { "GET", "/a\rb", "HTTP/1.1", { H("Host", "a") }, "does not belong" },
        { "GET", "/a#b", "HTTP/1.1", { H("Host", "a") }, "does not belong" },
        { "G(T", "/", "HTTP/1.1", { H("Host", "a") }, "method" },
        { "", "/", "HTTP/1.1", { H("Host", "a") }, "method" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a"), H("X ", "b") }, "not a token" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a"), H("", "b") }, "not a token" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a"), H("X\0Y", "b") }, "not a token" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a"), H("X\xc3\xbc", "b") }, "not a token" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a"), H("X", "b\rc") }, "control character" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a"), H("X", "b\0c") }, "control character" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a"), H("X", "b\x7f") }, "control character" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a"), { "X", 1, "b", 1, true } }, "continued" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Content-Length", "+2") }, "plain number" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Content-Length", "-2") }, "plain number" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Content-Length", "0x2") }, "plain number" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Content-Length", "2, 2") },
          "plain number" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Content-Length", "") }, "plain number" },
        { "POST",
         "/", "HTTP/1.1",
         { H("Host", "a"), H("Content-Length", "99999999999999999999") },
         "plain number" },
        { "POST",
         "/", "HTTP/1.1",
         { H("Host", "a"), H("Content-Length", "2"), H("content-length", "2") },
         "Content-Length is repeated" },
        { "POST",
         "/", "HTTP/1.1",
         { H("Host", "a"), H("Content-Length", "2"), H("Transfer-Encoding", "chunked") },
         "exclude each other" },
        { "POST",
         "/", "HTTP/1.1",
         { H("Host", "a"), H("Transfer-Encoding", "chunked"), H("Transfer-Encoding", "chunked") },
         "Transfer-Encoding is repeated" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Transfer-Encoding", "gzip") },
          "not understood" },
        { "POST",
         "/", "HTTP/1.1",
         { H("Host", "a"), H("Transfer-Encoding", "gzip, chunked") },
         "not understood" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Transfer-Encoding", "xchunked") },
          "not understood" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Transfer-Encoding", "chunked ") },
          "not understood" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Transfer-Encoding", "chunked\t") },
          "not understood" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Content-Length", "2 ") }, "plain number" },
        { "GET", "/", "HTTP/1.1", { H("Host", "a ") }, "Host is malformed" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Expect", "100-continue ") },
          "Expect is not understood" },
        { "POST", "/", "HTTP/1.1", { H("Host", "a"), H("Expect", "a miracle") },
          "Expect is not understood" },
        { "POST", "/", "HTTP/1.0", { H("Transfer-Encoding", "chunked") }, "not understood" },
};
/* clang-format on */

static void ambiguous_requests_are_recognised(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(rows); i++) {
                const struct row *r = &rows[i];
                size_t n = 0;
                const char *why;

                while (n < COUNT(r->headers) && r->headers[n].name)
                        n++;
                why = http_guard_check(r->method, r->target, r->version, r->headers, n);
                if (!r->why && why)
                        fail_msg("row %zu should be fine: %s", i, why);
                if (r->why && (!why || !strstr(why, r->why)))
                        fail_msg("row %zu should say '%s', not '%s'", i, r->why,
                                 why ? why : "fine");
        }
}

/* ---- the guard in front of the real library ---- */

struct site {
        struct loop *loop;
        struct http_server *server;
        unsigned asked;
};

static void run_any(struct http_exchange *x)
{
        struct site *t = http_server_arg(x);

        t->asked++;
        http_answer(x, 200, "text/plain", "ok", 2);
}

static const struct http_route routes[] = {
        { "GET", "/", run_any, 0, NULL },
        { "POST", "/", run_any, 0, NULL },
        { "GET", "/smuggled", run_any, 0, NULL },
};

static void open_site(struct site *t)
{
        struct http_server_options o = { .listen = "127.0.0.1:0" };
        struct error err;

        memset(t, 0, sizeof(*t));
        t->loop = loop_new();
        t->server = http_server_new(t->loop, &o, routes, COUNT(routes), NULL, t, &err);
        assert_non_null(t->server);
}

static void close_site(struct site *t)
{
        http_server_free(t->server);
        loop_free(t->loop);
}

#define SMUGGLED "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
#define BYTES(s) s, sizeof(s) - 1

/* clang-format off */
static const struct {
        const char *name;
        const char *bytes;
        size_t n;
} probes[] = {
        { "length and encoding", BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "
                                       "6\r\nTransfer-Encoding: chunked\r\n\r\n"
                                       "0\r\n\r\n" SMUGGLED) },
        { "encoding and length", BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                       "chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n" SMUGGLED) },
        { "two lengths",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
               "Content-Length: 40\r\n\r\nok" SMUGGLED) },
        { "the same length twice",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
               "Content-Length: 2\r\n\r\nok" SMUGGLED) },
        { "signed length",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\nok" SMUGGLED) },
        { "negative length",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -2\r\n\r\nok" SMUGGLED) },
        { "length list",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\nok" SMUGGLED) },
        { "hexadecimal length",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x2\r\n\r\nok" SMUGGLED) },
        { "length with blanks inside",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2 2\r\n\r\nok" SMUGGLED) },
        { "huge length",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\n"
               "Content-Length: 18446744073709551618\r\n\r\nok" SMUGGLED) },
        { "space before the colon",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 2\r\n\r\nok" SMUGGLED) },
        { "tab before the colon", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX\t: 2\r\n\r\n" SMUGGLED) },
        { "bare CR in a value", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n" SMUGGLED) },
        { "bare CR hiding a header",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n" SMUGGLED) },
        { "bare LF after a header", BYTES("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n" SMUGGLED) },
        { "bare LF after the last header", BYTES("GET / HTTP/1.1\r\nHost: a\n\r\n" SMUGGLED) },
        { "bare LF after the request line", BYTES("GET / HTTP/1.1\nHost: a\r\n\r\n" SMUGGLED) },
        { "bare LF at the end of the head", BYTES("GET / HTTP/1.1\r\nHost: a\r\n\n" SMUGGLED) },
        { "folded encoding",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n"
               "0\r\n\r\n" SMUGGLED) },
        { "folded by a tab",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n" SMUGGLED) },
        { "folded last header", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n" SMUGGLED) },
        { "folded middle header",
         BYTES("GET / HTTP/1.1\r\nX: a\r\n b\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "folded into nothing", BYTES("GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n" SMUGGLED) },
        { "folded twice",
         BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n c\r\nY: d\r\n\r\n" SMUGGLED)},
        { "first header folded onto the request line",
         BYTES("GET / HTTP/1.1\r\n X: a\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "encoding named by a fold",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Enc: chunked\r\n oding\r\n\r\n"
               "0\r\n\r\n" SMUGGLED) },
        { "chunk size 0x2", BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                  "chunked\r\n\r\n0x2\r\nok\r\n0\r\n\r\n" SMUGGLED) },
        { "signed chunk size", BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                     "chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n" SMUGGLED) },
        { "chunk longer than said", BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                          "chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n" SMUGGLED) },
        { "no Host", BYTES("GET / HTTP/1.1\r\nX: a\r\n\r\n" SMUGGLED) },
        { "no headers at all", BYTES("GET / HTTP/1.1\r\n\r\n" SMUGGLED) },
        { "two Hosts", BYTES("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" SMUGGLED) },
        { "NUL in a value",
         BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\nY: c\r\n\r\n" SMUGGLED) },
        { "NUL in the last value", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n" SMUGGLED) },
        { "NUL at the end of a value",
         BYTES("GET / HTTP/1.1\r\nHost: a\0\r\nX: a\r\n\r\n" SMUGGLED) },
        { "NUL at the end of the last value",
         BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: a\0\r\n\r\n" SMUGGLED) },
        { "NUL instead of a value", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX:\0b\r\n\r\n" SMUGGLED) },
        { "NUL in a name", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX\0Y: b\r\n\r\n" SMUGGLED) },
        { "line beginning with NUL",
         BYTES("GET / HTTP/1.1\r\nHost: a\r\n\0X: b\r\n\r\n" SMUGGLED) },
        { "line of one NUL", BYTES("GET / HTTP/1.1\r\nHost: a\r\n\0\r\n\r\n" SMUGGLED) },
        { "NUL in the target", BYTES("GET /\0a HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "NUL in the query", BYTES("GET /?a\0b HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "NUL and a second version",
         BYTES("GET /\0HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "NUL in the method", BYTES("GET\0X / HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "control byte in the target", BYTES("GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "bare CR in the target", BYTES("GET /\r HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "tab in the request line", BYTES("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "two blanks in the request line", BYTES("GET  / HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "two blanks before the version", BYTES("GET /  HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "blank after the version", BYTES("GET / HTTP/1.1 \r\nHost: a\r\n\r\n" SMUGGLED) },
        { "absolute target", BYTES("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "asterisk target", BYTES("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "authority target", BYTES("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "fragment in the target", BYTES("GET /#a HTTP/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "HTTP/0.9", BYTES("GET /\r\n" SMUGGLED) },
        { "HTTP/1.2", BYTES("GET / HTTP/1.2\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "HTTP/2.0", BYTES("GET / HTTP/2.0\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "HTTP/1.10", BYTES("GET / HTTP/1.10\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "http/1.1 in small letters", BYTES("GET / http/1.1\r\nHost: a\r\n\r\n" SMUGGLED) },
        { "unknown encoding",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"
               "0\r\n\r\n" SMUGGLED) },
        { "two encodings", BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                 "chunked\r\nTransfer-Encoding: identity\r\n\r\n"
                                 "0\r\n\r\n" SMUGGLED) },
        { "encoding with a blank at its end",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked \r\n\r\n"
               "0\r\n\r\n" SMUGGLED) },
        { "encoding with a tab at its end",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\t\r\n\r\n"
               "0\r\n\r\n" SMUGGLED) },
        { "expectation with a blank at its end",
         BYTES("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue \r\n"
               "Content-Length: 2\r\n\r\n") },
        { "encoding with a vertical tab", BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                                "\x0b"
                                                "chunked\r\n\r\n0\r\n\r\n" SMUGGLED) },
        { "encoding in HTTP/1.0",
         BYTES("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
               "0\r\n\r\n" SMUGGLED) },
        { "header without a colon",
         BYTES("GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n" SMUGGLED) },
        { "header without a name", BYTES("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n" SMUGGLED) },
};
/* clang-format on */

/*
 * Refused with a 4xx (505 for a foreign version) or closed; the bytes after it are never read as a
 * request.
 */
static void every_probe_is_refused_and_ends_the_connection(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t);
        for (size_t i = 0; i < COUNT(probes); i++) {
                int status;

                http_raw_open(&c, t.loop, http_server_address(t.server));
                http_raw_send(&c, probes[i].bytes, probes[i].n);
                if (!http_raw_wait_closed(&c))
                        fail_msg("%s: the connection stays open", probes[i].name);
                status = http_raw_status(&c, 0);
                if (t.asked > 0 || http_raw_answers(&c) > 1 ||
                    (status != 0 && (status < 400 || status > 499) && status != 505))
                        fail_msg("%s: answered %d, %u requests accepted", probes[i].name, status,
                                 t.asked);
                http_raw_close(&c);
        }
        close_site(&t);
}

/* The same, a byte at a time: the library's buffer grows and moves differently then. */
static void every_probe_is_refused_in_small_pieces_too(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t);
        for (size_t i = 0; i < COUNT(probes); i++) {
                http_raw_open(&c, t.loop, http_server_address(t.server));
                for (size_t at = 0; at < probes[i].n && http_raw_send(&c, probes[i].bytes + at, 1);
                     at++)
                        loop_step(t.loop, false);
                if (!http_raw_wait_closed(&c) || t.asked > 0)
                        fail_msg("%s: accepted", probes[i].name);
                http_raw_close(&c);
        }
        close_site(&t);
}

static void nothing_after_a_chunked_body_is_read(void **state)
{
        static const char said[] =
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
                "\0\r\n" SMUGGLED;
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t);
        http_raw_open(&c, t.loop, http_server_address(t.server));
        http_raw_send(&c, said, sizeof(said) - 1);
        assert_true(http_raw_wait_closed(&c));
        assert_true(t.asked <= 1);
        http_raw_close(&c);
        close_site(&t);
}

static void ordinary_requests_pass(void **state)
{
        /* clang-format off */
        static const char *const fine[] = {
                "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET / HTTP/1.0\r\n\r\n",
                "GET / HTTP/1.0\r\nX: y\r\n\r\n",
                "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET /?a=b&c HTTP/1.1\r\nhost:a\r\nX:\r\nY:  \t b \t\r\nCookie: a=b; c=d; e\r\n"
                "\r\n",
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok",
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
                "X: y\r\n\r\n",
        };
        /* clang-format on */
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t);
        for (size_t i = 0; i < 2 * COUNT(fine); i++) {
                http_raw_open(&c, t.loop, http_server_address(t.server));
                if (i % 2 == 0)
                        http_raw_say(&c, fine[i / 2]);
                else
                        for (const char *p = fine[i / 2]; *p; p++)
                                http_raw_send(&c, p, 1);
                if (!http_raw_wait_answers(&c, 1) || http_raw_status(&c, 0) != 200)
                        fail_msg("refused: %s\n%s", fine[i / 2], c.in.data);
                http_raw_close(&c);
        }
        close_site(&t);
}

/*
 * The place of the headers in the library's buffer must be right for every size and on a kept
 * connection.
 */
static void heads_of_every_size_pass_until_they_are_too_large(void **state)
{
        struct site t;
        struct http_raw c;
        struct buf b;
        size_t answers = 0;

        (void)state;
        open_site(&t);
        buf_init(&b, 0);
        http_raw_open(&c, t.loop, http_server_address(t.server));
        for (size_t n = 1; n < 3500; n += 47) {
                buf_clear(&b);
                buf_addstr(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
                for (size_t i = 0; i < n / 200; i++)
                        buf_addf(&b, "X-%zu: %zu\r\n", i, n);
                buf_addstr(&b, "X: ");
                for (size_t i = 0; i < n; i++)
                        buf_addch(&b, 'x');
                buf_addstr(&b, "\r\n\r\n");
                http_raw_send(&c, b.data, b.len);
                assert_true(http_raw_wait_answers(&c, ++answers));
                assert_int_equal(http_raw_status(&c, answers - 1), 200);
        }
        http_raw_close(&c);
        buf_release(&b);
        close_site(&t);
}

static void a_megabyte_of_header_is_431(void **state)
{
        struct site t;
        struct http_raw c;
        size_t n = 1024 * 1024;
        char *x = mem_alloc(n);

        (void)state;
        memset(x, 'x', n);
        open_site(&t);
        http_raw_open(&c, t.loop, http_server_address(t.server));
        http_raw_say(&c, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
        http_raw_send(&c, x, n);
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_status(&c, 0), 431);
        http_raw_close(&c);
        http_raw_open(&c, t.loop, http_server_address(t.server));
        http_raw_say(&c, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (int i = 0; i < 101; i++)
                http_raw_say(&c, "X: y\r\n");
        http_raw_say(&c, "\r\n");
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_status(&c, 0), 431);
        assert_int_equal(t.asked, 0);
        http_raw_close(&c);
        close_site(&t);
        free(x);
}

/* The library answers this itself, before any of our code sees the request. */
static void a_megabyte_of_url_ends_the_connection(void **state)
{
        static const char *const heads[] = { "GET /", "GET /?" };
        struct site t;
        size_t n = 1024 * 1024;
        char *x = mem_alloc(n);

        (void)state;
        memset(x, 'x', n);
        open_site(&t);
        for (size_t i = 0; i < COUNT(heads); i++) {
                struct http_raw c;

                http_raw_open(&c, t.loop, http_server_address(t.server));
                http_raw_say(&c, heads[i]);
                http_raw_send(&c, x, n);
                http_raw_say(&c, " HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
                assert_true(http_raw_wait_closed(&c));
                assert_int_equal(http_raw_status(&c, 0), 414);
                assert_int_equal(http_raw_answers(&c), 1);
                http_raw_close(&c);
        }
        assert_int_equal(t.asked, 0);
        assert_int_equal(http_server_connections(t.server), 0);
        close_site(&t);
        free(x);
}

static void three_pipelined_posts_get_three_answers(void **state)
{
        static const char post[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok";
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t);
        http_raw_open(&c, t.loop, http_server_address(t.server));
        for (int i = 0; i < 2; i++)
                http_raw_say(&c, post);
        http_raw_say(
                &c,
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_answers(&c), 3);
        assert_int_equal(t.asked, 3);
        http_raw_close(&c);
        close_site(&t);
}

/*
 * The library's query parser can loop after a NUL, where we cannot hide the query from it. The
 * request must cost one connection, not the server.
 */
static void a_flood_of_parameters_does_not_affect_others(void **state)
{
        struct site t;
        struct http_raw bad, good;
        struct buf b;

        (void)state;
        open_site(&t);
        buf_init(&b, 0);
        buf_add(&b, "GET /\0x?", 8);
        for (int i = 0; i < 3000; i++)
                buf_addstr(&b, "&a");
        buf_addstr(&b, " HTTP/1.1\r\nHost: a\r\n\r\n");
        http_raw_open(&bad, t.loop, http_server_address(t.server));
        http_raw_send(&bad, b.data, b.len);
        http_raw_open(&good, t.loop, http_server_address(t.server));
        http_raw_say(&good, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(http_raw_wait_answers(&good, 1));
        assert_int_equal(t.asked, 1);
        http_raw_close(&bad);
        http_raw_close(&good);
        buf_release(&b);
        close_site(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ambiguous_requests_are_recognised),
                cmocka_unit_test(ordinary_requests_pass),
                cmocka_unit_test(heads_of_every_size_pass_until_they_are_too_large),
                cmocka_unit_test(every_probe_is_refused_and_ends_the_connection),
                cmocka_unit_test(every_probe_is_refused_in_small_pieces_too),
                cmocka_unit_test(nothing_after_a_chunked_body_is_read),
                cmocka_unit_test(a_megabyte_of_header_is_431),
                cmocka_unit_test(a_megabyte_of_url_ends_the_connection),
                cmocka_unit_test(three_pipelined_posts_get_three_answers),
                cmocka_unit_test(a_flood_of_parameters_does_not_affect_others),
        };

        return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
