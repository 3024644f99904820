/*
 * Copies a SQLite store while it is in use.
 *
 * Holds one read transaction from the first page to the last: otherwise SQLite restarts the copy
 * whenever another connection commits, and a busy store would never finish. The copy gets its name
 * only when it is complete, checked and on the disk.
 */
#include "store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "base/mem.h"

#define PAGES_PER_STEP 256
#define PART_RANDOM    16

struct copy {
        char *path; /* its final name, for errors */
        char *part; /* its name while it is incomplete: random, so it cannot be predicted */
        int fd;     /* the part as we made it; -1: not yet */
        sqlite3 *to;
        sqlite3_backup *pages;
        bool holds_snapshot;
};

void sqlite_backup_abort(struct store_conn *conn, void **state)
{
        struct copy *copy = *state;

        *state = NULL;
        if (!copy)
                return;
        sqlite3_backup_finish(copy->pages);
        sqlite3_close(copy->to);
        if (copy->holds_snapshot)
                sqlite3_exec(((struct sqlite *)conn)->db, "COMMIT", NULL, NULL, NULL);
        if (copy->fd >= 0) {
                close(copy->fd);
                unlink(copy->part); /* else it is not ours */
        }
        free(copy->part);
        free(copy->path);
        free(copy);
}

/* ERR_INVALID: the caller should choose another path. */
static enum error_kind kind_of(int number)
{
        switch (number) {
        case ENOSPC:
                return ERR_FULL;
        case EEXIST:
                return ERR_CONFLICT;
        case ENOENT:
        case ENOTDIR:
        case EISDIR:
        case EACCES:
        case EPERM:
        case EROFS:
        case ENAMETOOLONG:
                return ERR_INVALID;
        default:
                return ERR_IO;
        }
}

static int system_fail(const char *path, struct error *err)
{
        return error_set(err, kind_of(errno), "cannot write backup '%s': %s", path,
                         errno == ENOENT ? "its folder does not exist" : strerror(errno));
}

static int copy_start(struct sqlite *c, struct copy *copy, const char *to_path, struct error *err)
{
        struct stat st;

        if (lstat(to_path, &st) == 0) {
                errno = EEXIST;
                return system_fail(to_path, err);
        }
        copy->fd = open(copy->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (copy->fd < 0)
                return system_fail(copy->path, err);
        if (sqlite3_exec(c->db, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) !=
            SQLITE_OK)
                return sqlite_fail(c, "read", err);
        copy->holds_snapshot = true;
        if (sqlite3_open_v2(copy->part, &copy->to, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE,
                            sqlite_vfs()) != SQLITE_OK ||
            sqlite3_exec(copy->to, "PRAGMA synchronous=OFF", NULL, NULL, NULL) != SQLITE_OK)
                return sqlite_fail_at(copy->to, copy->path, "open", err);
        copy->pages = sqlite3_backup_init(copy->to, "main", c->db, "main");
        return copy->pages ? 0 : sqlite_fail_at(copy->to, copy->path, "write to", err);
}

/* Has the part been exchanged, where others may write? */
static bool is_ours(const struct copy *copy)
{
        struct stat made, named;

        return fstat(copy->fd, &made) == 0 && lstat(copy->part, &named) == 0 &&
               S_ISREG(named.st_mode) && made.st_dev == named.st_dev &&
               made.st_ino == named.st_ino && made.st_nlink == 1;
}

/* Leaves WAL mode, so that the copy is one file, checks all of it, and gives it its name. */
static int copy_finish(struct copy *copy, const char *to_path, struct error *err)
{
        int rc = sqlite3_backup_finish(copy->pages);

        copy->pages = NULL;
        if (rc != SQLITE_OK ||
            sqlite3_exec(copy->to, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL) != SQLITE_OK)
                return sqlite_fail_at(copy->to, copy->path, "write to", err);
        if (sqlite_verify(copy->to, copy->path, "PRAGMA integrity_check(1)", err) != 0)
                return -1;
        sqlite3_close(copy->to);
        copy->to = NULL;
        if (!is_ours(copy))
                return error_set(err, ERR_REFUSED,
                                 "backup '%s' was given up: its file was exchanged meanwhile",
                                 copy->path);
        /* link, unlike rename, does not replace a file that has appeared meanwhile */
        if (fsync(copy->fd) != 0 || link(copy->part, to_path) != 0 ||
            sqlite_sync_folder(to_path) != 0)
                return system_fail(to_path, err);
        return 0;
}

static int copy_step(struct copy *copy, const char *to_path, int *percent, struct error *err)
{
        int total;

        switch (sqlite3_backup_step(copy->pages, PAGES_PER_STEP)) {
        case SQLITE_OK:
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                total = sqlite3_backup_pagecount(copy->pages);
                *percent = total > 0
                                   ? (int)(100LL * (total - sqlite3_backup_remaining(copy->pages)) /
                                           total)
                                   : 0;
                return 1;
        case SQLITE_DONE:
                *percent = 100;
                return copy_finish(copy, to_path, err);
        default:
                sqlite3_backup_finish(copy->pages); /* moves the error to the connection */
                copy->pages = NULL;
                return sqlite_fail_at(copy->to, copy->path, "write to", err);
        }
}

int sqlite_backup_step(struct store_conn *conn, const char *to_path, void **state, int *percent,
                       struct error *err)
{
        struct sqlite *c = (struct sqlite *)conn;
        struct copy *copy = *state;
        char random[PART_RANDOM + 1];
        int rc;

        if (!copy) {
                copy = mem_zalloc(sizeof(*copy));
                copy->path = mem_strdup(to_path);
                copy->part = mem_printf("%s.part-%s", to_path,
                                        id_random_text(random, sizeof(random) - 1));
                copy->fd = -1;
                *state = copy;
                rc = copy_start(c, copy, to_path, err) == 0 ? 1 : -1;
                *percent = 0;
        } else {
                rc = copy_step(copy, to_path, percent, err);
        }
        if (rc <= 0)
                /* removes the part file in either case: a finished copy has its name */
                sqlite_backup_abort(conn, state);
        return rc;
}
