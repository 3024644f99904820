#include "remote/session_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#define SPACE        " \t\r\n\v\f"
#define JSON_READING (JSON_INDENT(2) | JSON_PRESERVE_ORDER)

static char *cut(const char *text, size_t n, bool more, size_t chars)
{
        size_t k = utf8_prefix(text, n, UTF8_CODE_POINTS, chars);

        return mem_printf("%.*s%s", (int)k, text, more || k < n ? "…" : "");
}

char *session_text_short(const char *text, size_t chars)
{
        size_t n = text ? strlen(text) : 0;

        while (n > 0 && strchr(SPACE, text[n - 1]))
                n--;
        return n > 0 ? cut(text, n, false, chars) : NULL;
}

char *session_text_line(const char *text, size_t chars)
{
        size_t n;

        if (!text || !*(text += strspn(text, SPACE)))
                return NULL;
        n = strcspn(text, "\r\n");
        return cut(text, n, text[n + strspn(text + n, SPACE)] != '\0', chars);
}

/* NULL: it is no object. */
static json_t *read_arguments(const char *content)
{
        json_t *json = content && *content == '{'
                               ? json_read_lenient(content, strlen(content), NULL)
                               : NULL;

        if (json_is_object(json))
                return json;
        json_decref(json);
        return NULL;
}

static const char *find_gist(json_t *arguments)
{
        static const char *const telling[] = { "command", "path",  "file_path", "filePath", "file",
                                               "pattern", "query", "url",       "prompt" };
        const char *key, *text;
        json_t *value;

        for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
                text = json_str(arguments, telling[i], NULL);
                if (text && *text)
                        return text;
        }
        json_object_foreach(arguments, key, value) {
                if (json_string_length(value) > 0)
                        return json_string_value(value);
        }
        return NULL;
}

char *session_text_gist(const char *content, size_t chars)
{
        json_t *arguments = read_arguments(content);
        const char *gist = arguments ? find_gist(arguments) : NULL;
        char *line = session_text_line(gist ? gist : content, chars);

        json_decref(arguments);
        return line;
}

char *session_text_input(const char *content, size_t chars)
{
        json_t *arguments = read_arguments(content);
        const char *only = json_object_size(arguments) == 1 ? find_gist(arguments) : NULL;
        char *all = arguments && !only ? json_dumps(arguments, JSON_READING) : NULL, *text;

        text = session_text_short(only ? only : all ? all : content, chars);
        free(all);
        json_decref(arguments);
        return text;
}

char *session_text_note(const char *mark, const char *text, size_t chars)
{
        char *line = session_text_line(text, chars);
        struct buf b;

        if (!line)
                return NULL;
        buf_init(&b, 0);
        buf_addf(&b, "%s ", mark);
        session_text_add_plain(&b, line);
        free(line);
        return buf_take(&b);
}

/* Every ASCII punctuation may be escaped in CommonMark. */
void session_text_add_plain(struct buf *out, const char *text)
{
        for (const char *p = text; *p; p++) {
                if (strchr("\\`*_{}[]()<>#+-.!|~&:@", *p))
                        buf_addch(out, '\\');
                buf_addch(out, *p);
        }
}

static size_t longest_run(const char *text)
{
        size_t most = 0, run = 0;

        for (; *text; text++) {
                run = *text == '`' ? run + 1 : 0;
                most = run > most ? run : most;
        }
        return most;
}

static void add_ticks(struct buf *out, size_t n)
{
        while (n-- > 0)
                buf_addch(out, '`');
}

void session_text_add_span(struct buf *out, const char *text)
{
        size_t ticks = longest_run(text) + 1, n = strcspn(text, "\r\n");
        bool spaced = *text == '`' || (n > 0 && text[n - 1] == '`');

        add_ticks(out, ticks);
        if (spaced)
                buf_addch(out, ' ');
        buf_add(out, text, n);
        if (spaced)
                buf_addch(out, ' ');
        add_ticks(out, ticks);
}

void session_text_add_block(struct buf *out, const char *language, const char *text)
{
        size_t ticks = longest_run(text) + 1;

        ticks = ticks < 3 ? 3 : ticks;
        add_ticks(out, ticks);
        buf_addf(out, "%s\n%s\n", language, text);
        add_ticks(out, ticks);
}
