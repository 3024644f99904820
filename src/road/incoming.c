#include "road/incoming.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"

/* Result of incoming_parse and incoming_dup: the struct and the memory of its strings. */
struct box {
        struct incoming in; /* first member: incoming_free casts back */
        struct arena arena;
};

static const char *const chat_names[] = {
        [CHAT_DM] = "dm",
        [CHAT_GROUP] = "group",
        [CHAT_BROADCAST] = "channel",
};

static void write_attachments(const struct incoming *in, struct buf *out)
{
        jsonw_open_member(out, "attachments", '[');
        for (size_t i = 0; i < in->attachment_count; i++) {
                const struct attachment *a = &in->attachments[i];

                jsonw_open(out, '{');
                jsonw_opt(out, "kind", a->kind);
                jsonw_opt(out, "name", a->name);
                jsonw_opt(out, "mimeType", a->mime);
                jsonw_opt(out, "url", a->url);
                jsonw_opt(out, "source", a->source);
                jsonw_opt(out, "path", a->path);
                if (a->size > 0)
                        jsonw_int(out, "size", a->size);
                jsonw_close(out, '}');
        }
        jsonw_close(out, ']');
}

void incoming_payload(const struct incoming *in, struct buf *out)
{
        jsonw_open(out, '{');
        jsonw_opt(out, "id", in->id);
        jsonw_str(out, "channelId", in->channel);
        jsonw_opt(out, "threadId", in->thread);
        jsonw_str(out, "chatType", chat_names[in->chat]);
        jsonw_opt(out, "chatName", in->chat_name);
        jsonw_opt(out, "guildId", in->guild);
        jsonw_opt(out, "platform", in->platform);
        jsonw_int(out, "timestamp", in->time_ms);
        jsonw_open_member(out, "sender", '{');
        jsonw_opt(out, "id", in->sender_id);
        jsonw_opt(out, "username", in->sender_username);
        jsonw_opt(out, "displayName", in->sender_name);
        jsonw_bool(out, "isBot", in->sender_is_bot);
        jsonw_close(out, '}');
        jsonw_opt(out, "text", in->text);
        jsonw_opt(out, "rawText", in->raw_text);
        if (in->is_mention)
                jsonw_bool(out, "isMention", true);
        if (in->is_reply)
                jsonw_bool(out, "isReply", true);
        if (in->is_for_other)
                jsonw_bool(out, "isForOther", true);
        if (in->is_own)
                jsonw_bool(out, "isOwn", true);
        jsonw_opt(out, "replyTo", in->reply_to);
        if (in->emoji) {
                jsonw_opt(out, "messageId", in->id);
                jsonw_str(out, "chatId", in->channel);
                jsonw_opt(out, "from", in->sender_id);
                jsonw_str(out, "emoji", in->emoji);
                jsonw_opt(out, "emojiName", in->emoji_name);
                jsonw_bool(out, "isCustomEmoji", in->emoji_custom);
        }
        if (in->hops > 0)
                jsonw_int(out, "hops", in->hops);
        if (in->is_command)
                jsonw_bool(out, "isCommand", true);
        if (in->is_awaited)
                jsonw_bool(out, "isAwaited", true);
        if (in->more_follows)
                jsonw_bool(out, "moreFollows", true);
        if (in->attachment_count > 0)
                write_attachments(in, out);
        jsonw_opt(out, "agent", in->agent);
        jsonw_opt(out, "caller", in->caller);
        jsonw_opt(out, "traceparent", in->traceparent);
        if (in->metadata)
                jsonw_raw(out, "metadata", in->metadata);
        jsonw_close(out, '}');
}

static struct box *box_new(void)
{
        struct box *b = mem_zalloc(sizeof(*b));

        arena_init(&b->arena);
        return b;
}

static enum chat_kind chat_kind_of(const char *name)
{
        for (size_t i = 0; i < COUNT(chat_names); i++) {
                if (strcmp(name, chat_names[i]) == 0)
                        return (enum chat_kind)i;
        }
        return CHAT_GROUP;
}

