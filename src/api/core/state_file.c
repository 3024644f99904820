#include "api/core/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static bool write_all(int fd, const char *text, size_t n)
{
        while (n > 0) {
                ssize_t done = write(fd, text, n);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0)
                        return false;
                text += done;
                n -= (size_t)done;
        }
        return true;
}

/* Also the name must reach the disk. Best effort: some filesystems do not sync directories. */
static void sync_parent(const char *path)
{
        char *copy = mem_strdup(path);
        int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0) {
                (void)fsync(fd);
                close(fd);
        }
        free(copy);
}

static int write_new(const char *path, const char *text, struct error *err)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        bool ok;

        if (fd < 0)
                return error_set(err, ERR_IO, "cannot write '%s': %s", path, strerror(errno));
        ok = fchmod(fd, 0600) == 0 && write_all(fd, text, strlen(text)) && write_all(fd, "\n", 1) &&
             fsync(fd) == 0;
        if (!ok)
                error_set(err, errno == ENOSPC ? ERR_FULL : ERR_IO, "cannot write '%s': %s", path,
                          strerror(errno));
        close(fd);
        return ok ? 0 : -1;
}

int state_file_write(const char *path, const char *text, struct error *err)
{
        char *fresh = mem_printf("%s.new", path);
        int rc = write_new(fresh, text, err);

        if (rc == 0 && rename(fresh, path) < 0)
                rc = error_set(err, ERR_IO, "cannot write '%s': %s", path, strerror(errno));
        if (rc == 0)
                sync_parent(path);
        else
                unlink(fresh);
        free(fresh);
        return rc;
}

int state_dir_make(const char *path, struct error *err)
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
