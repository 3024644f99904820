#include "agent/custom/custom_result.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define BLOCKS_MAX 64
#define NAME_SHOWN 200

struct result_reading {
        struct saved_files *files; /* NULL: nothing is saved */
        json_t *content;
};

/* ---- blocks ---- */

static void add_text(struct result_reading *r, const char *text, size_t n)
{
        char *clean;

        if (n == 0 || strspn(text, " \t\r\n") >= n)
                return; /* services refuse blank blocks */
        clean = utf8_clean(text, n);
        json_array_append_new(r->content, json_pack("{s:s, s:s}", "type", "text", "text", clean));
        free(clean);
}

static void add_note(struct result_reading *r, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));
static void add_note(struct result_reading *r, const char *fmt, ...)
{
        struct buf b;
        va_list ap;

        buf_init(&b, 0);
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        add_text(r, b.data, b.len);
        buf_release(&b);
}

/* The note just added is about the file just added. */
static void name_file(struct result_reading *r)
{
        saved_files_named_by(r->files, json_array_get(r->content, json_array_size(r->content) - 1));
}

/* A copy without secrets, which a cut could halve and a file would keep. */
static char *hide_secrets(const char *text, size_t n)
{
        char *copy = mem_alloc(n + 1);

        memcpy(copy, text, n);
        copy[n] = '\0';
        for (size_t at = 0; at < n; at += strlen(copy + at) + 1) /* it may contain NULs */
                log_redact(copy + at);
        return copy;
}

/* The beginning of what fits; the whole text goes to a file. */
static void add_long_text(struct result_reading *r, const char *original, size_t n)
{
        char *text = hide_secrets(original, n);
        size_t lines = 0, end = 0, at = 0;
        const char *path;

        for (; at < n && lines < TOOL_LINES_MAX && at < TOOL_BYTES_MAX; at++) {
                if (text[at] == '\n') {
                        lines++;
                        end = at + 1;
                }
        }
        if (at == n)
                end = n;
        else if (end == 0) /* one long line */
                end = utf8_prefix(text, n, UTF8_BYTES, TOOL_BYTES_MAX);
        add_text(r, text, end);
        if (end < n && r->files) {
                path = saved_files_add(r->files, "text/plain", text, n);
                text = NULL;
                add_note(r, "[The first %zu of %zu bytes are shown. Full output: %s]", end, n,
                         path);
                name_file(r);
        } else if (end < n) {
                add_note(r, "[The first %zu of %zu bytes are shown.]", end, n);
        }
        free(text);
}

static bool is_model_image(const char *type)
{
        return strcmp(type, "image/png") == 0 || strcmp(type, "image/jpeg") == 0 ||
               strcmp(type, "image/gif") == 0 || strcmp(type, "image/webp") == 0;
}

/* An image, a sound or another file in base64. */
static void add_bytes(struct result_reading *r, const char *what, const char *type,
                      const char *data)
{
        size_t n = 0;
        char *bytes = crypto_unbase64(data, strlen(data), &n);
        const char *path;

        if (!bytes) {
                add_note(r, "[The tool returned %s whose base64 is malformed.]", what);
                return;
        }
        if (is_model_image(type) && n > 0 && n <= TOOL_IMAGE_MAX) {
                json_array_append_new(r->content, json_pack("{s:s, s:s, s:s}", "type", "image",
                                                            "mimeType", type, "data", data));
                free(bytes);
                return;
        }
        if (!r->files) {
                add_note(r, "[The tool returned %s (%.100s, %zu bytes), which was not saved.]",
                         what, type, n);
                free(bytes);
                return;
        }
        path = saved_files_add(r->files, type, bytes, n);
        add_note(r, "[The tool returned %s (%.100s, %zu bytes), saved as %s]", what, type, n, path);
        name_file(r);
}