static void parse_attachments(struct box *b, const json_t *list)
{
        size_t n = json_array_size(list);
        struct attachment *items;

        if (n == 0)
                return;
        items = arena_alloc(&b->arena, n * sizeof(*items));
        for (size_t i = 0; i < n; i++) {
                const json_t *a = json_array_get(list, i);

                items[i].kind = arena_strdup(&b->arena, json_str(a, "kind", NULL));
                items[i].name = arena_strdup(&b->arena, json_str(a, "name", NULL));
                items[i].mime = arena_strdup(&b->arena, json_str(a, "mimeType", NULL));
                items[i].url = arena_strdup(&b->arena, json_str(a, "url", NULL));
                items[i].source = arena_strdup(&b->arena, json_str(a, "source", NULL));
                items[i].path = arena_strdup(&b->arena, json_str(a, "path", NULL));
                items[i].size = json_int(a, "size", 0);
        }
        b->in.attachments = items;
        b->in.attachment_count = n;
}

/* Copies a string member into the box. */
static const char *keep(struct box *b, const json_t *object, const char *key)
{
        return arena_strdup(&b->arena, json_str(object, key, NULL));
}

struct incoming *incoming_parse(const struct bus_event *e, struct error *err)
{
        json_t *p = json_read(e->payload, strlen(e->payload), err);
        const json_t *sender;
        struct incoming *in;
        struct box *b;
        char *metadata;

        if (!p || !json_is_object(p)) {
                json_decref(p);
                error_set(err, ERR_CORRUPT, "payload of event %lld is no JSON object",
                          (long long)e->seq);
                return NULL;
        }
        sender = json_object_get(p, "sender");
        b = box_new();
        in = &b->in;
        in->event = e->seq;
        in->type = arena_strdup(&b->arena, e->type);
        in->adapter = arena_strdup(&b->arena, e->adapter);
        in->channel = arena_strdup(&b->arena, e->channel);
        in->thread = arena_strdup(&b->arena, e->thread);
        in->trace = arena_strdup(&b->arena, e->trace);
        in->key = arena_strdup(&b->arena, e->key);
        in->platform = keep(b, p, "platform");
        in->id = keep(b, p, "id");
        in->chat = chat_kind_of(json_str(p, "chatType", "group"));
        in->chat_name = keep(b, p, "chatName");
        in->guild = keep(b, p, "guildId");
        in->sender_id = keep(b, sender, "id");
        in->sender_username = keep(b, sender, "username");
        in->sender_name = keep(b, sender, "displayName");
        in->sender_is_bot = json_flag(sender, "isBot", false);
        in->text = keep(b, p, "text");
        in->raw_text = keep(b, p, "rawText");
        in->is_mention = json_flag(p, "isMention", false);
        in->is_reply = json_flag(p, "isReply", false);
        in->is_for_other = json_flag(p, "isForOther", false);
        in->is_own = json_flag(p, "isOwn", false);
        in->reply_to = keep(b, p, "replyTo");
        in->emoji = keep(b, p, "emoji");
        in->emoji_name = keep(b, p, "emojiName");
        in->emoji_custom = json_flag(p, "isCustomEmoji", false);
        in->time_ms = json_int(p, "timestamp", e->time_ms);
        in->hops = (int)json_int(p, "hops", 0);
        in->is_command = json_flag(p, "isCommand", false);
        in->is_awaited = json_flag(p, "isAwaited", false);
        in->more_follows = json_flag(p, "moreFollows", false);
        in->agent = keep(b, p, "agent");
        in->caller = keep(b, p, "caller");
        in->traceparent = keep(b, p, "traceparent");
        parse_attachments(b, json_object_get(p, "attachments"));
        metadata =
                json_object_get(p, "metadata") ? json_text(json_object_get(p, "metadata")) : NULL;
        in->metadata = arena_strdup(&b->arena, metadata);
        free(metadata);
        json_decref(p);
        return in;
}

struct incoming *incoming_from_row(const struct journal_row *row, struct error *err)
{
        return incoming_parse(&(struct bus_event){ .seq = row->seq,
                                                   .type = row->type,
                                                   .time_ms = row->time_ms,
                                                   .adapter = row->adapter,
                                                   .channel = row->channel,
                                                   .thread = row->thread,
                                                   .trace = row->trace,
                                                   .key = row->key,
                                                   .payload = row->payload },
                              err);
}

/* Copies as valid UTF-8; the common case is one scan and one copy. */
static const char *copy(struct box *b, const char *text)
{
        char *clean;
        const char *kept;
        size_t n;

        if (!text)
                return NULL;
        n = strlen(text);
        if (utf8_valid(text, n))
                return arena_strdup(&b->arena, text);
        clean = utf8_clean(text, n);
        kept = arena_strdup(&b->arena, clean);
        free(clean);
        return kept;
}

