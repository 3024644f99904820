/*
 * dragoman-sim telegram.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/simulator.h"
#include "sim/telegram/tg_control.h"
#include "sim/telegram/tg_people.h"
#include "sim/telegram/tg_world.h"

#define ADA 42

enum { OWN_DATA };
static const struct own_option own[] = {
        [OWN_DATA] = { "data", "DIR", "keep uploaded files in DIR instead of in memory" },
        { 0 },
};

static struct world *open_world(struct loop *l, struct http_client *client, const struct options *o,
                                struct error *err)
{
        struct world *w = tg_world_new(l);
        struct user *ada = tg_world_make_user(w, ADA, "Ada", "ada");

        world_base_apply(&w->base, client, o);
        w->data_dir = o->own[OWN_DATA];
        if (w->data_dir)
                mkdir(w->data_dir, 0700);
        for (size_t i = 0; i < o->token_count; i++) {
                struct bot *b = tg_world_make_bot(w, o->tokens[i], err);

                if (!b) {
                        tg_world_free(w);
                        return NULL;
                }
                tg_chat_private(b, ada, true);
        }
        return w;
}

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
               "The bot @%s is ready. For config.json:\n"
               "\n"
               "  \"adapters\": {\n"
               "    \"tg\": { \"type\": \"telegram\", \"botToken\": \"%s\",\n"
               "            \"apiBase\": \"%s\", \"admins\": [\"42\"], \"dm\": \"everyone\" }\n"
               "  }\n"
               "\n"
               "Lines typed here go to the bot from Ada (user 42); so does this:\n"
               "\n"
               "  curl %s/sim/send -d '{\"from\":42,\"text\":\"hello\"}'\n"
               "\n"
               "The bot's messages appear here; GET /sim lists the control API.\n"
               "\n",
               w->bots->user.username, w->bots->token, url, url);
}

int tg_main(int argc, char **argv)
{
        static const struct simulator_ops ops = {
                .about = { .name = "telegram",
                           .about = "A simulated Telegram Bot API server, with users controlled "
                                    "over HTTP. It checks every\n"
                                    "call against the official list of methods. "
                                    "Stop it with Ctrl-C.\n",
                           .port = "8081",
                           .token = "100000001:dragoman-simulator-token",
                           .own = own,
                           .controls = tg_control_help },
                .open = open_world,
                .close = tg_world_free,
                .routes = routes,
                .refuse = refuse,
                .greet = greet,
                .send = tg_people_send,
        };

        return simulator_main(&ops, argc, argv);
}
