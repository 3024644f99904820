#include "sim/slack/sl_control.h"

#include <string.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/control.h"
#include "sim/slack/sl_admin.h"
#include "sim/slack/sl_call.h"
#include "sim/slack/sl_file.h"
#include "sim/slack/sl_people.h"
#include "sim/slack/sl_push.h"
#include "sim/slack/sl_world.h"

#define MAX_BODY ((size_t)4 << 20)

const char sl_control_help[] =
        "  POST /sim/send         {\"from\":\"ada\",\"text\":\"hi\"}, or a list of those; channel "
        "(id or\n"
        "                         name; default: a direct message), users (a group direct "
        "message),\n"
        "                         thread (ts), broadcast, bot (another app speaks), twice (again\n"
        "                         under another ts), subtype, blocks, extra, files:\n"
        "                         [{\"content\":\"..\",\"file_name\":\"..\"}] (or base64, size);\n"
        "                         <@dragoman> in the text mentions the app\n"
        "  POST /sim/edit         {\"message_id\":\"..\",\"text\":\"ho\"}, or \"unfurl\": a URL\n"
        "  POST /sim/delete       {\"message_id\":\"..\"}\n"
        "  POST /sim/react        {\"from\":\"ada\",\"message_id\":\"..\",\"emoji\":\"thumbsup\"}\n"
        "  POST /sim/unreact      the same\n"
        "  POST /sim/press        {\"message_id\":\"..\",\"action_id\":\"..\"}, or by value or "
        "text\n"
        "  POST /sim/command      {\"from\":\"ada\",\"name\":\"/ask\",\"text\":\"why\"}\n"
        "  POST /sim/modal        {\"values\":{\"name\":\"Ada\"}} submits, {\"close\":true} "
        "closes\n"
        "  POST /sim/members      {\"from\":\"bob\",\"channel\":\"general\",\"leave\":false}\n"
        "  POST /sim/rename       {\"channel\":\"general\",\"name\":\"lobby\"}\n"
        "  POST /sim/assistant    {\"from\":\"ada\",\"context\":\"general\"} opens a thread; with "
        "thread\n"
        "                         (ts) the context changes\n"
        "  POST /sim/home         {\"from\":\"ada\",\"tab\":\"home\"}\n"
        "  POST /sim/context      {\"from\":\"ada\",\"context\":\"general\"}: what they see beside "
        "the app\n"
        "  POST /sim/gateway      {\"action\":\"cut\"}, close (code), mute, ping, raw (text),\n"
        "                         disconnect (reason, ms), expire, event (event or payload), "
        "enable,\n"
        "                         forge (what), revoke, uninstall; \"link\", \"app\"\n"
        "  POST /sim/endpoint     {\"url\":\"http://..\",\"interactive_url\":\"..\",\n"
        "                         \"command_url\":\"..\"}; null goes back to Socket Mode\n"
        "  POST /sim/users        {\"id\":\"U7\",\"name\":\"bob\",\"channel\":\"general\"}; "
        "real_name,\n"
        "                         display_name, team, deleted, guest\n"
        "  POST /sim/channels     "
        "{\"name\":\"help\",\"type\":\"private\",\"members\":[\"bob\"]}; topic,\n"
        "                         purpose, archived, shared, without_app, team\n"
        "  POST /sim/teams        {\"id\":\"T2\",\"name\":\"Other\"}\n"
        "  POST /sim/apps         {\"token\":\"xoxb-2\",\"team\":\"T2\"} makes one, "
        "{\"app\":\"dragoman\"}\n"
        "                         changes one: scopes, without_scopes, events, token_error,\n"
        "                         app_token_error, signing_secret, app_token, assistant\n"
        "  POST /sim/stop_stream  {\"message_id\":\"..\"}: a person stops a growing message\n"
        "  GET  /sim/messages     actions of apps: after, wait (ms), limit, kind (message, edit,\n"
        "                         delete, ephemeral, reaction, reaction_removed, stream, append,\n"
        "                         stop_stream, status, title, prompts, view, view_update, home,\n"
        "                         open, join, pin, unpin, file_delete)\n"
        "  GET  /sim/calls        API calls: after, wait, limit, kind (a method), valid=false\n"
        "  GET  /sim/links        connections of Socket Mode and posts to request URLs\n"
        "  GET  /sim/history      the messages of ?channel=\n"
        "  GET  /sim/state        apps, users, conversations, counters, settings\n"
        "  POST /sim/settings     {\"strict\":true,\"limits\":true,...}\n"
        "  POST /sim/faults       "
        "{\"kind\":\"cut_after\",\"method\":\"chat.postMessage\",\"next\":3}, or with\n"
        "                         \"probability\"; kinds: cut_before, cut_after, slow, error,\n"
        "                         error_after, flood, refuse (description: Slack's error),\n"
        "                         bad_json (an HTML page), truncate, late\n"
        "  DELETE /sim/faults     ends them; GET lists them\n";

