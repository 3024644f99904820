#include "platform/markdown/markdown.h"

#include <stdlib.h>

#include "platform/markdown/md_atoms.h"

/* Line ends of any kind become '\n', in place. */
static size_t normalise_lines(char *text)
{
        size_t n = 0;

        for (const char *p = text; *p; p++) {
                if (*p != '\r')
                        text[n++] = *p;
                else if (p[1] != '\n')
                        text[n++] = '\n';
        }
        text[n] = '\0';
        return n;
}

int markdown_render(const char *text, size_t n, const struct markdown_limits *limits,
                    struct markdown_parts *out, struct error *err)
{
        struct md_atoms atoms;
        struct md_doc doc;
        char *clean;

        *out = (struct markdown_parts){ 0 };
        if (limits->max > 0 && limits->max < MARKDOWN_PART_MIN)
                return error_set(err, ERR_INVALID,
                                 "cannot split text into parts of '%zu': the least is %d",
                                 limits->max, MARKDOWN_PART_MIN);
        if (n > MARKDOWN_INPUT_MAX)
                return error_set(err, ERR_LIMIT, "cannot render '%zu' bytes: the most is %zu", n,
                                 MARKDOWN_INPUT_MAX);
        clean = utf8_clean(text, n);
        n = normalise_lines(clean);
        md_doc_init(&doc);
        if (!md_doc_parse(&doc, clean, n)) {
                md_doc_release(&doc);
                md_doc_plain(&doc, clean, n);
        }
        md_write(&doc, limits, &atoms);
        md_split(&atoms, limits->max, limits->caption, out);
        md_atoms_release(&atoms);
        md_doc_release(&doc);
        free(clean);
        return 0;
}

void markdown_parts_release(struct markdown_parts *parts)
{
        for (size_t i = 0; i < parts->count; i++)
                free(parts->items[i]);
        free(parts->items);
        *parts = (struct markdown_parts){ 0 };
}
