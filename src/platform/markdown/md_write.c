/* Blocks become atoms in a platform's dialect. */
#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "platform/markdown/md_atoms.h"
#include "platform/markdown/md_dialect.h"

/*
 * Bounds that keep the guarantee to md_split: open spans (a quote, three styles, a link), a
 * marker, an indentation and one glyph together are shorter than MARKDOWN_PART_MIN.
 */
enum {
        GLYPH_MAX = 24,  /* bytes of source in one glyph */
        INDENT_MAX = 64, /* columns in front of a line of code */
        DEPTH_MAX = 8,   /* list levels that are indented */
        NAME_MAX_BYTES = 64,
        URL_MAX = 2048, /* where there is no limit */
};

enum link_form {
        LINK_NONE,
        LINK_SPAN,  /* markup around the label */
        LINK_BARE,  /* the address instead of the label */
        LINK_LABEL, /* the label alone says it */
        LINK_BOTH,  /* the label, then the address in parentheses */
};

/* One open inline span: a style bit, or a link. */
struct level {
        unsigned style; /* 0: the link */
        uint32_t span;
};

struct md_writer {
        const struct md_doc *doc;
        const struct markdown_limits *limits;
        const struct md_dialect *dialect;
        struct md_atoms *a;
        const struct md_block *previous;
        struct buf scratch, open, close;

        uint32_t container; /* span of the quote the block is in; 0: none */
        size_t quote;       /* which quote and depth that is */
        unsigned quote_depth;

        struct level levels[5]; /* a link and four styles */
        size_t level_count;
        unsigned given; /* styles the block has anyway: a heading is bold */
        size_t link;    /* the link we are in and how it is written */
        enum link_form form;
        bool in_address; /* after the first glyph of a link or address */
        bool one_line;   /* line breaks are spaces: headings */

        size_t indent;    /* of the block's further lines */
        enum md_cut next; /* before the next glyph */
        char before;      /* last character of source, '\n' at the start of a line */
        uint32_t last;    /* last code point */
};

static bool ends_sentence(uint32_t cp)
{
        return cp == '.' || cp == '!' || cp == '?' || cp == 0x2026 || cp == 0x3002 ||
               cp == 0xff01 || cp == 0xff1f;
}

/* Adds the scratch buffer as one glyph that shows the character `cp`. */
static struct md_atom *add_glyph(struct md_writer *w, uint32_t span, uint32_t cp)
{
        bool wide = (cp >= 0x3040 && cp <= 0x9fff) || (cp >= 0xac00 && cp <= 0xd7a3) ||
                    (cp >= 0x20000 && cp <= 0x3fffd);
        enum md_cut before = w->next;
        struct md_atom *atom;

        if (w->in_address)
                before = w->next == MD_CUT_NEVER ? MD_CUT_NEVER : MD_CUT_LINK;
        else if (w->next == MD_CUT_CLUSTER && wide) /* East Asian text has no spaces */
                before =
                        w->last >= 0x3001 && ends_sentence(w->last) ? MD_CUT_SENTENCE : MD_CUT_WORD;
        atom = md_atoms_add(w->a, MD_GLYPH, w->scratch.data, w->scratch.len, span, before);
        w->next = MD_CUT_CLUSTER;
        w->last = cp;
        w->in_address = w->form != LINK_NONE;
        return atom;
}

/* A space or a tab. */
static void add_space(struct md_writer *w, char c)
{
        md_atoms_add(w->a, MD_SPACE, &c, 1, 0, MD_CUT_NEVER);
        if (w->next > MD_CUT_NEVER && w->next < MD_CUT_LINE)
                w->next = ends_sentence(w->last) ? MD_CUT_SENTENCE : MD_CUT_WORD;
        w->before = ' ';
}

static void add_break(struct md_writer *w, uint32_t span)
{
        md_atoms_add(w->a, MD_BREAK, "\n", 1, span, MD_CUT_NEVER);
        if (w->next != MD_CUT_NEVER)
                w->next = MD_CUT_LINE;
        w->before = '\n';
}

