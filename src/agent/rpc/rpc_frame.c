#include "agent/rpc/rpc_frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/utf8.h"

#define CHUNKS_MAX 4096 /* of one message */

/* ---- a scan over JSON that is not checked: the parser does that ---- */

struct scan {
        const char *p, *end;
};

static void skip_space(struct scan *s)
{
        while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r' || *s->p == '\n'))
                s->p++;
}

static bool skip_string(struct scan *s)
{
        for (s->p++; s->p < s->end; s->p++) {
                if (*s->p == '\\')
                        s->p++;
                else if (*s->p == '"') {
                        s->p++;
                        return true;
                }
        }
        s->p = s->end;
        return false;
}

/* False: it ends too early. */
static bool skip_value(struct scan *s)
{
        size_t depth = 0;

        while (s->p < s->end) {
                char c = *s->p;

                if (c == '"') {
                        if (!skip_string(s))
                                return false;
                        if (depth == 0)
                                return true;
                        continue;
                }
                if (c == '{' || c == '[') {
                        depth++;
                } else if (c == '}' || c == ']') {
                        if (depth == 0)
                                return true; /* a number or word ended before it */
                        if (--depth == 0) {
                                s->p++;
                                return true;
                        }
                } else if (c == ',' && depth == 0) {
                        return true;
                }
                s->p++;
        }
        return false;
}

/* Begins after '{' or a value; leaves the scan at the member's value. */
static bool next_member(struct scan *s, struct slice *key)
{
        const char *start;

        skip_space(s);
        if (s->p < s->end && *s->p == ',')
                s->p++;
        skip_space(s);
        if (s->p == s->end || *s->p != '"')
                return false;
        start = s->p + 1;
        if (!skip_string(s))
                return false;
        *key = (struct slice){ start, (size_t)(s->p - 1 - start) };
        skip_space(s);
        if (s->p == s->end || *s->p != ':')
                return false;
        s->p++;
        skip_space(s);
        return true;
}

static bool take_value(struct scan *s, struct slice *value)
{
        const char *start = s->p;

        if (!skip_value(s))
                return false;
        *value = (struct slice){ start, (size_t)(s->p - start) };
        return true;
}

static bool ends_here(const struct scan *s)
{
        return s->p < s->end && *s->p == '}';
}

static bool open_object(struct scan *s)
{
        skip_space(s);
        if (s->p == s->end || *s->p != '{')
                return false;
        s->p++;
        return true;
}

/* Of a value with its quotes. */
static bool is_string(struct slice value, const char *text)
{
        size_t n = strlen(text);

        return value.n == n + 2 && memcmp(value.p + 1, text, n) == 0;
}

static bool is_one_of(struct slice value, const char *const *texts)
{
        for (; *texts; texts++)
                if (is_string(value, *texts))
                        return true;
        return false;
}

static void add_member(struct buf *out, struct slice key, struct slice value)
{
        if (out->len > 0 && out->data[out->len - 1] != '{')
                buf_addch(out, ',');
        buf_addch(out, '"');
        buf_add(out, key.p, key.n);
        buf_addstr(out, "\":");
        buf_add(out, value.p, value.n);
}

/* ---- what is left out ---- */

/* Neither program says anything here that is not said elsewhere. */
static const char *const unread[] = {
        "available_commands_update", "entry_appended", "message_start",
        "session_info_changed",      "subagent_event", "subagent_progress",
        "tool_execution_update",     "turn_end",       NULL
};
static const char *const read_updates[] = { "text_delta", "thinking_start", "toolcall_end", NULL };

/* The event within a message_update, without the message so far. */
static enum rpc_line shorten_event(struct scan *s, struct buf *out)
{
        struct slice key, value;

        if (!open_object(s))
                return RPC_LINE_WHOLE;
        while (next_member(s, &key)) {
                if (slice_is(key, "partial")) {
                        buf_addstr(out, "}}");
                        return RPC_LINE_SHORT;
                }
                if (!take_value(s, &value))
                        return RPC_LINE_WHOLE;
                if (slice_is(key, "type") && !is_one_of(value, read_updates))
                        return RPC_LINE_NOTHING;
                add_member(out, key, value);
        }
        buf_addstr(out, "}}");
        return ends_here(s) ? RPC_LINE_SHORT : RPC_LINE_WHOLE;
}

static enum rpc_line shorten_update(struct scan *s, struct buf *out)
{
        struct slice key, value;

        while (next_member(s, &key)) {
                if (slice_is(key, "assistantMessageEvent")) {
                        buf_addstr(out, "{\"type\":\"message_update\",\"assistantMessageEvent\":{");
                        return shorten_event(s, out);
                }
                if (!take_value(s, &value))
                        return RPC_LINE_WHOLE;
        }
        return RPC_LINE_WHOLE;
}

static enum rpc_line shorten_end(struct scan *s, struct buf *out)
{
        struct slice key, value;

        buf_addstr(out, "{\"type\":\"agent_end\"");
        while (next_member(s, &key)) {
                if (!take_value(s, &value))
                        return RPC_LINE_WHOLE;
                if (!slice_is(key, "messages"))
                        add_member(out, key, value);
        }
        buf_addch(out, '}');
        return ends_here(s) ? RPC_LINE_SHORT : RPC_LINE_WHOLE;
}

/* Both programs write the type first. */
static bool read_type(struct scan *s, struct slice *type)
{
        struct slice key;

        return open_object(s) && next_member(s, &key) && slice_is(key, "type") &&
               take_value(s, type);
}

static enum rpc_line shorten(const char *line, size_t n, struct buf *out)
{
        struct scan s = { line, line + n };
        struct slice type;
        enum rpc_line what = RPC_LINE_WHOLE;

