/*
 * child_path: opens files and folders that the settings list.
 *
 * An agent could put a link in the place of one, and the next start would mount what it leads to.
 * So no link is followed that stands in a folder which agents can change.
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
#include "base/mem.h"

#define LINKS_MAX 40 /* as the kernel */

char *child_path_of(int fd, struct error *err)
{
        char link[40], path[PATH_MAX];
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n > 0)
                return mem_strndup(path, (size_t)n);
        error_set(err, ERR_IO, "cannot find out where a folder is: %s", strerror(errno));
        return NULL;
}

/* Is the path that of the folder, or below it? `folder` may lead there by links. */
static bool is_below(const char *path, const char *folder)
{
        char *real = realpath(folder, NULL);
        size_t n = real ? strlen(real) : 0;
        bool below = real && strncmp(path, real, n) == 0 && (path[n] == '/' || path[n] == '\0');

        free(real);
        return below;
}

static bool can_change(const struct child_agent *o, int folder)
{
        const struct setting_list *writable = &o->conf->sandbox.writable;
        char *path = child_path_of(folder, &(struct error){ 0 });
        char *workspace = mem_printf("%s/workspace", o->agent->dir);
        bool can = !path || is_below(path, workspace) ||
                   (o->conf->cwd[0] == '/' && is_below(path, o->conf->cwd));

        for (size_t i = 0; !can && i < writable->count; i++) {
                char *outside = child_path_outside(writable->items[i]);

                can = is_below(path, outside);
                free(outside);
        }
        free(workspace);
        free(path);
        return can;
}

static bool is_link(int fd)
{
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

/* The way of a path through its folders. */
struct walk {
        const struct child_agent *agent;
        int at;     /* the folder so far; -1: it failed */
        int error;  /* then: errno */
        char *rest; /* of the path */
        unsigned links;
};

/* Takes both; fd -1: with errno. */
static void go_to(struct walk *w, int fd, char *rest)
{
        w->error = errno;
        close(w->at);
        free(w->rest);
        w->at = fd;
        w->rest = rest;
}

/* Takes the descriptor of the link. */
static void follow(struct walk *w, int link, const char *rest)
{
        char target[PATH_MAX];
        int from = -1;
        ssize_t n = -1;

        if (++w->links > LINKS_MAX || can_change(w->agent, w->at))
                errno = ELOOP;
        else
                n = readlinkat(link, "", target, sizeof(target) - 1);
        if (n >= 0) {
                target[n] = '\0';
                from = openat(w->at, target[0] == '/' ? "/" : ".", O_PATH | O_CLOEXEC);
        }
        close(link);
        go_to(w, from, n >= 0 ? mem_printf("%s%s", target, rest) : NULL);
}

static void step(struct walk *w)
{
        char *name = w->rest + strspn(w->rest, "/");
        size_t n = strcspn(name, "/");
        char *rest = mem_strdup(name + n);
        int fd;

        name[n] = '\0';
        fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && is_link(fd)) {
                follow(w, fd, rest);
                free(rest);
        } else {
                go_to(w, fd, rest);
        }
}

char *child_path_outside(const char *entry)
{
        return mem_strndup(entry, strcspn(entry, ":"));
}

int child_path_open(const struct child_agent *o, const char *path, const char *setting,
                    struct error *err)
{
        struct walk w = { .agent = o,
                          .at = open("/", O_PATH | O_CLOEXEC),
                          .rest = mem_strdup(path) };

        while (w.at >= 0 && w.rest[strspn(w.rest, "/")])
                step(&w);
        if (w.at < 0 && w.error == ELOOP)
                error_set(err, ERR_REFUSED,
                          "cannot open '%s' (%s): it is, or lies behind, a link in a folder that "
                          "agents can change",
                          path, setting);
        else if (w.at < 0)
                error_set(err, ERR_MISSING, "cannot open '%s' (%s): %s", path, setting,
                          strerror(w.error));
        free(w.rest);
        return w.at;
}
