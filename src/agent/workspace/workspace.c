#include "agent/workspace/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/mem.h"
#include "road/channel_folder.h"

/* What a view has besides the channel's folder, if it is there. All of it is read-only. */
static const struct part {
        const char *name;
        bool in_channel, is_folder, is_made;
} parts[] = {
        { "MEMORY.md" },
        { "skills", .is_folder = true },
        { "log.jsonl", .in_channel = true, .is_made = true },
        { "context.jsonl", .in_channel = true, .is_made = true },
        { "contexts", .in_channel = true, .is_folder = true },
};

/* ---- the view ---- */

/* What the sandbox mounts must exist then, so that the agent cannot make it first. */
static void make_empty(int folder, const char *name)
{
        int fd = beneath_open(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0644);

        if (fd >= 0)
                close(fd);
}

/* A link, or a file where a folder should be, is left out: agents could have put it there. */
static void add_part(struct workspace_view *v, const struct part *p)
{
        int at = p->in_channel ? v->channel_fd : v->root_fd, fd;
        struct stat st;

        if (p->is_made)
                make_empty(at, p->name);
        fd = beneath_open(at, p->name, O_PATH, 0);
        if (fd >= 0 &&
            (fstat(fd, &st) < 0 || !(p->is_folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)))) {
                close(fd);
                fd = -1;
        }
        if (fd < 0)
                return;
        v->mounts[v->count++] = (struct workspace_mount){
                .fd = fd,
                .inside =
                        mem_printf("%s/%s", p->in_channel ? v->folder : WORKSPACE_INSIDE, p->name),
                .is_folder = p->is_folder,
        };
}

/* The channel's folder belongs to the user of the sandbox; those above it never do. */
int workspace_open_channel(int root, const char *folder, struct error *err)
{
        const char *name = "";
        int parent = beneath_make_folder(root, folder, &name), fd = -1;

        if (parent >= 0 && (mkdirat(parent, name, 0700) == 0 || errno == EEXIST))
                fd = beneath_open(parent, name, O_PATH | O_DIRECTORY, 0);
        if (fd < 0)
                error_set(err, ERR_IO, "cannot open the folder '%s' of the workspace: %s", folder,
                          strerror(errno));
        else if (workspace_give(fd, err) < 0) {
                close(fd);
                fd = -1;
        }
        if (parent >= 0)
                close(parent);
        return fd;
}

static struct workspace_view *view_new(const char *adapter, const char *channel, const char *folder)
{
        struct workspace_view *v = mem_zalloc(sizeof(*v));

        v->adapter = mem_strdup(adapter);
        v->channel = mem_strdup(channel);
        v->folder = mem_printf(WORKSPACE_INSIDE "/%s", folder);
        v->root_fd = v->channel_fd = -1;
        return v;
}

int workspace_view_open(const char *dir, const char *adapter, const char *channel,
                        struct workspace_view **out, struct error *err)
{
        char *folder = channel_folder(adapter, channel);
        struct workspace_view *v = view_new(adapter, channel, folder);
        int rc = -1;

        v->root_fd = channel_folder_open_root(dir);
        if (v->root_fd < 0)
                error_set(err, ERR_IO, "cannot open '%s/workspace': %s", dir, strerror(errno));
        else
                v->channel_fd = workspace_open_channel(v->root_fd, folder, err);
        if (v->channel_fd < 0)
                goto out;
        v->mounts[v->count++] = (struct workspace_mount){
                .fd = fcntl(v->channel_fd, F_DUPFD_CLOEXEC, 3),
                .inside = mem_strdup(v->folder),
                .writable = true,
                .is_folder = true,
        };
        for (size_t i = 0; i < COUNT(parts); i++)
                add_part(v, &parts[i]);
        *out = v;
        v = NULL;
        rc = 0;
out:
        workspace_view_free(v);
        free(folder);
        return rc;
}

struct workspace_view *workspace_view_peek(const char *dir, const char *adapter,
                                           const char *channel)
{
        char *folder = channel_folder(adapter, channel), *root = mem_printf("%s/workspace", dir);
        struct workspace_view *v = view_new(adapter, channel, folder);

        v->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (v->root_fd >= 0)
                v->channel_fd = beneath_open(v->root_fd, folder, O_PATH | O_DIRECTORY, 0);
        free(folder);
        free(root);
        return v;
}

