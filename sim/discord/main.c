/*
 * dragoman-sim discord: options, the servers, the loop.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "sim/console.h"
#include "sim/discord/call.h"
#include "sim/discord/control.h"
#include "sim/discord/gateway.h"
#include "sim/discord/play.h"
#include "sim/discord/signer.h"
#include "sim/discord/world.h"
#include "sim/host.h"
#include "sim/simulators.h"

#define DEFAULT_TOKEN "OTAwMDAwMDAwMDAwMDAwMDAw.simulator.token" /* the first part is the bot's number */
#define DEFAULT_PORT  8082
#define LAB           900000000000000001u
#define GENERAL       900000000000000002u
#define ADA           42

static const char help[] =
        "usage: dragoman-sim discord [options]\n"
        "\n"
        "Discord on this machine: the gateway, the HTTP API, and people you play over HTTP. Every call is\n"
        "checked against Discord's own description. Ends with Ctrl-C.\n"
        "\n"
        "  --port N          listen on port N of 127.0.0.1 (8082; 0 takes a free one)\n"
        "  --gateway-port N  the same for the gateway (a free one)\n"
        "  --listen ADDRESS  another address than 127.0.0.1, for both\n"
        "  --token T         a bot; give it again for more bots (" DEFAULT_TOKEN ")\n"
        "  --tls-cert FILE   speak TLS with this certificate ...\n"
        "  --tls-key FILE    ... and this key\n"
        "  --ca FILE         certificates to trust when calling an interactions endpoint\n"
        "  --no-limits       no rate limits\n"
        "  --lax             accept what the description does not know, as the real server does\n"
        "  --keep N          messages kept per channel (500)\n"
        "  --seed N          of the dice that decide on faults\n"
        "  --quiet           print only what a program needs to know: the address\n"
        "\n"
        "Control, all JSON:\n";

struct options {
        const char *listen, *port, *gateway_port, *cert, *key, *ca_file;
        const char *tokens[32];
        size_t token_count;
        bool no_limits, lax, quiet;
        size_t keep;
        uint64_t seed;
};

struct sim {
        struct loop *loop;
        struct world *world;
        struct http_server *server;
        struct http_route *routes;
        struct console *console;
};

/* ---- options ---- */

static int usage_error(const char *what)
{
        fprintf(stderr, "dragoman-sim discord: %s\nTry 'dragoman-sim discord --help'.\n", what);
        return 64;
}

/* 0 go on, -1 done (help was asked for), else the exit code. */
static int read_options(struct options *o, int argc, char **argv)
{
        static const struct option longs[] = { { "port", required_argument, NULL, 'p' },
                                               { "gateway-port", required_argument, NULL, 'g' },
                                               { "listen", required_argument, NULL, 'l' },
                                               { "token", required_argument, NULL, 't' },
                                               { "tls-cert", required_argument, NULL, 'c' },
                                               { "tls-key", required_argument, NULL, 'k' },
                                               { "ca", required_argument, NULL, 'a' },
                                               { "no-limits", no_argument, NULL, 'n' },
                                               { "lax", no_argument, NULL, 'x' },
                                               { "keep", required_argument, NULL, 'K' },
                                               { "seed", required_argument, NULL, 's' },
                                               { "quiet", no_argument, NULL, 'q' },
                                               { "help", no_argument, NULL, 'h' },
                                               { NULL, 0, NULL, 0 } };
        int c;

        optind = 1;
        while ((c = getopt_long(argc, argv, "hq", longs, NULL)) != -1) {
                switch (c) {
                case 'p':
                        o->port = optarg;
                        break;
                case 'g':
                        o->gateway_port = optarg;
                        break;
                case 'l':
                        o->listen = optarg;
                        break;
                case 't':
                        if (o->token_count == COUNT(o->tokens))
                                return usage_error("too many tokens; more can be made with POST /sim/bots");
                        o->tokens[o->token_count++] = optarg;
                        break;
                case 'c':
                        o->cert = optarg;
                        break;
                case 'k':
                        o->key = optarg;
                        break;
                case 'a':
                        o->ca_file = optarg;
                        break;
                case 'n':
                        o->no_limits = true;
                        break;
                case 'x':
                        o->lax = true;
                        break;
                case 'K':
                        o->keep = strtoul(optarg, NULL, 10);
                        break;
                case 's':
                        o->seed = strtoull(optarg, NULL, 10);
                        break;
                case 'q':
                        o->quiet = true;
                        break;
                case 'h':
                        fputs(help, stdout);
                        fputs(dc_control_help(), stdout);
                        return -1;
                default:
                        return 64;
                }
        }
        if (optind < argc)
                return usage_error("it takes options only");
        if (!o->cert != !o->key)
                return usage_error("--tls-cert and --tls-key belong together");
        if (o->token_count == 0)
                o->tokens[o->token_count++] = DEFAULT_TOKEN;
        return 0;
}

