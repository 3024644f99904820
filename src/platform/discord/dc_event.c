#include "platform/discord/dc_event.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_id.h"
#include "platform/discord/dc_scheduled_event.h"

#define FILES_MAX    20
#define BULK_MAX     100
#define FLAG_VOICE   (1 << 13)
#define TYPE_DEFAULT 0
#define TYPE_REPLY   19
#define DEPTH_MAX    3 /* command, group, subcommand */

enum { COMMAND_USER = 2, COMMAND_MESSAGE = 3 };

/* ---- parts of an event ---- */

static void set_text(struct dc_event_reader *r, const char *key, const char *text)
{
        if (text)
                json_object_set_new(r->content->metadata, key, json_string(text));
}

static void ignore(struct dc_event_reader *r, const char *why)
{
        r->content->ignored = why;
        r->content->event_count = 0;
}

static const char *id_of(const json_t *object, const char *key)
{
        const char *id = json_str(object, key, NULL);

        return dc_id_valid(id) ? id : NULL;
}

static bool is_id_of_us(const struct dc_event_context *c, const char *id)
{
        return id && c->self && strcmp(id, c->self) == 0;
}

static bool is_self(const struct dc_event_reader *r, const char *id)
{
        return is_id_of_us(r->context, id);
}

static struct incoming *add_events(struct dc_event_reader *r, const char *channel,
                                   const char *guild, size_t n)
{
        struct intake_content *content = r->content;
        struct dc_channel_info info = { .type = -1 }, parent = { .type = -1 };

        if (!dc_id_valid(channel) || n == 0) {
                ignore(r, "names no channel");
                return NULL;
        }
        dc_cache_channel(r->context->cache, channel, &info);
        dc_cache_channel(r->context->cache, info.parent, &parent);
        if (!guild && info.guild) /* messages fetched by REST do not name it */
                guild = arena_strdup(&content->arena, info.guild);
        content->events = arena_alloc(&content->arena, n * sizeof(*content->events));
        content->event_count = n;
        for (size_t i = 0; i < n; i++) {
                struct incoming *in = &content->events[i];

                in->channel = info.parent ? arena_strdup(&content->arena, info.parent) : channel;
                in->thread = info.parent ? channel : NULL;
                in->chat = guild ? CHAT_GROUP : CHAT_DM;
                in->chat_name =
                        arena_strdup(&content->arena, info.parent ? parent.name : info.name);
                in->guild = guild;
        }
        if (info.parent)
                set_text(r, "threadName", info.name);
        set_text(r, "guildName", dc_cache_guild_name(r->context->cache, guild));
        if (info.type >= 0)
                json_object_set_new(r->content->metadata, "channelType", json_integer(info.type));
        return content->events;
}

static void set_sender(struct dc_event_reader *r, const json_t *user, const json_t *member,
                       struct incoming *in)
{
        json_t *roles = json_object_get(member, "roles");

        in->sender_id = id_of(user, "id");
        in->sender_username = json_str(user, "username", NULL);
        in->sender_name = json_str(member, "nick",
                                   json_str(user, "global_name", json_str(user, "username", NULL)));
        in->sender_is_bot = json_flag(user, "bot", false);
        in->is_own = is_self(r, in->sender_id);
        if (json_is_array(roles))
                json_object_set(r->content->metadata, "roles", roles);
        else if (in->guild && json_is_null(member))
                json_object_set_new(r->content->metadata, "rolesUnknown", json_true());
}

/* ---- attachments ---- */

static const char *attachment_kind(const json_t *message, const char *mime)
{
        if (json_int(message, "flags", 0) & FLAG_VOICE)
                return "voice";
        if (mime && strncmp(mime, "image/", 6) == 0)
                return "image";
        if (mime && strncmp(mime, "audio/", 6) == 0)
                return "audio";
        return mime && strncmp(mime, "video/", 6) == 0 ? "video" : "document";
}

