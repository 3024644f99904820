#include "platform/telegram/tg_update.h"

#include <inttypes.h>
#include <string.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/telegram/tg_describe.h"

#define ID_MAX 4503599627370496 /* ids have at most 52 significant bits */

struct reading {
        struct tg_item *item;
        const struct tg_self *self;
};

/* ---- small things ---- */

static const char *id_text(struct arena *a, const json_t *object, const char *key)
{
        const json_t *id = json_object_get(object, key);
        json_int_t n = json_integer_value(id);

        if (!json_is_integer(id) || n > ID_MAX || n < -ID_MAX)
                return NULL;
        return arena_printf(a, "%" JSON_INTEGER_FORMAT, n);
}

static int64_t time_of(const json_t *object, const char *key)
{
        int64_t seconds = json_int(object, key, 0);

        return seconds > 0 && seconds < INT64_MAX / 1000 ? seconds * 1000 : 0;
}

static enum chat_kind chat_kind_of(const json_t *chat)
{
        const char *type = json_str(chat, "type", "group");

        if (strcmp(type, "private") == 0)
                return CHAT_DM;
        return strcmp(type, "channel") == 0 ? CHAT_BROADCAST : CHAT_GROUP;
}

static void note(struct reading *r, const char *key, json_t *value)
{
        json_object_set_new(r->item->metadata, key, value);
}

static void note_ref(struct reading *r, const char *key, json_t *value)
{
        if (value)
                json_object_set(r->item->metadata, key, value);
}

static void ignore(struct reading *r, const char *why)
{
        r->item->ignored = why;
}

/* Room for n events, all with this chat. NULL when the chat makes no sense. */
static struct incoming *events_new(struct reading *r, const json_t *chat, size_t n)
{
        struct tg_item *item = r->item;

        item->chat = id_text(&item->arena, chat, "id");
        if (!item->chat || n == 0) {
                ignore(r, item->chat ? "it says nothing" : "it has no chat");
                return NULL;
        }
        item->events = arena_alloc(&item->arena, n * sizeof(*item->events));
        item->event_count = n;
        for (size_t i = 0; i < n; i++) {
                item->events[i].channel = item->chat;
                item->events[i].chat = chat_kind_of(chat);
                item->events[i].chat_name = tg_full_name(&item->arena, chat);
        }
        note(r, "chatType", json_string(json_str(chat, "type", "group")));
        return item->events;
}

/* A person, or a chat that speaks in its own name: a channel, an anonymous administrator. */
static void read_sender(struct reading *r, const json_t *user, const json_t *chat,
                        struct incoming *in)
{
        const json_t *who = chat ? chat : user;

        in->sender_id = id_text(&r->item->arena, who, "id");
        in->sender_username = json_str(who, "username", NULL);
        in->sender_name = tg_full_name(&r->item->arena, who);
        in->sender_is_bot = !chat && json_flag(user, "is_bot", false);
}

/* ---- attachments ---- */

/*
 * Fields of a message that carry a file. An animation also comes as document: the first row wins.
 */
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

static double area(const json_t *size)
{
        return (double)json_int(size, "width", 0) * (double)json_int(size, "height", 0);
}

/* A photo comes in several sizes; the last one is the largest, but look. */
static const json_t *largest(const json_t *sizes)
{
        const json_t *best = NULL;

        for (size_t i = 0; i < json_array_size(sizes); i++) {
                const json_t *p = json_array_get(sizes, i);

                if (!best || area(p) >= area(best))
                        best = p;
        }
        return best;
}

static struct attachment *attachment_new(struct tg_item *item, const char *kind,
                                         struct tg_file **file)
{
        item->attachments = arena_alloc(&item->arena, sizeof(*item->attachments));
        item->files = arena_alloc(&item->arena, sizeof(*item->files));
        item->attachment_count = 1;
        item->attachments->kind = kind;
        *file = item->files;
        return item->attachments;
}

static const char *sticker_mime(const json_t *sticker, const char *otherwise)
{
        if (json_flag(sticker, "is_animated", false))
                return "application/x-tgsticker";
        return json_flag(sticker, "is_video", false) ? "video/webm" : otherwise;
}

