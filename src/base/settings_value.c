/*
 * Reads, releases and shows one value by its row.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/settings_private.h"
#include "base/utf8.h"

#define MAP_NAME_MAX 32

struct value_context {
        struct settings_source *src;
        const char *path;
        struct error *err;
};

bool settings_value_nullable(const struct setting *row)
{
        return row->fallback && strcmp(row->fallback, "null") == 0;
}

json_t *settings_value_default(const struct setting *row)
{
        json_t *value;

        if (!row->fallback)
                return NULL;
        value = json_loads(row->fallback, JSON_DECODE_ANY, NULL);
        assert(value); /* malformed in the table */
        return value;
}

bool settings_value_range(const struct setting *row, int64_t *min, int64_t *max)
{
        *min = row->min;
        *max = row->max >= row->min ? row->max : INT64_MAX;
        return row->min != 0 || row->max != 0;
}

static void add_range(const struct setting *row, struct buf *b)
{
        int64_t min, max;

        if (!settings_value_range(row, &min, &max))
                return;
        if (max == INT64_MAX)
                buf_addf(b, " (at least %lld)", (long long)min);
        else
                buf_addf(b, " (%lld to %lld)", (long long)min, (long long)max);
}

static void add_accepted(const struct setting *row, struct buf *b)
{
        static const char *const words[] = {
                [SETTING_NONE] = "nothing",
                [SETTING_BOOL] = "true or false",
                [SETTING_INT] = "a whole number",
                [SETTING_NUMBER] = "a number",
                [SETTING_STRING] = "a string",
                [SETTING_URL] = "an http:// or https:// URL",
                [SETTING_FILE] = "the path of a file",
                [SETTING_CHOICE] = "one of ",
                [SETTING_SECRET] =
                        "a string such as \"env:NAME\", \"file:PATH\" or \"cmd:PROGRAM ARG\"",
                [SETTING_STRINGS] = "a string or a list of strings",
                [SETTING_GROUP] = "an object",
                [SETTING_MAP] = "an object of named objects",
                [SETTING_PAIRS] = "an object of strings",
        };

        buf_addstr(b, words[row->type]);
        if (row->type == SETTING_INT || row->type == SETTING_NUMBER)
                add_range(row, b);
        if (row->type == SETTING_INT && row->choices)
                buf_addstr(b, " or ");
        for (const char *const *c = row->choices; c && *c; c++)
                buf_addf(b, "%s'%s'", c == row->choices ? "" : c[1] ? ", " : " or ", *c);
        if (settings_value_nullable(row))
                buf_addstr(b, " or null");
}

static const char *kind_of(const json_t *value)
{
        switch (json_typeof(value)) {
        case JSON_OBJECT:
                return "an object";
        case JSON_ARRAY:
                return "a list";
        case JSON_STRING:
                return "a string";
        case JSON_INTEGER:
        case JSON_REAL:
                return "a number";
        case JSON_TRUE:
        case JSON_FALSE:
                return "true or false";
        case JSON_NULL:
                break;
        }
        return "null";
}

static int wrong_type(const struct value_context *p, const struct setting *row, const json_t *value)
{
        bool fraction = row->type == SETTING_INT && json_is_real(value);
        struct buf text;

        buf_init(&text, 0);
        add_accepted(row, &text);
        settings_error(p->src, p->path, p->err, "expected %s, not %s", text.data,
                       fraction ? "a fraction" : kind_of(value));
        buf_release(&text);
        return -1;
}

static int out_of_range(const struct value_context *p, const struct setting *row, const char *value,
                        const char *how)
{
        struct buf range;

        buf_init(&range, 0);
        add_range(row, &range);
        settings_error(p->src, p->path, p->err, "%s is %s%s", value, how, range.data);
        buf_release(&range);
        return -1;
}

static int read_bool(const struct value_context *p, const struct setting *row, const json_t *value,
                     void *at)
{
        if (!json_is_boolean(value))
                return wrong_type(p, row, value);
        *(bool *)at = json_is_true(value);
        return 0;
}

static bool is_choice(const struct setting *row, const char *word)
{
        for (const char *const *c = row->choices; c && *c; c++) {
                if (strcmp(*c, word) == 0)
                        return true;
        }
        return false;
}

