#include "platform/discord/dc_event.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/discord.h"

#define FILES_MAX    20
#define BULK_MAX     100
#define FLAG_VOICE   (1 << 13)
#define TYPE_DEFAULT 0
#define TYPE_REPLY   19

/* ---- small things ---- */

void dc_note(struct dc_reading *r, const char *key, json_t *value)
{
        json_object_set_new(r->item->metadata, key, value);
}

static void note_text(struct dc_reading *r, const char *key, const char *text)
{
        if (text)
                dc_note(r, key, json_string(text));
}

static void ignore(struct dc_reading *r, const char *why)
{
        r->item->ignored = why;
        r->item->event_count = 0;
}

static const char *id_of(const json_t *object, const char *key)
{
        const char *id = json_str(object, key, NULL);

        return dc_id_valid(id) ? id : NULL;
}

static bool is_self(const struct dc_reading *r, const char *id)
{
        return id && r->by->self && strcmp(id, r->by->self) == 0;
}

struct incoming *dc_events_new(struct dc_reading *r, const char *channel, const char *guild,
                               size_t n)
{
        struct dc_item *item = r->item;
        struct dc_place place = { .type = -1 }, parent = { .type = -1 };

        if (!dc_id_valid(channel) || n == 0) {
                ignore(r, "it names no channel");
                return NULL;
        }
        dc_cache_place(r->by->cache, channel, &place);
        dc_cache_place(r->by->cache, place.parent, &parent);
        if (!guild && place.guild) /* messages read by REST do not say it */
                guild = arena_strdup(&item->arena, place.guild);
        item->events = arena_alloc(&item->arena, n * sizeof(*item->events));
        item->event_count = n;
        for (size_t i = 0; i < n; i++) {
                struct incoming *in = &item->events[i];

                in->channel = place.parent ? arena_strdup(&item->arena, place.parent) : channel;
                in->thread = place.parent ? channel : NULL;
                in->chat = guild ? CHAT_GROUP : CHAT_DM;
                in->chat_name = arena_strdup(&item->arena, place.parent ? parent.name : place.name);
                in->guild = guild;
        }
        if (place.parent)
                note_text(r, "threadName", place.name);
        note_text(r, "guildName", dc_cache_guild_name(r->by->cache, guild));
        if (place.type >= 0)
                dc_note(r, "channelType", json_integer(place.type));
        return item->events;
}

void dc_read_person(struct dc_reading *r, const json_t *user, const json_t *member,
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
                json_object_set(r->item->metadata, "roles", roles);
        else if (in->guild && json_is_null(member))
                dc_note(r, "rolesUnknown", json_true());
}

/* ---- attachments ---- */

static const char *kind_of(const json_t *message, const char *mime)
{
        if (json_int(message, "flags", 0) & FLAG_VOICE)
                return "voice";
        if (mime && strncmp(mime, "image/", 6) == 0)
                return "image";
        if (mime && strncmp(mime, "audio/", 6) == 0)
                return "audio";
        return mime && strncmp(mime, "video/", 6) == 0 ? "video" : "document";
}

static void add_files(struct dc_reading *r, const json_t *message)
{
        const json_t *list = json_object_get(message, "attachments"), *file;
        struct dc_item *item = r->item;
        size_t i;

        json_array_foreach(list, i, file) {
                const char *url = json_str(file, "url", NULL),
                           *mime = json_str(file, "content_type", NULL);

                if (item->attachment_count == FILES_MAX || !url)
                        continue;
                item->files[item->attachment_count] =
                        (struct dc_media){ .id = json_str(file, "id", NULL), .url = url };
                item->attachments[item->attachment_count++] =
                        (struct attachment){ .kind = kind_of(message, mime),
                                             .name = json_str(file, "filename", NULL),
                                             .mime = mime,
                                             .url = url,
                                             .size = json_int(file, "size", 0) };
        }
}

static void read_files(struct dc_reading *r, const json_t *message)
{
        const json_t *forwarded = json_array_get(json_object_get(message, "message_snapshots"), 0);
        struct dc_item *item = r->item;

        if (json_array_size(json_object_get(message, "attachments")) == 0 && !forwarded)
                return;
        item->attachments = arena_alloc(&item->arena, FILES_MAX * sizeof(*item->attachments));
        item->files = arena_alloc(&item->arena, FILES_MAX * sizeof(*item->files));
        add_files(r, message);
        add_files(r, json_object_get(forwarded, "message"));
        item->events->attachments = item->attachments;
        item->events->attachment_count = item->attachment_count;
}

/* ---- messages ---- */

static bool mentions_us(const struct dc_reading *r, const json_t *message, const char *guild)
{
        const json_t *users = json_object_get(message, "mentions"),
                     *roles = json_object_get(message, "mention_roles"), *one;
        size_t i;

        json_array_foreach(users, i, one)
                if (is_self(r, json_str(one, "id", NULL)))
                        return true;
        if (!r->by->role_mentions)
                return false;
        json_array_foreach(roles, i, one)
                if (json_is_string(one) &&
                    dc_cache_has_role(r->by->cache, guild, json_string_value(one)))
                        return true;
        return false;
}

