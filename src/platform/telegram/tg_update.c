#include "platform/telegram/tg_update.h"

#include <inttypes.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"

#define ID_MAX 4503599627370496 /* ids have at most 52 significant bits */

/* An id as text, from the arena; NULL when it is missing or out of range. */
static const char *id_text(struct tg_update *u, const json_t *object, const char *key)
{
        const json_t *id = json_object_get(object, key);
        json_int_t n = json_integer_value(id);

        if (!json_is_integer(id) || n > ID_MAX || n < -ID_MAX)
                return NULL;
        return arena_printf(&u->base.content.arena, "%" JSON_INTEGER_FORMAT, n);
}

static int64_t time_ms(const json_t *object, const char *key)
{
        int64_t seconds = json_int(object, key, 0);

        return seconds > 0 && seconds < INT64_MAX / 1000 ? seconds * 1000 : 0;
}

/* Takes the value over. */
static void set_metadata(struct tg_update *u, const char *key, json_t *value)
{
        json_object_set_new(u->base.content.metadata, key, value);
}

static void ignore(struct tg_update *u, const char *why)
{
        u->base.content.event_count = 0;
        u->base.content.ignored = why;
}

/* Room for n events in this chat. NULL: the update is ignored. */
static struct incoming *new_events(struct tg_update *u, const json_t *chat, size_t n)
{
        struct intake_content *c = &u->base.content;

        u->base.chat = id_text(u, chat, "id");
        if (!u->base.chat || n == 0) {
                ignore(u, u->base.chat ? "it says nothing" : "it has no chat");
                return NULL;
        }
        c->events = arena_alloc(&c->arena, n * sizeof(*c->events));
        c->event_count = n;
        for (size_t i = 0; i < n; i++) {
                c->events[i].channel = u->base.chat;
                c->events[i].chat = tg_describe_kind(chat);
                c->events[i].chat_name = tg_describe_name(&c->arena, chat);
        }
        set_metadata(u, "chatType", json_string(json_str(chat, "type", "group")));
        return c->events;
}

/* A person, or a chat that speaks for itself: a channel, an anonymous administrator. */
static void read_sender(struct tg_update *u, const json_t *user, const json_t *chat,
                        struct incoming *in)
{
        const json_t *sender = chat ? chat : user;

        in->sender_id = id_text(u, sender, "id");
        in->sender_username = json_str(sender, "username", NULL);
        in->sender_name = tg_describe_name(&u->base.content.arena, sender);
        in->sender_is_bot = !chat && json_flag(user, "is_bot", false);
}

/* ---- attachments ---- */

/* Fields of a message that carry a file. An animation is also a document: the first row wins. */
/* clang-format off */
static const struct media {
        const char *field, *kind, *mime, *extension;
} media[] = {
        { "photo",      "image",    "image/jpeg",               "jpg"  },
        { "animation",  "video",    "video/mp4",                "mp4"  },
        { "audio",      "audio",    "audio/mpeg",               "mp3"  },
        { "voice",      "voice",    "audio/ogg",                "ogg"  },
        { "video",      "video",    "video/mp4",                "mp4"  },
        { "video_note", "video",    "video/mp4",                "mp4"  },
        { "sticker",    "sticker",  "image/webp",               "webp" },
        { "document",   "document", "application/octet-stream", NULL   },
};
/* clang-format on */

/* A photo comes in several sizes, usually the largest last. */
static const json_t *largest_photo(const json_t *sizes)
{
        const json_t *best = NULL;
        double best_area = 0;

        for (size_t i = 0; i < json_array_size(sizes); i++) {
                const json_t *p = json_array_get(sizes, i);
                double area = (double)json_int(p, "width", 0) * (double)json_int(p, "height", 0);

                if (!best || area >= best_area) {
                        best = p;
                        best_area = area;
                }
        }
        return best;
}

/* A message has one attachment at most. `file` may be NULL: a place or a contact has none. */
static struct attachment *new_attachment(struct tg_update *u, const char *kind, const json_t *file)
{
        struct intake_content *c = &u->base.content;

        c->attachments = arena_alloc(&c->arena, sizeof(*c->attachments));
        c->attachment_count = 1;
        c->attachments->source = json_str(file, "file_id", NULL);
        c->attachments->kind = kind;
        return c->attachments;
}

