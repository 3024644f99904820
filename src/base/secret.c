#include "base/secret.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret_command.h"

/* enough for a certificate chain */
#define SECRET_MAX_BYTES ((size_t)64 * 1024)

struct secret {
        size_t n;
        char bytes[]; /* NUL-terminated */
};

struct secret *secret_new(const char *bytes, size_t n)
{
        struct secret *s = mem_alloc(sizeof(*s) + n + 1);

        s->n = n;
        if (n > 0)
                memcpy(s->bytes, bytes, n);
        s->bytes[n] = '\0';
        log_hide(s->bytes, n);
        return s;
}

struct secret *secret_dup(const struct secret *s)
{
        return s ? secret_new(s->bytes, s->n) : NULL;
}

void secret_free(struct secret *s)
{
        if (!s)
                return;
        log_unhide(s->bytes, s->n);
        explicit_bzero(s->bytes, s->n);
        free(s);
}

const char *secret_reveal(const struct secret *s)
{
        return s->bytes;
}

size_t secret_length(const struct secret *s)
{
        return s->n;
}

bool secret_equals(const struct secret *s, const char *bytes, size_t n)
{
        if (!s || !bytes)
                return !s && !bytes;
        return crypto_equal(s->bytes, s->n, bytes, n);
}

/* NUL is refused because HTTP headers and handshakes cannot carry it. */
static int make(const char *bytes, size_t n, const char *origin, struct secret **out,
                struct error *err)
{
        if (n == 0)
                return error_set(err, ERR_INVALID, "%s is empty", origin);
        if (memchr(bytes, '\0', n))
                return error_set(err, ERR_INVALID, "%s contains a NUL byte", origin);
        *out = secret_new(bytes, n);
        return 0;
}

static int from_env(const char *name, const char *dir, struct secret **out, struct error *err)
{
        const char *value;
        char *origin;
        int rc;

        (void)dir;
        if (*name == '\0')
                return error_set(err, ERR_INVALID,
                                 "'env:' needs the name of an environment variable");
        value = getenv(name);
        if (!value)
                return error_set(err, ERR_MISSING, "environment variable '%s' is not set", name);
        origin = mem_printf("environment variable '%s'", name);
        rc = make(value, strlen(value), origin, out, err);
        free(origin);
        return rc;
}

/* The length without one trailing LF or CRLF. */
static size_t without_newline(const char *text, size_t n)
{
        if (n > 0 && text[n - 1] == '\n')
                n--;
        return n > 0 && text[n - 1] == '\r' ? n - 1 : n;
}

static int from_path(const char *path, struct secret **out, struct error *err)
{
        /* O_NONBLOCK: a FIFO without a writer must not hold up the start */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct buf text;
        int rc;

        if (fd < 0)
                return error_set(err, errno == ENOENT ? ERR_MISSING : ERR_IO,
                                 "cannot open '%s': %s", path, strerror(errno));
        /* reserved at once: a reallocation would leave a copy behind */
        buf_init(&text, 0);
        buf_reserve(&text, SECRET_MAX_BYTES + FILE_PIECE);
        rc = file_read_fd(fd, path, SECRET_MAX_BYTES, &text, err);
        close(fd);
        if (rc == 0) {
                char *origin = mem_printf("'%s'", path);

                rc = make(text.data, without_newline(text.data, text.len), origin, out, err);
                free(origin);
        }
        explicit_bzero(text.data, text.len);
        buf_release(&text);
        return rc;
}

static int from_file(const char *path, const char *dir, struct secret **out, struct error *err)
{
        char *full;
        int rc;

        if (*path == '\0')
                return error_set(err, ERR_INVALID, "'file:' needs a path");
        full = dir && *path != '/' ? mem_printf("%s/%s", dir, path) : mem_strdup(path);
        rc = from_path(full, out, err);
        free(full);
        return rc;
}

static int from_command(const char *line, const char *dir, struct secret **out, struct error *err)
{
        struct buf text;
        int rc;

        buf_init(&text, SECRET_MAX_BYTES);
        buf_reserve(&text, SECRET_MAX_BYTES);
        rc = secret_command_run(line, dir, &text, err);
        if (rc == 0) {
                const char *end = memchr(text.data, '\n', text.len);
                size_t n = end ? (size_t)(end - text.data) + 1 : text.len;

                rc = make(text.data, without_newline(text.data, n),
                          "the command's first line of output", out, err);
        }
        explicit_bzero(text.data, text.len);
        buf_release(&text);
        return rc;
}

int secret_resolve(const char *handle, const char *dir, struct secret **out, bool *literal,
                   struct error *err)
{
        static const struct {
                const char *prefix;
                int (*resolve)(const char *rest, const char *dir, struct secret **out,
                               struct error *err);
        } kinds[] = {
                { "env:", from_env },
                { "file:", from_file },
                { "cmd:", from_command },
        };

        *out = NULL;
        if (literal)
                *literal = false;
        for (size_t i = 0; i < COUNT(kinds); i++) {
                size_t n = strlen(kinds[i].prefix);

                if (strncmp(handle, kinds[i].prefix, n) == 0)
                        return kinds[i].resolve(handle + n, dir, out, err);
        }
        if (literal)
                *literal = true;
        return make(handle, strlen(handle), "the secret", out, err);
}
