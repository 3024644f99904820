#include "cli/print.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"

const char *print_style(FILE *to, enum style s)
{
        static const char *const sequences[] = {
                [STYLE_PLAIN] = "\033[0m", [STYLE_BOLD] = "\033[1m",  [STYLE_DIM] = "\033[2m",
                [STYLE_GOOD] = "\033[32m", [STYLE_WARN] = "\033[33m", [STYLE_BAD] = "\033[31m"
        };
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

        if (!isatty(fileno(to)) || (no && *no) || (term && strcmp(term, "dumb") == 0))
                return "";
        return sequences[s];
}

void print_text(FILE *to, const char *text, size_t n)
{
        if (!isatty(fileno(to))) {
                fwrite(text, 1, n, to);
                return;
        }
        while (n > 0) {
                uint32_t c;
                size_t used = utf8_decode(text, n, &c);

                if (utf8_is_control(c) && c != '\n' && c != '\t')
                        fputs(REPLACEMENT, to);
                else
                        fwrite(text, 1, used, to);
                text += used;
                n -= used;
        }
}

void print_line(FILE *to, const char *text, size_t max)
{
        size_t n = strlen(text), shown = max > 0 ? utf8_prefix(text, n, UTF8_BYTES, max) : n;

        for (size_t i = 0; i < shown;) {
                uint32_t c;
                size_t used = utf8_decode(text + i, shown - i, &c);

                if (utf8_is_control(c))
                        fputc(' ', to);
                else
                        fwrite(text + i, 1, used, to);
                i += used;
        }
        if (shown < n)
                fputs("…", to);
}

void print_field(FILE *to, const char *prefix, const char *text, size_t max)
{
        if (!text)
                return;
        fputs(prefix, to);
        print_line(to, text, max);
}

void print_quoted(FILE *to, const char *prefix, const char *text)
{
        if (!text)
                return;
        fprintf(to, "%s'", prefix);
        print_line(to, text, 0);
        fputc('\'', to);
}

void print_stderr(const char *prefix, const char *text)
{
        fputs(prefix, stderr);
        print_text(stderr, text, strlen(text));
        fputc('\n', stderr);
}

/* jansson escapes C0 alone; the other controls become escapes, too, so the value stays the same. */
static void print_dump(const json_t *value, size_t flags)
{
        char *text = json_dumps(value, flags | JSON_ENCODE_ANY);
        size_t n = text ? strlen(text) : 0;

        for (size_t i = 0; i < n;) {
                uint32_t c;
                size_t used = utf8_decode(text + i, n - i, &c);

                if (c > 0x20 && utf8_is_control(c))
                        printf("\\u%04x", (unsigned)c);
                else
                        fwrite(text + i, 1, used, stdout);
                i += used;
        }
        putchar('\n');
        free(text);
}

void print_json(const json_t *value)
{
        print_dump(value, JSON_INDENT(2));
}

void print_json_line(const json_t *value)
{
        print_dump(value, JSON_COMPACT);
}

void print_markdown(const char *text, bool json)
{
        json_t *document;

        if (!json) {
                fputs(text, stdout);
                return;
        }
        document = json_pack("{s:s}", "markdown", text);
        print_json(document);
        json_decref(document);
}

const char *print_plural(int64_t n, const char *one, const char *many)
{
        return n == 1 ? one : many;
}
