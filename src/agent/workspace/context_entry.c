#include "agent/workspace/context_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

char *context_entry_id(int64_t step, char out[CONTEXT_ID_SIZE])
{
        out[0] = '\0';
        if (step > 0)
                snprintf(out, CONTEXT_ID_SIZE, "%08llx", (unsigned long long)step);
        return out;
}

void context_write_header(struct buf *out, const char *key, const char *folder, int64_t time_ms)
{
        char hex[SHA256_HEX_SIZE], id[40], iso[CLOCK_ISO_SIZE];

        crypto_sha256_hex(key, strlen(key), hex);
        snprintf(id, sizeof(id), "%.8s-%.4s-8%.3s-8%.3s-%.12s", hex, hex + 8, hex + 12, hex + 15,
                 hex + 18);
        jsonw_open(out, '{');
        jsonw_str(out, "type", "session");
        jsonw_int(out, "version", 3);
        jsonw_str(out, "id", id);
        jsonw_str(out, "timestamp", clock_iso(time_ms, iso));
        jsonw_str(out, "cwd", folder);
        jsonw_close(out, '}');
        buf_addch(out, '\n');
}

/* ---- writing ---- */

/* Bytes of images are kept elsewhere; other programs would miss "data". */
static void replace_images(json_t *message)
{
        json_t *content = json_object_get(message, "content"), *block;
        size_t i;

        json_array_foreach(content, i, block) {
                const char *type = json_str(block, "type", "");
                char *text;

                if ((strcmp(type, "image") != 0 && strcmp(type, "document") != 0) ||
                    json_object_get(block, "data"))
                        continue;
                text = mem_printf("[%s %s]", type,
                                  json_str(block, "name", json_str(block, "mimeType", "")));
                json_array_set_new(content, i,
                                   json_pack("{s:s, s:s}", "type", "text", "text", text));
                free(text);
        }
}

static json_t *message_entry(const struct step_row *step, const json_t *body)
{
        json_t *message = json_deep_copy(body);

        replace_images(message);
        if (!json_object_get(message, "timestamp"))
                json_object_set_new(message, "timestamp", json_integer(step->time_ms));
        return json_pack("{s:s, s:o}", "type", "message", "message", message);
}

static json_t *compaction_entry(const struct step_row *step, const json_t *body)
{
        char first[CONTEXT_ID_SIZE];

        return json_pack("{s:s, s:s, s:s, s:I}", "type", "compaction", "summary",
                         json_str(body, "summary", ""), "firstKeptEntryId",
                         context_entry_id(step->first_kept, first), "tokensBefore",
                         (json_int_t)json_int(body, "tokensBefore", 0));
}

int context_write_step(struct buf *out, const struct step_row *step, int64_t parent)
{
        json_t *body, *entry;
        char id[CONTEXT_ID_SIZE], iso[CLOCK_ISO_SIZE];
        char *text;

        if (step->kind == STEP_TOOL_STARTED)
                return 0;
        body = json_read_lenient(step->body, strlen(step->body), NULL);
        if (!json_is_object(body)) {
                json_decref(body);
                return 0;
        }
        entry = step->kind == STEP_COMPACTION ? compaction_entry(step, body)
                                              : message_entry(step, body);
        json_object_set_new(entry, "id", json_string(context_entry_id(step->id, id)));
        json_object_set_new(entry, "parentId",
                            parent > 0 ? json_string(context_entry_id(parent, id)) : json_null());
        json_object_set_new(entry, "timestamp", json_string(clock_iso(step->time_ms, iso)));
        text = json_text(entry);
        buf_addf(out, "%s\n", text);
        free(text);
        json_decref(entry);
        json_decref(body);
        return 1;
}

int64_t context_line_step(const char *line, size_t n)
{
        json_t *o = json_read_lenient(line, n, NULL);
        const char *id = json_str(o, "id", "");
        int64_t step = 0;
        char *end;

        if (strlen(id) >= 8 && strspn(id, "0123456789abcdef") == strlen(id) && strlen(id) < 16)
                step = strtoll(id, &end, 16);
        if (strcmp(json_str(o, "type", "session"), "session") == 0)
                step = 0;
        json_decref(o);
        return step;
}

/* ---- reading ---- */

