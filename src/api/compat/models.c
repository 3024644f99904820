/* The agents as an OpenAI client sees them. */
#include <string.h>

#include "agent/agent.h"
#include "api/compat/chat_bridge.h"
#include "api/core/api_private.h"
#include "base/jsonw.h"

static void write_model(struct buf *b, const struct api *a, const char *name)
{
        jsonw_open(b, '{');
        jsonw_str(b, "id", name);
        jsonw_str(b, "object", "model");
        jsonw_int(b, "created", a->env.started_ms / 1000);
        jsonw_str(b, "owned_by", "dragoman");
        jsonw_close(b, '}');
}

struct listing {
        struct buf *json;
        struct api *api;
};

static void list_agent(void *arg, const struct agent *a, const struct agent_health *h)
{
        struct listing *l = arg;

        (void)h;
        write_model(l->json, l->api, a->name);
}

void models_list(struct http_exchange *x)
{
        struct buf json;
        struct listing l = { &json, api_of(x) };

        buf_init(&json, 0);
        jsonw_open(&json, '{');
        jsonw_str(&json, "object", "list");
        jsonw_open_member(&json, "data", '[');
        write_model(&json, l.api, CHAT_BRIDGE_BY_RULES);
        agents_each(l.api->env.agents, list_agent, &l);
        jsonw_close(&json, ']');
        jsonw_close(&json, '}');
        reply_json(x, 200, &json);
}

void models_show(struct http_exchange *x)
{
        const char *name = http_param(x, "model"), *agent = name;
        struct buf json;

        if (!chat_bridge_agent(x, &agent)) {
                reply_error(x, 404, "model_not_found", NULL, "there is no agent '%.100s'", name);
                return;
        }
        buf_init(&json, 0);
        write_model(&json, api_of(x), name);
        reply_json(x, 200, &json);
}