/* Returns the file of the message; NULL: it has none. */
static const json_t *read_file(struct tg_update *u, const json_t *message)
{
        for (size_t i = 0; i < COUNT(media); i++) {
                const json_t *file = json_object_get(message, media[i].field);
                struct attachment *a;

                if (json_is_array(file))
                        file = largest_photo(file);
                if (!json_is_object(file))
                        continue;
                a = new_attachment(u, media[i].kind, file);
                a->size = json_int(file, "file_size", 0);
                a->mime = json_str(file, "mime_type", media[i].mime);
                if (strcmp(media[i].kind, "sticker") == 0)
                        a->mime = json_flag(file, "is_animated", false) ? "application/x-tgsticker"
                                  : json_flag(file, "is_video", false)  ? "video/webm"
                                                                        : media[i].mime;
                a->name = json_str(file, "file_name", NULL);
                if (!a->name)
                        a->name = arena_printf(&u->base.content.arena, "%s%s%s", media[i].field,
                                               media[i].extension ? "." : "",
                                               media[i].extension ? media[i].extension : "");
                return file;
        }
        return NULL;
}

/* metadata.files for the intake. File ids are no secret: using one needs the token. */
static void add_files(struct tg_update *u, const json_t *file)
{
        const char *id = json_str(file, "file_id", NULL),
                   *unique = json_str(file, "file_unique_id", NULL);
        json_t *entry = json_object();

        if (id)
                json_object_set_new(entry, "fileId", json_string(id));
        if (unique)
                json_object_set_new(entry, "fileUniqueId", json_string(unique));
        set_metadata(u, "files", json_pack("[o]", entry));
}

/* ---- messages ---- */

/*
 * The General topic has id 1 in updates and must not be named in calls: it is the chat itself.
 * Without the flag, message_thread_id is only a chain of replies.
 */
static const char *read_topic(struct tg_update *u, const json_t *message)
{
        if (!json_flag(message, "is_topic_message", false) ||
            json_int(message, "message_thread_id", 1) <= 1)
                return NULL;
        return id_text(u, message, "message_thread_id");
}

/* In a topic, a message that only replies to the topic's first message is not a reply. */
static void read_reply(struct tg_update *u, const struct tg_self *self, const json_t *message,
                       struct incoming *in)
{
        const json_t *to = json_object_get(message, "reply_to_message"),
                     *from = json_object_get(to, "from");
        const char *text = json_str(to, "text", json_str(to, "caption", NULL));
        const char *quote = json_str(json_object_get(message, "quote"), "text", NULL);
        const char *name = from ? tg_describe_name(&u->base.content.arena, from) : NULL;
        json_t *reply;

        if (!json_is_object(to) || json_object_get(to, "forum_topic_created"))
                return;
        in->reply_to = id_text(u, to, "message_id");
        in->is_reply = json_int(from, "id", 0) == self->id;
        reply = json_object();
        if (text)
                json_object_set_new(reply, "text", json_string(text));
        if (quote)
                json_object_set_new(reply, "quote", json_string(quote));
        if (name)
                json_object_set_new(reply, "from", json_string(name));
        set_metadata(u, "replyTo", reply);
}

/* Text or caption, with its entities and details only Telegram has. */
static void read_text(struct tg_update *u, const struct tg_self *self, const json_t *message,
                      struct incoming *in)
{
        bool caption = json_object_get(message, "caption") != NULL;
        const struct {
                const char *field, *key;
        } kept[] = {
                { caption ? "caption_entities" : "entities", "entities" },
                { "forward_origin", "forward" },
                { "external_reply", "externalReply" },
                { "media_group_id", "mediaGroupId" },
                { "author_signature", "authorSignature" },
                { "is_automatic_forward", "isAutomaticForward" },
        };
        const json_t *via_bot = json_object_get(message, "via_bot");
        struct tg_text text;

        tg_text_read(&u->base.content.arena, self,
                     json_str(message, caption ? "caption" : "text", NULL),
                     json_object_get(message, kept[0].field), &text);
        in->text = text.text;
        in->raw_text = text.raw;
        in->is_mention = text.mention;
        in->is_for_other = text.for_other && !text.mention;
        if (text.command)
                set_metadata(u, "command", json_string(text.command));
        for (size_t i = 0; i < COUNT(kept); i++) {
                json_t *value = json_object_get(message, kept[i].field);

                if (value)
                        set_metadata(u, kept[i].key, json_incref(value));
        }
        if (via_bot)
                set_metadata(u, "viaBot", json_string(json_str(via_bot, "username", "")));
}

/* Text, a file, or content described in words; false: a service message or an unknown kind. */
static bool read_content(struct tg_update *u, const struct tg_self *self, const json_t *message,
                         struct incoming *in, const json_t **file)
{
        struct tg_description described;

        *file = read_file(u, message);
        read_text(u, self, message, in);
        if (!*file && tg_describe(&u->base.content.arena, self, message, &described)) {
                if (described.kind)
                        new_attachment(u, described.kind, NULL);
                set_metadata(u, described.field,
                             json_incref(json_object_get(message, described.field)));
                in->is_mention = in->is_mention || described.mention;
                if (!in->text)
                        in->text = described.text;
        }
        if (*file && !in->text)
                in->text = json_str(json_object_get(message, "sticker"), "emoji", NULL);
        return in->text || *file;
}

