/* Lists the agents as models, for clients of OpenAI's protocol. */
#include <string.h>

#include "agent/agents.h"
#include "api/compat/chat_bridge.h"
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

struct model_list {
        struct buf *json;
        struct api *api;
        struct http_exchange *x;
};

static void list_agent(void *arg, const struct agent *a, const struct agent_health *h)
{
        struct model_list *l = arg;

        (void)h;
        if (chat_bridge_may_ask(l->x, NULL, a->name))
                write_model(l->json, l->api, a->name);
}

static void list(struct http_exchange *x)
{
        struct buf json;
        struct model_list l = { &json, api_of(x), x };

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

static void show(struct http_exchange *x)
{
        const char *name = http_param(x, "model"), *agent = name;
        struct buf json;

        if (!chat_bridge_agent(x, &agent) || !chat_bridge_may_ask(x, NULL, agent)) {
                reply_error(x, 404, "model_not_found", NULL, "there is no agent '%.100s'", name);
                return;
        }
        buf_init(&json, 0);
        write_model(&json, api_of(x), name);
        reply_json(x, 200, &json);
}

const struct route models_routes[] = {
        { "GET", "/v1/models", SCOPE_READ, list, REACH_SHARED,
          .summary = "The agents that the key may ask, for software that speaks OpenAI's protocol; "
                     "with dragoman the rules choose the agent.",
          .status = 200, .answer = "OpenAI's list of models.",
          .example_answer = ROUTE_JSON({
                  "object" : "list",
                  "data" : [ {
                          "id" : "echo",
                          "object" : "model",
                          "created" : 1763200000,
                          "owned_by" : "dragoman"
                  } ]
          }) },
        { "GET", "/v1/models/:model", SCOPE_READ, show, REACH_SHARED, .summary = "One agent.",
          .status = 200, .answer = "OpenAI's model.", .example_answer = ROUTE_JSON({
                                                              "id" : "echo",
                                                              "object" : "model",
                                                              "created" : 1763200000,
                                                              "owned_by" : "dragoman"
                                                      }) },
        ROUTE_END,
};