void workspace_view_free(struct workspace_view *v)
{
        if (!v)
                return;
        for (size_t i = 0; i < v->count; i++) {
                if (v->mounts[i].fd >= 0)
                        close(v->mounts[i].fd);
                free((char *)v->mounts[i].inside);
        }
        if (v->channel_fd >= 0)
                close(v->channel_fd);
        if (v->root_fd >= 0)
                close(v->root_fd);
        free(v->adapter);
        free(v->channel);
        free(v->folder);
        free(v);
}

/* ---- paths ---- */

char *workspace_normal_path(const char *from, const char *name)
{
        char *whole = name[0] == '/' ? mem_strdup(name) : mem_printf("%s/%s", from, name),
             *rest = whole, *part;
        struct buf out;

        buf_init(&out, 0);
        while ((part = strsep(&rest, "/"))) {
                const char *slash;

                if (part[0] == '\0' || strcmp(part, ".") == 0)
                        continue;
                if (strcmp(part, "..") != 0) {
                        buf_addf(&out, "/%s", part);
                        continue;
                }
                slash = strrchr(out.data, '/');
                buf_truncate(&out, slash ? (size_t)(slash - out.data) : 0);
        }
        free(whole);
        return buf_take(&out);
}

/* Is the path this folder, or in it? */
static bool is_in(const char *path, const char *folder)
{
        size_t n = strlen(folder);

        return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The innermost mount that has the path. */
static const struct workspace_mount *find_mount(const struct workspace_view *v, const char *path)
{
        const struct workspace_mount *found = NULL;

        for (size_t i = 0; i < v->count; i++)
                if (is_in(path, v->mounts[i].inside) &&
                    (!found || strlen(v->mounts[i].inside) > strlen(found->inside)))
                        found = &v->mounts[i];
        return found;
}

static int check_path(const struct workspace_view *v, const struct workspace_mount *m,
                      const char *path, bool writes, struct error *err)
{
        if (!m)
                return error_set(err, ERR_REFUSED,
                                 "'%.200s' is outside of what this tool reaches: the channel's "
                                 "folder %.200s and what is shared in " WORKSPACE_INSIDE,
                                 path[0] ? path : "/", v->folder);
        if (!writes || m->writable)
                return 0;
        if (is_in(m->inside, v->folder))
                return error_set(err, ERR_REFUSED,
                                 "'%.200s' is a record of the chat and read-only; write to "
                                 "another file of %.200s",
                                 path, v->folder);
        return error_set(err, ERR_REFUSED,
                         "'%.200s' is shared by all channels and read-only; write to a file of "
                         "%.200s",
                         path, v->folder);
}

int workspace_resolve(const struct workspace_view *v, const char *name, bool writes, int *folder,
                      char **path, struct error *err)
{
        const struct workspace_mount *m;
        const char *beneath;
        char *normal;
        bool in_channel;

        if (name[0] == '\0')
                return error_set(err, ERR_INVALID, "the path is empty; give the name of a file");
        normal = workspace_normal_path(v->folder, name);
        m = find_mount(v, normal);
        if (check_path(v, m, normal, writes, err) < 0) {
                free(normal);
                return -1;
        }
        in_channel = is_in(normal, v->folder);
        beneath = normal + strlen(in_channel ? v->folder : WORKSPACE_INSIDE);
        *folder = in_channel ? v->channel_fd : v->root_fd;
        *path = mem_strdup(beneath[0] ? beneath + 1 : ".");
        free(normal);
        return 0;
}

/* ---- whose files they are ---- */

uid_t workspace_uid(void)
{
        return channel_folder_uid();
}

gid_t workspace_gid(void)
{
        return channel_folder_gid();
}

int workspace_give(int fd, struct error *err)
{
        if (channel_folder_give(fd) == 0)
                return 0;
        return error_set(err, ERR_IO, "cannot give a file of the workspace to user %u: %s",
                         (unsigned)workspace_uid(), strerror(errno));
}
