#include "net/http_guard.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* One or more tchar of RFC 9110, 5.6.2 */
static bool is_token(const char *p, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char c = p[i];

                if ((c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') &&
                    (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
                        return false;
        }
        return n > 0;
}

bool http_guard_is_named(const struct http_guard_header *h, const char *name)
{
        return h->name_n == strlen(name) && strncasecmp(h->name, name, h->name_n) == 0;
}

/*
 * Trailing blanks count: the library does not remove them, and reads "chunked " as a body that
 * lasts until the connection ends.
 */
static bool value_is(const struct http_guard_header *h, const char *text)
{
        return h->value_n == strlen(text) && strncasecmp(h->value, text, h->value_n) == 0;
}

/* Digits only, and few enough that no program's integer overflows. */
static bool is_length(const struct http_guard_header *h)
{
        if (h->value_n == 0 || h->value_n > 18)
                return false;
        for (size_t i = 0; i < h->value_n; i++) {
                if (h->value[i] < '0' || h->value[i] > '9')
                        return false;
        }
        return true;
}

/* A host and port, or nothing; proxies disagree about the target of anything else. */
static bool is_host(const struct http_guard_header *h)
{
        for (size_t i = 0; i < h->value_n; i++) {
                unsigned char c = (unsigned char)h->value[i];

                if (c <= ' ' || c >= 0x7f || strchr("\"#,/<>?@\\^`{|}", c))
                        return false;
        }
        return true;
}

static const char *check_line(const char *method, const char *target, const char *version)
{
        if (!is_token(method, strlen(method)))
                return "the method is not a token";
        if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
                return "only HTTP/1.0 and HTTP/1.1 are spoken here";
        if (target[0] != '/')
                return "the request target must be a path";
        for (const char *p = target; *p; p++) {
                unsigned char c = (unsigned char)*p;

                if (c <= ' ' || c == 0x7f || c == '#')
                        return "the request target holds a character that does not belong there";
        }
        return NULL;
}

/* Headers that decide where the body ends, when it is sent and which host is meant. */
struct framing {
        unsigned lengths, encodings, hosts;
        bool old; /* HTTP/1.0 */
};

static const char *check_header(struct framing *f, const struct http_guard_header *h)
{
        if (h->folded)
                return "a header is continued on a further line, broken by a NUL, or not ended by "
                       "CRLF";
        if (!is_token(h->name, h->name_n))
                return "a header name is not a token";
        for (size_t i = 0; i < h->value_n; i++) {
                unsigned char c = (unsigned char)h->value[i];

                if ((c < 0x20 && c != '\t') || c == 0x7f)
                        return "a header value holds a control character";
        }
        if (http_guard_is_named(h, "content-length")) {
                if (f->lengths++ > 0)
                        return "Content-Length is repeated";
                if (!is_length(h))
                        return "Content-Length is not a plain number";
        } else if (http_guard_is_named(h, "transfer-encoding")) {
                if (f->encodings++ > 0)
                        return "Transfer-Encoding is repeated";
                if (f->old || !value_is(h, "chunked"))
                        return "this Transfer-Encoding is not understood";
        } else if (http_guard_is_named(h, "expect")) {
                if (!value_is(h, "100-continue"))
                        return "this Expect is not understood";
        } else if (http_guard_is_named(h, "host")) {
                if (f->hosts++ > 0)
                        return "Host is repeated";
                if (!is_host(h))
                        return "Host is malformed";
        }
        return NULL;
}

const char *http_guard_check(const char *method, const char *target, const char *version,
                             const struct http_guard_header *headers, size_t count)
{
        struct framing f = { .old = strcmp(version, "HTTP/1.0") == 0 };
        const char *why = check_line(method, target, version);

        for (size_t i = 0; !why && i < count; i++)
                why = check_header(&f, &headers[i]);
        if (why)
                return why;
        if (f.lengths > 0 && f.encodings > 0)
                return "Content-Length and Transfer-Encoding exclude each other";
        if (f.hosts == 0 && !f.old)
                return "Host is missing";
        return NULL;
}