static void read_reply(struct dc_reading *r, const json_t *message, struct incoming *in)
{
        const json_t *reference = json_object_get(message, "message_reference"),
                     *to = json_object_get(message, "referenced_message"),
                     *author = json_object_get(to, "author");
        json_t *said;

        if (json_int(message, "type", 0) != TYPE_REPLY)
                return;
        in->reply_to = id_of(reference, "message_id");
        in->is_reply = is_self(r, json_str(author, "id", NULL));
        if (!json_is_object(to))
                return; /* it is deleted */
        said = json_object();
        json_object_set_new(said, "text", json_string(json_str(to, "content", "")));
        json_object_set_new(
                said, "from",
                json_string(json_str(author, "global_name", json_str(author, "username", ""))));
        dc_note(r, "replyTo", said);
}

static void read_notes(struct dc_reading *r, const json_t *message)
{
        json_t *mentions = json_object_get(message, "mentions"), *list = json_array(), *user;
        size_t i;

        json_array_foreach(mentions, i, user)
                json_array_append_new(list, json_pack("{s:s, s:s}", "id", json_str(user, "id", ""),
                                                      "name", json_str(user, "username", "")));
        if (json_array_size(list) > 0)
                json_object_set(r->item->metadata, "mentions", list);
        json_decref(list);
        note_text(r, "webhookId", json_str(message, "webhook_id", NULL));
        if (json_flag(message, "mention_everyone", false))
                dc_note(r, "mentionsEveryone", json_true());
        if (json_array_size(json_object_get(message, "message_snapshots")) > 0)
                dc_note(r, "forwarded", json_true());
}

static bool is_said(const json_t *message)
{
        int64_t type = json_int(message, "type", TYPE_DEFAULT);

        return type == TYPE_DEFAULT || type == TYPE_REPLY;
}

/* What messages and edits have in common. NULL: it is not what people say. */
static struct incoming *read_body(struct dc_reading *r, json_t *d)
{
        const char *id = id_of(d, "id"), *raw = json_str(d, "content", NULL);
        struct incoming *in;

        if (!is_said(d)) {
                ignore(r, "it is a message of Discord itself");
                return NULL;
        }
        in = id ? dc_events_new(r, id_of(d, "channel_id"), id_of(d, "guild_id"), 1) : NULL;
        if (!in) {
                ignore(r, "it names no message or channel");
                return NULL;
        }
        in->id = in->key = id;
        in->time_ms = dc_id_time_ms(id);
        dc_read_person(r, json_object_get(d, "author"), json_object_get(d, "member"), in);
        if (json_str(d, "webhook_id", NULL)) {
                in->sender_is_bot = true;
                in->is_own = false; /* webhooks have ids of their own */
        }
        in->text = dc_words(r, d);
        if (raw && *raw && (!in->text || strcmp(raw, in->text) != 0))
                in->raw_text = raw;
        in->is_mention = mentions_us(r, d, in->guild);
        read_reply(r, d, in);
        read_notes(r, d);
        read_files(r, d);
        return in;
}

static void read_message(struct dc_reading *r, json_t *d)
{
        struct incoming *in = read_body(r, d);

        if (in && !in->text && in->attachment_count == 0 && !in->is_mention)
                ignore(r, "it says nothing, or we may not read it (Message Content Intent)");
}

/* Links that unfold are updates, too. */
static bool is_edit(const json_t *d, int64_t *ms)
{
        const char *when = json_str(d, "edited_timestamp", NULL);

        return when && json_str(d, "content", NULL) && clock_parse_iso(when, ms) == 0;
}

static void read_edit(struct dc_reading *r, json_t *d)
{
        const char *when = json_str(d, "edited_timestamp", NULL);
        struct incoming *in;
        int64_t ms;

        if (!is_edit(d, &ms)) {
                ignore(r, "nobody has edited it");
                return;
        }
        in = read_body(r, d);
        if (!in)
                return;
        in->type = EVENT_MESSAGE_EDITED;
        in->key = arena_printf(&r->item->arena, "%s:edit:%s", in->id, when);
        in->time_ms = ms;
        for (size_t i = 0; i < r->item->attachment_count; i++)
                r->item->files[i].url = NULL; /* they came with the message */
}

static void read_delete(struct dc_reading *r, json_t *d)
{
        const char *id = id_of(d, "id");
        struct incoming *in =
                id ? dc_events_new(r, id_of(d, "channel_id"), id_of(d, "guild_id"), 1) : NULL;

        if (!in) {
                ignore(r, "it names no message or channel");
                return;
        }
        in->type = EVENT_MESSAGE_DELETED;
        in->id = id;
        in->key = arena_printf(&r->item->arena, "%s:delete", id);
}

