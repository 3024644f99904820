#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/sandbox/sandbox_private.h"
#include "base/mem.h"

/*
 * The arguments of bubblewrap. They go through a memory file, because the command line can be read
 * inside as /proc/1/cmdline. bwrap makes the mounts in the order of its arguments: the root is made
 * read-only last. What is not mounted does not exist inside; nothing is masked.
 */

#define COPY_MAX (1 << 20)

static void arg(struct buf *b, const char *word)
{
        buf_add(b, word, strlen(word) + 1);
}

/* Words separated by blanks, each an argument. */
static void args(struct buf *b, const char *words)
{
        for (const char *w = words; *w;) {
                size_t n = strcspn(w, " ");

                buf_add(b, w, n);
                buf_addch(b, '\0');
                w += n + strspn(w + n, " ");
        }
}

static void arg_fd(struct buf *b, const char *option, int fd, const char *path)
{
        char number[16];

        snprintf(number, sizeof(number), "%d", fd);
        arg(b, option);
        arg(b, number);
        if (path)
                arg(b, path);
}

/* A descriptor for reading these bytes; -1 with an error. */
static int memory_file(const void *bytes, size_t n, struct error *err)
{
        int fd = memfd_create("sandbox", MFD_CLOEXEC);

        if (fd >= 0 && write(fd, bytes, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0)
                return fd;
        error_set(err, ERR_IO, "cannot make a file in memory: %s", strerror(errno));
        if (fd >= 0)
                close(fd);
        return -1;
}

/* Programs and libraries; on merged systems /bin and the like are links into /usr. */
static void mount_system(struct buf *b)
{
        static const char *const tops[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64" };

        args(b, "--ro-bind /usr /usr");
        for (size_t i = 0; i < COUNT(tops); i++) {
                char target[256];
                ssize_t n = readlink(tops[i], target, sizeof(target) - 1);

                if (n > 0) {
                        target[n] = '\0';
                        arg(b, "--symlink");
                        arg(b, target);
                        arg(b, tops[i]);
                } else if (errno == EINVAL) { /* a folder */
                        arg(b, "--ro-bind");
                        arg(b, tops[i]);
                        arg(b, tops[i]);
                }
        }
        args(b, "--ro-bind-try /etc/alternatives /etc/alternatives "
                "--ro-bind-try /etc/ssl/certs /etc/ssl/certs");
}

/* Copies a file of the host, if there is one: that costs less than a mount. */
static int copy_file(struct sandbox_launch *l, struct buf *b, const char *path, struct error *err)
{
        char *text = mem_alloc(COPY_MAX);
        int from = open(path, O_RDONLY | O_CLOEXEC), fd = -1;
        ssize_t n = from >= 0 ? read(from, text, COPY_MAX) : -1;

        if (from >= 0)
                close(from);
        if (n > 0 && n < COPY_MAX)
                fd = memory_file(text, (size_t)n, err);
        free(text);
        if (n <= 0 || n >= COPY_MAX)
                return 0;
        if (fd < 0)
                return -1;
        args(b, "--perms 0644");
        arg_fd(b, "--file", launch_fd(l, fd, true), path);
        return 0;
}

static void link_time_zone(struct buf *b)
{
        char target[256];
        ssize_t n = readlink("/etc/localtime", target, sizeof(target) - 1);

        if (n <= 0)
                return;
        target[n] = '\0';
        arg(b, "--symlink");
        arg(b, target); /* into /usr/share/zoneinfo */
        arg(b, "/etc/localtime");
}

/* Files of /etc, mostly our own: nothing of the host's users, names and servers is seen. */
static int write_etc(struct sandbox_launch *l, struct buf *b, struct error *err)
{
        static const struct {
                const char *path, *text;
        } files[] = {
                { "/etc/passwd", "agent:x:1000:1000:agent:/home/agent:/bin/bash\n" },
                { "/etc/group", "agent:x:1000:\n" },
                { "/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n" },
                { "/etc/resolv.conf", "# there is no name service in the sandbox\n" },
                { "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n" },
        };

        for (size_t i = 0; i < COUNT(files); i++) {
                int fd = memory_file(files[i].text, strlen(files[i].text), err);

                if (fd < 0)
                        return -1;
                args(b, "--perms 0644");
                arg_fd(b, "--file", launch_fd(l, fd, true), files[i].path);
        }
        link_time_zone(b);
        return copy_file(l, b, "/etc/ld.so.cache", err) < 0
                       ? -1
                       : copy_file(l, b, "/etc/ssl/openssl.cnf", err);
}

/*
 * A bind source inside a folder that a sandbox can write would be the attacker's choice, so there
 * are no names: descriptors as a user, and as root what the launcher placed.
 */
static void mount_workspace(struct sandbox_launch *l, struct buf *b,
                            const struct workspace_view *view)
{
        bool placed = geteuid() == 0;

        for (size_t i = 0; view && i < view->count; i++) {
                const struct workspace_mount *m = &view->mounts[i];
                char source[64];

                if (!placed) {
                        arg_fd(b, m->writable ? "--bind-fd" : "--ro-bind-fd",
                               launch_fd(l, m->fd, false), m->inside);
                        continue;
                }
                snprintf(source, sizeof(source), BOX_MOUNTS "/%d", launch_number(l, m->fd));
                arg(b, m->writable ? "--bind" : "--ro-bind");
                arg(b, source);
                arg(b, m->inside);
        }
}

static int add_filter(struct sandbox_launch *l, struct buf *b, bool debuggers, struct error *err)
{
        struct seccomp filter;
        int fd;

        if (!sandbox_filter(&filter, debuggers))
                return error_set(err, ERR_REFUSED,
                                 "sandboxes need a seccomp filter, which Dragoman has for x86-64 "
                                 "and ARM64 only: set sandbox.kind to \"docker:NAME\"");
        fd = memory_file(filter.code, filter.n * sizeof(filter.code[0]), err);
        if (fd < 0)
                return -1;
        arg_fd(b, "--seccomp", launch_fd(l, fd, true), NULL);
        return 0;
}

static int add_status(struct sandbox_launch *l, struct buf *b, struct error *err)
{
        int fds[2];

        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return error_set(err, ERR_IO, "cannot make a pipe: %s", strerror(errno));
        l->status = fds[0];
        arg_fd(b, "--json-status-fd", launch_fd(l, fds[1], true), NULL);
        return 0;
}

static int write_args(struct sandbox_launch *l, struct buf *b, const struct sandbox_conf *conf,
                      const struct workspace_view *view, struct error *err)
{
        args(b, "--unshare-all --unshare-user --disable-userns --uid 1000 --gid 1000 "
                "--cap-drop ALL --new-session --die-with-parent --hostname sandbox");
        mount_system(b);
        if (write_etc(l, b, err) < 0)
                return -1;
        args(b, "--proc /proc --dev /dev --size 67108864 --tmpfs /dev/shm --remount-ro /dev "
                "--perms 1777 --size 268435456 --tmpfs /tmp "
                "--perms 0700 --size 268435456 --tmpfs /home/agent");
        if (access("/proc/keys", F_OK) == 0) /* the names of all keys of the user */
                args(b, "--ro-bind /dev/null /proc/keys");
        mount_workspace(l, b, view);
        args(b, "--remount-ro / --chdir /");
        return add_filter(l, b, conf->debuggers, err) < 0 ? -1 : add_status(l, b, err);
}

int launch_bwrap(struct sandbox_launch *l, const struct sandbox_conf *conf,
                 const struct workspace_view *view, struct error *err)
{
        char *program, number[16];
        struct buf b;
        int fd = -1;

        for (size_t i = 0; i < conf->hosts.count; i++)
                if (egress_check_entry(conf->hosts.items[i], err) < 0)
                        return error_prefix(err, "sandbox.hosts");
        program = process_find("bwrap");
        if (!program)
                return error_set(err, ERR_REFUSED,
                                 "the sandbox needs the program bwrap, which is not in PATH: "
                                 "install the package bubblewrap, or choose another sandbox.kind");
        launch_launcher(l, conf, view);
        launch_word(l, program);
        free(program);
        buf_init(&b, 0);
        if (write_args(l, &b, conf, view, err) == 0)
                fd = memory_file(b.data, b.len, err);
        buf_release(&b);
        if (fd < 0)
                return -1;
        snprintf(number, sizeof(number), "%d", launch_fd(l, fd, true));
        launch_word(l, "--args");
        launch_word(l, number);
        launch_word(l, "--");
        launch_env(l, "PATH", "/usr/local/bin:/usr/bin:/bin");
        launch_env(l, "HOME", "/home/agent");
        launch_env(l, "USER", "agent");
        return 0;
}