        if (!read_type(&s, &type))
                return RPC_LINE_WHOLE;
        if (is_one_of(type, unread))
                return RPC_LINE_NOTHING;
        if (is_string(type, "message_update"))
                what = shorten_update(&s, out);
        else if (is_string(type, "agent_end"))
                what = shorten_end(&s, out);
        if (what != RPC_LINE_SHORT)
                buf_clear(out);
        return what;
}

/* ---- chunks ---- */

struct chunk {
        struct slice id, data;
        int64_t index, count, bytes;
};

static int64_t read_number(struct slice value)
{
        int64_t number = 0;

        if (value.n == 0 || value.n > 12)
                return -1;
        for (size_t i = 0; i < value.n; i++) {
                if (value.p[i] < '0' || value.p[i] > '9')
                        return -1;
                number = number * 10 + (value.p[i] - '0');
        }
        return number;
}

static struct slice unquote(struct slice value)
{
        if (value.n < 2 || value.p[0] != '"')
                return (struct slice){ value.p, 0 };
        return (struct slice){ value.p + 1, value.n - 2 };
}

static bool read_chunk(struct scan *s, struct chunk *c)
{
        struct slice key, value;

        *c = (struct chunk){ .index = -1, .count = -1, .bytes = -1 };
        while (next_member(s, &key)) {
                if (!take_value(s, &value))
                        return false;
                if (slice_is(key, "chunkId"))
                        c->id = unquote(value);
                else if (slice_is(key, "index"))
                        c->index = read_number(value);
                else if (slice_is(key, "count"))
                        c->count = read_number(value);
                else if (slice_is(key, "byteLength"))
                        c->bytes = read_number(value);
                else if (slice_is(key, "data"))
                        c->data = unquote(value);
        }
        return c->id.n > 0 && c->id.n < sizeof(((struct rpc_frames *)0)->chunks.id) &&
               c->data.n > 0 && c->index >= 0 && c->count > 0 && c->count <= CHUNKS_MAX &&
               c->index < c->count && c->bytes > 0;
}

static void forget_chunks(struct rpc_frames *f)
{
        f->chunks.id[0] = '\0';
        f->chunks.skips = false;
        buf_release(&f->chunks.text);
        buf_init(&f->chunks.text, 0);
}

static enum rpc_line lose_chunks(struct rpc_frames *f)
{
        f->lost++;
        forget_chunks(f);
        return RPC_LINE_NOTHING;
}

static bool begin_chunks(struct rpc_frames *f, const struct chunk *c)
{
        forget_chunks(f);
        if (c->index != 0 || (size_t)c->bytes > f->max)
                return false;
        memcpy(f->chunks.id, c->id.p, c->id.n);
        f->chunks.id[c->id.n] = '\0';
        f->chunks.count = c->count;
        f->chunks.bytes = (size_t)c->bytes;
        f->chunks.next = 0;
        return true;
}

static bool add_chunk(struct rpc_frames *f, const struct chunk *c)
{
        size_t n = 0;
        char *bytes;

        f->chunks.next++;
        if (f->chunks.skips)
                return true;
        bytes = crypto_unbase64(c->data.p, c->data.n, &n);
        if (!bytes || n > f->chunks.bytes - f->chunks.text.len) {
                free(bytes);
                return false;
        }
        buf_add(&f->chunks.text, bytes, n);
        free(bytes);
        return true;
}

/* The whole message, once the last chunk is there. */
static enum rpc_line finish_chunks(struct rpc_frames *f, struct buf *out)
{
        struct buf *text = &f->chunks.text;
        enum rpc_line what = RPC_LINE_NOTHING;

        if (!f->chunks.skips) {
                if (text->len != f->chunks.bytes || !utf8_valid(text->data, text->len))
                        return lose_chunks(f);
                what = shorten(text->data, text->len, out);
                if (what == RPC_LINE_WHOLE) {
                        buf_add(out, text->data, text->len);
                        what = RPC_LINE_SHORT;
                }
        }
        forget_chunks(f);
        return what;
}

static enum rpc_line take_chunk(struct rpc_frames *f, struct scan *s, struct buf *out)
{
        enum rpc_line what;
        struct chunk c;

        if (!read_chunk(s, &c))
                return lose_chunks(f);
        if (f->chunks.id[0] == '\0' || c.index == 0) {
                if (!begin_chunks(f, &c))
                        return lose_chunks(f);
        }
        if (!slice_is(c.id, f->chunks.id) || c.index != f->chunks.next ||
            c.count != f->chunks.count || !add_chunk(f, &c))
                return lose_chunks(f);
        if (f->chunks.next == f->chunks.count)
                return finish_chunks(f, out);
        if (c.index > 0)
                return RPC_LINE_NOTHING;
        what = shorten(f->chunks.text.data, f->chunks.text.len, out); /* its beginning may do */
        if (what == RPC_LINE_WHOLE)
                return RPC_LINE_NOTHING;
        f->chunks.skips = true;
        return what;
}

/* ---- lines ---- */

enum rpc_line rpc_frames_read(struct rpc_frames *f, const char *line, size_t n, struct buf *out)
{
        struct scan s = { line, line + n };
        struct slice type;

        if (read_type(&s, &type) && is_string(type, "rpc_chunk"))
                return take_chunk(f, &s, out);
        if (f->chunks.id[0])
                lose_chunks(f);
        return shorten(line, n, out);
}

void rpc_frames_init(struct rpc_frames *f, size_t max)
{
        *f = (struct rpc_frames){ .max = max };
        buf_init(&f->chunks.text, 0);
}

void rpc_frames_release(struct rpc_frames *f)
{
        buf_release(&f->chunks.text);
}
