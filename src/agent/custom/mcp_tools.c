/*
 * The tools of an MCP server: names, limits, marks, and what was listed last time.
 *
 * Descriptions and annotations are claims of the server. They can make us ask more often, never
 * less, unless the operator trusts the server; a tool whose description changed is reported.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/custom/manifest.h"
#include "agent/custom/mcp_private.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"

#define HASH_SHOWN  8
#define SCHEMA_DEEP 64
#define HEADERS_MAX 32
#define CACHE_MAX   ((size_t)8 << 20)
#define MODERN_DAYS 1

/* ---- keys ---- */

char *mcp_tools_key(const char *server, const char *tool)
{
        char *whole = mem_printf("%s__%s", server, tool), hash[SHA256_HEX_SIZE], *cut;
        bool changed = strlen(whole) > CUSTOM_KEY_MAX;

        for (char *c = whole; *c; c++) {
                if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-') {
                        *c = '_';
                        changed = true;
                }
        }
        if (!changed)
                return whole;
        crypto_sha256_hex(tool, strlen(tool), hash);
        cut = mem_printf("%.*s_%.*s", CUSTOM_KEY_MAX - HASH_SHOWN - 1, whole, HASH_SHOWN, hash);
        free(whole);
        return cut;
}

/* ---- arguments that are also sent as headers ---- */

struct header_walk {
        const char *seen[HEADERS_MAX];
        size_t count;
        void (*fn)(void *arg, const char *header, const char *value);
        void *arg;
};

static bool is_token(const char *s)
{
        size_t n = strlen(s);

        return n > 0 && n == strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789!#$%&'*+-.^_`|~");
}

static void tell_header(const struct header_walk *w, const char *name, const json_t *value)
{
        char number[32];

        if (json_is_string(value))
                w->fn(w->arg, name, json_string_value(value));
        if (json_is_boolean(value))
                w->fn(w->arg, name, json_is_true(value) ? "true" : "false");
        if (json_is_integer(value)) {
                snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
                w->fn(w->arg, name, number);
        }
}

static int read_mark(struct header_walk *w, const json_t *schema, const json_t *value)
{
        const char *name = json_str(schema, "x-mcp-header", ""),
                   *type = json_str(schema, "type", "");

        if (!is_token(name) || w->count == HEADERS_MAX ||
            (strcmp(type, "string") != 0 && strcmp(type, "integer") != 0 &&
             strcmp(type, "boolean") != 0))
                return -1;
        for (size_t i = 0; i < w->count; i++)
                if (strcasecmp(w->seen[i], name) == 0)
                        return -1;
        w->seen[w->count++] = name;
        if (value)
                tell_header(w, name, value);
        return 0;
}

/* Is there a mark anywhere below? */
static bool has_mark(const json_t *node, int depth)
{
        const char *key;
        size_t i;
        json_t *child;

        if (depth > SCHEMA_DEEP)
                return true;
        json_array_foreach(node, i, child)
                if (has_mark(child, depth + 1))
                        return true;
        json_object_foreach((json_t *)(uintptr_t)node, key, child)
                if (strcmp(key, "x-mcp-header") == 0 || has_mark(child, depth + 1))
                        return true;
        return false;
}

/* Marks count only along a chain of "properties"; elsewhere they make the schema invalid. */
static int walk_headers(struct header_walk *w, const json_t *schema, const json_t *value, int depth)
{
        json_t *node = (json_t *)(uintptr_t)schema, *child, *inner;
        const char *key, *name;

        if (depth > SCHEMA_DEEP)
                return -1;
        if (json_object_get(schema, "x-mcp-header") &&
            (depth == 0 || read_mark(w, schema, value) < 0))
                return -1;
        json_object_foreach(node, key, child) {
                if (strcmp(key, "x-mcp-header") == 0)
                        continue;
                if (strcmp(key, "properties") != 0) {
                        /* values, not schemas */
                        if (strcmp(key, "enum") != 0 && strcmp(key, "const") != 0 &&
                            strcmp(key, "default") != 0 && strcmp(key, "examples") != 0 &&
                            has_mark(child, depth + 1))
                                return -1;
                        continue;
                }
                json_object_foreach(child, name, inner)
                        if (walk_headers(w, inner, json_object_get(value, name), depth + 1) < 0)
                                return -1;
        }
        return 0;
}

