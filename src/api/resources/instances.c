/* The adapters (instances in the REST API) and their tools. */
#include "api/resources/instances.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/core/page.h"
#include "api/core/request.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "platform/platform_tool.h"
#include "road/report/row_json.h"

#define LATE_MS 60000  /* a delivery waiting longer degrades its adapter */
#define DOWN_MS 300000 /* an adapter not connected for longer is down */

void instance_health(const struct road *r, const struct adapter *a, int64_t now_ms,
                     struct instance_health *h)
{
        static const char *const states[] = {
                [ADAPTER_OFF] = "disconnected", [ADAPTER_CONNECTING] = "connecting",
                [ADAPTER_UP] = "connected",     [ADAPTER_LOST] = "reconnecting",
                [ADAPTER_STOPPED] = "error",
        };
        const struct adapter_stats *s = &h->stats;

        *h = (struct instance_health){ .state = states[a->state] };
        road_adapter_stats(r, a->name, &h->stats);
        if (a->state != ADAPTER_UP) {
                snprintf(h->why, sizeof(h->why), "%s",
                         a->state == ADAPTER_OFF ? "switched off" : a->why);
        } else if (a->trouble[0]) {
                h->state = "degraded";
                snprintf(h->why, sizeof(h->why), "%s", a->trouble);
        } else if (s->oldest_open_ms > 0 && now_ms - s->oldest_open_ms > LATE_MS) {
                h->state = "degraded";
                snprintf(h->why, sizeof(h->why), "a delivery has been waiting for %lld s%s%s",
                         (long long)((now_ms - s->oldest_open_ms) / 1000),
                         s->last_failure[0] ? ": " : "", s->last_failure);
        } else if (s->last_failure_ms > s->last_sent_ms) {
                h->state = "degraded";
                snprintf(h->why, sizeof(h->why), "the last delivery failed: %s", s->last_failure);
        }
        h->explained = a->state == ADAPTER_UP || h->why[0] != '\0';
        h->down = a->state == ADAPTER_STOPPED || (a->down_ms > 0 && now_ms - a->down_ms > DOWN_MS);
}

/* ---- listing ---- */

static void write_instance(struct buf *b, const struct api *api, struct adapter *a)
{
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
        unsigned can = adapters_abilities(api->env.adapters, a->name);
        struct instance_health h;

        instance_health(api->env.road, a, clock_wall_ms(), &h);
        jsonw_open(b, '{');
        jsonw_str(b, "id", a->name);
        jsonw_str(b, "name", a->name);
        jsonw_str(b, "channel", a->ops->name);
        jsonw_str(b, "state", h.state);
        jsonw_bool(b, "isConnected", a->state == ADAPTER_UP);
        jsonw_bool(b, "isDown", h.down);
        jsonw_str(b, "profileName", a->bot_name[0] ? a->bot_name : NULL);
        jsonw_str(b, "ownerIdentifier", a->bot_id[0] ? a->bot_id : NULL);
        jsonw_str(b, "why", h.why[0] ? h.why : NULL);
        jsonw_str(b, "connection", adapter_state_name(a->state));
        row_json_time(b, "since", a->since_ms);
        row_json_time(b, "lastInboundAt", h.stats.last_inbound_ms);
        row_json_time(b, "lastSentAt", h.stats.last_sent_ms);
        row_json_time(b, "oldestUndeliveredAt", h.stats.oldest_open_ms);
        jsonw_int(b, "openDeliveries", (int64_t)h.stats.open);
        if (h.stats.last_failure_ms == 0) {
                jsonw_null(b, "lastFailure");
        } else {
                jsonw_open_member(b, "lastFailure", '{');
                row_json_time(b, "at", h.stats.last_failure_ms);
                jsonw_str(b, "why", h.stats.last_failure);
                jsonw_close(b, '}');
        }
        jsonw_open_member(b, "abilities", '[');
        for (size_t i = 0; i < COUNT(abilities); i++)
                if (can & abilities[i].flag)
                        jsonw_str(b, NULL, abilities[i].name);
        jsonw_close(b, ']');
        jsonw_close(b, '}');
}

struct instance_list {
        struct http_exchange *x;
        struct buf json;
};

static void list_one(void *arg, struct adapter *a)
{
        struct instance_list *l = arg;

        if (key_reaches(caller_of(l->x), a->name))
                write_instance(&l->json, api_of(l->x), a);
}

