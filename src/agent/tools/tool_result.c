/*
 * tool_result: how calls end.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "agent/tools/tool.h"
#include "agent/tools/tools_private.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

json_t *tool_text_block(const char *text, size_t n)
{
        char *clean = utf8_clean(text, n);
        json_t *block = json_pack("{s:s, s:s}", "type", "text", "text", clean);

        free(clean);
        return block;
}

char *tool_request_key(const struct tool_call *c)
{
        return mem_printf("agent:turn-%lld:%s", (long long)c->scope->run->id, c->id);
}

void tool_finish(struct tool_call *c, struct tool_result *r)
{
        if (!r->content)
                r->content = json_array();
        if (json_array_size(r->content) == 0)
                json_array_append_new(r->content, tool_text_block("(no output)", 11));
        if (c->tool->flags & TOOL_UNTRUSTED)
                r->untrusted = true;
        c->on_done(c, r);
}

void tool_finish_text(struct tool_call *c, bool is_error, const char *fmt, ...)
{
        struct tool_result r = { .is_error = is_error, .content = json_array() };
        struct buf text;
        va_list ap;

        buf_init(&text, 0);
        va_start(ap, fmt);
        buf_vaddf(&text, fmt, ap);
        va_end(ap);
        if (text.len > 0)
                json_array_append_new(r.content, tool_text_block(text.data, text.len));
        buf_release(&text);
        tool_finish(c, &r);
}