static void add_files(struct dc_event_reader *r, const json_t *message, json_t *files)
{
        const json_t *list = json_object_get(message, "attachments"), *file;
        struct intake_content *content = r->content;
        size_t i;

        json_array_foreach(list, i, file) {
                const char *url = json_str(file, "url", NULL), *id = json_str(file, "id", NULL),
                           *mime = json_str(file, "content_type", NULL);

                if (content->attachment_count == FILES_MAX || !url)
                        continue;
                json_array_append_new(files, id ? json_pack("{s:s}", "id", id) : json_object());
                content->attachments[content->attachment_count++] =
                        (struct attachment){ .kind = attachment_kind(message, mime),
                                             .name = json_str(file, "filename", NULL),
                                             .mime = mime,
                                             .url = url,
                                             .source = url,
                                             .size = json_int(file, "size", 0) };
        }
}

static void read_files(struct dc_event_reader *r, const json_t *message)
{
        const json_t *forwarded = json_array_get(json_object_get(message, "message_snapshots"), 0);
        struct intake_content *content = r->content;
        json_t *files;

        if (json_array_size(json_object_get(message, "attachments")) == 0 && !forwarded)
                return;
        files = json_array();
        content->attachments =
                arena_alloc(&content->arena, FILES_MAX * sizeof(*content->attachments));
        add_files(r, message, files);
        add_files(r, json_object_get(forwarded, "message"), files);
        content->events->attachments = content->attachments;
        content->events->attachment_count = content->attachment_count;
        if (content->attachment_count > 0)
                json_object_set(content->metadata, "files", files);
        json_decref(files);
}

/* ---- messages ---- */

static bool mentions_us(const struct dc_event_context *c, const json_t *message, const char *guild)
{
        const json_t *users = json_object_get(message, "mentions"),
                     *roles = json_object_get(message, "mention_roles"), *one;
        size_t i;

        json_array_foreach(users, i, one)
                if (is_id_of_us(c, json_str(one, "id", NULL)))
                        return true;
        if (!c->role_mentions)
                return false;
        json_array_foreach(roles, i, one)
                if (json_is_string(one) &&
                    dc_cache_has_role(c->cache, guild, json_string_value(one)))
                        return true;
        return false;
}

bool dc_event_is_to_us(const struct dc_event_context *c, const json_t *message)
{
        const json_t *to = json_object_get(message, "referenced_message");
        struct dc_channel_info info = { .type = -1 };

        dc_cache_channel(c->cache, id_of(message, "channel_id"), &info);
        return !info.guild || mentions_us(c, message, info.guild) ||
               is_id_of_us(c, json_str(json_object_get(to, "author"), "id", NULL));
}

static void read_reply(struct dc_event_reader *r, const json_t *message, struct incoming *in)
{
        const json_t *reference = json_object_get(message, "message_reference"),
                     *to = json_object_get(message, "referenced_message"),
                     *author = json_object_get(to, "author");

        if (json_int(message, "type", 0) != TYPE_REPLY)
                return;
        in->reply_to = id_of(reference, "message_id");
        in->is_reply = is_self(r, json_str(author, "id", NULL));
        if (json_is_object(to)) /* else it is deleted */
                json_object_set_new(r->content->metadata, "replyTo",
                                    json_pack("{s:s, s:s}", "text", json_str(to, "content", ""),
                                              "from",
                                              json_str(author, "global_name",
                                                       json_str(author, "username", ""))));
}