/* ---- start ---- */

static void fill_world(struct world *w, const struct options *o)
{
        struct user *ada = dc_user_make(w, ADA, "ada", "Ada");
        struct guild *lab;

        w->quiet = o->quiet;
        w->settings.limits = !o->no_limits;
        w->settings.strict = !o->lax;
        if (o->keep >= 8)
                w->settings.keep_messages = o->keep;
        if (o->seed)
                w->faults.dice = o->seed;
        for (size_t i = 0; i < o->token_count; i++)
                dc_bot(w, o->tokens[i]);
        lab = dc_guild_make(w, LAB, "Lab", ada);
        dc_channel_make(w, lab, GENERAL, CHANNEL_TEXT, "general");
}

static int start_gateway(struct sim *s, const struct options *o, struct error *err)
{
        char *address = mem_printf("%s:%s", o->listen ? o->listen : "127.0.0.1",
                                   o->gateway_port ? o->gateway_port : "0");
        struct ws_options options = { .listen = address, .tls_cert_file = o->cert, .tls_key_file = o->key };
        int rc = dc_gateway_listen(s->world->gateway, &options, err);

        free(address);
        return rc;
}

static int start_server(struct sim *s, const struct options *o, struct error *err)
{
        static const struct http_server_hooks hooks = { .refuse = dc_control_refuse };
        char port[8];
        char *address;
        struct http_server_options options = { .tls_cert_file = o->cert,
                                               .tls_key_file = o->key,
                                               .request_seconds = 120 };
        size_t count;

        snprintf(port, sizeof(port), "%d", DEFAULT_PORT);
        address = mem_printf("%s:%s", o->listen ? o->listen : "127.0.0.1", o->port ? o->port : port);
        options.listen = address;
        s->routes = dc_control_routes(&count);
        s->server = http_server_new(s->loop, &options, s->routes, count, &hooks, s->world, err);
        free(address);
        if (!s->server)
                return -1;
        snprintf(s->world->base_url, sizeof(s->world->base_url), "%s://%s", o->cert ? "https" : "http",
                 http_server_address(s->server));
        return 0;
}

static int start(struct sim *s, const struct options *o, struct error *err)
{
        struct http_client_options client = { .ca_file = o->ca_file,
                                              .user_agent =
                                                      "Discord-Interactions/1.0 (+https://discord.com)" };

        s->world = dc_world_new(s->loop);
        s->world->client = http_client_new(s->loop, &client, err);
        if (!s->world->client)
                return -1;
        fill_world(s->world, o);
        return start_gateway(s, o, err) != 0 || start_server(s, o, err) != 0 ? -1 : 0;
}

static void greet(const struct sim *s, const struct options *o)
{
        const struct world *w = s->world;

        printf("%s\n", w->base_url);
        if (!o->quiet)
                printf("\n@%s listens. For config.json:\n\n"
                       "  \"adapters\": {\n"
                       "    \"dc\": { \"type\": \"discord\", \"botToken\": \"%s\",\n"
                       "            \"apiBase\": \"%s/api/v10\", \"gatewayUrl\": \"%s\",\n"
                       "            \"publicKey\": \"%s\",\n"
                       "            \"admins\": [\"42\"], \"dm\": \"everyone\" }\n"
                       "  }\n\n"
                       "Write to it as Ada, user 42, by typing here, or in #general of the guild Lab "
                       "with:\n\n"
                       "  curl %s/sim/send -d '{\"channel\":\"general\",\"text\":\"<@%s> hello\"}'\n\n"
                       "What the bot says is shown here; GET /sim tells what else can be played.\n\n",
                       w->bots->user->username, w->bots->token, w->base_url, dc_gateway_url(w->gateway),
                       dc_signer_public(w->signer), w->base_url, w->bots->user->username);
        fflush(stdout);
}

static void finish(struct sim *s)
{
        struct http_client *client = s->world ? s->world->client : NULL;

        console_free(s->console);
        if (s->world)
                dc_call_end_all(s->world);
        dc_world_free(s->world);
        http_server_free(s->server);
        http_client_free(client);
        free(s->routes);
        loop_free(s->loop);
}

int discord_sim_main(int argc, char **argv)
{
        struct options o = { 0 };
        struct sim s = { 0 };
        struct error err = { 0 };
        int rc = read_options(&o, argc, argv);

        if (rc != 0)
                return rc < 0 ? 0 : rc;
        s.loop = loop_new();
        if (start(&s, &o, &err) != 0) {
                fprintf(stderr, "dragoman-sim discord: %s\n", err.text);
                finish(&s);
                return 1;
        }
        greet(&s, &o);
        s.console = o.quiet ? NULL : console_new(s.loop, s.world, dc_play_send);
        host_run(s.loop);
        finish(&s);
        return 0;
}