static void list(struct http_exchange *x)
{
        struct instance_list l = { .x = x };

        buf_init(&l.json, 0);
        page_open(&l.json);
        adapters_each(api_of(x)->env.adapters, list_one, &l);
        page_close(&l.json, false, NULL);
        reply_json(x, 200, &l.json);
}

/* The adapter in the path; NULL: answered with 404. */
static struct adapter *adapter_of(struct http_exchange *x)
{
        struct adapter *a = adapters_find(api_of(x)->env.adapters, http_param(x, "adapter"));

        if (!a)
                reply_missing(x, "instance", http_param(x, "adapter"));
        return a;
}

static void show(struct http_exchange *x)
{
        struct adapter *a = adapter_of(x);
        struct buf data;

        if (!a)
                return;
        buf_init(&data, 0);
        write_instance(&data, api_of(x), a);
        reply_data(x, 200, &data);
}

/* ---- lookups of channels and users on the platform ---- */

/* Answers a failure. NULL: nothing left to do; else the exchange to answer. */
static struct http_exchange *end_lookup(struct api_job *j, const struct error *err)
{
        struct http_exchange *x = api_job_end(j);

        free(j);
        if (!x || !err)
                return x;
        if (err->kind == ERR_NET)
                reply_error(x, 503, "UNAVAILABLE", NULL, "%s", err->text);
        else
                reply_failed(x, err);
        return NULL;
}

static void on_channel(void *arg, const struct channel_info *info, const struct error *err)
{
        static const char *const kinds[] = {
                [CHAT_DM] = "dm", [CHAT_GROUP] = "group", [CHAT_BROADCAST] = "channel"
        };
        static const char *const threads[] = { [CHAT_NO_THREADS] = "none",
                                               [CHAT_THREADS_AT_MESSAGE] = "message",
                                               [CHAT_THREADS_BY_NAME] = "name" };
        struct http_exchange *x = end_lookup(arg, err);
        struct buf data;

        if (!x)
                return;
        buf_init(&data, 0);
        jsonw_open(&data, '{');
        jsonw_str(&data, "id", info->id);
        jsonw_str(&data, "chatType", kinds[info->kind]);
        jsonw_str(&data, "name", info->name);
        jsonw_str(&data, "topic", info->topic);
        jsonw_str(&data, "parentId", info->parent);
        jsonw_str(&data, "threads", threads[info->threads]);
        if (info->members >= 0)
                jsonw_int(&data, "memberCount", info->members);
        else
                jsonw_null(&data, "memberCount");
        jsonw_close(&data, '}');
        reply_data(x, 200, &data);
}

static void on_user(void *arg, const struct user_info *info, const struct error *err)
{
        struct http_exchange *x = end_lookup(arg, err);
        struct buf data;

        if (!x)
                return;
        buf_init(&data, 0);
        jsonw_open(&data, '{');
        jsonw_str(&data, "id", info->id);
        jsonw_str(&data, "username", info->username);
        jsonw_str(&data, "displayName", info->name);
        jsonw_bool(&data, "isBot", info->is_bot);
        jsonw_close(&data, '}');
        reply_data(x, 200, &data);
}

static void show_channel(struct http_exchange *x)
{
        struct api_job *j = mem_alloc(sizeof(*j));
        struct error err = { 0 };

        api_job_begin(j, x);
        if (adapters_channel_info(api_of(x)->env.adapters, http_param(x, "adapter"),
                                  http_param(x, "channel"), on_channel, j, &err) < 0)
                end_lookup(j, &err);
}

static void show_user(struct http_exchange *x)
{
        struct api_job *j = mem_alloc(sizeof(*j));
        struct error err = { 0 };

        api_job_begin(j, x);
        if (adapters_user_info(api_of(x)->env.adapters, http_param(x, "adapter"),
                               http_param(x, "user"), on_user, j, &err) < 0)
                end_lookup(j, &err);
}

/* ---- tools ---- */

struct tool_ask {
        const json_t *arguments;
};

static const struct field tool_fields[] = {
        { "arguments", FIELD_OBJECT, FIELD_AT(tool_ask, arguments), .fallback = "{}",
          .help = "As described by the tool's `parameters`." },
        FIELD_END,
};

