/* Text of Slack as an agent reads it. */
#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "platform/slack/sl_cache.h"
#include "platform/slack/sl_event.h"

#define TEXT_MAX        ((size_t)64 << 10)
#define ATTACHMENT_MAX  1500 /* bytes */
#define ATTACHMENTS_MAX 10
#define DEPTH_MAX       10 /* of blocks */

/* ---- ids ---- */

bool sl_id_valid(const char *id)
{
        size_t n = id ? strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") : 0;

        return n >= 2 && n < SL_ID_SIZE && id[n] == '\0' && isupper((unsigned char)*id);
}

/* ---- tags ---- */

static void add_unescaped(struct buf *out, struct slice text)
{
        static const struct {
                const char *entity;
                char c;
        } escapes[] = { { "&lt;", '<' }, { "&gt;", '>' }, { "&amp;", '&' } };

        for (size_t at = 0; at < text.n;) {
                size_t i = 0, n = 0;

                for (; i < COUNT(escapes); i++) {
                        n = strlen(escapes[i].entity);
                        if (text.n - at >= n && memcmp(text.p + at, escapes[i].entity, n) == 0)
                                break;
                }
                buf_addch(out, i < COUNT(escapes) ? escapes[i].c : text.p[at]);
                at += i < COUNT(escapes) ? n : 1;
        }
}

/* `<target|label>`, without the brackets */
struct sl_tag {
        struct slice target, label; /* label.n 0: none */
};

/* The length with brackets; 0: it is none. */
static size_t parse_tag(const char *p, struct sl_tag *out)
{
        size_t n = strcspn(p + 1, "<>\n");
        const char *bar = memchr(p + 1, '|', n);

        if (n == 0 || p[n + 1] != '>')
                return 0;
        out->target = (struct slice){ p + 1, bar ? (size_t)(bar - p - 1) : n };
        out->label = (struct slice){ bar ? bar + 1 : p, bar ? n - out->target.n - 1 : 0 };
        return out->target.n > 0 ? n + 2 : 0;
}

/* The id of `<@U1>` and `<#C1>`. False: it is none. */
static bool tag_id(const struct sl_tag *t, char id[SL_ID_SIZE])
{
        if (t->target.n < 2 || t->target.n > SL_ID_SIZE)
                return false;
        memcpy(id, t->target.p + 1, t->target.n - 1);
        id[t->target.n - 1] = '\0';
        return sl_id_valid(id);
}

static bool is_mention_of(const struct sl_tag *t, const char *user)
{
        char id[SL_ID_SIZE];

        return user && *t->target.p == '@' && tag_id(t, id) && strcmp(id, user) == 0;
}

bool sl_text_mentions(const char *text, const char *user)
{
        struct sl_tag t;

        for (const char *p = text ? strchr(text, '<') : NULL; p; p = strchr(p + 1, '<'))
                if (parse_tag(p, &t) > 0 && is_mention_of(&t, user))
                        return true;
        return false;
}

static void add_user(const struct sl_event_context *c, const struct sl_tag *t, struct buf *out)
{
        const struct sl_user *user = NULL;
        char id[SL_ID_SIZE];

        if (tag_id(t, id) && c->cache)
                user = sl_cache_user(c->cache, id);
        buf_addch(out, '@');
        if (user && user->known)
                buf_addstr(out, user->username);
        else if (t->label.n > 0)
                add_unescaped(out, t->label);
        else
                buf_add(out, t->target.p + 1, t->target.n - 1);
}

static void add_channel(const struct sl_event_context *c, const struct sl_tag *t, struct buf *out)
{
        const struct sl_channel *channel = NULL;
        char id[SL_ID_SIZE];

        if (t->label.n == 0 && tag_id(t, id) && c->cache)
                channel = sl_cache_channel(c->cache, id);
        buf_addch(out, '#');
        if (t->label.n > 0)
                add_unescaped(out, t->label);
        else if (channel && channel->name)
                buf_addstr(out, channel->name);
        else
                buf_add(out, t->target.p + 1, t->target.n - 1);
}

