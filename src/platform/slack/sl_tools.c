/*
 * Tools for agents and the API, and lookups. Every id a tool takes is in the result of another one.
 * Sends, edits, deletions and reactions go through the outbox, like an agent's answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/platform_tool.h"
#include "platform/slack/sl_cache.h"
#include "platform/slack/sl_event.h"
#include "platform/slack/sl_send.h"
#include "platform/slack/sl_ts.h"

#define READ_LIMIT  20
#define READ_MAX    100
#define THREAD_PAGE 200 /* Slack lists a thread from its beginning */
#define THREAD_MAX  10  /* pages */
#define NAMES_MAX   20  /* looked up for one answer */

static bool is_same(const char *a, const char *b)
{
        return a && b && strcmp(a, b) == 0;
}

/* ---- reading messages, with the names of who wrote them ---- */

struct sl_reading;
typedef void reading_fn(struct sl_reading *r, const struct error *err);

struct sl_reading {
        struct slack *sl;
        char *channel, *thread; /* thread NULL: of the channel */
        char *only;             /* the only message wanted; NULL: the last `limit` */
        char *before;           /* NULL: up to the newest */
        unsigned limit, pages;
        json_t *messages; /* oldest first */
        unsigned names;   /* being looked up */
        reading_fn *ready;
        struct {
                channel_history_fn *history;
                platform_tool_fn *tool;
                void *arg;
        } done;
};

static void finish_reading(struct sl_reading *r, const struct error *err)
{
        r->ready(r, err);
        json_decref(r->messages);
        free(r->channel);
        free(r->thread);
        free(r->only);
        free(r->before);
        free(r);
}

static void on_name(void *arg, const struct sl_answer *a)
{
        struct sl_reading *r = arg;

        if (a->ok)
                sl_cache_put_user(r->sl->cache, json_object_get(a->result, "user"));
        if (--r->names == 0)
                finish_reading(r, NULL);
}

/* Other names that are not known stay ids: a channel may have more writers than Slack permits
 * calls. */
static void look_up_names(struct sl_reading *r)
{
        const char *asked[NAMES_MAX], *user;
        json_t *m, *args;
        size_t i, k, n = 0;

        r->names = 1;
        json_array_foreach(r->messages, i, m) {
                user = json_str(m, "user", NULL);
                for (k = 0; user && k < n && strcmp(asked[k], user) != 0; k++)
                        ;
                if (!user || k < n || n == NAMES_MAX || is_same(user, r->sl->self.user) ||
                    sl_cache_user(r->sl->cache, user))
                        continue;
                asked[n++] = user;
                r->names++;
                args = json_pack("{s:s}", "user", user);
                sl_api_ask(r->sl->api,
                           &(struct sl_request){
                                   .method = "users.info", .args = args, .priority = SL_IDLE },
                           on_name, r);
                json_decref(args);
        }
        if (--r->names == 0)
                finish_reading(r, NULL);
}

static void ask_page(struct sl_reading *r, const char *cursor);

static void keep(struct sl_reading *r, json_t *m)
{
        const char *ts = json_str(m, "ts", "");

        if (r->only && strcmp(ts, r->only) != 0)
                return; /* the first message of a thread is always listed */
        if (r->before && sl_ts_us(ts) >= sl_ts_us(r->before))
                return;
        json_array_append(r->messages, m);
        if (json_array_size(r->messages) > r->limit)
                json_array_remove(r->messages, 0);
}

static void on_page(void *arg, const struct sl_answer *a)
{
        struct sl_reading *r = arg;
        const json_t *list = json_object_get(a->result, "messages");
        const char *cursor =
                json_str(json_object_get(a->result, "response_metadata"), "next_cursor", "");
        size_t n = json_array_size(list);
        struct error err = { 0 };

        if (!a->ok)
                sl_outcome_error(a, &err);
        for (size_t i = 0; a->ok && i < n; i++) /* a channel's newest is the first */
                keep(r, json_array_get(list, r->thread ? i : n - 1 - i));
        if (a->ok && r->thread && *cursor && ++r->pages < THREAD_MAX)
                ask_page(r, cursor);
        else if (!a->ok)
                finish_reading(r, &err);
        else
                look_up_names(r);
}

