/*
 * instances: how an adapter really is. What it says of itself and what the road sees of it,
 * whichever is worse.
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
        char why[240]; /* "" when connected */
        bool said_so;  /* connected, or the reason why not is known: what readiness asks */
        struct adapter_stats stats;
};

void instance_health(const struct road *r, const struct adapter *a, int64_t now_ms,
                     struct instance_health *out);

#endif
