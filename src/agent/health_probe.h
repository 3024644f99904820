/*
 * health_probe: a health check over HTTP, for all kinds of agents.
 *
 * An agent keeps its open probes in a struct health_probes and drops them when it closes.
 */
#ifndef AGENT_HEALTH_PROBE_H
#define AGENT_HEALTH_PROBE_H

#include <sys/queue.h>

#include "agent/agent.h"

#define HEALTH_PROBE_MS 10000

LIST_HEAD(health_probes, health_probe);

/*
 * Sends the request and reports the result by agent_health_report. Healthy is a status below 300 or
 * one of `also` (ended by 0; NULL: none). request->total_ms 0: HEALTH_PROBE_MS.
 */
void health_probe_start(struct health_probes *all, struct agent *a, void *token,
                        const struct http_request *request, const int *also);
void health_probes_drop(struct health_probes *all);

#endif