static void ask_page(struct sl_reading *r, const char *cursor)
{
        json_t *args = json_pack("{s:s, s:i}", "channel", r->channel, "limit",
                                 r->thread ? THREAD_PAGE : (int)r->limit);

        if (r->thread)
                json_object_set_new(args, "ts", json_string(r->thread));
        if (cursor)
                json_object_set_new(args, "cursor", json_string(cursor));
        if (r->only || r->before)
                json_object_set_new(args, "latest", json_string(r->only ? r->only : r->before));
        if (r->only) {
                json_object_set_new(args, "oldest", json_string(r->only));
                json_object_set_new(args, "inclusive", json_true());
        }
        sl_api_ask(r->sl->api,
                   &(struct sl_request){ .method = r->thread ? "conversations.replies"
                                                             : "conversations.history",
                                         .args = args,
                                         .priority = SL_IDLE },
                   on_page, r);
        json_decref(args);
}

/* What is wanted is copied. */
static void start_reading(struct adapter *a, const struct sl_reading *wanted)
{
        struct sl_reading *r = mem_dup(wanted, sizeof(*wanted));

        r->sl = a->self;
        r->channel = mem_strdup(wanted->channel);
        r->thread = mem_strdup(wanted->thread);
        r->only = mem_strdup(wanted->only);
        r->before = mem_strdup(wanted->before);
        r->limit = r->limit < 1 ? 1 : r->limit > READ_MAX ? READ_MAX : r->limit;
        r->messages = json_array();
        ask_page(r, NULL);
}

/* A message with the names of its writer. */
static struct channel_message message_line(const struct slack *sl, struct arena *arena,
                                           const json_t *m, const char **handle)
{
        const struct sl_event_context context = { .user = sl->self.user,
                                                  .bot = sl->self.bot,
                                                  .team = sl->self.team,
                                                  .cache = sl->cache };
        const char *bot = json_str(m, "bot_id", NULL), *user = json_str(m, "user", bot),
                   *ts = json_str(m, "ts", ""), *text = sl_text_read(arena, &context, m);
        const struct sl_user *known = user ? sl_cache_user(sl->cache, user) : NULL;
        bool own = is_same(user, sl->self.user) || is_same(bot, sl->self.bot);
        const char *self = own && sl->self.name ? sl->self.name : user ? user : "";
        const char *name =
                json_str(json_object_get(m, "bot_profile"), "name", json_str(m, "username", self));

        *handle = known ? arena_strdup(arena, known->username) : name;
        return (struct channel_message){
                .id = ts,
                .sender_id = user ? user : "",
                .sender_name = known ? arena_strdup(arena, known->name) : name,
                .is_own = own,
                .is_bot = bot || (known && known->is_bot),
                .text = text ? text : "",
                .time_ms = sl_ts_us(ts) / 1000,
        };
}

/* ---- tools that send ---- */

static bool id_valid(const char *id)
{
        return slack_platform.is_id(id);
}

static const struct tool_ids chats = { id_valid, "an id of Slack such as C0123ABCD" };
static const struct tool_ids messages = { sl_ts_valid,
                                          "the ts of a message such as 1700000000.000100" };

static void submit(struct adapter *a, enum delivery_kind kind, unsigned needs,
                   const struct tool_request *q, platform_tool_fn *done, void *arg)
{
        struct tool_sending s;
        struct error err = { 0 };

        platform_tool_sending(a, kind, needs, q, &chats, &messages, &s, &err);
        s.out.thread = platform_tool_id(q->arguments, "thread_ts", false, &messages, s.place, &err);
        s.out.broadcast = json_flag(q->arguments, "broadcast", false);
        if (err.kind != ERR_NONE)
                platform_tool_refuse(a, done, arg, &err);
        else
                platform_tool_submit(a, &s.out, done, arg);
}

/* ---- tools that read ---- */

static json_t *message_json(const struct slack *sl, const json_t *m)
{
        const char *thread = json_str(m, "thread_ts", NULL), *handle;
        struct arena arena;
        struct channel_message line;
        json_t *files = json_array(), *o, *file;
        char when[CLOCK_ISO_SIZE];
        size_t i;

        arena_init(&arena);
        line = message_line(sl, &arena, m, &handle);
        json_array_foreach(json_object_get(m, "files"), i, file)
                json_array_append_new(files, json_string(json_str(file, "name", "file")));
        clock_iso(line.time_ms, when);
        o = json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:b}, s:s}", "id", line.id, "time", when,
                      "author", "id", line.sender_id, "username", handle, "name", line.sender_name,
                      "bot", line.is_bot, "text", line.text);
        if (thread)
                json_object_set_new(o, "thread", json_string(thread));
        if (json_int(m, "reply_count", 0) > 0)
                json_object_set_new(o, "replies", json_integer(json_int(m, "reply_count", 0)));
        if (json_array_size(files) > 0)
                json_object_set(o, "files", files);
        json_decref(files);
        arena_release(&arena);
        return o;
}

