#include "agent/llm/llm_transcript.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/crypto.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/utf8.h"

#define NO_RESULT                                                               \
        "No result: the call was interrupted. It may have taken effect; check " \
        "before repeating it."
#define NO_OUTPUT     "(no output)"
#define BEGINNING     "(The conversation began earlier.)"
#define GO_ON         "Please continue."

#define CACHE_KEY_MAX 64

/* ---- names and ids ---- */

bool llm_role_is(const json_t *message, const char *role)
{
        return strcmp(json_str(message, "role", ""), role) == 0;
}

bool llm_type_is(const json_t *block, const char *type)
{
        return strcmp(json_str(block, "type", ""), type) == 0;
}

bool llm_is_blank(const char *text)
{
        return text[strspn(text, " \t\r\n\v\f")] == '\0';
}

static bool is_plain(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
}

/* FNV-1a, which keeps shortened names apart. */
static uint32_t hash_of(const char *text, size_t n)
{
        uint32_t h = 2166136261u;

        for (size_t i = 0; i < n; i++)
                h = (h ^ (unsigned char)text[i]) * 16777619u;
        return h;
}

/* At most `max` characters of [a-zA-Z0-9_-]; what had to change gets a hash. */
static void make_plain(const char *text, size_t n, size_t max, char *out)
{
        bool changed = n > max || n == 0;
        size_t kept;

        for (size_t i = 0; i < n && !changed; i++)
                changed = !is_plain(text[i]);
        kept = changed && n + 9 > max ? max - 9 : n;
        if (kept > n)
                kept = n;
        for (size_t i = 0; i < kept; i++)
                out[i] = is_plain(text[i]) ? text[i] : '_';
        out[kept] = '\0';
        if (changed)
                snprintf(out + kept, 10, "_%08" PRIx32, hash_of(text, n));
}

const char *llm_wire_name(const char *name, char out[LLM_NAME_MAX + 1])
{
        make_plain(name, strlen(name), LLM_NAME_MAX, out);
        return out;
}

const char *llm_tool_name(const json_t *tools, const char *name)
{
        char plain[LLM_NAME_MAX + 1];

        for (size_t i = 0; i < json_array_size(tools); i++) {
                const char *tool = json_str(json_array_get(tools, i), "name", "");

                if (strcmp(llm_wire_name(tool, plain), name) == 0)
                        return tool;
        }
        return name;
}

/* Unique among `used`, an object with the ids as keys. */
static void make_id(const char *id, json_t *used, char out[LLM_ID_MAX + 1])
{
        size_t n = strcspn(id, "|"), kept;

        make_plain(id, n, LLM_ID_MAX, out);
        kept = strlen(out) < LLM_ID_MAX - 8 ? strlen(out) : LLM_ID_MAX - 8;
        for (unsigned i = 2; json_object_get(used, out); i++)
                snprintf(out + kept, LLM_ID_MAX + 1 - kept, "_%u", i % 1000000);
        json_object_set_new(used, out, json_true());
}

void llm_provider(const struct llm *m, struct buf *out)
{
        const char *host;

        if (strcmp(m->base, m->wire->base ? m->wire->base : "") == 0) {
                buf_addstr(out, m->wire->service ? m->wire->service : m->wire->name);
                return;
        }
        host = strstr(m->base, "://");
        host = host ? host + 3 : m->base;
        buf_add(out, host, strcspn(host, "/"));
}

/* ---- building ---- */

struct transcript {
        const json_t *messages;
        const char *api, *provider, *model; /* of the call that follows */
        json_t *out, *used;
        bool *taken; /* results that have their place */
};

static json_t *text_block(const char *text)
{
        return json_pack("{ss, ss}", "type", "text", "text", text);
}

static json_t *message_with(const char *role, json_t *content)
{
        return json_pack("{ss, so}", "role", role, "content", content);
}

/* Can services see it? */
static bool is_seen(const json_t *block)
{
        static const char *const types[] = { "image/jpeg", "image/png", "image/gif", "image/webp" };
        const char *mime = json_str(block, "mimeType", "");

        if (llm_type_is(block, "document"))
                return strcmp(mime, "application/pdf") == 0;
        for (size_t i = 0; i < COUNT(types); i++) {
                if (strcmp(mime, types[i]) == 0)
                        return true;
        }
        return false;
}

/* An image or a document: as it is, as text, or as a note about it. */
static void add_file(json_t *content, json_t *block)
{
        const char *data = json_str(block, "data", ""), *mime = json_str(block, "mimeType", "");
        const char *name = json_str(block, "name", "");
        char *bytes = NULL, *text = NULL, *note;
        size_t n;

        if (*data && is_seen(block)) {
                json_array_append(content, block);
                return;
        }
        if (llm_type_is(block, "document") && strncmp(mime, "text/", 5) == 0)
                bytes = crypto_unbase64(data, strlen(data), &n);
        if (bytes)
                text = utf8_clean(bytes, n);
        if (text && !llm_is_blank(text))
                note = mem_printf("%s%s%s", name, *name ? ":\n\n" : "", text);
        else
                note = mem_printf("[%s %s%s%s]", json_str(block, "type", ""), name,
                                  *name ? " " : "",
                                  *data ? "has a type that cannot be shown" : "is not available");
        json_array_append_new(content, text_block(note));
        free(note);
        free(text);
        free(bytes);
}

