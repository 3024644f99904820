#include "agent/message_text.h"

#include <string.h>

static bool is_type(const struct incoming *in, const char *type)
{
        return in->type && strcmp(in->type, type) == 0;
}

static void add_words(struct buf *out, const struct incoming *in)
{
        if (in->text && *in->text)
                buf_addstr(out, in->text);
        else if (in->emoji)
                buf_addf(out, "[%s %s]",
                         is_type(in, EVENT_REACTION_REMOVED) ? "took back the reaction"
                                                             : "reacted with",
                         in->emoji_name ? in->emoji_name : in->emoji);
        else if (is_type(in, EVENT_MESSAGE_DELETED))
                buf_addstr(out, "[deleted a message]");
}

void message_text_add(struct buf *out, const struct incoming *in)
{
        size_t before = out->len;

        add_words(out, in);
        for (size_t i = 0; i < in->attachment_count; i++) {
                const struct attachment *a = &in->attachments[i];

                buf_addf(out, "%s[attached: %s%s%s]", out->len > before ? "\n" : "",
                         a->kind ? a->kind : "file", a->name ? " " : "", a->name ? a->name : "");
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
