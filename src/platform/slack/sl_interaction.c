/*
 * sl_interaction: slash commands, buttons, menus, and forms.
 *
 * A button whose data begins with "ask:" opens a form (a modal) for one text. What follows is said
 * before that text: "ask:/refuse apr-12" and "too dangerous" are "/refuse apr-12 too dangerous".
 *
 *     block_actions ──► stored ──► views.open        the trigger is valid for three seconds
 *     view_submission ──► a message of the person    private_metadata says where
 *
 * A command is answered by its response_url, a secret that is valid for thirty minutes and five
 * posts. It is only in memory: later answers go to the channel.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "platform/slack/sl_cache.h"
#include "platform/slack/sl_event.h"
#include "platform/slack/sl_intake.h"
#include "platform/slack/sl_ts.h"

#define URLS_MAX   1000
#define URL_MS     1740000 /* a little before Slack's end */
#define URL_USES   5
#define FORM_ID    "dragoman_ask"
#define FIELD_ID   "answer"
#define TITLE_MAX  24
#define LABEL_MAX  150
#define ANSWER_MAX 3000

/* ---- commands ---- */

/* Dispatch and the road carry them out. */
static const struct {
        const char *name, *args; /* how the rest must begin; NULL: there is none */
} commands[] = {
        { "new", NULL },      { "stop", NULL },      { "status", NULL },    { "why", NULL },
        { "resume", NULL },   { "help", NULL },      { "pause", "" },       { "link", "" },
        { "resend", "dlv-" }, { "approve", "apr-" }, { "approve", "sap-" }, { "refuse", "apr-" },
        { "refuse", "sap-" }, { "remind", "" },      { "reminders", "" },   { "quiet", "" },
        { "event", "" },      { "sessions", NULL },  { "steer", "" },       { "reply", "" },
        { "followup", "" },   { "abort", "" },       { "notify", "" },
};

/* "status" and "Status" are a command, "status of the build?" is a question. */
static bool is_command(struct slice word, const char *rest)
{
        for (size_t i = 0; i < COUNT(commands); i++) {
                const char *name = commands[i].name, *args = commands[i].args;

                if (strlen(name) == word.n && strncasecmp(word.p, name, word.n) == 0 &&
                    (!*rest || (args && strncmp(rest, args, strlen(args)) == 0)))
                        return true;
        }
        return false;
}

/*
 * "/dragoman status" and "/status" are "/status"; other text is a message, and none asks for
 * help.
 */
static const char *command_text(struct sl_event_reader *r, const char *command, const char *text)
{
        struct arena *arena = &r->content->arena;
        size_t n;

        if (strstr(text, "<@") || strstr(text, "<#") || strchr(text, '&')) { /* escaped */
                json_t *message = json_pack("{s:s}", "text", text);
                const char *plain = sl_text_read(arena, r->context, message);

                json_decref(message);
                text = plain ? plain : text;
        }
        text += strspn(text, " \n\t");
        if (*command == '/' && is_command(slice_of(command + 1), text))
                return arena_printf(arena, "%s%s%s", command, *text ? " " : "", text);
        if (!*text)
                return "/help";
        n = strcspn(text, " \n\t");
        if (is_command((struct slice){ text, n }, text + n + strspn(text + n, " \n\t")))
                return arena_printf(arena, "/%s", text);
        return text;
}

void sl_interaction_read_command(struct sl_event_reader *r)
{
        const json_t *p = r->payload;
        const char *trigger = json_str(p, "trigger_id", NULL), *user = json_str(p, "user_id", NULL),
                   *name = json_str(p, "channel_name", NULL), *command = json_str(p, "command", "");
        struct incoming *in;

        if (!trigger || !*trigger || strlen(trigger) > 200 || !sl_id_valid(user)) {
                sl_event_ignore(r, "names no person or trigger");
                return;
        }
        in = sl_event_add(r, json_str(p, "channel_id", NULL));
        if (!in)
                return;
        in->id = in->key = arena_printf(&r->content->arena, SL_COMMAND_KEY "%s", trigger);
        if (!in->chat_name && in->chat != CHAT_DM && name && strcmp(name, "privategroup") != 0)
                in->chat_name = name;
        sl_event_set_sender(r, user, json_str(p, "user_name", NULL), in);
        in->text = command_text(r, command, json_str(p, "text", ""));
        in->is_mention = in->is_command = in->is_awaited = true;
        json_object_set_new(r->content->metadata, "command", json_string(command));
}

