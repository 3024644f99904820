/*
 * dragoman-sim telegram: options, the server, the loop.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "sim/console.h"
#include "sim/host.h"
#include "sim/simulators.h"
#include "sim/telegram/call.h"
#include "sim/telegram/control.h"
#include "sim/telegram/play.h"
#include "sim/telegram/world.h"

#define DEFAULT_TOKEN "100000001:dragoman-simulator-token"
#define DEFAULT_PORT  8081

static const char help[] =
        "usage: dragoman-sim telegram [options]\n"
        "\n"
        "A Telegram Bot API server on this machine, with users you play over HTTP. Every call is checked\n"
        "against the official list of methods. Ends with Ctrl-C.\n"
        "\n"
        "  --port N          listen on port N of 127.0.0.1 (8081; 0 takes a free one)\n"
        "  --listen ADDRESS  the same with an address: 0.0.0.0:8081\n"
        "  --token T         a bot; give it again for more bots (" DEFAULT_TOKEN ")\n"
        "  --tls-cert FILE   speak TLS with this certificate ...\n"
        "  --tls-key FILE    ... and this key\n"
        "  --ca FILE         certificates to trust when calling webhooks\n"
        "  --data DIR        keep uploaded files there instead of in memory\n"
        "  --no-limits       no rate limits (30/s, 1/s per chat, 20/min per group)\n"
        "  --lax             accept unknown parameters, as the real server does\n"
        "  --keep N          messages kept per chat (200)\n"
        "  --seed N          of the dice that decide on faults\n"
        "  --quiet           print only what a program needs to know: the address\n"
        "\n"
        "Control, all JSON:\n";

struct options {
        struct http_server_options server;
        char listen[80];
        const char *ca_file, *data_dir;
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
        struct console *console;
};

/* ---- options ---- */

static int usage_error(const char *what)
{
        fprintf(stderr, "dragoman-sim telegram: %s\nTry 'dragoman-sim telegram --help'.\n", what);
        return 64;
}

/* 0 go on, -1 done (help was asked for), else the exit code. */
static int read_options(struct options *o, int argc, char **argv)
{
        static const struct option longs[] = {
                { "port", required_argument, NULL, 'p' },    { "listen", required_argument, NULL, 'l' },
                { "token", required_argument, NULL, 't' },   { "tls-cert", required_argument, NULL, 'c' },
                { "tls-key", required_argument, NULL, 'k' }, { "ca", required_argument, NULL, 'a' },
                { "data", required_argument, NULL, 'd' },    { "no-limits", no_argument, NULL, 'n' },
                { "lax", no_argument, NULL, 'x' },           { "keep", required_argument, NULL, 'K' },
                { "seed", required_argument, NULL, 's' },    { "quiet", no_argument, NULL, 'q' },
                { "help", no_argument, NULL, 'h' },          { NULL, 0, NULL, 0 }
        };
        int c;

        snprintf(o->listen, sizeof(o->listen), "127.0.0.1:%d", DEFAULT_PORT);
        optind = 1;
        while ((c = getopt_long(argc, argv, "hq", longs, NULL)) != -1) {
                switch (c) {
                case 'p':
                        snprintf(o->listen, sizeof(o->listen), "127.0.0.1:%s", optarg);
                        break;
                case 'l':
                        snprintf(o->listen, sizeof(o->listen), "%s", optarg);
                        break;
                case 't':
                        if (o->token_count == COUNT(o->tokens))
                                return usage_error("too many tokens; more can be made with POST /sim/bots");
                        o->tokens[o->token_count++] = optarg;
                        break;
                case 'c':
                        o->server.tls_cert_file = optarg;
                        break;
                case 'k':
                        o->server.tls_key_file = optarg;
                        break;
                case 'a':
                        o->ca_file = optarg;
                        break;
                case 'd':
                        o->data_dir = optarg;
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
                        fputs(control_help(), stdout);
                        return -1;
                default:
                        return 64;
                }
        }
        if (optind < argc)
                return usage_error("it takes options only");
        if (o->token_count == 0)
                o->tokens[o->token_count++] = DEFAULT_TOKEN;
        return 0;
}