/* The bytes of the first character as people see it. */
static size_t cluster_length(const char *p, size_t n)
{
        char window[1 + GLYPH_MAX + 4] = "\n"; /* utf8_prefix compares with what stands before */
        size_t room = n < sizeof(window) - 1 ? n : sizeof(window) - 1;
        uint32_t cp;
        size_t len;

        if (!(p[0] & 0x80) && (n == 1 || !(p[1] & 0x80)))
                return 1;
        memcpy(window + 1, p, room);
        len = utf8_decode(p, n, &cp);
        for (size_t points = 1; len < room; points++) {
                size_t more = utf8_decode(p + len, n - len, &cp);

                if (len + more > GLYPH_MAX)
                        break;
                if (utf8_prefix(window, 1 + len + more, UTF8_CODE_POINTS, 1 + points) == 1 + len)
                        break;
                len += more;
        }
        return len;
}

enum glyph_kind { GLYPH_TEXT, GLYPH_CODE, GLYPH_ADDRESS };

/* Would a name after this '@' notify somebody who must not be? Not in an e-mail address. */
static bool begins_mention(const struct md_writer *w, const char *p, enum glyph_kind kind)
{
        return *p == '@' && kind == GLYPH_TEXT && w->limits->notifies_nobody &&
               w->dialect->names_ping && !isalnum((unsigned char)w->before);
}

/* Writes the character at p and returns its length. */
static size_t write_glyph(struct md_writer *w, const char *p, size_t n, uint32_t span,
                          enum glyph_kind kind)
{
        size_t len = cluster_length(p, n);
        char after = len < n ? p[len] : '\n';
        struct md_atom *atom;
        bool control;
        size_t head;
        uint32_t cp;

        assert(len > 0);
        buf_clear(&w->scratch);
        head = utf8_decode(p, len, &cp);
        control = cp < 0x20 || (cp >= 0x7f && cp < 0xa0);
        if (control)
                buf_addstr(&w->scratch, "\xef\xbf\xbd");
        else if (head > 1 || kind == GLYPH_ADDRESS)
                buf_add(&w->scratch, p, head);
        else
                w->dialect->escape(&w->scratch, *p, w->before, after, kind == GLYPH_CODE);
        if (begins_mention(w, p, kind))
                buf_addstr(&w->scratch, MD_ZERO_WIDTH);
        buf_add(&w->scratch, p + head, len - head);
        atom = add_glyph(w, span, cp);
        if (head == 1 && !control) /* perhaps with an escape */
                atom->shown = (uint16_t)utf8_length(p, len, w->a->unit);
        w->before = p[len - 1];
        return len;
}

/* ---- code blocks and tables ---- */

/*
 * Indentation is part of the code: glyphs after the opening markup, never cut from the text that
 * follows.
 */
static void write_code_line(struct md_writer *w, const char *p, size_t n, uint32_t span)
{
        size_t i = 0;

        while (i < n && (p[i] == ' ' || p[i] == '\t'))
                i++;
        for (size_t k = 0; i < n && k < i && k < INDENT_MAX; k++) {
                buf_clear(&w->scratch);
                buf_addch(&w->scratch, p[k]);
                add_glyph(w, span, ' ');
                w->next = MD_CUT_NEVER;
        }
        while (i < n) {
                if (p[i] == ' ' || p[i] == '\t')
                        add_space(w, p[i++]);
                else
                        i += write_glyph(w, p + i, n - i, span, GLYPH_CODE);
        }
}

/* Markup with the language for "%s" and the quote's prefix after each '\n'. */
static void add_expanded(struct buf *out, const char *markup, const char *lang, struct slice line)
{
        for (; *markup; markup++) {
                if (markup[0] == '%' && markup[1] == 's') {
                        buf_addstr(out, lang);
                        markup++;
                        continue;
                }
                buf_addch(out, *markup);
                if (*markup == '\n')
                        buf_add(out, line.p, line.n);
        }
}

static uint32_t code_span(struct md_writer *w, const char *lang)
{
        struct md_piece line = w->a->spans[w->container].line;
        const char *prefix = line.len > 0 ? w->dialect->quote_line : "";
        struct slice slice = { prefix, strlen(prefix) };
        bool named = *lang && w->dialect->pre_lang.open;
        struct md_pair pair = named ? w->dialect->pre_lang : w->dialect->pre;

        if (!pair.open)
                return w->container;
        buf_clear(&w->open);
        buf_clear(&w->close);
        add_expanded(&w->open, pair.open, lang, slice);
        add_expanded(&w->close, pair.close, lang, slice);
        return md_atoms_span(w->a, w->container, false, w->open.data, w->close.data, line);
}

