#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sandbox/box_image.h"
#include "agent/sandbox/sandbox_private.h"
#include "base/mem.h"

#define IMAGE_PATH "/proc/self/fd/3" /* LAUNCH_IMAGE_FD */

/* ---- parts ---- */

static const char *own(struct sandbox_launch *l, char *word)
{
        l->owned[l->owned_count++] = word;
        return word;
}

void launch_word(struct sandbox_launch *l, const char *word)
{
        l->argv[l->argc++] = own(l, mem_strdup(word));
}

static bool is_given(const struct sandbox_launch *l, const char *name)
{
        size_t n = strlen(name);

        for (const char *const *e = l->given; e && *e; e++)
                if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
                        return true;
        return false;
}

void launch_env(struct sandbox_launch *l, const char *name, const char *value)
{
        if (!is_given(l, name))
                l->env[l->envc++] = own(l, mem_printf("%s=%s", name, value));
}

static void add_given(struct sandbox_launch *l)
{
        for (const char *const *e = l->given; e && *e && l->envc + 1 < LAUNCH_ENV_MAX; e++)
                l->env[l->envc++] = *e;
}

int launch_fd(struct sandbox_launch *l, int fd, bool close_after)
{
        int number = LAUNCH_IMAGE_FD + (int)l->fd_count;

        l->fds[l->fd_count] = (struct process_fd){ number, fd };
        l->close_after[l->fd_count++] = close_after;
        return number;
}

int launch_number(const struct sandbox_launch *l, int fd)
{
        for (size_t i = 0; i < l->fd_count; i++)
                if (l->fds[i].here == fd)
                        return l->fds[i].child;
        return -1;
}

void launch_serve(struct sandbox_launch *l, const struct sandbox_conf *conf, bool processes)
{
        const struct {
                const char *name;
                int64_t value;
        } limits[] = {
                { "cpu", conf->cpu_seconds },
                { "memory", conf->memory_mb },
                { "processes", processes ? conf->processes : 0 },
                { "file", conf->file_mb },
                { "open", 4096 },
        };

        launch_word(l, "serve");
        for (size_t i = 0; i < COUNT(limits); i++)
                l->argv[l->argc++] =
                        own(l, mem_printf("%s=%lld", limits[i].name, (long long)limits[i].value));
}

void launch_launcher(struct sandbox_launch *l, const struct sandbox_conf *conf,
                     const struct workspace_view *view)
{
        launch_word(l, IMAGE_PATH);
        launch_word(l, "launch");
        l->argv[l->argc++] = own(l, mem_printf("group=%lld:%lld", (long long)conf->total_mb,
                                               (long long)conf->processes));
        if (geteuid() != 0 || (conf->as_daemon && strcmp(conf->kind, "host") == 0))
                return;
        l->argv[l->argc++] = own(
                l, mem_printf("user=%u:%u", (unsigned)workspace_uid(), (unsigned)workspace_gid()));
        for (size_t i = 0; view && i < view->count; i++)
                l->argv[l->argc++] =
                        own(l, mem_printf("mount=%d", launch_fd(l, view->mounts[i].fd, false)));
}

/* Programs that would wait for a person to type or to turn pages do not. */
static void add_manners(struct sandbox_launch *l)
{
        static const char *const manners[][2] = {
                { "LANG", "C.UTF-8" },
                { "TERM", "dumb" },
                { "GIT_TERMINAL_PROMPT", "0" },
                { "DEBIAN_FRONTEND", "noninteractive" },
                { "PAGER", "cat" },
                { "GIT_PAGER", "cat" },
        };

        for (size_t i = 0; i < COUNT(manners); i++)
                launch_env(l, manners[i][0], manners[i][1]);
}

/* Both spellings are in use; programs that know neither have no network. */
static int add_egress(struct sandbox_launch *l, struct error *err)
{
        static const char *const names[] = { "http_proxy", "https_proxy", "HTTP_PROXY",
                                             "HTTPS_PROXY", "ALL_PROXY" };
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return error_set(err, ERR_IO, "cannot make a socket: %s", strerror(errno));
        l->egress = fds[0];
        l->argv[l->argc++] = own(l, mem_printf("egress=%d", launch_fd(l, fds[1], true)));
        for (size_t i = 0; i < COUNT(names); i++)
                launch_env(l, names[i], "http://127.0.0.1:3128");
        launch_env(l, "NODE_USE_ENV_PROXY", "1"); /* Node's own fetch does not look otherwise */
        launch_env(l, "no_proxy", "localhost,127.0.0.1,::1");
        launch_env(l, "NO_PROXY", "localhost,127.0.0.1,::1");
        return 0;
}

/* ---- kinds ---- */

static void inherit(struct sandbox_launch *l, const char *name)
{
        const char *value = getenv(name);

        if (value)
                launch_env(l, name, value);
}

static int launch_host(struct sandbox_launch *l, const struct sandbox_conf *conf,
                       const struct workspace_view *view)
{
        bool own_user = geteuid() == 0 && !conf->as_daemon;

        launch_launcher(l, conf, NULL);
        if (view && view->channel_fd >= 0)
                l->argv[l->argc++] =
                        own(l, mem_printf("folder=%d", launch_fd(l, view->channel_fd, false)));
        launch_word(l, IMAGE_PATH);
        /* this limit counts all processes of a user, so it is only for one of the sandbox's own */
        launch_serve(l, conf, own_user);
        inherit(l, "PATH");
        launch_env(l, "HOME", own_user || !getenv("HOME") ? "/tmp" : getenv("HOME"));
        add_manners(l);
        return 0;
}

