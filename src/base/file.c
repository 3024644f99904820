#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"

#define PIECE ((size_t)4096)

json_t *file_read_json(const char *path, size_t max)
{
        FILE *f = fopen(path, "re");
        json_t *value = NULL;
        struct buf text;
        char *at;

        if (!f)
                return NULL;
        buf_init(&text, max + PIECE);
        while (!feof(f) && !ferror(f) && (at = buf_reserve(&text, PIECE)))
                buf_grew(&text, fread(at, 1, PIECE, f));
        if (feof(f) && text.len <= max)
                value = json_read(text.data, text.len, NULL);
        buf_release(&text);
        fclose(f);
        return value;
}

static int write_whole(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        size_t n = strlen(text);
        bool ok;

        if (fd < 0)
                return -1;
        ok = write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
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