int mcp_tools_headers(const json_t *schema, const json_t *args,
                      void (*fn)(void *arg, const char *header, const char *value), void *arg)
{
        struct header_walk w = { .fn = fn, .arg = arg };

        return walk_headers(&w, schema, args, 0);
}

/* ---- the list ---- */

static const json_t *find_tool(const json_t *list, const char *name)
{
        size_t i;
        json_t *t;

        json_array_foreach(list, i, t)
                if (strcmp(json_str(t, "name", ""), name) == 0)
                        return t;
        return NULL;
}

static bool same_member(const json_t *a, const json_t *b, const char *key)
{
        const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);

        return x == y || (x && y && json_equal(x, y));
}

/* A server that was harmless when it was installed may change its words later. */
static void report_change(struct mcp_server *s, const json_t *tool)
{
        const char *name = json_str(tool, "name", "");
        const json_t *old = find_tool(s->listed, name);

        if (!old ||
            (same_member(old, tool, "description") && same_member(old, tool, "inputSchema") &&
             same_member(old, tool, "annotations")))
                return;
        log_warn("tool of an MCP server has changed its description or parameters",
                 LOG_S("server", s->base.name), LOG_S("tool", name),
                 LOG_S("was", json_str(old, "description", "")),
                 LOG_S("is", json_str(tool, "description", "")));
        custom_source_problem(&s->base, "the tool '%.64s' has changed since it was last listed",
                              name);
}

static unsigned flags_of(const struct mcp_server *s, const json_t *tool)
{
        const json_t *hints = json_object_get(tool, "annotations");
        bool reads = json_flag(hints, "readOnlyHint", false);
        unsigned flags = s->conf->trust ? 0 : TOOL_UNTRUSTED;

        if (s->conf->trust && reads)
                flags |= TOOL_READ_ONLY;
        if (!reads && (json_flag(hints, "destructiveHint", false) ||
                       json_flag(hints, "openWorldHint", false)))
                flags |= TOOL_RISKY;
        return flags;
}

static bool is_wanted(const struct mcp_conf *conf, const char *name)
{
        if (!conf->tools.set)
                return true;
        for (size_t i = 0; i < conf->tools.count; i++)
                if (strcmp(conf->tools.items[i], name) == 0)
                        return true;
        return false;
}

/* Cleaned, bounded, never blank. */
static char *description_of(const json_t *tool)
{
        const char *text = json_str(tool, "description", json_str(tool, "title", ""));
        size_t n = strlen(text);

        if (n > CUSTOM_DESCRIPTION_MAX)
                n = utf8_prefix(text, n, UTF8_BYTES, CUSTOM_DESCRIPTION_MAX);
        if (strspn(text, " \t\r\n") >= n)
                return mem_printf("%.200s", json_str(tool, "name", ""));
        return utf8_clean(text, n);
}

static void add_tool(struct mcp_server *s, const json_t *tool)
{
        const char *name = json_str(tool, "name", "");
        json_t *schema = json_object_get(tool, "inputSchema");
        bool own = s->variant && s->variant->own;
        struct custom_tool *t;
        struct error err = { 0 };

        if (!*name || strlen(name) > 128 || !is_wanted(s->conf, name))
                return;
        if (manifest_check_schema(schema, &err) < 0 ||
            (s->conf->url && mcp_tools_headers(schema, NULL, NULL, NULL) < 0) ||
            (own && !custom_is_key(name))) {
                custom_source_problem(&s->base, "its tool '%.64s' is left out: %s", name,
                                      *err.text ? err.text
                                      : own     ? "its name may have letters, digits, '_' and '-' "
                                                  "only"
                                                : "an x-mcp-header is invalid");
                return;
        }
        t = custom_source_tool(&s->base);
        t->key = own ? mem_strdup(name) : mcp_tools_key(s->base.name, name);
        t->name = mem_strdup(name);
        t->description = description_of(tool);
        t->schema = json_incref(schema);
        t->flags = flags_of(s, tool);
        t->timeout_ms = s->conf->timeout_seconds * 1000;
        if (s->variant && s->variant->tool)
                s->variant->tool(s, tool, t);
}