static void read_metadata(struct dc_event_reader *r, const json_t *message)
{
        json_t *mentions = json_object_get(message, "mentions"), *list = json_array(), *user;
        size_t i;

        json_array_foreach(mentions, i, user)
                json_array_append_new(list, json_pack("{s:s, s:s}", "id", json_str(user, "id", ""),
                                                      "name", json_str(user, "username", "")));
        if (json_array_size(list) > 0)
                json_object_set(r->content->metadata, "mentions", list);
        json_decref(list);
        set_text(r, "webhookId", json_str(message, "webhook_id", NULL));
        if (json_flag(message, "mention_everyone", false))
                json_object_set_new(r->content->metadata, "mentionsEveryone", json_true());
        if (json_array_size(json_object_get(message, "message_snapshots")) > 0)
                json_object_set_new(r->content->metadata, "forwarded", json_true());
}

/* Not a notice of Discord. */
static bool is_written(const json_t *message)
{
        int64_t type = json_int(message, "type", TYPE_DEFAULT);

        return type == TYPE_DEFAULT || type == TYPE_REPLY;
}

/* For new and edited messages. NULL: ignored. */
static struct incoming *read_body(struct dc_event_reader *r, json_t *d)
{
        const char *id = id_of(d, "id"), *raw = json_str(d, "content", NULL);
        struct incoming *in;

        if (!is_written(d)) {
                ignore(r, "a notice of Discord");
                return NULL;
        }
        in = id ? add_events(r, id_of(d, "channel_id"), id_of(d, "guild_id"), 1) : NULL;
        if (!in) {
                ignore(r, "names no message or channel");
                return NULL;
        }
        in->id = in->key = id;
        in->time_ms = dc_id_time_ms(id);
        set_sender(r, json_object_get(d, "author"), json_object_get(d, "member"), in);
        if (json_str(d, "webhook_id", NULL)) {
                in->sender_is_bot = true;
                in->is_own = false; /* webhooks have their own ids */
        }
        in->text = dc_describe(r, d);
        if (raw && *raw && (!in->text || strcmp(raw, in->text) != 0))
                in->raw_text = raw;
        in->is_mention = mentions_us(r->context, d, in->guild);
        read_reply(r, d, in);
        read_metadata(r, d);
        read_files(r, d);
        return in;
}

static void read_message(struct dc_event_reader *r, json_t *d)
{
        struct incoming *in = read_body(r, d);

        if (in && !in->text && in->attachment_count == 0 && !in->is_mention)
                ignore(r, "empty, or hidden without the Message Content Intent");
}

/* Link previews arrive as updates without an edit time. */
static bool is_edit(const json_t *d, int64_t *ms)
{
        const char *when = json_str(d, "edited_timestamp", NULL);

        return when && json_str(d, "content", NULL) && clock_parse_iso(when, ms) == 0;
}

static void read_edit(struct dc_event_reader *r, json_t *d)
{
        struct incoming *in;
        int64_t ms;

        if (!is_edit(d, &ms)) {
                ignore(r, "not an edit by a person");
                return;
        }
        in = read_body(r, d);
        if (!in)
                return;
        in->type = EVENT_MESSAGE_EDITED;
        in->key = arena_printf(&r->content->arena, "%s:edit:%s", in->id,
                               json_str(d, "edited_timestamp", ""));
        in->time_ms = ms;
}

static void read_deletion(struct dc_event_reader *r, json_t *d)
{
        const json_t *ids = json_object_get(d, "ids");
        size_t n = ids ? json_array_size(ids) : 1;
        struct incoming *in;

        n = n > BULK_MAX ? BULK_MAX : n;
        in = add_events(r, id_of(d, "channel_id"), id_of(d, "guild_id"), n);
        for (size_t i = 0; in && i < n; i++) {
                const char *id =
                        ids ? json_string_value(json_array_get(ids, i)) : json_str(d, "id", NULL);

                if (!dc_id_valid(id)) {
                        ignore(r, "names no message");
                        return;
                }
                in[i].type = EVENT_MESSAGE_DELETED;
                in[i].id = id;
                in[i].key = arena_printf(&r->content->arena, "%s:delete", id);
        }
}

/* ---- reactions ---- */

