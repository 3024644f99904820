/*
 * metrics: counts answers per route, for /metrics.
 */
#ifndef API_RESOURCES_METRICS_H
#define API_RESOURCES_METRICS_H

#include <stdint.h>

#include "net/http_server.h"

#define METRICS_STATUSES 12 /* different statuses of one route that are counted */

struct route_metrics {
        struct {
                int status; /* 0: free */
                uint64_t count;
        } answers[METRICS_STATUSES];
        uint64_t count;
        uint64_t micros;
};

/* The server's answered hook. route NULL: none matched. */
void metrics_answered(void *api, const struct http_route *route, int status, int64_t micros);

#endif
