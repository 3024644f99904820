#include "fake_tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "patience.h"

struct fake_tls {
        SSL_CTX *ctx;
        int listener, port;
        int behind; /* pass on to this port; 0: answer ourselves */
        size_t connections;
        unsigned served;
        pthread_t thread;
        bool joined;
        char ca_file[40];
};

static void add_extension(X509 *cert, int nid, const char *value)
{
        X509V3_CTX ctx;
        X509_EXTENSION *ext;

        X509V3_set_ctx_nodb(&ctx);
        X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
        ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        assert(ext && X509_add_ext(cert, ext, -1) == 1);
        X509_EXTENSION_free(ext);
}

static X509 *make_certificate(EVP_PKEY *key)
{
        X509 *cert = X509_new();
        X509_NAME *name = X509_get_subject_name(cert);

        X509_set_version(cert, X509_VERSION_3);
        ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
        X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
        X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
        X509_set_pubkey(cert, key);
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1,
                                   0);
        X509_set_issuer_name(cert, name);
        add_extension(cert, NID_basic_constraints, "critical,CA:TRUE");
        add_extension(cert, NID_subject_alt_name, "DNS:localhost");
        assert(X509_sign(cert, key, EVP_sha256()) > 0);
        return cert;
}

static void write_ca_file(struct fake_tls *t, X509 *cert)
{
        FILE *f;
        int fd;

        snprintf(t->ca_file, sizeof(t->ca_file), "/tmp/fake_tls.XXXXXX");
        fd = mkstemp(t->ca_file);
        assert(fd >= 0);
        f = fdopen(fd, "w");
        assert(f && PEM_write_X509(f, cert) == 1);
        fclose(f);
}

static void listen_somewhere(struct fake_tls *t)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        socklen_t n = sizeof(at);

        t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(t->listener, (struct sockaddr *)&at, n) || listen(t->listener, 8) ||
            getsockname(t->listener, (struct sockaddr *)&at, &n))
                abort();
        t->port = ntohs(at.sin_port);
}

static void serve_one(struct fake_tls *t, int fd)
{
        static const char answer[] =
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
        SSL *ssl = SSL_new(t->ctx);
        char request[4096];

        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        SSL_set_fd(ssl, fd);
        if (SSL_accept(ssl) == 1 && SSL_read(ssl, request, sizeof(request)) > 0) {
                t->served++;
                SSL_write(ssl, answer, (int)sizeof(answer) - 1);
                SSL_shutdown(ssl);
        }
        SSL_free(ssl);
}

/* Forwards what is available in one direction; false: the end. */
static bool pass_in(SSL *ssl, int to)
{
        char bytes[4096];
        int n = SSL_read(ssl, bytes, sizeof(bytes));

        return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static bool pass_out(int from, SSL *ssl)
{
        char bytes[4096];
        ssize_t n = recv(from, bytes, sizeof(bytes), 0);

        return n > 0 && SSL_write(ssl, bytes, (int)n) == n;
}

static void relay(SSL *ssl, int client, int server)
{
        struct pollfd p[2] = { { .fd = client, .events = POLLIN },
                               { .fd = server, .events = POLLIN } };
        bool going = true;

        while (going) {
                if (SSL_pending(ssl) == 0 && poll(p, 2, PATIENCE_MS) <= 0)
                        return;
                if (SSL_pending(ssl) > 0 || p[0].revents)
                        going = pass_in(ssl, server);
                if (going && p[1].revents)
                        going = pass_out(server, ssl);
                p[0].revents = p[1].revents = 0;
        }
}

static void serve_before(struct fake_tls *t, int fd)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_addr = { htonl(INADDR_LOOPBACK) },
                                  .sin_port = htons((uint16_t)t->behind) };
        int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        SSL *ssl = SSL_new(t->ctx);

        SSL_set_fd(ssl, fd);
        if (connect(server, (struct sockaddr *)&to, sizeof(to)) == 0 && SSL_accept(ssl) == 1)
                relay(ssl, fd, server);
        SSL_free(ssl);
        close(server);
}

static void *serve(void *arg)
{
        struct fake_tls *t = arg;
        struct pollfd p = { .fd = t->listener, .events = POLLIN };

        for (size_t i = 0; i < t->connections && poll(&p, 1, PATIENCE_MS) == 1; i++) {
                int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);

                if (fd < 0)
                        break;
                if (t->behind)
                        serve_before(t, fd);
                else
                        serve_one(t, fd);
                close(fd);
        }
        return NULL;
}

struct fake_tls *fake_tls_new(size_t connections)
{
        return fake_tls_before(0, connections);
}

struct fake_tls *fake_tls_before(int port, size_t connections)
{
        struct fake_tls *t = mem_zalloc(sizeof(*t));
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *cert = make_certificate(key);

        signal(SIGPIPE, SIG_IGN);
        t->connections = connections;
        t->behind = port;
        t->ctx = SSL_CTX_new(TLS_server_method());
        if (SSL_CTX_use_certificate(t->ctx, cert) != 1 || SSL_CTX_use_PrivateKey(t->ctx, key) != 1)
                abort();
        write_ca_file(t, cert);
        X509_free(cert);
        EVP_PKEY_free(key);
        listen_somewhere(t);
        if (pthread_create(&t->thread, NULL, serve, t))
                abort();
        return t;
}

static void join(struct fake_tls *t)
{
        if (!t->joined)
                pthread_join(t->thread, NULL);
        t->joined = true;
}

void fake_tls_free(struct fake_tls *t)
{
        join(t);
        close(t->listener);
        unlink(t->ca_file);
        SSL_CTX_free(t->ctx);
        free(t);
}

int fake_tls_port(const struct fake_tls *t)
{
        return t->port;
}

const char *fake_tls_ca_file(const struct fake_tls *t)
{
        return t->ca_file;
}

unsigned fake_tls_served(struct fake_tls *t)
{
        join(t);
        return t->served;
}
