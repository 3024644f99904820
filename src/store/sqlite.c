/*
 * The SQLite driver: one file in WAL mode with synchronous=FULL, so a commit is on the disk when it
 * returns.
 *
 * The daemon locks the file `lock` beside the database. SQLite's own locks would let two daemons
 * take turns on one store, which is correct for the file but not for what they keep in memory.
 */
#include "store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define LOCK_TRIES    10 /* another process may hold it for a moment, see sqlite_has_writer */
#define LOCK_PAUSE_US 10000
#define BUSY_MS       2000 /* another program may be reading the file */

struct sqlite_stmt {
        struct store_stmt base;
        sqlite3_stmt *raw;
        struct sqlite *conn;
};

static sqlite3_stmt *raw_of(struct store_stmt *s)
{
        return ((struct sqlite_stmt *)s)->raw;
}

/* --- errors --- */

static enum error_kind kind_of(sqlite3 *db)
{
        switch (sqlite3_errcode(db)) {
        case SQLITE_FULL:
                return ERR_FULL;
        case SQLITE_IOERR:
        case SQLITE_CANTOPEN:
                return sqlite3_system_errno(db) == ENOSPC ? ERR_FULL : ERR_IO;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return ERR_BUSY;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
                return ERR_CORRUPT;
        case SQLITE_CONSTRAINT:
                return ERR_CONFLICT;
        case SQLITE_READONLY:
        case SQLITE_PERM:
                return ERR_REFUSED;
        default:
                return ERR_INTERNAL;
        }
}

int sqlite_fail_at(sqlite3 *db, const char *path, const char *doing, struct error *err)
{
        enum error_kind kind = kind_of(db);

        if (kind == ERR_CORRUPT)
                return error_set(
                        err, kind,
                        "store '%s' is damaged: %s: restore it from a backup, or move it away to "
                        "start empty",
                        path, sqlite3_errmsg(db));
        return error_set(err, kind, "cannot %s store '%s': %s", doing, path, sqlite3_errmsg(db));
}

int sqlite_fail(struct sqlite *c, const char *doing, struct error *err)
{
        return sqlite_fail_at(c->db, c->path, doing, err);
}

/* --- opening --- */

static void set_up_library(void)
{
        /* memory statistics take a lock around every allocation */
        sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
        sqlite3_initialize();
}

const char *sqlite_vfs(void)
{
#ifdef DRAGOMAN_FAULTS
        return sqlite_fault_vfs();
#else
        return NULL;
#endif
}

int sqlite_sync_folder(const char *path)
{
        char *copy = mem_strdup(path);
        int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int rc = fd >= 0 ? fsync(fd) : -1;

        if (fd >= 0)
                close(fd);
        free(copy);
        return rc;
}

/* The lock ends with the process. The file holds its number for the error message. */
static int take_lock(struct sqlite *c, const struct store_options *options, struct error *err)
{
        const char *dir = options->dir;
        char *path = mem_printf("%s/lock", dir), pid[24];
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), rc = -1;
        ssize_t n;

        free(path);
        if (fd < 0)
                return error_set(err, errno == ENOSPC ? ERR_FULL : ERR_IO,
                                 "cannot lock the store in '%s': %s", dir, strerror(errno));
        for (int i = 0; i < LOCK_TRIES && (rc = flock(fd, LOCK_EX | LOCK_NB)) != 0; i++)
                usleep(LOCK_PAUSE_US);
        if (rc != 0) {
                n = pread(fd, pid, sizeof(pid) - 1, 0);
                close(fd);
                pid[n > 0 ? n : 0] = '\0';
                pid[strcspn(pid, "\n")] = '\0';
                return error_set(
                        err, ERR_BUSY,
                        "the store in '%s' is in use by process %s: only one daemon may run on it",
                        dir, pid[0] ? pid : "(unknown)");
        }
        c->lock_fd = fd;
        if (options->locked)
                options->locked(dir);
        if (ftruncate(fd, 0) == 0)
                dprintf(fd, "%d\n", (int)getpid());
        return 0;
}