static void read_reaction(struct dc_event_reader *r, json_t *d)
{
        const json_t *emoji = json_object_get(d, "emoji"), *member = json_object_get(d, "member"),
                     *user = json_object_get(member, "user");
        const char *message = id_of(d, "message_id"), *who = id_of(d, "user_id"),
                   *name = json_str(emoji, "name", NULL), *custom = id_of(emoji, "id");
        bool added = strcmp(r->dispatch->type, "MESSAGE_REACTION_ADD") == 0;
        struct incoming *in =
                message && who && (name || custom)
                        ? add_events(r, id_of(d, "channel_id"), id_of(d, "guild_id"), 1)
                        : NULL;

        if (!in) {
                ignore(r, "names no message, person or emoji");
                return;
        }
        set_sender(r, user, member, in);
        in->sender_id = who; /* all there is in a DM */
        in->is_own = is_self(r, who);
        in->type = added ? EVENT_REACTION_RECEIVED : EVENT_REACTION_REMOVED;
        in->id = message;
        in->emoji_custom = custom != NULL;
        in->emoji_name = custom ? name : NULL;
        in->emoji =
                custom ? arena_printf(&r->content->arena, "%s:%s", name ? name : "emoji", custom)
                       : name;
        in->is_reply = is_self(r, json_str(d, "message_author_id", NULL));
        in->key = arena_printf(&r->content->arena, "%s:%s:%s:%s:%s:%" PRId64, message, who,
                               custom ? custom : name, added ? "+" : "-",
                               r->dispatch->session ? r->dispatch->session : "", r->dispatch->seq);
        set_text(r, "messageAuthorId", json_str(d, "message_author_id", NULL));
}

/* ---- interactions ---- */

static void add_value(struct buf *out, const json_t *value)
{
        if (!json_is_string(value) && !json_is_integer(value) && !json_is_boolean(value))
                return;
        if (out->len > 0)
                buf_addch(out, ' ');
        if (json_is_string(value))
                buf_addstr(out, json_string_value(value));
        else if (json_is_integer(value))
                buf_addint(out, json_integer_value(value));
        else
                buf_addstr(out, json_is_true(value) ? "yes" : "no");
}

static void add_options(struct buf *out, const json_t *options, int depth)
{
        const json_t *option;
        size_t i;

        json_array_foreach(options, i, option) {
                json_t *below = json_object_get(option, "options");

                if (json_object_get(option, "value"))
                        add_value(out, json_object_get(option, "value"));
                else
                        add_value(out, json_object_get(option, "name"));
                if (below && depth < DEPTH_MAX)
                        add_options(out, below, depth + 1);
        }
}

static const char *option_text(const json_t *options, const char *name)
{
        const json_t *option;
        size_t i;

        json_array_foreach(options, i, option)
                if (strcmp(json_str(option, "name", ""), name) == 0)
                        return json_str(option, "value", NULL);
        return NULL;
}

/* "/remind tomorrow to 9 lives": the time must not go on in the text. NULL: it lacks one. */
static const char *reminder_text(struct arena *a, const json_t *options)
{
        const char *when = option_text(options, "when"), *what = option_text(options, "what");

        return when && what ? arena_printf(a, "/remind %s to %s", when, what) : NULL;
}

/* "/steer ses-3 go left": people may fill in the options in any order. NULL: names no session. */
static const char *session_text(struct arena *a, const char *name, const json_t *options)
{
        const char *session = option_text(options, "session"), *text = option_text(options, "text");

        return session ? arena_printf(a, "/%s %s%s%s", name, session, text ? " " : "",
                                      text ? text : "")
                       : NULL;
}

