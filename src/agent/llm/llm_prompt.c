/*
 * The conversation as a language model reads it.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/llm/llm.h"
#include "agent/message_text.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"

#define NAME_MAX_BYTES 64

/* Messages under construction: neighbours of the same role become one. */
struct prompt {
        struct buf *out;
        const char *role; /* of the message in `text`; NULL: none yet */
        struct buf text;
        bool group; /* several people may speak */
        bool begun; /* a person has said something */
};

static void flush(struct prompt *p)
{
        if (!p->role)
                return;
        jsonw_open(p->out, '{');
        jsonw_str(p->out, "role", p->role);
        jsonw_strn(p->out, "content", p->text.data, p->text.len);
        jsonw_close(p->out, '}');
        buf_clear(&p->text);
        p->role = NULL;
}

/* "[Ann]: ", without what would let a name pretend to be somebody else's line. */
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

static void add(struct prompt *p, const char *role, const char *name, const char *text)
{
        bool person = strcmp(role, "user") == 0;

        /* services refuse empty messages, and some want the first one to be a person's */
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

static const char *sender(const struct incoming *in)
{
        if (in->sender_name && *in->sender_name)
                return in->sender_name;
        if (in->sender_username && *in->sender_username)
                return in->sender_username;
        return in->sender_id;
}

static void add_input(struct prompt *p, const struct incoming *in)
{
        struct buf text;

        buf_init(&text, 0);
        message_text_add(&text, in);
        add(p, "user", sender(in), text.data);
        buf_release(&text);
}

void llm_prompt_write(struct buf *out, const struct turn_run *run)
{
        struct prompt p = { .out = out };

        buf_init(&p.text, 0);
        for (unsigned i = 0; i < run->input_count; i++)
                p.group = p.group || run->inputs[i]->chat != CHAT_DM;
        for (unsigned i = 0; i < run->history_count; i++) {
                const struct transcript_line *l = &run->history[i];

                add(&p, strcmp(l->role, "assistant") == 0 ? "assistant" : "user",
                    l->display ? l->display : l->name, l->text);
        }
        for (unsigned i = 0; i < run->input_count; i++)
                add_input(&p, run->inputs[i]);
        flush(&p);
        buf_release(&p.text);
}
