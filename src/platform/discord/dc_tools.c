/*
 * Tools for agents and the API, and lookups. Every id a tool takes is in the result of another
 * one. Sends, edits, deletions and reactions go through the outbox, like an agent's answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/discord.h"
#include "platform/platform_tool.h"

#define READ_LIMIT 20
#define READ_MAX   100 /* Discord's */

struct dc_tool_call {
        struct discord *dc;
        platform_tool_fn *done;
        void *arg;
        json_t *result;
        char *guild;
};

static struct dc_tool_call *call_new(struct adapter *a, platform_tool_fn *done, void *arg)
{
        struct dc_tool_call *t = mem_zalloc(sizeof(*t));

        t->dc = a->self;
        t->done = done;
        t->arg = arg;
        return t;
}

/* Takes the result over; NULL with an error. */
static void finish(struct dc_tool_call *t, json_t *result, const struct error *err)
{
        platform_tool_answer(result, err, t->done, t->arg);
        json_decref(t->result);
        free(t->guild);
        free(t);
}

static void fail_with(struct dc_tool_call *t, const struct dc_answer *a)
{
        struct error err = { 0 };

        dc_outcome_error(a, &err);
        finish(t, NULL, &err);
}

static void ask(struct dc_tool_call *t, const char *route, const char *id, const char *query,
                dc_answer_fn *done)
{
        dc_rest_get(t->dc->rest, &(struct dc_get){ route, { id }, query }, done, t);
}

static const struct tool_ids discord_ids = { dc_id_valid, "an id of Discord: digits" };

static const char *id_of(const json_t *arguments, const char *name, bool required,
                         char space[DC_ID_SIZE], struct error *err)
{
        return platform_tool_id(arguments, name, required, &discord_ids, space, err);
}

/* ---- deliveries ---- */

static void submit(struct adapter *a, enum delivery_kind kind, unsigned needs,
                   const struct tool_request *q, platform_tool_fn *done, void *arg)
{
        const struct discord *dc = a->self;
        struct dc_channel_info info;
        struct tool_sending s;
        struct error err = { 0 };

        if (platform_tool_sending(a, kind, needs, q, &discord_ids, &discord_ids, &s, &err) < 0) {
                platform_tool_refuse(a, done, arg, &err);
                return;
        }
        if (!(needs & TOOL_PERSON) && dc->intake &&
            dc_intake_channel(dc->intake, s.out.channel, &info) && info.parent) {
                s.out.thread = s.out.channel;
                snprintf(s.place, sizeof(s.place), "%s", info.parent);
                s.out.channel = s.place;
        }
        platform_tool_submit(a, &s.out, done, arg);
}

static json_t *message_json(const json_t *m)
{
        const json_t *author = json_object_get(m, "author");
        const char *username = json_str(author, "username", ""),
                   *about = json_str(json_object_get(m, "message_reference"), "message_id", NULL);
        json_t *files = json_array(), *o, *file;
        char when[CLOCK_ISO_SIZE];
        size_t i;

        json_array_foreach(json_object_get(m, "attachments"), i, file)
                json_array_append_new(files, json_string(json_str(file, "filename", "file")));
        clock_iso(dc_id_time_ms(json_str(m, "id", NULL)), when);
        o = json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:b}, s:s}", "id", json_str(m, "id", ""),
                      "time", when, "author", "id", json_str(author, "id", ""), "username",
                      username, "name", json_str(author, "global_name", username), "bot",
                      json_flag(author, "bot", false), "text", json_str(m, "content", ""));
        if (about)
                json_object_set_new(o, "replyTo", json_string(about));
        if (json_array_size(files) > 0)
                json_object_set(o, "files", files);
        json_decref(files);
        return o;
}

static void on_read(void *arg, const struct dc_answer *a)
{
        struct dc_tool_call *t = arg;
        json_t *list;

        if (!a->ok) {
                fail_with(t, a);
                return;
        }
        list = json_array();
        for (size_t i = json_array_size(a->result); i > 0; i--)
                json_array_append_new(list, message_json(json_array_get(a->result, i - 1)));
        finish(t, json_pack("{s:o}", "messages", list), NULL);
}

