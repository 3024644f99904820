#include "platform/markdown/md_atoms.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static uint32_t add_span(struct md_atoms *a, struct md_span span)
{
        if (a->span_count == a->span_cap) {
                a->span_cap = a->span_cap ? a->span_cap * 2 : 16;
                a->spans = mem_realloc(a->spans, a->span_cap * sizeof(*a->spans));
        }
        a->spans[a->span_count] = span;
        return (uint32_t)a->span_count++;
}

void md_atoms_init(struct md_atoms *a, enum utf8_unit unit, enum md_joint joint)
{
        *a = (struct md_atoms){ .unit = unit, .joint = joint };
        buf_init(&a->bytes, 0);
        add_span(a, (struct md_span){ 0 });
}

void md_atoms_release(struct md_atoms *a)
{
        buf_release(&a->bytes);
        free(a->items);
        free(a->spans);
        *a = (struct md_atoms){ 0 };
}

struct md_piece md_atoms_piece(struct md_atoms *a, const char *text, size_t n)
{
        struct md_piece piece = {
                .off = (uint32_t)a->bytes.len,
                .len = (uint32_t)n,
                .units = (uint32_t)utf8_length(text, n, a->unit),
        };

        buf_add(&a->bytes, text, n);
        return piece;
}

struct md_atom *md_atoms_add(struct md_atoms *a, enum md_atom_kind kind, const char *text, size_t n,
                             uint32_t span, enum md_cut cut)
{
        struct md_piece piece = md_atoms_piece(a, text, n);

        if (a->count == a->cap) {
                a->cap = a->cap ? a->cap * 2 : 256;
                a->items = mem_realloc(a->items, a->cap * sizeof(*a->items));
        }
        a->items[a->count] = (struct md_atom){
                .off = piece.off,
                .span = span,
                .len = (uint16_t)n,
                .units = (uint16_t)piece.units,
                .shown = (uint16_t)piece.units,
                .kind = (uint8_t)kind,
                .cut = (uint8_t)cut,
        };
        return &a->items[a->count++];
}

uint32_t md_atoms_span(struct md_atoms *a, uint32_t parent, bool mark, const char *open,
                       const char *close, struct md_piece line)
{
        struct md_piece o = md_atoms_piece(a, open, strlen(open));
        struct md_piece c = md_atoms_piece(a, close, strlen(close));

        return add_span(a, (struct md_span){
                                   .parent = parent,
                                   .depth = a->spans[parent].depth + 1,
                                   .mark = mark,
                                   .open = o,
                                   .close = c,
                                   .line = line,
                                   .opens_units = a->spans[parent].opens_units + o.units,
                                   .closes_units = a->spans[parent].closes_units + c.units,
                           });
}
