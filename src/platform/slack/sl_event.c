#include "platform/slack/sl_event.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/slack/sl_cache.h"
#include "platform/slack/sl_emoji.h"
#include "platform/slack/sl_ts.h"

#define FILES_MAX  20
#define NOTICE_MAX 60 /* bytes of a subtype */

/* ---- parts of an event ---- */

void sl_event_ignore(struct sl_event_reader *r, const char *why)
{
        r->content->ignored = why;
        r->content->event_count = 0;
}

static void set_text(struct sl_event_reader *r, const char *key, const char *text)
{
        if (text)
                json_object_set_new(r->content->metadata, key, json_string(text));
}

static const char *id_of(const json_t *object, const char *key)
{
        const char *id = json_str(object, key, NULL);

        return sl_id_valid(id) ? id : NULL;
}

static const char *ts_of(const json_t *object, const char *key)
{
        const char *ts = json_str(object, key, NULL);

        return sl_ts_valid(ts) ? ts : NULL;
}

static bool same(const char *a, const char *b)
{
        return a && b && strcmp(a, b) == 0;
}

/* Did we write it? */
static bool is_ours(const struct sl_event_context *c, const json_t *message)
{
        return same(json_str(message, "user", NULL), c->user) ||
               same(json_str(message, "bot_id", NULL), c->bot);
}

struct incoming *sl_event_add(struct sl_event_reader *r, const char *channel)
{
        struct intake_content *content = r->content;
        const struct sl_event_context *c = r->context;
        const struct sl_channel *known;
        struct incoming *in;

        if (!sl_id_valid(channel)) {
                sl_event_ignore(r, "names no channel");
                return NULL;
        }
        known = c->cache ? sl_cache_channel(c->cache, channel) : NULL;
        in = content->events = arena_alloc(&content->arena, sizeof(*in));
        content->event_count = 1;
        in->channel = channel;
        in->chat = *channel == 'D' || (known && known->is_dm) ? CHAT_DM : CHAT_GROUP;
        in->chat_name = known ? arena_strdup(&content->arena, known->name) : NULL;
        in->guild = c->team;
        if (known && known->is_group_dm)
                set_text(r, "channelType", "mpim");
        else
                set_text(r, "channelType",
                         in->chat == CHAT_DM          ? "im"
                         : known && known->is_private ? "group"
                                                      : "channel");
        if (known && known->is_shared)
                json_object_set_new(content->metadata, "isShared", json_true());
        if (r->retry > 0)
                json_object_set_new(content->metadata, "retry", json_integer(r->retry));
        return in;
}

/*
 * Guests and people of other workspaces have a role, so that rules and access lists can name
 * them.
 */
static void set_roles(struct sl_event_reader *r, const struct sl_user *user)
{
        json_t *roles = json_array();

        if (user->is_stranger)
                json_array_append_new(roles, json_string("external"));
        if (user->is_guest)
                json_array_append_new(roles, json_string("guest"));
        json_object_set_new(r->content->metadata, "roles", roles);
        if (user->is_stranger)
                set_text(r, "senderTeam", user->team);
}

void sl_event_set_sender(struct sl_event_reader *r, const char *user, const char *name,
                         struct incoming *in)
{
        const struct sl_event_context *c = r->context;
        const struct sl_user *known = user && c->cache ? sl_cache_user(c->cache, user) : NULL;
        struct arena *arena = &r->content->arena;

        in->sender_id = user;
        in->sender_name = name;
        in->is_own = in->is_own || same(user, c->user);
        if (known && known->known) {
                in->sender_username = arena_strdup(arena, known->username);
                in->sender_name = arena_strdup(arena, known->name);
                in->sender_is_bot = in->sender_is_bot || known->is_bot;
                set_roles(r, known);
        } else if (user && !in->sender_is_bot) {
                json_object_set_new(r->content->metadata, "rolesUnknown", json_true());
        }
}

/* ---- files ---- */

static const char *file_kind(const json_t *file, const char *mime)
{
        const char *subtype = json_str(file, "subtype", "");

        if (strcmp(subtype, "slack_audio") == 0)
                return "voice";
        if (mime && strncmp(mime, "image/", 6) == 0)
                return "image";
        if (mime && strncmp(mime, "audio/", 6) == 0)
                return "audio";
        return mime && strncmp(mime, "video/", 6) == 0 ? "video" : "document";
}

