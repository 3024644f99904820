#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "box/box.h"

/*
 * Control groups (version 2) limit what all processes of a sandbox take together. They are used
 * where the daemon's group was given to it, as systemd does with Delegate=yes: that it may write
 * there, that the memory and pids controllers are available, and that nobody else is in the group.
 * Anywhere else there are only the limits of each process. A group with members has no groups with
 * controllers below it, so the daemon moves into one of its own:
 *
 *     <given>/daemon       the daemon and its other children
 *     <given>/sandbox-PID  one for each sandbox, removed when the next one is made
 */

#define CGROUP2_MAGIC 0x63677270
#define PIDS_MAX      256

static int open_in(const char *group, const char *file, int flags)
{
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/%s", group, file) >= (int)sizeof(path))
                return -1;
        return open(path, flags | O_CLOEXEC, 0644);
}

static bool read_file(const char *group, const char *file, char *text, size_t size)
{
        int fd = open_in(group, file, O_RDONLY);
        ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;

        if (fd >= 0)
                close(fd);
        text[n > 0 ? n : 0] = '\0';
        return n >= 0;
}

static bool write_file(const char *group, const char *file, const char *text)
{
        int fd =
                open_in(group, file, O_WRONLY | O_CREAT); /* there it exists, in tests it may not */
        bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

        if (fd >= 0)
                close(fd);
        return done;
}

/* The group that was given to the daemon; false: it is in none of version 2. */
static bool find_own(char own[PATH_MAX])
{
        static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
        const char *mount = NULL;
        char text[8192], *line;
        struct statfs st;
        size_t n;

        for (size_t i = 0; i < 2 && !mount; i++)
                if (statfs(mounts[i], &st) == 0 && st.f_type == CGROUP2_MAGIC)
                        mount = mounts[i];
        if (!mount || !read_file("/proc/self", "cgroup", text, sizeof(text)))
                return false;
        line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
        if (!line)
                return false;
        line = strchr(line, '/');
        if (!line)
                return false;
        line[strcspn(line, "\n")] = '\0';
        n = strlen(line);
        if (n >= 7 && strcmp(line + n - 7, "/daemon") == 0) /* it has moved before */
                line[n - 7] = '\0';
        return snprintf(own, PATH_MAX, "%s%s", mount, line) < PATH_MAX;
}

/* Moves the members to their own group. False: there are others than the daemon and its children.
 */
static bool move_members(const char *own)
{
        pid_t pids[PIDS_MAX], daemon = getppid();
        char text[8192], daemon_group[PATH_MAX], *end;
        size_t count = 0;

        if (!read_file(own, "cgroup.procs", text, sizeof(text)))
                return false;
        for (const char *p = text; *p && count < PIDS_MAX; p = *end ? end + 1 : end) {
                char number[16];
                pid_t pid = (pid_t)strtol(p, &end, 10);

                snprintf(number, sizeof(number), "%d", (int)pid);
                if (pid != daemon && process_parent(number) != daemon)
                        return false;
                pids[count++] = pid;
        }
        if (snprintf(daemon_group, sizeof(daemon_group), "%s/daemon", own) >= PATH_MAX ||
            (mkdir(daemon_group, 0755) < 0 && errno != EEXIST))
                return false;
        for (size_t i = 0; i < count; i++) {
                char number[16];

                snprintf(number, sizeof(number), "%d", (int)pids[i]);
                write_file(daemon_group, "cgroup.procs", number);
        }
        return true;
}

/* Those of sandboxes that have ended; a group with members stays. */
static void remove_old(const char *own)
{
        DIR *dir = opendir(own);
        struct dirent *e;

        while (dir && (e = readdir(dir)))
                if (strncmp(e->d_name, "sandbox-", 8) == 0)
                        unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
        if (dir)
                closedir(dir);
}

bool group_join(const char *given, unsigned long memory_mb, unsigned long processes)
{
        char own[PATH_MAX], mine[PATH_MAX], text[1024], number[32];
        bool fine;

        if (given)
                snprintf(own, sizeof(own), "%s", given);
        else if (!find_own(own))
                return false;
        if (!read_file(own, "cgroup.controllers", text, sizeof(text)) || !strstr(text, "memory") ||
            !strstr(text, "pids") || !move_members(own) ||
            !write_file(own, "cgroup.subtree_control", "+memory +pids"))
                return false;
        remove_old(own);
        if (snprintf(mine, sizeof(mine), "%s/sandbox-%d", own, (int)getpid()) >= PATH_MAX ||
            (mkdir(mine, 0755) < 0 && errno != EEXIST))
                return false;
        snprintf(number, sizeof(number), "%lu", memory_mb << 20);
        fine = write_file(mine, "memory.max", number);
        snprintf(number, sizeof(number), "%lu", processes);
        fine = write_file(mine, "pids.max", number) && fine;
        write_file(mine, "memory.swap.max", "0"); /* kernels without swap have no such file */
        return fine && write_file(mine, "cgroup.procs", "0");
}
