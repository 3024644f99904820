#include "platform/markdown/md_doc.h"

#include <ctype.h>
#include <md4c.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "platform/markdown/markdown.h"

/* Bounds on growth: md4c fills up short table rows, and repeats a referenced address each time. */
enum { CELLS_MAX = 16 * 1024, URL_BYTES_MAX = 256 * 1024 };

/* Ends parsing from a callback. md4c 0.4.8 loses positive values, against its manual. */
enum { STOP = -1 };

struct list {
        bool ordered;
        bool tight;
        bool started; /* an item was seen */
        unsigned next;
};

/* A list item whose marker no block has taken yet. */
struct marker {
        bool waiting;
        bool blank;
        bool ordered;
        unsigned ordinal;
        char task;
};

struct md_parser {
        struct md_doc *doc;
        struct list *lists;
        size_t list_depth, list_cap;
        unsigned quote_depth;
        size_t quotes; /* outermost quotes seen */
        bool open;     /* the last block takes text */
        bool in_table;
        struct marker marker;
        unsigned bold, italic, strike, mono; /* nesting of each style */
        size_t link;                         /* 1 + index of the link we are in */
        unsigned link_depth;
};

/* Room for one more in an array of structs. */
static void *grow(void *array, size_t count, size_t *cap, size_t size)
{
        if (count < *cap)
                return array;
        *cap = *cap ? *cap * 2 : 16;
        return mem_realloc(array, *cap * size);
}

void md_doc_init(struct md_doc *doc)
{
        *doc = (struct md_doc){ 0 };
        buf_init(&doc->text, 0);
        buf_init(&doc->urls, 0);
}

void md_doc_release(struct md_doc *doc)
{
        buf_release(&doc->text);
        buf_release(&doc->urls);
        free(doc->blocks);
        free(doc->runs);
        free(doc->links);
        free(doc->cells);
        md_doc_init(doc);
}

static struct md_block *add_block(struct md_doc *doc, enum md_kind kind)
{
        struct md_block *b;

        doc->blocks = grow(doc->blocks, doc->block_count, &doc->block_cap, sizeof(*doc->blocks));
        b = &doc->blocks[doc->block_count++];
        *b = (struct md_block){ .kind = kind, .blank = true, .first = doc->run_count };
        return b;
}

static void add_run(struct md_doc *doc, size_t off, unsigned style, size_t link)
{
        doc->runs = grow(doc->runs, doc->run_count, &doc->run_cap, sizeof(*doc->runs));
        doc->runs[doc->run_count++] = (struct md_run){ .off = off, .style = style, .link = link };
        doc->blocks[doc->block_count - 1].count++;
}

static struct md_block *begin_block(struct md_parser *p, enum md_kind kind)
{
        struct md_block *b = add_block(p->doc, kind);
        bool tight = p->list_depth > 0 && p->lists[p->list_depth - 1].tight;

        b->quote_depth = p->quote_depth;
        b->quote = p->quote_depth ? p->quotes : 0;
        b->list_depth = (unsigned)p->list_depth;
        b->blank = !tight;
        if (p->marker.waiting) {
                b->item = true;
                b->blank = p->marker.blank;
                b->ordered = p->marker.ordered;
                b->ordinal = p->marker.ordinal;
                b->task = p->marker.task;
                p->marker.waiting = false;
        }
        p->open = true;
        return b;
}

/* Gives the text after `off` the current style; equal neighbours are one run. */
static void end_text(struct md_parser *p, size_t off)
{
        struct md_doc *doc = p->doc;
        struct md_block *b = &doc->blocks[doc->block_count - 1];
        struct md_run *last = b->count ? &doc->runs[doc->run_count - 1] : NULL;
        unsigned style = (p->bold ? MD_BOLD : 0u) | (p->italic ? MD_ITALIC : 0u) |
                         (p->strike ? MD_STRIKE : 0u) | (p->mono ? MD_MONO : 0u);

        if (doc->text.len == off)
                return;
        if (!last || last->style != style || last->link != p->link) {
                add_run(doc, off, style, p->link);
                last = &doc->runs[doc->run_count - 1];
        }
        last->len = doc->text.len - last->off;
}