static void read_file(struct reading *r, const struct media *m, const json_t *body)
{
        struct tg_item *item = r->item;
        const char *mime = strcmp(m->kind, "sticker") == 0 ? sticker_mime(body, m->mime)
                                                           : json_str(body, "mime_type", m->mime);
        struct tg_file *file;
        struct attachment *a = attachment_new(item, m->kind, &file);

        file->id = json_str(body, "file_id", NULL);
        file->unique = json_str(body, "file_unique_id", NULL);
        a->name = json_str(body, "file_name", NULL);
        if (!a->name)
                a->name = arena_printf(&item->arena, "%s%s%s", m->field, m->extension ? "." : "",
                                       m->extension ? m->extension : "");
        a->mime = mime;
        a->size = json_int(body, "file_size", 0);
}

static bool read_media(struct reading *r, const json_t *message)
{
        for (size_t i = 0; i < COUNT(media); i++) {
                const json_t *body = json_object_get(message, media[i].field);

                if (json_is_array(body))
                        body = largest(body);
                if (json_is_object(body)) {
                        read_file(r, &media[i], body);
                        return true;
                }
        }
        return false;
}

/* ---- messages ---- */

/*
 * The General topic has number 1 on the way in and must not be named on the way out: it is the chat
 * itself.
 */
static const char *topic_of(struct reading *r, const json_t *message)
{
        if (!json_flag(message, "is_topic_message", false) ||
            json_int(message, "message_thread_id", 1) <= 1)
                return NULL; /* without the flag it is only a thread of replies */
        return id_text(&r->item->arena, message, "message_thread_id");
}

/* In a topic every message replies to the one that made the topic: that is no reply. */
static void read_reply(struct reading *r, const json_t *message, struct incoming *in)
{
        const json_t *to = json_object_get(message, "reply_to_message"),
                     *from = json_object_get(to, "from");
        const char *text = json_str(to, "text", json_str(to, "caption", NULL));
        const char *quote = json_str(json_object_get(message, "quote"), "text", NULL);
        json_t *said;

        if (!json_is_object(to) || json_object_get(to, "forum_topic_created"))
                return;
        in->reply_to = id_text(&r->item->arena, to, "message_id");
        in->is_reply = json_int(from, "id", 0) == r->self->id;
        said = json_object();
        if (text)
                json_object_set_new(said, "text", json_string(text));
        if (quote)
                json_object_set_new(said, "quote", json_string(quote));
        if (from && tg_full_name(&r->item->arena, from))
                json_object_set_new(said, "from", json_string(tg_full_name(&r->item->arena, from)));
        note(r, "replyTo", said);
}

static void read_notes(struct reading *r, const json_t *message, const char *entities)
{
        note_ref(r, "entities", json_object_get(message, entities));
        note_ref(r, "forward", json_object_get(message, "forward_origin"));
        note_ref(r, "externalReply", json_object_get(message, "external_reply"));
        note_ref(r, "mediaGroupId", json_object_get(message, "media_group_id"));
        note_ref(r, "authorSignature", json_object_get(message, "author_signature"));
        note_ref(r, "isAutomaticForward", json_object_get(message, "is_automatic_forward"));
        if (json_object_get(message, "via_bot"))
                note(r, "viaBot",
                     json_string(json_str(json_object_get(message, "via_bot"), "username", "")));
}

/* Text, or the caption of a file, with its entities. */
static void read_text(struct reading *r, const json_t *message, struct incoming *in)
{
        bool caption = json_object_get(message, "caption") != NULL;
        const char *entities = caption ? "caption_entities" : "entities";
        const char *text = json_str(message, caption ? "caption" : "text", NULL);
        struct tg_text said;

        tg_text_read(&r->item->arena, r->self, text, json_object_get(message, entities), &said);
        in->text = said.text;
        in->raw_text = said.raw;
        in->is_mention = said.mention;
        if (said.command)
                note(r, "command", json_string(said.command));
        read_notes(r, message, entities);
}

/* What is neither text nor a file. */
static const char *read_words(struct reading *r, const json_t *message, struct incoming *in)
{
        struct tg_words words;
        struct tg_file *none;

        if (!tg_words_read(&r->item->arena, r->self, message, &words))
                return NULL;
        if (words.kind)
                attachment_new(r->item, words.kind, &none);
        note_ref(r, words.field, json_object_get(message, words.field));
        in->is_mention = in->is_mention || words.mention;
        return words.text;
}

/* false for service messages and for kinds of content we do not know. */
static bool read_content(struct reading *r, const json_t *message, struct incoming *in)
{
        bool has_media = read_media(r, message);
        const char *words;

        read_text(r, message, in);
        words = has_media ? NULL : read_words(r, message, in);
        if (!in->text && words)
                in->text = words;
        if (!in->text && has_media)
                in->text = json_str(json_object_get(message, "sticker"), "emoji", NULL);
        return in->text || has_media;
}

