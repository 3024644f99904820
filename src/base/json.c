#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The closing quote of the string at p, or end. memchr, because most of a message is strings. */
static const char *string_end(const char *p, const char *end)
{
        const char *quote = memchr(p, '"', (size_t)(end - p));

        while (quote) {
                const char *backslash = memchr(p, '\\', (size_t)(quote - p));

                if (!backslash)
                        return quote;
                p = backslash + 2;
                if (p > quote) /* it escapes this quote */
                        quote = memchr(p, '"', (size_t)(end - p));
        }
        return end;
}

/* Counts brackets before parsing: jansson allows 2048 levels, too deep for recursive code. */
static bool is_too_deep(const char *text, size_t n)
{
        const char *end = n > 0 ? text + n : text; /* which may be NULL then */
        int depth = 0;

        for (const char *p = text; p < end; p++) {
                if (*p == '"')
                        p = string_end(p + 1, end);
                else if (*p == '{' || *p == '[')
                        depth++;
                else if (*p == '}' || *p == ']')
                        depth--;
                if (depth > JSON_MAX_DEPTH)
                        return true;
        }
        return false;
}

static json_t *parse(const char *text, size_t n, json_error_t *e)
{
        json_t *value;
        char *near;

        if (is_too_deep(text, n)) {
                *e = (json_error_t){ .line = 1 };
                snprintf(e->text, sizeof(e->text), "nested deeper than %d levels", JSON_MAX_DEPTH);
                return NULL;
        }
        value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, e);
        /* jansson quotes the offending text, which may be part of a secret */
        near = value ? NULL : strstr(e->text, " near '");
        if (near)
                *near = '\0';
        return value;
}

json_t *json_read(const char *text, size_t n, struct error *err)
{
        json_error_t e;
        json_t *value = parse(text, n, &e);

        if (!value)
                error_set(err, ERR_INVALID, "malformed JSON at line %d, column %d: %s", e.line,
                          e.column, e.text);
        return value;
}

/* Our strings end at a NUL: U+FFFD takes its place, so that what follows is not lost. */
static json_t *parse_with_nul(const char *text, size_t n)
{
        char *copy = mem_dup(text, n);
        json_t *value;

        for (size_t i = 0; i + 6 <= n; i++) {
                if (copy[i] != '\\')
                        continue;
                if (memcmp(copy + i + 1, "u0000", 5) == 0)
                        memcpy(copy + i + 1, "ufffd", 5);
                i++; /* the escaped character */
        }
        value = json_loadb(copy, n, 0, NULL);
        free(copy);
        return value;
}

json_t *json_read_lenient(const char *text, size_t n, struct error *err)
{
        struct error strict = { 0 };
        json_t *value = json_read(text, n, &strict);

        if (!value && !is_too_deep(text, n))
                value = parse_with_nul(text, n);
        if (!value && err)
                *err = strict;
        return value;
}

json_t *json_read_line(const char *text, size_t n, int *line, struct error *err)
{
        json_error_t e;
        json_t *value = parse(text, n, &e);

        if (value)
                return value;
        *line = e.line;
        error_set(err, ERR_INVALID, "malformed JSON at column %d: %s", e.column, e.text);
        return NULL;
}

const char *json_str(const json_t *object, const char *key, const char *fallback)
{
        const json_t *v = json_object_get(object, key);

        return json_is_string(v) ? json_string_value(v) : fallback;
}

int64_t json_int(const json_t *object, const char *key, int64_t fallback)
{
        const json_t *v = json_object_get(object, key);

        return json_is_integer(v) ? json_integer_value(v) : fallback;
}

bool json_flag(const json_t *object, const char *key, bool fallback)
{
        const json_t *v = json_object_get(object, key);

        return json_is_boolean(v) ? json_is_true(v) : fallback;
}

char *json_text(const json_t *value)
{
        return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
}
