#include "agent/tools/tool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tools/tools_private.h"
#include "base/beneath.h"
#include "base/file.h"
#include "base/id.h"
#include "base/mem.h"

int tool_file_find(struct tool_file *f, const struct workspace_view *v, const char *name,
                   bool writes, struct error *err)
{
        int folder = -1;

        f->folder = -1;
        f->name = mem_strdup(name);
        if (workspace_resolve(v, name, writes, &folder, &f->path, err) < 0)
                return -1;
        f->is_shared = folder != v->channel_fd;
        f->folder = fcntl(folder, F_DUPFD_CLOEXEC, 3);
        if (f->folder < 0)
                return error_set(err, ERR_IO, "cannot open the folder of '%.200s': %s", name,
                                 strerror(errno));
        return 0;
}

void tool_file_release(struct tool_file *f)
{
        if (f->folder >= 0)
                close(f->folder);
        free(f->path);
        free(f->name);
        *f = (struct tool_file){ .folder = -1 };
}

/* ---- reading ---- */

static int open_error(const struct tool_file *f, struct error *err)
{
        switch (errno) {
        case ENOENT:
                return error_set(err, ERR_MISSING, "there is no file '%.200s'", f->name);
        case ENOTDIR:
                return error_set(err, ERR_MISSING,
                                 "there is no file '%.200s': a part of the path is no folder",
                                 f->name);
        case ELOOP:
        case EXDEV:
                return error_set(err, ERR_REFUSED,
                                 "'%.200s' is a link or lies behind one; links are not followed, "
                                 "name the file itself",
                                 f->name);
        case ENXIO:
        case ENODEV:
                return error_set(err, ERR_INVALID,
                                 "'%.200s' is a socket, pipe or device; only regular files can be "
                                 "used",
                                 f->name);
        default:
                return error_set(err, errno == EACCES || errno == EPERM ? ERR_REFUSED : ERR_IO,
                                 "cannot open '%.200s': %s", f->name, strerror(errno));
        }
}

static int check_file(const struct tool_file *f, const struct stat *st, int64_t max,
                      struct error *err)
{
        if (S_ISDIR(st->st_mode))
                return error_set(err, ERR_INVALID,
                                 "'%.200s' is a folder; name a file, and list folders with the "
                                 "command ls",
                                 f->name);
        if (!S_ISREG(st->st_mode))
                return error_set(err, ERR_INVALID,
                                 "'%.200s' is a socket, pipe or device; only regular files can be "
                                 "used",
                                 f->name);
        if (st->st_nlink != 1)
                return error_set(err, ERR_REFUSED,
                                 "'%.200s' has a second name (a hard link), or none any more; copy "
                                 "it and use the copy",
                                 f->name);
        if (st->st_size > max)
                return error_set(err, ERR_LIMIT,
                                 "'%.200s' has %lld bytes, more than the %lld that fit; use a "
                                 "command such as head, sed or grep for a part of it",
                                 f->name, (long long)st->st_size, (long long)max);
        return 0;
}

