/*
 * agent_rig: a registry of agents and the service that one of them calls.
 *
 * setup and teardown are for cmocka. A test makes the service with fake_server_new; teardown frees
 * it.
 */
#ifndef TESTS_AGENT_AGENT_RIG_H
#define TESTS_AGENT_AGENT_RIG_H

#include "../lib/fake_server.h"
#include "fake_turn.h"

struct agent_rig {
        struct loop *loop;
        struct http_client *http;
        struct agents *agents;
        struct fake_server *server; /* NULL: none yet */
};

static inline int setup(void **state)
{
        struct agent_rig *b = mem_zalloc(sizeof(*b));
        struct error err = { 0 };

        b->loop = loop_new();
        b->http = http_client_new(b->loop, &(struct http_client_options){ 0 }, &err);
        assert_non_null(b->http);
        b->agents = agents_new(b->loop, b->http, "/nonexistent");
        *state = b;
        return 0;
}

static inline int teardown(void **state)
{
        struct agent_rig *b = *state;

        agents_free(b->agents);
        http_client_free(b->http);
        if (b->server)
                fake_server_free(b->server);
        loop_free(b->loop);
        free(b);
        return 0;
}

#endif
