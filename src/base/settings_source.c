#include "base/settings_private.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

/*
 * Replaces comments and trailing commas by spaces, so that a strict parser can read the text and
 * lines and columns stay as the operator sees them.
 */
struct blanker {
        char *text;
        size_t n, at;
        int line;
        char last;          /* last character that was neither space nor comment */
        size_t comma;       /* position of the last comma */
        bool comma_waiting; /* it follows a value and may turn out to be trailing */
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

/* -1: the comment does not end. */
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

/* Blanks the comma before a closing bracket. */
static void note_character(struct blanker *b, char c)
{
        if (b->comma_waiting && (c == '}' || c == ']'))
                b->text[b->comma] = ' ';
        b->comma_waiting = c == ',' && b->last != '\0' && !strchr("[{,:", b->last);
        b->comma = b->at;
        b->last = c;
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
                        note_character(&b, c);
                        if (c == '"')
                                skip_string(&b);
                        else
                                b.at++;
                }
        }
        return 0;
}

static int parse(struct settings_source *src, struct error *err)
{
        int line = blank(src->text, src->n);
        struct error cause;

        if (line > 0)
                return error_set(err, ERR_INVALID, "%s:%d: unterminated comment", src->name, line);
        src->root = json_read_line(src->text, src->n, &line, &cause);
        if (!src->root)
                return error_set(err, ERR_INVALID, "%s:%d: %s", src->name, line, cause.text);
        return 0;
}

struct settings_source *settings_source_new(const char *name, const char *dir, const char *text,
                                            size_t n, struct error *err)
{
        struct settings_source *src = mem_zalloc(sizeof(*src));

        src->name = mem_strdup(name);
        src->dir = mem_strdup(dir);
        src->text = mem_strndup(text, n);
        src->n = n;
        buf_init(&src->warnings, 0);
        if (parse(src, err) == 0)
                return src;
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

/*
 * Finds lines by walking the text along a path, because jansson keeps no positions. The text is
 * known to be valid JSON.
 */
struct text_cursor {
        const char *p, *end;
        int line;
};

static void skip_space(struct text_cursor *c)
{
        for (; c->p < c->end && strchr(" \t\r\n", *c->p); c->p++)
                c->line += *c->p == '\n';
}

/* Moves past the string at the cursor; the slice includes its quotes. */
static struct slice take_string(struct text_cursor *c)
{
        const char *start = c->p++;

        while (c->p < c->end && *c->p != '"')
                c->p += *c->p == '\\' && c->p + 1 < c->end ? 2 : 1;
        if (c->p < c->end)
                c->p++;
        return (struct slice){ start, (size_t)(c->p - start) };
}

/* Moves past the value at the cursor. */
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

/* The rest of the path after the key; NULL when the path does not start with it. */
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

                        /* otherwise go on: the path may mean a key that contains a dot */
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

/* The line of the value at `path`, starting from the value at the cursor; 0: none. */
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

/* The line of the path, or of the nearest enclosing value that exists. */
static int line_around(const struct settings_source *src, const char *path)
{
        char *up = mem_strdup(path ? path : "");
        int line = settings_source_line(src, up);

        while (line == 0 && *up) {
                size_t n = strlen(up) - 1;

                while (n > 0 && up[n] != '.' && up[n] != '[')
                        n--;
                up[n] = '\0';
                line = settings_source_line(src, up);
        }
        free(up);
        return line > 0 ? line : 1;
}

char *settings_path(const char *path, const char *key)
{
        return path && *path ? mem_printf("%s.%s", path, key) : mem_strdup(key);
}

int settings_error_at(const struct settings_source *src, const char *line_of, const char *path,
                      struct error *err, const char *text)
{
        bool root = !path || *path == '\0';

        if (!src->name)
                return error_set(err, ERR_INVALID, "%s%s%s", root ? "" : path, root ? "" : ": ",
                                 text);
        return error_set(err, ERR_INVALID, "%s:%d: %s%s%s", src->name, line_around(src, line_of),
                         root ? "" : path, root ? "" : ": ", text);
}

int settings_error(const struct settings_source *src, const char *path, struct error *err,
                   const char *fmt, ...)
{
        struct buf text;
        va_list ap;

        buf_init(&text, 0);
        va_start(ap, fmt);
        buf_vaddf(&text, fmt, ap);
        va_end(ap);
        settings_error_at(src, path, path, err, text.data);
        buf_release(&text);
        return -1;
}

void settings_warn(struct settings_source *src, const char *path, const char *fmt, ...)
{
        bool root = !path || *path == '\0';
        va_list ap;

        buf_addf(&src->warnings, "%s:%d: %s%s", src->name, line_around(src, path), root ? "" : path,
                 root ? "" : ": ");
        va_start(ap, fmt);
        buf_vaddf(&src->warnings, fmt, ap);
        va_end(ap);
        buf_addch(&src->warnings, '\n');
}