struct session_read {
        json_t *entries; /* array, without the header */
        int64_t version;
        size_t skipped;
};

static int read_lines(struct session_read *s, const char *text, size_t n, struct error *err)
{
        const char *p = text, *end = text + n;
        bool is_first = true;

        while (p < end) {
                const char *nl = memchr(p, '\n', (size_t)(end - p));
                size_t line_n = (size_t)((nl ? nl : end) - p);
                json_t *o = json_read_lenient(p, line_n, NULL);

                p += line_n + 1;
                if (is_first) {
                        is_first = false;
                        if (strcmp(json_str(o, "type", ""), "session") != 0) {
                                json_decref(o);
                                return error_set(err, ERR_INVALID,
                                                 "the first line is no header of a session");
                        }
                        s->version = json_int(o, "version", 1);
                        json_decref(o);
                } else if (json_is_object(o) && json_str(o, "type", NULL)) {
                        json_array_append_new(s->entries, o);
                } else {
                        s->skipped += line_n > 0;
                        json_decref(o);
                }
        }
        if (is_first)
                return error_set(err, ERR_INVALID, "the file is empty");
        return 0;
}

/* The place of the entry with this id before `below`; -1: none. Sessions rarely branch, so it is
 * mostly the one before. */
static int64_t find_entry(const json_t *entries, const char *id, size_t below)
{
        for (size_t i = below; id && i > 0; i--)
                if (strcmp(json_str(json_array_get(entries, i - 1), "id", ""), id) == 0)
                        return (int64_t)i - 1;
        return -1;
}

/* Places of the entries from the root to the leaf; how many. */
static size_t find_path(const struct session_read *s, size_t *path)
{
        size_t count = json_array_size(s->entries), n = 0;
        int64_t at = (int64_t)count - 1;

        if (s->version < 2) { /* no ids: all in order */
                for (size_t i = 0; i < count; i++)
                        path[i] = i;
                return count;
        }
        while (at >= 0) {
                const json_t *entry = json_array_get(s->entries, (size_t)at);

                path[n++] = (size_t)at;
                at = find_entry(s->entries, json_str(entry, "parentId", NULL), (size_t)at);
        }
        for (size_t i = 0; i < n / 2; i++) {
                size_t one = path[i];

                path[i] = path[n - 1 - i];
                path[n - 1 - i] = one;
        }
        return n;
}

static bool is_type(const json_t *entry, const char *type)
{
        return strcmp(json_str(entry, "type", ""), type) == 0;
}

/* Where the context begins on the path, after the last compaction; *summary: its text. */
static size_t find_start(const struct session_read *s, const size_t *path, size_t n,
                         size_t *compaction, const char **summary)
{
        *compaction = n;
        *summary = NULL;
        for (size_t i = n; i > 0; i--) {
                const json_t *entry = json_array_get(s->entries, path[i - 1]);
                const char *first = json_str(entry, "firstKeptEntryId", NULL);
                int64_t index = json_int(entry, "firstKeptEntryIndex", -1) - 1; /* the header */

                if (!is_type(entry, "compaction"))
                        continue;
                *compaction = i - 1;
                *summary = json_str(entry, "summary", "");
                for (size_t k = 0; k < i - 1; k++)
                        if ((first &&
                             strcmp(json_str(json_array_get(s->entries, path[k]), "id", ""),
                                    first) == 0) ||
                            (!first && index == (int64_t)path[k]))
                                return k;
                return i - 1;
        }
        return 0;
}

static json_t *user_text(const char *text)
{
        return json_pack("{s:s, s:[{s:s, s:s}]}", "role", "user", "content", "type", "text", "text",
                         text);
}

static bool is_blank(const char *text)
{
        return strspn(text, " \t\r\n") == strlen(text);
}