/* ---- buttons and menus ---- */

const char *sl_interaction_channel(const json_t *payload)
{
        const char *channel = json_str(json_object_get(payload, "channel"), "id", NULL),
                   *contained = json_str(json_object_get(payload, "container"), "channel_id", NULL);

        if (sl_id_valid(channel))
                return channel;
        return sl_id_valid(contained) ? contained : NULL;
}

/* The data of a pressed button or a chosen option. NULL: none. */
static const char *action_data(const json_t *action)
{
        static const char *const plain[] = {
                "value",         "selected_user", "selected_channel", "selected_conversation",
                "selected_date", "selected_time"
        };
        const json_t *option = json_object_get(action, "selected_option"),
                     *options = json_object_get(action, "selected_options");
        const char *data = json_str(option ? option : json_array_get(options, 0), "value", NULL);

        for (size_t i = 0; !data && i < COUNT(plain); i++)
                data = json_str(action, plain[i], NULL);
        return data;
}

static const char *ts_or_null(const char *ts)
{
        return sl_ts_valid(ts) ? ts : NULL;
}

static const char *message_of(const json_t *payload)
{
        return ts_or_null(
                json_str(json_object_get(payload, "message"), "ts",
                         json_str(json_object_get(payload, "container"), "message_ts", NULL)));
}

/* The thread in which the message stands; NULL: none. */
static const char *thread_of(const json_t *payload)
{
        const char *thread = ts_or_null(json_str(
                           json_object_get(payload, "message"), "thread_ts",
                           json_str(json_object_get(payload, "container"), "thread_ts", NULL))),
                   *message = message_of(payload);

        return thread && message && strcmp(thread, message) == 0 ? NULL : thread;
}

static void read_person(struct sl_event_reader *r, struct incoming *in)
{
        const json_t *user = json_object_get(r->payload, "user");
        const char *id = json_str(user, "id", NULL);

        sl_event_set_sender(r, sl_id_valid(id) ? id : NULL,
                            json_str(user, "name", json_str(user, "username", NULL)), in);
        in->is_mention = in->is_command = true;
}

static void read_action(struct sl_event_reader *r)
{
        const json_t *p = r->payload, *action = json_array_get(json_object_get(p, "actions"), 0);
        const char *channel = sl_interaction_channel(p), *data = action_data(action),
                   *when = json_str(action, "action_ts", json_str(p, "trigger_id", "")),
                   *message = message_of(p);
        struct incoming *in;

        if (!json_is_object(action) || strlen(when) > 200) {
                sl_event_ignore(r, "names no button");
                return;
        }
        in = sl_event_add(r, channel);
        if (!in)
                return;
        read_person(r, in);
        in->id = in->reply_to = message;
        in->thread = thread_of(p);
        in->is_reply = true;
        in->text = data ? adapter_button_text(data) : NULL;
        if (!in->text)
                in->type = "custom.slack.action";
        in->key = arena_printf(&r->content->arena, "action:%s:%s:%s:%s", channel,
                               message ? message : "", in->sender_id ? in->sender_id : "", when);
        json_object_set_new(r->content->metadata, "action",
                            json_pack("{s:s, s:s, s:s*}", "type", json_str(action, "type", ""),
                                      "actionId", json_str(action, "action_id", ""), "data", data));
}

