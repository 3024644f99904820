/*
 * dragoman-sim llm.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/llm/lm_control.h"
#include "sim/llm/lm_scenario.h"
#include "sim/llm/lm_world.h"
#include "sim/simulator.h"

enum { OWN_SCENARIO };
static const struct own_option own[] = {
        [OWN_SCENARIO] = { "scenario", "FILE", "answer by the rules in this JSON file" },
        { 0 },
};

static struct world *open_world(struct loop *l, struct http_client *client, const struct options *o,
                                struct error *err)
{
        struct world *w = lm_world_new(l);

        world_base_apply(&w->base, client, o);
        for (size_t i = 0; i < o->token_count; i++)
                lm_world_add_key(w, o->tokens[i]);
        if (o->own[OWN_SCENARIO] && lm_scenario_load(w, o->own[OWN_SCENARIO], err) != 0) {
                lm_world_free(w);
                return NULL;
        }
        return w;
}

static struct http_route *routes(size_t *count)
{
        struct http_route *all = mem_array(lm_control_route_count, sizeof(*all));

        memcpy(all, lm_control_routes, lm_control_route_count * sizeof(*all));
        *count = lm_control_route_count;
        return all;
}

/* In a form that clients of both services can read. */
static void refuse(void *arg, struct http_exchange *x, int status, const char *code,
                   const char *message)
{
        const char *type = status == 413   ? "request_too_large"
                           : status == 404 ? "not_found_error"
                                           : "invalid_request_error";

        (void)arg;
        http_answer_json(x, status,
                         json_pack("{s:s,s:{s:s,s:s,s:n,s:s}}", "type", "error", "error", "type",
                                   type, "message", message, "param", "code", code));
}

static void greet(const struct world *w, const char *url)
{
        (void)w;
        printf("\n"
               "The services of Anthropic and OpenAI are ready. For config.json:\n"
               "\n"
               "  \"agents\": {\n"
               "    \"main\": { \"type\": \"builtin\",\n"
               "              \"model\": \"anthropic/claude-sonnet-5-5\",\n"
               "              \"apiKey\": \"sk-sim\", \"baseUrl\": \"%s\" }\n"
               "  }\n"
               "\n"
               "OpenAI's is at %s/v1, with models such as openai/gpt-5.4.\n"
               "\n"
               "The model repeats your message, or does what its lines say:\n"
               "\n"
               "  use bash: ls          call read {\"path\":\"x\"}       calls 3 bash {..}\n"
               "  think Let me see.     say Hello                     wait 500\n"
               "\n"
               "GET /sim lists the control API; GET /sim/calls shows the requests.\n"
               "\n",
               url, url);
}

/* A line typed in the terminal is the model's next answer. */
static int say_next(struct world *w, const json_t *request, struct buf *out, struct error *err)
{
        json_t *rule = json_pack("{s:s}", "answer", json_str(request, "text", ""));
        int rc = lm_scenario_next(w, rule, out, err);

        json_decref(rule);
        return rc;
}

int lm_main(int argc, char **argv)
{
        static const struct simulator_ops ops = {
                .about = { .name = "llm",
                           .about = "Simulated model services: Anthropic Messages, OpenAI Chat "
                                    "Completions and Responses, on one\n"
                                    "port. They refuse what the real ones refuse. "
                                    "Stop with Ctrl-C.\n",
                           .port = "8083",
                           .token = "sk-sim",
                           .own = own,
                           .controls = lm_control_help },
                .open = open_world,
                .close = lm_world_free,
                .routes = routes,
                .refuse = refuse,
                .greet = greet,
                .send = say_next,
        };

        return simulator_main(&ops, argc, argv);
}
