#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "box/box.h"
#include "box/frame.h"

/*
 * For daemons that run as root: the program runs as another user, who cannot reach the data
 * directory. So the folders to mount are put where that user can: below BOX_MOUNTS, in a mount
 * namespace of the program's own. bubblewrap takes paths only, also for descriptors.
 */

#define KEYCTL_JOIN_SESSION_KEYRING 1
#define MOUNTS_MAX                  32
#define OPEN_TREE_CLOEXEC           O_CLOEXEC

struct request {
        bool as_user;
        uid_t uid;
        gid_t gid;
        int mounts[MOUNTS_MAX];
        size_t count;
        int folder; /* -1: none */
        bool grouped;
        unsigned long group_mb, group_processes;
        const char *groups; /* of tests: the daemon's control group */
};

static void die(const char *what)
{
        dprintf(STDERR_FILENO, "box: cannot %s: %s\n", what, strerror(errno));
        _exit(126);
}

/* Reads the words of box.h; returns the program's words. */
static char **read_request(struct request *q, char **argv)
{
        for (; *argv; argv++) {
                char *end;

                if (strncmp(*argv, "user=", 5) == 0) {
                        q->as_user = true;
                        q->uid = (uid_t)strtoul(*argv + 5, &end, 10);
                        q->gid = (gid_t)strtoul(*end ? end + 1 : end, NULL, 10);
                } else if (strncmp(*argv, "group=", 6) == 0) {
                        q->grouped = true;
                        q->group_mb = strtoul(*argv + 6, &end, 10);
                        q->group_processes = strtoul(*end ? end + 1 : end, NULL, 10);
                } else if (strncmp(*argv, "groups=", 7) == 0) {
                        q->groups = *argv + 7;
                } else if (strncmp(*argv, "folder=", 7) == 0) {
                        q->folder = (int)strtol(*argv + 7, NULL, 10);
                } else if (strncmp(*argv, "mount=", 6) == 0 && q->count < MOUNTS_MAX) {
                        q->mounts[q->count++] = (int)strtol(*argv + 6, NULL, 10);
                } else {
                        break;
                }
        }
        return argv;
}

/* Copies of the mounts, made here because descriptors do not follow into a new namespace. */
static void copy_mounts(const struct request *q, int copies[MOUNTS_MAX])
{
        for (size_t i = 0; i < q->count; i++) {
                copies[i] = (int)syscall(SYS_open_tree, q->mounts[i], "",
                                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
                if (copies[i] < 0)
                        die("copy a mount");
        }
}

static void place_mount(int number, int copy)
{
        struct stat st;
        char path[64];
        int fd;

        snprintf(path, sizeof(path), BOX_MOUNTS "/%d", number);
        if (fstat(copy, &st) < 0)
                die("look at a mount");
        if (S_ISDIR(st.st_mode)) {
                if (mkdir(path, 0755) < 0)
                        die("make a folder");
        } else {
                fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
                if (fd < 0)
                        die("make a file");
                close(fd);
        }
        if (syscall(SYS_move_mount, copy, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                die("place a mount");
        close(copy);
}

static void make_mounts(const struct request *q)
{
        int copies[MOUNTS_MAX];

        copy_mounts(q, copies);
        if (unshare(CLONE_NEWNS) < 0)
                die("make a mount namespace (Creating new namespace failed)");
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", BOX_MOUNTS, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") < 0)
                die("make room for mounts");
        for (size_t i = 0; i < q->count; i++)
                place_mount(q->mounts[i], copies[i]);
}

static void become_user(const struct request *q)
{
        if (setgroups(0, NULL) < 0 || setresgid(q->gid, q->gid, q->gid) < 0 ||
            setresuid(q->uid, q->uid, q->uid) < 0)
                die("change the user");
}

int launch(char **argv)
{
        struct request q = { .folder = -1 };
        char **program = read_request(&q, argv);

        if (!*program)
                return 2;
        if (q.grouped)
                group_join(q.groups, q.group_mb, q.group_processes);
        if (q.count > 0)
                make_mounts(&q);
        /* the user may use it, though not find the way there */
        if (q.folder >= 0 && fchdir(q.folder) < 0)
                die("enter the channel's folder");
        if (q.as_user)
                become_user(&q);
        /* an empty one in place of the daemon's; kernels without keyrings have none to leave */
        syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
        execv(program[0], program);
        die("run the program of the sandbox");
        return 127;
}
