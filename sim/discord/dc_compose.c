/*
 * Messages of requests, with the rules that the description lacks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "sim/discord/dc_call.h"
#include "sim/discord/dc_files.h"

#define MAX_EMBED_TEXT 6000

static void replace(json_t **slot, const json_t *value)
{
        json_decref(*slot);
        *slot = json_is_array(value) ? json_deep_copy(value) : json_array();
}

/* ---- embeds ---- */

static size_t text_length(const json_t *object, const char *key)
{
        const json_t *value = json_object_get(object, key);

        return json_is_string(value) ? utf8_length(json_string_value(value),
                                                   json_string_length(value), UTF8_CODE_POINTS)
                                     : 0;
}

static size_t embed_text(const json_t *embed)
{
        const json_t *fields = json_object_get(embed, "fields"), *field;
        size_t sum = text_length(embed, "title") + text_length(embed, "description") +
                     text_length(json_object_get(embed, "footer"), "text") +
                     text_length(json_object_get(embed, "author"), "name");
        size_t i;

        json_array_foreach(fields, i, field)
                sum += text_length(field, "name") + text_length(field, "value");
        return sum;
}

static bool is_blank(const json_t *object, const char *key)
{
        const char *text = json_str(object, key, "");

        return text[strspn(text, " \t\r\n")] == '\0';
}

/* Shows it nothing, or has it a field that does? */
static bool is_empty(const json_t *embed)
{
        const json_t *fields = json_object_get(embed, "fields"), *field;
        size_t i;

        json_array_foreach(fields, i, field) {
                if (is_blank(field, "name") || is_blank(field, "value"))
                        return true;
        }
        return is_blank(embed, "title") && is_blank(embed, "description") &&
               json_array_size(fields) == 0 && !json_object_get(embed, "footer") &&
               !json_object_get(embed, "author") && !json_object_get(embed, "image") &&
               !json_object_get(embed, "thumbnail") && !json_object_get(embed, "timestamp");
}

static void trim(json_t *object, const char *key)
{
        const char *text = json_str(object, key, NULL);
        size_t n;

        if (!text)
                return;
        text += strspn(text, " \t\r\n");
        for (n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]); n--) {
        }
        json_object_set_new(object, key, json_stringn(text, n));
}

/* As Discord returns it: white space at ends removed, times with microseconds and an offset. */
static void normalise(json_t *embed)
{
        static const char *const texts[] = { "title", "description" };
        json_t *fields = json_object_get(embed, "fields"), *field;
        const char *time = json_str(embed, "timestamp", NULL);
        char kept[40];
        size_t i;
        int64_t ms;

        json_object_set_new(embed, "type", json_string("rich"));
        for (i = 0; i < COUNT(texts); i++)
                trim(embed, texts[i]);
        json_array_foreach(fields, i, field) {
                trim(field, "name");
                trim(field, "value");
                if (!json_object_get(field, "inline"))
                        json_object_set_new(field, "inline", json_false());
        }
        if (!time || clock_parse_iso(time, &ms) != 0)
                return;
        clock_iso(ms, kept);
        snprintf(kept + 19, sizeof(kept) - 19, "+00:00");
        if (ms % 1000)
                snprintf(kept + 19, sizeof(kept) - 19, ".%03d000+00:00", (int)(ms % 1000));
        json_object_set_new(embed, "timestamp", json_string(kept));
}

static int set_embeds(struct call *c, struct message *m, const json_t *embeds)
{
        size_t sum = 0, i;
        json_t *embed;

        json_array_foreach(embeds, i, embed)
                sum += embed_text(embed);
        if (sum > MAX_EMBED_TEXT)
                return dc_call_invalid(c, "embeds", "MAX_EMBED_SIZE_EXCEEDED",
                                       "Embed size exceeds maximum size of 6000");
        json_array_foreach(embeds, i, embed) {
                if (is_empty(embed))
                        return dc_call_invalid(c, "embeds", "BASE_TYPE_REQUIRED",
                                               "This field is required");
        }
        replace(&m->embeds, embeds);
        json_array_foreach(m->embeds, i, embed)
                normalise(embed);
        return 0;
}

/* ---- components ---- */

/* Gives an id to components without one. */
static void number_components(json_t *list, json_int_t *next)
{
        json_t *at;
        size_t i;

        json_array_foreach(list, i, at) {
                if (!json_is_object(at))
                        continue;
                ++*next;
                if (!json_is_integer(json_object_get(at, "id")))
                        json_object_set_new(at, "id", json_integer(*next));
                number_components(json_object_get(at, "components"), next);
        }
}

/* ---- files ---- */

