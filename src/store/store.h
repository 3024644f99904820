/*
 * store: the database.
 *
 * Callers submit functions, not statements. A write function runs on the writer thread, in one
 * transaction with all other queued writes (group commit); its completion runs on the loop once the
 * commit is on the disk. Acknowledge nothing before that completion.
 *
 *     static int rename(struct store_tx *tx, void *arg, struct error *err)
 *     {
 *             struct rename_job *j = arg;
 *
 *             return agent_row_rename(tx, j->id, j->name, err);
 *     }
 *     store_write(store, rename, on_renamed, job);
 *
 * Store functions call the typed functions of src/rows, which alone writes SQL (sql.h). They touch
 * only their argument, never loop state. A write function may run more than once before its
 * completion: if another one of the batch fails, the batch is rolled back and repeated; so it must
 * compute its results from scratch. A statement that fails fails the function that ran it, whatever
 * the function returns. If a function fails, its changes are undone and its completion gets the
 * error; others of the batch are not affected. If the commit fails (disk full, I/O error), every
 * write of the batch gets the error and none has happened.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"

struct store;
struct store_tx;
struct store_stmt;

typedef int store_fn(struct store_tx *tx, void *arg, struct error *err);
/* Runs on the loop, in commit order. err is NULL on success. */
typedef void store_done_fn(void *arg, const struct error *err);

/* A step of the schema. Steps are applied once, in order, each in its transaction. */
struct store_migration {
        int version; /* 1, 2, 3 ... without gaps */
        const char *name;
        /*
         * Statements separated by ;. The driver spells three words: AUTOKEY, a primary key the
         * database assigns and never reuses; INTKEY, a primary key we assign; TEXT, compared byte
         * by byte. Write BIGINT for other integers.
         */
        const char *sql;
};

struct store_options {
        const char *url; /* "sqlite" (file main.db in dir) or, later, "postgres://..." */
        const char *dir; /* the state directory */
        const struct store_migration *migrations; /* ended by version 0 */
        size_t max_queue; /* 0: 65536 writes; further ones get ERR_LIMIT in their completion */
        size_t max_batch; /* 0: 1024 writes per transaction */
        bool read_only;   /* no writer, no migration */
        bool skip_check;  /* no integrity check at start */
};

/*
 * Opens, checks integrity and migrates; blocks. Checks the whole database if it is small, or of
 * medium size and the last writer was killed; else only its newest rows. `l` may be NULL for tools
 * that only use the _now calls. ERR_CORRUPT, ERR_FULL, ERR_BUSY (another process has it),
 * ERR_INVALID (newer schema); if read_only also ERR_MISSING, ERR_CONFLICT (older schema).
 */
struct store *store_open(struct loop *l, const struct store_options *options, struct error *err);
/* Does any process have the store open for writing? 1 yes, 0 no, -1 unknown. Creates nothing. */
int store_has_writer(const struct store_options *options);
/* Checks the integrity of the whole database; blocks. ERR_CORRUPT when it is damaged. */
int store_check(struct store *s, struct error *err);
/*
 * Finishes what is queued and runs the completions, gives up a running backup, then closes. Jobs
 * that completions submit get ERR_CANCELLED. Not allowed inside a completion. NULL is fine.
 */
void store_close(struct store *s);

/*
 * On the loop thread. Both keep the loop alive and own `arg` until done has run. done may be NULL
 * for writes; then a failure is logged.
 */
void store_write(struct store *s, store_fn *fn, store_done_fn *done, void *arg);
/* On the reader's thread and connection: sees committed data only. */
void store_read(struct store *s, store_fn *fn, store_done_fn *done, void *arg);
/* The same, blocking: for start-up and command-line tools, never in the loop's callbacks. */
int store_read_now(struct store *s, store_fn *fn, void *arg, struct error *err);
int store_write_now(struct store *s, store_fn *fn, void *arg, struct error *err);
/* Frees what an idle store does not need: prepared statements and cached pages. */
void store_trim(struct store *s, store_done_fn *done, void *arg);

/* Deprecated, see legacy.c: use sql.h in src/rows. */
struct store_stmt *store_prepare(struct store_tx *tx, const char *sql);
void store_bind_int(struct store_stmt *s, int at, int64_t value);
void store_bind_real(struct store_stmt *s, int at, double value);
/* NULL binds null; must live until the statement ran */
void store_bind_text(struct store_stmt *s, int at, const char *text);
void store_bind_textn(struct store_stmt *s, int at, const char *text, size_t n);
void store_bind_null(struct store_stmt *s, int at);
int store_step(struct store_stmt *s, struct error *err);
int store_run(struct store_stmt *s, struct error *err);
int store_insert(struct store_stmt *s, int64_t *key, struct error *err);
int store_number(struct store_stmt *s, int64_t otherwise, int64_t *out, struct error *err);
void store_reset(struct store_stmt *s);
int64_t store_changes(struct store_tx *tx);
int64_t store_col_int(struct store_stmt *s, int at); /* columns count from 0 */
double store_col_real(struct store_stmt *s, int at);
/* borrowed until the next step; NULL for null */
const char *store_col_text(struct store_stmt *s, int at);
size_t store_col_size(struct store_stmt *s, int at);
bool store_col_null(struct store_stmt *s, int at);

/*
 * Copies the database while it is in use, into a new file (ERR_CONFLICT if it exists; ERR_REFUSED
 * if the driver has no backup). progress may be NULL and is called on the loop.
 */
void store_backup(struct store *s, const char *to_path, void (*progress)(void *arg, int percent),
                  store_done_fn *done, void *arg);

struct store_health {
        const char *driver;     /* "sqlite" */
        bool ok;                /* the last commit worked, and no damage was found */
        char why[200];          /* the last failure, "" when ok */
        uint64_t writes;        /* writes committed */
        uint64_t commits;       /* transactions */
        uint64_t failures;      /* failed commits */
        size_t queued;          /* writes waiting */
        int64_t last_commit_us; /* how long it took */
};
void store_health(const struct store *s, struct store_health *out);

#endif