static void tool_read(struct adapter *a, const struct tool_request *q, platform_tool_fn *done,
                      void *arg)
{
        struct error err = { 0 };
        char channel_space[DC_ID_SIZE], before_space[DC_ID_SIZE], query[60];
        const char *channel = id_of(q->arguments, "channel_id", true, channel_space, &err);
        const char *before = id_of(q->arguments, "before", false, before_space, &err);
        int64_t limit = json_int(q->arguments, "limit", READ_LIMIT);

        if (err.kind != ERR_NONE) {
                platform_tool_refuse(a, done, arg, &err);
                return;
        }
        limit = limit < 1 ? 1 : limit > READ_MAX ? READ_MAX : limit;
        snprintf(query, sizeof(query), "limit=%d%s%s", (int)limit, before ? "&before=" : "",
                 before ? before : "");
        ask(call_new(a, done, arg), "/channels/{channel_id}/messages", channel, query, on_read);
}

static void on_self(void *arg, const struct dc_answer *a)
{
        struct dc_tool_call *t = arg;
        const struct setting_list *admins = &t->dc->adapter->common->admins;
        const char *person = dc_destination_person(t->dc, DC_OPERATOR),
                   *dm = person ? dc_destination_dm(t->dc, person) : NULL;
        json_t *ids;

        if (!a->ok) {
                fail_with(t, a);
                return;
        }
        ids = json_array();
        for (size_t i = 0; i < admins->count; i++)
                json_array_append_new(ids, json_string(admins->items[i]));
        finish(t,
               json_pack("{s:s, s:s, s:s?, s:o, s:s?}", "id", json_str(a->result, "id", ""),
                         "username", json_str(a->result, "username", ""), "applicationId",
                         t->dc->self.application, "operators", ids, "operatorDm", dm),
               NULL);
}

static void tool_whoami(struct adapter *a, const struct tool_request *q, platform_tool_fn *done,
                        void *arg)
{
        (void)q;
        ask(call_new(a, done, arg), "/users/@me", NULL, NULL, on_self);
}

/* ---- servers and channels ---- */

static void on_guilds(void *arg, const struct dc_answer *a)
{
        struct dc_tool_call *t = arg;
        json_t *list, *g;
        size_t i;

        if (!a->ok) {
                fail_with(t, a);
                return;
        }
        list = json_array();
        json_array_foreach(a->result, i, g)
                json_array_append_new(list, json_pack("{s:s, s:s}", "id", json_str(g, "id", ""),
                                                      "name", json_str(g, "name", "")));
        finish(t, json_pack("{s:o}", "guilds", list), NULL);
}

static void tool_guilds(struct adapter *a, const struct tool_request *q, platform_tool_fn *done,
                        void *arg)
{
        struct error err = { 0 };
        char space[DC_ID_SIZE], query[60];
        const char *after = id_of(q->arguments, "after", false, space, &err);

        if (err.kind != ERR_NONE) {
                platform_tool_refuse(a, done, arg, &err);
                return;
        }
        snprintf(query, sizeof(query), "limit=200%s%s", after ? "&after=" : "", after ? after : "");
        ask(call_new(a, done, arg), "/users/@me/guilds", NULL, query, on_guilds);
}

static void add_channels(json_t *list, const json_t *answer)
{
        static const char *const types[] = {
                [0] = "text",    [2] = "voice",   [4] = "category",        [5] = "announcement",
                [10] = "thread", [11] = "thread", [12] = "private thread", [13] = "stage",
                [15] = "forum",  [16] = "media"
        };
        json_t *c;
        size_t i;

        json_array_foreach(answer, i, c) {
                int64_t type = json_int(c, "type", -1);
                bool known = type >= 0 && (size_t)type < COUNT(types) && types[type];
                json_t *o =
                        json_pack("{s:s, s:s, s:s}", "id", json_str(c, "id", ""), "name",
                                  json_str(c, "name", ""), "type", known ? types[type] : "other");

                if (json_str(c, "parent_id", NULL))
                        json_object_set_new(o, "parent",
                                            json_string(json_str(c, "parent_id", NULL)));
                if (json_str(c, "topic", NULL))
                        json_object_set_new(o, "topic", json_string(json_str(c, "topic", NULL)));
                json_array_append_new(list, o);
        }
}