static void read_any_message(struct reading *r, const json_t *message, const char *type)
{
        struct tg_item *item = r->item;
        const json_t *chat = json_object_get(message, "chat"),
                     *from = json_object_get(message, "from");
        const json_t *sender_chat = json_object_get(message, "sender_chat");
        struct incoming *in = events_new(r, chat, 1);

        if (!in)
                return;
        item->migrated = id_text(&item->arena, message, "migrate_to_chat_id");
        in->id = id_text(&item->arena, message, "message_id");
        if (!in->id || (json_int(from, "id", 0) == r->self->id && !sender_chat) ||
            !read_content(r, message, in)) {
                item->event_count = 0;
                ignore(r, !in->id                                  ? "it has no message id"
                          : json_int(from, "id", 0) == r->self->id ? "it is our own message"
                                                                   : "it is a service message");
                return;
        }
        item->message = json_int(message, "message_id", 0);
        in->type = type;
        in->key = arena_printf(&item->arena, "%s:%s", item->chat, in->id);
        in->thread = topic_of(r, message);
        in->time_ms = time_of(message, "date");
        read_sender(r, from, sender_chat ? sender_chat : from ? NULL : chat, in);
        read_reply(r, message, in);
}

static void read_message(struct reading *r, json_t *message)
{
        read_any_message(r, message, EVENT_MESSAGE_RECEIVED);
        if (r->item->event_count > 0)
                r->item->album = json_str(message, "media_group_id", NULL);
}

/* Several edits may fall into one second; what the text became tells them apart. */
static void read_edit(struct reading *r, json_t *message)
{
        char digest[SHA256_HEX_SIZE];
        const char *text;
        struct incoming *in;

        read_any_message(r, message, EVENT_MESSAGE_EDITED);
        if (r->item->event_count == 0)
                return;
        in = r->item->events;
        text = in->raw_text ? in->raw_text : in->text ? in->text : "";
        crypto_sha256_hex(text, strlen(text), digest);
        in->key = arena_printf(&r->item->arena, "%s:edit:%" PRId64 ":%.8s", in->key,
                               json_int(message, "edit_date", 0), digest);
        if (time_of(message, "edit_date") > 0)
                in->time_ms = time_of(message, "edit_date");
}

/* ---- reactions ---- */

/* What names a reaction: the character, the number of a custom emoji, or that it was paid for. */
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

/* Fills `out` (NULL: only counts) with the reactions in `list` that are not in `other`. */
static size_t read_changes(struct reading *r, const json_t *body, const json_t *list,
                           const json_t *other, const char *type, struct incoming *out)
{
        size_t n = 0;

        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *reaction = json_array_get(list, i);
                bool custom = strcmp(json_str(reaction, "type", ""), "custom_emoji") == 0;
                struct incoming *in;

                if (has_reaction(other, reaction))
                        continue;
                if (!out) {
                        n++;
                        continue;
                }
                in = &out[n++];
                in->type = type;
                in->id = id_text(&r->item->arena, body, "message_id");
                in->emoji = reaction_name(reaction);
                in->emoji_custom = custom;
                if (strcmp(in->emoji, "paid") == 0) {
                        in->emoji = "\xe2\xad\x90";
                        in->emoji_name = "paid";
                }
                in->key = arena_printf(&r->item->arena, "%s:%s:reaction:%" PRId64 ":%s%s",
                                       r->item->chat, in->id ? in->id : "0", r->item->update,
                                       strcmp(type, EVENT_REACTION_RECEIVED) == 0 ? "+" : "-",
                                       in->emoji);
                in->time_ms = time_of(body, "date");
                read_sender(r, json_object_get(body, "user"), json_object_get(body, "actor_chat"),
                            in);
        }
        return n;
}

static void read_reaction(struct reading *r, json_t *body)
{
        const json_t *old = json_object_get(body, "old_reaction"),
                     *new = json_object_get(body, "new_reaction");
        size_t gone = read_changes(r, body, old, new, EVENT_REACTION_REMOVED, NULL);
        size_t came = read_changes(r, body, new, old, EVENT_REACTION_RECEIVED, NULL);
        struct incoming *events = events_new(r, json_object_get(body, "chat"), gone + came);

        if (!events)
                return;
        read_changes(r, body, old, new, EVENT_REACTION_REMOVED, events);
        read_changes(r, body, new, old, EVENT_REACTION_RECEIVED, events + gone);
        if (json_object_get(body, "actor_chat"))
                note(r, "anonymous", json_true());
}

