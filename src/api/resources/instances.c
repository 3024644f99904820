#include "api/resources/instances.h"

#include <stdio.h>

#include "api/core/api_private.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "road/report/row_json.h"

#define LATE_MS 60000 /* a delivery that waits longer says that something is wrong */

static void judge_connected(struct instance_health *h, int64_t now_ms)
{
        const struct adapter_stats *s = &h->stats;

        if (s->oldest_open_ms > 0 && now_ms - s->oldest_open_ms > LATE_MS) {
                h->state = "degraded";
                snprintf(h->why, sizeof(h->why), "a delivery has been waiting for %lld s%s%s",
                         (long long)((now_ms - s->oldest_open_ms) / 1000),
                         s->last_failure[0] ? ": " : "", s->last_failure);
        } else if (s->last_failure_ms > s->last_sent_ms) {
                h->state = "degraded";
                snprintf(h->why, sizeof(h->why), "the last delivery failed: %s", s->last_failure);
        }
}

void instance_health(const struct road *r, const struct adapter *a, int64_t now_ms,
                     struct instance_health *out)
{
        static const char *const states[] = {
                [ADAPTER_OFF] = "disconnected", [ADAPTER_CONNECTING] = "connecting",
                [ADAPTER_UP] = "connected",     [ADAPTER_LOST] = "reconnecting",
                [ADAPTER_STOPPED] = "error",
        };

        *out = (struct instance_health){ .state = states[a->state] };
        road_adapter_stats(r, a->name, &out->stats);
        if (a->state == ADAPTER_UP)
                judge_connected(out, now_ms);
        else
                snprintf(out->why, sizeof(out->why), "%s",
                         a->state == ADAPTER_OFF ? "switched off" : a->why);
        out->said_so = a->state == ADAPTER_UP || out->why[0] != '\0';
}

static const struct {
        unsigned flag;
        const char *name;
} abilities[] = {
        { ADAPTER_JOURNALED, "journaled" },     { ADAPTER_IDEMPOTENT, "idempotent" },
        { ADAPTER_READBACK, "readback" },       { ADAPTER_EDITS, "edits" },
        { ADAPTER_TYPING, "typing" },           { ADAPTER_THREADS, "threads" },
        { ADAPTER_REACTIONS, "reactions" },     { ADAPTER_FILES, "files" },
        { ADAPTER_CHANNEL_HISTORY, "recalls" },
};

struct listing {
        struct api *api;
        const struct key *caller;
        struct buf *json;
        int64_t now_ms;
};

static void write_failure(struct buf *b, const struct adapter_stats *s)
{
        if (s->last_failure_ms == 0) {
                jsonw_null(b, "lastFailure");
                return;
        }
        jsonw_open_member(b, "lastFailure", '{');
        show_time(b, "at", s->last_failure_ms);
        jsonw_str(b, "why", s->last_failure);
        jsonw_close(b, '}');
}

static void write_instance(struct listing *l, struct adapter *a)
{
        unsigned can = adapters_abilities(l->api->env.adapters, a->name);
        struct instance_health h;

        instance_health(l->api->env.road, a, l->now_ms, &h);
        jsonw_open(l->json, '{');
        jsonw_str(l->json, "id", a->name);
        jsonw_str(l->json, "name", a->name);
        jsonw_str(l->json, "channel", a->ops->name);
        jsonw_str(l->json, "state", h.state);
        jsonw_bool(l->json, "isConnected", a->state == ADAPTER_UP);
        jsonw_str(l->json, "profileName", a->profile[0] ? a->profile : NULL);
        jsonw_str(l->json, "ownerIdentifier", a->owner[0] ? a->owner : NULL);
        jsonw_str(l->json, "why", h.why[0] ? h.why : NULL);
        jsonw_str(l->json, "connection", adapter_state_name(a->state));
        show_time(l->json, "since", a->since_ms);
        show_time(l->json, "lastInboundAt", h.stats.last_inbound_ms);
        show_time(l->json, "lastSentAt", h.stats.last_sent_ms);
        show_time(l->json, "oldestUndeliveredAt", h.stats.oldest_open_ms);
        jsonw_int(l->json, "openDeliveries", (int64_t)h.stats.open);
        write_failure(l->json, &h.stats);
        jsonw_open_member(l->json, "abilities", '[');
        for (size_t i = 0; i < COUNT(abilities); i++)
                if (can & abilities[i].flag)
                        jsonw_str(l->json, NULL, abilities[i].name);
        jsonw_close(l->json, ']');
        jsonw_close(l->json, '}');
}

static void list_one(void *arg, struct adapter *a)
{
        struct listing *l = arg;

        if (key_reaches(l->caller, a->name))
                write_instance(l, a);
}

void instances_list(struct http_exchange *x)
{
        struct buf json;
        struct listing l = { api_of(x), caller_of(x), &json, clock_wall_ms() };

        buf_init(&json, 0);
        page_begin(&json);
        adapters_each(l.api->env.adapters, list_one, &l);
        page_end(&json, false, NULL);
        reply_json(x, 200, &json);
}

void instances_show(struct http_exchange *x)
{
        const char *name = http_param(x, "adapter");
        struct adapter *a = adapters_find(api_of(x)->env.adapters, name);
        struct buf data;
        struct listing l = { api_of(x), caller_of(x), &data, clock_wall_ms() };

        if (!a) {
                reply_missing(x, "instance", name);
                return;
        }
        buf_init(&data, 0);
        write_instance(&l, a);
        reply_data(x, 200, &data);
}