static void write_code(struct md_writer *w, struct slice code, const char *lang)
{
        uint32_t span = code_span(w, lang);

        while (code.n > 0 && code.p[0] == '\n') {
                code.p++;
                code.n--;
        }
        while (code.n > 0) {
                const char *nl = memchr(code.p, '\n', code.n);
                size_t len = nl ? (size_t)(nl - code.p) : code.n;

                write_code_line(w, code.p, len, span);
                if (!nl || len + 1 == code.n)
                        return;
                add_break(w, w->container);
                code.p += len + 1;
                code.n -= len + 1;
        }
}

/* ---- inline markup ---- */

/* Closes the first level that is not wanted, and all inside it. */
static void keep_levels(struct md_writer *w, unsigned style, bool in_link)
{
        for (size_t i = 0; i < w->level_count; i++) {
                if (w->levels[i].style ? !(w->levels[i].style & style) : !in_link) {
                        w->level_count = i;
                        return;
                }
        }
}

/* The innermost span for a run of this style; reuses open levels. w->open/close hold the link. */
static uint32_t enter_style(struct md_writer *w, unsigned style, struct md_pair mono)
{
        const struct {
                unsigned style;
                struct md_pair pair;
        } wanted[] = {
                { 0, { w->open.data, w->close.data } },
                { MD_BOLD, w->dialect->bold },
                { MD_ITALIC, w->dialect->italic },
                { MD_STRIKE, w->dialect->strike },
                { MD_MONO, mono },
        };
        struct md_piece line = w->a->spans[w->container].line;
        bool in_link = w->form == LINK_SPAN;
        uint32_t span;

        keep_levels(w, style, in_link);
        for (size_t k = 0; k < COUNT(wanted); k++) {
                unsigned bit = wanted[k].style;
                struct md_pair pair = wanted[k].pair;
                size_t i = 0;

                if (bit ? !(style & bit) || !pair.open : !in_link)
                        continue;
                while (i < w->level_count && w->levels[i].style != bit)
                        i++;
                if (i < w->level_count)
                        continue;
                span = i > 0 ? w->levels[i - 1].span : w->container;
                span = md_atoms_span(w->a, span, bit != 0, pair.open, pair.close, line);
                w->levels[w->level_count++] = (struct level){ .style = bit, .span = span };
        }
        return w->level_count ? w->levels[w->level_count - 1].span : w->container;
}

static struct slice link_url(const struct md_writer *w, size_t link)
{
        const struct md_link *l = &w->doc->links[link - 1];

        return (struct slice){ w->doc->urls.data + l->url, l->url_len };
}

/* Is the label the address itself, perhaps without its scheme? */
static bool label_is_address(struct slice label, struct slice url)
{
        static const char *const schemes[] = { "", "mailto:", "http://" };

        for (size_t i = 0; i < COUNT(schemes); i++) {
                size_t n = strlen(schemes[i]);

                if (url.n == n + label.n && strncmp(url.p, schemes[i], n) == 0 &&
                    memcmp(url.p + n, label.p, label.n) == 0)
                        return true;
        }
        return false;
}

static enum link_form choose_form(struct md_writer *w, size_t link)
{
        const struct md_link *l = &w->doc->links[link - 1];
        struct slice url = link_url(w, link);
        struct slice label = { w->doc->text.data + l->label, l->label_len };
        size_t max = w->limits->max ? w->limits->max / 4 : URL_MAX;
        bool same = label_is_address(label, url);

        if (url.n == 0 || (w->limits->notifies_nobody && md_dialect_is_person(url)))
                return LINK_LABEL;
        buf_clear(&w->open);
        buf_clear(&w->close);
        if (w->dialect->link(&w->open, &w->close, url)) {
                if (w->dialect->bare_links && same)
                        return LINK_BARE;
                if (w->dialect->bare_links && memmem(label.p, label.n, "://", 3))
                        return LINK_BOTH;
                if (w->open.len + w->close.len <= max)
                        return LINK_SPAN;
        }
        return same ? LINK_LABEL : LINK_BOTH;
}

