#include "platform/markdown/md_blocks.h"

#include <ctype.h>
#include <md4c.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "platform/markdown/markdown.h"
#include "platform/markdown/md_entity.h"

/*
 * What a text may grow into. md4c fills every short table row up and repeats a referenced address
 * each time.
 */
enum { CELLS_MAX = 16 * 1024, URL_BYTES_MAX = 256 * 1024 };

/*
 * From a callback; md4c 0.4.8 loses positive values on the way out, though its manual says any will
 * do.
 */
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

struct parser {
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

static struct md_block *begin_block(struct parser *p, enum md_kind kind)
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

static unsigned style(const struct parser *p)
{
        return (p->bold ? MD_BOLD : 0u) | (p->italic ? MD_ITALIC : 0u) |
               (p->strike ? MD_STRIKE : 0u) | (p->mono ? MD_MONO : 0u);
}

/* Everything after `off` in the text belongs to the current style; equal neighbours are one run. */
static void end_text(struct parser *p, size_t off)
{
        struct md_doc *doc = p->doc;
        struct md_block *b = &doc->blocks[doc->block_count - 1];
        struct md_run *last = b->count ? &doc->runs[doc->run_count - 1] : NULL;

        if (doc->text.len == off)
                return;
        if (!last || last->style != style(p) || last->link != p->link) {
                add_run(doc, off, style(p), p->link);
                last = &doc->runs[doc->run_count - 1];
        }
        last->len = doc->text.len - last->off;
}

/* The length of <br>, <br/> or <br /> at p; 0 for anything else. Models write it in tables. */
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
        struct parser *p = arg;
        struct buf *out = &p->doc->text;
        size_t off = out->len;

        /* The paragraph of an item in a tight list is not announced. */
        if (!p->open && !p->in_table)
                begin_block(p, MD_PARAGRAPH);
        switch (type) {
        case MD_TEXT_BR:
        case MD_TEXT_SOFTBR:
                buf_addch(out, '\n');
                break;
        case MD_TEXT_ENTITY:
                md_entity_add(out, text, size);
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

/* The address of a link or image, entities decoded; returns its number. */
static size_t add_link(struct parser *p, const MD_ATTRIBUTE *url)
{
        struct md_doc *doc = p->doc;
        size_t off = doc->urls.len;

        for (size_t i = 0; url->size > 0 && url->substr_offsets[i] < url->size; i++) {
                const char *piece = url->text + url->substr_offsets[i];
                size_t n = url->substr_offsets[i + 1] - url->substr_offsets[i];

                if (url->substr_types[i] == MD_TEXT_ENTITY)
                        md_entity_add(&doc->urls, piece, n);
                else
                        buf_add(&doc->urls, piece, n);
        }
        doc->links = grow(doc->links, doc->link_count, &doc->link_cap, sizeof(*doc->links));
        doc->links[doc->link_count] =
                (struct md_link){ off, doc->urls.len - off, doc->text.len, 0 };
        return ++doc->link_count;
}

/* An image inside a link belongs to the link: a label has one address. */
static int enter_link(struct parser *p, const MD_ATTRIBUTE *url)
{
        if (p->link_depth++ > 0)
                return 0;
        p->link = add_link(p, url);
        return p->doc->urls.len > URL_BYTES_MAX ? STOP : 0;
}

static bool same(const char *a, size_t an, const char *b, size_t bn)
{
        return an == bn && memcmp(a, b, an) == 0;
}

static void leave_link(struct parser *p)
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
        if (p->in_table && link->url_len > 0 && !same(url, link->url_len, label, link->label_len)) {
                buf_addstr(&doc->text, " (");
                buf_add(&doc->text, url, link->url_len);
                buf_addstr(&doc->text, ")");
        }
        p->link = 0;
}

static unsigned *style_counter(struct parser *p, MD_SPANTYPE type)
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
        struct parser *p = arg;

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
        struct parser *p = arg;

        (void)detail;
        if (type == MD_SPAN_A || type == MD_SPAN_IMG)
                leave_link(p);
        else
                --*style_counter(p, type);
        return 0;
}

