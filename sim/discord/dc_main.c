/*
 * dragoman-sim discord.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/discord/dc_control.h"
#include "sim/discord/dc_gateway.h"
#include "sim/discord/dc_people.h"
#include "sim/discord/dc_signer.h"
#include "sim/discord/dc_world.h"
#include "sim/simulator.h"

#define LAB     900000000000000001u
#define GENERAL 900000000000000002u
#define ADA     42

enum { OWN_GATEWAY_PORT };
static const struct own_option own[] = {
        [OWN_GATEWAY_PORT] = { "gateway-port", "N", "port of the gateway; default: a free one" },
        { 0 },
};

static int start_gateway(struct world *w, const struct options *o, struct error *err)
{
        const char *port = o->own[OWN_GATEWAY_PORT];
        char *address = options_address(o, port ? port : "0");
        struct ws_options options = { .listen = address,
                                      .tls_cert_file = o->tls_cert,
                                      .tls_key_file = o->tls_key };
        int rc = dc_gateway_listen(w->gateway, &options, err);

        free(address);
        return rc;
}

static struct world *open_world(struct loop *l, struct http_client *client, const struct options *o,
                                struct error *err)
{
        struct world *w = dc_world_new(l);
        struct user *ada = dc_world_make_user(w, ADA, "ada", "Ada");

        world_base_apply(&w->base, client, o);
        for (size_t i = 0; i < o->token_count; i++)
                dc_world_make_bot(w, o->tokens[i]);
        dc_channel_make(w, dc_guild_make(w, LAB, "Lab", ada), GENERAL, CHANNEL_TEXT, "general");
        if (start_gateway(w, o, err) == 0)
                return w;
        dc_world_free(w);
        return NULL;
}

static void reached(struct world *w, const char *url)
{
        snprintf(w->base_url, sizeof(w->base_url), "%s", url);
}

static void greet(const struct world *w, const char *url)
{
        printf("\n"
               "The bot @%s is ready. For config.json:\n"
               "\n"
               "  \"adapters\": {\n"
               "    \"dc\": { \"type\": \"discord\", \"botToken\": \"%s\",\n"
               "            \"apiBase\": \"%s/api/v10\", \"gatewayUrl\": \"%s\",\n"
               "            \"publicKey\": \"%s\",\n"
               "            \"admins\": [\"42\"], \"dm\": \"everyone\" }\n"
               "  }\n"
               "\n"
               "Lines typed here go to the bot from Ada (user 42). To write in #general of the\n"
               "guild Lab:\n"
               "\n"
               "  curl %s/sim/send -d '{\"channel\":\"general\",\"text\":\"<@%s> hello\"}'\n"
               "\n"
               "The bot's messages appear here; GET /sim lists the control API.\n"
               "\n",
               w->bots->user->username, w->bots->token, url, dc_gateway_url(w->gateway),
               dc_signer_public(w->signer), url, w->bots->user->username);
}

int dc_main(int argc, char **argv)
{
        static const struct simulator_ops ops = {
                .about = { .name = "discord",
                           .about = "A simulated Discord: the gateway, the HTTP API, and people "
                                    "controlled over HTTP. It\n"
                                    "checks every call against Discord's own description. "
                                    "Stop it with Ctrl-C.\n",
                           .port = "8082",
                           /* the first part is the bot's id */
                           .token = "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token",
                           .own = own,
                           .controls = dc_control_help },
                .user_agent = "Discord-Interactions/1.0 (+https://discord.com)",
                .open = open_world,
                .close = dc_world_free,
                .routes = dc_control_routes,
                .refuse = dc_control_refuse,
                .reached = reached,
                .greet = greet,
                .send = dc_people_send,
        };

        return simulator_main(&ops, argc, argv);
}
