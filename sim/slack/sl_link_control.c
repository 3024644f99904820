/*
 * POST /sim/gateway: acts on connections and on the app's installation at once; POST /sim/endpoint:
 * where the app wants its events.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/slack/sl_link.h"
#include "sim/slack/sl_people.h"

#define WARNING_MS 10000
#define MUTE_MS    30000

/* ---- on each connection ---- */

static void run_cut(struct slack_link *l, const json_t *request)
{
        (void)request;
        ws_cut(l->ws);
}

static void run_close(struct slack_link *l, const json_t *request)
{
        l->closing = true;
        ws_close(l->ws, (int)json_int(request, "code", 1000), "");
}

/* Slack sees after a while that the connection is dead; until then payloads go there, too. */
static void run_mute(struct slack_link *l, const json_t *request)
{
        ws_mute(l->ws);
        l->muted = true;
        timer_start(l->life, json_int(request, "ms", MUTE_MS));
}

static void run_ping(struct slack_link *l, const json_t *request)
{
        (void)request;
        ws_ping(l->ws, "Ping from applink-sim");
}

static void run_raw(struct slack_link *l, const json_t *request)
{
        const char *text = json_str(request, "text", "");

        ws_send(l->ws, text, strlen(text), json_flag(request, "binary", false));
}

static void run_disconnect(struct slack_link *l, const json_t *request)
{
        const char *reason = json_str(request, "reason", "warning");

        if (strcmp(reason, "link_disabled") == 0)
                l->app->socket_off = true;
        sl_socket_disconnect(
                l, reason,
                json_int(request, "ms", strcmp(reason, "warning") == 0 ? WARNING_MS : 0));
}

/* ---- on the app ---- */

/* What Slack has not delivered, it never will: only the history has it. */
static int run_expire(struct slack_app *a, const json_t *request, struct error *err)
{
        struct slack_link *l;

        (void)request;
        (void)err;
        sl_push_forget(a->world->links, a);
        LIST_FOREACH(l, &a->world->links->list, next) {
                if (l->app == a)
                        ws_cut(l->ws);
        }
        return 0;
}

static int run_event(struct slack_app *a, const json_t *request, struct error *err)
{
        const json_t *event = json_object_get(request, "event"),
                     *payload = json_object_get(request, "payload");

        if (json_is_object(event))
                sl_push_to(a, json_deep_copy(event));
        else if (json_is_object(payload))
                sl_push_raw(a, SLACK_EVENT, json_deep_copy(payload));
        else
                return error_set(err, ERR_INVALID, "give an 'event', or a whole 'payload'");
        return 0;
}

static int run_enable(struct slack_app *a, const json_t *request, struct error *err)
{
        (void)request;
        (void)err;
        a->socket_off = a->disabled = false;
        a->posts = a->posts_failed = 0;
        free(a->token_error);
        free(a->app_token_error);
        a->token_error = a->app_token_error = NULL;
        return 0;
}

static int run_forge(struct slack_app *a, const json_t *request, struct error *err)
{
        static const char *const names[] = { [SLACK_BAD_SIGNATURE] = "signature",
                                             [SLACK_OLD] = "timestamp",
                                             [SLACK_UNSIGNED] = "unsigned" };
        const char *what = json_str(request, "what", "signature");

        if (!a->request_url)
                return error_set(err, ERR_CONFLICT, "the app has no request URL");
        for (size_t i = SLACK_BAD_SIGNATURE; i < COUNT(names); i++) {
                if (strcmp(names[i], what) == 0) {
                        sl_post_probe(a, (enum slack_forgery)i);
                        return 0;
                }
        }
        return error_set(err, ERR_INVALID, "'what' must be signature, timestamp or unsigned");
}

static void refuse_token(struct slack_app *a, const char *error)
{
        free(a->token_error);
        a->token_error = mem_strdup(error);
}

/* The app gets one event, then its token is refused. */
static int run_revoke(struct slack_app *a, const json_t *request, struct error *err)
{
        (void)err;
        sl_push_to(a, json_pack("{s:s,s:{s:[],s:[s]}}", "type", "tokens_revoked", "tokens", "oauth",
                                "bot", a->user->id));
        refuse_token(a, json_str(request, "error", "token_revoked"));
        return 0;
}

