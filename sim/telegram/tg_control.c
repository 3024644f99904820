#include "sim/telegram/tg_control.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "sim/control.h"
#include "sim/options.h"
#include "sim/telegram/tg_call.h"
#include "sim/telegram/tg_files.h"
#include "sim/telegram/tg_people.h"
#include "sim/telegram/tg_updates.h"
#include "sim/telegram/tg_webhook.h"
#include "sim/telegram/tg_world.h"
#include "sim/world_settings.h"

#define MAX_UPLOAD_BODY (FILES_MAX_UPLOAD + (1 << 20))

const char control_help[] =
        "  POST /sim/send      a user writes: {\"from\":42,\"text\":\"hi\"}, or a list of those\n"
        "                      chat, text, entities, reply_to, message_thread_id, forward_from, "
        "photo,\n"
        "                      document, voice, ... : "
        "{\"content\":\"..\"|\"base64\":\"..\"|\"size\":n,\n"
        "                      \"file_name\":\"..\"}, caption, album: [..], location, contact, "
        "service\n"
        "  POST /sim/edit      {\"chat\":42,\"message_id\":1,\"text\":\"ho\"}\n"
        "  POST /sim/react     {\"chat\":42,\"message_id\":1,\"reaction\":[\"👍\"]}, [] takes it back\n"
        "  POST /sim/press     a button: {\"chat\":42,\"message_id\":2,\"data\":\"yes\"}\n"
        "  POST /sim/block     {\"user\":42,\"blocked\":true}\n"
        "  POST /sim/users     {\"id\":42,\"first_name\":\"Ada\",\"username\":\"ada\"}\n"
        "  POST /sim/chats     {\"type\":\"supergroup\",\"title\":\"Lobby\",\"forum\":true,\n"
        "                      \"bot_status\":\"administrator\"}; type group, supergroup or channel\n"
        "  POST /sim/topics    {\"chat\":-100..,\"name\":\"News\"}\n"
        "  POST /sim/members   {\"chat\":-100..,\"user\":7,\"status\":\"left\"}; without user the "
        "bot\n"
        "  POST /sim/migrate   {\"chat\":-5}: the group becomes a supergroup\n"
        "  POST /sim/bots      {\"token\":\"2:abc\",\"username\":\"x_bot\",\"privacy\":true}\n"
        "  GET  /sim/messages  what bots did: after, wait (ms), limit, chat, kind (message, edit,\n"
        "                      delete, reaction, action, callback_answer, topic, commands, leave)\n"
        "  GET  /sim/calls     every call with its validity: after, wait, limit, kind (a method),\n"
        "                      valid=false for the invalid ones only\n"
        "  GET  /sim/history   the messages of ?chat=\n"
        "  GET  /sim/state     bots, counters, settings\n"
        "  POST /sim/settings  {\"strict\":true,\"limits\":true,\"record_calls\":true,...}\n"
        "  POST /sim/faults    {\"kind\":\"cut_after\",\"method\":\"sendMessage\",\"next\":3};\n"
        "                      kinds cut_before, cut_after, slow, error, error_after, flood,\n"
        "                      duplicate, reorder, drop;\n"
        "                      or with \"probability\"; \"ms\", \"status\", \"retry_after\",\n"
        "                      \"within_chat\", \"seed\"\n"
        "  DELETE /sim/faults  no more of them; GET shows them\n";

/* ---- looking ---- */

static void run_history(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);
        const char *chat = http_query(x, "chat"), *bot = http_query(x, "bot");
        struct error err = { 0 };
        json_t *wish = json_object();
        struct chat *c;
        struct buf b = acts_begin();

        json_object_set_new(wish, "chat", json_integer(chat ? strtoll(chat, NULL, 10) : 0));
        if (bot)
                json_object_set_new(wish, "bot", json_string(bot));
        c = play_find_chat(w, wish, &err);
        json_decref(wish);
        if (!c) {
                acts_refuse(x, &err);
                buf_release(&b);
                return;
        }
        jsonw_open_member(&b, "messages", '[');
        for (int64_t id = c->last_id - (int64_t)c->ring_n; id <= c->last_id; id++) {
                const struct message *m = chat_message(c, id);

                if (m)
                        render_message(&b, NULL, m);
        }
        jsonw_close(&b, ']');
        acts_answer(x, &b);
}

