/*
 * sqlite: what the files of the SQLite driver share.
 */
#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

#include <sqlite3.h>

#include "store/store_driver.h"

struct sqlite {
        struct store_conn base;
        sqlite3 *db;
        char *path;
        int lock_fd; /* -1 for readers */
        sqlite3_stmt *begin, *commit;
};

/* Sets *err from SQLite's last error; `doing` as in "commit to". Returns -1. */
int sqlite_fail(struct sqlite *c, const char *doing, struct error *err);
int sqlite_fail_at(sqlite3 *db, const char *path, const char *doing, struct error *err);
/* Runs an integrity check, e.g. "PRAGMA quick_check(1)". */
int sqlite_verify(sqlite3 *db, const char *path, const char *pragma, struct error *err);
/* Makes the entries of the folder that holds path durable. */
int sqlite_sync_folder(const char *path);
/* The VFS to open files with; NULL: SQLite's default. */
const char *sqlite_vfs(void);

/* sqlite_backup.c */
int sqlite_backup_step(struct store_conn *conn, const char *to_path, void **state, int *percent,
                       struct error *err);
void sqlite_backup_abort(struct store_conn *conn, void **state);

#ifdef DRAGOMAN_FAULTS
/* sqlite_fault.c: registers a VFS that fails when a test wants it to; returns its name. */
const char *sqlite_fault_vfs(void);
#endif

#endif