/* ---- buttons ---- */

/*
 * What a button says is a message of whoever pressed it; other data is an event for rules and other
 * software.
 */
static void read_callback(struct reading *r, json_t *body)
{
        const json_t *message = json_object_get(body, "message");
        const char *data = json_str(body, "data", "");
        struct incoming *in;
        json_t *callback;

        r->item->callback = json_str(body, "id", NULL);
        in = events_new(r, json_object_get(message, "chat"), 1);
        if (!in || !r->item->callback) {
                r->item->event_count = 0;
                ignore(r, "the pressed button belongs to no message of a chat");
                return;
        }
        in->type = "custom.telegram.callback";
        if (strncmp(data, TG_SAY, strlen(TG_SAY)) == 0) {
                in->type = EVENT_MESSAGE_RECEIVED;
                in->text = data + strlen(TG_SAY);
                in->is_mention = in->is_reply = true;
        }
        in->key = arena_printf(&r->item->arena, "callback:%s", r->item->callback);
        in->id = in->reply_to = id_text(&r->item->arena, message, "message_id");
        in->thread = topic_of(r, message);
        read_sender(r, json_object_get(body, "from"), NULL, in);
        callback = json_object();
        json_object_set_new(callback, "id", json_string(r->item->callback));
        json_object_set_new(callback, "data", json_string(data));
        note(r, "callback", callback);
}

/* ---- our own membership ---- */

static void read_member(struct reading *r, json_t *body)
{
        const char *old = json_str(json_object_get(body, "old_chat_member"), "status", "");
        const char *new = json_str(json_object_get(body, "new_chat_member"), "status", "");
        bool out = strcmp(new, "kicked") == 0 || strcmp(new, "left") == 0;
        struct incoming *in = events_new(r, json_object_get(body, "chat"), 1);

        if (!in)
                return;
        in->type = "custom.telegram.member";
        in->key =
                arena_printf(&r->item->arena, "%s:member:%" PRId64, r->item->chat, r->item->update);
        in->time_ms = time_of(body, "date");
        if (in->chat == CHAT_DM)
                in->text = out ? "the user has blocked the bot"
                               : "the user has started or unblocked the bot";
        else
                in->text = arena_printf(&r->item->arena,
                                        "the bot's standing changed from '%s' to '%s'", old, new);
        read_sender(r, json_object_get(body, "from"), NULL, in);
        note(r, "member", json_pack("{s:s, s:s}", "old", old, "new", new));
}

/* ---- the update ---- */

static const struct {
        const char *field;
        void (*read)(struct reading *r, json_t *body);
} kinds[] = {
        { "message", read_message },           { "edited_message", read_edit },
        { "channel_post", read_message },      { "edited_channel_post", read_edit },
        { "message_reaction", read_reaction }, { "callback_query", read_callback },
        { "my_chat_member", read_member },
};

void tg_item_read(struct tg_item *out, const struct tg_self *self, json_t *update)
{
        struct reading r = { .item = out, .self = self };

        *out = (struct tg_item){ .update = json_int(update, "update_id", 0) };
        arena_init(&out->arena);
        out->metadata = json_object();
        note(&r, "updateId", json_integer(out->update));
        for (size_t i = 0; i < COUNT(kinds); i++) {
                json_t *body = json_object_get(update, kinds[i].field);

                if (!json_is_object(body))
                        continue;
                kinds[i].read(&r, body);
                return;
        }
        ignore(&r, "it is of a kind we did not ask for");
}

/* Telegram writes the number first; inside of a text its quotes would be escaped. */
int64_t tg_update_number(const char *text, size_t n)
{
        static const char name[] = "\"update_id\":";
        const char *at = memmem(text, n, name, strlen(name)), *end = text + n;
        int64_t number = -1;

        for (at = at ? at + strlen(name) : end;
             at < end && (*at == ' ' || (*at >= '0' && *at <= '9')); at++)
                if (*at != ' ' && number < INT32_MAX)
                        number = (number < 0 ? 0 : number) * 10 + (*at - '0');
        return number;
}

void tg_item_release(struct tg_item *item)
{
        json_decref(item->metadata);
        arena_release(&item->arena);
        *item = (struct tg_item){ 0 };
}