/* Without permission to see threads the list has none. */
static void on_threads(void *arg, const struct dc_answer *a)
{
        struct dc_tool_call *t = arg;
        json_t *result = json_pack("{s:s, s:O}", "guildId", t->guild, "channels", t->result);

        if (a->ok)
                add_channels(t->result, json_object_get(a->result, "threads"));
        finish(t, result, NULL);
}

static void on_channels(void *arg, const struct dc_answer *a)
{
        struct dc_tool_call *t = arg;

        if (!a->ok) {
                fail_with(t, a);
                return;
        }
        t->result = json_array();
        add_channels(t->result, a->result);
        ask(t, "/guilds/{guild_id}/threads/active", t->guild, NULL, on_threads);
}

/* Takes the only server, else the error lists them. */
static void on_choice(void *arg, const struct dc_answer *a)
{
        struct dc_tool_call *t = arg;
        struct error err = { 0 };
        struct buf text;

        if (!a->ok) {
                fail_with(t, a);
                return;
        }
        if (json_array_size(a->result) == 1) {
                t->guild = mem_strdup(json_str(json_array_get(a->result, 0), "id", ""));
                ask(t, "/guilds/{guild_id}/channels", t->guild, NULL, on_channels);
                return;
        }
        buf_init(&text, sizeof(err.text) - 20);
        buf_addstr(&text, json_array_size(a->result) ? "'guild_id' must say which server is meant:"
                                                     : "the bot is in no server");
        for (size_t i = 0; i < json_array_size(a->result); i++) {
                const json_t *g = json_array_get(a->result, i);

                buf_addf(&text, "%s %s (%s)", i ? "," : "", json_str(g, "id", ""),
                         json_str(g, "name", ""));
        }
        error_set(&err, ERR_INVALID, "%s", text.data);
        buf_release(&text);
        finish(t, NULL, &err);
}

static void tool_channels(struct adapter *a, const struct tool_request *q, platform_tool_fn *done,
                          void *arg)
{
        struct error err = { 0 };
        char space[DC_ID_SIZE];
        const char *guild = id_of(q->arguments, "guild_id", false, space, &err);
        struct dc_tool_call *t;

        if (err.kind != ERR_NONE) {
                platform_tool_refuse(a, done, arg, &err);
                return;
        }
        t = call_new(a, done, arg);
        t->guild = mem_strdup(guild);
        if (guild)
                ask(t, "/guilds/{guild_id}/channels", guild, NULL, on_channels);
        else
                ask(t, "/users/@me/guilds", NULL, "limit=200", on_choice);
}

#define ID(text) "{\"type\":\"string\",\"pattern\":\"^[0-9]{1,20}$\"," TOOL_HELP(text)
#define CHANNEL  "\"channel_id\":" ID("A channel or thread, from discord_list_channels")
#define MESSAGE  "\"message_id\":" ID("A message, from discord_read")
#define CONTENT  "\"content\":" TOOL_TEXT("Markdown; long texts become several messages")

