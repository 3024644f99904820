#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "agent/message_text.h"
#include "base/mem.h"
#include "base/utf8.h"

#define NAME_MAX_BYTES 64

struct llm_prompt {
        json_t *out;
        const char *role; /* of the message in `text`; NULL: none yet */
        struct buf text;
        bool group; /* several people may speak */
        bool begun; /* a person has spoken */
};

static void flush(struct llm_prompt *p)
{
        char *text;

        if (!p->role)
                return;
        text = utf8_clean(p->text.data, p->text.len);
        json_array_append_new(p->out, json_pack("{ss, s[{ss, ss}]}", "role", p->role, "content",
                                                "type", "text", "text", text));
        free(text);
        buf_clear(&p->text);
        p->role = NULL;
}

/* "[Ann]: ", without characters that could fake another person's line. */
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

static void add(struct llm_prompt *p, const char *role, const char *name, const char *text)
{
        bool person = strcmp(role, "user") == 0;

        /* services refuse empty messages, and some require a person's first */
        if (!text || !*text || (!person && !p->begun))
                return;
        p->begun = true;
        if (p->role && strcmp(p->role, role) != 0)
                flush(p);
        if (p->role)
                buf_addstr(&p->text, "\n\n");
        p->role = role;
        if (p->group && person && name && *name)
                add_name(&p->text, name);
        buf_addstr(&p->text, text);
}

static const char *sender_name(const struct incoming *in)
{
        if (in->sender_name && *in->sender_name)
                return in->sender_name;
        return in->sender_username && *in->sender_username ? in->sender_username : in->sender_id;
}

json_t *llm_prompt_messages(const struct turn_run *run)
{
        struct llm_prompt p = { .out = json_array() };
        struct buf text;

        buf_init(&p.text, 0);
        buf_init(&text, 0);
        for (unsigned i = 0; i < run->input_count; i++)
                p.group = p.group || run->inputs[i]->chat != CHAT_DM;
        for (unsigned i = 0; i < run->history_count; i++) {
                const struct transcript_line *l = &run->history[i];

                add(&p, strcmp(l->role, "assistant") == 0 ? "assistant" : "user",
                    l->display ? l->display : l->name, l->text);
        }
        for (unsigned i = 0; i < run->input_count; i++) {
                buf_clear(&text);
                message_text_add(&text, run->inputs[i]);
                add(&p, "user", sender_name(run->inputs[i]), text.data);
        }
        flush(&p);
        buf_release(&text);
        buf_release(&p.text);
        return p.out;
}
