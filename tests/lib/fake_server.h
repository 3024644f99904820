/*
 * fake_server: an HTTP server that sends exactly the scripted bytes, valid or not.
 *
 * Runs on the test's loop, on an ephemeral port of 127.0.0.1. Each request, on any connection,
 * gets the next answer of the script; requests after the last one get none.
 */
#ifndef TESTS_FAKE_SERVER_H
#define TESTS_FAKE_SERVER_H

#include <stddef.h>

#include "net/loop.h"

struct fake_server;

/* The connection after the answer. */
enum fake_end { FAKE_KEEP, FAKE_CLOSE, FAKE_RESET };

struct fake_answer {
        /* the answer as it goes over the wire; NULL: none. Must outlive the server. */
        const char *bytes;
        size_t n;     /* 0: strlen(bytes) */
        size_t piece; /* > 0: written in pieces of this size, one in each round of the loop */
        enum fake_end end;
};

struct fake_server *fake_server_new(struct loop *l, const struct fake_answer *script, size_t count);
void fake_server_free(struct fake_server *s);
/* Answers the newest connection now; its request had no answer in the script. */
void fake_server_answer(struct fake_server *s, const struct fake_answer *answer);
int fake_server_port(const struct fake_server *s);
/* "http://127.0.0.1:PORT" and path, yours to free. */
char *fake_server_url(const struct fake_server *s, const char *path);
/* How many connections were accepted, how many are open, how many whole requests came. */
unsigned fake_server_accepted(const struct fake_server *s);
unsigned fake_server_open(const struct fake_server *s);
unsigned fake_server_requests(const struct fake_server *s);
/* The i-th request, head and body; borrowed. NULL when there was none. */
const char *fake_server_request(const struct fake_server *s, unsigned i);

#endif
