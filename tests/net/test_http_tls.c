#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/http_raw_client.h"
#include "../lib/scratch.h"
#include "base/mem.h"
#include "net/http_server.h"

struct site {
        struct loop *loop;
        struct http_server *server;
        struct http_exchange *waiting;
        char *dir, *cert, *key;
};

static void run_hello(struct http_exchange *x)
{
        http_answer(x, 200, "text/plain", "hello", 5);
}

static void run_later(struct http_exchange *x)
{
        struct site *t = http_server_arg(x);

        t->waiting = x;
}

static const struct http_route routes[] = {
        { "GET", "/hello", run_hello, 0, NULL },
        { "POST", "/later", run_later, 10, NULL },
};

static void write_pem(const char *path, EVP_PKEY *key, X509 *cert)
{
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        if (cert)
                assert_true(PEM_write_X509(f, cert));
        else
                assert_true(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL));
        fclose(f);
}

/* Takes the key. */
static void make_certificate(struct site *t, EVP_PKEY *key)
{
        X509 *cert = X509_new();
        X509_NAME *name = X509_get_subject_name(cert);

        ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
        X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
        X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
        X509_set_pubkey(cert, key);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1,
                                   -1, 0);
        X509_set_issuer_name(cert, name);
        assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
        write_pem(t->cert, NULL, cert);
        write_pem(t->key, key, NULL);
        X509_free(cert);
        EVP_PKEY_free(key);
}

static void open_site_with(struct site *t, EVP_PKEY *key)
{
        struct http_server_options o = { .listen = "127.0.0.1:0",
                                         .idle_seconds = 1,
                                         .request_seconds = 2 };
        struct error err;

        memset(t, 0, sizeof(*t));
        t->dir = scratch_new();
        t->cert = scratch_path(t->dir, "cert.pem");
        t->key = scratch_path(t->dir, "key.pem");
        make_certificate(t, key);
        t->loop = loop_new();
        o.tls_cert_file = t->cert;
        o.tls_key_file = t->key;
        t->server = http_server_new(t->loop, &o, routes, COUNT(routes), NULL, t, &err);
        assert_non_null(t->server);
}

static void open_site(struct site *t)
{
        open_site_with(t, EVP_EC_gen("P-256"));
}

static void close_site(struct site *t)
{
        http_server_free(t->server);
        loop_free(t->loop);
        free(t->cert);
        free(t->key);
        scratch_free(t->dir);
}

/* A TLS client over a raw one. */
struct talk {
        struct http_raw raw;
        SSL_CTX *ctx;
        SSL *ssl;
};