/* `<!here>`, `<!subteam^S1|@team>`, `<!date^1700000000^{date}|Nov 14>` */
static void add_special(const struct sl_tag *t, struct buf *out)
{
        static const char *const all[] = { "here", "channel", "everyone" };
        const char *end = memchr(t->target.p, '^', t->target.n);
        struct slice word = { t->target.p + 1,
                              end ? (size_t)(end - t->target.p - 1) : t->target.n - 1 };

        for (size_t i = 0; i < COUNT(all); i++) {
                if (slice_is(word, all[i])) {
                        buf_addf(out, "@%s", all[i]);
                        return;
                }
        }
        if (t->label.n > 0)
                add_unescaped(out, t->label);
        else if (slice_is(word, "subteam") && end)
                buf_addf(out, "@%.*s", (int)(t->target.n - word.n - 2), end + 1);
        else
                buf_add(out, word.p, word.n);
}

static bool starts(struct slice s, const char *with)
{
        return s.n >= strlen(with) && memcmp(s.p, with, strlen(with)) == 0;
}

static void add_link(const struct sl_tag *t, struct buf *out)
{
        bool is_address = starts(t->target, "mailto:") || starts(t->target, "tel:");
        size_t scheme = is_address ? strcspn(t->target.p, ":") + 1 : 0;
        struct slice target = { t->target.p + scheme, t->target.n - scheme };

        /* a bare address that Slack has made a link is its own label */
        if (t->label.n == 0 || memmem(target.p, target.n, t->label.p, t->label.n)) {
                add_unescaped(out, target);
                return;
        }
        add_unescaped(out, t->label);
        buf_addstr(out, " (");
        add_unescaped(out, target);
        buf_addch(out, ')');
}

/* Adds mrkdwn as a person reads it. */
static void add_text(const struct sl_event_context *c, const char *text, struct buf *out)
{
        while (*text) {
                size_t plain = strcspn(text, "<"), n;
                struct sl_tag t;

                add_unescaped(out, (struct slice){ text, plain });
                text += plain;
                n = *text ? parse_tag(text, &t) : 0;
                if (n == 0) {
                        if (*text)
                                buf_addch(out, *text++);
                        continue;
                }
                text += n;
                if (is_mention_of(&t, c->user)) {
                        bool first = out->len == 0;

                        if (first && (*text == ',' || *text == ':'))
                                text++;
                        if (*text == ' ' && (first || strchr(" \n", out->data[out->len - 1])))
                                text++; /* no double space where the name was */
                } else if (*t.target.p == '@') {
                        add_user(c, &t, out);
                } else if (*t.target.p == '#') {
                        add_channel(c, &t, out);
                } else if (*t.target.p == '!') {
                        add_special(&t, out);
                } else {
                        add_link(&t, out);
                }
        }
}

/* ---- blocks and attachments ---- */

static void begin_line(struct buf *out)
{
        if (out->len > 0 && out->data[out->len - 1] != '\n')
                buf_addch(out, '\n');
}

/* An element of rich text, in mrkdwn. False: it is not one. */
static bool add_element(const json_t *e, const char *type, struct buf *out)
{
        const char *url = json_str(e, "url", NULL), *text = json_str(e, "text", NULL);

        if (strcmp(type, "user") == 0)
                buf_addf(out, "<@%s>", json_str(e, "user_id", ""));
        else if (strcmp(type, "channel") == 0)
                buf_addf(out, "<#%s>", json_str(e, "channel_id", ""));
        else if (strcmp(type, "broadcast") == 0)
                buf_addf(out, "<!%s>", json_str(e, "range", ""));
        else if (strcmp(type, "usergroup") == 0)
                buf_addf(out, "<!subteam^%s>", json_str(e, "usergroup_id", ""));
        else if (strcmp(type, "emoji") == 0)
                buf_addf(out, ":%s:", json_str(e, "name", ""));
        else if (strcmp(type, "link") == 0 && url)
                buf_addf(out, "<%s%s%s>", url, text ? "|" : "", text ? text : "");
        else
                return false;
        return true;
}

