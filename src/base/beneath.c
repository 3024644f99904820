#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* Is the path relative and without ".."? */
static bool is_plain(const char *path)
{
        const char *part = path;

        if (path[0] == '\0' || path[0] == '/')
                return false;
        for (;; part++) {
                size_t n = strcspn(part, "/");

                if (n == 2 && strncmp(part, "..", 2) == 0)
                        return false;
                part += n;
                if (*part == '\0')
                        return true;
        }
}

int beneath_walk(int folder, const char *path, int flags, mode_t mode)
{
        char *copy, *rest, *part;
        int at = -1, parent = folder, before;

        if (!is_plain(path)) {
                errno = EXDEV;
                return -1;
        }
        copy = rest = mem_strdup(path);
        while ((part = strsep(&rest, "/"))) {
                int how = rest ? O_PATH | O_DIRECTORY : flags;

                if (*part == '\0' && rest) /* "a//b" */
                        continue;
                before = at;
                at = openat(parent, *part ? part : ".", how | O_NOFOLLOW | O_CLOEXEC,
                            rest ? 0 : mode);
                if (before >= 0)
                        close(before);
                if (at < 0)
                        break;
                parent = at;
        }
        free(copy);
        return at;
}

int beneath_open(int folder, const char *path, int flags, mode_t mode)
{
        struct open_how how = { .flags = (unsigned)flags | O_CLOEXEC | O_NOFOLLOW,
                                .mode = mode,
                                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                           RESOLVE_NO_MAGICLINKS };
        long fd;

        if (!is_plain(path)) {
                errno = EXDEV;
                return -1;
        }
        fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));
        /* an old kernel, or a sandbox that does not know the call */
        if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == E2BIG || errno == EINVAL))
                return beneath_walk(folder, path, flags, mode);
        return (int)fd;
}

static int open_error(const char *place, const char *path, struct error *err)
{
        switch (errno) {
        case ENOENT:
        case ENOTDIR:
        case EXDEV:
                return error_set(err, ERR_MISSING, "there is no file '%.100s' in %s", path, place);
        case ELOOP:
                return error_set(err, ERR_INVALID,
                                 "'%.100s' in %s is a link or lies behind one; only regular files "
                                 "are taken",
                                 path, place);
        case ENXIO:
        case ENODEV:
                return error_set(err, ERR_INVALID,
                                 "'%.100s' in %s is a socket, pipe or device; only regular files "
                                 "are taken",
                                 path, place);
        default: /* too many open files will pass, a missing permission will not */
                return error_set(err, errno == EACCES || errno == EPERM ? ERR_REFUSED : ERR_IO,
                                 "cannot open '%.100s' in %s: %s", path, place, strerror(errno));
        }
}

static int check_file(int fd, const char *place, const char *path, int64_t max, int64_t *size,
                      struct error *err)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return error_set(err, ERR_IO, "cannot read '%.100s' in %s: %s", path, place,
                                 strerror(errno));
        if (!S_ISREG(st.st_mode))
                return error_set(err, ERR_INVALID,
                                 "'%.100s' in %s is a %s; only regular files are taken", path,
                                 place, S_ISDIR(st.st_mode) ? "folder" : "pipe or device");
        if (st.st_nlink != 1)
                return error_set(err, ERR_INVALID,
                                 "'%.100s' in %s has a second name (a hard link), or none any "
                                 "more; copy it and use the copy",
                                 path, place);
        if (st.st_size > max)
                return error_set(err, ERR_INVALID,
                                 "'%.100s' in %s has %lld bytes; at most %lld are taken", path,
                                 place, (long long)st.st_size, (long long)max);
        *size = st.st_size;
        return 0;
}

int beneath_open_file(int folder, const char *place, const char *path, int64_t max, int64_t *size,
                      struct error *err)
{
        int fd = beneath_open(folder, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

        if (fd < 0)
                return open_error(place, path, err);
        if (check_file(fd, place, path, max, size, err) == 0)
                return fd;
        close(fd);
        return -1;
}

int beneath_make_folder(int folder, const char *path, const char **name)
{
        int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), parent;
        const char *part = path, *slash;

        if (!is_plain(path)) {
                errno = EXDEV;
                part = NULL;
        }
        while (part && fd >= 0 && (slash = strchr(part, '/'))) {
                char *one = mem_strndup(part, (size_t)(slash - part));

                parent = fd;
                fd = -1;
                if (mkdirat(parent, one, 0700) == 0 || errno == EEXIST)
                        fd = openat(parent, one, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                close(parent);
                free(one);
                part = slash + 1;
        }
        *name = part ? part : path;
        if (!part && fd >= 0) {
                close(fd);
                fd = -1;
        }
        return fd;
}