static void enter_list(struct parser *p, bool ordered, bool tight, unsigned start)
{
        p->lists = grow(p->lists, p->list_depth, &p->list_cap, sizeof(*p->lists));
        p->lists[p->list_depth++] =
                (struct list){ .ordered = ordered, .tight = tight, .next = start };
        p->open = false;
}

static void enter_item(struct parser *p, const MD_BLOCK_LI_DETAIL *detail)
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

static int add_cell(struct parser *p, const MD_BLOCK_TD_DETAIL *detail)
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

static void begin_table(struct parser *p, const MD_BLOCK_TABLE_DETAIL *detail)
{
        struct md_block *b = begin_block(p, MD_TABLE);

        b->columns = detail->col_count;
        b->first = p->doc->cell_count;
        p->in_table = true;
}

static int on_enter_block(MD_BLOCKTYPE type, void *detail, void *arg)
{
        struct parser *p = arg;

        switch (type) {
        case MD_BLOCK_QUOTE:
                p->quotes += p->quote_depth++ == 0;
                p->open = false;
                return 0;
        case MD_BLOCK_UL:
                enter_list(p, false, ((MD_BLOCK_UL_DETAIL *)detail)->is_tight, 0);
                return 0;
        case MD_BLOCK_OL:
                enter_list(p, true, ((MD_BLOCK_OL_DETAIL *)detail)->is_tight,
                           ((MD_BLOCK_OL_DETAIL *)detail)->start);
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
                begin_table(p, detail);
                return 0;
        case MD_BLOCK_TH:
        case MD_BLOCK_TD:
                return add_cell(p, detail);
        default:
                return 0;
        }
}

static void end_cell(struct parser *p)
{
        struct md_cell *cell = &p->doc->cells[p->doc->cell_count - 1];

        cell->len = p->doc->text.len - cell->off;
        for (char *c = p->doc->text.data + cell->off; cell->len > 0 && *c; c++) {
                if (*c == '\n')
                        *c = ' ';
        }
}

static int on_leave_block(MD_BLOCKTYPE type, void *detail, void *arg)
{
        struct parser *p = arg;

        (void)detail;
        switch (type) {
        case MD_BLOCK_TH:
        case MD_BLOCK_TD:
                end_cell(p);
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

/* The line without the marks of quotes around it. */
static struct slice inner_line(const char *line, size_t n)
{
        size_t i = 0;

        while (i < n && (line[i] == ' ' || line[i] == '>'))
                i++;
        return (struct slice){ line + i, n - i };
}

static bool is_fence(struct slice line)
{
        return line.n >= 3 && (memcmp(line.p, "```", 3) == 0 || memcmp(line.p, "~~~", 3) == 0);
}

/* |-|:-:| below a line with a bar. */
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

/* Every run of dashes is at least three long afterwards. */
static void add_widened(struct buf *out, struct slice line)
{
        for (size_t i = 0; i < line.n; i++) {
                bool first = line.p[i] == '-' && (i == 0 || line.p[i - 1] != '-');

                buf_addstr(out, first ? "--" : "");
                buf_addch(out, line.p[i]);
        }
}

/*
 * GFM allows one dash per column in the rule of a table, and models write that; md4c 0.4.8 wants
 * three.
 */
static void widen_table_rules(struct buf *out, const char *text, size_t n)
{
        struct slice above = { "", 0 };
        bool code = false;

        while (n > 0) {
                const char *nl = memchr(text, '\n', n);
                size_t len = nl ? (size_t)(nl - text) : n;
                struct slice line = inner_line(text, len);

                code ^= is_fence(line);
                buf_add(out, text, len - line.n);
                if (!code && is_table_rule(line, above))
                        add_widened(out, line);
                else
                        buf_add(out, line.p, line.n);
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
        struct parser p = { .doc = doc };
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

/* The length of the paragraph at p: up to the next empty line. */
static size_t paragraph_length(const char *p, size_t n)
{
        for (size_t i = 0; i + 1 < n; i++) {
                const char *nl = memchr(p + i, '\n', n - i - 1);

                if (!nl)
                        return n;
                i = (size_t)(nl - p);
                if (nl[1] == '\n')
                        return i;
        }
        return n;
}

void md_doc_plain(struct md_doc *doc, const char *text, size_t n)
{
        while (n > 0) {
                size_t len = paragraph_length(text, n);

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