static int add_file(struct call *c, struct message *m, const json_t *args,
                    const struct multipart_part *p)
{
        uint64_t number = strtoull(p->name + strlen("files["), NULL, 10);
        const json_t *list = json_object_get(args, "attachments"), *at, *entry = NULL;
        const char *description;
        json_t *file;
        size_t i;

        if (p->n > FILES_MAX_SIZE)
                return dc_call_fail(c, 413, 40005, "Request entity too large");
        json_array_foreach(list, i, at) {
                if (!entry && dc_call_args_id(at, "id") == number)
                        entry = at;
        }
        description = json_str(entry, "description", NULL);
        file = dc_file_add(c->world, m->channel, json_str(entry, "filename", p->file_name),
                           p->content_type, p->data, p->n);
        if (description)
                json_object_set_new(file, "description", json_string(description));
        json_array_append_new(m->attachments, file);
        return 0;
}

/* An edit lists the files to keep. */
static void keep_listed(struct message *m, const json_t *list)
{
        size_t i = 0;

        while (i < json_array_size(m->attachments)) {
                const char *id = json_str(json_array_get(m->attachments, i), "id", "");
                const json_t *at;
                bool listed = false;
                size_t k;

                json_array_foreach(list, k, at)
                        listed = listed || dc_call_args_id(at, "id") == dc_id_parse(id);
                if (listed)
                        i++;
                else
                        json_array_remove(m->attachments, i);
        }
}

static int set_files(struct call *c, struct message *m, const json_t *args, bool edit)
{
        const json_t *list = json_object_get(args, "attachments");

        if (edit && list)
                keep_listed(m, list);
        for (size_t i = 0; i < c->uploads.count; i++) {
                const struct multipart_part *p = &c->uploads.parts[i];

                if (p->file_name && strncmp(p->name, "files[", 6) == 0 &&
                    add_file(c, m, args, p) != 0)
                        return -1;
        }
        return 0;
}

/* ---- mentions ---- */

static bool has_word(const json_t *list, const char *word)
{
        const json_t *at;
        size_t i;

        json_array_foreach(list, i, at) {
                if (json_is_string(at) && strcmp(json_string_value(at), word) == 0)
                        return true;
        }
        return false;
}

static int check_mentions(struct call *c, const json_t *allowed)
{
        static const char *const kinds[] = { "users", "roles" };

        for (size_t i = 0; i < COUNT(kinds); i++) {
                if (has_word(json_object_get(allowed, "parse"), kinds[i]) &&
                    json_array_size(json_object_get(allowed, kinds[i])) > 0)
                        return dc_call_invalid(c, "allowed_mentions",
                                               "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
                                               "parse and a list of ids exclude each other");
        }
        return 0;
}

/* ---- the message ---- */

static void set_content(struct message *m, const char *text)
{
        free(m->content);
        m->content = mem_strdup(text ? text : "");
}

/* Copies polls and stickers unchecked. */
static void set_extra(struct message *m, const json_t *args)
{
        const json_t *poll = json_object_get(args, "poll"),
                     *stickers = json_object_get(args, "sticker_ids");

        if (json_is_object(poll) || json_array_size(stickers) > 0)
                m->extra = m->extra ? m->extra : json_object();
        if (json_is_object(poll))
                json_object_set_new(m->extra, "poll", json_deep_copy(poll));
        for (size_t i = 0; i < json_array_size(stickers); i++) {
                if (!json_object_get(m->extra, "sticker_items"))
                        json_object_set_new(m->extra, "sticker_items", json_array());
                json_array_append_new(json_object_get(m->extra, "sticker_items"),
                                      json_pack("{s:O,s:s,s:i}", "id", json_array_get(stickers, i),
                                                "name", "sticker", "format_type", 1));
        }
}

/* Flags that no edit changes. */
#define KEPT_FLAGS (MESSAGE_FLAG_HAS_THREAD | MESSAGE_FLAG_EPHEMERAL | MESSAGE_FLAG_LOADING)

static int compose(struct call *c, struct message *m, const json_t *args, bool edit)
{
        const json_t *allowed = json_object_get(args, "allowed_mentions");
        const json_t *embeds = json_object_get(args, "embeds");
        const json_t *components = json_object_get(args, "components");
        json_int_t last_id = 0;

        if (check_mentions(c, allowed) != 0)
                return -1;
        if (json_object_get(args, "content") || !edit)
                set_content(m, json_str(args, "content", NULL));
        if ((embeds || !edit) && set_embeds(c, m, embeds) != 0)
                return -1;
        if (components || !edit) {
                replace(&m->components, components);
                number_components(m->components, &last_id);
        }
        if (json_object_get(args, "flags"))
                m->flags = (m->flags & KEPT_FLAGS) | json_int(args, "flags", 0);
        m->tts = json_flag(args, "tts", m->tts);
        set_extra(m, args);
        if (set_files(c, m, args, edit) != 0)
                return -1;
        if ((m->flags & MESSAGE_FLAG_COMPONENTS) &&
            (m->content[0] || json_array_size(m->embeds) > 0))
                return dc_call_invalid(
                        c, "content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
                        "The content and embeds fields cannot be used with components v2");
        if (!m->content[0] && json_array_size(m->embeds) == 0 &&
            json_array_size(m->attachments) == 0 && json_array_size(m->components) == 0 &&
            !m->extra)
                return dc_call_fail(c, 400, 50006, "Cannot send an empty message");
        dc_message_mentions(c->world, m, json_is_null(allowed) ? NULL : allowed);
        return 0;
}