static void on_tool_read(struct sl_reading *r, const struct error *err)
{
        json_t *list = json_array(), *m;
        size_t i;

        json_array_foreach(r->messages, i, m)
                json_array_append_new(list, message_json(r->sl, m));
        platform_tool_answer(err ? NULL : json_pack("{s:O}", "messages", list), err, r->done.tool,
                             r->done.arg);
        json_decref(list);
}

static void tool_read(struct adapter *a, const struct tool_request *q, platform_tool_fn *done,
                      void *arg)
{
        char channel[24], thread[24], before[24];
        struct error err = { 0 };
        int64_t limit = json_int(q->arguments, "limit", READ_LIMIT);
        struct sl_reading r = { .limit = limit < 1          ? 1
                                         : limit > READ_MAX ? READ_MAX
                                                            : (unsigned)limit,
                                .ready = on_tool_read,
                                .done = { .tool = done, .arg = arg } };

        r.channel =
                (char *)platform_tool_id(q->arguments, "channel_id", true, &chats, channel, &err);
        r.thread =
                (char *)platform_tool_id(q->arguments, "thread_ts", false, &messages, thread, &err);
        r.before = (char *)platform_tool_id(q->arguments, "before", false, &messages, before, &err);
        if (err.kind != ERR_NONE)
                platform_tool_refuse(a, done, arg, &err);
        else
                start_reading(a, &r);
}

struct sl_tool_call {
        struct slack *sl;
        platform_tool_fn *done;
        void *arg;
};

static void ask(struct adapter *a, const char *method, json_t *args, sl_answer_fn *on_answer,
                platform_tool_fn *done, void *arg)
{
        const struct sl_tool_call call = { a->self, done, arg };

        sl_api_ask(call.sl->api,
                   &(struct sl_request){ .method = method, .args = args, .priority = SL_IDLE },
                   on_answer, mem_dup(&call, sizeof(call)));
        json_decref(args);
}

/* Takes the result over; NULL: what Slack says is the error. */
static void finish(struct sl_tool_call *t, json_t *result, const struct sl_answer *a)
{
        struct error err = { 0 };

        if (!result)
                sl_outcome_error(a, &err);
        platform_tool_answer(result, result ? NULL : &err, t->done, t->arg);
        free(t);
}

static json_t *channel_json(const json_t *c)
{
        const char *topic = json_str(json_object_get(c, "topic"), "value", "");
        json_t *o = json_pack("{s:s, s:s, s:s, s:b}", "id", json_str(c, "id", ""), "name",
                              json_str(c, "name", ""), "type",
                              json_flag(c, "is_im", false)        ? "dm"
                              : json_flag(c, "is_mpim", false)    ? "group dm"
                              : json_flag(c, "is_private", false) ? "private"
                                                                  : "public",
                              "member", json_flag(c, "is_member", false));

        if (*topic)
                json_object_set_new(o, "topic", json_string(topic));
        return o;
}

static void on_channels(void *arg, const struct sl_answer *a)
{
        const char *cursor =
                json_str(json_object_get(a->result, "response_metadata"), "next_cursor", "");
        json_t *list, *c, *result;
        size_t i;

        if (!a->ok) {
                finish(arg, NULL, a);
                return;
        }
        list = json_array();
        json_array_foreach(json_object_get(a->result, "channels"), i, c)
                json_array_append_new(list, channel_json(c));
        result = json_pack("{s:o}", "channels", list);
        if (*cursor)
                json_object_set_new(result, "nextCursor", json_string(cursor));
        finish(arg, result, a);
}

static void tool_channels(struct adapter *a, const struct tool_request *q, platform_tool_fn *done,
                          void *arg)
{
        struct error err = { 0 };
        char space[24];
        const char *cursor = platform_tool_text(q->arguments, "cursor", false, space, &err);
        json_t *args;

        if (err.kind != ERR_NONE) {
                platform_tool_refuse(a, done, arg, &err);
                return;
        }
        args = json_pack("{s:s, s:b, s:i}", "types", "public_channel,private_channel",
                         "exclude_archived", true, "limit", 200);
        if (cursor)
                json_object_set_new(args, "cursor", json_string(cursor));
        ask(a, "conversations.list", args, on_channels, done, arg);
}

static void on_self(void *arg, const struct sl_answer *a)
{
        struct sl_tool_call *t = arg;
        const struct setting_list *admins = &t->sl->adapter->common->admins;
        json_t *ids;

        if (!a->ok) {
                finish(t, NULL, a);
                return;
        }
        ids = json_array();
        for (size_t i = 0; i < admins->count; i++)
                json_array_append_new(ids, json_string(admins->items[i]));
        finish(t,
               json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", json_str(a->result, "user_id", ""),
                         "username", json_str(a->result, "user", ""), "teamId",
                         json_str(a->result, "team_id", ""), "team",
                         json_str(a->result, "team", ""), "operators", ids),
               a);
}