/* Takes the lock for a moment, shared with other processes that ask. */
static int sqlite_has_writer(const struct store_options *options)
{
        char *path = mem_printf("%s/lock", options->dir);
        int fd = open(path, O_RDONLY | O_CLOEXEC), held = -1;

        free(path);
        if (fd < 0)
                return errno == ENOENT ? 0 : -1;
        if (flock(fd, LOCK_SH | LOCK_NB) == 0)
                held = 0;
        else if (errno == EWOULDBLOCK)
                held = 1;
        close(fd);
        return held;
}

/* Creates the file before SQLite does, so that it is never readable by others. */
static int create_file(struct sqlite *c, const struct store_options *options, struct error *err)
{
        const char *dir = options->dir;
        int fd;

        if (mkdir(dir, 0700) != 0 && errno != EEXIST)
                return error_set(err, ERR_IO, "cannot create folder '%s': %s", dir,
                                 strerror(errno));
        if (take_lock(c, options, err) != 0)
                return -1;
        fd = open(c->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST)
                return 0;
        if (fd < 0)
                return error_set(err, errno == ENOSPC ? ERR_FULL : ERR_IO,
                                 "cannot create store '%s': %s", c->path, strerror(errno));
        close(fd);
        if (sqlite_sync_folder(c->path) != 0)
                return error_set(err, ERR_IO, "cannot sync folder '%s': %s", dir, strerror(errno));
        return 0;
}