/* /ask is a message to the agent; other commands keep their name. */
static const char *command_text(struct arena *a, const json_t *data)
{
        const json_t *resolved = json_object_get(data, "resolved"),
                     *messages = json_object_get(resolved, "messages"),
                     *users = json_object_get(resolved, "users");
        const char *name = json_str(data, "name", ""), *text,
                   *target = json_str(data, "target_id", ""); /* of a context menu command */
        struct buf b;

        text = strcmp(name, "remind") == 0
                       ? reminder_text(a, json_object_get(data, "options"))
                       : session_text(a, name, json_object_get(data, "options"));
        if (text)
                return text;
        buf_init(&b, 0);
        add_options(&b, json_object_get(data, "options"), 1);
        if (json_int(data, "type", 1) == COMMAND_MESSAGE)
                add_value(&b, json_object_get(json_object_get(messages, target), "content"));
        else if (json_int(data, "type", 1) == COMMAND_USER)
                add_value(&b, json_object_get(json_object_get(users, target), "username"));
        if (strcmp(name, "ask") == 0)
                text = arena_strdup(a, b.data);
        else
                text = arena_printf(a, "/%s%s%s", name, b.len > 0 ? " " : "", b.data);
        buf_release(&b);
        return text;
}

static const char *form_text(struct arena *a, const json_t *data)
{
        const json_t *rows = json_object_get(data, "components"), *row, *field;
        const char *text;
        struct buf b;
        size_t i, k;

        buf_init(&b, 0);
        json_array_foreach(rows, i, row) {
                json_array_foreach(json_object_get(row, "components"), k, field)
                        add_value(&b, json_object_get(field, "value"));
                add_value(&b, json_object_get(json_object_get(row, "component"), "value"));
        }
        text = arena_strdup(a, b.data);
        buf_release(&b);
        return text;
}

static void set_interaction_metadata(struct dc_event_reader *r, const json_t *d, const json_t *data)
{
        static const struct {
                const char *from, *to;
        } members[] = { { "name", "name" },
                        { "custom_id", "customId" },
                        { "values", "values" },
                        { "target_id", "targetId" },
                        { "options", "options" } };
        json_t *o = json_pack("{s:s, s:I}", "id", json_str(d, "id", ""), "type",
                              (json_int_t)json_int(d, "type", 0));

        for (size_t i = 0; i < COUNT(members); i++) {
                json_t *value = json_object_get(data, members[i].from);

                if (value)
                        json_object_set(o, members[i].to, value);
        }
        json_object_set_new(r->content->metadata, "interaction", o);
}

static void read_component(const json_t *d, const json_t *data, struct incoming *in)
{
        const char *text = json_str(data, "custom_id", ""),
                   *message = json_str(json_object_get(d, "message"), "id", NULL),
                   *chosen = json_string_value(json_array_get(json_object_get(data, "values"), 0));

        if (chosen)
                text = chosen;
        in->id = in->reply_to = dc_id_valid(message) ? message : NULL;
        in->is_reply = true;
        in->text = adapter_button_text(text);
        if (!in->text)
                in->type = "custom.discord.component";
}

static void read_interaction(struct dc_event_reader *r, json_t *d)
{
        const json_t *member = json_object_get(d, "member"), *data = json_object_get(d, "data"),
                     *user = member ? json_object_get(member, "user") : json_object_get(d, "user");
        const char *id = json_str(d, "id", NULL), *guild = json_str(d, "guild_id", NULL);
        int64_t kind = json_int(d, "type", 0);
        struct arena *arena = &r->content->arena;
        struct incoming *in;

        r->content->ignored = "not a command, button or form";
        if (!dc_id_valid(id) || (kind != DC_INTERACTION_COMMAND &&
                                 kind != DC_INTERACTION_COMPONENT && kind != DC_INTERACTION_FORM))
                return;
        in = add_events(r, json_str(d, "channel_id", NULL), dc_id_valid(guild) ? guild : NULL, 1);
        if (!in)
                return;
        r->content->ignored = NULL;
        set_sender(r, user, member, in);
        in->key = arena_printf(arena, "interaction:%s", id);
        in->id = id;
        in->time_ms = dc_id_time_ms(id);
        in->is_mention = in->is_command = true;
        in->is_awaited =
                kind != DC_INTERACTION_COMPONENT; /* a pressed button shows no placeholder */
        set_interaction_metadata(r, d, data);
        if (kind == DC_INTERACTION_COMPONENT) {
                read_component(d, data, in);
        } else if (kind == DC_INTERACTION_COMMAND) {
                in->text = command_text(arena, data);
                json_object_set_new(r->content->metadata, "command",
                                    json_string(json_str(data, "name", "")));
        } else {
                in->text = form_text(arena, data);
        }
}

