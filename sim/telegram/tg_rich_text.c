#include "sim/telegram/tg_rich_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"

void tg_rich_text_init(struct rich_text *r)
{
        memset(r, 0, sizeof(*r));
        buf_init(&r->text, 0);
}

void tg_rich_text_release(struct rich_text *r)
{
        for (size_t i = 0; i < r->count; i++)
                free(r->list[i].extra);
        free(r->list);
        json_decref(r->owner);
        buf_release(&r->text);
        memset(r, 0, sizeof(*r));
}

void tg_rich_text_add(struct rich_text *r, const char *bytes, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)bytes[i];

                /* a character counts one unit, a four-byte one two */
                r->units += (c & 0xc0u) != 0x80u ? 1u + (c >= 0xf0u) : 0u;
        }
        buf_add(&r->text, bytes, n);
}

static void push(struct rich_text *r, struct rich_text_entity e)
{
        if (r->count == r->room) {
                r->room = r->room ? r->room * 2 : 8;
                r->list = mem_realloc(r->list, r->room * sizeof(*r->list));
        }
        r->list[r->count++] = e;
}

void tg_rich_text_mark(struct rich_text *r, const char *type, size_t offset, char *extra)
{
        if (offset >= r->units) {
                free(extra);
                return;
        }
        push(r, (struct rich_text_entity){ type, offset, r->units - offset, extra });
}

/* ---- an entity list ---- */

/* Members but type, offset and length, without braces; NULL: none. */
static char *other_members(const json_t *entity)
{
        struct buf b;
        const char *key;
        json_t *value;

        buf_init(&b, 0);
        json_object_foreach((json_t *)entity, key, value) {
                char *text;

                if (strcmp(key, "type") == 0 || strcmp(key, "offset") == 0 ||
                    strcmp(key, "length") == 0)
                        continue;
                text = json_text(value);
                jsonw_raw(&b, key, text);
                free(text);
        }
        if (b.len > 0)
                return buf_take(&b);
        buf_release(&b);
        return NULL;
}

int tg_rich_text_from_entities(struct rich_text *r, const char *text, json_t *entities,
                               char problem[TG_RICH_TEXT_PROBLEM_SIZE])
{
        json_t *e;
        size_t i;

        tg_rich_text_add(r, text, strlen(text));
        r->owner = json_incref(entities);
        json_array_foreach(entities, i, e) {
                int64_t offset = json_int(e, "offset", -1), length = json_int(e, "length", -1);

                if (offset < 0 || length < 0) {
                        snprintf(problem, TG_RICH_TEXT_PROBLEM_SIZE,
                                 "Expected non-negative offset and length");
                        return -1;
                }
                if ((size_t)offset >= r->units || length == 0)
                        continue; /* the real server drops these silently */
                if ((size_t)offset + (size_t)length > r->units)
                        length = (int64_t)(r->units - (size_t)offset);
                push(r, (struct rich_text_entity){ json_str(e, "type", ""), (size_t)offset,
                                                   (size_t)length, other_members(e) });
        }
        return 0;
}

/* ---- trimming ---- */

static void clip(struct rich_text_entity *e, size_t front, size_t units)
{
        size_t end = e->offset + e->length;

        e->offset = e->offset > front ? e->offset - front : 0;
        end = end > front ? end - front : 0;
        end = end < units ? end : units;
        e->length = end > e->offset ? end - e->offset : 0;
}

void tg_rich_text_trim(struct rich_text *r)
{
        size_t front = 0, kept = 0, end;

        while (front < r->text.len && isspace((unsigned char)r->text.data[front]))
                front++;
        buf_consume(&r->text, front);
        end = r->text.len;
        while (end > 0 && isspace((unsigned char)r->text.data[end - 1]))
                end--;
        r->units -= front + (r->text.len - end);
        buf_truncate(&r->text, end);
        for (size_t i = 0; i < r->count; i++) {
                clip(&r->list[i], front, r->units);
                if (r->list[i].length > 0)
                        r->list[kept++] = r->list[i];
                else
                        free(r->list[i].extra);
        }
        r->count = kept;
}

/* ---- detected entities ---- */

static bool is_word(unsigned char c)
{
        return isalnum(c) || c == '_' || c >= 0x80;
}

static size_t name_length(const char *p)
{
        size_t n = 0;

        while (isalnum((unsigned char)p[n]) || p[n] == '_')
                n++;
        return n;
}

