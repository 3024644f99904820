/* Liveness and readiness. */
#include <string.h>

#include "api/core/request.h"
#include "api/resources/instances.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "bus/bus.h"

static void show_alive(struct http_exchange *x)
{
        static const char body[] = "{\"data\":{\"status\":\"ok\"}}";

        http_answer(x, 200, "application/json", body, sizeof(body) - 1);
}

struct readiness {
        const struct road *road;
        struct buf json; /* the adapters */
        struct buf why;  /* which of them are down */
        int64_t now_ms;
        unsigned bots, down; /* enabled adapters of chat platforms */
        bool explained;      /* no adapter is still connecting */
        bool degraded;
};

static void check_adapter(void *arg, struct adapter *a)
{
        struct readiness *r = arg;
        struct instance_health h;

        instance_health(r->road, a, r->now_ms, &h);
        r->explained = r->explained && h.explained;
        r->degraded = r->degraded || (a->state != ADAPTER_OFF && strcmp(h.state, "connected") != 0);
        if (!a->ops->trusted && a->state != ADAPTER_OFF) {
                r->bots++;
                r->down += h.down;
                if (h.down)
                        buf_addf(&r->why, "%s%s: %s", r->why.len > 0 ? "; " : "", a->name, h.why);
        }
        jsonw_open_member(&r->json, a->name, '{');
        jsonw_str(&r->json, "state", h.state);
        jsonw_str(&r->json, "why", h.why[0] ? h.why : NULL);
        jsonw_close(&r->json, '}');
}

/* Reasons may name platforms and hosts: only for this machine and unrestricted keys. */
static bool may_see_reasons(struct http_exchange *x)
{
        const struct auth *a = &api_of(x)->auth;
        struct key *k = NULL;

        if (request_is_local(x))
                return true;
        return auth_check(a, http_header(x, "Authorization"), http_header(x, "x-api-key"), &k) ==
                       AUTH_OK &&
               !k->adapters;
}

static void show_ready(struct http_exchange *x)
{
        struct api *a = api_of(x);
        struct readiness r = { .road = a->env.road, .now_ms = clock_wall_ms(), .explained = true };
        struct store_health store;
        const char *why = NULL;
        struct buf data;
        bool ready;

        store_health(a->env.store, &store);
        buf_init(&r.json, 0);
        buf_init(&r.why, 0);
        jsonw_open(&r.json, '{');
        adapters_each(a->env.adapters, check_adapter, &r);
        jsonw_close(&r.json, '}');
        ready = r.explained && store.ok && bus_is_up(a->env.bus, &why) && !a->closing &&
                (r.bots == 0 || r.down < r.bots);
        if (!store.ok)
                why = store.why;
        else if (r.bots > 0 && r.down == r.bots)
                why = r.why.data;
        else if (!r.explained)
                why = "adapters are still connecting";
        else if (a->closing)
                why = "the daemon is stopping";
        buf_init(&data, 0);
        jsonw_open(&data, '{');
        jsonw_bool(&data, "ready", ready);
        jsonw_str(&data, "status", !ready ? "not ready" : r.degraded ? "degraded" : "healthy");
        if (may_see_reasons(x)) {
                jsonw_str(&data, "why", ready ? NULL : why);
                jsonw_open_member(&data, "store", '{');
                jsonw_str(&data, "driver", store.driver);
                jsonw_str(&data, "state", store.ok ? "ok" : "error");
                jsonw_str(&data, "why", store.why[0] ? store.why : NULL);
                jsonw_close(&data, '}');
                jsonw_raw(&data, "adapters", r.json.data);
        }
        jsonw_close(&data, '}');
        buf_release(&r.json);
        buf_release(&r.why);
        reply_data(x, ready ? 200 : 503, &data);
}

const struct route health_routes[] = {
        { "GET", "/healthz", SCOPE_NONE, show_alive, REACH_SHARED,
          .summary = "Is the process alive?", .status = 200, .answer = "It is.",
          .example_answer = ROUTE_JSON({ "data" : { "status" : "ok" } }) },
        { "GET", "/readyz", SCOPE_NONE, show_ready, REACH_SHARED,
          .summary = "Does the store work, is no adapter still connecting for the first time, and "
                     "is at least one of the bots (adapters of chat platforms, if there are any) "
                     "not down? Down is one that is refused, such as by a wrong token, or not "
                     "connected for five minutes.",
          .status = 200,
          .answer = "Ready; 503 with the same body when not. `status` is `healthy`, `degraded` (an "
                    "enabled adapter does not work as it should) or `not ready`. Reasons are shown "
                    "to unrestricted keys, and to this machine while no other can connect, neither "
                    "directly nor through a proxy.",
          .example_answer = ROUTE_JSON({
                  "data" : {
                          "ready" : true,
                          "status" : "healthy",
                          "why" : null,
                          "store" : { "driver" : "sqlite", "state" : "ok", "why" : null },
                          "adapters" : {}
                  }
          }) },
        ROUTE_END,
};