/* clang-format off */
#define AT(field) offsetof(struct world_settings, field)
static const struct knob knobs[] = {
        { "strict",               KNOB_FLAG, AT(strict),           0, 0 },
        { "limits",               KNOB_FLAG, AT(limits),           0, 0 },
        { "record_calls",         KNOB_FLAG, AT(record_calls),     0, 0 },
        { "per_second",           KNOB_REAL, AT(per_second),       0, 0 },
        { "per_chat_per_second",  KNOB_REAL, AT(per_chat_second),  0, 0 },
        { "chat_burst",           KNOB_REAL, AT(chat_burst),       0, 0 },
        { "per_group_per_minute", KNOB_REAL, AT(per_group_minute), 0, 0 },
        { "keep_messages",        KNOB_SIZE, AT(keep_messages),    OPTIONS_KEEP_MIN, 1000000 },
        { 0 },
};
/* clang-format on */

static void write_counters(struct buf *b, const struct world *w)
{
        jsonw_open_member(b, "counters", '{');
        jsonw_int(b, "calls", (int64_t)w->call_count);
        jsonw_int(b, "invalid_calls", (int64_t)w->invalid_count);
        jsonw_int(b, "messages", (int64_t)w->message_count);
        jsonw_int(b, "edits", (int64_t)w->edit_count);
        jsonw_int(b, "updates", (int64_t)w->update_count);
        jsonw_int(b, "floods", (int64_t)w->flood_count);
        jsonw_int(b, "last_message", (int64_t)journal_last(w->sent));
        jsonw_int(b, "last_call", (int64_t)journal_last(w->calls));
        jsonw_close(b, '}');
}

static void run_state(struct http_exchange *x)
{
        struct world *w = http_server_arg(x);
        struct buf b = acts_begin();

        jsonw_open_member(&b, "bots", '[');
        for (const struct bot *bot = w->bots; bot; bot = bot->next) {
                jsonw_open(&b, '{');
                jsonw_str(&b, "token", bot->token);
                render_user(&b, "user", &bot->user);
                jsonw_bool(&b, "privacy", bot->privacy);
                jsonw_bool(&b, "webhook", webhook_is_set(bot->webhook));
                jsonw_int(&b, "pending_updates", (int64_t)updates_pending(bot->updates));
                jsonw_close(&b, '}');
        }
        jsonw_close(&b, ']');
        write_counters(&b, w);
        knobs_write(knobs, &w->settings, &b);
        faults_write(&w->faults, &b);
        acts_answer(x, &b);
}

/* ---- settings and faults ---- */

static int set_settings(struct world *w, const json_t *wish, struct buf *out, struct error *err)
{
        int64_t keep = json_int(wish, "keep_messages", (int64_t)w->settings.keep_messages);

        if (keep >= 0 && (size_t)keep < w->settings.keep_messages)
                return error_set(err, ERR_INVALID, "'keep_messages' can only grow");
        if (knobs_turn(knobs, &w->settings, sizeof(w->settings), wish, err) != 0)
                return -1;
        knobs_write(knobs, &w->settings, out);
        return 0;
}

static int add_fault(struct world *w, const json_t *wish, struct buf *out, struct error *err)
{
        return acts_add_fault(&w->faults, wish, out, err);
}

const struct http_route control_routes[] = {
        { "GET", "/:bot/:method", call_serve, 0, NULL },
        { "POST", "/:bot/:method", call_serve, MAX_UPLOAD_BODY, NULL },
        { "GET", "/file/:bot/:folder/:name", call_serve_file, 0, NULL },
        ACT_HELP(control_help),
        ACT_JOURNAL("/sim/messages", sent),
        ACT_CALLS("/sim/calls", calls, invalid),
        { "GET", "/sim/history", run_history, 0, NULL },
        { "GET", "/sim/state", run_state, 0, NULL },
        ACT_FAULTS(faults),
        ACT("/sim/faults", add_fault),
        ACT("/sim/settings", set_settings),
        ACT("/sim/send", play_send),
        ACT("/sim/edit", play_edit),
        ACT("/sim/react", play_react),
        ACT("/sim/press", play_press),
        ACT("/sim/block", play_block),
        ACT("/sim/users", play_user),
        ACT("/sim/chats", play_chat),
        ACT("/sim/topics", play_topic),
        ACT("/sim/members", play_member),
        ACT("/sim/migrate", play_migrate),
        ACT("/sim/bots", play_bot),
};
const size_t control_route_count = COUNT(control_routes);
