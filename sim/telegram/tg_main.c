/*
 * dragoman-sim telegram: what is its own in the life of a simulator.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/simulator.h"
#include "sim/telegram/tg_call.h"
#include "sim/telegram/tg_control.h"
#include "sim/telegram/tg_people.h"
#include "sim/telegram/tg_world.h"

#define ADA 42

enum { OWN_DATA };
static const struct own_option own[] = {
        [OWN_DATA] = { "data", "DIR", "keep uploaded files there instead of in memory" },
        { 0 },
};

/* ---- the world ---- */

static int make_bots(struct world *w, const struct options *o, struct error *err)
{
        struct user *ada = tg_world_make_user(w, ADA, "Ada", "ada");

        for (size_t i = 0; i < o->token_count; i++) {
                struct bot *b = tg_world_make_bot(w, o->tokens[i], err);

                if (!b)
                        return -1;
                tg_chat_private(b, ada, true);
        }
        return 0;
}

static void close_world(struct world *w)
{
        tg_call_end_all(w);
        tg_world_free(w);
}

static struct world *open_world(struct loop *l, struct http_client *client, const struct options *o,
                                struct error *err)
{
        struct world *w = tg_world_new(l);

        w->client = client;
        w->quiet = o->quiet;
        w->data_dir = o->own[OWN_DATA];
        w->settings.limits = !o->no_limits;
        w->settings.strict = !o->lax;
        if (o->keep)
                w->settings.keep_messages = o->keep;
        if (o->seed)
                w->faults.rng = o->seed;
        if (w->data_dir)
                mkdir(w->data_dir, 0700);
        if (make_bots(w, o, err) == 0)
                return w;
        close_world(w);
        return NULL;
}

/* ---- the server ---- */

static struct http_route *routes(size_t *count)
{
        struct http_route *all = mem_array(tg_control_route_count, sizeof(*all));

        memcpy(all, tg_control_routes, tg_control_route_count * sizeof(*all));
        *count = tg_control_route_count;
        return all;
}

static void refuse(void *arg, struct http_exchange *x, int status, const char *code,
                   const char *message)
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

static void greet(const struct world *w, const char *url)
{
        printf("\n"
               "@%s listens. For config.json:\n"
               "\n"
               "  \"adapters\": {\n"
               "    \"tg\": { \"type\": \"telegram\", \"botToken\": \"%s\",\n"
               "            \"apiBase\": \"%s\", \"admins\": [\"42\"], \"dm\": \"everyone\" }\n"
               "  }\n"
               "\n"
               "Write to it as Ada, user 42, by typing here or with:\n"
               "\n"
               "  curl %s/sim/send -d '{\"from\":42,\"text\":\"hello\"}'\n"
               "\n"
               "What the bot says is shown here; GET /sim tells what else can be played.\n"
               "\n",
               w->bots->user.username, w->bots->token, url, url);
}

int tg_main(int argc, char **argv)
{
        static const struct simulator_ops ops = {
                .about = { .name = "telegram",
                           .about = "A Telegram Bot API server on this machine, with users you "
                                    "play over HTTP. Every call is checked\n"
                                    "against the official list of methods. Ends with Ctrl-C.\n",
                           .port = "8081",
                           .token = "100000001:dragoman-simulator-token",
                           .own = own,
                           .controls = tg_control_help },
                .open = open_world,
                .close = close_world,
                .routes = routes,
                .refuse = refuse,
                .greet = greet,
                .send = tg_people_send,
        };

        return simulator_main(&ops, argc, argv);
}
