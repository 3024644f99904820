/*
 * Any list of headers: what the guard lets through has one reading only. The input is lines:
 * method, target, version, then headers as name:value; a line beginning with a blank marks the
 * header before it as folded.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/http_guard.h"

#define MAX_HEADERS 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char *next_line(char **at, char *end)
{
        char *line = *at, *nl = memchr(line, '\n', (size_t)(end - line));

        *at = nl ? nl + 1 : end;
        *(nl ? nl : end) = '\0';
        return line;
}

static size_t read_headers(char *at, char *end, struct http_guard_header *h)
{
        size_t count = 0;

        while (at < end && count < MAX_HEADERS) {
                char *line = at, *nl = memchr(at, '\n', (size_t)(end - at)), *stop = nl ? nl : end;
                char *colon = memchr(line, ':', (size_t)(stop - line));

                at = nl ? nl + 1 : end;
                if (*line == ' ' && count > 0) {
                        h[count - 1].folded = true;
                        continue;
                }
                if (!colon)
                        colon = stop;
                h[count].name = line;
                h[count].name_n = (size_t)(colon - line);
                h[count].value = colon < stop ? colon + 1 : stop;
                h[count].value_n = (size_t)(stop - h[count].value);
                h[count++].folded = false;
        }
        return count;
}

static unsigned count_of(const struct http_guard_header *h, size_t count, const char *name)
{
        unsigned found = 0;

        for (size_t i = 0; i < count; i++)
                found += h[i].name_n == strlen(name) &&
                         strncasecmp(h[i].name, name, h[i].name_n) == 0;
        return found;
}

static void check_passed(const struct http_guard_header *h, size_t count, const char *target,
                         const char *version)
{
        unsigned framing =
                count_of(h, count, "content-length") + count_of(h, count, "transfer-encoding");

        if (framing > 1 || count_of(h, count, "host") > 1 || target[0] != '/')
                abort();
        if (strcmp(version, "HTTP/1.1") == 0 && count_of(h, count, "host") != 1)
                abort();
        for (size_t i = 0; i < count; i++) {
                if (h[i].folded || memchr(h[i].value, '\0', h[i].value_n) ||
                    memchr(h[i].value, '\r', h[i].value_n) || memchr(h[i].name, ' ', h[i].name_n))
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct http_guard_header headers[MAX_HEADERS];
        char *text = malloc(n + 1), *at = text, *end = text + n;
        const char *method, *target, *version;
        size_t count;

        memcpy(text, data, n);
        text[n] = '\0';
        method = next_line(&at, end);
        target = next_line(&at, end);
        version = next_line(&at, end);
        count = read_headers(at, end, headers);
        if (!http_guard_check(method, target, version, headers, count))
                check_passed(headers, count, target, version);
        free(text);
        return 0;
}
