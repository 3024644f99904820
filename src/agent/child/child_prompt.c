/*
 * child_prompt: what an agent is told of a turn, as one text.
 *
 *     (the rule's prompt)
 *     (earlier messages, if it has no memory of the conversation)
 *     [Ann] look at the tests
 *     [attached: document log.txt]
 *     [the file is /var/lib/dragoman/workspace/channels/tg/7/attachments/log.txt]
 */
#include <stdlib.h>
#include <string.h>

#include "agent/child/child_private.h"
#include "agent/message_text.h"
#include "base/mem.h"
#include "base/utf8.h"

#define NAME_BYTES    64
#define HISTORY_BYTES ((size_t)32 << 10)

/* Without characters that could fake another person's line. */
static void add_name(struct buf *out, const struct incoming *in)
{
        const char *name = in->sender_name       ? in->sender_name
                           : in->sender_username ? in->sender_username
                           : in->sender_id       ? in->sender_id
                                                 : "unknown";
        size_t n = utf8_prefix(name, strlen(name), UTF8_BYTES, NAME_BYTES);

        buf_addch(out, '[');
        for (size_t i = 0; i < n; i++) {
                bool odd = (unsigned char)name[i] < ' ' || name[i] == '[' || name[i] == ']';

                buf_addch(out, odd ? ' ' : name[i]);
        }
        buf_addstr(out, "] ");
}

char *child_file_path(const struct child *c, const struct attachment *file)
{
        return mem_printf("%s/%s", c->place.workspace, file->path);
}

static void add_files(struct buf *out, const struct child *c, const struct incoming *in)
{
        for (size_t i = 0; i < in->attachment_count; i++) {
                char *path;

                if (!in->attachments[i].path)
                        continue;
                path = child_file_path(c, &in->attachments[i]);
                buf_addf(out, "\n[the file is %s]", path);
                free(path);
        }
}

char *child_messages_text(const struct child *c, const struct incoming *const *inputs,
                          unsigned count)
{
        struct buf text;
        char *clean;

        buf_init(&text, 0);
        for (unsigned i = 0; i < count; i++) {
                const struct incoming *in = inputs[i];

                if (i > 0)
                        buf_addstr(&text, "\n\n");
                if (in->chat != CHAT_DM)
                        add_name(&text, in);
                message_text_add(&text, in);
                add_files(&text, c, in);
        }
        clean = utf8_clean(text.data, text.len);
        buf_release(&text);
        return clean;
}

/* The last ones that fit; what was said to nobody is for ambient turns. */
static void add_history(struct buf *out, const struct child *c, const struct turn_run *run)
{
        size_t most = (size_t)c->owner->conf->history_messages, bytes = 0;
        unsigned first = run->history_count;

        while (first > 0 && run->history_count - first < most) {
                bytes += strlen(run->history[first - 1].text) + NAME_BYTES;
                if (bytes > HISTORY_BYTES)
                        break;
                first--;
        }
        if (first == run->history_count)
                return;
        buf_addstr(out, "<conversation_so_far>\n");
        for (unsigned i = first; i < run->history_count; i++) {
                const struct transcript_line *l = &run->history[i];

                buf_addf(out, "%s: %s\n",
                         l->display ? l->display
                         : l->name  ? l->name
                                    : l->role,
                         l->text);
        }
        buf_addstr(out, "</conversation_so_far>\n\n");
}

char *child_prompt_text(const struct child *c)
{
        const struct turn_run *run = child_run(c);
        char *messages, *clean;
        struct buf text;

        if (!run)
                return mem_strdup("");
        buf_init(&text, 0);
        if (run->prompt && *run->prompt)
                buf_addf(&text, "%s\n\n", run->prompt);
        if (!c->resumed || run->mode == MODE_AMBIENT)
                add_history(&text, c, run);
        messages = child_messages_text(c, run->inputs, run->input_count);
        buf_addstr(&text, messages);
        clean = utf8_clean(text.data, text.len);
        free(messages);
        buf_release(&text);
        return clean;
}