static int read_int(const struct value_context *p, const struct setting *row, const json_t *value,
                    void *at)
{
        int64_t n, min, max;
        char text[32];

        if (json_is_string(value) && is_choice(row, json_string_value(value))) {
                *(int64_t *)at = 0;
                return 0;
        }
        if (!json_is_integer(value))
                return wrong_type(p, row, value);
        n = json_integer_value(value);
        if (settings_value_range(row, &min, &max) && (n < min || n > max)) {
                snprintf(text, sizeof(text), "%lld", (long long)n);
                return out_of_range(p, row, text, n < min ? "too small" : "too large");
        }
        *(int64_t *)at = n;
        return 0;
}

static int read_number(const struct value_context *p, const struct setting *row,
                       const json_t *value, void *at)
{
        int64_t min, max;
        char text[32];
        double x;

        if (!json_is_number(value))
                return wrong_type(p, row, value);
        x = json_number_value(value);
        if (settings_value_range(row, &min, &max) && (x < (double)min || x > (double)max)) {
                snprintf(text, sizeof(text), "%g", x);
                return out_of_range(p, row, text, x < (double)min ? "too small" : "too large");
        }
        *(double *)at = x;
        return 0;
}

static int read_string(const struct value_context *p, const struct setting *row,
                       const json_t *value, void *at)
{
        int64_t n, min, max;

        if (!json_is_string(value))
                return wrong_type(p, row, value);
        n = (int64_t)json_string_length(value);
        if (settings_value_range(row, &min, &max)) {
                if (n == 0 && min > 0)
                        return settings_error(p->src, p->path, p->err, "must not be empty");
                if (n < min)
                        return settings_error(p->src, p->path, p->err,
                                              "is too short (at least %lld bytes)", (long long)min);
                if (n > max)
                        return settings_error(p->src, p->path, p->err,
                                              "is too long (at most %lld bytes)", (long long)max);
        }
        *(char **)at = mem_strdup(json_string_value(value));
        return 0;
}

/* "host", "host:8080", "[::1]:8080". */
static bool is_authority(const char *s, size_t n)
{
        const char *bracket = *s == '[' ? memchr(s, ']', n) : NULL;
        const char *host_end = bracket ? bracket + 1 : memchr(s, ':', n);
        const char *end = s + n;
        long port = 0;

        if (!host_end)
                return n > 0 && *s != '[';
        if (host_end == s)
                return false;
        if (host_end == end)
                return true;
        if (*host_end != ':' || host_end + 1 == end)
                return false;
        for (const char *d = host_end + 1; d < end && port <= 65535; d++) {
                if (!isdigit((unsigned char)*d))
                        return false;
                port = port * 10 + (*d - '0');
        }
        return port > 0 && port <= 65535;
}

/*
 * The query of a URL often carries a token, under any name. Long values are hidden from logs and
 * records, short ones only under the usual names, because they may be words.
 */
static bool may_be_secret(const char *name, size_t name_n, size_t value_n)
{
        static const char *const usual[] = {
                "key", "token", "secret", "sig", "auth", "pass", "code"
        };
        char low[64];
        size_t n = name_n < sizeof(low) - 1 ? name_n : sizeof(low) - 1;

        if (value_n >= 12)
                return true;
        for (size_t i = 0; i < n; i++)
                low[i] = (char)tolower((unsigned char)name[i]);
        low[n] = '\0';
        for (size_t i = 0; i < COUNT(usual); i++)
                if (strstr(low, usual[i]))
                        return true;
        return false;
}

/* fn: log_hide or log_unhide */
static void each_query_secret(const char *url, void (*fn)(const char *secret, size_t n))
{
        const char *p = url ? strchr(url, '?') : NULL;

        while (p && *p && *p != '#') {
                size_t n = strcspn(++p, "&#"), name_n = strcspn(p, "=&#");

                if (name_n < n && may_be_secret(p, name_n, n - name_n - 1))
                        fn(p + name_n + 1, n - name_n - 1);
                p += n;
        }
}

