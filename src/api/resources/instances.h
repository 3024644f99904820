/*
 * instances: the health of an adapter (an instance in the REST API): the worse of the adapter's own
 * report and the road's view.
 */
#ifndef API_RESOURCES_INSTANCES_H
#define API_RESOURCES_INSTANCES_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/platform.h"
#include "road/road.h"

struct instance_health {
        /* "connected", "degraded", "connecting", "reconnecting", "error", "disconnected" */
        const char *state;
        char why[240];  /* "" when connected */
        bool explained; /* connected, or the reason why not is known */
        bool down;      /* stopped for good, or not connected for five minutes */
        struct adapter_stats stats;
};

void instance_health(const struct road *r, const struct adapter *a, int64_t now_ms,
                     struct instance_health *out);

#endif