/* A shortcut of a message: its text is what the command is about. */
static void read_shortcut(struct sl_event_reader *r)
{
        const json_t *p = r->payload, *message = json_object_get(p, "message");
        const char *name = json_str(p, "callback_id", ""), *trigger = json_str(p, "trigger_id", "");
        const char *text;
        struct incoming *in;

        if (!*trigger || strlen(trigger) > 200) {
                sl_event_ignore(r, "names no trigger");
                return;
        }
        in = sl_event_add(r, sl_interaction_channel(p));
        if (!in)
                return;
        read_person(r, in);
        text = sl_text_read(&r->content->arena, r->context, message);
        in->key = arena_printf(&r->content->arena, "shortcut:%s", trigger);
        in->id = in->reply_to = message_of(p);
        in->thread = thread_of(p);
        in->text = arena_printf(&r->content->arena, "/%s%s%s", name, text ? " " : "",
                                text ? text : "");
}

/* ---- forms ---- */

/* The first text of a form; NULL: none. */
static const char *form_text(const json_t *view)
{
        json_t *values = json_object_get(json_object_get(view, "state"), "values"), *block, *field;
        const char *key, *id;

        json_object_foreach(values, key, block) {
                json_object_foreach(block, id, field) {
                        if (json_str(field, "value", NULL))
                                return json_str(field, "value", NULL);
                }
        }
        return NULL;
}

static void read_form(struct sl_event_reader *r)
{
        const json_t *view = json_object_get(r->payload, "view");
        const char *id = json_str(view, "id", ""), *text = form_text(view), *begins,
                   *metadata = json_str(view, "private_metadata", "");
        struct arena *arena = &r->content->arena;
        struct incoming *in = NULL;
        json_t *place = NULL; /* where the text belongs, and how it begins */
        struct error err;

        if (strcmp(json_str(view, "callback_id", ""), FORM_ID) == 0)
                place = json_read(metadata, strlen(metadata), &err);
        if (place && text && *id && strlen(id) <= 100)
                in = sl_event_add(r, arena_strdup(arena, json_str(place, "channel", NULL)));
        if (in) {
                begins = json_str(place, "begins", "");
                read_person(r, in);
                in->key = arena_printf(arena, "form:%s", id);
                in->thread = arena_strdup(arena, ts_or_null(json_str(place, "thread", NULL)));
                in->reply_to = arena_strdup(arena, ts_or_null(json_str(place, "message", NULL)));
                in->is_reply = true;
                in->text = arena_printf(arena, "%s%s%s", begins, *begins ? " " : "", text);
        } else {
                sl_event_ignore(r, "not a form of ours");
        }
        json_decref(place);
}

void sl_interaction_read(struct sl_event_reader *r)
{
        static const struct {
                const char *type;
                void (*read)(struct sl_event_reader *r);
        } kinds[] = { { "block_actions", read_action },
                      { "message_action", read_shortcut },
                      { "view_submission", read_form } };
        const char *type = json_str(r->payload, "type", "");

        for (size_t i = 0; i < COUNT(kinds); i++) {
                if (strcmp(kinds[i].type, type) == 0) {
                        kinds[i].read(r);
                        return;
                }
        }
        sl_event_ignore(r, "not a button, form or shortcut");
}

static json_t *plain_text(const char *text, size_t max)
{
        size_t n = utf8_prefix(text, strlen(text), UTF8_UTF16, max);

        return json_pack("{s:s, s:s%}", "type", "plain_text", "text", text, n);
}

/* The form for one text. */
static json_t *form_view(const json_t *payload, const char *title, const char *begins)
{
        json_t *place = json_pack("{s:s*, s:s*, s:s*, s:s}", "channel",
                                  sl_interaction_channel(payload), "thread", thread_of(payload),
                                  "message", message_of(payload), "begins", begins);
        char *metadata = json_text(place);
        json_t *field = json_pack("{s:s, s:s, s:b, s:i}", "type", "plain_text_input", "action_id",
                                  FIELD_ID, "multiline", 1, "max_length", ANSWER_MAX),
               *block = json_pack("{s:s, s:s, s:o, s:o}", "type", "input", "block_id", FIELD_ID,
                                  "label", plain_text(title, LABEL_MAX), "element", field),
               *view = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:[o]}", "type", "modal",
                                 "callback_id", FORM_ID, "private_metadata", metadata, "title",
                                 plain_text(title, TITLE_MAX), "submit",
                                 plain_text("Send", TITLE_MAX), "close",
                                 plain_text("Cancel", TITLE_MAX), "blocks", block);

        free(metadata);
        json_decref(place);
        return view;
}

