#include "sim/discord/dc_control.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/control.h"
#include "sim/discord/dc_call.h"
#include "sim/discord/dc_files.h"
#include "sim/discord/dc_gateway.h"
#include "sim/discord/dc_people.h"
#include "sim/discord/dc_signer.h"

const char dc_control_help[] =
        "  POST /sim/send         {\"from\":\"ada\",\"text\":\"hi\"}, or a list of those; channel "
        "(id or\n"
        "                         name; default: a direct message), reply_to, embeds, type, "
        "flags,\n"
        "                         extra, files: [{\"content\":\"..\",\"file_name\":\"..\"}] (or "
        "base64, size);\n"
        "                         <@dragoman> in the text mentions the bot\n"
        "  POST /sim/edit         {\"message_id\":\"..\",\"text\":\"ho\"}\n"
        "  POST /sim/delete       {\"message_id\":\"..\"}\n"
        "  POST /sim/react        {\"from\":\"ada\",\"message_id\":\"..\",\"emoji\":\"👍\"}\n"
        "  POST /sim/unreact      the same\n"
        "  POST /sim/typing       {\"from\":\"ada\",\"channel\":\"general\"}\n"
        "  POST /sim/thread       "
        "{\"channel\":\"general\",\"name\":\"News\",\"text\":\"..\",\"message_id\":\"..\"}\n"
        "  POST /sim/rename       {\"channel\":\"News\",\"name\":\"Old news\"}\n"
        "  POST /sim/archive      {\"channel\":\"News\",\"archived\":true,\"locked\":false}\n"
        "  POST /sim/event        "
        "{\"from\":\"ada\",\"name\":\"Catan\",\"start\":\"2030-01-01T18:00:00Z\",\n"
        "                         \"end\":\"..\",\"place\":\"..\"}; with event_id a change, also "
        "status\n"
        "                         (scheduled, active, completed, canceled), delete\n"
        "  POST /sim/interest     {\"from\":\"ada\",\"event_id\":\"..\",\"interested\":true}\n"
        "  POST /sim/press        {\"message_id\":\"..\",\"custom_id\":\"yes\",\"values\":[]}\n"
        "  POST /sim/command      "
        "{\"from\":\"ada\",\"name\":\"ask\",\"options\":{\"question\":\"why\"}}\n"
        "  POST /sim/modal        {\"custom_id\":\"form\",\"values\":{\"name\":\"Ada\"}}\n"
        "  POST /sim/users        "
        "{\"id\":\"7\",\"username\":\"bob\",\"guild\":\"Lab\",\"refuses\":false}\n"
        "  POST /sim/guilds       "
        "{\"name\":\"Lab\",\"members\":1000,\"channels\":50,\"unavailable\":false}\n"
        "  POST /sim/channels     {\"name\":\"help\",\"type\":\"forum\"}, "
        "{\"channel\":\"help\",\"remove\":true}\n"
        "  POST /sim/members      "
        "{\"from\":\"bob\",\"roles\":[\"mods\"],\"nick\":\"B\",\"leave\":false}\n"
        "  POST /sim/permissions  {\"channel\":\"general\",\"deny\":[\"SEND_MESSAGES\"]}, or with "
        "guild\n"
        "  POST /sim/bots         {\"token\":\"..\"} or "
        "{\"bot\":\"..\",\"intents\":[\"MESSAGE_CONTENT\"],\n"
        "                         "
        "\"interactions_url\":\"..\",\"starts_left\":5,\"new_token\":\"..\"}\n"
        "  GET  /sim/messages     actions of bots: after, wait (ms), limit, channel, kind "
        "(message,\n"
        "                         edit, delete, reaction, reaction_removed, typing, thread,\n"
        "                         thread_change, dm_open, commands, interaction_answer, "
        "follow_up,\n                         scheduled_event, ...)\n"
        "  GET  /sim/calls        API calls: after, wait, limit, kind (an operation), valid=false\n"
        "  GET  /sim/links        gateway connections: connect, identify, resume, heartbeat,\n"
        "                         presence, closed, gone\n"
        "  GET  /sim/history      the messages of ?channel=\n"
        "  GET  /sim/state        bots, guilds, sessions, counters, settings\n"
        "  POST /sim/settings     "
        "{\"strict\":true,\"limits\":true,\"heartbeat_ms\":41250,\"acks\":true,...}\n"
        "  POST /sim/gateway      {\"action\":\"cut\"}, reconnect, invalid_session (resumable), "
        "close\n"
        "                         (code), heartbeat, raw (text), event (event, d), expire; "
        "\"shard\"\n"
        "  POST /sim/faults       "
        "{\"kind\":\"cut_after\",\"method\":\"create_message\",\"next\":3}, or with\n"
        "                         \"probability\"; kinds: cut_before, cut_after, slow, error,\n"
        "                         error_after, flood (scope), duplicate, drop, reorder\n"
        "                         (list_messages), close (code), refuse, mute\n"
        "  DELETE /sim/faults     ends them; GET lists them\n";
/* clang-format on */

/* ---- views ---- */

