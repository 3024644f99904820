/* The text of a message as an agent reads it. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "platform/discord/dc_event.h"

#define EMBED_MAX 1500 /* bytes */
#define TEXT_MAX  ((size_t)64 << 10)

/* ---- tags ---- */

struct tag {
        struct slice kind; /* "@", "@!", "@&", "#", ":", "a:", "/" */
        struct slice name;
        char id[24];
};

/* Returns the tag's length; 0: it is none. */
static size_t parse_tag(const char *p, struct tag *out)
{
        static const char *const kinds[] = { "@!", "@&", "@", "#", "a:", ":", "/" };
        const char *end = p + strcspn(p, ">\n"), *digits;
        struct slice inside = { p + 1, *end == '>' ? (size_t)(end - p - 1) : 0 };
        size_t n;

        for (size_t i = 0; i < COUNT(kinds); i++) {
                size_t kind_n = strlen(kinds[i]);

                if (inside.n < kind_n || memcmp(inside.p, kinds[i], kind_n) != 0)
                        continue;
                out->kind = (struct slice){ inside.p, kind_n };
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

/* False: leave the tag as it is. */
static bool add_tag(const struct dc_event_reader *r, const json_t *message, const struct tag *t,
                    struct buf *out)
{
        const json_t *mentions = json_object_get(message, "mentions"), *user;
        struct dc_channel_info info;
        const char *name = NULL;
        size_t i;

        if (slice_is(t->kind, "#")) {
                if (!dc_cache_channel(r->context->cache, t->id, &info) || !info.name)
                        return false;
                buf_addf(out, "#%s", info.name);
        } else if (slice_is(t->kind, "@") || slice_is(t->kind, "@!")) {
                json_array_foreach(mentions, i, user)
                        if (!name && strcmp(json_str(user, "id", ""), t->id) == 0)
                                name = json_str(user, "global_name",
                                                json_str(user, "username", NULL));
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

static void add_content(const struct dc_event_reader *r, const json_t *message, const char *text,
                        struct buf *out)
{
        const char *guild = r->content->events->guild;

        while (*text) {
                size_t plain = strcspn(text, "<"), n;
                const struct dc_event_context *context = r->context;
                bool is_self = false;
                struct tag t;

                buf_add(out, text, plain);
                text += plain;
                if (!*text)
                        break;
                n = parse_tag(text, &t);
                if (n > 0 && slice_is(t.kind, "@&"))
                        is_self = context->role_mentions &&
                                  dc_cache_has_role(context->cache, guild, t.id);
                else if (n > 0 && (slice_is(t.kind, "@") || slice_is(t.kind, "@!")))
                        is_self = context->self && strcmp(t.id, context->self) == 0;
                if (is_self) {
                        text += n;
                        if (*text == ' ' &&
                            (out->len == 0 || strchr(" \n", out->data[out->len - 1])))
                                text++; /* no double space where the name was */
                } else if (n > 0 && add_tag(r, message, &t, out)) {
                        text += n;
                } else {
                        buf_addch(out, *text++);
                }
        }
}

/* ---- stickers, polls, embeds ---- */

static void begin_line(struct buf *out)
{
        if (out->len > 0 && out->data[out->len - 1] != '\n')
                buf_addch(out, '\n');
}

static void add_field(struct buf *out, const char *between, const char *text)
{
        if (text && *text)
                buf_addf(out, "%s%s", out->len > 0 ? between : "", text);
}

static void add_embed(const json_t *embed, struct buf *out)
{
        const json_t *fields = json_object_get(embed, "fields"), *field;
        struct buf text;
        size_t i, n;

        buf_init(&text, TEXT_MAX);
        add_field(&text, "", json_str(json_object_get(embed, "author"), "name", NULL));
        add_field(&text, ": ", json_str(embed, "title", NULL));
        add_field(&text, "\n", json_str(embed, "description", NULL));
        json_array_foreach(fields, i, field) {
                add_field(&text, "\n", json_str(field, "name", NULL));
                add_field(&text, ": ", json_str(field, "value", NULL));
        }
        add_field(&text, "\n", json_str(json_object_get(embed, "footer"), "text", NULL));
        add_field(&text, "\n", json_str(embed, "url", NULL));
        n = utf8_prefix(text.data, text.len, UTF8_BYTES, EMBED_MAX);
        if (text.len > 0) {
                begin_line(out);
                buf_addf(out, "[embed: %.*s%s]", (int)n, text.data, n < text.len ? " …" : "");
        }
        buf_release(&text);
}

static void add_all(const struct dc_event_reader *r, const json_t *message, struct buf *out)
{
        const json_t *stickers = json_object_get(message, "sticker_items"),
                     *poll = json_object_get(message, "poll"),
                     *answers = json_object_get(poll, "answers"),
                     *embeds = json_object_get(message, "embeds"), *sticker, *answer, *embed;
        size_t i;

        add_content(r, message, json_str(message, "content", ""), out);
        json_array_foreach(stickers, i, sticker) {
                begin_line(out);
                buf_addf(out, "[sticker: %s]", json_str(sticker, "name", "without a name"));
        }
        if (json_is_object(poll)) {
                begin_line(out);
                buf_addf(out, "[poll: %s", json_str(json_object_get(poll, "question"), "text", ""));
                json_array_foreach(answers, i, answer)
                        buf_addf(out, "%s %s", i == 0 ? ":" : ",",
                                 json_str(json_object_get(answer, "poll_media"), "text", ""));
                buf_addch(out, ']');
        }
        json_array_foreach(embeds, i, embed)
                add_embed(embed, out);
}

const char *dc_describe(struct dc_event_reader *r, const json_t *message)
{
        const json_t *snapshot = json_array_get(json_object_get(message, "message_snapshots"), 0),
                     *forwarded = json_object_get(snapshot, "message");
        const char *p, *end, *text;
        struct buf out;

        buf_init(&out, TEXT_MAX);
        add_all(r, message, &out);
        if (json_is_object(forwarded)) {
                begin_line(&out);
                buf_addstr(&out, "[forwarded message] ");
                add_all(r, forwarded, &out);
        }
        p = out.data;
        end = p + out.len;
        while (p < end && strchr(" \n\t", *p))
                p++;
        while (end > p && strchr(" \n\t", end[-1]))
                end--;
        text = end > p ? arena_printf(&r->content->arena, "%.*s", (int)(end - p), p) : NULL;
        buf_release(&out);
        return text;
}
