/*
 * What a message of Discord says, in words: tags become names, what is no text is described.
 */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "platform/discord/dc_event.h"

#define EMBED_MAX 1500 /* bytes of one described embed */
#define WORDS_MAX ((size_t)64 << 10)

/* ---- tags ---- */

/* One "<...>" in the text. */
struct tag {
        struct slice kind; /* "@", "@!", "@&", "#", ":", "a:", "/" */
        struct slice name; /* of emoji and commands */
        char id[24];
};

static bool starts(struct slice s, const char *with)
{
        size_t n = strlen(with);

        return s.n >= n && memcmp(s.p, with, n) == 0;
}

/* Takes "<@123>" apart; its length, or 0 when it is none. */
static size_t tag_read(const char *p, struct tag *out)
{
        static const char *const kinds[] = { "@!", "@&", "@", "#", "a:", ":", "/" };
        const char *end = p + strcspn(p, ">\n"), *digits;
        struct slice inside = { p + 1, *end == '>' ? (size_t)(end - p - 1) : 0 };
        size_t n;

        for (size_t i = 0; i < COUNT(kinds); i++) {
                if (!starts(inside, kinds[i]))
                        continue;
                out->kind = (struct slice){ inside.p, strlen(kinds[i]) };
                digits = inside.p + out->kind.n;
                out->name = (struct slice){ digits, 0 };
                if (i >= 4) { /* a name comes before the number */
                        digits = memrchr(inside.p, ':', inside.n);
                        if (!digits || digits < out->name.p)
                                return 0;
                        out->name.n = (size_t)(digits - out->name.p);
                        digits++;
                }
                n = (size_t)(end - digits);
                if (n == 0 || n >= sizeof(out->id) || strspn(digits, "0123456789") != n)
                        return 0;
                memcpy(out->id, digits, n);
                out->id[n] = '\0';
                return (size_t)(end + 1 - p);
        }
        return 0;
}

static const char *name_of_user(const json_t *message, const char *id)
{
        const json_t *mentions = json_object_get(message, "mentions"), *user;
        size_t i;

        json_array_foreach(mentions, i, user)
                if (strcmp(json_str(user, "id", ""), id) == 0)
                        return json_str(user, "global_name", json_str(user, "username", NULL));
        return NULL;
}

static bool is_self(const struct dc_reading *r, const struct tag *t, const char *guild)
{
        if (slice_is(t->kind, "@&"))
                return r->by->role_mentions && dc_cache_has_role(r->by->cache, guild, t->id);
        return (slice_is(t->kind, "@") || slice_is(t->kind, "@!")) && r->by->self &&
               strcmp(t->id, r->by->self) == 0;
}

/* As people see it; false: left as it is. */
static bool add_tag(const struct dc_reading *r, const json_t *message, const struct tag *t,
                    struct buf *out)
{
        struct dc_place place;
        const char *name;

        if (slice_is(t->kind, "#")) {
                if (!dc_cache_place(r->by->cache, t->id, &place) || !place.name)
                        return false;
                buf_addf(out, "#%s", place.name);
        } else if (slice_is(t->kind, "@") || slice_is(t->kind, "@!")) {
                name = name_of_user(message, t->id);
                if (!name)
                        return false;
                buf_addf(out, "@%s", name);
        } else if (slice_is(t->kind, "/")) {
                buf_addf(out, "/%.*s", (int)t->name.n, t->name.p);
        } else if (t->name.n > 0) {
                buf_addf(out, ":%.*s:", (int)t->name.n, t->name.p);
        } else {
                return false;
        }
        return true;
}

static void add_content(const struct dc_reading *r, const json_t *message, const char *text,
                        struct buf *out)
{
        const char *guild = json_str(r->e->d, "guild_id", NULL);

        while (*text) {
                size_t plain = strcspn(text, "<"), n;
                struct tag t;

                buf_add(out, text, plain);
                text += plain;
                if (!*text)
                        break;
                n = tag_read(text, &t);
                if (n > 0 && is_self(r, &t, guild)) {
                        text += n;
                        if (*text == ' ' &&
                            (out->len == 0 || strchr(" \n", out->data[out->len - 1])))
                                text++; /* not two spaces where the name was */
                } else if (n > 0 && add_tag(r, message, &t, out)) {
                        text += n;
                } else {
                        buf_addch(out, *text++);
                }
        }
}

