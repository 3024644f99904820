#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/sandbox/sandbox_private.h"
#include "base/beneath.h"

#define DEEPEST     64
#define ENTRIES_MAX 500000
#define BLOCK       512 /* of st_blocks */

struct walk {
        int64_t bytes, entries;
        bool remove_sockets;
};

static void walk_folder(struct walk *w, int folder, int depth);

static void walk_entry(struct walk *w, int folder, const char *name, int depth)
{
        struct stat st;

        if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        w->entries++;
        w->bytes += (int64_t)st.st_blocks * BLOCK;
        /* a program outside may listen on it; those of earlier sandboxes are dead */
        if (S_ISSOCK(st.st_mode) && w->remove_sockets)
                unlinkat(folder, name, 0);
        if (S_ISDIR(st.st_mode) && depth < DEEPEST) {
                int fd = beneath_open(folder, name, O_RDONLY | O_DIRECTORY, 0);

                if (fd >= 0)
                        walk_folder(w, fd, depth + 1);
        }
}

/* Closes the folder. */
static void walk_folder(struct walk *w, int folder, int depth)
{
        DIR *dir = fdopendir(folder);
        struct dirent *e;

        if (!dir) {
                close(folder);
                return;
        }
        while (w->entries < ENTRIES_MAX && (e = readdir(dir)))
                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                        walk_entry(w, dirfd(dir), e->d_name, depth);
        closedir(dir);
}

int64_t disk_use(int folder, bool remove_sockets)
{
        struct walk w = { .remove_sockets = remove_sockets };
        int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0)
                walk_folder(&w, fd, 0);
        return w.bytes;
}