/* An address as text; not escaped where the platform links it by itself. */
static void write_address(struct md_writer *w, size_t link, uint32_t span)
{
        struct slice url = link_url(w, link);
        enum glyph_kind kind = GLYPH_TEXT;
        struct buf encoded;

        buf_init(&encoded, 0);
        buf_clear(&w->open);
        buf_clear(&w->close);
        if (w->dialect->bare_links && w->dialect->link(&w->open, &w->close, url)) {
                md_dialect_add_url(&encoded, url);
                url = (struct slice){ encoded.data, encoded.len };
                kind = GLYPH_ADDRESS;
        }
        for (size_t i = 0; i < url.n;)
                i += write_glyph(w, url.p + i, url.n - i, span, kind);
        buf_release(&encoded);
}

static void leave_link(struct md_writer *w)
{
        if (w->form == LINK_BOTH) {
                keep_levels(w, 0, false);
                w->in_address = false;
                add_space(w, ' ');
                write_glyph(w, "(", 1, w->container, GLYPH_TEXT);
                write_address(w, w->link, w->container);
                write_glyph(w, ")", 1, w->container, GLYPH_TEXT);
        }
        w->link = 0;
        w->form = LINK_NONE;
        w->in_address = false;
}

static void enter_link(struct md_writer *w, size_t link)
{
        if (w->link == link)
                return;
        if (w->link)
                leave_link(w);
        keep_levels(w, MD_BOLD | MD_ITALIC | MD_STRIKE | MD_MONO, false);
        w->link = link;
        w->form = link ? choose_form(w, link) : LINK_NONE;
        w->in_address = false;
        if (w->form == LINK_BARE) {
                keep_levels(w, 0, false);
                write_address(w, link, w->container);
        }
}

/* ---- text ---- */

/* The length of the name at p that pings a whole room; 0: none. */
static size_t broadcast_length(const char *name, size_t n)
{
        static const char *const names[] = { "everyone", "here", "channel" };

        for (size_t i = 0; i < COUNT(names); i++) {
                if (n >= strlen(names[i]) && strncasecmp(name, names[i], strlen(names[i])) == 0)
                        return strlen(names[i]);
        }
        return 0;
}

/* At an '@': writes the mention and returns its length in the source; 0: it is only text. */
static size_t write_mention(struct md_writer *w, const struct md_run *run, const char *p, size_t n,
                            uint32_t span)
{
        size_t max = w->limits->max ? w->limits->max / 4 : UINT16_MAX;
        size_t len = 1;

        if (!w->limits->mention || w->link || (run->style & MD_MONO))
                return 0;
        /* an e-mail address, or a platform's own markup */
        if (isalnum((unsigned char)w->before) || (w->before & 0x80) || w->before == '<')
                return 0;
        while (len < n && len <= NAME_MAX_BYTES &&
               (isalnum((unsigned char)p[len]) || strchr("_.-", p[len])))
                len++;
        while (len > 1 && (p[len - 1] == '.' || p[len - 1] == '-'))
                len--;
        if (len == 1 || len > NAME_MAX_BYTES || broadcast_length(p + 1, len - 1) == len - 1)
                return 0;
        buf_clear(&w->scratch);
        if (!w->limits->mention(w->limits->mention_arg, (struct slice){ p + 1, len - 1 },
                                &w->scratch))
                return 0;
        if (w->scratch.len == 0 || w->scratch.len > max)
                return 0;
        add_glyph(w, span, 'x');
        w->before = p[len - 1];
        return len;
}

static void write_run(struct md_writer *w, const struct md_run *run)
{
        const char *text = w->doc->text.data + run->off;
        bool ticks = (run->style & MD_MONO) && memchr(text, '`', run->len);
        struct md_pair mono = ticks ? w->dialect->mono_ticks : w->dialect->mono;
        enum glyph_kind kind = (run->style & MD_MONO) && mono.open ? GLYPH_CODE : GLYPH_TEXT;
        unsigned style = run->style & ~w->given;

        enter_link(w, run->link);
        if (w->form == LINK_BARE)
                return;
        if (kind == GLYPH_CODE && w->dialect->mono_alone)
                style = w->form == LINK_SPAN ? style & ~(unsigned)MD_MONO : MD_MONO;
        /* code is always innermost */
        keep_levels(w, style & ~(unsigned)MD_MONO, w->form == LINK_SPAN);
        for (size_t i = 0; i < run->len;) {
                uint32_t span = enter_style(w, style, mono);
                size_t len = 1;

                if (text[i] == ' ' || text[i] == '\t') {
                        add_space(w, text[i]);
                } else if (text[i] == '\n' && (w->one_line || w->link)) {
                        add_space(w, ' ');
                } else if (text[i] == '\n') {
                        add_break(w, w->container);
                        for (size_t k = 0; k < w->indent; k++)
                                add_space(w, ' ');
                        w->before = '\n';
                        if (w->dialect->line_marks)
                                w->level_count = 0;
                } else {
                        len = text[i] == '@' ? write_mention(w, run, text + i, run->len - i, span)
                                             : 0;
                        if (len == 0)
                                len = write_glyph(w, text + i, run->len - i, span, kind);
                }
                i += len;
        }
}

