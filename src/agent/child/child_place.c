/*
 * child_place: the folders of a session, and what its sandbox mounts.
 *
 *     DIR/workspace/agents/AGENT/SESSION/work   where it works
 *     DIR/workspace/agents/AGENT/SESSION/home   where it keeps its session: its home in the sandbox
 *     DIR/workspace/agents/AGENT/rule-RULE      where it works with cwd "rule"
 *
 * Paths are the same inside and outside, but the home. Nothing else of the host is mounted except
 * the system's programs, what the settings list, and the attachments of the chat, read-only.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/child/child_private.h"
#include "agent/custom/child_env.h"
#include "base/beneath.h"
#include "base/mem.h"
#include "road/channel_folder.h"

#define HOME_INSIDE "/home/agent"

static bool in_sandbox(const struct child_conf *conf)
{
        return strcmp(conf->sandbox.kind, "bwrap") == 0;
}

char **child_place_env(const struct child_conf *conf)
{
        static const char *const host[] = { "PATH", "HOME", "LANG", "TZ" };
        size_t n = in_sandbox(conf) ? 0 : COUNT(host);
        const char **names = mem_array(conf->pass_env.count + n + 1, sizeof(*names));
        char **env;

        memcpy(names, host, n * sizeof(*names));
        for (size_t i = 0; i < conf->pass_env.count; i++)
                names[n + i] = conf->pass_env.items[i];
        env = child_env_given(&conf->env, names, conf->pass_env.count + n);
        free(names);
        return env;
}

static bool is_folder(int fd)
{
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Takes the descriptor. */
static void add_mount(struct workspace_view *v, int fd, const char *inside, bool writable)
{
        v->mounts[v->count++] = (struct workspace_mount){
                .fd = fd,
                .inside = mem_strdup(inside),
                .writable = writable,
                .is_folder = is_folder(fd),
        };
}

/* Opens a folder of ours below the workspace, making it; its path in *path. */
static int open_own(struct workspace_view *v, const char *below, char **path, struct error *err)
{
        int fd = workspace_open_channel(v->root_fd, below, err);

        if (fd < 0)
                return -1;
        *path = child_path_of(fd, err);
        if (*path)
                return fd;
        close(fd);
        return -1;
}

static int open_work(struct child_place *p, const struct child_agent *o, const struct turn_run *run,
                     const char *session, struct error *err)
{
        const char *cwd = o->conf->cwd;
        char *below, *rule;
        int fd;

        if (cwd[0] == '/') {
                p->folder = mem_strdup(cwd);
                fd = child_path_open(o, cwd, "cwd", err);
                if (fd < 0 || is_folder(fd))
                        return fd;
                close(fd);
                return error_set(err, ERR_INVALID, "'%s' is no folder (cwd)", cwd);
        }
        if (strcmp(cwd, "rule") == 0) {
                rule = agent_folder_name(run->rule ? run->rule : "default", false);
                below = mem_printf("agents/%s/rule-%s", o->agent->name, rule);
                free(rule);
        } else {
                below = mem_printf("agents/%s/%s/work", o->agent->name, session);
        }
        fd = open_own(p->view, below, &p->folder, err);
        free(below);
        if (fd >= 0 && o->conf->sandbox.disk_mb > 0)
                p->view->channel_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return fd;
}

static int open_home(struct child_place *p, const struct child_agent *o, const char *session,
                     struct error *err)
{
        char *below = mem_printf("agents/%s/%s/home", o->agent->name, session), *path = NULL;
        int fd = open_own(p->view, below, &path, err);

        free(below);
        if (fd < 0)
                return -1;
        if (in_sandbox(o->conf)) {
                add_mount(p->view, fd, HOME_INSIDE, true);
                p->home = mem_strdup(HOME_INSIDE);
                free(path);
        } else {
                close(fd);
                p->home = path;
        }
        return 0;
}

