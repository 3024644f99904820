#include "agent/tools/call_detail.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#define ARGS_SHARE 3 /* a third is for the arguments */

void call_detail_short(struct buf *out, const char *text, size_t max)
{
        size_t n = strlen(text), k = utf8_prefix(text, n, UTF8_CODE_POINTS, max);

        buf_add(out, text, k);
        if (k < n)
                buf_addstr(out, "…");
}

/* A code block; backticks in it would end it, so the fence is longer. */
static void add_block(struct buf *out, const char *text, size_t max)
{
        size_t fence = 3, run = 0;

        if (text[strspn(text, " \t\r\n")] == '\0')
                return;
        for (const char *p = text; *p; p++) {
                run = *p == '`' ? run + 1 : 0;
                if (run >= fence)
                        fence = run + 1;
        }
        for (int i = 0; i < 2; i++) {
                buf_addch(out, '\n');
                for (size_t k = 0; k < fence; k++)
                        buf_addch(out, '`');
                if (i > 0)
                        break;
                buf_addch(out, '\n');
                call_detail_short(out, text, max);
        }
}

/* "command: make test", a line for each. */
static void add_arguments(struct buf *out, const json_t *arguments, size_t max)
{
        const char *name;
        struct buf lines;
        json_t *value;

        buf_init(&lines, 0);
        json_object_foreach((json_t *)arguments, name, value) {
                char *text;

                if (strcmp(name, "label") == 0)
                        continue;
                text = json_is_string(value) ? mem_strdup(json_string_value(value))
                                             : json_text(value);
                buf_addf(&lines, "%s%s: %s", lines.len ? "\n" : "", name, text);
                free(text);
        }
        if (lines.len > 0)
                add_block(out, lines.data, max);
        buf_release(&lines);
}

void call_detail_add(struct buf *out, const struct call_detail *d, size_t max)
{
        buf_addf(out, "%s%s **%s**", out->len ? "\n\n" : "", d->is_error ? "❌" : "✅", d->name);
        if (d->label && *d->label) {
                buf_addch(out, ' ');
                call_detail_short(out, d->label, CALL_DETAIL_LABEL);
        }
        if (d->took_ms >= 0)
                buf_addf(out, " (%.1f s)", (double)d->took_ms / 1000);
        add_arguments(out, d->arguments, max / ARGS_SHARE);
        if (d->output && *d->output)
                add_block(out, d->output, max - max / ARGS_SHARE);
}
