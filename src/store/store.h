/*
 * store: the database.
 *
 * Callers submit functions, not statements. A write function runs on the writer thread, in one
 * transaction with all other queued writes (group commit); its completion runs on the loop once the
 * commit is on the disk. Acknowledge nothing before that.
 *
 * Store functions call the typed functions of src/rows and touch only their argument. A write
 * function may run more than once before its completion (if another one of the batch fails), so it
 * must compute its results from scratch. If it fails, its changes are undone and its completion
 * gets the error; others are not affected. If the commit fails, every write of the batch gets the
 * error.
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

/* A step of the schema. Steps are applied once, in order; pending ones share a transaction. */
struct store_migration {
        int version; /* 1, 2, 3 ... without gaps */
        const char *name;
        /*
         * Statements separated by ;. The driver spells AUTOKEY (a primary key it assigns and never
         * reuses), INTKEY (one we assign) and TEXT (compared byte by byte).
         */
        const char *sql;
};

struct store_options {
        const char *url; /* "sqlite" (file main.db in dir) or, later, "postgres://..." */
        const char *dir; /* the state directory */
        const struct store_migration *migrations; /* ended by version 0 */
        size_t max_queue; /* 0: 65536 writes; further ones get ERR_LIMIT in their completion */
        size_t max_batch; /* 0: 1024 writes per transaction */
        /* Called with dir as soon as no other process can have the store; may be NULL. */
        void (*locked)(const char *dir);
        bool read_only;  /* no writer, no migration */
        bool skip_check; /* no integrity check at start */
};

/*
 * Opens, checks integrity and migrates; blocks. `l` may be NULL for tools that only use the _now
 * calls. ERR_CORRUPT, ERR_FULL, ERR_BUSY (another process has it), ERR_INVALID (newer schema); if
 * read_only also ERR_MISSING, ERR_CONFLICT (older schema).
 */
struct store *store_open(struct loop *l, const struct store_options *options, struct error *err);
/* Does any process have it open for writing? 1 yes, 0 no, -1 unknown. Creates nothing. */
int store_has_writer(const struct store_options *options);
/* Checks the whole database; blocks. ERR_CORRUPT when it is damaged. */
int store_check(struct store *s, struct error *err);
/*
 * Finishes what is queued, runs the completions, gives up a running backup. Jobs that completions
 * submit get ERR_CANCELLED. Not allowed inside a completion. NULL is fine.
 */
void store_close(struct store *s);

/* Both keep the loop alive until done has run. done NULL (writes only): a failure is logged. */
void store_write(struct store *s, store_fn *fn, store_done_fn *done, void *arg);
/* On the reader's thread and connection: sees committed data only. */
void store_read(struct store *s, store_fn *fn, store_done_fn *done, void *arg);
/* Blocking: for start-up and command-line tools. */
int store_read_now(struct store *s, store_fn *fn, void *arg, struct error *err);
int store_write_now(struct store *s, store_fn *fn, void *arg, struct error *err);
/* Frees what an idle store does not need: prepared statements and cached pages. */
void store_trim(struct store *s, store_done_fn *done, void *arg);

/* Copies the database while it is in use, into a new file. progress may be NULL. */
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
        size_t pending;         /* reads and writes whose completion has not run */
        int64_t last_commit_us; /* how long it took */
};
/* On the loop. */
void store_health(const struct store *s, struct store_health *out);

#endif
