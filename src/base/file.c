#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"

int file_read_fd(int fd, const char *name, size_t max, struct buf *out, struct error *err)
{
        size_t start = out->len;

        for (;;) {
                size_t room = out->max > 0 ? out->max - out->len : FILE_PIECE;
                size_t want = room < FILE_PIECE ? room : FILE_PIECE;
                char beyond; /* a full buffer: is this the end of the file? */
                ssize_t n =
                        want > 0 ? read(fd, buf_reserve(out, want), want) : read(fd, &beyond, 1);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_set(err, ERR_IO, "cannot read '%s': %s", name,
                                         strerror(errno));
                if (n == 0)
                        return 0;
                if (want == 0)
                        return error_set(err, ERR_INVALID, "'%s' is larger than %zu bytes", name,
                                         out->len - start);
                buf_grew(out, (size_t)n);
                if (out->len - start > max)
                        return error_set(err, ERR_INVALID, "'%s' is larger than %zu bytes", name,
                                         max);
        }
}

int file_read(const char *path, size_t max, struct buf *out, struct error *err)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

        if (fd < 0)
                return error_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
        rc = file_read_fd(fd, path, max, out, err);
        close(fd);
        return rc;
}

json_t *file_read_json(const char *path, size_t max)
{
        json_t *value = NULL;
        struct buf text;

        buf_init(&text, 0);
        if (file_read(path, max, &text, NULL) == 0)
                value = json_read(text.data, text.len, NULL);
        buf_release(&text);
        return value;
}

static int write_whole(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        bool ok;

        if (fd < 0)
                return -1;
        ok = fchmod(fd, 0600) == 0 && file_write(fd, text, strlen(text)) == 0 && fsync(fd) == 0;
        return close(fd) == 0 && ok ? 0 : -1;
}

int file_replace(const char *path, const char *text)
{
        char *fresh = mem_printf("%s.new", path);
        int rc = write_whole(fresh, text), why;

        if (rc == 0)
                rc = rename(fresh, path);
        why = errno;
        if (rc < 0)
                unlink(fresh);
        free(fresh);
        errno = why;
        return rc;
}

int file_write_line(const char *path, const char *line, struct error *err)
{
        char *text = mem_printf("%s\n", line), *copy = mem_strdup(path);
        int rc = file_replace(path, text), fd;

        if (rc < 0)
                error_set(err, errno == ENOSPC ? ERR_FULL : ERR_IO, "cannot write '%s': %s", path,
                          strerror(errno));
        /* sync the name, too; filesystems that cannot sync directories refuse */
        fd = rc == 0 ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (fd >= 0) {
                (void)fsync(fd);
                close(fd);
        }
        explicit_bzero(text, strlen(text)); /* it may be a secret */
        free(text);
        free(copy);
        return rc;
}

int file_write(int fd, const void *bytes, size_t n)
{
        for (size_t done = 0; done < n;) {
                ssize_t k = write(fd, (const char *)bytes + done, n - done);

                if (k < 0 && errno != EINTR)
                        return -1;
                done += k > 0 ? (size_t)k : 0;
        }
        return 0;
}

int file_copy(int from, int to)
{
        char bytes[16384];
        ssize_t n;

        while ((n = read(from, bytes, sizeof(bytes))) != 0) {
                if (n < 0 && errno != EINTR)
                        return -1;
                if (n > 0 && file_write(to, bytes, (size_t)n) < 0)
                        return -1;
        }
        return 0;
}

int file_make_dirs(const char *path, struct error *err)
{
        char *copy = mem_strdup(path);
        int rc = 0;

        for (char *p = copy + 1; rc == 0; p++) {
                char c = *p;

                if (c != '/' && c != '\0')
                        continue;
                *p = '\0';
                if (mkdir(copy, 0700) < 0 && errno != EEXIST)
                        rc = error_set(err, ERR_IO, "cannot make directory '%s': %s", copy,
                                       strerror(errno));
                *p = c;
                if (c == '\0')
                        break;
        }
        free(copy);
        return rc;
}
