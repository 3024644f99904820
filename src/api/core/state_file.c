#include "api/core/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

int state_file_write(const char *path, const char *text, struct error *err)
{
        char *line = mem_printf("%s\n", text), *copy = mem_strdup(path);
        int rc = file_replace(path, line), fd;

        if (rc < 0)
                error_set(err, errno == ENOSPC ? ERR_FULL : ERR_IO, "cannot write '%s': %s", path,
                          strerror(errno));
        /* the name must reach the disk, too; some filesystems do not sync directories */
        fd = rc == 0 ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (fd >= 0) {
                (void)fsync(fd);
                close(fd);
        }
        explicit_bzero(line, strlen(line));
        free(line);
        free(copy);
        return rc;
}

int state_file_make_dir(const char *path, struct error *err)
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