static void write_runs(struct md_writer *w, const struct md_block *b)
{
        for (size_t i = 0; i < b->count; i++)
                write_run(w, &w->doc->runs[b->first + i]);
        if (w->link)
                leave_link(w);
}

/* ---- blocks ---- */

/* A heading is a span around the block, so a cut repeats it. Bold inside it adds nothing. */
static void write_heading(struct md_writer *w, const struct md_block *b)
{
        static const char *const open[] = { "# ", "## ", "### " };
        bool native = w->dialect->headings && b->level <= COUNT(open) && !b->list_depth;
        struct md_pair pair =
                native ? (struct md_pair){ open[b->level - 1], "" } : w->dialect->bold;
        uint32_t outer = w->container;

        if (pair.open)
                w->container = md_atoms_span(w->a, outer, !native, pair.open, pair.close,
                                             w->a->spans[outer].line);
        w->given = MD_BOLD;
        w->one_line = true;
        write_runs(w, b);
        w->one_line = false;
        w->given = 0;
        w->container = outer;
}

static void write_marker(struct md_writer *w, const struct md_block *b)
{
        const struct md_dialect *d = w->dialect;

        buf_clear(&w->scratch);
        if (b->ordered)
                buf_addf(&w->scratch, "%u.%s", b->ordinal,
                         !b->task         ? ""
                         : b->task == 'x' ? " ☑"
                                          : " ☐");
        else
                buf_addstr(&w->scratch, !b->task ? d->bullet : b->task == 'x' ? d->done : d->todo);
        w->indent += b->ordered ? strcspn(w->scratch.data, ".") + 2 : 2;
        add_glyph(w, w->container, 'x');
        w->next = MD_CUT_NEVER;
        add_space(w, ' ');
        w->before = '\n';
}

/* The span of the quote a block is in; shared by all blocks of one quote. */
static uint32_t quote_span(struct md_writer *w, const struct md_block *b)
{
        const struct md_dialect *d = w->dialect;
        unsigned depth = b->quote_depth < d->quote_depth ? b->quote_depth : d->quote_depth;
        bool code = b->kind == MD_CODE || b->kind == MD_TABLE;
        struct md_piece line;

        if (depth == 0 || (code && !d->quote_code)) {
                w->quote = 0;
                return 0;
        }
        if (w->quote == b->quote && w->quote_depth == depth)
                return w->container;
        w->quote = b->quote;
        w->quote_depth = depth;
        buf_clear(&w->scratch);
        for (unsigned i = 0; i < depth && d->quote_line; i++)
                buf_addstr(&w->scratch, d->quote_line);
        line = md_atoms_piece(w->a, w->scratch.data, w->scratch.len);
        return md_atoms_span(w->a, 0, false, d->quote.open ? d->quote.open : "",
                             d->quote.close ? d->quote.close : "", line);
}

/* Writes the line breaks after the previous block, and the marker of a list item. */
static void begin_block(struct md_writer *w, const struct md_block *b)
{
        uint32_t before = w->container, container = quote_span(w, b), shared = container;
        unsigned depth = b->list_depth < DEPTH_MAX ? b->list_depth : DEPTH_MAX;
        bool code = b->kind == MD_CODE || b->kind == MD_TABLE;

        if (w->previous) {
                /* an empty line has the prefix of the quote that both blocks are in */
                if (container != before && (w->previous->quote != b->quote || !b->quote))
                        shared = 0;
                else if (w->a->spans[before].line.len <= w->a->spans[container].line.len)
                        shared = before;
                w->next = MD_CUT_LINE;
                if (b->blank)
                        add_break(w, shared);
                add_break(w, container);
                w->next = b->blank && w->previous->kind != MD_HEADING ? MD_CUT_BLOCK : MD_CUT_LINE;
        }
        w->container = container;
        w->level_count = 0;
        w->indent = depth > 0 ? 2 * (size_t)(depth - 1) : 0;
        w->before = '\n';
        if (depth > 0 && !b->item)
                w->indent += 2;
        for (size_t i = 0; (b->item || !code) && i < w->indent; i++)
                add_space(w, ' ');
        w->before = '\n';
        if (!b->item)
                return;
        write_marker(w, b);
        if (!code)
                return;
        add_break(w, w->container);
        w->next = MD_CUT_LINE;
}