/* The HTML entities models use; others stay as written. */
static const struct {
        const char *name;
        uint32_t cp;
} entities[] = {
        { "amp", '&' },       { "lt", '<' },        { "gt", '>' },       { "quot", '"' },
        { "apos", '\'' },     { "nbsp", 0xa0 },     { "iexcl", 0xa1 },   { "cent", 0xa2 },
        { "pound", 0xa3 },    { "yen", 0xa5 },      { "sect", 0xa7 },    { "copy", 0xa9 },
        { "laquo", 0xab },    { "not", 0xac },      { "shy", 0xad },     { "reg", 0xae },
        { "deg", 0xb0 },      { "plusmn", 0xb1 },   { "sup2", 0xb2 },    { "sup3", 0xb3 },
        { "micro", 0xb5 },    { "para", 0xb6 },     { "middot", 0xb7 },  { "raquo", 0xbb },
        { "frac14", 0xbc },   { "frac12", 0xbd },   { "frac34", 0xbe },  { "iquest", 0xbf },
        { "Auml", 0xc4 },     { "Ouml", 0xd6 },     { "times", 0xd7 },   { "Uuml", 0xdc },
        { "szlig", 0xdf },    { "auml", 0xe4 },     { "eacute", 0xe9 },  { "ouml", 0xf6 },
        { "divide", 0xf7 },   { "uuml", 0xfc },     { "alpha", 0x3b1 },  { "beta", 0x3b2 },
        { "gamma", 0x3b3 },   { "delta", 0x3b4 },   { "lambda", 0x3bb }, { "mu", 0x3bc },
        { "pi", 0x3c0 },      { "sigma", 0x3c3 },   { "omega", 0x3c9 },  { "ensp", 0x2002 },
        { "emsp", 0x2003 },   { "thinsp", 0x2009 }, { "ndash", 0x2013 }, { "mdash", 0x2014 },
        { "lsquo", 0x2018 },  { "rsquo", 0x2019 },  { "ldquo", 0x201c }, { "rdquo", 0x201d },
        { "bull", 0x2022 },   { "hellip", 0x2026 }, { "prime", 0x2032 }, { "euro", 0x20ac },
        { "trade", 0x2122 },  { "larr", 0x2190 },   { "uarr", 0x2191 },  { "rarr", 0x2192 },
        { "darr", 0x2193 },   { "harr", 0x2194 },   { "rArr", 0x21d2 },  { "hArr", 0x21d4 },
        { "part", 0x2202 },   { "sum", 0x2211 },    { "minus", 0x2212 }, { "radic", 0x221a },
        { "infin", 0x221e },  { "int", 0x222b },    { "asymp", 0x2248 }, { "ne", 0x2260 },
        { "equiv", 0x2261 },  { "le", 0x2264 },     { "ge", 0x2265 },    { "check", 0x2713 },
        { "hearts", 0x2665 }, { "commat", '@' },    { "ast", '*' },      { "lowbar", '_' },
        { "num", '#' },       { "vert", '|' },      { "grave", '`' },    { "Tab", '\t' },
};

/* "&name;", "&#10;" or "&#xa;"; an unknown name stays as written. */
static void add_entity(struct buf *out, const char *entity, size_t n)
{
        const char *name = entity + 1;
        size_t len = n - 2; /* without & and ; */
        uint32_t cp = 0, base = 10;
        char bytes[4];
        size_t i = 0;

        if (n > 3 && *name == '#') {
                if (name[1] == 'x' || name[1] == 'X')
                        base = 16;
                for (i = base == 16 ? 2 : 1; i < len && cp < 0x110000; i++) {
                        uint32_t c = (unsigned char)name[i];

                        cp = cp * base + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
                }
                if (cp >= 0x110000)
                        cp = 0xfffd;
        } else {
                while (n > 2 && i < COUNT(entities) &&
                       (strlen(entities[i].name) != len ||
                        memcmp(entities[i].name, name, len) != 0))
                        i++;
                if (n <= 2 || i == COUNT(entities)) {
                        buf_add(out, entity, n);
                        return;
                }
                cp = entities[i].cp;
        }
        buf_add(out, bytes, utf8_encode(cp ? cp : 0xfffd, bytes));
}