static void run_history(struct http_exchange *x)
{
        struct slack_world *w = http_server_arg(x);
        const struct slack_channel *c = sl_channel_by_name(w, http_query(x, "channel"));
        struct error err = { 0 };
        json_t *list;

        if (!c) {
                error_set(&err, ERR_MISSING, "no channel '%s'",
                          http_query(x, "channel") ? http_query(x, "channel") : "");
                control_refuse(x, &err);
                return;
        }
        list = json_array();
        for (size_t i = 0; i < c->count; i++)
                json_array_append_new(list,
                                      sl_render_message(w, c->messages[i], SLACK_RENDER_METADATA));
        http_answer_json(x, 200, json_pack("{s:b,s:o}", "ok", 1, "messages", list));
}

static json_t *list_apps(const struct slack_world *w)
{
        json_t *list = json_array();

        for (const struct slack_app *a = w->apps; a; a = a->next)
                json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:O}", "id",
                                                      a->id, "token", a->token, "app_token",
                                                      a->app_token, "signing_secret",
                                                      a->signing_secret, "user", a->user->id,
                                                      "name", a->user->name, "bot_id", a->bot_id,
                                                      "team", a->team->id, "scopes", a->scopes));
        return list;
}

static void write_json(struct buf *b, const char *key, json_t *value)
{
        char *text = json_dumps(value, JSON_COMPACT);

        jsonw_raw(b, key, text);
        free(text);
        json_decref(value);
}

static void run_state(struct http_exchange *x)
{
        struct slack_world *w = http_server_arg(x);
        struct buf b = control_begin();
        json_t *channels = json_array(), *users = json_array();

        for (const struct slack_channel *c = w->first_channel; c; c = c->next)
                json_array_append_new(channels, sl_render_channel(c, w->apps));
        for (const struct slack_user *u = w->first_user; u; u = u->next)
                json_array_append_new(users, json_pack("{s:s,s:s,s:s}", "id", u->id, "name",
                                                       u->name, "team", u->team->id));
        write_json(&b, "apps", list_apps(w));
        write_json(&b, "channels", channels);
        write_json(&b, "users", users);
        sl_link_control_write(w->links, &b);
        jsonw_open_member(&b, "counters", '{');
        world_base_write_counters(&w->base, &b);
        jsonw_int(&b, "edits", (int64_t)w->edit_count);
        jsonw_int(&b, "events", (int64_t)w->event_count);
        jsonw_int(&b, "limited", (int64_t)w->limited_count);
        jsonw_int(&b, "last_link", (int64_t)journal_last(w->link_log));
        jsonw_close(&b, '}');
        control_write_state((const struct world *)w, &b);
        control_answer(x, &b);
}

static void run_links(struct http_exchange *x)
{
        struct slack_world *w = http_server_arg(x);

        journal_serve(w->link_log, x);
}

static const struct http_route routes[] = {
        { "GET", "/api/:method", sl_call_serve, 0, NULL },
        { "POST", "/api/:method", sl_call_serve, MAX_BODY, NULL },
        { "POST", "/actions/:team/:id/:secret", sl_call_serve_response, MAX_BODY, NULL },
        { "POST", "/upload/v1/:token", sl_file_upload, SL_FILE_MAX + MAX_BODY, NULL },
        { "GET", "/files-pri/:file/:name", sl_file_download, 0, NULL },
        { "GET", "/files-pri/:file/download/:name", sl_file_download, 0, NULL },
        CONTROL_SHARED(sl_control_help),
        { "GET", "/sim/links", run_links, 0, NULL },
        { "GET", "/sim/history", run_history, 0, NULL },
        { "GET", "/sim/state", run_state, 0, NULL },
        CONTROL_POST("/sim/gateway", sl_link_control),
        CONTROL_POST("/sim/endpoint", sl_link_control_endpoint),
        CONTROL_POST("/sim/send", sl_people_send),
        CONTROL_POST("/sim/edit", sl_people_edit),
        CONTROL_POST("/sim/delete", sl_people_delete),
        CONTROL_POST("/sim/react", sl_people_react),
        CONTROL_POST("/sim/unreact", sl_people_unreact),
        CONTROL_POST("/sim/members", sl_people_places_member),
        CONTROL_POST("/sim/rename", sl_people_places_rename),
        CONTROL_POST("/sim/assistant", sl_people_places_assistant),
        CONTROL_POST("/sim/home", sl_people_places_home),
        CONTROL_POST("/sim/context", sl_people_places_context),
        CONTROL_POST("/sim/press", sl_people_interact_press),
        CONTROL_POST("/sim/command", sl_people_interact_command),
        CONTROL_POST("/sim/modal", sl_people_interact_modal),
        CONTROL_POST("/sim/teams", sl_admin_team),
        CONTROL_POST("/sim/users", sl_admin_user),
        CONTROL_POST("/sim/channels", sl_admin_channel),
        CONTROL_POST("/sim/apps", sl_admin_app),
        CONTROL_POST("/sim/stop_stream", sl_admin_stop_stream),
};

struct http_route *sl_control_routes(size_t *count)
{
        struct http_route *copy = mem_array(COUNT(routes), sizeof(*copy));

        memcpy(copy, routes, sizeof(routes));
        *count = COUNT(routes);
        return copy;
}

void sl_control_refuse(void *arg, struct http_exchange *x, int status, const char *code,
                       const char *message)
{
        (void)arg;
        (void)code;
        http_answer_json(x, status, json_pack("{s:b,s:s}", "ok", 0, "error", message));
}
