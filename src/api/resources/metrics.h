/*
 * metrics: what is counted per route, for /metrics.
 */
#ifndef API_RESOURCES_METRICS_H
#define API_RESOURCES_METRICS_H

#include <stddef.h>
#include <stdint.h>

#define METRICS_STATUSES 12 /* different answers of one route that are told apart */

struct route_metrics {
        struct {
                int status; /* 0: free */
                uint64_t count;
        } answers[METRICS_STATUSES];
        uint64_t count;
        uint64_t micros;
};

/* One per route, and one more for requests that matched none. */
struct metrics {
        struct route_metrics *routes;
        size_t count;
};

void metrics_init(struct metrics *m, size_t routes);
void metrics_release(struct metrics *m);
/* route == count: no route matched. */
void metrics_answered(struct metrics *m, size_t route, int status, int64_t micros);

#endif
