/*
 * fake_tls: an HTTPS server with a certificate made for the test.
 *
 * The certificate is self-signed and names only "localhost"; trust it with fake_tls_ca_file. A
 * thread serves a given number of connections, one after the other, and answers each request with
 * "200 hello".
 */
#ifndef TESTS_FAKE_TLS_H
#define TESTS_FAKE_TLS_H

#include <stddef.h>

struct fake_tls;

struct fake_tls *fake_tls_new(size_t connections);
/* The same in front of a server without TLS, on this port of 127.0.0.1: forwards both ways. */
struct fake_tls *fake_tls_before(int port, size_t connections);
/* Waits for the thread, which gives up when no client connects for PATIENCE_MS. */
void fake_tls_free(struct fake_tls *t);
int fake_tls_port(const struct fake_tls *t);
const char *fake_tls_ca_file(const struct fake_tls *t);
/* How many requests were read. Waits for the thread. */
unsigned fake_tls_served(struct fake_tls *t);

#endif