static void add_resource(struct result_reading *r, const json_t *resource)
{
        const char *uri = json_str(resource, "uri", ""), *text = json_str(resource, "text", NULL);
        const char *blob = json_str(resource, "blob", NULL);

        if (text) {
                add_note(r, "[Resource %.*s]", NAME_SHOWN, uri);
                add_long_text(r, text, strlen(text));
        } else if (blob) {
                add_bytes(r, "a resource",
                          json_str(resource, "mimeType", "application/octet-stream"), blob);
        } else {
                add_note(r, "[Resource %.*s, empty]", NAME_SHOWN, uri);
        }
}

/* annotations.audience without "assistant": for the user's eyes only. */
static bool is_for_model(const json_t *block)
{
        const json_t *audience = json_object_get(json_object_get(block, "annotations"), "audience");
        size_t i;
        json_t *who;

        if (!json_is_array(audience) || json_array_size(audience) == 0)
                return true;
        json_array_foreach(audience, i, who)
                if (json_is_string(who) && strcmp(json_string_value(who), "assistant") == 0)
                        return true;
        return false;
}

static void add_block(struct result_reading *r, const json_t *block)
{
        const char *type = json_str(block, "type", "");
        const char *data = json_str(block, "data", "");

        if (!is_for_model(block))
                return;
        if (strcmp(type, "text") == 0) {
                const char *text = json_str(block, "text", "");

                add_long_text(r, text, strlen(text));
        } else if (strcmp(type, "image") == 0) {
                add_bytes(r, "an image", json_str(block, "mimeType", "image/png"), data);
        } else if (strcmp(type, "audio") == 0) {
                add_bytes(r, "a sound", json_str(block, "mimeType", "audio/wav"), data);
        } else if (strcmp(type, "resource_link") == 0) {
                add_note(r, "[Resource %.*s: %.*s]", NAME_SHOWN, json_str(block, "name", ""),
                         NAME_SHOWN * 4, json_str(block, "uri", ""));
        } else if (strcmp(type, "resource") == 0) {
                add_resource(r, json_object_get(block, "resource"));
        } else {
                char *text = json_text(block);

                add_long_text(r, text, strlen(text));
                free(text);
        }
}

/* ---- results ---- */

bool custom_result_is(const json_t *value)
{
        const json_t *content = json_object_get(value, "content");

        return json_is_array(content) || json_is_string(content) ||
               json_is_string(json_object_get(value, "text")) ||
               json_is_boolean(json_object_get(value, "isError")) ||
               json_object_get(value, "structuredContent");
}

static bool has_text(const json_t *content)
{
        size_t i;
        json_t *block;

        json_array_foreach(content, i, block)
                if (strcmp(json_str(block, "type", ""), "text") == 0)
                        return true;
        return false;
}

static void finish(struct result_reading *r, struct tool_result *out)
{
        if (json_array_size(r->content) == 0)
                add_note(r, "(no output)");
        out->content = r->content;
}

void custom_result_read(const json_t *result, struct saved_files *files, struct tool_result *out)
{
        const json_t *content = json_object_get(result, "content");
        const json_t *structured = json_object_get(result, "structuredContent");
        const char *text = json_str(result, "text", json_str(result, "content", NULL));
        struct result_reading r = { files, json_array() };

        if (text)
                add_long_text(&r, text, strlen(text));
        for (size_t i = 0; i < json_array_size(content) && i < BLOCKS_MAX; i++)
                add_block(&r, json_array_get(content, i));
        if (json_array_size(content) > BLOCKS_MAX)
                add_note(&r, "[%zu more parts are left out.]",
                         json_array_size(content) - BLOCKS_MAX);
        /* servers repeat it as text for clients that do not know it */
        if (structured && !has_text(r.content)) {
                char *json = json_text(structured);

                add_long_text(&r, json, strlen(json));
                free(json);
        }
        out->is_error = json_flag(result, "isError", false);
        out->details = json_incref(json_object_get(result, "details"));
        finish(&r, out);
}

void custom_result_text(const char *text, size_t n, bool is_error, struct saved_files *files,
                        struct tool_result *out)
{
        struct result_reading r = { files, json_array() };

        add_long_text(&r, text, n);
        out->is_error = is_error;
        finish(&r, out);
}