static void swap_json(json_t **a, json_t **b)
{
        json_t *kept = *a;

        *a = *b;
        *b = kept;
}

/* Swaps what an edit may change. */
static void swap_contents(struct message *m, struct message *draft)
{
        char *text = m->content;

        m->content = draft->content;
        draft->content = text;
        swap_json(&m->embeds, &draft->embeds);
        swap_json(&m->components, &draft->components);
        swap_json(&m->attachments, &draft->attachments);
        swap_json(&m->mentions, &draft->mentions);
        swap_json(&m->mention_roles, &draft->mention_roles);
        swap_json(&m->extra, &draft->extra);
        m->flags = draft->flags;
        m->tts = draft->tts;
        m->mention_everyone = draft->mention_everyone;
}

static struct message *copy_message(struct world *w, const struct message *m)
{
        struct message *draft = dc_message_new(w, m->channel, m->author);

        set_content(draft, m->content);
        replace(&draft->embeds, m->embeds);
        replace(&draft->components, m->components);
        replace(&draft->attachments, m->attachments);
        draft->extra = m->extra ? json_deep_copy(m->extra) : NULL;
        draft->type = m->type;
        draft->flags = m->flags;
        draft->tts = m->tts;
        draft->reply_to = m->reply_to;
        draft->reply_channel = m->reply_channel;
        return draft;
}

int dc_compose(struct call *c, struct message *m, const json_t *args, bool edit)
{
        struct message *draft;
        int rc;

        if (!edit)
                return compose(c, m, args, false);
        draft = copy_message(c->world, m); /* a refused edit changes nothing */
        rc = compose(c, draft, args, true);
        if (rc == 0)
                swap_contents(m, draft);
        dc_message_free(draft);
        return rc;
}

/* ---- references ---- */

static void set_snapshot(struct world *w, struct message *m, const struct message *of)
{
        struct buf b;
        json_t *copy;

        buf_init(&b, 0);
        dc_render_message(&b, NULL, w, of, NULL, RENDER_ALONE);
        copy = json_read(b.data, b.len, NULL);
        buf_release(&b);
        json_object_del(copy, "author");
        m->extra = json_pack("{s:[{s:o}]}", "message_snapshots", "message", copy);
}

int dc_compose_reference(struct call *c, struct message *m, const json_t *args)
{
        const json_t *wanted = json_object_get(args, "message_reference");
        uint64_t channel_id = dc_call_args_id(wanted, "channel_id"),
                 id = dc_call_args_id(wanted, "message_id");
        const struct channel *channel =
                channel_id ? dc_channel_find(c->world, channel_id) : m->channel;
        const struct message *to = channel ? dc_message_find(channel, id) : NULL;
        bool forward = json_int(wanted, "type", 0) == 1;

        if (!json_is_object(wanted))
                return 0;
        if (!forward && channel_id && channel_id != m->channel->id)
                return dc_call_invalid(c, "message_reference",
                                       "REPLIES_CANNOT_REPLY_TO_OTHER_CHANNEL",
                                       "Cannot reply to a message in another channel");
        if (!to && !json_flag(wanted, "fail_if_not_exists", true))
                return 0;
        if (!to)
                return dc_call_invalid(c, "message_reference", "REPLIES_UNKNOWN_MESSAGE",
                                       "Unknown message");
        if (to->type != MESSAGE_DEFAULT && to->type != MESSAGE_REPLY &&
            to->type != MESSAGE_COMMAND && to->type != MESSAGE_CONTEXT_COMMAND)
                return dc_call_invalid(c, "message_reference",
                                       "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE",
                                       "Cannot reply to a system message");
        if (!(dc_channel_permissions(c->bot, channel) & MAY_READ_HISTORY))
                return dc_call_fail(c, 403, 160002,
                                    "Cannot reply without permission to read message history");
        m->reply_to = to->id;
        m->reply_channel = channel->id;
        if (forward)
                set_snapshot(c->world, m, to);
        else
                m->type = MESSAGE_REPLY;
        return 0;
}