/* ---- the dispatch ---- */

/* user: whose member the event needs; of_guild: of no channel. */
static const struct dispatch_type {
        const char *name;
        void (*read)(struct dc_event_reader *r, json_t *d);
        enum { NO_USER, AUTHOR, EDITOR, REACTOR } user;
        bool of_guild;
} types[] = {
        { "MESSAGE_CREATE", read_message, AUTHOR },
        { "MESSAGE_UPDATE", read_edit, EDITOR },
        { "MESSAGE_DELETE", read_deletion, NO_USER },
        { "MESSAGE_DELETE_BULK", read_deletion, NO_USER },
        { "MESSAGE_REACTION_ADD", read_reaction, REACTOR },
        { "MESSAGE_REACTION_REMOVE", read_reaction, REACTOR },
        { "INTERACTION_CREATE", read_interaction, NO_USER },
        { "GUILD_CREATE", dc_scheduled_event_read_list, NO_USER, true },
        { "GUILD_SCHEDULED_EVENT_CREATE", dc_scheduled_event_read, NO_USER, true },
        { "GUILD_SCHEDULED_EVENT_UPDATE", dc_scheduled_event_read, NO_USER, true },
        { "GUILD_SCHEDULED_EVENT_DELETE", dc_scheduled_event_read, NO_USER, true },
        { "GUILD_SCHEDULED_EVENT_USER_ADD", dc_scheduled_event_read_interest, REACTOR, true },
        { "GUILD_SCHEDULED_EVENT_USER_REMOVE", dc_scheduled_event_read_interest, REACTOR, true },
        { DC_EVENT_MEMBERS, dc_scheduled_event_read_members, NO_USER, true },
};

static const struct dispatch_type *find_type(const char *name)
{
        for (size_t i = 0; i < COUNT(types); i++)
                if (strcmp(types[i].name, name) == 0)
                        return &types[i];
        return NULL;
}

const char *dc_event_channel(const char *type, const json_t *d)
{
        const struct dispatch_type *t = find_type(type);

        return t ? id_of(d, t->of_guild ? "guild_id" : "channel_id") : NULL;
}

bool dc_event_is_of_guild(const char *type)
{
        const struct dispatch_type *t = find_type(type);

        return t && t->of_guild;
}

const char *dc_event_missing_member(const char *type, const json_t *d)
{
        const struct dispatch_type *t = find_type(type);
        int64_t ms;

        if (!t || t->user == NO_USER ||
            json_is_array(json_object_get(json_object_get(d, "member"), "roles")))
                return NULL;
        if (t->user == REACTOR)
                return id_of(d, "user_id");
        if ((t->user == EDITOR && !is_edit(d, &ms)) || !is_written(d) ||
            json_str(d, "webhook_id", NULL)) /* webhooks are not members */
                return NULL;
        return id_of(json_object_get(d, "author"), "id");
}

void dc_event_read(struct intake_content *out, const struct dc_event_context *context,
                   const struct dc_dispatch *dispatch)
{
        struct dc_event_reader r = { .content = out, .context = context, .dispatch = dispatch };
        const struct dispatch_type *t = find_type(dispatch->type);

        intake_content_init(out);
        if (t && json_is_object(dispatch->d))
                t->read(&r, dispatch->d);
        else
                ignore(&r, "not an event that is stored");
}