/* Adds the text of a block or a part of one; lines end blocks. */
static void add_block(const struct sl_event_context *c, const json_t *block, int depth,
                      struct buf *out)
{
        static const char *const inside[] = { "text", "title", "elements", "fields", "rows" };
        const char *type = json_str(block, "type", ""), *text = json_str(block, "text", NULL);
        bool is_mrkdwn = strcmp(type, "mrkdwn") == 0;
        struct buf tag;
        size_t i;

        if (depth > DEPTH_MAX || !block)
                return;
        if (json_is_array(block)) {
                const json_t *one;

                json_array_foreach(block, i, one)
                        add_block(c, one, depth + 1, out);
                return;
        }
        buf_init(&tag, TEXT_MAX);
        if (add_element(block, type, &tag)) {
                add_text(c, tag.data, out);
        } else if (text) {
                if (is_mrkdwn)
                        add_text(c, text, out);
                else
                        buf_addstr(out, text);
        } else {
                for (i = 0; i < COUNT(inside); i++)
                        add_block(c, json_object_get(block, inside[i]), depth + 1, out);
        }
        buf_release(&tag);
        /* runs of rich text are one line */
        if (strncmp(type, "rich_text_", 10) == 0 || is_mrkdwn || strcmp(type, "plain_text") == 0 ||
            strcmp(type, "raw_text") == 0)
                begin_line(out);
}

static void add_field(const struct sl_event_context *c, const char *between, const char *text,
                      struct buf *out)
{
        if (!text || !*text)
                return;
        if (out->len > 0)
                buf_addstr(out, between);
        add_text(c, text, out);
}

/* A shared message, or what a bot wrote in the old style. Previews of links are left out. */
static void add_attachment(const struct sl_event_context *c, const json_t *a, struct buf *out)
{
        bool shared = json_flag(a, "is_share", false) || json_flag(a, "is_msg_unfurl", false);
        const json_t *fields = json_object_get(a, "fields"), *field;
        struct buf text;
        size_t i, n;

        if (!shared && (json_str(a, "from_url", NULL) || json_str(a, "original_url", NULL)))
                return;
        buf_init(&text, TEXT_MAX);
        add_field(c, "", json_str(a, "pretext", NULL), &text);
        add_field(c, "\n", json_str(a, "author_name", NULL), &text);
        add_field(c, ": ", json_str(a, "title", NULL), &text);
        add_field(c, text.len > 0 ? ": " : "", json_str(a, "text", NULL), &text);
        json_array_foreach(fields, i, field) {
                add_field(c, "\n", json_str(field, "title", NULL), &text);
                add_field(c, ": ", json_str(field, "value", NULL), &text);
        }
        if (text.len == 0)
                add_block(c, json_object_get(a, "blocks"), 0, &text);
        if (text.len == 0)
                add_field(c, "", json_str(a, "fallback", NULL), &text);
        n = utf8_prefix(text.data, text.len, UTF8_BYTES, ATTACHMENT_MAX);
        if (text.len > 0) {
                begin_line(out);
                buf_addf(out, "[%s: %.*s%s]", shared ? "shared message" : "attachment", (int)n,
                         text.data, n < text.len ? " …" : "");
        }
        buf_release(&text);
}

const char *sl_text_read(struct arena *arena, const struct sl_event_context *c,
                         const json_t *message)
{
        const json_t *attachments = json_object_get(message, "attachments"), *attachment;
        const char *raw = json_str(message, "text", ""), *p, *end, *text;
        struct buf out;
        size_t i;

        buf_init(&out, TEXT_MAX);
        if (*raw)
                add_text(c, raw, &out);
        else
                add_block(c, json_object_get(message, "blocks"), 0, &out);
        json_array_foreach(attachments, i, attachment) {
                if (i < ATTACHMENTS_MAX)
                        add_attachment(c, attachment, &out);
        }
        p = out.data;
        end = p + out.len;
        while (p < end && strchr(" \n\t", *p))
                p++;
        while (end > p && strchr(" \n\t", end[-1]))
                end--;
        text = end > p ? arena_printf(arena, "%.*s", (int)(end - p), p) : NULL;
        buf_release(&out);
        return text;
}