static void read_any_message(struct tg_update *u, const struct tg_self *self, const json_t *message,
                             const char *type)
{
        const json_t *chat = json_object_get(message, "chat"),
                     *from = json_object_get(message, "from"),
                     *sender_chat = json_object_get(message, "sender_chat"), *file = NULL;
        bool is_own = json_int(from, "id", 0) == self->id && !sender_chat;
        struct incoming *in = new_events(u, chat, 1);

        if (!in)
                return;
        u->migrated = id_text(u, message, "migrate_to_chat_id");
        in->id = id_text(u, message, "message_id");
        if (!in->id || is_own || !read_content(u, self, message, in, &file)) {
                ignore(u, !in->id  ? "it has no message id"
                          : is_own ? "it is our own message"
                                   : "it is a service message");
                return;
        }
        u->message = json_int(message, "message_id", 0);
        in->type = type;
        in->key = arena_printf(&u->base.content.arena, "%s:%s", u->base.chat, in->id);
        in->thread = read_topic(u, message);
        in->time_ms = time_ms(message, "date");
        read_sender(u, from, sender_chat ? sender_chat : from ? NULL : chat, in);
        read_reply(u, self, message, in);
        if (u->base.content.attachment_count > 0)
                add_files(u, file);
}

static void read_message(struct tg_update *u, const struct tg_self *self, const json_t *message)
{
        read_any_message(u, self, message, EVENT_MESSAGE_RECEIVED);
        if (u->base.content.event_count > 0)
                u->album = json_str(message, "media_group_id", NULL);
}

/* Several edits may fall into one second: the key includes a digest of the text. */
static void read_edit(struct tg_update *u, const struct tg_self *self, const json_t *message)
{
        char digest[SHA256_HEX_SIZE];
        const char *text;
        struct incoming *in;

        read_any_message(u, self, message, EVENT_MESSAGE_EDITED);
        if (u->base.content.event_count == 0)
                return;
        in = u->base.content.events;
        text = in->raw_text ? in->raw_text : in->text ? in->text : "";
        crypto_sha256_hex(text, strlen(text), digest);
        in->key = arena_printf(&u->base.content.arena, "%s:edit:%" PRId64 ":%.8s", in->key,
                               json_int(message, "edit_date", 0), digest);
        if (time_ms(message, "edit_date") > 0)
                in->time_ms = time_ms(message, "edit_date");
}

/* ---- reactions ---- */

/* The character, the id of a custom emoji, or "paid". */
static const char *reaction_name(const json_t *reaction)
{
        return json_str(reaction, "emoji",
                        json_str(reaction, "custom_emoji_id", json_str(reaction, "type", "")));
}

static bool has_reaction(const json_t *list, const json_t *reaction)
{
        for (size_t i = 0; i < json_array_size(list); i++)
                if (strcmp(reaction_name(json_array_get(list, i)), reaction_name(reaction)) == 0)
                        return true;
        return false;
}

/* Reads the reactions in `list` that are not in `other`; out NULL: only counts them. */
static size_t read_changes(struct tg_update *u, const json_t *body, const json_t *list,
                           const json_t *other, const char *type, struct incoming *out)
{
        size_t n = 0;

        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *reaction = json_array_get(list, i);
                struct incoming *in;

                if (has_reaction(other, reaction))
                        continue;
                n++;
                if (!out)
                        continue;
                in = &out[n - 1];
                in->type = type;
                in->id = id_text(u, body, "message_id");
                in->emoji = reaction_name(reaction);
                in->emoji_custom = strcmp(json_str(reaction, "type", ""), "custom_emoji") == 0;
                if (strcmp(in->emoji, "paid") == 0) {
                        in->emoji = "\xe2\xad\x90"; /* a star */
                        in->emoji_name = "paid";
                }
                in->key = arena_printf(&u->base.content.arena, "%s:%s:reaction:%" PRId64 ":%s%s",
                                       u->base.chat, in->id ? in->id : "0", u->id,
                                       strcmp(type, EVENT_REACTION_RECEIVED) == 0 ? "+" : "-",
                                       in->emoji);
                in->time_ms = time_ms(body, "date");
                read_sender(u, json_object_get(body, "user"), json_object_get(body, "actor_chat"),
                            in);
        }
        return n;
}