/* Keep the URL out of messages: it may carry a token. */
static int read_url(const struct value_context *p, const struct setting *row, const json_t *value,
                    void *at)
{
        const char *url = json_string_value(value), *odd = url;
        const char *authority;
        size_t n;

        if (!url)
                return wrong_type(p, row, value);
        if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
                return settings_error(p->src, p->path, p->err,
                                      "must start with http:// or https://");
        authority = strstr(url, "//") + 2;
        n = strcspn(authority, "/?#");
        if (memchr(authority, '@', n))
                return settings_error(p->src, p->path, p->err,
                                      "must not contain a user name or password");
        while ((unsigned char)*odd > ' ' && *odd != 0x7f && *odd != '\\')
                odd++;
        if (*odd != '\0' || !is_authority(authority, n))
                return settings_error(p->src, p->path, p->err,
                                      "is not a URL such as https://host:port/path");
        *(char **)at = mem_strdup(url);
        each_query_secret(url, log_hide);
        return 0;
}

/* Only warn about a missing permission: `config check` may run as another user. */
static int check_file(const struct value_context *p, const char *path)
{
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd < 0 && errno == EACCES) {
                settings_warn(p->src, p->path, "cannot read '%.200s': %s", path, strerror(errno));
                return 0;
        }
        if (fd < 0 && errno == ENOENT)
                return settings_error(p->src, p->path, p->err, "there is no file '%.200s'", path);
        if (fd < 0)
                return settings_error(p->src, p->path, p->err, "cannot open '%.200s': %s", path,
                                      strerror(errno));
        if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode)) {
                close(fd);
                return settings_error(p->src, p->path, p->err, "'%.200s' is a directory", path);
        }
        close(fd);
        return 0;
}

static int read_file(const struct value_context *p, const struct setting *row, const json_t *value,
                     void *at)
{
        const char *dir = p->src->dir;
        char **path = at, *given = NULL;

        if (read_string(p, row, value, &given) < 0)
                return -1;
        if (*given == '/' || !dir) {
                *path = given;
        } else {
                *path = mem_printf("%s/%s", dir, given);
                free(given);
        }
        /* without a directory, the working directory may be another later */
        return **path == '/' || dir ? check_file(p, *path) : 0;
}

static int read_choice(const struct value_context *p, const struct setting *row,
                       const json_t *value, void *at)
{
        const char *word = json_string_value(value), *near;
        struct buf text;

        if (!word)
                return wrong_type(p, row, value);
        if (is_choice(row, word)) {
                *(char **)at = mem_strdup(word);
                return 0;
        }
        near = settings_nearest(word, row->choices);
        buf_init(&text, 0);
        buf_addf(&text, "unknown value '%.*s'",
                 (int)utf8_prefix(word, strlen(word), UTF8_BYTES, 60), word);
        if (near)
                buf_addf(&text, " (did you mean '%s'?)", near);
        buf_addstr(&text, "; expected ");
        add_accepted(row, &text);
        settings_error(p->src, p->path, p->err, "%s", text.data);
        buf_release(&text);
        return -1;
}

static int read_secret(const struct value_context *p, const struct setting *row,
                       const json_t *value, void *at)
{
        struct error cause;
        bool literal;
        size_t n;

        if (!json_is_string(value))
                return wrong_type(p, row, value);
        if (secret_resolve(json_string_value(value), p->src->dir, at, &literal, &cause) < 0)
                return settings_error(p->src, p->path, p->err, "%s", cause.text);
        n = secret_length(*(struct secret **)at);
        if (n < (size_t)row->min)
                return settings_error(p->src, p->path, p->err,
                                      "a secret of %zu %s can be guessed; expected at least %lld, "
                                      "such as from: openssl rand -hex 32",
                                      n, n == 1 ? "character" : "characters", (long long)row->min);
        if (n < LOG_HIDE_SHORTEST)
                settings_warn(p->src, p->path,
                              "the secret has fewer than %d characters: it is easily guessed, and "
                              "too short to be hidden in logs",
                              LOG_HIDE_SHORTEST);
        if (literal)
                settings_warn(p->src, p->path,
                              "a secret is written in clear; "
                              "use \"env:NAME\", \"file:PATH\" or \"cmd:PROGRAM\"");
        return 0;
}

static int read_strings(const struct value_context *p, const struct setting *row,
                        const json_t *value, void *at)
{
        struct setting_list *list = at;
        size_t n = json_array_size(value);

        if (json_is_string(value)) {
                list->items = mem_array(1, sizeof(*list->items));
                list->items[list->count++] = mem_strdup(json_string_value(value));
                return 0;
        }
        if (!json_is_array(value))
                return wrong_type(p, row, value);
        list->items = mem_array(n, sizeof(*list->items));
        for (size_t i = 0; i < n; i++) {
                const json_t *item = json_array_get(value, i);

                if (json_typeof(item) != JSON_STRING) {
                        char *path = mem_printf("%s[%zu]", p->path, i);

                        settings_error(p->src, path, p->err, "expected a string, not %s",
                                       kind_of(item));
                        free(path);
                        return -1;
                }
                list->items[list->count++] = mem_strdup(json_string_value(item));
        }
        return 0;
}