struct incoming *incoming_dup(const struct incoming *from)
{
        struct box *b = box_new();
        struct incoming *in = &b->in;
        struct incoming_part *parts = arena_alloc(&b->arena, from->part_count * sizeof(*parts));
        struct attachment *items = arena_alloc(&b->arena, from->attachment_count * sizeof(*items));

        *in = *from;
        in->type = copy(b, from->type ? from->type : EVENT_MESSAGE_RECEIVED);
        in->adapter = copy(b, from->adapter);
        in->platform = copy(b, from->platform);
        in->key = copy(b, from->key);
        in->id = copy(b, from->id);
        in->channel = copy(b, from->channel);
        in->thread = copy(b, from->thread);
        in->chat_name = copy(b, from->chat_name);
        in->guild = copy(b, from->guild);
        in->sender_id = copy(b, from->sender_id);
        in->sender_username = copy(b, from->sender_username);
        in->sender_name = copy(b, from->sender_name);
        in->text = copy(b, from->text);
        in->raw_text = copy(b, from->raw_text);
        in->reply_to = copy(b, from->reply_to);
        in->emoji = copy(b, from->emoji);
        in->emoji_name = copy(b, from->emoji_name);
        in->trace = copy(b, from->trace);
        in->metadata = copy(b, from->metadata);
        in->agent = copy(b, from->agent);
        in->caller = copy(b, from->caller);
        in->traceparent = copy(b, from->traceparent);
        in->parts = parts;
        for (size_t i = 0; i < from->part_count; i++) {
                parts[i].key = copy(b, from->parts[i].key);
                parts[i].id = copy(b, from->parts[i].id);
        }
        in->attachments = items;
        for (size_t i = 0; i < from->attachment_count; i++) {
                items[i].kind = copy(b, from->attachments[i].kind);
                items[i].name = copy(b, from->attachments[i].name);
                items[i].mime = copy(b, from->attachments[i].mime);
                items[i].url = copy(b, from->attachments[i].url);
                items[i].source = copy(b, from->attachments[i].source);
                items[i].path = copy(b, from->attachments[i].path);
                items[i].error = copy(b, from->attachments[i].error);
                items[i].size = from->attachments[i].size;
        }
        return in;
}

struct incoming *incoming_edited(const struct incoming *said, const struct incoming *edit)
{
        struct incoming now = *said;

        now.text = edit->text;
        now.raw_text = edit->raw_text;
        if (edit->attachment_count > 0) {
                now.attachments = edit->attachments;
                now.attachment_count = edit->attachment_count;
        }
        return incoming_dup(&now);
}

void incoming_free(struct incoming *in)
{
        struct box *b = (struct box *)in;

        if (!b)
                return;
        arena_release(&b->arena);
        free(b);
}

const char *incoming_sender(const struct incoming *in)
{
        if (in->sender_name)
                return in->sender_name;
        if (in->sender_username)
                return in->sender_username;
        return in->sender_id ? in->sender_id : "someone";
}

bool incoming_is_type(const char *type)
{
        static const char *const inbound[] = {
                EVENT_MESSAGE_RECEIVED,  EVENT_MESSAGE_EDITED,   EVENT_MESSAGE_DELETED,
                EVENT_REACTION_RECEIVED, EVENT_REACTION_REMOVED, EVENT_CALENDAR,
                EVENT_SCHEDULE_FIRED,
        };

        for (size_t i = 0; i < COUNT(inbound); i++) {
                if (strcmp(type, inbound[i]) == 0)
                        return true;
        }
        return false;
}

bool incoming_is_scheduled(const struct incoming *in)
{
        return in->type && strcmp(in->type, EVENT_SCHEDULE_FIRED) == 0;
}

bool incoming_is_operators(const struct incoming *in)
{
        return in->platform && strcmp(in->platform, "cli") == 0 && in->caller &&
               strcmp(in->caller, INCOMING_OPERATOR) == 0;
}

bool incoming_has_no_person(const struct incoming *in)
{
        return incoming_is_scheduled(in) && in->sender_id &&
               strcmp(in->sender_id, SCHEDULE_SENDER) == 0;
}
