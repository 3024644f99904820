/*
 * store: what is durable.
 *
 * Callers hand over functions, not statements: a write function runs on the store's thread inside a
 * transaction together with all other writes that were waiting (group commit), the completion comes
 * back to the loop after the commit has reached the disk. Nothing may be acknowledged to anybody
 * before that completion.
 *
 *     static int add(struct store_tx *tx, void *arg, struct error *err) {
 *             struct store_stmt *s = store_prepare(tx, "INSERT INTO t(a) VALUES(?1)");
 *             store_bind_text(s, 1, ((struct job *)arg)->a);
 *             return store_run(s, err);
 *     }
 *     store_write(store, add, added, job);
 *
 * A write function touches only its argument, never loop state. It may run more than once before
 * its completion (when a neighbour in the same batch fails, the batch is undone and repeated), so
 * it computes its results anew each time. A statement that fails fails the function that ran it,
 * whatever the function returns. If it returns -1 its own changes are undone and its completion
 * gets the error; neighbours are not harmed. If the commit fails (disk full, I/O error) every write
 * of the batch gets the error; none has happened.
 *
 * SQL is the common subset of SQLite and PostgreSQL with ?1, ?2 ... parameters (ON CONFLICT,
 * RETURNING are fine).
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
/* err is NULL when it worked. Runs on the loop, in commit order. */
typedef void store_done_fn(void *arg, const struct error *err);

/* A step of the schema. Applied once, in order, each in its transaction. */
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
/* schema.c: all tables of the product, in one place */

struct store_options {
        const char *url; /* "sqlite" (file main.db in dir) or, later, "postgres://..." */
        const char *dir; /* the state directory */
        const struct store_migration *migrations; /* ended by version 0 */
        size_t max_queue; /* 0: 65536 writes; what is beyond gets ERR_LIMIT in its completion */
        size_t max_batch; /* 0: 1024 writes per transaction */
        bool read_only;   /* for commands that only look; no writer, no migration */
        bool skip_check;  /* no integrity check at start */
};

/*
 * Opens, checks integrity, migrates; blocks. The whole file is looked through when it is small, or
 * not too big and the last writer was killed; else only its newest rows. `l` may be NULL for tools
 * that use only the _now calls. ERR_CORRUPT, ERR_FULL, ERR_BUSY (another process has it),
 * ERR_INVALID (a newer schema); read_only also ERR_MISSING (nothing there), ERR_CONFLICT (an older
 * schema).
 */
struct store *store_open(struct loop *l, const struct store_options *options, struct error *err);
/*
 * Is somebody writing into the store now, in whichever process? 1 yes, 0 no, -1 could not find out.
 * Needs no open store and makes nothing.
 */
int store_has_writer(const struct store_options *options);
/* Checks the integrity of the whole database; blocks. ERR_CORRUPT when it is damaged. */
int store_check(struct store *s, struct error *err);
/*
 * Finishes what is queued (completions are run), gives up a running backup, then closes. Writes
 * asked for by those completions get ERR_CANCELLED. Not from inside a completion. NULL is fine.
 */
void store_close(struct store *s);

/*
 * On the loop thread. Both keep the loop alive and take `arg` over until done has run. done may be
 * NULL for writes nobody waits for.
 */
void store_write(struct store *s, store_fn *fn, store_done_fn *done, void *arg);
/* On the reader's thread and connection, which sees committed data only. */
void store_read(struct store *s, store_fn *fn, store_done_fn *done, void *arg);
/*
 * The same, waiting for it: for start-up and command-line tools, never from a running loop's
 * callbacks.
 */
int store_read_now(struct store *s, store_fn *fn, void *arg, struct error *err);
int store_write_now(struct store *s, store_fn *fn, void *arg, struct error *err);

/*
 * Statements, inside store functions only. `sql` must be a string constant: statements are cached
 * by its address, so asking for the same one again starts it over.
 */
struct store_stmt *store_prepare(struct store_tx *tx, const char *sql);
void store_bind_int(struct store_stmt *s, int at, int64_t value);
void store_bind_real(struct store_stmt *s, int at, double value);
/* NULL binds null; must live until the statement ran */
void store_bind_text(struct store_stmt *s, int at, const char *text);
void store_bind_textn(struct store_stmt *s, int at, const char *text, size_t n);
void store_bind_null(struct store_stmt *s, int at);
/*
 * 1: a row is there, 0: no more rows, -1: error. After 0 or -1 the statement is reset and its
 * bindings gone.
 */
int store_step(struct store_stmt *s, struct error *err);
/* Steps to the end, ignoring rows: 0 or -1. */
int store_run(struct store_stmt *s, struct error *err);
/*
 * Runs an INSERT into a table with an AUTOKEY. 1: a row was added and *key is its number; 0: it was
 * there already (ON CONFLICT DO NOTHING); -1. Much cheaper than RETURNING, for which SQLite makes
 * and drops a table of its own every time.
 */
int store_insert(struct store_stmt *s, int64_t *key, struct error *err);
/* The first number of the first row; `otherwise` when there is no row or it is null. 0 or -1. */
int store_number(struct store_stmt *s, int64_t otherwise, int64_t *out, struct error *err);
/* Leaves a statement before its last row. */
void store_reset(struct store_stmt *s);
/* Rows changed by the last statement of this transaction that ran to its end. */
int64_t store_changes(struct store_tx *tx);
int64_t store_col_int(struct store_stmt *s, int at); /* columns count from 0 */
double store_col_real(struct store_stmt *s, int at);
/* borrowed until the next step; NULL for null */
const char *store_col_text(struct store_stmt *s, int at);
size_t store_col_size(struct store_stmt *s, int at);
bool store_col_null(struct store_stmt *s, int at);

/*
 * A consistent copy while running, into a new file (ERR_CONFLICT if it exists); progress may be
 * NULL and is called on the loop.
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