/* The length of <br>, <br/> or <br /> at p, which models write in tables; 0: something else. */
static size_t br_length(const char *p, size_t n)
{
        size_t i = 3;

        if (n < 4 || strncasecmp(p, "<br", 3) != 0)
                return 0;
        while (i < n && p[i] == ' ')
                i++;
        if (i < n && p[i] == '/')
                i++;
        return i < n && p[i] == '>' ? i + 1 : 0;
}

static void add_normal(struct buf *out, const char *text, size_t n)
{
        while (n > 0) {
                const char *lt = memchr(text, '<', n);
                size_t plain = lt ? (size_t)(lt - text) : n;
                size_t br;

                buf_add(out, text, plain);
                text += plain;
                n -= plain;
                if (n == 0)
                        return;
                br = br_length(text, n);
                buf_addch(out, br ? '\n' : '<');
                text += br ? br : 1;
                n -= br ? br : 1;
        }
}

static int on_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *arg)
{
        struct md_parser *p = arg;
        struct buf *out = &p->doc->text;
        size_t off = out->len;

        /* md4c does not announce the paragraph of an item in a tight list. */
        if (!p->open && !p->in_table)
                begin_block(p, MD_PARAGRAPH);
        switch (type) {
        case MD_TEXT_BR:
        case MD_TEXT_SOFTBR:
                buf_addch(out, '\n');
                break;
        case MD_TEXT_ENTITY:
                add_entity(out, text, size);
                break;
        case MD_TEXT_NULLCHAR:
                buf_addstr(out, "\xef\xbf\xbd");
                break;
        case MD_TEXT_NORMAL:
                add_normal(out, text, size);
                break;
        default:
                buf_add(out, text, size);
        }
        if (!p->in_table)
                end_text(p, off);
        return 0;
}

/* An image inside a link belongs to the link: a label has one address. */
static int enter_link(struct md_parser *p, const MD_ATTRIBUTE *url)
{
        struct md_doc *doc = p->doc;
        size_t off = doc->urls.len;

        if (p->link_depth++ > 0)
                return 0;
        for (size_t i = 0; url->size > 0 && url->substr_offsets[i] < url->size; i++) {
                const char *piece = url->text + url->substr_offsets[i];
                size_t n = url->substr_offsets[i + 1] - url->substr_offsets[i];

                if (url->substr_types[i] == MD_TEXT_ENTITY)
                        add_entity(&doc->urls, piece, n);
                else
                        buf_add(&doc->urls, piece, n);
        }
        doc->links = grow(doc->links, doc->link_count, &doc->link_cap, sizeof(*doc->links));
        doc->links[doc->link_count] =
                (struct md_link){ off, doc->urls.len - off, doc->text.len, 0 };
        p->link = ++doc->link_count;
        return doc->urls.len > URL_BYTES_MAX ? STOP : 0;
}

static void leave_link(struct md_parser *p)
{
        struct md_doc *doc = p->doc;
        struct md_link *link;
        const char *url, *label;

        if (--p->link_depth > 0)
                return;
        link = &doc->links[p->link - 1];
        url = doc->urls.data + link->url;
        if (doc->text.len == link->label && link->url_len > 0)
                on_text(MD_TEXT_CODE, url, (MD_SIZE)link->url_len, p);
        link->label_len = doc->text.len - link->label;
        label = doc->text.data + link->label;
        /* A cell is plain text: it shows the address itself. */
        if (p->in_table && link->url_len > 0 &&
            (link->url_len != link->label_len || memcmp(url, label, link->url_len) != 0)) {
                buf_addstr(&doc->text, " (");
                buf_add(&doc->text, url, link->url_len);
                buf_addstr(&doc->text, ")");
        }
        p->link = 0;
}

static unsigned *style_counter(struct md_parser *p, MD_SPANTYPE type)
{
        switch (type) {
        case MD_SPAN_STRONG:
                return &p->bold;
        case MD_SPAN_DEL:
                return &p->strike;
        case MD_SPAN_CODE:
                return &p->mono;
        default:
                return &p->italic;
        }
}

static int on_enter_span(MD_SPANTYPE type, void *detail, void *arg)
{
        struct md_parser *p = arg;

        if (!p->open && !p->in_table)
                begin_block(p, MD_PARAGRAPH);
        if (type == MD_SPAN_A)
                return enter_link(p, &((MD_SPAN_A_DETAIL *)detail)->href);
        if (type == MD_SPAN_IMG)
                return enter_link(p, &((MD_SPAN_IMG_DETAIL *)detail)->src);
        ++*style_counter(p, type);
        return 0;
}