int tool_file_open(const struct tool_file *f, int64_t max, int64_t *size, struct error *err)
{
        int fd = beneath_open(f->folder, f->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        struct stat st;

        if (fd < 0)
                return open_error(f, err);
        if (fstat(fd, &st) < 0) {
                open_error(f, err);
        } else if (check_file(f, &st, max, err) == 0) {
                *size = st.st_size;
                return fd;
        }
        close(fd);
        return -1;
}

int tool_file_read(const struct tool_file *f, int64_t max, struct buf *out, struct error *err)
{
        int64_t size;
        int fd = tool_file_open(f, max, &size, err), rc;

        if (fd < 0)
                return -1;
        rc = file_read_fd(fd, f->name, (size_t)max, out, err);
        close(fd);
        return rc;
}

/* ---- writing ---- */

/* Opens the folder of the file, making what is missing. -1 with errno. */
static int open_parent(const struct tool_file *f, const char **name, struct error *err)
{
        int fd = openat(f->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), parent;
        const char *part = f->path, *slash;

        while (fd >= 0 && (slash = strchr(part, '/'))) {
                char *one = mem_strndup(part, (size_t)(slash - part));
                bool made;

                parent = fd;
                made = mkdirat(parent, one, 0700) == 0;
                fd = -1;
                if (made || errno == EEXIST)
                        fd = openat(parent, one, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                close(parent);
                free(one);
                if (made && fd >= 0 && workspace_give(fd, err) < 0) {
                        close(fd);
                        return -1;
                }
                part = slash + 1;
        }
        if (fd < 0)
                open_error(f, err);
        *name = part;
        return fd;
}

/* What a file becomes: bytes, or what is left in a descriptor. */
struct content {
        const char *bytes; /* NULL: from */
        size_t n;
        int from;
};

/* Under another name first: what reads the file sees the old or the new one. */
static int replace(int parent, const char *name, mode_t mode, const struct content *content,
                   struct error *err)
{
        char trace[ID_TRACE_SIZE], temp[64];
        int fd, rc = -1;

        id_trace(trace);
        snprintf(temp, sizeof(temp), ".%.16s.tmp", trace);
        fd = openat(parent, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -1;
        if ((content->bytes ? file_write(fd, content->bytes, content->n)
                            : file_copy(content->from, fd)) == 0 &&
            fchmod(fd, mode) == 0 && workspace_give(fd, err) == 0 &&
            renameat(parent, temp, parent, name) == 0)
                rc = 0;
        if (rc < 0) {
                int why = errno;

                unlinkat(parent, temp, 0);
                errno = why;
        }
        close(fd);
        return rc;
}

static int store(const struct tool_file *f, const struct content *content, bool *created,
                 struct error *err)
{
        const char *name = NULL;
        int parent = open_parent(f, &name, err), rc;
        struct stat st;

        if (parent < 0)
                return -1;
        *created = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0;
        if (!*created && !S_ISREG(st.st_mode)) {
                close(parent);
                return error_set(err, ERR_INVALID, "'%.200s' is a %s; name a regular file", f->name,
                                 S_ISDIR(st.st_mode)   ? "folder"
                                 : S_ISLNK(st.st_mode) ? "link"
                                                       : "socket, pipe or device");
        }
        rc = replace(parent, name, *created ? 0644 : st.st_mode & 0777, content, err);
        if (rc < 0 && err->kind == ERR_NONE)
                error_set(err, errno == ENOSPC || errno == EDQUOT ? ERR_FULL : ERR_IO,
                          "cannot write '%.200s': %s", f->name, strerror(errno));
        close(parent);
        return rc;
}

int tool_file_write(const struct tool_file *f, const char *bytes, size_t n, bool *created,
                    struct error *err)
{
        return store(f, &(struct content){ .bytes = bytes, .n = n }, created, err);
}

int tool_file_copy(const struct tool_file *f, int from, const char *path, struct error *err)
{
        struct tool_file copy = { .folder = f->folder, .path = mem_strdup(path), .name = f->name };
        bool created;
        int rc = store(&copy, &(struct content){ .from = from }, &created, err);

        free(copy.path);
        return rc;
}

/* ---- jobs ---- */

static void free_job(struct file_job *j)
{
        if (j->release)
                j->release(j);
        tool_file_release(&j->file);
        free(j);
}

static void work_on_pool(void *arg)
{
        struct file_job *j = arg;

        j->work(j);
}

static void on_worked(void *arg)
{
        struct file_job *j = arg;

        if (j->err.kind != ERR_NONE) {
                j->result.is_error = true;
                j->result.content =
                        json_pack("[o]", tool_text_block(j->err.text, strlen(j->err.text)));
        }
        if (j->call) {
                j->call->data = NULL;
                tool_finish(j->call, &j->result);
        } else {
                json_decref(j->result.content);
                json_decref(j->result.details);
        }
        free_job(j);
}

void file_job_start(struct tool_call *c, struct file_job *j, const char *path, bool writes)
{
        j->call = c;
        j->loop = c->scope->loop;
        if (tool_file_find(&j->file, c->scope->view, path, writes, &j->err) < 0) {
                tool_finish_text(c, true, "%s", j->err.text);
                free_job(j);
                return;
        }
        c->data = j;
        loop_work(j->loop, work_on_pool, on_worked, j);
}

void file_job_cancel(struct tool_call *c)
{
        struct file_job *j = c->data;

        j->call = NULL;
        c->data = NULL;
}
