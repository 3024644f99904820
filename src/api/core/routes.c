/* The resources. A new one is a file with a table and a line here. */
#include "api/core/routes.h"

#include <string.h>

extern const struct route a2a_cards_routes[], a2a_routes[], access_routes[], agent_chat_routes[],
        agents_routes[], approvals_routes[], backup_routes[], calendar_routes[], channels_routes[],
        chats_routes[], completions_routes[], dead_letters_routes[], deliveries_routes[],
        events_routes[], handover_routes[], health_routes[], instances_routes[], keys_routes[],
        messages_routes[], metrics_routes[], models_routes[], openapi_routes[], pairing_routes[],
        persons_routes[], route_test_routes[], rules_routes[], schedules_routes[], send_routes[],
        session_commands_routes[], session_events_routes[], session_link_routes[],
        sessions_routes[], status_routes[], trigger_logs_routes[], turn_replies_routes[],
        turns_routes[], why_routes[];

/* In the order of the documentation. */
static const struct route *const tables[] = {
        health_routes,
        metrics_routes,
        openapi_routes,
        status_routes,
        messages_routes,
        send_routes,
        models_routes,
        completions_routes,
        agent_chat_routes,
        a2a_routes,
        a2a_cards_routes,
        events_routes,
        deliveries_routes,
        dead_letters_routes,
        turns_routes,
        turn_replies_routes,
        approvals_routes,
        trigger_logs_routes,
        channels_routes,
        route_test_routes,
        rules_routes,
        schedules_routes,
        calendar_routes,
        sessions_routes,
        session_events_routes,
        session_commands_routes,
        session_link_routes,
        chats_routes,
        persons_routes,
        access_routes,
        pairing_routes,
        handover_routes,
        instances_routes,
        agents_routes,
        why_routes,
        keys_routes,
        backup_routes,
        NULL,
};

const struct route *routes_next(const struct route *r)
{
        if (!r)
                return tables[0];
        if (r[1].method)
                return r + 1;
        for (size_t i = 0; tables[i]; i++) {
                const struct route *last = tables[i];

                while (last[1].method)
                        last++;
                if (last == r)
                        return tables[i + 1];
        }
        return NULL;
}

size_t routes_count(void)
{
        size_t n = 0;

        ROUTES_FOREACH(r)
                n++;
        return n;
}

struct slice route_resource(const struct route *r)
{
        static const char *const roots[] = { "/api/v2/", "/api/", "/v1/", "/" };
        const char *p = r->path;

        if (r->resource)
                return (struct slice){ r->resource, strlen(r->resource) };
        for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
                if (strncmp(p, roots[i], strlen(roots[i])) == 0) {
                        p += strlen(roots[i]);
                        break;
                }
        }
        return (struct slice){ p, strcspn(p, "/") };
}

const char *route_scope_name(enum scope s)
{
        static const char *const names[] = { [SCOPE_NONE] = "none",
                                             [SCOPE_READ] = "read",
                                             [SCOPE_WRITE] = "write",
                                             [SCOPE_ADMIN] = "admin" };

        return names[s];
}
