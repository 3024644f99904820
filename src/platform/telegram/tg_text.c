#include "platform/telegram/tg_update.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

/* The byte offset of the n-th UTF-16 unit; the length of a text that is shorter. */
static size_t byte_offset(const char *text, int64_t units)
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

/* Mentions of the bot, which are removed from the text. */
struct mentions {
        struct {
                size_t from, to;
        } * items;
        size_t count;
};

static bool is_our_name(const struct tg_self *self, const char *name, size_t n)
{
        return self->username && strlen(self->username) == n &&
               strncasecmp(self->username, name, n) == 0;
}

/* Records text[from, to) as a mention, unless it overlaps the one before. */
static void add_mention(struct mentions *m, struct tg_text *out, size_t from, size_t to)
{
        out->mention = true;
        if (m->count > 0 && from < m->items[m->count - 1].to)
                return;
        m->items[m->count].from = from;
        m->items[m->count++].to = to;
}

static void read_entity(struct arena *arena, const struct tg_self *self, const char *text,
                        const json_t *entity, struct mentions *m, struct tg_text *out)
{
        const char *type = json_str(entity, "type", ""), *at;
        int64_t offset = json_int(entity, "offset", -1), length = json_int(entity, "length", 0);
        size_t from, to, end;

        if (offset < 0 || length <= 0 || length > INT32_MAX || offset > INT32_MAX)
                return;
        from = byte_offset(text, offset);
        to = byte_offset(text, offset + length);
        if (from >= to)
                return;
        if (strcmp(type, "mention") == 0) {
                if (text[from] == '@' && is_our_name(self, text + from + 1, to - from - 1))
                        add_mention(m, out, from, to);
        } else if (strcmp(type, "text_mention") == 0) {
                if (json_int(json_object_get(entity, "user"), "id", 0) == self->id)
                        add_mention(m, out, from, to);
        } else if (strcmp(type, "bot_command") == 0) {
                /* "/start" is for every bot, "/start@ourbot" for us, "/start@other" is not */
                at = memchr(text + from, '@', to - from);
                end = at ? (size_t)(at - text) : to;
                if (at && !is_our_name(self, at + 1, to - end - 1)) {
                        out->for_other = out->for_other || from == 0;
                        return;
                }
                if (from == 0 && text[0] == '/')
                        out->command = arena_printf(arena, "%.*s", (int)(end - 1), text + 1);
                if (at)
                        add_mention(m, out, end, to);
        }
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\n' || c == '\t';
}

/*
 * Copies the text without mentions, and without the comma after a leading one or a blank at
 * others.
 */
static const char *remove_mentions(struct arena *arena, const char *text, const struct mentions *m)
{
        size_t n = strlen(text), at = 0, len = 0;
        char *kept = arena_alloc(arena, n + 1);

        for (size_t i = 0; i <= m->count; i++) {
                size_t end = i < m->count ? m->items[i].from : n;

                memcpy(kept + len, text + at, end - at);
                len += end - at;
                if (i == m->count)
                        break;
                at = m->items[i].to;
                if (len == 0 && (text[at] == ',' || text[at] == ':'))
                        at++;
                while ((len == 0 || is_blank(kept[len - 1])) && is_blank(text[at]))
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
        size_t count = json_array_size(entities);
        struct mentions m = { 0 };

        *out = (struct tg_text){ .text = text };
        if (!text || count == 0)
                return;
        m.items = mem_array(count, sizeof(*m.items));
        for (size_t i = 0; i < count; i++)
                read_entity(arena, self, text, json_array_get(entities, i), &m, out);
        if (m.count > 0) {
                out->raw = text;
                out->text = remove_mentions(arena, text, &m);
        }
        free(m.items);
}

/* ---- plain text ---- */

char *tg_text_plain(const char *html)
{
        static const struct {
                const char *entity;
                char c;
        } escapes[] = { { "&lt;", '<' }, { "&gt;", '>' }, { "&amp;", '&' }, { "&quot;", '"' } };
        struct buf out;

        buf_init(&out, 0);
        for (const char *p = html; *p;) {
                const char *end = *p == '<' ? strchr(p, '>') : NULL;
                size_t i = 0;

                while (i < COUNT(escapes) &&
                       strncmp(p, escapes[i].entity, strlen(escapes[i].entity)) != 0)
                        i++;
                if (end) {
                        p = end + 1;
                } else if (i < COUNT(escapes)) {
                        buf_addch(&out, escapes[i].c);
                        p += strlen(escapes[i].entity);
                } else {
                        buf_addch(&out, *p++);
                }
        }
        return buf_take(&out);
}