static void run_history(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);
        json_t *request = json_object();
        struct error err = { 0 };
        struct buf b = control_begin();
        const char *names[] = { "channel", "from", "bot" };
        const struct channel *c;

        for (size_t i = 0; i < COUNT(names); i++) {
                if (http_query(x, names[i]))
                        json_object_set_new(request, names[i],
                                            json_string(http_query(x, names[i])));
        }
        c = dc_people_find_channel(w, request, &err);
        json_decref(request);
        if (!c) {
                control_refuse(x, &err);
                buf_release(&b);
                return;
        }
        jsonw_open_member(&b, "messages", '[');
        for (size_t i = 0; i < c->count; i++)
                dc_render_message(&b, NULL, w, c->messages[i], NULL, RENDER_NONCE);
        jsonw_close(&b, ']');
        control_answer(x, &b);
}

static void write_bots(struct buf *b, const struct world *w)
{
        jsonw_open_member(b, "bots", '[');
        for (const struct bot *bot = w->bots; bot; bot = bot->next) {
                jsonw_open(b, '{');
                jsonw_str(b, "token", bot->token);
                dc_render_user(b, "user", bot->user);
                jsonw_int(b, "starts_left", bot->starts_left);
                jsonw_bool(b, "token_reset", bot->token_reset);
                jsonw_opt(b, "interactions_url", bot->interactions_url);
                dc_render_json(b, "commands", bot->commands);
                dc_render_json(b, "guild_commands", bot->guild_commands);
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
}

static void write_guilds(struct buf *b, const struct world *w)
{
        jsonw_open_member(b, "guilds", '[');
        for (const struct guild *g = w->first_guild; g; g = g->next) {
                jsonw_open(b, '{');
                dc_render_id(b, "id", g->id);
                jsonw_str(b, "name", g->name);
                jsonw_open_member(b, "channels", '[');
                for (const struct channel *c = g->channels; c; c = c->next)
                        dc_render_channel(b, NULL, c);
                jsonw_close(b, ']');
                jsonw_open_member(b, "scheduled_events", '[');
                for (const struct scheduled_event *e = g->events; e; e = e->next)
                        dc_scheduled_event_render(b, NULL, e, true);
                jsonw_close(b, ']');
                jsonw_close(b, '}');
        }
        jsonw_close(b, ']');
}

static void write_counters(struct buf *b, const struct world *w)
{
        jsonw_open_member(b, "counters", '{');
        world_base_write_counters(&w->base, b);
        jsonw_int(b, "events", (int64_t)w->event_count);
        jsonw_int(b, "limited", (int64_t)w->limited_count);
        jsonw_int(b, "last_link", (int64_t)journal_last(w->links));
        jsonw_close(b, '}');
}

static void run_state(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);
        struct buf b = control_begin();

        jsonw_str(&b, "gateway", dc_gateway_url(w->gateway));
        jsonw_str(&b, "public_key", dc_signer_public(w->signer));
        write_bots(&b, w);
        write_guilds(&b, w);
        dc_gateway_control_write(w->gateway, &b);
        write_counters(&b, w);
        control_write_state(w, &b);
        control_answer(x, &b);
}

static void run_links(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);

        journal_serve(w->links, x);
}

static const struct http_route routes[] = {
        { "GET", "/attachments/:channel/:id/:name", dc_file_serve, 0, NULL },
        CONTROL_SHARED(dc_control_help),
        { "GET", "/sim/links", run_links, 0, NULL },
        { "GET", "/sim/history", run_history, 0, NULL },
        { "GET", "/sim/state", run_state, 0, NULL },
        CONTROL_POST("/sim/gateway", dc_gateway_control),
        CONTROL_POST("/sim/send", dc_people_send),
        CONTROL_POST("/sim/edit", dc_people_edit),
        CONTROL_POST("/sim/delete", dc_people_delete),
        CONTROL_POST("/sim/react", dc_people_react),
        CONTROL_POST("/sim/unreact", dc_people_unreact),
        CONTROL_POST("/sim/typing", dc_people_typing),
        CONTROL_POST("/sim/thread", dc_people_thread),
        CONTROL_POST("/sim/rename", dc_people_rename),
        CONTROL_POST("/sim/archive", dc_people_archive),
        CONTROL_POST("/sim/event", dc_people_event),
        CONTROL_POST("/sim/interest", dc_people_interest),
        CONTROL_POST("/sim/press", dc_people_interact_press),
        CONTROL_POST("/sim/command", dc_people_interact_command),
        CONTROL_POST("/sim/modal", dc_people_interact_modal),
        CONTROL_POST("/sim/users", dc_admin_user),
        CONTROL_POST("/sim/guilds", dc_admin_guild),
        CONTROL_POST("/sim/channels", dc_admin_channel),
        CONTROL_POST("/sim/members", dc_admin_member),
        CONTROL_POST("/sim/permissions", dc_admin_permissions),
        CONTROL_POST("/sim/bots", dc_admin_bot),
};

struct http_route *dc_control_routes(size_t *count)
{
        return dc_call_routes(routes, COUNT(routes), count);
}

void dc_control_refuse(void *arg, struct http_exchange *x, int status, const char *code,
                       const char *message)
{
        struct buf b;

        (void)arg;
        (void)code;
        buf_init(&b, 0);
        jsonw_open(&b, '{');
        jsonw_str(&b, "message",
                  status == 404   ? "404: Not Found"
                  : status == 405 ? "405: Method Not Allowed"
                  : status == 413 ? "Request entity too large"
                                  : message);
        jsonw_int(&b, "code", status == 413 ? 40005 : 0);
        jsonw_close(&b, '}');
        http_answer(x, status, "application/json", b.data, b.len);
        buf_release(&b);
}