static void add_resource_tool(struct mcp_server *s)
{
        struct custom_tool *t = custom_source_tool(&s->base);

        t->key = mcp_tools_key(s->base.name, "read_resource");
        t->name = mem_strdup(MCP_READ_RESOURCE);
        t->description = mem_printf("Reads a resource of the server %s, such as one that another "
                                    "tool's result names.",
                                    s->base.name);
        t->schema = json_pack("{s:s, s:{s:{s:s}}, s:[s]}", "type", "object", "properties", "uri",
                              "type", "string", "required", "uri");
        t->flags = s->conf->trust ? TOOL_READ_ONLY : TOOL_UNTRUSTED;
        t->timeout_ms = s->conf->timeout_seconds * 1000;
}

void mcp_tools_set(struct mcp_server *s, const json_t *list)
{
        size_t i;
        json_t *tool;

        custom_source_clear(&s->base);
        json_array_foreach(list, i, tool) {
                if (s->listed)
                        report_change(s, tool);
                add_tool(s, tool);
        }
        if (s->resources && is_wanted(s->conf, MCP_READ_RESOURCE))
                add_resource_tool(s);
}

/* ---- the list of last time ---- */

static char *cache_path(const struct mcp_server *s)
{
        const struct custom_options *o = custom_options(s->base.all);

        return mem_printf("%s/state/mcp/%s-%s.json", o->dir, o->agent, s->base.name);
}

/* Another program or address is another server. */
static void config_print(const struct mcp_conf *conf, char out[SHA256_HEX_SIZE])
{
        struct buf b;

        buf_init(&b, 0);
        buf_addf(&b, "%s\n%s\n", conf->url ? conf->url : "", conf->command ? conf->command : "");
        for (size_t i = 0; i < conf->args.count; i++)
                buf_addf(&b, "%s\n", conf->args.items[i]);
        crypto_sha256_hex(b.data, b.len, out);
        buf_release(&b);
}

void mcp_cache_read(struct mcp_server *s)
{
        char *path = cache_path(s), print[SHA256_HEX_SIZE];
        json_t *cache = file_read_json(path, CACHE_MAX);

        config_print(s->conf, print);
        if (strcmp(json_str(cache, "config", ""), print) == 0) {
                int64_t age = clock_wall_ms() - json_int(cache, "at", 0);

                s->cached_modern = strcmp(json_str(cache, "era", ""), "modern") == 0 && age >= 0 &&
                                   age < MODERN_DAYS * 86400000LL;
                s->listed = json_incref(json_object_get(cache, "tools"));
                s->resources = json_flag(cache, "resources", false);
                if (json_array_size(s->listed) > 0) {
                        mcp_tools_set(s, s->listed);
                        s->base.known = true;
                }
        }
        json_decref(cache);
        free(path);
}

struct cache_job {
        char *path, *text;
};

static void cache_work(void *arg)
{
        struct cache_job *j = arg;
        char *slash = strrchr(j->path, '/');
        struct error err = { 0 };

        *slash = '\0';
        file_make_dirs(j->path, &err);
        *slash = '/';
        if (file_replace(j->path, j->text) < 0)
                log_warn("list of an MCP server's tools was not saved", LOG_S("file", j->path));
}

static void cache_done(void *arg)
{
        struct cache_job *j = arg;

        free(j->path);
        free(j->text);
        free(j);
}

void mcp_cache_write(struct mcp_server *s)
{
        struct cache_job *j = mem_zalloc(sizeof(*j));
        char print[SHA256_HEX_SIZE];
        json_t *cache;

        config_print(s->conf, print);
        cache = json_pack("{s:s, s:s, s:I, s:b, s:O}", "config", print, "era",
                          s->modern ? "modern" : "legacy", "at", (json_int_t)clock_wall_ms(),
                          "resources", s->resources, "tools", s->listed);
        j->path = cache_path(s);
        j->text = json_text(cache);
        json_decref(cache);
        loop_work(custom_options(s->base.all)->loop, cache_work, cache_done, j);
}
