#include "agent/workspace/scratch_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/workspace/workspace.h"
#include "base/beneath.h"
#include "base/mem.h"

#define SCANNED_MAX 10000 /* names in the folder */
#define FOUND_MAX   1000  /* of them with the prefix */

int scratch_folder_open(int channel, struct error *err)
{
        bool made = mkdirat(channel, SCRATCH_FOLDER, 0700) == 0;
        int fd = beneath_open(channel, SCRATCH_FOLDER, O_RDONLY | O_DIRECTORY, 0);

        if (fd < 0)
                return error_set(err, ERR_IO, "cannot open the folder " SCRATCH_FOLDER ": %s",
                                 strerror(errno));
        if (made && workspace_give(fd, err) < 0) {
                close(fd);
                return -1;
        }
        return fd;
}

int scratch_folder_make(int folder, const char *name, struct error *err)
{
        int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0)
                return error_set(err, ERR_IO, "cannot make a file in " SCRATCH_FOLDER ": %s",
                                 strerror(errno));
        if (workspace_give(fd, err) < 0) {
                close(fd);
                return -1;
        }
        return fd;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void scratch_folder_trim(int folder, const char *prefix, size_t keep)
{
        int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
        char **names = mem_array(FOUND_MAX, sizeof(*names));
        size_t n = 0, scanned = 0;
        const struct dirent *e;

        while (d && n < FOUND_MAX && scanned++ < SCANNED_MAX && (e = readdir(d)))
                if (strncmp(e->d_name, prefix, strlen(prefix)) == 0)
                        names[n++] = mem_strdup(e->d_name);
        if (d)
                closedir(d);
        qsort(names, n, sizeof(*names), by_name);
        for (size_t i = 0; i < n; i++) {
                if (i + keep < n)
                        unlinkat(folder, names[i], 0);
                free(names[i]);
        }
        free(names);
}
