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

/*
 * The kind and the sentence for what SQLite said last about this connection; `doing` as in "cannot
 * commit to". Returns -1.
 */
int sqlite_fail(struct sqlite *c, const char *doing, struct error *err);
/* The same without a connection of ours. */
int sqlite_fail_at(sqlite3 *db, const char *path, const char *doing, struct error *err);
/* Runs "PRAGMA quick_check(1)" or the like and compares the answer with "ok". */
int sqlite_verify(sqlite3 *db, const char *path, const char *pragma, struct error *err);
/* Makes the entries of the folder that holds path durable. */
int sqlite_sync_folder(const char *path);
/* The name of the VFS to open files with; NULL is SQLite's own. */
const char *sqlite_vfs(void);

/* sqlite_backup.c */
int sqlite_backup_step(struct store_conn *conn, const char *to_path, void **state, int *percent,
                       struct error *err);
void sqlite_backup_abort(struct store_conn *conn, void **state);

#ifdef DRAGOMAN_FAULTS
/*
 * sqlite_fault.c: registers the VFS whose disk fills up and whose fsync fails when the test says
 * so; returns its name.
 */
const char *sqlite_fault_vfs(void);
#endif

#endif