/* Of a person or a result. */
static void add_block(json_t *content, json_t *block)
{
        if (llm_type_is(block, "image") || llm_type_is(block, "document"))
                add_file(content, block);
        else if (llm_type_is(block, "text") && !llm_is_blank(json_str(block, "text", "")))
                json_array_append(content, block);
}

static json_t *content_of(const json_t *message)
{
        json_t *given = json_object_get(message, "content"), *content = json_array();

        if (json_is_string(given) && !llm_is_blank(json_string_value(given)))
                json_array_append_new(content, text_block(json_string_value(given)));
        for (size_t i = 0; i < json_array_size(given); i++)
                add_block(content, json_array_get(given, i));
        return content;
}

static void add_user(struct transcript *t, const json_t *message)
{
        json_t *content = content_of(message);

        if (json_array_size(content))
                json_array_append_new(t->out, message_with("user", content));
        else
                json_decref(content);
}

/* The result of a call of message `at`: the first not taken, before the id is used again. */
static const json_t *find_result(struct transcript *t, size_t at, const char *id)
{
        for (size_t i = at + 1; i < json_array_size(t->messages); i++) {
                const json_t *m = json_array_get(t->messages, i);
                const json_t *content = json_object_get(m, "content");

                if (llm_role_is(m, "toolResult")) {
                        if (t->taken[i] || strcmp(json_str(m, "toolCallId", ""), id) != 0)
                                continue;
                        t->taken[i] = true;
                        return m;
                }
                for (size_t k = 0; llm_role_is(m, "assistant") && k < json_array_size(content);
                     k++) {
                        const json_t *block = json_array_get(content, k);

                        if (llm_type_is(block, "toolCall") &&
                            strcmp(json_str(block, "id", ""), id) == 0)
                                return NULL;
                }
        }
        return NULL;
}

static void add_result(struct transcript *t, const json_t *call, const json_t *found)
{
        json_t *content = found ? content_of(found) : json_array();
        json_t *result;

        if (json_array_size(content) == 0)
                json_array_append_new(content, text_block(found ? NO_OUTPUT : NO_RESULT));
        result = json_pack("{ss, ss, ss, so, sb}", "role", "toolResult", "toolCallId",
                           json_str(call, "id", ""), "toolName", json_str(call, "name", ""),
                           "content", content, "isError",
                           !found || json_flag(found, "isError", false));
        json_array_append_new(t->out, result);
}

static json_t *copy_call(struct transcript *t, const json_t *call, bool own)
{
        const char *id = json_str(call, "id", ""), *item = strchr(id, '|');
        const char *name = json_str(call, "name", "");
        json_t *arguments = json_object_get(call, "arguments"), *copy;
        char plain[LLM_ID_MAX + 1];

        make_id(id, t->used, plain);
        arguments = json_is_object(arguments) ? json_incref(arguments) : json_object();
        copy = json_pack("{ss, ss, ss, so}", "type", "toolCall", "id", plain, "name",
                         *name ? name : LLM_NAMELESS, "arguments", arguments);
        if (own && item)
                json_object_set_new(copy, "item", json_string(item + 1));
        return copy;
}

/* Of the model: its thinking means nothing to another one. */
static void add_own_block(struct transcript *t, json_t *content, json_t *block, bool own)
{
        if (llm_type_is(block, "toolCall"))
                json_array_append_new(content, copy_call(t, block, own));
        else if (llm_type_is(block, "text") && own && !llm_is_blank(json_str(block, "text", "")))
                json_array_append(content, block);
        else if (llm_type_is(block, "text") && !llm_is_blank(json_str(block, "text", "")))
                json_array_append_new(content, text_block(json_str(block, "text", "")));
        else if (own && (llm_type_is(block, "thinking") || llm_type_is(block, "other")))
                json_array_append(content, block);
}

/* Is there something beside thinking, which no service takes alone? */
static bool says_something(const json_t *content)
{
        for (size_t i = 0; i < json_array_size(content); i++) {
                if (!llm_type_is(json_array_get(content, i), "thinking"))
                        return true;
        }
        return false;
}

