/*
 * fuzz_text_edit: replaces a piece of a text; the input is the text, a NUL, the old piece, a NUL,
 * the new piece.
 *
 * What is around the piece must stay, and a refusal must have a reason that is valid text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tools/text_edit.h"
#include "agent/tools/truncation.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct slice take(struct slice *rest)
{
        const char *nul = rest->n ? memchr(rest->p, '\0', rest->n) : NULL;
        size_t n = nul ? (size_t)(nul - rest->p) : rest->n;
        struct slice part = { rest->p, n };

        rest->p += n + (nul ? 1 : 0);
        rest->n -= n + (nul ? 1 : 0);
        return part;
}

/* However it is cut, the text becomes the same. */
static void clean(struct slice text)
{
        struct text_cleaner whole = { 0 }, pieces = { 0 };
        struct text_tail tail;
        struct buf a, b;

        buf_init(&a, 0);
        buf_init(&b, 0);
        text_cleaner_add(&whole, text.p, text.n, &a);
        text_cleaner_end(&whole, &a);
        for (size_t i = 0; i < text.n; i++)
                text_cleaner_add(&pieces, text.p + i, 1, &b);
        text_cleaner_end(&pieces, &b);
        if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0 || !utf8_valid(a.data, a.len))
                abort();
        text_tail_init(&tail, 0);
        text_tail_add(&tail, a.data, a.len);
        if (!text_tail_is_cut(&tail)) {
                text_tail_end(&tail);
                if (tail.text.len != a.len || tail.result.by)
                        abort();
        }
        text_tail_release(&tail);
        buf_release(&a);
        buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct slice rest = { (const char *)data, size }, text = take(&rest);
        struct text_edit edit = { .old = take(&rest) };
        struct error err = { 0 };
        struct buf all, diff;
        int64_t line = 0;
        int rc;

        edit.new = rest;
        buf_init(&all, 0);
        buf_init(&diff, 4096);
        buf_add(&all, text.p, text.n);
        rc = text_edit_apply(&all, &edit, &diff, &line, &err);
        if (rc < 0 &&
            (all.len != text.n || err.text[0] == '\0' || !utf8_valid(err.text, strlen(err.text))))
                abort();
        if (rc == 0 && (line < 1 || diff.len == 0 || edit.old.n == 0))
                abort();
        if (rc == 0 && !memchr(text.p, '\r', text.n) && all.len != text.n - edit.old.n + edit.new.n)
                abort();
        buf_release(&all);
        buf_release(&diff);
        clean((struct slice){ (const char *)data, size });
        return 0;
}