static void on_opened(void *arg, const struct sl_answer *a)
{
        const struct slack *sl = arg;

        if (!a->ok && a->kind != ERR_CANCELLED)
                log_warn("cannot open a form", LOG_S("adapter", sl->adapter->name),
                         LOG_S("why", a->why ? a->why : a->error));
}

void sl_interaction_stored(struct slack *sl, const json_t *payload)
{
        const json_t *action = json_array_get(json_object_get(payload, "actions"), 0);
        const char *data = action_data(action), *trigger = json_str(payload, "trigger_id", NULL),
                   *label = json_str(json_object_get(action, "text"), "text", "Answer");
        size_t n = strlen(SL_ASK_PREFIX);
        json_t *args;

        if (!data || !trigger || strncmp(data, SL_ASK_PREFIX, n) != 0)
                return;
        args = json_pack("{s:s, s:o}", "trigger_id", trigger, "view",
                         form_view(payload, *label ? label : "Answer", data + n));
        sl_api_ask(
                sl->api,
                &(struct sl_request){ .method = "views.open", .args = args, .priority = SL_URGENT },
                on_opened, sl);
        json_decref(args);
}

/* ---- where commands are answered ---- */

struct sl_response_url {
        char *id, *url;
        int64_t until_ms; /* monotonic */
        unsigned uses;
        int64_t turn; /* that answers; 0: none yet */
        TAILQ_ENTRY(sl_response_url) next;
};

static void url_free(struct sl_intake *in, struct sl_response_url *u)
{
        TAILQ_REMOVE(&in->urls.list, u, next);
        in->urls.count--;
        log_unhide(u->url, strlen(u->url));
        explicit_bzero(u->url, strlen(u->url));
        free(u->url);
        free(u->id);
        free(u);
}

void sl_interaction_remember(struct sl_intake *in, const char *id, const char *url)
{
        int64_t now = clock_mono_ms();
        struct sl_response_url *u;

        while ((u = TAILQ_FIRST(&in->urls.list)) &&
               (in->urls.count >= URLS_MAX || u->until_ms <= now))
                url_free(in, u);
        if (!url || !sl_api_owns_url(in->sl->api, url))
                return;
        u = mem_zalloc(sizeof(*u));
        u->id = mem_strdup(id);
        u->url = mem_strdup(url);
        u->until_ms = now + URL_MS;
        log_hide(u->url, strlen(u->url));
        TAILQ_INSERT_TAIL(&in->urls.list, u, next);
        in->urls.count++;
}

const char *sl_interaction_url(struct slack *sl, const char *id, int64_t turn)
{
        struct sl_intake *in = sl->intake;
        struct sl_response_url *u;

        if (!in || (id && strncmp(id, SL_COMMAND_KEY, strlen(SL_COMMAND_KEY)) != 0))
                return NULL;
        TAILQ_FOREACH(u, &in->urls.list, next) {
                if (id ? strcmp(u->id, id) != 0 : turn == 0 || u->turn != turn)
                        continue;
                if (u->until_ms <= clock_mono_ms() || u->uses == URL_USES)
                        return NULL;
                u->uses++;
                u->turn = turn;
                return u->url;
        }
        return NULL;
}

void sl_interaction_close(struct sl_intake *in)
{
        struct sl_response_url *u;

        while ((u = TAILQ_FIRST(&in->urls.list)))
                url_free(in, u);
}