static void tool_whoami(struct adapter *a, const struct tool_request *q, platform_tool_fn *done,
                        void *arg)
{
        (void)q;
        ask(a, "auth.test", json_object(), on_self, done, arg);
}

#define ID(text)     "{\"type\":\"string\",\"pattern\":\"^[A-Z][A-Z0-9]{1,31}$\"," TOOL_HELP(text)
#define TS(text)     "{\"type\":\"string\",\"pattern\":\"^[0-9]+[.][0-9]{6}$\"," TOOL_HELP(text)
#define CHANNEL      "\"channel_id\":" ID("A channel or DM, from slack_list_channels")
#define MESSAGE      "\"message_id\":" TS("The ts of a message, from slack_read")
#define THREAD(text) ",\"thread_ts\":" TS(text)
#define BROADCAST                                          \
        ",\"broadcast\":{\"type\":\"boolean\"," TOOL_HELP( \
                "In a thread: show the message in the channel, too")
#define BEFORE  ",\"before\":" TS("Only messages before this one")
#define CONTENT "\"content\":" TOOL_TEXT("Markdown; long texts become several messages")

const struct platform_tool sl_tools[] = {
        { { "slack_send", "Sends a message to a channel or thread of Slack.",
            TOOL_OBJECT(CHANNEL "," CONTENT THREAD("The first message of the thread to answer in")
                                BROADCAST,
                        "\"channel_id\",\"content\""),
            TOOL_IN_CHAT, .writes = true },
          .submit = submit,
          .kind = DELIVER_SEND,
          .needs = TOOL_CONTENT },
        { { "slack_dm", "Sends a direct message to a person on Slack.",
            TOOL_OBJECT("\"user_id\":" ID("A person, from slack_read or slack_whoami") "," CONTENT,
                        "\"user_id\",\"content\""),
            TOOL_ANYWHERE, .writes = true },
          .submit = submit,
          .kind = DELIVER_SEND,
          .needs = TOOL_PERSON | TOOL_CONTENT },
        { { "slack_read", "Reads the last messages of a channel or thread, oldest first.",
            TOOL_OBJECT(CHANNEL "," TOOL_LIMIT THREAD("Read this thread, by its first message")
                                BEFORE,
                        "\"channel_id\""),
            TOOL_IN_CHAT },
          .call = tool_read },
        { { "slack_react", "Reacts to a message with an emoji.",
            TOOL_OBJECT(CHANNEL "," MESSAGE ",\"emoji\":" TOOL_TEXT(
                                "The emoji itself, or the name of a custom one"),
                        "\"channel_id\",\"message_id\",\"emoji\""),
            TOOL_IN_CHAT, .writes = true },
          .submit = submit,
          .kind = DELIVER_REACT,
          .needs = TOOL_MESSAGE_ID | TOOL_EMOJI },
        { { "slack_edit", "Replaces the text of a message the bot has sent.",
            TOOL_OBJECT(CHANNEL "," MESSAGE "," CONTENT,
                        "\"channel_id\",\"message_id\",\"content\""),
            TOOL_IN_CHAT, .writes = true },
          .submit = submit,
          .kind = DELIVER_EDIT,
          .needs = TOOL_MESSAGE_ID | TOOL_CONTENT },
        { { "slack_delete", "Deletes a message the bot has sent.",
            TOOL_OBJECT(CHANNEL "," MESSAGE, "\"channel_id\",\"message_id\""), TOOL_IN_CHAT,
            .writes = true },
          .submit = submit,
          .kind = DELIVER_DELETE,
          .needs = TOOL_MESSAGE_ID },
        { { "slack_list_channels", "Lists channels of the workspace.",
            TOOL_OBJECT("\"cursor\":" TOOL_TEXT("nextCursor of the list before, for more"), ""),
            TOOL_ANYWHERE },
          .call = tool_channels },
        { { "slack_whoami",
            "Shows the bot's name and id, its workspace, and the ids of its operators.",
            TOOL_OBJECT("", "") },
          .call = tool_whoami },
        { .call = NULL },
};

/* ---- lookups for the road and the API ---- */

static void on_history(struct sl_reading *r, const struct error *err)
{
        size_t n = json_array_size(r->messages);
        struct channel_message *lines = mem_array(n + 1, sizeof(*lines));
        struct arena arena;
        const char *handle;

        arena_init(&arena);
        for (size_t i = 0; i < n; i++)
                lines[i] = message_line(r->sl, &arena, json_array_get(r->messages, i), &handle);
        if (r->sl->adapter->road) /* else the road has closed */
                r->done.history(r->done.arg, lines, err ? 0 : n, err);
        arena_release(&arena);
        free(lines);
}

