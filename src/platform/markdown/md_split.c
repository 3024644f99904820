/* Splits a rendered text into messages. A part closes open markup, the next one reopens it. */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "platform/markdown/md_atoms.h"

/*
 * Greedy: adds atoms until one does not fit, then goes back to the best cut: the latest of the
 * highest rank that leaves the part at least half full. So every atom is written at most about
 * twice, and the whole is linear.
 */

#define NO_ATOM SIZE_MAX

/* The part as it was just before an atom. */
struct cut_point {
        size_t atom; /* NO_ATOM: none */
        size_t len, units, shown;
        uint32_t span;
};

struct splitter {
        const struct md_atoms *a;
        size_t max;
        size_t caption; /* limit on what is shown; 0: only max applies */
        struct buf part;
        size_t units;  /* of the part, open spans not yet closed */
        size_t shown;  /* the same without markup and escapes */
        uint32_t span; /* innermost open span */
        size_t last;   /* last glyph written; NO_ATOM: the part is empty */
        struct cut_point cuts[MD_CUTS];
        struct markdown_parts *out;
        size_t cap;
};

static void write_piece(struct splitter *s, struct md_piece piece)
{
        buf_add(&s->part, s->a->bytes.data + piece.off, piece.len);
        s->units += piece.units;
}

static void close_to(struct splitter *s, uint32_t ancestor)
{
        while (s->span != ancestor) {
                write_piece(s, s->a->spans[s->span].close);
                s->span = s->a->spans[s->span].parent;
        }
}

static void open_to(struct splitter *s, uint32_t span)
{
        if (span == s->span)
                return;
        open_to(s, s->a->spans[span].parent);
        write_piece(s, s->a->spans[span].open);
        s->span = span;
}

static uint32_t common_ancestor(const struct md_atoms *a, uint32_t x, uint32_t y)
{
        while (x != y) {
                if (a->spans[x].depth >= a->spans[y].depth)
                        x = a->spans[x].parent;
                else
                        y = a->spans[y].parent;
        }
        return x;
}

static bool has_mark(const struct md_atoms *a, uint32_t from, uint32_t ancestor)
{
        for (; from != ancestor; from = a->spans[from].parent) {
                if (a->spans[from].mark)
                        return true;
        }
        return false;
}

static bool wordlike(char c)
{
        return isalnum((unsigned char)c) || (c & 0x80);
}

/* Is a zero-width space needed between closing and opening marks before atom i? */
static bool needs_joint(const struct splitter *s, size_t i, uint32_t ancestor)
{
        const struct md_atoms *a = s->a;
        bool closes, opens;

        if (a->joint == MD_JOINT_NONE || s->last == NO_ATOM || s->last + 1 != i)
                return false;
        closes = has_mark(a, s->span, ancestor);
        opens = has_mark(a, a->items[i].span, ancestor);
        if (closes && opens)
                return true;
        if (a->joint != MD_JOINT_WORDS)
                return false;
        return (closes && wordlike(a->bytes.data[a->items[i].off])) ||
               (opens &&
                wordlike(a->bytes.data[a->items[s->last].off + a->items[s->last].len - 1]));
}

/* White space between the last glyph and atom i; spaces before a line break are dropped. */
static size_t first_space(const struct splitter *s, size_t i)
{
        size_t first = s->last + 1;

        for (size_t k = first; k < i; k++) {
                if (s->a->items[k].kind == MD_BREAK) {
                        while (s->a->items[first].kind == MD_SPACE)
                                first++;
                        break;
                }
        }
        return first;
}

static size_t space_units(const struct splitter *s, size_t i)
{
        size_t units = 0;

        for (size_t k = first_space(s, i); k < i && units <= s->max; k++) {
                units += s->a->items[k].units;
                if (s->a->items[k].kind == MD_BREAK)
                        units += s->a->spans[s->a->items[k].span].line.units;
        }
        return units;
}

static void write_space(struct splitter *s, size_t i)
{
        for (size_t k = first_space(s, i); k < i; k++) {
                const struct md_atom *atom = &s->a->items[k];

                write_piece(s, (struct md_piece){ atom->off, atom->len, atom->units });
                s->shown += atom->shown;
                if (atom->kind == MD_BREAK)
                        write_piece(s, s->a->spans[atom->span].line);
        }
}