static bool shows_nothing(const struct md_doc *doc, const struct md_block *b)
{
        if (b->item || b->kind == MD_RULE || b->kind == MD_TABLE)
                return false;
        for (size_t i = 0; i < b->count; i++) {
                const struct md_run *run = &doc->runs[b->first + i];

                for (size_t k = 0; k < run->len; k++) {
                        if (!strchr(" \t\n", doc->text.data[run->off + k]))
                                return false;
                }
        }
        return true;
}

static void write_block(struct md_writer *w, const struct md_block *b)
{
        const struct md_run *run;
        struct buf table;

        if (shows_nothing(w->doc, b))
                return;
        begin_block(w, b);
        switch (b->kind) {
        case MD_PARAGRAPH:
                write_runs(w, b);
                break;
        case MD_HEADING:
                write_heading(w, b);
                break;
        case MD_CODE:
                if (b->count == 0)
                        break;
                run = &w->doc->runs[b->first]; /* one style: one run */
                write_code(w, (struct slice){ w->doc->text.data + run->off, run->len }, b->lang);
                break;
        case MD_TABLE:
                buf_init(&table, 0);
                md_table_add(&table, w->doc, b);
                write_code(w, (struct slice){ table.data, table.len }, "");
                buf_release(&table);
                break;
        case MD_RULE:
                buf_clear(&w->scratch);
                buf_addstr(&w->scratch, w->dialect->rule);
                add_glyph(w, w->container, 'x');
                break;
        }
        w->previous = b;
}

/* ---- pings ---- */

/*
 * Breaks every "@everyone" and "<@number" in the text. Runs after writing, because the letters may
 * come from several runs whose markup the dialect left out.
 */
static void defuse_pings(struct md_atoms *a)
{
        for (size_t i = 0; i < a->count; i++) {
                struct md_atom *atom = &a->items[i];
                struct md_piece piece;
                bool by_number;
                char name[10];
                size_t n = 0;

                if (atom->len != 1 || a->bytes.data[atom->off] != '@')
                        continue;
                by_number = i > 0 && atom[-1].kind == MD_GLYPH &&
                            a->bytes.data[atom[-1].off + atom[-1].len - 1] == '<';
                for (bool letters = true; letters && n < sizeof(name) && i + 1 + n < a->count;
                     n++) {
                        if (atom[n + 1].kind != MD_GLYPH)
                                break;
                        name[n] = a->bytes.data[atom[n + 1].off];
                        letters = atom[n + 1].len == 1; /* else marks follow on the last one */
                }
                if (!by_number && broadcast_length(name, n) == 0)
                        continue;
                piece = md_atoms_piece(a, "@" MD_ZERO_WIDTH, strlen("@" MD_ZERO_WIDTH));
                atom->off = piece.off;
                atom->len = (uint16_t)piece.len;
                atom->units = (uint16_t)piece.units;
        }
}

void md_write(const struct md_doc *doc, const struct markdown_limits *limits,
              struct md_atoms *atoms)
{
        struct md_writer w = {
                .doc = doc,
                .limits = limits,
                .dialect = &md_dialects[limits->dialect],
                .a = atoms,
                .next = MD_CUT_BLOCK,
                .before = '\n',
        };

        md_atoms_init(atoms, limits->unit, w.dialect->joint);
        buf_init(&w.scratch, 0);
        buf_init(&w.open, 0);
        buf_init(&w.close, 0);
        for (size_t i = 0; i < doc->block_count; i++)
                write_block(&w, &doc->blocks[i]);
        if (w.dialect->broadcast)
                defuse_pings(atoms);
        buf_release(&w.scratch);
        buf_release(&w.open);
        buf_release(&w.close);
}