static int set_up(struct sqlite *c, enum store_mode mode, struct error *err)
{
        static const char *const common = "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0;";
        static const char *const reader = "PRAGMA query_only=1; PRAGMA cache_size=-1024;";
        /* Debian's build overwrites deleted rows with zeros by default */
        static const char *const writer =
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF;"
                "PRAGMA journal_size_limit=16777216; PRAGMA cache_size=-2048;";

        sqlite3_busy_timeout(c->db, BUSY_MS);
        sqlite3_extended_result_codes(c->db, 0);
        sqlite3_db_config(c->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
        sqlite3_db_config(c->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
        sqlite3_db_config(c->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
        sqlite3_db_config(c->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        if (sqlite3_exec(c->db, common, NULL, NULL, NULL) != SQLITE_OK ||
            sqlite3_exec(c->db, mode == STORE_WRITE ? writer : reader, NULL, NULL, NULL) !=
                    SQLITE_OK)
                return sqlite_fail(c, "set up", err);
        /* IMMEDIATE: a busy file is an error at once, not in the middle of a batch */
        if (sqlite3_prepare_v3(c->db, mode == STORE_WRITE ? "BEGIN IMMEDIATE" : "BEGIN", -1,
                               SQLITE_PREPARE_PERSISTENT, &c->begin, NULL) != SQLITE_OK ||
            sqlite3_prepare_v3(c->db, "COMMIT", -1, SQLITE_PREPARE_PERSISTENT, &c->commit, NULL) !=
                    SQLITE_OK)
                return sqlite_fail(c, "set up", err);
        return 0;
}

static void sqlite_close(struct store_conn *conn)
{
        struct sqlite *c = (struct sqlite *)conn;

        sqlite3_finalize(c->begin);
        sqlite3_finalize(c->commit);
        sqlite3_close(c->db);
        if (c->lock_fd >= 0)
                close(c->lock_fd);
        free(c->path);
        free(c);
}

static struct store_conn *sqlite_open(const struct store_options *options, enum store_mode mode,
                                      struct error *err)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        struct sqlite *c = mem_zalloc(sizeof(*c));
        /* a reader of a WAL database writes to its shared index, unless it is read-only */
        int flags = SQLITE_OPEN_NOMUTEX |
                    (options->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
        int rc = 0;

        pthread_once(&once, set_up_library);
        c->base.driver = &store_sqlite;
        c->lock_fd = -1;
        c->path = mem_printf("%s/main.db", options->dir);
        if (mode == STORE_WRITE)
                rc = create_file(c, options, err);
        if (rc == 0 && access(c->path, F_OK) != 0)
                rc = error_set(err, ERR_MISSING, "there is no store '%s'", c->path);
        if (rc == 0 && sqlite3_open_v2(c->path, &c->db, flags, sqlite_vfs()) != SQLITE_OK)
                rc = sqlite_fail(c, "open", err);
        if (rc == 0 && set_up(c, mode, err) == 0)
                return &c->base;
        sqlite_close(&c->base);
        return NULL;
}

/* --- integrity --- */

int sqlite_verify(sqlite3 *db, const char *path, const char *pragma, struct error *err)
{
        sqlite3_stmt *s = NULL;
        int rc = 0;

        if (sqlite3_prepare_v2(db, pragma, -1, &s, NULL) != SQLITE_OK ||
            sqlite3_step(s) != SQLITE_ROW)
                rc = sqlite_fail_at(db, path, "check", err);
        else if (strcmp((const char *)sqlite3_column_text(s, 0), "ok") != 0)
                rc = error_set(
                        err, ERR_CORRUPT,
                        "store '%s' is damaged: %s: restore it from a backup, or move it away to "
                        "start empty",
                        path, (const char *)sqlite3_column_text(s, 0));
        sqlite3_finalize(s);
        return rc;
}

static int64_t ask_number(struct sqlite *c, const char *sql)
{
        sqlite3_stmt *s = NULL;
        int64_t n = -1;

        if (sqlite3_prepare_v2(c->db, sql, -1, &s, NULL) == SQLITE_OK &&
            sqlite3_step(s) == SQLITE_ROW)
                n = sqlite3_column_int64(s, 0);
        sqlite3_finalize(s);
        return n;
}

/* Reads the newest rows of each table: those being written when the process or machine died. */
static int sample(struct sqlite *c, struct error *err)
{
        sqlite3_stmt *s = NULL;
        int rc = 0;

        if (sqlite3_prepare_v2(c->db, "SELECT name FROM sqlite_schema WHERE type = 'table'", -1, &s,
                               NULL) != SQLITE_OK)
                return sqlite_fail(c, "read", err);
        while (rc == 0 && sqlite3_step(s) == SQLITE_ROW) {
                char *sql = sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY rowid DESC LIMIT 64",
                                            sqlite3_column_text(s, 0));

                if (sqlite3_exec(c->db, sql, NULL, NULL, NULL) != SQLITE_OK)
                        rc = sqlite_fail(c, "read", err);
                sqlite3_free(sql);
        }
        if (sqlite3_finalize(s) != SQLITE_OK && rc == 0)
                rc = sqlite_fail(c, "read", err);
        return rc;
}

static int sqlite_check(struct store_conn *conn, int64_t max_bytes, struct error *err)
{
        struct sqlite *c = (struct sqlite *)conn;
        int64_t pages = ask_number(c, "PRAGMA page_count");
        int64_t page_size = ask_number(c, "PRAGMA page_size");

        if (pages < 0 || page_size < 0)
                return sqlite_fail(c, "read", err);
        if (max_bytes > 0 && pages * page_size > max_bytes)
                return sample(c, err);
        return sqlite_verify(c->db, c->path, "PRAGMA quick_check(1)", err);
}

/* --- transactions --- */

static int sqlite_script(struct store_conn *conn, const char *sql, struct error *err)
{
        struct sqlite *c = (struct sqlite *)conn;

        return sqlite3_exec(c->db, sql, NULL, NULL, NULL) == SQLITE_OK
                       ? 0
                       : sqlite_fail(c, "change", err);
}

static int run_once(struct sqlite *c, sqlite3_stmt *s, const char *doing, struct error *err)
{
        int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : sqlite_fail(c, doing, err);

        sqlite3_reset(s);
        return rc;
}

static int sqlite_begin(struct store_conn *conn, struct error *err)
{
        struct sqlite *c = (struct sqlite *)conn;

        return run_once(c, c->begin, "begin a transaction in", err);
}

static int sqlite_commit(struct store_conn *conn, struct error *err)
{
        struct sqlite *c = (struct sqlite *)conn;

        /* after some errors SQLite has rolled back, and COMMIT would succeed without effect */
        if (sqlite3_get_autocommit(c->db))
                return error_set(err, ERR_IO, "cannot commit to store '%s': it was rolled back",
                                 c->path);
        return run_once(c, c->commit, "commit to", err);
}

static void sqlite_rollback(struct store_conn *conn)
{
        struct sqlite *c = (struct sqlite *)conn;

        if (!sqlite3_get_autocommit(c->db))
                sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
}

static void sqlite_trim(struct store_conn *conn)
{
        sqlite3_db_release_memory(((struct sqlite *)conn)->db);
}

/* --- statements --- */

static struct store_stmt *sqlite_prepare(struct store_conn *conn, const char *sql,
                                         struct error *err)
{
        struct sqlite *c = (struct sqlite *)conn;
        struct sqlite_stmt *s = mem_zalloc(sizeof(*s));

        if (sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->raw, NULL) !=
            SQLITE_OK) {
                sqlite_fail(c, "prepare a statement for", err);
                free(s);
                return NULL;
        }
        s->base.driver = &store_sqlite;
        s->conn = c;
        return &s->base;
}

static void sqlite_finalize(struct store_stmt *s)
{
        sqlite3_finalize(raw_of(s));
        free(s);
}

static void sqlite_bind(struct store_stmt *s, int at, const struct sql_value *v)
{
        switch (v->type) {
        case SQL_TYPE_NULL:
                sqlite3_bind_null(raw_of(s), at);
                break;
        case SQL_TYPE_INT:
                sqlite3_bind_int64(raw_of(s), at, v->number);
                break;
        case SQL_TYPE_REAL:
                sqlite3_bind_double(raw_of(s), at, v->real);
                break;
        case SQL_TYPE_TEXT:
                sqlite3_bind_text64(raw_of(s), at, v->text, v->size, SQLITE_STATIC, SQLITE_UTF8);
                break;
        }
}

static int sqlite_step(struct store_stmt *s, struct error *err)
{
        switch (sqlite3_step(raw_of(s))) {
        case SQLITE_ROW:
                return 1;
        case SQLITE_DONE:
                return 0;
        default:
                return sqlite_fail(((struct sqlite_stmt *)s)->conn, "use", err);
        }
}

static void sqlite_reset(struct store_stmt *s)
{
        sqlite3_reset(raw_of(s));
        sqlite3_clear_bindings(raw_of(s));
}

static int sqlite_exec(struct store_stmt *s, struct error *err)
{
        int rc;

        while ((rc = sqlite_step(s, err)) == 1)
                ;
        return rc;
}

static int64_t sqlite_update(struct store_stmt *s, struct error *err)
{
        if (sqlite_exec(s, err) < 0)
                return -1;
        return sqlite3_changes64(((struct sqlite_stmt *)s)->conn->db);
}

/* Much cheaper than RETURNING, for which SQLite creates and drops a table every time. */
static int sqlite_insert(struct store_stmt *s, int64_t *key, struct error *err)
{
        int64_t added = sqlite_update(s, err);

        if (added > 0)
                *key = sqlite3_last_insert_rowid(((struct sqlite_stmt *)s)->conn->db);
        return added > 0 ? 1 : (int)added;
}

static struct sql_value sqlite_column(struct store_stmt *s, int at, enum sql_type type)
{
        sqlite3_stmt *raw = raw_of(s);

        if (sqlite3_column_type(raw, at) == SQLITE_NULL)
                return SQL_NULL;
        switch (type) {
        case SQL_TYPE_INT:
                return SQL_INT(sqlite3_column_int64(raw, at));
        case SQL_TYPE_REAL:
                return SQL_REAL(sqlite3_column_double(raw, at));
        case SQL_TYPE_TEXT:
                return (struct sql_value){ .type = type,
                                           .text = (const char *)sqlite3_column_text(raw, at) };
        case SQL_TYPE_NULL:
                break;
        }
        return SQL_NULL;
}

const struct store_driver store_sqlite = {
        .scheme = "sqlite",
        .auto_key = "INTEGER PRIMARY KEY AUTOINCREMENT",
        .int_key = "INTEGER PRIMARY KEY",
        .text_type = "TEXT",
        .open = sqlite_open,
        .has_writer = sqlite_has_writer,
        .close = sqlite_close,
        .check = sqlite_check,
        .script = sqlite_script,
        .trim = sqlite_trim,
        .begin = sqlite_begin,
        .commit = sqlite_commit,
        .rollback = sqlite_rollback,
        .prepare = sqlite_prepare,
        .finalize = sqlite_finalize,
        .bind = sqlite_bind,
        .exec = sqlite_exec,
        .update = sqlite_update,
        .insert = sqlite_insert,
        .step = sqlite_step,
        .reset = sqlite_reset,
        .column = sqlite_column,
        .backup_step = sqlite_backup_step,
        .backup_abort = sqlite_backup_abort,
};