static int read_group(const struct value_context *p, const struct setting *row, const json_t *value,
                      void *at)
{
        const struct setting *const tables[] = { row->group, NULL };

        if (!json_is_object(value))
                return wrong_type(p, row, value);
        return settings_read(p->src, p->path, value, tables, NULL, at, p->err);
}

static bool is_map_name(const char *name)
{
        size_t n = strlen(name);

        for (const char *c = name; *c; c++) {
                if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
                        return false;
        }
        return n > 0 && n <= MAP_NAME_MAX;
}

/* An item that cannot be read is counted as well, so that settings_value_release frees it. */
static int read_map(const struct value_context *p, const struct setting *row, const json_t *value,
                    void *at)
{
        const struct setting *const tables[] = { row->group, NULL };
        struct setting_map *map = at;
        size_t n = json_object_size(value);
        int rc = 0;

        if (!json_is_object(value))
                return wrong_type(p, row, value);
        map->names = mem_array(n, sizeof(*map->names));
        map->items = mem_array(n, sizeof(*map->items));
        for (void *it = json_object_iter((json_t *)(uintptr_t)value); it;
             it = json_object_iter_next((json_t *)(uintptr_t)value, it)) {
                const char *name = json_object_iter_key(it);
                char *path = settings_path(p->path, name);
                size_t i = map->count++;

                map->names[i] = mem_strdup(name);
                map->items[i] = mem_zalloc((size_t)row->max);
                if (!is_map_name(name))
                        rc = settings_error(p->src, path, rc < 0 ? NULL : p->err,
                                            "expected a name of 1 to %d letters, digits, '_' "
                                            "and '-'",
                                            MAP_NAME_MAX);
                if (settings_read(p->src, path, json_object_iter_value(it), tables, NULL,
                                  map->items[i], rc < 0 ? NULL : p->err) < 0)
                        rc = -1;
                free(path);
        }
        return rc;
}

static int read_pairs(const struct value_context *p, const struct setting *row, const json_t *value,
                      void *at)
{
        struct setting_pairs *pairs = at;
        size_t n = json_object_size(value);

        if (!json_is_object(value))
                return wrong_type(p, row, value);
        pairs->names = mem_array(n, sizeof(*pairs->names));
        pairs->values = mem_array(n, sizeof(*pairs->values));
        for (void *it = json_object_iter((json_t *)(uintptr_t)value); it;
             it = json_object_iter_next((json_t *)(uintptr_t)value, it)) {
                const char *name = json_object_iter_key(it);
                const json_t *item = json_object_iter_value(it);
                struct error cause;
                bool literal;

                if (json_typeof(item) != JSON_STRING)
                        return settings_member_error(p->src, p->path, name, p->err,
                                                     "expected a string, not %s", kind_of(item));
                if (secret_resolve(json_string_value(item), p->src->dir,
                                   &pairs->values[pairs->count], &literal, &cause) < 0)
                        return settings_member_error(p->src, p->path, name, p->err, "%s",
                                                     cause.text);
                pairs->names[pairs->count++] = mem_strdup(name);
        }
        return 0;
}

static void release_map(const struct setting *row, struct setting_map *map)
{
        const struct setting *const tables[] = { row->group, NULL };

        for (size_t i = 0; i < map->count; i++) {
                settings_release(tables, map->items[i]);
                free(map->items[i]);
                free(map->names[i]);
        }
        free(map->items);
        free(map->names);
        *map = (struct setting_map){ 0 };
}

static void release_pairs(struct setting_pairs *pairs)
{
        for (size_t i = 0; i < pairs->count; i++) {
                secret_free(pairs->values[i]);
                free(pairs->names[i]);
        }
        free(pairs->values);
        free(pairs->names);
        *pairs = (struct setting_pairs){ 0 };
}