static void list_tools(struct http_exchange *x)
{
        const struct adapter *a = adapter_of(x);
        struct buf json;

        if (!a)
                return;
        buf_init(&json, 0);
        page_open(&json);
        for (const struct platform_tool *t = a->ops->tools; t && t->tool.name; t++) {
                jsonw_open(&json, '{');
                jsonw_str(&json, "name", t->tool.name);
                jsonw_str(&json, "description", t->tool.help);
                jsonw_raw(&json, "parameters", t->tool.parameters);
                jsonw_close(&json, '}');
        }
        page_close(&json, false, NULL);
        reply_json(x, 200, &json);
}

static void on_result(void *arg, const char *result, const struct error *err)
{
        struct api_job *j = arg;
        struct http_exchange *x = api_job_end(j);
        struct buf data;

        free(j);
        if (x && err) {
                reply_failed(x, err);
        } else if (x) {
                buf_init(&data, 0);
                buf_addstr(&data, result);
                reply_data(x, 200, &data);
        }
}

static void call_tool(struct http_exchange *x)
{
        const struct adapter *a = adapter_of(x);
        const char *tool = http_param(x, "tool"), *key;
        struct tool_ask ask = { 0 };
        struct tool_request q = { 0 };
        char hash[SHA256_HEX_SIZE];
        char *own_key = NULL, *what;
        struct api_job *j;
        struct body b;

        if (!a)
                return;
        if (!platform_tool_find(a->ops, tool)) {
                reply_missing(x, "tool", tool);
                return;
        }
        if (request_key(x, &key) < 0 || request_body(x, &b, &ask) < 0)
                return;
        q.arguments = ask.arguments;
        if (key) {
                q.request_key = own_key = request_own_key(x, key);
                what = mem_printf("tool %s %s", a->name, tool);
                request_hash(what, b.root, hash);
                free(what);
                q.request_hash = hash;
        }
        j = mem_alloc(sizeof(*j));
        api_job_begin(j, x);
        platform_tool_call(api_of(x)->env.adapters, a->name, tool, &q, on_result, j);
        free(own_key);
        body_release(&b);
}

const struct route instances_routes[] = {
        { "GET", "/api/v2/instances", SCOPE_READ, list, REACH_LIST,
          .summary = "The adapters. state is the worse of what the adapter reports and what the "
                     "road sees.",
          .status = 200, .answer = ROUTE_PAGE " of adapters." },
        { "GET", "/api/v2/instances/:adapter", SCOPE_READ, show, REACH_PATH,
          .summary = "One adapter.", .status = 200, .answer = "{\"data\": adapter}" },
        { "GET", "/api/v2/instances/:adapter/channels/:channel", SCOPE_READ, show_channel,
          REACH_PATH,
          .summary = "Look up a channel on the platform. 404 also when the platform cannot look up "
                     "channels, 503 while the adapter is not connected.",
          .status = 200,
          .answer = "{\"data\": {\"id\", \"chatType\": dm, group or channel, \"name\", \"topic\", "
                    "\"parentId\", \"threads\": message (they begin at one), name (they need only "
                    "a name) or none, \"memberCount\"}}; null where the platform does not say." },
        { "GET", "/api/v2/instances/:adapter/users/:user", SCOPE_READ, show_user, REACH_PATH,
          .summary = "Look up a user on the platform; errors as for channels.", .status = 200,
          .answer = "{\"data\": {\"id\", \"username\", \"displayName\", \"isBot\"}}" },
        { "GET", "/api/v2/instances/:adapter/tools", SCOPE_READ, list_tools, REACH_PATH,
          .summary = "What the adapter can do besides messages: the tools agents may call. "
                     "parameters is a JSON Schema.",
          .status = 200,
          .answer = ROUTE_PAGE
          " of tools: {\"name\", \"description\", \"parameters\"}; a single page." },
        { "POST", "/api/v2/instances/:adapter/tools/:tool", SCOPE_WRITE, call_tool, REACH_PATH,
          .summary = "Call a tool of the adapter. A message it sends is a delivery in the outbox; "
                     "what it reads is in the answer. The header Idempotency-Key makes repeating "
                     "it harmless: the same call is answered with the same delivery, another one "
                     "with 409.",
          .body = tool_fields, .status = 200, .answer = "{\"data\": the result of the tool}",
          .example = ROUTE_JSON(
                  { "arguments" : { "channel_id" : "81384788765712384", "limit" : 20 } }) },
        ROUTE_END,
};