static void read_files(struct sl_event_reader *r, const json_t *message)
{
        const json_t *list = json_object_get(message, "files"), *file;
        struct intake_content *content = r->content;
        json_t *files;
        size_t i;

        if (json_array_size(list) == 0)
                return;
        files = json_array();
        content->attachments =
                arena_alloc(&content->arena, FILES_MAX * sizeof(*content->attachments));
        json_array_foreach(list, i, file) {
                const char *id = id_of(file, "id"), *mode = json_str(file, "mode", ""),
                           *mime = json_str(file, "mimetype", NULL),
                           *url = json_str(file, "url_private", NULL),
                           *source = json_str(file, "url_private_download", url);

                if (!id || content->attachment_count == FILES_MAX || strcmp(mode, "tombstone") == 0)
                        continue;
                if (strcmp(mode, "external") == 0) /* it is not on Slack */
                        source = NULL;
                else if (!source) /* of Slack Connect: "file_access": "check_file_info" */
                        source = arena_printf(&content->arena, SL_FILE_SOURCE "%s", id);
                json_array_append_new(files, json_pack("{s:s}", "id", id));
                content->attachments[content->attachment_count++] =
                        (struct attachment){ .kind = file_kind(file, mime),
                                             .name = json_str(file, "name",
                                                              json_str(file, "title", NULL)),
                                             .mime = mime,
                                             .url = url,
                                             .source = source,
                                             .size = json_int(file, "size", 0) };
        }
        content->events->attachments = content->attachments;
        content->events->attachment_count = content->attachment_count;
        if (content->attachment_count > 0)
                json_object_set(content->metadata, "files", files);
        json_decref(files);
}

/* ---- messages ---- */

/* Subtypes of what people and bots write; others are notices of Slack. */
static bool is_written(const char *subtype)
{
        static const char *const written[] = { "file_share", "thread_broadcast", "me_message",
                                               "bot_message" };

        for (size_t i = 0; subtype && i < COUNT(written); i++)
                if (strcmp(written[i], subtype) == 0)
                        return true;
        return !subtype;
}

static void read_sender(struct sl_event_reader *r, const json_t *message, struct incoming *in)
{
        const json_t *bot = json_object_get(message, "bot_profile");
        const char *bot_id = id_of(message, "bot_id"), *user = id_of(message, "user"),
                   *subtype = json_str(message, "subtype", "");

        in->sender_is_bot = bot_id || strcmp(subtype, "bot_message") == 0;
        in->is_own = is_ours(r->context, message);
        sl_event_set_sender(r, user ? user : bot_id,
                            json_str(bot, "name", json_str(message, "username", NULL)), in);
        set_text(r, "botId", bot_id);
        set_text(r, "appId", id_of(message, "app_id"));
}

/* A root that has replies carries its own ts as thread_ts. */
static void read_thread(struct sl_event_reader *r, const json_t *message, struct incoming *in)
{
        const char *thread = ts_of(message, "thread_ts");

        if (thread && !same(thread, in->id)) {
                in->thread = in->reply_to = thread;
                in->is_reply = same(json_str(message, "parent_user_id", NULL), r->context->user);
        } else if (r->context->reply_in_thread && in->is_mention && in->chat == CHAT_GROUP) {
                in->thread = in->id;
        }
}

/* For new, mentioning and edited messages, which read the same. NULL: ignored. */
static struct incoming *read_body(struct sl_event_reader *r, const char *channel,
                                  const json_t *message)
{
        const char *raw = json_str(message, "text", ""), *ts = ts_of(message, "ts"),
                   *subtype = json_str(message, "subtype", NULL);
        struct arena *arena = &r->content->arena;
        struct incoming *in;

        if (!ts) {
                sl_event_ignore(r, "names no message");
                return NULL;
        }
        in = sl_event_add(r, channel);
        if (!in)
                return NULL;
        in->id = ts;
        in->key = arena_printf(arena, "%s:%s", channel, ts);
        in->time_ms = sl_ts_us(ts) / 1000;
        read_sender(r, message, in);
        in->text = sl_text_read(arena, r->context, message);
        if (*raw && (!in->text || strcmp(raw, in->text) != 0))
                in->raw_text = raw;
        in->is_mention = sl_text_mentions(raw, r->context->user);
        read_thread(r, message, in);
        if (subtype)
                set_text(r, "subtype", subtype);
        read_files(r, message);
        return in;
}

/*
 * A join, a topic and the like: an event for rules that name "custom.slack.channel_join". Others
 * ignore it, and `why` says so.
 */