static int add_listed(struct child_place *p, const struct child_agent *o, bool writable,
                      struct error *err)
{
        const struct setting_list *list =
                writable ? &o->conf->sandbox.writable : &o->conf->sandbox.read_only;
        int fd = 0;

        for (size_t i = 0; fd >= 0 && i < list->count; i++) {
                char *outside = child_path_outside(list->items[i]);
                const char *inside = list->items[i] + strlen(outside);
                char *normal = workspace_normal_path("/", *inside ? inside + 1 : outside);

                fd = child_path_open(o, outside, writable ? "sandbox.writable" : "sandbox.readOnly",
                                     err);
                if (fd >= 0)
                        add_mount(p->view, fd, normal, writable);
                free(normal);
                free(outside);
        }
        return fd < 0 ? -1 : 0;
}

/* Made now: a message with files may come while the process runs. */
static int add_attachments(struct child_place *p, const struct turn_run *run, struct error *err)
{
        char *channel = channel_folder(run->adapter, run->channel), *path = NULL;
        char *below = mem_printf("%s/attachments", channel);
        int channel_fd = workspace_open_channel(p->view->root_fd, channel, err), fd = -1;

        if (channel_fd >= 0)
                fd = open_own(p->view, below, &path, err);
        if (fd >= 0)
                add_mount(p->view, fd, path, false);
        if (channel_fd >= 0)
                close(channel_fd);
        free(path);
        free(below);
        free(channel);
        return fd < 0 ? -1 : 0;
}

/* One inside another comes after it, whatever the order of the settings. */
static void sort_mounts(struct workspace_view *v)
{
        for (size_t i = 1; i < v->count; i++) {
                struct workspace_mount m = v->mounts[i];
                size_t k = i;

                for (; k > 0 && strlen(v->mounts[k - 1].inside) > strlen(m.inside); k--)
                        v->mounts[k] = v->mounts[k - 1];
                v->mounts[k] = m;
        }
}

int child_place_open(struct child_place *p, const struct child_agent *o, const struct turn_run *run,
                     struct error *err)
{
        char *session = agent_session_folder(o->agent, run);
        int rc = -1, work;

        *p = (struct child_place){ 0 };
        p->view = mem_zalloc(sizeof(*p->view));
        p->view->channel_fd = -1;
        p->view->root_fd = channel_folder_open_root(o->agent->dir);
        if (p->view->root_fd < 0) {
                error_set(err, ERR_IO, "cannot open '%s/workspace': %s", o->agent->dir,
                          strerror(errno));
                goto out;
        }
        p->workspace = child_path_of(p->view->root_fd, err);
        work = p->workspace ? open_work(p, o, run, session, err) : -1;
        if (work < 0)
                goto out;
        p->view->folder = mem_strdup(p->folder);
        add_mount(p->view, work, p->folder, true);
        if (open_home(p, o, session, err) < 0)
                goto out;
        if (in_sandbox(o->conf) &&
            (add_attachments(p, run, err) < 0 || add_listed(p, o, false, err) < 0 ||
             add_listed(p, o, true, err) < 0))
                goto out;
        sort_mounts(p->view);
        rc = 0;
out:
        free(session);
        if (rc < 0)
                child_place_release(p);
        return rc;
}

int child_place_open_bare(struct child_place *p, const struct child_agent *o, struct error *err)
{
        p->folder = mem_strdup("/");
        p->view = mem_zalloc(sizeof(*p->view));
        p->view->channel_fd = p->view->root_fd = -1;
        p->view->folder = mem_strdup(p->folder);
        if (add_listed(p, o, false, err) == 0 && add_listed(p, o, true, err) == 0) {
                sort_mounts(p->view);
                return 0;
        }
        child_place_release(p);
        return -1;
}

void child_place_release(struct child_place *p)
{
        workspace_view_free(p->view);
        free(p->workspace);
        free(p->folder);
        free(p->home);
        *p = (struct child_place){ 0 };
}