/* Content as an array of blocks that say something. */
static json_t *usable_content(const json_t *message)
{
        static const char *const types[] = { "text", "thinking", "toolCall", "image" };
        const json_t *content = json_object_get(message, "content");
        json_t *blocks = json_array(), *block;
        size_t i;

        if (json_is_string(content) && !is_blank(json_string_value(content)))
                json_array_append_new(blocks,
                                      json_pack("{s:s, s:O}", "type", "text", "text", content));
        json_array_foreach(content, i, block) {
                const char *type = json_str(block, "type", ""), *text = json_str(block, "text", "");
                bool known = false;

                for (size_t k = 0; k < COUNT(types); k++)
                        known = known || strcmp(type, types[k]) == 0;
                if (!known || (strcmp(type, "text") == 0 && is_blank(text)))
                        continue;
                if (strcmp(type, "toolCall") == 0 &&
                    (!json_str(block, "id", NULL) || !json_str(block, "name", NULL) ||
                     !json_is_object(json_object_get(block, "arguments"))))
                        continue;
                json_array_append(blocks, block);
        }
        return blocks;
}

static void close_calls(json_t *out, json_t *open)
{
        const char *id;
        json_t *name;

        json_object_foreach(open, id, name)
                json_array_append_new(out, json_pack("{s:s, s:s, s:O, s:[{s:s, s:s}], s:b}", "role",
                                                     "toolResult", "toolCallId", id, "toolName",
                                                     name, "content", "type", "text", "text",
                                                     "No result was recorded.", "isError", 1));
        json_object_clear(open);
}

static void open_calls(json_t *open, const json_t *content)
{
        const json_t *block;
        size_t i;

        json_array_foreach(content, i, block)
                if (strcmp(json_str(block, "type", ""), "toolCall") == 0)
                        json_object_set(open, json_str(block, "id", ""),
                                        json_object_get(block, "name"));
}

/*
 * Adds a message, unless a service would refuse it: an answer that failed, a result without its
 * call, nothing but blanks. open: calls whose result is still to come.
 */
static void add_message(json_t *out, json_t *open, const json_t *message)
{
        const char *role = json_str(message, "role", ""),
                   *stop = json_str(message, "stopReason", "");
        json_t *content = usable_content(message), *copy;
        bool is_result = strcmp(role, "toolResult") == 0,
             is_answer = strcmp(role, "assistant") == 0, counts;

        if (is_result)
                counts = json_object_get(open, json_str(message, "toolCallId", "")) != NULL;
        else
                counts = json_array_size(content) > 0 &&
                         !(is_answer && (!strcmp(stop, "error") || !strcmp(stop, "aborted")));
        if (!counts) {
                json_decref(content);
                return;
        }
        if (is_result)
                json_object_del(open, json_str(message, "toolCallId", ""));
        else
                close_calls(out, open);
        if (is_result && json_array_size(content) == 0)
                json_array_append_new(
                        content, json_pack("{s:s, s:s}", "type", "text", "text", "(no output)"));
        copy = json_copy((json_t *)message);
        json_object_set_new(copy, "content", content);
        if (!is_result && !is_answer)
                json_object_set_new(copy, "role", json_string("user"));
        if (is_answer)
                open_calls(open, content);
        json_array_append_new(out, copy);
}

static void add_entry(json_t *out, json_t *open, const json_t *entry)
{
        const json_t *message = json_object_get(entry, "message");
        const char *role = json_str(message, "role", "");

        if (is_type(entry, "message") && strcmp(role, "system") != 0)
                add_message(out, open, message);
        else if (is_type(entry, "custom_message"))
                add_message(out, open, entry);
}

static json_t *build(const struct session_read *s, const size_t *path, size_t n)
{
        json_t *out = json_array(), *open = json_object();
        const char *summary;
        size_t compaction, start = find_start(s, path, n, &compaction, &summary);

        if (summary) {
                char *text =
                        mem_printf("The earlier conversation was summarised:\n\n<summary>\n%s\n"
                                   "</summary>",
                                   summary);

                json_array_append_new(out, user_text(text));
                free(text);
        }
        for (size_t i = start; i < n; i++)
                if (i != compaction)
                        add_entry(out, open, json_array_get(s->entries, path[i]));
        close_calls(out, open);
        json_decref(open);
        return out;
}

json_t *context_read(const char *text, size_t n, size_t *skipped, struct error *err)
{
        struct session_read s = { .entries = json_array() };
        json_t *messages = NULL;

        if (read_lines(&s, text, n, err) == 0) {
                size_t *path = mem_array(json_array_size(s.entries) + 1, sizeof(*path));

                messages = build(&s, path, find_path(&s, path));
                free(path);
        }
        *skipped = s.skipped;
        json_decref(s.entries);
        return messages;
}
