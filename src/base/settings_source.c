#include "base/settings_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

/* Blanks comments and trailing commas for a strict parser; positions stay. */
struct blanker {
        char *text;
        size_t n, at;
        int line;
        char last;          /* other than space or comment */
        size_t comma;       /* the last comma */
        bool comma_waiting; /* may turn out to be trailing */
};

static void skip_string(struct blanker *b)
{
        for (b->at++; b->at < b->n && b->text[b->at] != '"' && b->text[b->at] != '\n'; b->at++) {
                if (b->text[b->at] == '\\' && b->at + 1 < b->n && b->text[b->at + 1] != '\n')
                        b->at++;
        }
        if (b->at < b->n && b->text[b->at] == '"')
                b->at++;
}

/* -1: it does not end. */
static int blank_block_comment(struct blanker *b)
{
        const char *end = memmem(b->text + b->at + 2, b->n - b->at - 2, "*/", 2);
        size_t stop;

        if (!end)
                return -1;
        stop = (size_t)(end - b->text) + 2;
        for (; b->at < stop; b->at++) {
                if (b->text[b->at] == '\n')
                        b->line++;
                else
                        b->text[b->at] = ' ';
        }
        return 0;
}

/* 0, or the line of an unterminated comment. */
static int blank(char *text, size_t n)
{
        struct blanker b = { .text = text, .n = n, .line = 1 };

        if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
                memset(text, ' ', 3);
        while (b.at < n) {
                char c = text[b.at];
                char next = b.at + 1 < n ? text[b.at + 1] : '\0';

                if (c == '/' && next == '/') {
                        while (b.at < n && text[b.at] != '\n')
                                text[b.at++] = ' ';
                } else if (c == '/' && next == '*') {
                        if (blank_block_comment(&b) < 0)
                                return b.line;
                } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
                        b.line += c == '\n';
                        b.at++;
                } else {
                        if (b.comma_waiting && (c == '}' || c == ']'))
                                text[b.comma] = ' ';
                        b.comma_waiting = c == ',' && b.last != '\0' && !strchr("[{,:", b.last);
                        b.comma = b.at;
                        b.last = c;
                        if (c == '"')
                                skip_string(&b);
                        else
                                b.at++;
                }
        }
        return 0;
}

struct settings_source *settings_source_new(const char *name, const char *dir, const char *text,
                                            size_t n, struct error *err)
{
        struct settings_source *src = mem_zalloc(sizeof(*src));
        struct error cause;
        int line;

        src->name = mem_strdup(name);
        src->dir = mem_strdup(dir);
        src->text = mem_strndup(text, n);
        src->n = n;
        src->report = mem_zalloc(sizeof(*src->report));
        buf_init(&src->warnings, 0);
        line = blank(src->text, n);
        if (line > 0) {
                error_set(err, ERR_INVALID, "%s:%d: unterminated comment", src->name, line);
        } else {
                src->root = json_read_line(src->text, n, &line, &cause);
                if (src->root)
                        return src;
                error_set(err, ERR_INVALID, "%s:%d: %s", src->name, line, cause.text);
        }
        settings_source_free(src);
        return NULL;
}

void settings_source_free(struct settings_source *src)
{
        if (!src)
                return;
        json_decref(src->root);
        explicit_bzero(src->text, src->n); /* it may contain secrets */
        free(src->text);
        free(src->name);
        free(src->dir);
        buf_release(&src->warnings);
        for (size_t i = 0; i < src->report->count; i++)
                free(src->report->items[i].text);
        free(src->report->items);
        free(src->report);
        free(src);
}

const json_t *settings_source_root(const struct settings_source *src)
{
        return src->root;
}

const char *settings_source_warnings(const struct settings_source *src)
{
        return src->warnings.data;
}

/* Finds lines by walking the text: jansson keeps no positions. */
struct text_cursor {
        const char *p, *end;
        int line;
};

static void skip_space(struct text_cursor *c)
{
        for (; c->p < c->end && strchr(" \t\r\n", *c->p); c->p++)
                c->line += *c->p == '\n';
}

/* The string at the cursor, with its quotes. */
static struct slice take_string(struct text_cursor *c)
{
        const char *start = c->p++;

        while (c->p < c->end && *c->p != '"')
                c->p += *c->p == '\\' && c->p + 1 < c->end ? 2 : 1;
        if (c->p < c->end)
                c->p++;
        return (struct slice){ start, (size_t)(c->p - start) };
}

static void skip_value(struct text_cursor *c)
{
        int depth = 0;

        do {
                skip_space(c);
                if (c->p >= c->end)
                        return;
                if (*c->p == '"') {
                        take_string(c);
                } else if (strchr("{[", *c->p)) {
                        depth++;
                        c->p++;
                } else if (strchr("}]", *c->p)) {
                        depth--;
                        c->p++;
                } else if (strchr(",:", *c->p)) {
                        c->p++;
                } else {
                        while (c->p < c->end && !strchr(" \t\r\n,:]}", *c->p))
                                c->p++;
                }
        } while (depth > 0);
}

/* The path after the key; NULL when it does not start with it. */
static const char *after_key(const char *path, struct slice token)
{
        json_t *key = json_loadb(token.p, token.n, JSON_DECODE_ANY, NULL);
        size_t n = json_string_length(key);
        const char *rest = NULL;

        if (key && strncmp(path, json_string_value(key), n) == 0 && strchr(".[", path[n]))
                rest = path + n;
        json_decref(key);
        return rest;
}

static int find_line(struct text_cursor *c, const char *path);

static int line_in_object(struct text_cursor *c, const char *path)
{
        path += *path == '.';
        for (c->p++;; c->p++) {
                struct slice token;
                const char *rest;
                int key_line;

                skip_space(c);
                if (c->p >= c->end || *c->p != '"')
                        return 0;
                key_line = c->line;
                token = take_string(c);
                skip_space(c);
                c->p++; /* the colon */
                rest = after_key(path, token);
                if (rest && *rest == '\0')
                        return key_line;
                if (rest) {
                        struct text_cursor inside = *c;
                        int line = find_line(&inside, rest);

                        /* otherwise the path may mean a key that contains a dot */
                        if (line > 0)
                                return line;
                }
                skip_value(c);
                skip_space(c);
                if (c->p >= c->end || *c->p != ',')
                        return 0;
        }
}

static int line_in_array(struct text_cursor *c, const char *path)
{
        char *rest;
        unsigned long index;

        if (*path != '[')
                return 0;
        index = strtoul(path + 1, &rest, 10);
        if (*rest != ']')
                return 0;
        for (c->p++; index > 0; index--, c->p++) {
                skip_value(c);
                skip_space(c);
                if (c->p >= c->end || *c->p != ',')
                        return 0;
        }
        skip_space(c);
        return c->p < c->end && *c->p != ']' ? find_line(c, rest + 1) : 0;
}

/* The line of the value at `path` below the cursor; 0: none. */
static int find_line(struct text_cursor *c, const char *path)
{
        skip_space(c);
        if (*path == '\0')
                return c->line;
        if (c->p < c->end && *c->p == '{')
                return line_in_object(c, path);
        if (c->p < c->end && *c->p == '[')
                return line_in_array(c, path);
        return 0;
}

int settings_source_line(const struct settings_source *src, const char *path)
{
        struct text_cursor c = { .p = src->text, .end = src->text + src->n, .line = 1 };

        return find_line(&c, path ? path : "");
}
