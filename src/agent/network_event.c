/*
 * network_event: what programs in a sandbox asked of the network, in the journal.
 */
#include "agent/agent.h"
#include "agent/sandbox/sandbox.h"
#include "base/jsonw.h"

void agent_journal_request(void *agent, const struct sandbox_request *q)
{
        struct agent *a = agent;
        struct buf payload;

        buf_init(&payload, 0);
        jsonw_open(&payload, '{');
        jsonw_str(&payload, "agent", a->name);
        jsonw_int(&payload, "conversation", q->conversation);
        jsonw_str(&payload, "host", q->host);
        jsonw_int(&payload, "port", q->port);
        jsonw_bool(&payload, "allowed", q->allowed);
        jsonw_opt(&payload, "why", q->why);
        jsonw_int(&payload, "sentBytes", (int64_t)q->sent);
        jsonw_int(&payload, "receivedBytes", (int64_t)q->received);
        jsonw_close(&payload, '}');
        agent_journal(a, "agent.network_request", &payload);
}
