/*
 * The operator key: created at the first start, kept in a file that only its owner can read,
 * compared by its digest.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/core/auth.h"
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"

#define OPERATOR_PREFIX "dgm_"
#define KEY_RANDOM      40
#define KEY_SHORTEST    20 /* of a key that was written by hand */
#define KEY_LONGEST     200

static int create_key(const char *path, char *key, size_t size, struct error *err)
{
        char random[KEY_RANDOM + 1];

        snprintf(key, size, OPERATOR_PREFIX "%s", id_random_text(random, KEY_RANDOM));
        explicit_bzero(random, sizeof(random));
        if (file_write_line(path, key, err) < 0)
                return error_prefix(err, "cannot keep the operator key");
        log_info("operator key created", LOG_S("file", path));
        return 0;
}

/* A key that others could read is compromised; close the file and warn. */
static void close_file(int fd, const char *path)
{
        struct stat st;

        if (fstat(fd, &st) < 0 || (st.st_mode & 077) == 0)
                return;
        log_warn("operator key was readable by others; access removed. Delete the file for a new "
                 "key",
                 LOG_S("file", path));
        if (fchmod(fd, 0600) < 0)
                log_warn("cannot change the mode of the operator key", LOG_S("file", path));
}

/* 1 read, 0 there is none, -1. */
static int read_key(const char *path, char *key, size_t size, struct error *err)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        ssize_t n;

        if (fd < 0 && errno == ENOENT)
                return 0;
        if (fd < 0)
                return error_set(err, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
        close_file(fd, path);
        n = read(fd, key, size - 1);
        close(fd);
        if (n < 0)
                return error_set(err, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
        key[n] = '\0';
        key[strcspn(key, "\r\n")] = '\0';
        n = (ssize_t)strlen(key);
        if (n < KEY_SHORTEST || n > KEY_LONGEST)
                return error_set(
                        err, ERR_INVALID,
                        "'%s' must hold a key of %d to %d characters; delete it for a new one",
                        path, KEY_SHORTEST, KEY_LONGEST);
        for (const char *p = key; *p; p++)
                if (*p <= ' ' || *p > '~')
                        return error_set(
                                err, ERR_INVALID,
                                "'%s' must hold a key of printable characters without spaces",
                                path);
        return 1;
}

int operator_key_load(struct auth *a, const char *state_dir, struct error *err)
{
        char key[KEY_LONGEST + 8];
        char *path = mem_printf("%s/operator.key", state_dir);
        int rc = read_key(path, key, sizeof(key), err);

        if (rc == 0)
                rc = create_key(path, key, sizeof(key), err);
        if (rc >= 0) {
                log_hide(key, strlen(key));
                crypto_sha256(key, strlen(key), a->key_hash);
                key_unref(a->operator);
                a->operator= key_new("operator", "*", NULL);
        }
        explicit_bzero(key, sizeof(key));
        free(path);
        return rc < 0 ? -1 : 0;
}