/*
 * The box is copied into the container and talks over `docker exec`. When the client here is
 * killed, docker closes the box's stdin, and the box ends its commands.
 */
static int launch_docker(struct sandbox_launch *l, const struct sandbox_conf *conf,
                         struct error *err)
{
        static const char script[] =
                "f=/tmp/.dragoman-box\n"
                "docker exec -i \"$1\" sh -c 'cat >\"$1.new\" && chmod 755 \"$1.new\" && "
                "mv -f \"$1.new\" \"$1\"' sh \"$f\" <" IMAGE_PATH " || exit\n"
                "c=$1; shift\n"
                "exec docker exec -i -e LANG=C.UTF-8 -e TERM=dumb -e GIT_TERMINAL_PROMPT=0 "
                "-e DEBIAN_FRONTEND=noninteractive -e PAGER=cat -e GIT_PAGER=cat "
                "\"$c\" \"$f\" \"$@\"";
        static const char *const for_client[] = {
                "PATH",
                "HOME",
                "DOCKER_HOST",
                "DOCKER_CONTEXT",
                "DOCKER_CONFIG",
                "DOCKER_CERT_PATH",
                "DOCKER_TLS_VERIFY",
                "XDG_RUNTIME_DIR",
        };
        const char *name = conf->kind + strlen("docker:");
        char *docker = process_find("docker");

        /* a name, never an option */
        if (!isalnum((unsigned char)name[0])) {
                free(docker);
                return error_set(err, ERR_INVALID,
                                 "sandbox.kind '%s' names no container: write \"docker:NAME\"",
                                 conf->kind);
        }
        if (!docker)
                return error_set(err, ERR_REFUSED,
                                 "the sandbox '%s' needs the program docker, which is not in PATH: "
                                 "install it, or set sandbox.kind to \"bwrap\"",
                                 conf->kind);
        free(docker);
        launch_word(l, "/bin/sh");
        launch_word(l, "-c");
        launch_word(l, script);
        launch_word(l, "sh");
        launch_word(l, name);
        launch_serve(l, conf, false); /* its user may be anybody there */
        for (size_t i = 0; i < COUNT(for_client); i++)
                inherit(l, for_client[i]);
        return 0;
}

int launch_prepare(struct sandbox_launch *l, const struct sandbox_conf *conf,
                   const struct workspace_view *view, struct error *err)
{
        int image = box_image_fd(err), rc;

        memset(l, 0, sizeof(*l));
        l->status = l->egress = -1;
        l->given = conf->env;
        if (image < 0)
                return -1;
        launch_fd(l, image, false);
        if (strcmp(conf->kind, "bwrap") == 0) {
                rc = launch_bwrap(l, conf, view, err);
                launch_word(l, IMAGE_PATH);
                launch_serve(l, conf, true);
                if (rc == 0 && conf->hosts.count > 0)
                        rc = add_egress(l, err);
                add_manners(l);
        } else if (strcmp(conf->kind, "host") == 0) {
                rc = launch_host(l, conf, view);
        } else if (strncmp(conf->kind, "docker:", 7) == 0) {
                rc = launch_docker(l, conf, err);
        } else {
                rc = error_set(err, ERR_REFUSED,
                               "commands are switched off: sandbox.kind is \"%s\"", conf->kind);
        }
        add_given(l);
        if (rc < 0)
                launch_release(l);
        return rc;
}

void launch_release(struct sandbox_launch *l)
{
        for (size_t i = 0; i < l->owned_count; i++)
                free(l->owned[i]);
        for (size_t i = 0; i < l->fd_count; i++)
                if (l->close_after[i])
                        close(l->fds[i].here);
        if (l->status >= 0)
                close(l->status);
        if (l->egress >= 0)
                close(l->egress);
        memset(l, 0, sizeof(*l));
        l->status = l->egress = -1;
}

/* ---- where commands run ---- */

/* The path here of what is mounted there. */
static char *path_here(const struct workspace_view *view, const char *inside)
{
        for (size_t i = view->count; i-- > 0;) {
                size_t n = strlen(view->mounts[i].inside);
                char link[64], path[PATH_MAX];
                ssize_t got;

                if (strncmp(inside, view->mounts[i].inside, n) != 0 ||
                    (inside[n] != '\0' && inside[n] != '/'))
                        continue;
                snprintf(link, sizeof(link), "/proc/self/fd/%d", view->mounts[i].fd);
                got = readlink(link, path, sizeof(path));
                if (got > 0 && (size_t)got < sizeof(path))
                        return mem_printf("%.*s%s", (int)got, path, inside + n);
        }
        return NULL;
}

char *launch_folder(const struct sandbox_conf *conf, const struct workspace_view *view,
                    const char *cwd)
{
        bool host = strcmp(conf->kind, "host") == 0;
        size_t n = view ? strlen(view->folder) : 0;
        char *here;

        if (!view)
                return mem_strdup(cwd ? cwd : "/tmp");
        if (!cwd)
                cwd = view->folder;
        if (cwd[0] != '/')
                return host ? mem_strdup(cwd) : mem_printf("%s/%s", view->folder, cwd);
        if (!host)
                return mem_strdup(cwd);
        /* the box was started in the channel's folder */
        if (strncmp(cwd, view->folder, n) == 0 && (cwd[n] == '\0' || cwd[n] == '/'))
                return mem_printf(".%s", cwd + n);
        here = path_here(view, cwd);
        return here ? here : mem_strdup(cwd); /* elsewhere on the host, by its own name */
}