static void add_assistant(struct transcript *t, size_t at)
{
        const json_t *message = json_array_get(t->messages, at);
        json_t *given = json_object_get(message, "content"), *content, *copy;
        const char *stop = json_str(message, "stopReason", "");
        bool own = strcmp(json_str(message, "api", ""), t->api) == 0 &&
                   strcmp(json_str(message, "provider", ""), t->provider) == 0 &&
                   strcmp(json_str(message, "model", ""), t->model) == 0;

        if (strcmp(stop, "error") == 0 || strcmp(stop, "aborted") == 0)
                return;
        content = json_array();
        if (json_is_string(given) && !llm_is_blank(json_string_value(given)))
                json_array_append_new(content, text_block(json_string_value(given)));
        for (size_t i = 0; i < json_array_size(given); i++)
                add_own_block(t, content, json_array_get(given, i), own);
        if (!says_something(content)) {
                json_decref(content);
                return;
        }
        if (json_array_size(t->out) == 0)
                json_array_append_new(
                        t->out, message_with("user", json_pack("[o]", text_block(BEGINNING))));
        copy = message_with("assistant", content);
        json_object_set_new(copy, "stopReason", json_string(stop));
        json_array_append_new(t->out, copy);
        for (size_t i = 0, k = 0; i < json_array_size(given); i++) {
                const json_t *call = json_array_get(given, i), *placed;

                if (!llm_type_is(call, "toolCall"))
                        continue;
                while (!llm_type_is(placed = json_array_get(content, k++), "toolCall"))
                        ;
                add_result(t, placed, find_result(t, at, json_str(call, "id", "")));
        }
}

json_t *llm_transcript_build(const json_t *messages, const struct llm *m)
{
        size_t n = json_array_size(messages);
        struct transcript t = { .messages = messages, .out = json_array(), .used = json_object() };
        struct buf provider;
        const json_t *last;

        buf_init(&provider, 0);
        llm_provider(m, &provider);
        t.api = m->wire->api ? m->wire->api : "";
        t.provider = provider.data;
        t.model = m->model;
        t.taken = mem_array(n ? n : 1, sizeof(*t.taken));
        for (size_t i = 0; i < n; i++) {
                const json_t *message = json_array_get(messages, i);

                if (llm_role_is(message, "user"))
                        add_user(&t, message);
                else if (llm_role_is(message, "assistant"))
                        add_assistant(&t, i);
        }
        last = json_array_get(t.out, json_array_size(t.out) - 1);
        if (llm_role_is(last, "assistant") &&
            strcmp(json_str(last, "stopReason", ""), "pause") != 0)
                json_array_append_new(t.out,
                                      message_with("user", json_pack("[o]", text_block(GO_ON))));
        free(t.taken);
        json_decref(t.used);
        buf_release(&provider);
        return t.out;
}

bool llm_has_calls(const json_t *messages)
{
        for (size_t i = 0; i < json_array_size(messages); i++) {
                if (llm_role_is(json_array_get(messages, i), "toolResult"))
                        return true;
        }
        return false;
}

/* ---- a request ---- */

void llm_write_json(struct buf *out, const char *key, const json_t *value)
{
        char *text = json_text(value);

        jsonw_raw(out, key, text);
        free(text);
}

void llm_write_mark(struct buf *out)
{
        jsonw_open_member(out, "cache_control", '{');
        jsonw_str(out, "type", "ephemeral");
        jsonw_close(out, '}');
}

void llm_write_cache_key(struct buf *out, const char *key, const char *value)
{
        if (value)
                jsonw_strn(out, key, value,
                           utf8_prefix(value, strlen(value), UTF8_BYTES, CACHE_KEY_MAX));
}

void llm_write_schema(struct buf *out, const char *key, const json_t *schema)
{
        json_t *copy = json_is_object(schema) ? json_copy((json_t *)schema) : json_object();

        if (!llm_type_is(copy, "object"))
                json_object_set_new(copy, "type", json_string("object"));
        if (!json_object_get(copy, "properties"))
                json_object_set_new(copy, "properties", json_object());
        llm_write_json(out, key, copy);
        json_decref(copy);
}

void llm_write_output(struct buf *out, const char *key, const json_t *result, const char *text)
{
        bool marked = strncasecmp(text, "error", strlen("error")) == 0;
        char *said;

        if (marked || !json_flag(result, "isError", false)) {
                jsonw_str(out, key, text);
                return;
        }
        said = mem_printf("Error: %s", text);
        jsonw_str(out, key, said);
        free(said);
}

static int by_name(const void *a, const void *b)
{
        return strcmp(json_str(*(const json_t *const *)a, "name", ""),
                      json_str(*(const json_t *const *)b, "name", ""));
}

void llm_request_init(struct llm_request *r, const struct llm *m, const struct model_request *q)
{
        size_t n = json_array_size(q->tools);

        *r = (struct llm_request){ .q = q, .stream = true };
        model_limits(m, &r->limits);
        r->messages = llm_transcript_build(q->messages, m);
        r->tools = mem_array(n ? n : 1, sizeof(*r->tools));
        for (size_t i = 0; i < n; i++)
                r->tools[r->tool_count++] = json_array_get(q->tools, i);
        /* in one order for ever, or the cache is lost */
        qsort(r->tools, r->tool_count, sizeof(*r->tools), by_name);
}

void llm_request_release(struct llm_request *r)
{
        json_decref(r->messages);
        free(r->tools);
}
