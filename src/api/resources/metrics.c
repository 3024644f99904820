#include "api/resources/metrics.h"

#include <stdlib.h>

#include "base/mem.h"

void metrics_init(struct metrics *m, size_t routes)
{
        m->count = routes;
        m->routes = mem_array(routes + 1, sizeof(*m->routes));
}

void metrics_release(struct metrics *m)
{
        free(m->routes);
        m->routes = NULL;
        m->count = 0;
}

void metrics_answered(struct metrics *m, size_t route, int status, int64_t micros)
{
        struct route_metrics *r = &m->routes[route < m->count ? route : m->count];

        r->count++;
        r->micros += micros > 0 ? (uint64_t)micros : 0;
        for (size_t i = 0; i < METRICS_STATUSES; i++) {
                if (r->answers[i].status == 0)
                        r->answers[i].status = status;
                if (r->answers[i].status == status) {
                        r->answers[i].count++;
                        return;
                }
        }
}