int settings_value_read(struct settings_source *src, const char *path, const struct setting *row,
                        const json_t *value, bool given, void *out, struct error *err)
{
        static int (*const readers[])(const struct value_context *, const struct setting *,
                                      const json_t *, void *) = {
                [SETTING_BOOL] = read_bool,       [SETTING_INT] = read_int,
                [SETTING_NUMBER] = read_number,   [SETTING_STRING] = read_string,
                [SETTING_URL] = read_url,         [SETTING_CHOICE] = read_choice,
                [SETTING_FILE] = read_file,       [SETTING_SECRET] = read_secret,
                [SETTING_STRINGS] = read_strings, [SETTING_GROUP] = read_group,
                [SETTING_MAP] = read_map,         [SETTING_PAIRS] = read_pairs,
        };
        const struct value_context p = { src, path, err };
        char *at = (char *)out + row->at;

        if (json_is_null(value) && settings_value_nullable(row))
                return 0;
        if (row->type == SETTING_STRINGS)
                ((struct setting_list *)(void *)at)->set = given;
        return readers[row->type](&p, row, value, at);
}

void settings_value_release(const struct setting *row, void *out)
{
        const struct setting *const tables[] = { row->group, NULL };
        void *at = (char *)out + row->at;
        struct setting_list *list = at;

        switch (row->type) {
        case SETTING_NONE:
                break;
        case SETTING_BOOL:
                *(bool *)at = false;
                break;
        case SETTING_INT:
                *(int64_t *)at = 0;
                break;
        case SETTING_NUMBER:
                *(double *)at = 0;
                break;
        case SETTING_URL:
                each_query_secret(*(char **)at, log_unhide);
                free(*(char **)at);
                *(char **)at = NULL;
                break;
        case SETTING_STRING:
        case SETTING_FILE:
        case SETTING_CHOICE:
                free(*(char **)at);
                *(char **)at = NULL;
                break;
        case SETTING_SECRET:
                secret_free(*(struct secret **)at);
                *(struct secret **)at = NULL;
                break;
        case SETTING_STRINGS:
                for (size_t i = 0; i < list->count; i++)
                        free(list->items[i]);
                free(list->items);
                *list = (struct setting_list){ 0 };
                break;
        case SETTING_GROUP:
                settings_release(tables, at);
                break;
        case SETTING_MAP:
                release_map(row, at);
                break;
        case SETTING_PAIRS:
                release_pairs(at);
                break;
        }
}

void settings_value_show(const struct setting *row, const void *value, const json_t *fallback,
                         struct buf *out)
{
        const struct setting_list *list = value;
        const struct setting_map *map = value;
        const char *text, *usual = json_string_value(fallback);
        struct buf inner;

        switch (row->type) {
        case SETTING_BOOL:
                if (*(const bool *)value != json_is_true(fallback))
                        jsonw_bool(out, row->key, *(const bool *)value);
                return;
        case SETTING_INT:
                if (!fallback || *(const int64_t *)value != json_integer_value(fallback))
                        jsonw_int(out, row->key, *(const int64_t *)value);
                return;
        case SETTING_NUMBER:
                if (!fallback || *(const double *)value != json_number_value(fallback))
                        jsonw_real(out, row->key, *(const double *)value);
                return;
        case SETTING_STRING:
        case SETTING_URL:
        case SETTING_FILE:
        case SETTING_CHOICE:
                text = *(const char *const *)value;
                if (text && (!usual || strcmp(text, usual) != 0))
                        jsonw_str(out, row->key, text);
                return;
        case SETTING_STRINGS:
                if (!list->set)
                        return;
                jsonw_open_member(out, row->key, '[');
                for (size_t i = 0; i < list->count; i++)
                        jsonw_str(out, NULL, list->items[i]);
                jsonw_close(out, ']');
                return;
        case SETTING_GROUP:
                buf_init(&inner, 0);
                settings_show(row->group, value, &inner);
                if (strcmp(inner.data, "{}") != 0)
                        jsonw_raw(out, row->key, inner.data);
                buf_release(&inner);
                return;
        case SETTING_MAP:
                if (map->count == 0)
                        return;
                jsonw_open_member(out, row->key, '{');
                for (size_t i = 0; i < map->count; i++) {
                        buf_init(&inner, 0);
                        settings_show(row->group, map->items[i], &inner);
                        jsonw_raw(out, map->names[i], inner.data);
                        buf_release(&inner);
                }
                jsonw_close(out, '}');
                return;
        case SETTING_SECRET:
        case SETTING_PAIRS:
        case SETTING_NONE:
                return;
        }
}
