/*
 * trust: checks owner and mode of files that control this program.
 *
 * The configuration names commands to run, and the state directory holds the operator key. Like
 * ssh, use them only if they belong to our user or to root, and other users may not write them.
 */
#ifndef BASE_TRUST_H
#define BASE_TRUST_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

/*
 * Checks the file found at `path` for a process of user `self`. ERR_REFUSED names the path, its
 * owner or mode, and the command that fixes it.
 */
int trust_judge(const struct stat *st, const char *path, uid_t self, struct error *err);

enum trust_links {
        TRUST_OWN_LINKS, /* a link of our user or root is followed, and its target is checked */
        TRUST_NO_LINKS,
};

/* A file or directory; fine when there is none. ERR_REFUSED, or ERR_IO. */
int trust_check(const char *path, enum trust_links links, struct error *err);
/* Opens for reading and checks what was opened. 1; 0: there is none; -1. */
int trust_open(const char *path, enum trust_links links, int *fd, struct error *err);

#endif
