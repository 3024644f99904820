/*
 * dragoman-sim slack.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/simulator.h"
#include "sim/slack/sl_control.h"
#include "sim/slack/sl_people.h"
#include "sim/slack/sl_push.h"
#include "sim/slack/sl_world.h"

#define ADA     "U0ADA"
#define GENERAL "C0GENERAL"

enum { OWN_SOCKET_PORT };
static const struct own_option own[] = {
        [OWN_SOCKET_PORT] = { "socket-port", "N", "port of Socket Mode; default: a free one" },
        { 0 },
};

static int start_socket(struct slack_world *w, const struct options *o, struct error *err)
{
        const char *port = o->own[OWN_SOCKET_PORT];
        char *address = options_address(o, port ? port : "0");
        struct ws_options options = { .listen = address,
                                      .tls_cert_file = o->tls_cert,
                                      .tls_key_file = o->tls_key };
        int rc = sl_push_listen(w->links, &options, err);

        free(address);
        return rc;
}

static struct world *open_world(struct loop *l, struct http_client *client, const struct options *o,
                                struct error *err)
{
        struct slack_world *w = sl_world_new(l);
        struct slack_user *ada = sl_user_make(w, NULL, ADA, "ada", "Ada Lovelace");

        world_base_apply(&w->base, client, o);
        sl_channel_make(w, NULL, GENERAL, SLACK_PUBLIC, "general", ada)->general = true;
        for (size_t i = 0; i < o->token_count; i++)
                sl_app_make(w, o->tokens[i], NULL);
        if (start_socket(w, o, err) == 0)
                return (struct world *)w;
        sl_world_free(w);
        return NULL;
}

static void close_world(struct world *w)
{
        sl_world_free(sl_world_of(w));
}

static void reached(struct world *w, const char *url)
{
        snprintf(sl_world_of(w)->base_url, sizeof(sl_world_of(w)->base_url), "%s", url);
}

static void greet(const struct world *world, const char *url)
{
        const struct slack_world *w = (const struct slack_world *)world;

        printf("\n"
               "The app @%s is ready in the workspace %s. For config.json:\n"
               "\n"
               "  \"adapters\": {\n"
               "    \"sl\": { \"type\": \"slack\", \"botToken\": \"%s\",\n"
               "            \"appToken\": \"%s\", \"apiBase\": \"%s/api\",\n"
               "            \"signingSecret\": \"%s\",\n"
               "            \"admins\": [\"" ADA "\"], \"dm\": \"everyone\" }\n"
               "  }\n"
               "\n"
               "Lines typed here go to the app from Ada (" ADA "). To write in #general:\n"
               "\n"
               "  curl %s/sim/send -d '{\"channel\":\"general\",\"text\":\"<@%s> hello\"}'\n"
               "\n"
               "The app's messages appear here; GET /sim lists the control API.\n"
               "\n",
               w->apps->user->name, w->teams->name, w->apps->token, w->apps->app_token, url,
               w->apps->signing_secret, url, w->apps->user->id);
}

int sl_main(int argc, char **argv)
{
        static const struct simulator_ops ops = {
                .about = { .name = "slack",
                           .about = "A simulated Slack: the Web API, Socket Mode, the Events API, "
                                    "and people controlled\n"
                                    "over HTTP. It checks every call against Slack's own "
                                    "description. Stop it with\n"
                                    "Ctrl-C.\n",
                           .port = "8084",
                           .token = "xoxb-simulator-token",
                           .own = own,
                           .controls = sl_control_help },
                .user_agent = "Slackbot 1.0 (+https://api.slack.com/robots)",
                .open = open_world,
                .close = close_world,
                .routes = sl_control_routes,
                .refuse = sl_control_refuse,
                .reached = reached,
                .greet = greet,
                .send = sl_people_send,
        };

        return simulator_main(&ops, argc, argv);
}
