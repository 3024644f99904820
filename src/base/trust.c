#include "base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_SIZE 64

/* "ada", or the number if it has no name. */
static const char *user_name(uid_t uid, char out[NAME_SIZE])
{
        char space[4096];
        struct passwd entry, *found = NULL;

        if (getpwuid_r(uid, &entry, space, sizeof(space), &found) == 0 && found)
                snprintf(out, NAME_SIZE, "%s", found->pw_name);
        else
                snprintf(out, NAME_SIZE, "%u", (unsigned)uid);
        return out;
}

int trust_judge(const struct stat *st, const char *path, uid_t self, struct error *err)
{
        char owner[NAME_SIZE], own[NAME_SIZE];

        if (st->st_uid != self && st->st_uid != 0)
                return error_set(err, ERR_REFUSED,
                                 "'%s' belongs to %s (user %u), who could decide what runs as %s; "
                                 "run as %s, or, if you trust what is in it: chown %s '%s'",
                                 path, user_name(st->st_uid, owner), (unsigned)st->st_uid,
                                 user_name(self, own), owner, own, path);
        if (!S_ISLNK(st->st_mode) && (st->st_mode & 022) != 0)
                return error_set(err, ERR_REFUSED,
                                 "'%s' may be written by others (mode %03o), who could decide what "
                                 "runs as %s; if you trust what is in it: chmod go-w '%s'",
                                 path, (unsigned)(st->st_mode & 0777), user_name(self, own), path);
        return 0;
}

static int link_refused(const char *path, struct error *err)
{
        return error_set(err, ERR_REFUSED,
                         "'%s' is a symbolic link, which is not followed; put what it leads to in "
                         "its place: cp --remove-destination -r \"$(realpath '%s')\" '%s'",
                         path, path, path);
}

/* 1; 0: there is none; -1. */
static int judge_link(const char *path, enum trust_links links, struct error *err)
{
        struct stat st;

        if (lstat(path, &st) < 0)
                return errno == ENOENT ? 0
                                       : error_set(err, ERR_IO, "cannot open '%s': %s", path,
                                                   strerror(errno));
        if (!S_ISLNK(st.st_mode))
                return 1;
        if (links == TRUST_NO_LINKS)
                return link_refused(path, err);
        return trust_judge(&st, path, geteuid(), err) < 0 ? -1 : 1;
}

int trust_check(const char *path, enum trust_links links, struct error *err)
{
        int rc = judge_link(path, links, err);
        struct stat st;

        if (rc <= 0)
                return rc;
        if (stat(path, &st) < 0)
                return errno == ENOENT ? 0
                                       : error_set(err, ERR_IO, "cannot open '%s': %s", path,
                                                   strerror(errno));
        return trust_judge(&st, path, geteuid(), err);
}

int trust_open(const char *path, enum trust_links links, int *fd, struct error *err)
{
        int rc = judge_link(path, links, err);
        struct stat st;

        *fd = -1;
        if (rc <= 0)
                return rc;
        *fd = open(path, O_RDONLY | O_CLOEXEC | (links == TRUST_NO_LINKS ? O_NOFOLLOW : 0));
        if (*fd < 0 && errno == ENOENT)
                return 0;
        if (*fd < 0 && errno == ELOOP && links == TRUST_NO_LINKS)
                return link_refused(path, err);
        if (*fd < 0 || fstat(*fd, &st) < 0)
                rc = error_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
        else
                rc = trust_judge(&st, path, geteuid(), err);
        if (rc == 0)
                return 1;
        if (*fd >= 0)
                close(*fd);
        *fd = -1;
        return -1;
}