void sl_tools_history(struct adapter *a, const char *channel, const char *thread, unsigned limit,
                      channel_history_fn *done, void *arg)
{
        start_reading(a, &(struct sl_reading){ .channel = (char *)channel,
                                               .thread = (char *)thread,
                                               .limit = limit,
                                               .ready = on_history,
                                               .done = { .history = done, .arg = arg } });
}

static void on_message(struct sl_reading *r, const struct error *err)
{
        struct error none = { 0 };

        error_set(&none, ERR_MISSING, "Slack has no message '%.40s' there", r->only);
        on_history(r, err || json_array_size(r->messages) > 0 ? err : &none);
}

void sl_tools_message(struct adapter *a, const char *channel, const char *thread, const char *id,
                      channel_history_fn *done, void *arg)
{
        start_reading(a, &(struct sl_reading){ .channel = (char *)channel,
                                               .thread = (char *)thread,
                                               .only = (char *)id,
                                               .ready = on_message,
                                               .done = { .history = done, .arg = arg } });
}

struct info_query {
        struct slack *sl;
        channel_info_fn *channel;
        user_info_fn *user;
        void *arg;
};

static void ask_info(struct adapter *a, const char *method, json_t *args, sl_answer_fn *on_answer,
                     const struct info_query *query)
{
        struct info_query *v = mem_dup(query, sizeof(*query));

        v->sl = a->self;
        sl_api_ask(v->sl->api,
                   &(struct sl_request){ .method = method, .args = args, .priority = SL_IDLE },
                   on_answer, v);
        json_decref(args);
}

static void on_channel_info(void *arg, const struct sl_answer *a)
{
        struct info_query *v = arg;
        const json_t *c = json_object_get(a->result, "channel");
        bool dm = json_flag(c, "is_im", false);
        const char *person = dm ? json_str(c, "user", NULL) : NULL,
                   *topic = json_str(json_object_get(c, "topic"), "value", "");
        const struct sl_user *user = person ? sl_cache_user(v->sl->cache, person) : NULL;
        const struct channel_info info = { .id = json_str(c, "id", ""),
                                           .kind = dm ? CHAT_DM : CHAT_GROUP,
                                           .name = dm ? (user ? user->username : person)
                                                      : json_str(c, "name", NULL),
                                           .topic = *topic ? topic : NULL,
                                           .threads = CHAT_THREADS_AT_MESSAGE,
                                           .members = json_int(c, "num_members", -1) };
        struct error err = { 0 };

        if (!a->ok)
                sl_outcome_error(a, &err);
        v->channel(v->arg, a->ok ? &info : NULL, a->ok ? NULL : &err);
        free(v);
}

int sl_tools_channel(struct adapter *a, const char *channel, channel_info_fn *done, void *arg,
                     struct error *err)
{
        if (!id_valid(channel))
                return error_set(err, ERR_MISSING, "'%.40s' is not a Slack channel id", channel);
        ask_info(a, "conversations.info",
                 json_pack("{s:s, s:b}", "channel", channel, "include_num_members", true),
                 on_channel_info, &(struct info_query){ .channel = done, .arg = arg });
        return 0;
}

static void on_user_info(void *arg, const struct sl_answer *a)
{
        struct info_query *v = arg;
        const json_t *u = json_object_get(a->result, "user");
        const struct sl_user *known;
        struct error err = { 0 };

        if (a->ok)
                sl_cache_put_user(v->sl->cache, u);
        else
                sl_outcome_error(a, &err);
        known = a->ok ? sl_cache_user(v->sl->cache, json_str(u, "id", "")) : NULL;
        if (a->ok && !known)
                error_set(&err, ERR_PROTOCOL, "Slack's answer names no user");
        v->user(v->arg,
                known ? &(struct user_info){ .id = known->id,
                                             .username = known->username,
                                             .name = known->name,
                                             .is_bot = known->is_bot }
                      : NULL,
                known ? NULL : &err);
        free(v);
}

int sl_tools_user(struct adapter *a, const char *user, user_info_fn *done, void *arg,
                  struct error *err)
{
        if (!id_valid(user))
                return error_set(err, ERR_MISSING, "'%.40s' is not a Slack user id", user);
        ask_info(a, "users.info", json_pack("{s:s}", "user", user), on_user_info,
                 &(struct info_query){ .user = done, .arg = arg });
        return 0;
}