static void read_bulk(struct dc_reading *r, json_t *d)
{
        const json_t *ids = json_object_get(d, "ids");
        size_t n = json_array_size(ids);
        struct incoming *in;

        n = n > BULK_MAX ? BULK_MAX : n;
        in = dc_events_new(r, id_of(d, "channel_id"), id_of(d, "guild_id"), n);
        for (size_t i = 0; in && i < n; i++) {
                const char *id = json_string_value(json_array_get(ids, i));

                if (!dc_id_valid(id)) {
                        ignore(r, "it names no messages");
                        return;
                }
                in[i].type = EVENT_MESSAGE_DELETED;
                in[i].id = id;
                in[i].key = arena_printf(&r->item->arena, "%s:delete", id);
        }
}

/* ---- reactions ---- */

static void read_reaction(struct dc_reading *r, json_t *d, const char *type)
{
        const json_t *emoji = json_object_get(d, "emoji"), *member = json_object_get(d, "member"),
                     *user = json_object_get(member, "user");
        const char *message = id_of(d, "message_id"), *who = id_of(d, "user_id"),
                   *name = json_str(emoji, "name", NULL), *custom = id_of(emoji, "id");
        struct incoming *in =
                message && who && (name || custom)
                        ? dc_events_new(r, id_of(d, "channel_id"), id_of(d, "guild_id"), 1)
                        : NULL;

        if (!in) {
                ignore(r, "it names no message, person or emoji");
                return;
        }
        dc_read_person(r, user, member, in);
        in->sender_id = who; /* in a DM this is all there is */
        in->is_own = is_self(r, who);
        in->type = type;
        in->id = message;
        in->emoji_custom = custom != NULL;
        in->emoji_name = custom ? name : NULL;
        in->emoji = custom ? arena_printf(&r->item->arena, "%s:%s", name ? name : "emoji", custom)
                           : name;
        in->is_reply = is_self(r, json_str(d, "message_author_id", NULL));
        in->key = arena_printf(&r->item->arena, "%s:%s:%s:%s:%s:%" PRId64, message, who,
                               custom ? custom : name,
                               strcmp(type, EVENT_REACTION_RECEIVED) == 0 ? "+" : "-",
                               r->e->session ? r->e->session : "", r->e->seq);
        note_text(r, "messageAuthorId", json_str(d, "message_author_id", NULL));
}

static void read_reaction_add(struct dc_reading *r, json_t *d)
{
        read_reaction(r, d, EVENT_REACTION_RECEIVED);
}

static void read_reaction_remove(struct dc_reading *r, json_t *d)
{
        read_reaction(r, d, EVENT_REACTION_REMOVED);
}

/* ---- who ---- */

/* Webhooks are nobody's. */
static const char *who_said(const json_t *d)
{
        return is_said(d) && !json_str(d, "webhook_id", NULL)
                       ? id_of(json_object_get(d, "author"), "id")
                       : NULL;
}

static const char *who_edited(const json_t *d)
{
        int64_t ms;

        return is_edit(d, &ms) ? who_said(d) : NULL;
}

static const char *who_reacted(const json_t *d)
{
        return id_of(d, "user_id");
}

/* ---- the dispatch ---- */

static const struct {
        const char *type;
        void (*read)(struct dc_reading *r, json_t *d);
        const char *(*who)(const json_t *d); /* NULL: nobody, or it always comes with its member */
} kinds[] = {
        { "MESSAGE_CREATE", read_message, who_said },
        { "MESSAGE_UPDATE", read_edit, who_edited },
        { "MESSAGE_DELETE", read_delete, NULL },
        { "MESSAGE_DELETE_BULK", read_bulk, NULL },
        { "MESSAGE_REACTION_ADD", read_reaction_add, who_reacted },
        { "MESSAGE_REACTION_REMOVE", read_reaction_remove, who_reacted },
        { "INTERACTION_CREATE", dc_read_interaction, NULL },
};

const char *dc_event_place(const char *type, const json_t *d)
{
        for (size_t i = 0; i < COUNT(kinds); i++)
                if (strcmp(kinds[i].type, type) == 0)
                        return id_of(d, "channel_id");
        return NULL;
}

const char *dc_event_stranger(const char *type, const json_t *d)
{
        if (json_is_array(json_object_get(json_object_get(d, "member"), "roles")))
                return NULL;
        for (size_t i = 0; i < COUNT(kinds); i++)
                if (strcmp(kinds[i].type, type) == 0)
                        return kinds[i].who ? kinds[i].who(d) : NULL;
        return NULL;
}

void dc_item_read(struct dc_item *out, const struct dc_reader *reader, const struct dc_dispatch *e)
{
        struct dc_reading r = { .item = out, .by = reader, .e = e };

        *out = (struct dc_item){ 0 };
        arena_init(&out->arena);
        out->metadata = json_object();
        for (size_t i = 0; i < COUNT(kinds); i++) {
                if (strcmp(kinds[i].type, e->type) != 0)
                        continue;
                if (json_is_object(e->d))
                        kinds[i].read(&r, e->d);
                else
                        ignore(&r, "it says nothing");
                return;
        }
        ignore(&r, "it is of a kind that is nobody's message");
}

void dc_item_release(struct dc_item *item)
{
        json_decref(item->metadata);
        arena_release(&item->arena);
        *item = (struct dc_item){ 0 };
}
