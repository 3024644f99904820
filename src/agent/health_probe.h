/*
 * probe: asking an agent's service how it is, over HTTP.
 *
 * What the health checks of all kinds share. A kind keeps its open questions in a struct
 * health_probes, so that closing the agent forgets them.
 */
#ifndef AGENT_HEALTH_PROBE_H
#define AGENT_HEALTH_PROBE_H

#include <sys/queue.h>

#include "agent/agent.h"

#define HEALTH_PROBE_MS 10000

LIST_HEAD(health_probes, health_probe);

/*
 * Asks, and tells the answer by agent_health_report. Healthy is a status below 300, or one of
 * `also` (ended by 0; NULL: none). request->total_ms 0: HEALTH_PROBE_MS.
 */
void health_probe_start(struct health_probes *all, struct agent *a, void *token,
                        const struct http_request *request, const int *also);
/* For the close hook. */
void health_probes_drop(struct health_probes *all);

#endif