/* ---- start ---- */

static void on_refuse(void *arg, struct http_exchange *x, int status, const char *code, const char *message)
{
        struct buf b;

        (void)arg;
        (void)code;
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_bool(&b, "ok", false);
        jsonw_int(&b, "error_code", status);
        jsonw_str(&b, "description",
                  status == 413   ? "Request Entity Too Large"
                  : status == 404 ? "Not Found"
                                  : message);
        jsonw_close(&b, '}');
        http_answer(x, status, "application/json", b.data, b.len);
        buf_release(&b);
}

static int make_world(struct sim *s, const struct options *o, struct error *err)
{
        struct http_client_options client = { .ca_file = o->ca_file };
        struct world *w = s->world = world_new(s->loop);
        struct user *ada;

        w->quiet = o->quiet;
        w->data_dir = o->data_dir;
        w->settings.limits = !o->no_limits;
        w->settings.strict = !o->lax;
        if (o->keep >= 8)
                w->settings.keep_messages = o->keep;
        if (o->seed)
                w->faults.dice = o->seed;
        if (o->data_dir)
                mkdir(o->data_dir, 0700);
        w->client = http_client_new(s->loop, &client, err);
        if (!w->client)
                return -1;
        ada = user_make(w, 42, "Ada", "ada");
        for (size_t i = 0; i < o->token_count; i++) {
                struct bot *b = world_bot(w, o->tokens[i], err);

                if (!b)
                        return -1;
                chat_private(b, ada, true);
        }
        return 0;
}

static void greet(const struct sim *s, const struct options *o)
{
        const char *scheme = o->server.tls_cert_file ? "https" : "http";
        const char *address = http_server_address(s->server);
        const struct bot *b = s->world->bots;

        printf("%s://%s\n", scheme, address);
        if (!o->quiet)
                printf("\n@%s listens. For config.json:\n\n"
                       "  \"adapters\": {\n"
                       "    \"tg\": { \"type\": \"telegram\", \"botToken\": \"%s\",\n"
                       "            \"apiBase\": \"%s://%s\", \"admins\": [\"42\"], \"dm\": \"everyone\" }\n"
                       "  }\n\n"
                       "Write to it as Ada, user 42, by typing here or with:\n\n"
                       "  curl %s://%s/sim/send -d '{\"from\":42,\"text\":\"hello\"}'\n\n"
                       "What the bot says is shown here; GET /sim tells what else can be played.\n\n",
                       b->user.username, b->token, scheme, address, scheme, address);
        fflush(stdout);
}

static int start(struct sim *s, struct options *o, struct error *err)
{
        static const struct http_server_hooks hooks = { .refuse = on_refuse };

        o->server.listen = o->listen;
        o->server.request_seconds = 120;
        if (make_world(s, o, err) != 0)
                return -1;
        s->server = http_server_new(s->loop, &o->server, control_routes, control_route_count, &hooks,
                                    s->world, err);
        return s->server ? 0 : -1;
}

static void finish(struct sim *s)
{
        struct http_client *client = s->world ? s->world->client : NULL;

        console_free(s->console);
        if (s->world)
                call_end_all(s->world);
        world_free(s->world);
        http_server_free(s->server);
        http_client_free(client);
        loop_free(s->loop);
}

int telegram_sim_main(int argc, char **argv)
{
        struct options o = { 0 };
        struct sim s = { 0 };
        struct error err = { 0 };
        int rc = read_options(&o, argc, argv);

        if (rc != 0)
                return rc < 0 ? 0 : rc;
        s.loop = loop_new();
        if (start(&s, &o, &err) != 0) {
                fprintf(stderr, "dragoman-sim telegram: %s\n", err.text);
                finish(&s);
                return 1;
        }
        greet(&s, &o);
        s.console = o.quiet ? NULL : console_new(s.loop, s.world, play_send);
        host_run(s.loop);
        finish(&s);
        return 0;
}
