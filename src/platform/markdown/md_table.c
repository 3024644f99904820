/* A table as aligned text, for platforms that have none. */
#include "platform/markdown/md_doc.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"

/* Columns are padded to this width at most: one long cell would multiply their size. */
enum { PAD_MAX = 40 };

static const struct {
        uint32_t first, last;
        unsigned columns;
} widths[] = {
        { 0x0300, 0x036f, 0 },   { 0x1100, 0x115f, 2 },   { 0x200b, 0x200f, 0 },
        { 0x20d0, 0x20ff, 0 },   { 0x2e80, 0xa4cf, 2 },   { 0xac00, 0xd7a3, 2 },
        { 0xf900, 0xfaff, 2 },   { 0xfe00, 0xfe0f, 0 },   { 0xfe30, 0xfe6f, 2 },
        { 0xff00, 0xff60, 2 },   { 0xffe0, 0xffe6, 2 },   { 0x1f300, 0x1f3fa, 2 },
        { 0x1f3fb, 0x1f3ff, 0 }, { 0x1f400, 0x1faff, 2 }, { 0x20000, 0x3fffd, 2 },
};

static size_t text_columns(const char *p, size_t n)
{
        size_t columns = 0, row;
        uint32_t cp;

        for (size_t i = 0; i < n;) {
                i += utf8_decode(p + i, n - i, &cp);
                for (row = 0; row < COUNT(widths) && cp > widths[row].last; row++)
                        ;
                columns += row < COUNT(widths) && cp >= widths[row].first ? widths[row].columns : 1;
        }
        return columns;
}

static void repeat(struct buf *out, char c, size_t n)
{
        while (n-- > 0)
                buf_addch(out, c);
}

static void add_cell(struct buf *out, const char *text, const struct md_cell *cell, size_t width,
                     bool last)
{
        size_t columns = text_columns(text + cell->off, cell->len);
        size_t pad = columns < width ? width - columns : 0;

        if (cell->right)
                repeat(out, ' ', pad);
        buf_add(out, text + cell->off, cell->len);
        if (!cell->right && !last)
                repeat(out, ' ', pad);
}

void md_table_add(struct buf *out, const struct md_doc *doc, const struct md_block *table)
{
        const struct md_cell *cells = doc->cells + table->first;
        size_t *width = mem_array(table->columns + 1, sizeof(*width));

        for (size_t i = 0; i < table->count; i++) {
                size_t columns = text_columns(doc->text.data + cells[i].off, cells[i].len);
                size_t *w = &width[i % table->columns];

                columns = columns < PAD_MAX ? columns : PAD_MAX;
                *w = *w > columns ? *w : columns;
        }
        for (size_t i = 0; i < table->count; i++) {
                size_t c = i % table->columns;
                bool last = c + 1 == table->columns;

                add_cell(out, doc->text.data, &cells[i], width[c], last);
                buf_addstr(out, last ? "\n" : " | ");
                if (i + 1 != table->columns)
                        continue;
                for (c = 0; c < table->columns; c++) { /* the rule below the head */
                        if (c > 0)
                                buf_addstr(out, "-+-");
                        repeat(out, '-', width[c]);
                }
                buf_addch(out, '\n');
        }
        free(width);
}