/* Lets the server run and says whether it is worth trying again. */
static bool wait_more(struct talk *k, int rc)
{
        int why = SSL_get_error(k->ssl, rc);
        struct pollfd p = { .fd = k->raw.fd, .events = POLLIN };

        loop_step(k->raw.loop, false);
        poll(&p, 1, 1);
        return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

/* False: the server refuses the handshake. Ciphers NULL: any version, any cipher; else TLS 1.2. */
static bool talk_try(struct talk *k, struct site *t, const char *ciphers)
{
        int rc = 0;

        http_raw_open(&k->raw, t->loop, http_server_address(t->server));
        k->ctx = SSL_CTX_new(TLS_client_method());
        SSL_CTX_load_verify_file(k->ctx, t->cert);
        SSL_CTX_set_verify(k->ctx, SSL_VERIFY_PEER, NULL);
        if (ciphers) {
                SSL_CTX_set_max_proto_version(k->ctx, TLS1_2_VERSION);
                assert_int_equal(SSL_CTX_set_cipher_list(k->ctx, ciphers), 1);
        }
        k->ssl = SSL_new(k->ctx);
        SSL_set_fd(k->ssl, k->raw.fd);
        for (int i = 0; i < 5000 && (rc = SSL_connect(k->ssl)) != 1; i++)
                if (!wait_more(k, rc))
                        return false;
        return rc == 1;
}

static void talk_open(struct talk *k, struct site *t)
{
        assert_true(talk_try(k, t, NULL));
}

static void talk_close(struct talk *k)
{
        SSL_free(k->ssl);
        SSL_CTX_free(k->ctx);
        http_raw_close(&k->raw);
}

static void talk_say(struct talk *k, const char *text)
{
        int rc;

        for (int i = 0; i < 5000 && (rc = SSL_write(k->ssl, text, (int)strlen(text))) <= 0; i++)
                assert_true(wait_more(k, rc));
}

/* Reads until the text has come; false when the server closed before. */
static bool talk_wait_for(struct talk *k, const char *text)
{
        char bytes[4096];

        for (int i = 0; i < 10000 && !strstr(k->raw.in.data, text); i++) {
                int rc = SSL_read(k->ssl, bytes, sizeof(bytes));

                if (rc > 0)
                        buf_add(&k->raw.in, bytes, (size_t)rc);
                else if (!wait_more(k, rc))
                        return false;
        }
        return strstr(k->raw.in.data, text) != NULL;
}

static bool is_waiting(void *arg)
{
        struct site *t = arg;

        return t->waiting != NULL;
}

static void requests_are_answered_over_tls_at_once_and_later(void **state)
{
        struct site t;
        struct talk k;

        (void)state;
        open_site(&t);
        talk_open(&k, &t);
        talk_say(&k, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(talk_wait_for(&k, "hello"));
        talk_say(&k, "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        assert_true(http_raw_until(t.loop, is_waiting, &t));
        http_answer(t.waiting, 200, "text/plain", "at last", 7);
        assert_true(talk_wait_for(&k, "at last"));
        talk_close(&k);
        close_site(&t);
}

static void pipelined_requests_in_one_record_are_all_answered(void **state)
{
        struct site t;
        struct talk k;

        (void)state;
        open_site(&t);
        talk_open(&k, &t);
        talk_say(&k, "GET /hello HTTP/1.1\r\n"
                     "Host: a\r\n"
                     "\r\n"
                     "GET /hello HTTP/1.1\r\n"
                     "Host: a\r\n"
                     "\r\n"
                     "GET /none HTTP/1.1\r\n"
                     "Host: a\r\n"
                     "\r\n");
        assert_true(talk_wait_for(&k, "there is nothing at"));
        assert_int_equal(http_raw_answers(&k.raw), 3);
        talk_close(&k);
        close_site(&t);
}

static void a_body_over_the_limit_ends_the_connection(void **state)
{
        struct site t;
        struct talk k;

        (void)state;
        open_site(&t);
        talk_open(&k, &t);
        talk_say(&k, "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nhi");
        assert_true(talk_wait_for(&k, "HTTP/1.1 413 "));
        talk_close(&k);
        talk_open(&k, &t);
        talk_say(&k, "POST /later HTTP/1.1\r\n"
                     "Host: a\r\n"
                     "Transfer-Encoding: chunked\r\n"
                     "\r\n"
                     "ff\r\n"
                     "0123456789abcdef");
        assert_false(talk_wait_for(&k, "never"));
        assert_null(t.waiting);
        talk_close(&k);
        close_site(&t);
}

static void a_client_without_tls_is_disconnected(void **state)
{
        struct site t;
        struct http_raw c;

        (void)state;
        open_site(&t);
        http_raw_open(&c, t.loop, http_server_address(t.server));
        http_raw_say(&c, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(http_raw_wait_closed(&c));
        assert_int_equal(http_raw_answers(&c), 0);
        http_raw_close(&c);
        http_raw_open(&c, t.loop, http_server_address(t.server));
        assert_true(http_raw_wait_closed(&c)); /* a handshake that never comes */
        http_raw_close(&c);
        close_site(&t);
}

static void an_invalid_key_is_an_error(void **state)
{
        struct http_server_options o = { .listen = "127.0.0.1:0" };
        struct site t;
        struct error err;

        (void)state;
        open_site(&t);
        o.tls_cert_file = t.cert;
        o.tls_key_file = t.cert;
        assert_null(http_server_new(t.loop, &o, routes, COUNT(routes), NULL, NULL, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        close_site(&t);
}

/* Who records connections and later gets the server's key must not be able to read them. */
static void only_forward_secret_ciphers_are_accepted(void **state)
{
        static const struct {
                const char *ciphers;
                bool ok;
        } rows[] = {
                { "ECDHE-RSA-AES128-GCM-SHA256", true },
                { "ECDHE-RSA-CHACHA20-POLY1305", true },
                { "kRSA", false },
                { "AES256-GCM-SHA384:AES128-SHA", false },
                { "PSK", false },
        };
        struct site t;
        struct talk k;

        (void)state;
        open_site_with(&t, EVP_RSA_gen(2048));
        for (size_t i = 0; i < COUNT(rows); i++) {
                if (talk_try(&k, &t, rows[i].ciphers) != rows[i].ok)
                        fail_msg("%s: %s", rows[i].ciphers, rows[i].ok ? "refused" : "accepted");
                talk_close(&k);
        }
        close_site(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_are_answered_over_tls_at_once_and_later),
                cmocka_unit_test(pipelined_requests_in_one_record_are_all_answered),
                cmocka_unit_test(a_body_over_the_limit_ends_the_connection),
                cmocka_unit_test(a_client_without_tls_is_disconnected),
                cmocka_unit_test(an_invalid_key_is_an_error),
                cmocka_unit_test(only_forward_secret_ciphers_are_accepted),
        };

        return cmocka_run_group_tests_name("http over tls", tests, NULL, NULL);
}