static void read_notice(struct sl_event_reader *r, const json_t *event, const char *subtype)
{
        struct incoming *in;

        if (strspn(subtype, "abcdefghijklmnopqrstuvwxyz_") != strlen(subtype) ||
            strlen(subtype) > NOTICE_MAX || json_flag(event, "hidden", false)) {
                sl_event_ignore(r, "a notice of Slack that is not shown");
                return;
        }
        in = read_body(r, json_str(event, "channel", NULL), event);
        if (!in)
                return;
        in->type = arena_printf(&r->content->arena, "custom.slack.%s", subtype);
        in->is_mention = in->is_reply = false; /* the text names who joined */
        in->thread = in->reply_to = NULL;
}

/* Slack repeats events: one message of a client may even have two ts values. */
static void add_client_id(struct sl_event_reader *r, const json_t *event, struct incoming *in)
{
        const char *client = json_str(event, "client_msg_id", NULL);
        struct incoming_part *part;

        if (!client || !*client || strlen(client) > 100)
                return;
        part = arena_alloc(&r->content->arena, sizeof(*part));
        part->key = arena_printf(&r->content->arena, "client:%s", client);
        part->id = in->id;
        in->parts = part;
        in->part_count = 1;
}

static void read_new(struct sl_event_reader *r, const json_t *event)
{
        const char *subtype = json_str(event, "subtype", NULL);
        struct incoming *in;

        if (!is_written(subtype)) {
                read_notice(r, event, subtype);
                return;
        }
        in = read_body(r, json_str(event, "channel", NULL), event);
        if (!in)
                return;
        if (!in->text && in->attachment_count == 0 && !in->is_mention) {
                sl_event_ignore(r, "empty");
                return;
        }
        add_client_id(r, event, in);
}

static void read_deletion(struct sl_event_reader *r, const json_t *event, const char *ts)
{
        const json_t *before = json_object_get(event, "previous_message");
        const char *channel = json_str(event, "channel", NULL),
                   *thread = ts_of(before, "thread_ts");
        struct incoming *in = ts ? sl_event_add(r, channel) : NULL;

        if (!in) {
                sl_event_ignore(r, "names no message or channel");
                return;
        }
        in->type = EVENT_MESSAGE_DELETED;
        in->id = ts;
        in->key = arena_printf(&r->content->arena, "delete:%s:%s", channel, ts);
        in->time_ms = sl_ts_us(ts_of(event, "event_ts")) / 1000;
        in->thread = thread && !same(thread, ts) ? thread : NULL;
        in->is_own = is_ours(r->context, before);
        if (before)
                read_sender(r, before, in);
}

/*
 * Link previews, streams and new replies change a message too. What a person edits has a time of
 * the edit, and another text.
 */
static void read_edit(struct sl_event_reader *r, const json_t *event)
{
        const json_t *now = json_object_get(event, "message"),
                     *before = json_object_get(event, "previous_message");
        const char *edited = ts_of(json_object_get(now, "edited"), "ts"),
                   *channel = json_str(event, "channel", NULL);
        struct incoming *in;

        if (same(json_str(now, "subtype", NULL), "tombstone")) { /* a root that has replies */
                read_deletion(r, event, ts_of(now, "ts"));
                return;
        }
        if (!edited || same(edited, ts_of(json_object_get(before, "edited"), "ts")) ||
            same(json_str(now, "text", ""), json_str(before, "text", NULL)) ||
            !is_written(json_str(now, "subtype", NULL))) {
                sl_event_ignore(r, "not an edit by a person");
                return;
        }
        in = read_body(r, channel, now);
        if (!in)
                return;
        in->type = EVENT_MESSAGE_EDITED;
        in->key = arena_printf(&r->content->arena, "edit:%s:%s:%s", channel, in->id, edited);
        in->time_ms = sl_ts_us(edited) / 1000;
}

static void read_message(struct sl_event_reader *r, const json_t *event)
{
        const char *subtype = json_str(event, "subtype", "");

        if (strcmp(subtype, "message_changed") == 0)
                read_edit(r, event);
        else if (strcmp(subtype, "message_deleted") == 0)
                read_deletion(r, event, ts_of(event, "deleted_ts"));
        else if (strcmp(subtype, "message_replied") == 0)
                sl_event_ignore(r, "the reply comes as a message of its own");
        else
                read_new(r, event);
}

/* ---- reactions ---- */