/* ---- what is no text ---- */

static void begin_line(struct buf *out)
{
        if (out->len > 0 && out->data[out->len - 1] != '\n')
                buf_addch(out, '\n');
}

static void add_stickers(const json_t *message, struct buf *out)
{
        const json_t *items = json_object_get(message, "sticker_items"), *sticker;
        size_t i;

        json_array_foreach(items, i, sticker) {
                begin_line(out);
                buf_addf(out, "[sticker: %s]", json_str(sticker, "name", "without a name"));
        }
}

static void add_poll(const json_t *message, struct buf *out)
{
        const json_t *poll = json_object_get(message, "poll"),
                     *answers = json_object_get(poll, "answers"), *answer;
        size_t i;

        if (!json_is_object(poll))
                return;
        begin_line(out);
        buf_addf(out, "[poll: %s", json_str(json_object_get(poll, "question"), "text", ""));
        json_array_foreach(answers, i, answer)
                buf_addf(out, "%s %s", i == 0 ? ":" : ",",
                         json_str(json_object_get(answer, "poll_media"), "text", ""));
        buf_addch(out, ']');
}

static void add_field(struct buf *out, const char *between, const char *text)
{
        if (text && *text)
                buf_addf(out, "%s%s", out->len > 0 ? between : "", text);
}

static void add_embed(const json_t *embed, struct buf *out)
{
        const json_t *fields = json_object_get(embed, "fields"), *field;
        struct buf said;
        size_t i, n;

        buf_init(&said, WORDS_MAX);
        add_field(&said, "", json_str(json_object_get(embed, "author"), "name", NULL));
        add_field(&said, ": ", json_str(embed, "title", NULL));
        add_field(&said, "\n", json_str(embed, "description", NULL));
        json_array_foreach(fields, i, field) {
                add_field(&said, "\n", json_str(field, "name", NULL));
                add_field(&said, ": ", json_str(field, "value", NULL));
        }
        add_field(&said, "\n", json_str(json_object_get(embed, "footer"), "text", NULL));
        add_field(&said, "\n", json_str(embed, "url", NULL));
        n = utf8_prefix(said.data, said.len, UTF8_BYTES, EMBED_MAX);
        if (said.len > 0) {
                begin_line(out);
                buf_addf(out, "[embed: %.*s%s]", (int)n, said.data, n < said.len ? " …" : "");
        }
        buf_release(&said);
}

static void add_all(const struct dc_reading *r, const json_t *message, struct buf *out)
{
        const json_t *embeds = json_object_get(message, "embeds"), *embed;
        size_t i;

        add_content(r, message, json_str(message, "content", ""), out);
        add_stickers(message, out);
        add_poll(message, out);
        json_array_foreach(embeds, i, embed)
                add_embed(embed, out);
}

static void add_forward(const struct dc_reading *r, const json_t *message, struct buf *out)
{
        const json_t *first = json_array_get(json_object_get(message, "message_snapshots"), 0),
                     *inside = json_object_get(first, "message");

        if (!json_is_object(inside))
                return;
        begin_line(out);
        buf_addstr(out, "[forwarded message] ");
        add_all(r, inside, out);
}

/* ---- all of it ---- */

static const char *trimmed(struct arena *a, const struct buf *b)
{
        const char *p = b->data, *end = b->data + b->len;

        while (p < end && strchr(" \n\t", *p))
                p++;
        while (end > p && strchr(" \n\t", end[-1]))
                end--;
        return end > p ? arena_printf(a, "%.*s", (int)(end - p), p) : NULL;
}

const char *dc_words(struct dc_reading *r, const json_t *message)
{
        const char *text;
        struct buf out;

        buf_init(&out, WORDS_MAX);
        add_all(r, message, &out);
        add_forward(r, message, &out);
        text = trimmed(&r->item->arena, &out);
        buf_release(&out);
        return text;
}
