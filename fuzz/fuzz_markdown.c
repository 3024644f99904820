/*
 * Any bytes, any dialect, any limit: every part is well formed and within the limit, and no text is
 * lost.
 *
 * Byte 0 selects dialect, unit and perhaps a caption, byte 1 the limit; the rest is the text.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../tests/lib/markdown_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *why, const char *part)
{
        fprintf(stderr, "%s:\n%s\n", why, part);
        abort();
}

static void render(const char *text, size_t n, const struct markdown_limits *limits,
                   struct buf *seen)
{
        struct markdown_parts parts;

        if (markdown_render(text, n, limits, &parts, NULL) < 0)
                fail("refused", text);
        for (size_t i = 0; i < parts.count; i++) {
                bool empty = i == 0 && limits->caption > 0 && !*parts.items[0];
                const char *why = empty ? NULL : markdown_check(parts.items[i], limits, seen);

                if (why)
                        fail(why, parts.items[i]);
        }
        markdown_parts_release(&parts);
        drop_zero_width(seen);
}

/* How a link is written depends on the limit, so texts with links have no single visible text. */
static bool may_link(const char *text, size_t n)
{
        return memmem(text, n, "](", 2) || memmem(text, n, "]:", 2) || memmem(text, n, ":", 1) ||
               memmem(text, n, "www.", 4) || memchr(text, '@', n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct markdown_limits limits;
        struct buf split, whole;
        const char *text;

        if (size < 2)
                return 0;
        limits = (struct markdown_limits){
                .dialect = (enum markdown_dialect)(data[0] & 3),
                .unit = (enum utf8_unit)((data[0] >> 2) % 3),
                .max = MARKDOWN_PART_MIN + data[1],
                .caption = (size_t)(data[0] >> 5) * 30,
        };
        text = (const char *)data + 2;
        size -= 2;
        buf_init(&split, 0);
        buf_init(&whole, 0);
        render(text, size, &limits, &split);
        limits.max = limits.caption = 0;
        render(text, size, &limits, &whole);
        if (!may_link(text, size) && strcmp(split.data, whole.data) != 0)
                fail(split.data, whole.data);
        buf_release(&split);
        buf_release(&whole);
        return 0;
}