static void read_reaction(struct sl_event_reader *r, const json_t *event)
{
        const json_t *item = json_object_get(event, "item");
        const char *name = json_str(event, "reaction", ""), *ts = ts_of(item, "ts"),
                   *user = id_of(event, "user"), *id = json_str(r->payload, "event_id", NULL),
                   *type = json_str(event, "type", ""), *channel = json_str(item, "channel", NULL),
                   *when = ts_of(event, "event_ts"), *emoji;
        struct incoming *in = NULL;

        if (ts && user && *name)
                in = sl_event_add(r, channel);
        if (!in) {
                sl_event_ignore(r, "names no message, person or emoji");
                return;
        }
        emoji = sl_emoji_text(name);
        in->type = strcmp(type, "reaction_added") == 0 ? EVENT_REACTION_RECEIVED
                                                       : EVENT_REACTION_REMOVED;
        in->id = ts;
        if (r->context->cache)
                in->thread = arena_strdup(&r->content->arena,
                                          sl_cache_thread(r->context->cache, channel, ts));
        in->emoji = emoji ? emoji : name;
        in->emoji_name = emoji ? NULL : name;
        in->emoji_custom = !emoji;
        in->is_reply = same(json_str(event, "item_user", NULL), r->context->user);
        in->time_ms = sl_ts_us(when) / 1000;
        in->key = id && *id ? arena_printf(&r->content->arena, "reaction:%.100s", id)
                            : arena_printf(&r->content->arena, "reaction:%s:%s:%s:%.100s:%s:%s",
                                           channel, ts, user, name, type, when ? when : "");
        sl_event_set_sender(r, user, NULL, in);
        set_text(r, "messageAuthorId", id_of(event, "item_user"));
        set_text(r, "emojiName", name);
}

/* ---- the event ---- */

static const struct event_type {
        const char *name;
        void (*read)(struct sl_event_reader *r, const json_t *event);
} types[] = {
        { "message", read_message },
        { "app_mention", read_new },
        { "reaction_added", read_reaction },
        { "reaction_removed", read_reaction },
};

static const struct event_type *find_type(const json_t *event)
{
        const char *name = json_str(event, "type", "");

        for (size_t i = 0; i < COUNT(types); i++)
                if (strcmp(types[i].name, name) == 0)
                        return &types[i];
        return NULL;
}

const char *sl_event_channel(enum sl_arrival kind, const json_t *payload)
{
        const json_t *event = json_object_get(payload, "event"),
                     *item = json_object_get(event, "item");

        if (kind == SL_COMMAND)
                return id_of(payload, "channel_id");
        if (kind == SL_INTERACTIVE)
                return sl_interaction_channel(payload);
        if (!find_type(event))
                return NULL;
        return json_is_object(item) ? id_of(item, "channel") : id_of(event, "channel");
}

static size_t add_user_id(char users[SL_USERS_MAX][SL_ID_SIZE], size_t n, const char *id)
{
        if (!sl_id_valid(id) || n == SL_USERS_MAX || (*id != 'U' && *id != 'W'))
                return n;
        for (size_t i = 0; i < n; i++)
                if (strcmp(users[i], id) == 0)
                        return n;
        snprintf(users[n], SL_ID_SIZE, "%s", id);
        return n + 1;
}

size_t sl_event_users(enum sl_arrival kind, const json_t *payload,
                      char users[SL_USERS_MAX][SL_ID_SIZE])
{
        const json_t *event = json_object_get(payload, "event"),
                     *inner = json_object_get(event, "message"),
                     *before = json_object_get(event, "previous_message"),
                     *message = inner ? inner : event;
        char id[SL_ID_SIZE];
        size_t n = 0;

        if (kind == SL_COMMAND)
                return add_user_id(users, 0, json_str(payload, "user_id", NULL));
        if (kind == SL_INTERACTIVE)
                return add_user_id(users, 0,
                                   json_str(json_object_get(payload, "user"), "id", NULL));
        n = add_user_id(users, n, json_str(message, "user", json_str(before, "user", NULL)));
        for (const char *p = strstr(json_str(message, "text", ""), "<@"); p;
             p = strstr(p + 2, "<@")) {
                size_t length = strcspn(p + 2, ">|<");

                if (length >= sizeof(id))
                        continue;
                memcpy(id, p + 2, length);
                id[length] = '\0';
                n = add_user_id(users, n, id);
        }
        return n;
}

void sl_event_read(struct intake_content *out, const struct sl_event_context *context,
                   enum sl_arrival kind, json_t *payload, int retry)
{
        struct sl_event_reader r = {
                .content = out, .context = context, .payload = payload, .retry = retry
        };
        const json_t *event = json_object_get(payload, "event");
        const struct event_type *t = find_type(event);

        intake_content_init(out);
        if (kind == SL_COMMAND)
                sl_interaction_read_command(&r);
        else if (kind == SL_INTERACTIVE)
                sl_interaction_read(&r);
        else if (t)
                t->read(&r, event);
        else
                sl_event_ignore(&r, "not an event that is stored");
        if (out->event_count > 0)
                set_text(&r, "eventId", json_str(payload, "event_id", NULL));
}
