#include "platform/telegram/tg_text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

size_t tg_text_offset(const char *text, int64_t units)
{
        size_t n = strlen(text), at = 0;

        while (at < n && units > 0) {
                uint32_t cp;

                at += utf8_decode(text + at, n - at, &cp);
                units -= cp >= 0x10000 ? 2 : 1;
        }
        return at;
}

/* ---- entities ---- */

/* A piece of the text to leave out. */
struct cut {
        size_t from, to;
};

struct reading {
        struct arena *arena;
        const struct tg_self *self;
        const char *text;
        struct tg_text *out;
        struct cut *cuts;
        size_t cut_count;
};

static bool is_our_name(const struct tg_self *self, const char *name, size_t n)
{
        return self->username && strlen(self->username) == n &&
               strncasecmp(self->username, name, n) == 0;
}

/* The bot is addressed by text[from, to). */
static void addressed(struct reading *r, size_t from, size_t to)
{
        r->out->mention = true;
        if (r->cut_count > 0 && from < r->cuts[r->cut_count - 1].to)
                return;
        r->cuts[r->cut_count++] = (struct cut){ from, to };
}

static void read_mention(struct reading *r, const json_t *entity, size_t from, size_t to)
{
        (void)entity;
        if (r->text[from] == '@' && is_our_name(r->self, r->text + from + 1, to - from - 1))
                addressed(r, from, to);
}

static void read_text_mention(struct reading *r, const json_t *entity, size_t from, size_t to)
{
        if (json_int(json_object_get(entity, "user"), "id", 0) == r->self->id)
                addressed(r, from, to);
}

/* "/start" is for whoever hears it, "/start@ourbot" for us, "/start@other" for somebody else. */
static void read_command(struct reading *r, const json_t *entity, size_t from, size_t to)
{
        const char *at = memchr(r->text + from, '@', to - from);
        size_t end = at ? (size_t)(at - r->text) : to;

        (void)entity;
        if (at && !is_our_name(r->self, at + 1, to - end - 1))
                return;
        if (from == 0 && r->text[0] == '/')
                r->out->command = arena_printf(r->arena, "%.*s", (int)(end - 1), r->text + 1);
        if (at)
                addressed(r, end, to);
}

static const struct {
        const char *type;
        void (*read)(struct reading *r, const json_t *entity, size_t from, size_t to);
} kinds[] = {
        { "mention", read_mention },
        { "text_mention", read_text_mention },
        { "bot_command", read_command },
};

static void read_entity(struct reading *r, const json_t *entity)
{
        const char *type = json_str(entity, "type", "");
        int64_t offset = json_int(entity, "offset", -1), length = json_int(entity, "length", 0);
        size_t from, to;

        if (offset < 0 || length <= 0 || length > INT32_MAX || offset > INT32_MAX)
                return;
        from = tg_text_offset(r->text, offset);
        to = tg_text_offset(r->text, offset + length);
        for (size_t i = 0; from < to && i < COUNT(kinds); i++)
                if (strcmp(type, kinds[i].type) == 0)
                        kinds[i].read(r, entity, from, to);
}

/* ---- leaving out ---- */

static bool is_blank(char c)
{
        return c == ' ' || c == '\n' || c == '\t';
}

/*
 * Copies the text without the cuts. A name at the beginning takes its comma along, one in between a
 * blank.
 */
static const char *without(const struct reading *r)
{
        size_t n = strlen(r->text), at = 0, len = 0;
        char *kept = arena_alloc(r->arena, n + 1);

        for (size_t i = 0; i <= r->cut_count; i++) {
                size_t end = i < r->cut_count ? r->cuts[i].from : n;

                memcpy(kept + len, r->text + at, end - at);
                len += end - at;
                if (i == r->cut_count)
                        break;
                at = r->cuts[i].to;
                if (len == 0 && (r->text[at] == ',' || r->text[at] == ':'))
                        at++;
                while ((len == 0 || is_blank(kept[len - 1])) && is_blank(r->text[at]))
                        at++;
        }
        while (len > 0 && is_blank(kept[len - 1]))
                len--;
        kept[len] = '\0';
        return kept;
}

void tg_text_read(struct arena *arena, const struct tg_self *self, const char *text,
                  const json_t *entities, struct tg_text *out)
{
        struct reading r = { .arena = arena, .self = self, .text = text, .out = out };
        size_t count = json_array_size(entities);

        *out = (struct tg_text){ .text = text };
        if (!text || count == 0)
                return;
        r.cuts = mem_array(count, sizeof(*r.cuts));
        for (size_t i = 0; i < count; i++)
                read_entity(&r, json_array_get(entities, i));
        if (r.cut_count > 0) {
                out->raw = text;
                out->text = without(&r);
        }
        free(r.cuts);
}

/* ---- back to plain text ---- */

static const struct {
        const char *entity;
        char c;
} escapes[] = {
        { "&lt;", '<' },
        { "&gt;", '>' },
        { "&amp;", '&' },
        { "&quot;", '"' },
};

/* One escape at p; how long it is, or 0. */
static size_t unescape(const char *p, struct buf *out)
{
        for (size_t i = 0; i < COUNT(escapes); i++) {
                size_t n = strlen(escapes[i].entity);

                if (strncmp(p, escapes[i].entity, n) == 0) {
                        buf_addch(out, escapes[i].c);
                        return n;
                }
        }
        return 0;
}

char *tg_text_plain(const char *html)
{
        struct buf out;

        buf_init(&out, 0);
        for (const char *p = html; *p;) {
                const char *end = *p == '<' ? strchr(p, '>') : NULL;
                size_t n = *p == '&' ? unescape(p, &out) : 0;

                if (end) {
                        p = end + 1;
                } else if (n > 0) {
                        p += n;
                } else {
                        buf_addch(&out, *p++);
                }
        }
        return buf_take(&out);
}
