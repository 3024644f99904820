#include "sim/telegram/tg_control.h"

#include <stdlib.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/control.h"
#include "sim/telegram/tg_call.h"
#include "sim/telegram/tg_files.h"
#include "sim/telegram/tg_people.h"
#include "sim/telegram/tg_updates.h"
#include "sim/telegram/tg_webhook.h"
#include "sim/telegram/tg_world.h"

#define MAX_UPLOAD_BODY (FILES_MAX_UPLOAD + (1 << 20))

const char tg_control_help[] =
        "  POST /sim/send      {\"from\":42,\"text\":\"hi\"}, or a list of those; chat, entities,\n"
        "                      reply_to, message_thread_id, forward_from, caption, album: [..],\n"
        "                      location, contact, service; photo, document, voice, ...:\n"
        "                      {\"content\":\"..\",\"file_name\":\"..\"} (or base64, size)\n"
        "  POST /sim/edit      {\"chat\":42,\"message_id\":1,\"text\":\"ho\"}\n"
        "  POST /sim/react     {\"chat\":42,\"message_id\":1,\"reaction\":[\"👍\"]}; [] removes it\n"
        "  POST /sim/press     {\"chat\":42,\"message_id\":2,\"data\":\"yes\"}\n"
        "  POST /sim/block     {\"user\":42,\"blocked\":true}\n"
        "  POST /sim/users     {\"id\":42,\"first_name\":\"Ada\",\"username\":\"ada\"}\n"
        "  POST /sim/chats     {\"type\":\"supergroup\",\"title\":\"Lobby\",\"forum\":true,\n"
        "                      \"bot_status\":\"administrator\"}; type group, supergroup or "
        "channel\n"
        "  POST /sim/topics    {\"chat\":-100..,\"name\":\"News\"}\n"
        "  POST /sim/members   {\"chat\":-100..,\"user\":7,\"status\":\"left\"}; default user: "
        "the bot;\n"
        "                      can_manage_topics: false takes that right from an administrator\n"
        "  POST /sim/migrate   {\"chat\":-5}: the group becomes a supergroup\n"
        "  POST /sim/bots      {\"token\":\"2:abc\",\"username\":\"x_bot\",\"privacy\":true}\n"
        "  GET  /sim/messages  actions of bots: after, wait (ms), limit, chat, kind (message,\n"
        "                      edit, delete, reaction, action, callback_answer, topic,\n"
        "                      topic_change, commands, leave)\n"
        "  GET  /sim/calls     API calls: after, wait, limit, kind (a method), valid=false\n"
        "  GET  /sim/history   the messages of ?chat=\n"
        "  GET  /sim/state     bots, counters, settings\n"
        "  POST /sim/settings  {\"strict\":true,\"limits\":true,\"record_calls\":true,...}\n"
        "  POST /sim/faults    {\"kind\":\"cut_after\",\"method\":\"sendMessage\",\"next\":3}, or "
        "with\n"
        "                      \"probability\"; kinds: cut_before, cut_after, slow, error,\n"
        "                      error_after, flood, duplicate, reorder, drop; also \"ms\", "
        "\"status\",\n"
        "                      \"retry_after\", \"within_chat\", \"seed\"\n"
        "  DELETE /sim/faults  ends them; GET lists them\n";

/* ---- views ---- */

static void run_history(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);
        const char *chat = http_query(x, "chat"), *bot = http_query(x, "bot");
        struct error err = { 0 };
        json_t *request = json_object();
        struct chat *c;
        struct buf b = control_begin();

        json_object_set_new(request, "chat", json_integer(chat ? strtoll(chat, NULL, 10) : 0));
        if (bot)
                json_object_set_new(request, "bot", json_string(bot));
        c = tg_people_find_chat(w, request, &err);
        json_decref(request);
        if (!c) {
                control_refuse(x, &err);
                buf_release(&b);
                return;
        }
        jsonw_open_member(&b, "messages", '[');
        for (size_t i = 0; i < c->ring_n; i++) {
                const struct message *m = tg_chat_message_at(c, i);

                if (m)
                        tg_render_message(&b, NULL, m);
        }
        jsonw_close(&b, ']');
        control_answer(x, &b);
}

static void write_counters(struct buf *b, const struct world *w)
{
        jsonw_open_member(b, "counters", '{');
        world_base_write_counters(&w->base, b);
        jsonw_int(b, "edits", (int64_t)w->edit_count);
        jsonw_int(b, "updates", (int64_t)w->update_count);
        jsonw_int(b, "floods", (int64_t)w->flood_count);
        jsonw_close(b, '}');
}

static void run_state(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);
        struct buf b = control_begin();

        jsonw_open_member(&b, "bots", '[');
        for (const struct bot *bot = w->bots; bot; bot = bot->next) {
                jsonw_open(&b, '{');
                jsonw_str(&b, "token", bot->token);
                tg_render_user(&b, "user", &bot->user);
                jsonw_bool(&b, "privacy", bot->privacy);
                jsonw_bool(&b, "webhook", tg_webhook_is_set(bot->webhook));
                jsonw_int(&b, "pending_updates", (int64_t)tg_updates_pending(bot->updates));
                jsonw_close(&b, '}');
        }
        jsonw_close(&b, ']');
        write_counters(&b, w);
        control_write_state(w, &b);
        control_answer(x, &b);
}

const struct http_route tg_control_routes[] = {
        { "GET", "/:bot/:method", tg_call_serve, 0, NULL },
        { "POST", "/:bot/:method", tg_call_serve, MAX_UPLOAD_BODY, NULL },
        { "GET", "/file/:bot/:folder/:name", tg_call_serve_file, 0, NULL },
        CONTROL_SHARED(tg_control_help),
        { "GET", "/sim/history", run_history, 0, NULL },
        { "GET", "/sim/state", run_state, 0, NULL },
        CONTROL_POST("/sim/send", tg_people_send),
        CONTROL_POST("/sim/edit", tg_people_edit),
        CONTROL_POST("/sim/react", tg_people_react),
        CONTROL_POST("/sim/press", tg_people_press),
        CONTROL_POST("/sim/block", tg_people_block),
        CONTROL_POST("/sim/users", tg_admin_user),
        CONTROL_POST("/sim/chats", tg_admin_chat),
        CONTROL_POST("/sim/topics", tg_admin_topic),
        CONTROL_POST("/sim/members", tg_admin_member),
        CONTROL_POST("/sim/migrate", tg_people_migrate),
        CONTROL_POST("/sim/bots", tg_admin_bot),
};
const size_t tg_control_route_count = COUNT(tg_control_routes);