static void read_reaction(struct tg_update *u, const struct tg_self *self, const json_t *body)
{
        const json_t *old = json_object_get(body, "old_reaction"),
                     *new = json_object_get(body, "new_reaction");
        size_t removed = read_changes(u, body, old, new, EVENT_REACTION_REMOVED, NULL);
        size_t added = read_changes(u, body, new, old, EVENT_REACTION_RECEIVED, NULL);
        struct incoming *events = new_events(u, json_object_get(body, "chat"), removed + added);

        (void)self;
        if (!events)
                return;
        read_changes(u, body, old, new, EVENT_REACTION_REMOVED, events);
        read_changes(u, body, new, old, EVENT_REACTION_RECEIVED, events + removed);
        if (json_object_get(body, "actor_chat"))
                set_metadata(u, "anonymous", json_true());
}

/* ---- buttons ---- */

static void read_callback(struct tg_update *u, const struct tg_self *self, const json_t *body)
{
        const json_t *message = json_object_get(body, "message");
        const char *data = json_str(body, "data", "");
        struct incoming *in;
        json_t *callback;

        (void)self;
        u->callback = json_str(body, "id", NULL);
        in = new_events(u, json_object_get(message, "chat"), 1);
        if (!in || !u->callback) {
                ignore(u, "the pressed button belongs to no message of a chat");
                return;
        }
        in->type = "custom.telegram.callback";
        in->text = adapter_button_text(data);
        if (in->text) {
                in->type = EVENT_MESSAGE_RECEIVED;
                in->is_mention = in->is_reply = true;
        }
        in->key = arena_printf(&u->base.content.arena, "callback:%s", u->callback);
        in->id = in->reply_to = id_text(u, message, "message_id");
        in->thread = read_topic(u, message);
        read_sender(u, json_object_get(body, "from"), NULL, in);
        callback = json_object();
        json_object_set_new(callback, "id", json_string(u->callback));
        json_object_set_new(callback, "data", json_string(data));
        set_metadata(u, "callback", callback);
}

/* ---- the bot's own membership ---- */

static void read_member(struct tg_update *u, const struct tg_self *self, const json_t *body)
{
        const char *old = json_str(json_object_get(body, "old_chat_member"), "status", "");
        const char *new = json_str(json_object_get(body, "new_chat_member"), "status", "");
        bool out = strcmp(new, "kicked") == 0 || strcmp(new, "left") == 0;
        struct arena *arena = &u->base.content.arena;
        struct incoming *in = new_events(u, json_object_get(body, "chat"), 1);

        (void)self;
        if (!in)
                return;
        in->type = "custom.telegram.member";
        in->key = arena_printf(arena, "%s:member:%" PRId64, u->base.chat, u->id);
        in->time_ms = time_ms(body, "date");
        if (in->chat == CHAT_DM)
                in->text = out ? "the user has blocked the bot"
                               : "the user has started or unblocked the bot";
        else
                in->text = arena_printf(arena, "the bot's standing changed from '%s' to '%s'", old,
                                        new);
        read_sender(u, json_object_get(body, "from"), NULL, in);
        set_metadata(u, "member", json_pack("{s:s, s:s}", "old", old, "new", new));
}

/* ---- the update ---- */

static const struct {
        const char *field;
        void (*read)(struct tg_update *u, const struct tg_self *self, const json_t *body);
} kinds[] = {
        { "message", read_message },           { "edited_message", read_edit },
        { "channel_post", read_message },      { "edited_channel_post", read_edit },
        { "message_reaction", read_reaction }, { "callback_query", read_callback },
        { "my_chat_member", read_member },
};

void tg_update_read(struct tg_update *u, const struct tg_self *self, json_t *json)
{
        u->json = json_incref(json);
        u->id = json_int(json, "update_id", 0);
        intake_content_init(&u->base.content);
        set_metadata(u, "updateId", json_integer(u->id));
        for (size_t i = 0; i < COUNT(kinds); i++) {
                const json_t *body = json_object_get(json, kinds[i].field);

                if (json_is_object(body)) {
                        kinds[i].read(u, self, body);
                        return;
                }
        }
        ignore(u, "it is of a kind we did not ask for");
}

void tg_update_release(struct tg_update *u)
{
        intake_content_release(&u->base.content);
        json_decref(u->json);
        u->json = NULL;
}

/* The id comes first; inside a text its quotes would be escaped. */
int64_t tg_update_first_id(const char *text, size_t n)
{
        static const char name[] = "\"update_id\":";
        const char *at = memmem(text, n, name, strlen(name)), *end = text + n;
        int64_t id = -1;

        for (at = at ? at + strlen(name) : end;
             at < end && (*at == ' ' || (*at >= '0' && *at <= '9')); at++)
                if (*at != ' ' && id < INT32_MAX)
                        id = (id < 0 ? 0 : id) * 10 + (*at - '0');
        return id;
}
