/*
 * Methods about the app itself, its workspace and its people.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/slack/sl_methods.h"
#include "sim/slack/sl_push.h"

/* Echoes its arguments. */
int sl_method_api_test(struct slack_call *c)
{
        if (sl_call_text(c, "error"))
                return sl_call_fail(c, sl_call_text(c, "error"));
        sl_call_set_new(c, "args", json_incref(c->args));
        return 0;
}

int sl_method_auth_test(struct slack_call *c)
{
        char *url = mem_printf("https://%s.slack.com/", c->app->team->domain);

        sl_call_set(c, "url", url);
        sl_call_set(c, "team", c->app->team->name);
        sl_call_set(c, "user", c->app->user->name);
        sl_call_set(c, "team_id", c->app->team->id);
        sl_call_set(c, "user_id", c->app->user->id);
        sl_call_set(c, "bot_id", c->app->bot_id);
        sl_call_set_new(c, "is_enterprise_install", json_false());
        free(url);
        return 0;
}

int sl_method_open_connection(struct slack_call *c)
{
        char *url = sl_push_ticket(c->world->links, c->app->id);

        sl_call_set(c, "url", url);
        free(url);
        return 0;
}

int sl_method_team_info(struct slack_call *c)
{
        const struct slack_team *t = c->app->team;

        if (sl_call_text(c, "team"))
                t = sl_team_find(c->world, sl_call_text(c, "team"));
        if (!t)
                return sl_call_fail(c, "team_not_found");
        sl_call_set_new(c, "team",
                        json_pack("{s:s,s:s,s:s,s:s,s:{s:b}}", "id", t->id, "name", t->name,
                                  "domain", t->domain, "email_domain", "", "icon", "image_default",
                                  1));
        return 0;
}

int sl_method_bot_info(struct slack_call *c)
{
        const char *id = sl_call_text(c, "bot");
        const struct slack_app *a = id ? sl_app_find(c->world, id) : c->app;
        json_t *bot;

        if (!a || (id && strcmp(a->bot_id, id) != 0))
                return sl_call_fail(c, "bot_not_found");
        bot = sl_render_bot(a);
        json_object_del(bot, "team_id");
        json_object_set_new(bot, "user_id", json_string(a->user->id));
        sl_call_set_new(c, "bot", bot);
        return 0;
}

int sl_method_user_info(struct slack_call *c)
{
        const struct slack_user *u = sl_user_find(c->world, sl_call_text(c, "user"));

        if (!u)
                return sl_call_fail(c, "user_not_found");
        sl_call_set_new(c, "user", sl_render_user(u));
        return 0;
}
