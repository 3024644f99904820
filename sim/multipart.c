#include "sim/multipart.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"

#define TYPE         "multipart/form-data"
#define MAX_BOUNDARY 70
#define MAX_HEAD     8192

bool multipart_is(const char *content_type)
{
        size_t n = strlen(TYPE);

        return content_type && strncasecmp(content_type, TYPE, n) == 0 &&
               (content_type[n] == '\0' || content_type[n] == ';' || content_type[n] == ' ');
}

/* ---- header values: token; name=value; name="quoted" ---- */

/* Reads a token or a quoted string into out; returns the end of it, or NULL. */
static const char *read_value(const char *p, struct buf *out)
{
        buf_clear(out);
        if (*p != '"') {
                size_t n = strcspn(p, "; \t\"");

                buf_add(out, p, n);
                return n > 0 ? p + n : NULL;
        }
        for (p++; *p && *p != '"'; p++) {
                /* only \" and \\ are escapes; browsers also write %22 */
                if (*p == '\\' && (p[1] == '"' || p[1] == '\\'))
                        p++;
                buf_addch(out, *p);
        }
        return *p == '"' ? p + 1 : NULL;
}

/* The parameter `name` of a header value. 1 found (in out), 0 absent, -1 malformed. */
static int find_attribute(const char *header, const char *name, struct buf *out)
{
        const char *p = header + strcspn(header, ";");
        size_t name_n = strlen(name);

        while (*p == ';') {
                size_t n;
                bool ours;

                p++;
                p += strspn(p, " \t");
                n = strcspn(p, "=; \t");
                if (p[n] != '=')
                        return -1;
                ours = n == name_n && strncasecmp(p, name, n) == 0;
                p = read_value(p + n + 1, out);
                if (!p)
                        return -1;
                if (ours)
                        return 1;
                p += strspn(p, " \t");
        }
        return *p ? -1 : 0;
}

/* ---- parts ---- */

static int read_disposition(struct multipart_part *p, const char *value, struct error *err)
{
        struct buf text;
        int found, rc = -1;

        buf_init(&text, 0);
        if (strncasecmp(value, "form-data", 9) != 0 || p->name)
                error_set(err, ERR_INVALID, "a part is not form-data");
        else if (find_attribute(value, "name", &text) != 1)
                error_set(err, ERR_INVALID, "a part has no name");
        else {
                p->name = mem_strdup(text.data);
                found = find_attribute(value, "filename", &text);
                if (found == 1)
                        p->file_name = mem_strdup(text.data);
                rc = found < 0 ? error_set(err, ERR_INVALID, "a part has a malformed file name")
                               : 0;
        }
        buf_release(&text);
        return rc;
}

static int read_header(struct multipart_part *p, const char *line, struct error *err)
{
        const char *colon = strchr(line, ':');
        const char *value;

        if (!colon || colon == line)
                return error_set(err, ERR_INVALID, "a part has a malformed header");
        value = colon + 1 + strspn(colon + 1, " \t");
        if (strncasecmp(line, "Content-Disposition:", 20) == 0)
                return read_disposition(p, value, err);
        if (strncasecmp(line, "Content-Type:", 13) == 0 && !p->content_type)
                p->content_type = mem_strdup(value);
        return 0;
}

/* Reads headers up to the empty line. Returns where the data begins, or NULL. */
static const char *read_head(struct multipart_part *p, const char *at, const char *end,
                             struct error *err)
{
        for (;;) {
                const char *eol = memmem(at, (size_t)(end - at), "\r\n", 2);
                char *line;
                int rc;

                if (!eol || eol - at > MAX_HEAD || memchr(at, '\0', (size_t)(eol - at))) {
                        error_set(err, ERR_INVALID, "a part's head does not end");
                        return NULL;
                }
                if (eol == at)
                        break;
                line = mem_strndup(at, (size_t)(eol - at));
                rc = read_header(p, line, err);
                free(line);
                if (rc != 0)
                        return NULL;
                at = eol + 2;
        }
        if (!p->name) {
                error_set(err, ERR_INVALID, "a part has no name");
                return NULL;
        }
        return at + 2;
}

/* Reads from one delimiter to the next. Returns the position after that one, or NULL. */
static const char *read_part(struct multipart *m, const char *at, const char *end,
                             const struct buf *delimiter, struct error *err)
{
        struct multipart_part *p = &m->parts[m->count];
        const char *stop;

        if (m->count == MULTIPART_MAX_PARTS) {
                error_set(err, ERR_LIMIT, "more than %d parts", MULTIPART_MAX_PARTS);
                return NULL;
        }
        m->count++;
        p->data = read_head(p, at, end, err);
        if (!p->data)
                return NULL;
        /* the line break that ends an empty head may begin the delimiter */
        stop = memmem(p->data - 2, (size_t)(end - p->data) + 2, delimiter->data, delimiter->len);
        if (!stop) {
                error_set(err, ERR_INVALID, "the last part does not end");
                return NULL;
        }
        p->n = stop < p->data ? 0 : (size_t)(stop - p->data);
        return stop + delimiter->len;
}

static int read_parts(struct multipart *m, const char *body, size_t n, const struct buf *delimiter,
                      struct error *err)
{
        const char *end = body + n, *at = body + delimiter->len - 2;

        if (n < delimiter->len || memcmp(body, delimiter->data + 2, delimiter->len - 2) != 0)
                return error_set(err, ERR_INVALID, "the body does not begin with its boundary");
        while (at && end - at >= 2 && memcmp(at, "\r\n", 2) == 0)
                at = read_part(m, at + 2, end, delimiter, err);
        if (!at)
                return -1;
        if (end - at < 2 || memcmp(at, "--", 2) != 0)
                return error_set(err, ERR_INVALID, "the body does not end with its boundary");
        return 0;
}

static int read_boundary(const char *content_type, struct buf *delimiter, struct error *err)
{
        struct buf text;
        int rc = -1;

        buf_init(&text, 0);
        if (!multipart_is(content_type) || find_attribute(content_type, "boundary", &text) != 1 ||
            text.len == 0 || text.len > MAX_BOUNDARY)
                error_set(err, ERR_INVALID, "the content type has no usable boundary");
        else {
                buf_addf(delimiter, "\r\n--%s", text.data);
                rc = 0;
        }
        buf_release(&text);
        return rc;
}

int multipart_init(struct multipart *m, const char *content_type, const char *body, size_t n,
                   struct error *err)
{
        struct buf delimiter;
        int rc;

        buf_init(&delimiter, 0);
        m->count = 0;
        m->parts = mem_array(MULTIPART_MAX_PARTS, sizeof(*m->parts));
        rc = read_boundary(content_type, &delimiter, err);
        if (rc == 0)
                rc = read_parts(m, body, n, &delimiter, err);
        if (rc != 0)
                multipart_release(m);
        buf_release(&delimiter);
        return rc;
}

void multipart_release(struct multipart *m)
{
        for (size_t i = 0; i < m->count; i++) {
                free(m->parts[i].name);
                free(m->parts[i].file_name);
                free(m->parts[i].content_type);
        }
        free(m->parts);
        m->parts = NULL;
        m->count = 0;
}

const struct multipart_part *multipart_find(const struct multipart *m, const char *name)
{
        for (size_t i = 0; i < m->count; i++) {
                if (strcmp(m->parts[i].name, name) == 0)
                        return &m->parts[i];
        }
        return NULL;
}