/* Would the part, with atom i added and everything closed, be within the limit? */
static bool fits(const struct splitter *s, size_t i)
{
        const struct md_atoms *a = s->a;
        const struct md_span *to = &a->spans[a->items[i].span];
        const struct md_span *from = &a->spans[s->span];
        uint32_t ancestor = common_ancestor(a, s->span, a->items[i].span);
        size_t units = s->units + a->items[i].units + to->closes_units;
        size_t space = s->last == NO_ATOM ? to->line.units : space_units(s, i);

        units += from->closes_units - a->spans[ancestor].closes_units;
        units += to->opens_units - a->spans[ancestor].opens_units;
        units += space;
        if (needs_joint(s, i, ancestor))
                units += utf8_length(MD_ZERO_WIDTH, strlen(MD_ZERO_WIDTH), a->unit);
        return units <= s->max &&
               (s->caption == 0 || s->shown + space + a->items[i].shown <= s->caption);
}

static void write_atom(struct splitter *s, size_t i)
{
        const struct md_atom *atom = &s->a->items[i];
        uint32_t ancestor = common_ancestor(s->a, s->span, atom->span);
        bool joint = needs_joint(s, i, ancestor);

        close_to(s, ancestor);
        if (s->last == NO_ATOM)
                write_piece(s, s->a->spans[atom->span].line);
        else
                write_space(s, i);
        if (joint) {
                buf_addstr(&s->part, MD_ZERO_WIDTH);
                s->units += utf8_length(MD_ZERO_WIDTH, strlen(MD_ZERO_WIDTH), s->a->unit);
        }
        open_to(s, atom->span);
        write_piece(s, (struct md_piece){ atom->off, atom->len, atom->units });
        s->shown += atom->shown;
        s->last = i;
}

static void begin_part(struct splitter *s)
{
        s->units = s->shown = 0;
        s->span = 0;
        s->last = NO_ATOM;
        for (size_t i = 0; i < MD_CUTS; i++)
                s->cuts[i].atom = NO_ATOM;
}

static void end_part(struct splitter *s)
{
        close_to(s, 0);
        if (s->out->count == s->cap) {
                s->cap = s->cap ? s->cap * 2 : 4;
                s->out->items = mem_realloc(s->out->items, s->cap * sizeof(*s->out->items));
        }
        s->out->items[s->out->count++] = buf_take(&s->part);
        s->caption = 0;
        begin_part(s);
}

/* Ends the part at its best cut; returns the atom the next one starts with. */
static size_t cut(struct splitter *s)
{
        struct cut_point c = s->cuts[MD_CUT_LINK];
        bool found = false;

        for (int rank = MD_CUT_BLOCK; rank > MD_CUT_LINK; rank--) {
                const struct cut_point *p = &s->cuts[rank];
                bool full =
                        p->units >= s->max / 2 || (s->caption > 0 && p->shown >= s->caption / 2);

                if (p->atom == NO_ATOM || (!full && found && p->atom <= c.atom))
                        continue;
                c = *p;
                found = true;
                if (full)
                        break;
        }
        if (c.atom == NO_ATOM) {
                assert(s->caption > 0);
                c = (struct cut_point){ 0 }; /* all of it follows the empty caption */
        }
        buf_truncate(&s->part, c.len);
        s->units = c.units;
        s->span = c.span;
        end_part(s);
        return c.atom;
}

void md_split(const struct md_atoms *atoms, size_t max, size_t caption, struct markdown_parts *out)
{
        struct splitter s = {
                .a = atoms, .max = max ? max : SIZE_MAX, .caption = caption, .out = out
        };

        buf_init(&s.part, 0);
        begin_part(&s);
        for (size_t i = 0; i < atoms->count;) {
                if (atoms->items[i].kind != MD_GLYPH) {
                        i++;
                        continue;
                }
                if (s.last != NO_ATOM && atoms->items[i].cut != MD_CUT_NEVER)
                        s.cuts[atoms->items[i].cut] = (struct cut_point){ .atom = i,
                                                                          .len = s.part.len,
                                                                          .units = s.units,
                                                                          .shown = s.shown,
                                                                          .span = s.span };
                if (fits(&s, i))
                        write_atom(&s, i++);
                else
                        i = cut(&s);
        }
        if (s.last != NO_ATOM)
                end_part(&s);
        buf_release(&s.part);
}
