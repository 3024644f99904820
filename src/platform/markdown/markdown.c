#include "platform/markdown/markdown.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
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

static void render(const char *text, size_t n, bool is_line, const struct markdown_limits *limits,
                   struct markdown_parts *out)
{
        struct md_atoms atoms;
        struct md_doc doc;
        char *clean = utf8_clean(text, n);

        *out = (struct markdown_parts){ 0 };
        n = normalise_lines(clean);
        md_doc_init(&doc);
        for (char *p = clean; is_line && (p = strchr(p, '\n'));)
                *p = ' ';
        if (is_line || !md_doc_parse(&doc, clean, n)) {
                md_doc_release(&doc);
                md_doc_plain(&doc, clean, n);
        }
        md_write(&doc, limits, &atoms);
        md_split(&atoms, limits->max, limits->caption, out);
        md_atoms_release(&atoms);
        md_doc_release(&doc);
        free(clean);
}

int markdown_render(const char *text, size_t n, const struct markdown_limits *limits,
                    struct markdown_parts *out, struct error *err)
{
        *out = (struct markdown_parts){ 0 };
        if (limits->max > 0 && limits->max < MARKDOWN_PART_MIN)
                return error_set(err, ERR_INVALID,
                                 "cannot split text into parts of '%zu': the least is %d",
                                 limits->max, MARKDOWN_PART_MIN);
        if (n > MARKDOWN_INPUT_MAX)
                return error_set(err, ERR_LIMIT, "cannot render '%zu' bytes: the most is %zu", n,
                                 MARKDOWN_INPUT_MAX);
        render(text, n, false, limits, out);
        return 0;
}

char *markdown_cut(const char *text, size_t n, bool is_line, const struct markdown_limits *limits,
                   bool *is_cut)
{
        static const char fence[] = "```";
        struct markdown_limits shorter = *limits;
        struct markdown_parts parts;
        char *first, *cut;
        size_t len;

        assert(limits->max == 0 ||
               limits->max >= (size_t)(is_line ? MARKDOWN_LINE_MIN : MARKDOWN_CUT_MIN));
        render(text, n, is_line, limits, &parts);
        if (parts.count > 1) {
                markdown_parts_release(&parts);
                shorter.max -= utf8_length("\n…", strlen("\n…"), limits->unit);
                render(text, n, is_line, &shorter, &parts);
        }
        if (is_cut)
                *is_cut = parts.count > 1;
        first = parts.count > 0 ? parts.items[0] : mem_strdup("");
        if (parts.count > 0)
                parts.items[0] = NULL;
        if (parts.count > 1) {
                len = strlen(first);
                cut = mem_printf("%s%s…", first,
                                 len >= 3 && strcmp(first + len - 3, fence) == 0 ? "\n" : "");
                free(first);
                first = cut;
        }
        markdown_parts_release(&parts);
        return first;
}

void markdown_parts_release(struct markdown_parts *parts)
{
        for (size_t i = 0; i < parts->count; i++)
                free(parts->items[i]);
        free(parts->items);
        *parts = (struct markdown_parts){ 0 };
}