const struct platform_tool dc_tools[] = {
        { { "discord_send", "Sends a message to a channel or thread of Discord.",
            TOOL_OBJECT(CHANNEL "," CONTENT
                                ",\"reply_to\":" ID("A message of the same channel to answer"),
                        "\"channel_id\",\"content\""),
            TOOL_IN_CHAT, .writes = true },
          .submit = submit,
          .kind = DELIVER_SEND,
          .needs = TOOL_CONTENT },
        { { "discord_dm", "Sends a direct message to a person on Discord.",
            TOOL_OBJECT(
                    "\"user_id\":" ID("A person, from discord_read or discord_whoami") "," CONTENT,
                    "\"user_id\",\"content\""),
            TOOL_ANYWHERE, .writes = true },
          .submit = submit,
          .kind = DELIVER_SEND,
          .needs = TOOL_PERSON | TOOL_CONTENT },
        { { "discord_read", "Reads the last messages of a channel or thread, oldest first.",
            TOOL_OBJECT(CHANNEL "," TOOL_LIMIT ",\"before\":" ID("Only messages before this one"),
                        "\"channel_id\""),
            TOOL_IN_CHAT },
          .call = tool_read },
        { { "discord_react", "Reacts to a message with an emoji.",
            TOOL_OBJECT(CHANNEL "," MESSAGE ",\"emoji\":" TOOL_TEXT(
                                "The emoji itself, or name:id of a custom one"),
                        "\"channel_id\",\"message_id\",\"emoji\""),
            TOOL_IN_CHAT, .writes = true },
          .submit = submit,
          .kind = DELIVER_REACT,
          .needs = TOOL_MESSAGE_ID | TOOL_EMOJI },
        { { "discord_edit", "Replaces the text of a message the bot has sent.",
            TOOL_OBJECT(CHANNEL "," MESSAGE "," CONTENT,
                        "\"channel_id\",\"message_id\",\"content\""),
            TOOL_IN_CHAT, .writes = true },
          .submit = submit,
          .kind = DELIVER_EDIT,
          .needs = TOOL_MESSAGE_ID | TOOL_CONTENT },
        { { "discord_delete", "Deletes a message.",
            TOOL_OBJECT(CHANNEL "," MESSAGE, "\"channel_id\",\"message_id\""), TOOL_IN_CHAT,
            .writes = true },
          .submit = submit,
          .kind = DELIVER_DELETE,
          .needs = TOOL_MESSAGE_ID },
        { { "discord_create_thread",
            "Starts a thread at a message; the thread gets the message's id.",
            TOOL_OBJECT(CHANNEL "," MESSAGE ",\"name\":" TOOL_TEXT("At most 100 characters"),
                        "\"channel_id\",\"message_id\",\"name\""),
            TOOL_IN_CHAT, .writes = true },
          .submit = submit,
          .kind = DELIVER_THREAD,
          .needs = TOOL_MESSAGE_ID | TOOL_NAME },
        { { "discord_list_guilds", "Lists the servers the bot is in.",
            TOOL_OBJECT("\"after\":" ID("Only those after this one"), ""), TOOL_ANYWHERE },
          .call = tool_guilds },
        { { "discord_list_channels",
            "Lists channels and active threads of a server; without guild_id of the only one.",
            TOOL_OBJECT("\"guild_id\":" ID("A server, from discord_list_guilds"), ""),
            TOOL_ANYWHERE },
          .call = tool_channels },
        { { "discord_whoami", "Shows the bot's name and id, and the ids of its operators.",
            TOOL_OBJECT("", "") },
          .call = tool_whoami },
        { .call = NULL },
};

/* ---- lookups for the road and the API ---- */

struct query_job {
        struct discord *dc;
        void *arg;
        const char *message; /* for the call alone */
        union {
                channel_history_fn *history;
                channel_info_fn *channel;
                user_info_fn *user;
        } done;
};

static void start_query(struct discord *dc, const struct query_job *query, const char *route,
                        const char *id, const char *parameters, dc_answer_fn *done)
{
        struct query_job *job = mem_dup(query, sizeof(*query));

        job->dc = dc;
        dc_rest_get(dc->rest, &(struct dc_get){ route, { id, query->message }, parameters }, done,
                    job);
}

static struct channel_message read_line(const struct discord *dc, const json_t *m)
{
        const json_t *author = json_object_get(m, "author"),
                     *snapshot = json_array_get(json_object_get(m, "message_snapshots"), 0),
                     *embed = json_array_get(json_object_get(m, "embeds"), 0);
        const char *sender = json_str(author, "id", ""), *text = json_str(m, "content", "");

        if (!*text && snapshot) /* a forwarded message */
                text = json_str(json_object_get(snapshot, "message"), "content", "");
        if (!*text) /* a card */
                text = json_str(embed, "title", json_str(embed, "description", ""));
        return (struct channel_message){
                .id = json_str(m, "id", ""),
                .sender_id = sender,
                .sender_name = json_str(author, "global_name", json_str(author, "username", NULL)),
                .is_own = dc->self.id && strcmp(sender, dc->self.id) == 0,
                .is_bot = json_flag(author, "bot", false) || json_str(m, "webhook_id", NULL),
                .text = text,
                .time_ms = dc_id_time_ms(json_str(m, "id", NULL))
        };
}

/* Discord lists the newest message first. */
static void on_messages(void *arg, const struct dc_answer *a)
{
        struct query_job *job = arg;
        size_t n = a->ok ? json_array_size(a->result) : 0;
        struct channel_message *lines = mem_array(n + 1, sizeof(*lines));
        struct error err = { 0 };

        for (size_t i = 0; i < n; i++)
                lines[i] = read_line(job->dc, json_array_get(a->result, n - 1 - i));
        if (!a->ok)
                dc_outcome_error(a, &err);
        if (job->dc->adapter->road) /* else the road has closed */
                job->done.history(job->arg, lines, n, a->ok ? NULL : &err);
        free(lines);
        free(job);
}

