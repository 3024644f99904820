#include "agent/builtin/user_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/message_text.h"
#include "agent/workspace/workspace.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "bus/bus.h"

#define NAME_MAX_BYTES 64
#define HISTORY_MAX    ((size_t)64 << 10)

/* Without characters that could fake another person's line. */
static void add_name(struct buf *out, const char *name)
{
        size_t n = utf8_prefix(name, strlen(name), UTF8_BYTES, NAME_MAX_BYTES);

        buf_addch(out, '[');
        for (size_t i = 0; i < n; i++) {
                bool odd = (unsigned char)name[i] < ' ' || name[i] == '[' || name[i] == ']';

                buf_addch(out, odd ? ' ' : name[i]);
        }
        buf_addstr(out, "]: ");
}

static const char *name_of(const struct incoming *in)
{
        if (in->sender_name && *in->sender_name)
                return in->sender_name;
        if (in->sender_username && *in->sender_username)
                return in->sender_username;
        return in->sender_id && *in->sender_id ? in->sender_id : "unknown";
}

static void add_time(struct buf *out, int64_t time_ms)
{
        time_t seconds = (time_t)((time_ms > 0 ? time_ms : clock_wall_ms()) / 1000);
        struct tm tm;
        char text[40], zone[8];

        localtime_r(&seconds, &tm);
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
        strftime(zone, sizeof(zone), "%z", &tm); /* "+0100" */
        buf_addf(out, "[%s%.3s:%.2s] ", text, zone, zone + 3);
}

static bool is_image(const struct attachment *a)
{
        static const char *const types[] = { "image/png", "image/jpeg", "image/gif", "image/webp" };

        for (size_t i = 0; a->path && a->mime && i < COUNT(types); i++)
                if (strcmp(a->mime, types[i]) == 0)
                        return true;
        return false;
}

/* Files that are there; the text names those that are not. */
static void add_files(struct buf *out, const struct incoming *in)
{
        bool any = false;

        for (size_t i = 0; i < in->attachment_count; i++) {
                const struct attachment *a = &in->attachments[i];

                if (!a->path)
                        continue;
                if (!any)
                        buf_addstr(out, "\n\n<attachments>\n");
                any = true;
                buf_addf(out, WORKSPACE_INSIDE "/%s\n", a->path);
        }
        if (any)
                buf_addstr(out, "</attachments>");
}

static json_t *text_block(const char *text, size_t n)
{
        char *clean = utf8_clean(text, n);
        json_t *block = json_pack("{s:s, s:s}", "type", "text", "text", clean);

        free(clean);
        return block;
}

static void add_input(json_t *content, const struct incoming *in, bool images)
{
        struct buf text;

        buf_init(&text, 0);
        add_time(&text, in->time_ms);
        add_name(&text, name_of(in));
        message_text_add(&text, in);
        add_files(&text, in);
        json_array_append_new(content, text_block(text.data, text.len));
        buf_release(&text);
        for (size_t i = 0; images && i < in->attachment_count; i++) {
                const struct attachment *a = &in->attachments[i];

                if (is_image(a))
                        json_array_append_new(content,
                                              json_pack("{s:s, s:s, s:s, s:s}", "type", "image",
                                                        "mimeType", a->mime, "file", a->path,
                                                        "name", a->name ? a->name : "image"));
        }
}

/* Of a schedule that repeats what somebody, or something, else has said. */
static bool is_repeated(const struct incoming *in)
{
        json_t *metadata;
        bool untrusted;

        if (!incoming_is_scheduled(in) || !in->metadata)
                return false;
        metadata = json_read(in->metadata, strlen(in->metadata), NULL);
        untrusted = json_flag(metadata, "untrusted", true);
        json_decref(metadata);
        return untrusted;
}

json_t *user_message(const struct incoming *const *inputs, unsigned count, const char *asker,
                     bool images)
{
        json_t *content = json_array(), *events = json_array();
        bool untrusted = false;
        char id[BUS_ID_SIZE];
        json_t *message;

        for (unsigned i = 0; i < count; i++) {
                const struct incoming *in = inputs[i];

                add_input(content, in, images);
                json_array_append_new(events, json_string(bus_event_id(in->event, id)));
                untrusted = untrusted || !asker || !in->sender_id ||
                            strcmp(in->sender_id, asker) != 0 || is_repeated(in);
        }
        message = json_pack("{s:s, s:o, s:I, s:o}", "role", "user", "content", content, "timestamp",
                            (json_int_t)clock_wall_ms(), "events", events);
        if (untrusted)
                json_object_set_new(message, "untrusted", json_true());
        return message;
}

void user_message_add_history(json_t *message, const struct turn_run *run, int64_t after_ms)
{
        struct buf text;
        bool any = false;

        buf_init(&text, HISTORY_MAX);
        buf_addstr(&text, "<earlier>\n");
        for (unsigned i = 0; i < run->history_count; i++) {
                const struct transcript_line *l = &run->history[i];
                const char *name = l->display ? l->display : l->name;

                /* the steps have what was said in turns */
                if (after_ms > 0 && (l->turn > 0 || l->time_ms <= after_ms))
                        continue;
                any = true;
                add_name(&text, strcmp(l->role, "assistant") == 0 ? "you, the agent"
                                : name                            ? name
                                                                  : "unknown");
                buf_addf(&text, "%s\n", l->text);
        }
        buf_addstr(&text, "</earlier>");
        if (any) {
                json_array_insert_new(json_object_get(message, "content"), 0,
                                      text_block(text.data, text.len));
                if (run->inputs[0]->chat != CHAT_DM)
                        json_object_set_new(message, "untrusted", json_true());
        }
        buf_release(&text);
}

json_t *user_message_note(const char *origin, const char *text)
{
        return json_pack("{s:s, s:[{s:s, s:s}], s:s, s:I}", "role", "user", "content", "type",
                         "text", "text", text, "origin", origin, "timestamp",
                         (json_int_t)clock_wall_ms());
}