static int on_leave_span(MD_SPANTYPE type, void *detail, void *arg)
{
        struct md_parser *p = arg;

        (void)detail;
        if (type == MD_SPAN_A || type == MD_SPAN_IMG)
                leave_link(p);
        else
                --*style_counter(p, type);
        return 0;
}

static void enter_item(struct md_parser *p, const MD_BLOCK_LI_DETAIL *detail)
{
        struct list *list = &p->lists[p->list_depth - 1];

        p->marker = (struct marker){
                .waiting = true,
                .blank = list->started ? !list->tight : p->list_depth == 1,
                .ordered = list->ordered,
                .ordinal = list->next++,
                .task = detail->is_task ? (detail->task_mark == ' ' ? ' ' : 'x') : (char)0,
        };
        list->started = true;
        p->open = false;
}

/* "c++", "objective-c", "c#", "asp.net"; anything else could be markup in some dialect. */
static void set_language(struct md_block *b, const MD_ATTRIBUTE *lang)
{
        if (lang->size >= sizeof(b->lang))
                return;
        for (MD_SIZE i = 0; i < lang->size; i++) {
                if (!isalnum((unsigned char)lang->text[i]) && !strchr("+-#._", lang->text[i]))
                        return;
        }
        if (lang->size > 0)
                memcpy(b->lang, lang->text, lang->size);
}

static int add_cell(struct md_parser *p, const MD_BLOCK_TD_DETAIL *detail)
{
        struct md_doc *doc = p->doc;

        if (doc->cell_count == CELLS_MAX)
                return STOP;
        doc->cells = grow(doc->cells, doc->cell_count, &doc->cell_cap, sizeof(*doc->cells));
        doc->cells[doc->cell_count++] =
                (struct md_cell){ .off = doc->text.len, .right = detail->align == MD_ALIGN_RIGHT };
        doc->blocks[doc->block_count - 1].count++;
        return 0;
}

static int on_enter_block(MD_BLOCKTYPE type, void *detail, void *arg)
{
        struct md_parser *p = arg;
        struct md_block *table;
        struct list *list;

        switch (type) {
        case MD_BLOCK_QUOTE:
                p->quotes += p->quote_depth++ == 0;
                p->open = false;
                return 0;
        case MD_BLOCK_UL:
        case MD_BLOCK_OL:
                p->lists = grow(p->lists, p->list_depth, &p->list_cap, sizeof(*p->lists));
                list = &p->lists[p->list_depth++];
                *list = (struct list){ .ordered = type == MD_BLOCK_OL };
                if (list->ordered) {
                        list->tight = ((const MD_BLOCK_OL_DETAIL *)detail)->is_tight;
                        list->next = ((const MD_BLOCK_OL_DETAIL *)detail)->start;
                } else {
                        list->tight = ((const MD_BLOCK_UL_DETAIL *)detail)->is_tight;
                }
                p->open = false;
                return 0;
        case MD_BLOCK_LI:
                enter_item(p, detail);
                return 0;
        case MD_BLOCK_HR:
                begin_block(p, MD_RULE);
                return 0;
        case MD_BLOCK_H:
                begin_block(p, MD_HEADING)->level = ((MD_BLOCK_H_DETAIL *)detail)->level;
                return 0;
        case MD_BLOCK_CODE:
                set_language(begin_block(p, MD_CODE), &((MD_BLOCK_CODE_DETAIL *)detail)->lang);
                return 0;
        case MD_BLOCK_P:
                begin_block(p, MD_PARAGRAPH);
                return 0;
        case MD_BLOCK_TABLE:
                table = begin_block(p, MD_TABLE);
                table->columns = ((MD_BLOCK_TABLE_DETAIL *)detail)->col_count;
                table->first = p->doc->cell_count;
                p->in_table = true;
                return 0;
        case MD_BLOCK_TH:
        case MD_BLOCK_TD:
                return add_cell(p, detail);
        default:
                return 0;
        }
}

