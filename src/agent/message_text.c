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