void dc_tools_history(struct adapter *a, const char *channel, const char *thread, unsigned limit,
                      channel_history_fn *done, void *arg)
{
        struct discord *dc = a->self;
        char parameters[24];

        limit = limit < 1 ? 1 : limit > READ_MAX ? READ_MAX : limit;
        snprintf(parameters, sizeof(parameters), "limit=%u", limit);
        start_query(dc, &(struct query_job){ .arg = arg, .done.history = done },
                    "/channels/{channel_id}/messages", dc_destination_channel(dc, channel, thread),
                    parameters, on_messages);
}

static void on_message(void *arg, const struct dc_answer *a)
{
        struct query_job *job = arg;
        struct channel_message line = read_line(job->dc, a->result);
        struct error err = { 0 };

        if (!a->ok)
                dc_outcome_error(a, &err);
        if (job->dc->adapter->road) /* else the road has closed */
                job->done.history(job->arg, &line, a->ok ? 1 : 0, a->ok ? NULL : &err);
        free(job);
}

void dc_tools_message(struct adapter *a, const char *channel, const char *thread, const char *id,
                      channel_history_fn *done, void *arg)
{
        struct discord *dc = a->self;

        start_query(dc, &(struct query_job){ .arg = arg, .message = id, .done.history = done },
                    "/channels/{channel_id}/messages/{message_id}",
                    dc_destination_of_message(dc, channel, thread, id), NULL, on_message);
}

static void on_channel_info(void *arg, const struct dc_answer *a)
{
        struct query_job *job = arg;
        int64_t type = json_int(a->result, "type", -1);
        const json_t *recipient = json_array_get(json_object_get(a->result, "recipients"), 0);
        const struct channel_info info = {
                .id = json_str(a->result, "id", ""),
                .kind = json_str(a->result, "guild_id", NULL) ? CHAT_GROUP : CHAT_DM,
                .name = json_str(a->result, "name", json_str(recipient, "username", NULL)),
                .topic = json_str(a->result, "topic", NULL),
                .threads = type == DC_TYPE_TEXT || type == DC_TYPE_ANNOUNCEMENT
                                   ? CHAT_THREADS_AT_MESSAGE
                                   : CHAT_NO_THREADS,
                .parent = json_str(a->result, "parent_id", NULL),
                .members = json_int(a->result, "member_count", -1) /* only threads have it */
        };
        struct error err = { 0 };

        if (!a->ok)
                dc_outcome_error(a, &err);
        job->done.channel(job->arg, a->ok ? &info : NULL, a->ok ? NULL : &err);
        free(job);
}

int dc_tools_channel(struct adapter *a, const char *channel, channel_info_fn *done, void *arg,
                     struct error *err)
{
        const char *id = dc_destination_channel(a->self, channel, NULL);

        if (!dc_id_valid(id))
                return error_set(err, ERR_MISSING, "'%.40s' is not a Discord channel id", channel);
        start_query(a->self, &(struct query_job){ .arg = arg, .done.channel = done },
                    "/channels/{channel_id}", id, NULL, on_channel_info);
        return 0;
}

static void on_user_info(void *arg, const struct dc_answer *a)
{
        struct query_job *job = arg;
        const struct user_info info = { .id = json_str(a->result, "id", ""),
                                        .username = json_str(a->result, "username", NULL),
                                        .name = json_str(a->result, "global_name",
                                                         json_str(a->result, "username", NULL)),
                                        .is_bot = json_flag(a->result, "bot", false) };
        struct error err = { 0 };

        if (!a->ok)
                dc_outcome_error(a, &err);
        job->done.user(job->arg, a->ok ? &info : NULL, a->ok ? NULL : &err);
        free(job);
}

int dc_tools_user(struct adapter *a, const char *user, user_info_fn *done, void *arg,
                  struct error *err)
{
        if (!dc_id_valid(user))
                return error_set(err, ERR_MISSING, "'%.40s' is not a Discord user id", user);
        start_query(a->self, &(struct query_job){ .arg = arg, .done.user = done },
                    "/users/{user_id}", user, NULL, on_user_info);
        return 0;
}