static int on_leave_block(MD_BLOCKTYPE type, void *detail, void *arg)
{
        struct md_parser *p = arg;
        struct md_cell *cell;

        (void)detail;
        switch (type) {
        case MD_BLOCK_TH:
        case MD_BLOCK_TD:
                cell = &p->doc->cells[p->doc->cell_count - 1];
                cell->len = p->doc->text.len - cell->off;
                for (char *c = p->doc->text.data + cell->off; cell->len > 0 && *c; c++)
                        if (*c == '\n')
                                *c = ' ';
                return 0;
        case MD_BLOCK_THEAD:
        case MD_BLOCK_TBODY:
        case MD_BLOCK_TR:
                return 0;
        case MD_BLOCK_TABLE:
                p->in_table = false;
                break;
        case MD_BLOCK_LI:
                if (p->marker.waiting)
                        begin_block(p, MD_PARAGRAPH); /* an empty item still counts */
                break;
        case MD_BLOCK_UL:
        case MD_BLOCK_OL:
                p->list_depth--;
                break;
        case MD_BLOCK_QUOTE:
                p->quote_depth--;
                break;
        default:
                break;
        }
        p->open = false;
        return 0;
}

/* Is this |-|:-:| below a line with a bar? */
static bool is_table_rule(struct slice line, struct slice above)
{
        if (!memchr(line.p, '|', line.n) || !memchr(line.p, '-', line.n) ||
            !memchr(above.p, '|', above.n))
                return false;
        for (size_t i = 0; i < line.n; i++) {
                if (!strchr("|:- ", line.p[i]))
                        return false;
        }
        return true;
}

/*
 * GFM allows one dash per column in the rule of a table, and models write that; md4c 0.4.8 wants
 * three. Makes such runs of dashes long enough, outside of fenced code.
 */
static void widen_table_rules(struct buf *out, const char *text, size_t n)
{
        struct slice above = { "", 0 };
        bool code = false;

        while (n > 0) {
                const char *nl = memchr(text, '\n', n);
                size_t len = nl ? (size_t)(nl - text) : n, prefix = 0;
                struct slice line;

                while (prefix < len && (text[prefix] == ' ' || text[prefix] == '>'))
                        prefix++; /* of a quote */
                line = (struct slice){ text + prefix, len - prefix };
                code ^= line.n >= 3 &&
                        (memcmp(line.p, "```", 3) == 0 || memcmp(line.p, "~~~", 3) == 0);
                buf_add(out, text, prefix);
                if (code || !is_table_rule(line, above)) {
                        buf_add(out, line.p, line.n);
                } else {
                        for (size_t i = 0; i < line.n; i++) {
                                if (line.p[i] == '-' && (i == 0 || line.p[i - 1] != '-'))
                                        buf_addstr(out, "--");
                                buf_addch(out, line.p[i]);
                        }
                }
                if (!nl)
                        return;
                buf_addch(out, '\n');
                above = line;
                text += len + 1;
                n -= len + 1;
        }
}

int md_doc_parse(struct md_doc *doc, const char *text, size_t n)
{
        const MD_PARSER callbacks = {
                .flags = MD_DIALECT_GITHUB | MD_FLAG_NOHTML,
                .enter_block = on_enter_block,
                .leave_block = on_leave_block,
                .enter_span = on_enter_span,
                .leave_span = on_leave_span,
                .text = on_text,
        };
        struct md_parser p = { .doc = doc };
        struct buf source;
        int rc;

        if (n > MARKDOWN_PARSE_MAX)
                return 0;
        buf_init(&source, 0);
        widen_table_rules(&source, text, n);
        rc = md_parse(source.data, (MD_SIZE)source.len, &callbacks, &p);
        buf_release(&source);
        free(p.lists);
        return rc == 0;
}

void md_doc_plain(struct md_doc *doc, const char *text, size_t n)
{
        while (n > 0) {
                const char *end = memmem(text, n, "\n\n", 2);
                size_t len = end ? (size_t)(end - text) : n;

                if (len > 0) {
                        add_block(doc, MD_PARAGRAPH);
                        add_run(doc, doc->text.len, 0, 0);
                        doc->runs[doc->run_count - 1].len = len;
                        buf_add(&doc->text, text, len);
                }
                while (len < n && text[len] == '\n')
                        len++;
                text += len;
                n -= len;
        }
}
