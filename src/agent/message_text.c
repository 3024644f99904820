#include "agent/message_text.h"

#include <string.h>

void message_text_add(struct buf *out, const struct incoming *in)
{
        const char *type = in->type ? in->type : EVENT_MESSAGE_RECEIVED;
        size_t before = out->len;

        if (in->text && *in->text)
                buf_addstr(out, in->text);
        else if (in->emoji)
                buf_addf(out, "[%s %s]",
                         strcmp(type, EVENT_REACTION_REMOVED) == 0 ? "removed the reaction"
                                                                   : "reacted with",
                         in->emoji_name ? in->emoji_name : in->emoji);
        else if (strcmp(type, EVENT_MESSAGE_DELETED) == 0)
                buf_addstr(out, "[deleted a message]");
        for (size_t i = 0; i < in->attachment_count; i++) {
                const struct attachment *a = &in->attachments[i];

                buf_addf(out, "%s[attached: %s%s%s%s%s]", out->len > before ? "\n" : "",
                         a->kind ? a->kind : "file", a->name ? " " : "", a->name ? a->name : "",
                         a->error ? "; not available: " : "", a->error ? a->error : "");
        }
        if (out->len == before)
                buf_addstr(out, "[empty message]");
}

static void begin_line(struct buf *out, const char *name)
{
        if (out->len)
                buf_addch(out, '\n');
        if (name)
                buf_addf(out, "[%s]: ", name);
}

char *message_text_of_turn(const struct turn_run *run)
{
        struct buf b;

        buf_init(&b, 0);
        if (run->prompt)
                buf_addf(&b, "%s\n", run->prompt);
        for (unsigned i = 0; i < run->history_count; i++) {
                const struct transcript_line *l = &run->history[i];

                begin_line(&b, l->display ? l->display : l->name);
                buf_addstr(&b, l->text);
        }
        for (unsigned i = 0; i < run->input_count; i++) {
                const struct incoming *in = run->inputs[i];
                const char *name = in->sender_name ? in->sender_name : in->sender_id;

                begin_line(&b, in->chat == CHAT_DM ? NULL : name);
                message_text_add(&b, in);
        }
        return buf_take(&b);
}

char *message_text_of_run(const struct turn_run *run)
{
        struct buf b;

        buf_init(&b, 0);
        for (unsigned i = 0; i < run->input_count; i++) {
                const struct incoming *in = run->inputs[i];
                const char *text = in->text && *in->text ? in->text : in->emoji;

                buf_addf(&b, "%s%s", b.len ? "\n" : "", text ? text : "");
        }
        return buf_take(&b);
}
