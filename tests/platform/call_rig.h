/*
 * call_rig: calls of a platform's web API against a scripted server. Each call is named by a
 * letter.
 *
 * Include it in one file of a test program, which adds how to open and close the API.
 */
#ifndef TESTS_CALL_RIG_H
#define TESTS_CALL_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/fake_server.h"
#include "base/json.h"
#include "base/mem.h"
#include "net/http_client.h"

struct ask {
        struct rig *rig;
        char letter;
};

/* What the answers of all platforms have. */
struct call_answer {
        bool ok;
        int status;
        enum http_reach reach;
        enum error_kind kind;
        int64_t retry_after_ms;
        char why[300];
};

struct rig {
        struct loop *loop;
        struct http_client *http;
        struct fake_server *server;
        struct fake_answer script[40];
        char *bytes[40];
        size_t count;
        unsigned answers, unauthorized;
        struct call_answer last;
        struct ask asks[128]; /* by letter */
        char order[40];       /* letters of the answered calls */
};

static inline void says(struct rig *g, int status, const char *headers, const char *body)
{
        g->bytes[g->count] = mem_printf("HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n%s", status,
                                        strlen(body), headers, body);
        g->script[g->count] = (struct fake_answer){ .bytes = g->bytes[g->count] };
        g->count++;
}

static inline struct rig *call_rig_new(void)
{
        struct rig *g = mem_zalloc(sizeof(*g));

        g->loop = loop_new();
        g->http = http_client_new(g->loop, &(struct http_client_options){ 0 }, NULL);
        return g;
}

/* Free the API before. */
static inline void call_rig_free(struct rig *g)
{
        http_client_free(g->http);
        if (g->server)
                fake_server_free(g->server);
        loop_free(g->loop);
        for (size_t i = 0; i < g->count; i++)
                free(g->bytes[i]);
        free(g);
}

/* The argument of a call's answer function. */
static inline struct ask *named(struct rig *g, char letter)
{
        struct ask *a = &g->asks[(unsigned char)letter];

        a->rig = g;
        a->letter = letter;
        return a;
}

/* For answer functions: notes the answer and whose it is. */
static inline void answered(const struct ask *ask, const struct call_answer *answer,
                            const char *why)
{
        struct rig *g = ask->rig;

        if (g->answers < sizeof(g->order) - 1)
                g->order[g->answers] = ask->letter;
        g->answers++;
        g->last = *answer;
        snprintf(g->last.why, sizeof(g->last.why), "%s", why);
}

static inline void until_answers(struct rig *g, unsigned n)
{
        for (int i = 0; i < 100000 && g->answers < n; i++)
                loop_step(g->loop, true);
        assert_int_equal(g->answers, n);
}

static inline bool asked_for(struct rig *g, unsigned i, const char *line)
{
        const char *request = fake_server_request(g->server, i);

        return request && strstr(request, line);
}

#endif