static int run_uninstall(struct slack_app *a, const json_t *request, struct error *err)
{
        run_revoke(a, request, err);
        sl_push_to(a, json_pack("{s:s}", "type", "app_uninstalled"));
        refuse_token(a, json_str(request, "error", "account_inactive"));
        return 0;
}

/* ---- the control API ---- */

static const struct {
        const char *name;
        void (*each)(struct slack_link *l, const json_t *request);
        int (*once)(struct slack_app *a, const json_t *request, struct error *err);
} actions[] = {
        { "cut", run_cut, NULL },       { "close", run_close, NULL },
        { "mute", run_mute, NULL },     { "ping", run_ping, NULL },
        { "raw", run_raw, NULL },       { "disconnect", run_disconnect, NULL },
        { "expire", NULL, run_expire }, { "event", NULL, run_event },
        { "enable", NULL, run_enable }, { "forge", NULL, run_forge },
        { "revoke", NULL, run_revoke }, { "uninstall", NULL, run_uninstall },
};

int sl_link_control(struct world *world, const json_t *request, struct buf *out, struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        struct slack_app *a = sl_people_find_app(w, request, err);
        const char *name = json_str(request, "action", "");
        int64_t number = json_int(request, "link", 0), count = 0;
        struct slack_link *l, *next;
        size_t i = 0;

        while (i < COUNT(actions) && strcmp(actions[i].name, name) != 0)
                i++;
        if (i == COUNT(actions))
                return error_set(err, ERR_INVALID,
                                 "'action' must be one of cut, close, mute, ping, raw, disconnect, "
                                 "expire, event, enable, forge, revoke, uninstall");
        if (!a || (actions[i].once && actions[i].once(a, request, err) != 0))
                return -1;
        for (l = LIST_FIRST(&w->links->list); l && actions[i].each; l = next) {
                next = LIST_NEXT(l, next);
                if (l->app != a || l->closing || (number && l->number != (uint64_t)number))
                        continue;
                actions[i].each(l, request);
                count++;
        }
        jsonw_int(out, "links", count);
        return 0;
}

static void set_url(char **slot, const json_t *request, const char *key)
{
        const json_t *value = json_object_get(request, key);

        if (!value)
                return;
        free(*slot);
        *slot = mem_strdup(json_string_value(value));
}

int sl_link_control_endpoint(struct world *world, const json_t *request, struct buf *out,
                             struct error *err)
{
        struct slack_world *w = sl_world_of(world);
        struct slack_app *a = sl_people_find_app(w, request, err);
        struct slack_link *l, *next;

        if (!a)
                return -1;
        set_url(&a->request_url, request, "url");
        set_url(&a->interactive_url, request, "interactive_url");
        set_url(&a->command_url, request, "command_url");
        a->disabled = false;
        jsonw_opt(out, "url", a->request_url);
        if (!a->request_url || !json_object_get(request, "url"))
                return 0;
        /* an app with a request URL has no Socket Mode */
        for (l = LIST_FIRST(&w->links->list); l; l = next) {
                next = LIST_NEXT(l, next);
                if (l->app == a && !l->closing)
                        sl_socket_disconnect(l, "link_disabled", 0);
        }
        sl_post_probe(a, SLACK_GENUINE);
        return 0;
}

void sl_link_control_write(const struct slack_links *links, struct buf *b)
{
        const struct slack_delivery *d;
        const struct slack_link *l;
        int64_t waiting = 0;

        jsonw_opt(b, "socket", links->url);
        jsonw_open_member(b, "links", '[');
        LIST_FOREACH(l, &links->list, next) {
                jsonw_open(b, '{');
                jsonw_int(b, "link", (int64_t)l->number);
                jsonw_opt(b, "app", l->app ? l->app->id : NULL);
                jsonw_bool(b, "greeted", l->greeted);
                jsonw_bool(b, "closing", l->closing);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
        TAILQ_FOREACH(d, &links->deliveries, next) {
                waiting++;
        }
        jsonw_int(b, "unacknowledged", waiting);
}
