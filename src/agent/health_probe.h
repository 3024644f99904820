/*
 * probe: asking an agent's service how it is, over HTTP.
 *
 * What the health checks of all kinds share. A kind keeps its open questions in a struct probes, so
 * that closing the agent forgets them.
 */
#ifndef AGENT_HEALTH_PROBE_H
#define AGENT_HEALTH_PROBE_H

#include <sys/queue.h>

#include "agent/agent.h"

#define PROBE_MS 10000

LIST_HEAD(probes, probe);

/*
 * Asks, and tells the answer by agent_health_told. Healthy is a status below 300, or one of `also`
 * (ended by 0; NULL: none). request->total_ms 0: PROBE_MS.
 */
void probe_start(struct probes *all, struct agent *a, void *token,
                 const struct http_request *request, const int *also);
/* For the close hook. */
void probes_drop(struct probes *all);

#endif