static size_t command_length(const char *p)
{
        size_t n = name_length(p + 1), bot;

        if (n == 0 || n > 64 || p[1 + n] == '/')
                return 0;
        bot = p[1 + n] == '@' ? name_length(p + 2 + n) : 0;
        return 1 + n + (bot >= 3 ? 1 + bot : 0);
}

static size_t hashtag_length(const char *p)
{
        size_t n = 1;
        bool letter = false;

        for (; is_word((unsigned char)p[n]); n++)
                letter = letter || !isdigit((unsigned char)p[n]);
        return letter ? n : 0;
}

static size_t url_length(const char *p)
{
        size_t scheme = strncmp(p, "https://", 8) == 0  ? 8
                        : strncmp(p, "http://", 7) == 0 ? 7
                                                        : 0,
               n;

        if (scheme == 0 || !isalnum((unsigned char)p[scheme]))
                return 0;
        n = strcspn(p, " \t\r\n<>\"");
        while (n > scheme && strchr(".,;:!?)'", p[n - 1]))
                n--;
        return n;
}

static bool is_covered(const struct rich_text *r, size_t known, size_t offset)
{
        for (size_t i = 0; i < known; i++) {
                const struct rich_text_entity *e = &r->list[i];

                if (offset >= e->offset && offset < e->offset + e->length &&
                    (strcmp(e->type, "code") == 0 || strcmp(e->type, "pre") == 0 ||
                     strcmp(e->type, "text_link") == 0 || strcmp(e->type, "mention") == 0 ||
                     strcmp(e->type, "text_mention") == 0 || strcmp(e->type, "bot_command") == 0 ||
                     strcmp(e->type, "hashtag") == 0 || strcmp(e->type, "url") == 0))
                        return true;
        }
        return false;
}

static size_t detect_at(const char *p, unsigned char before, const char **type)
{
        size_t n;

        if (is_word(before) || before == '/')
                return 0;
        switch (*p) {
        case '/':
                *type = "bot_command";
                return before == '<' || before == ':' ? 0 : command_length(p);
        case '@':
                *type = "mention";
                n = name_length(p + 1);
                return n >= 3 && n <= 32 ? 1 + n : 0;
        case '#':
                *type = "hashtag";
                return hashtag_length(p);
        case 'h':
                *type = "url";
                return url_length(p);
        default:
                return 0;
        }
}

void tg_rich_text_detect(struct rich_text *r)
{
        const char *p = r->text.data, *end = p + r->text.len;
        size_t units = 0, known = r->count;
        unsigned char before = ' ';

        while (p < end) {
                const char *type = NULL;
                size_t n = detect_at(p, before, &type), length;

                if (n == 0 || is_covered(r, known, units)) {
                        unsigned char c = (unsigned char)*p++;

                        units += (c & 0xc0u) != 0x80u ? 1u + (c >= 0xf0u) : 0u;
                        before = c;
                        continue;
                }
                length = utf8_length(p, n, UTF8_UTF16);
                push(r, (struct rich_text_entity){ type, units, length, NULL });
                units += length;
                p += n;
                before = (unsigned char)p[-1];
        }
}

/* ---- output ---- */

static int by_offset(const void *a, const void *b)
{
        const struct rich_text_entity *x = a, *y = b;

        if (x->offset != y->offset)
                return x->offset < y->offset ? -1 : 1;
        if (x->length != y->length)
                return x->length > y->length ? -1 : 1;
        return strcmp(x->type, y->type);
}

char *tg_rich_text_entities(struct rich_text *r)
{
        struct buf b;

        if (r->count == 0)
                return NULL;
        qsort(r->list, r->count, sizeof(*r->list), by_offset);
        buf_init(&b, 0);
        jsonw_open(&b, '[');
        for (size_t i = 0; i < r->count; i++) {
                const struct rich_text_entity *e = &r->list[i];

                jsonw_open(&b, '{');
                jsonw_int(&b, "offset", (int64_t)e->offset);
                jsonw_int(&b, "length", (int64_t)e->length);
                jsonw_str(&b, "type", e->type);
                if (e->extra)
                        buf_addf(&b, ",%s", e->extra);
                jsonw_close(&b, '}');
        }
        jsonw_close(&b, ']');
        return buf_take(&b);
}
