/*
 * store_driver: what a database must do to be our store. Callers see store.h; this is for drivers.
 *
 * A driver is synchronous and knows nothing of threads, queues or the loop: each connection is used
 * by one thread at a time. Parameters are ?1, ?2 ....
 */
#ifndef STORE_STORE_DRIVER_H
#define STORE_STORE_DRIVER_H

#include <sys/queue.h>

#include "store/sql.h"
#include "store/store.h"

/* The driver's connection begins with this. */
struct store_conn {
        const struct store_driver *driver;
};

/* The driver's statement begins with this; prepare sets `driver`, the rest starts as zero. */
struct store_stmt {
        const struct store_driver *driver; /* NULL: it could not be prepared */
        struct store_tx *tx;
        const char *sql;              /* its address is the key of the cache */
        bool touched;                 /* has bindings or a row: reset it before using it again */
        LIST_ENTRY(store_stmt) entry; /* among the touched statements of tx */
};

enum store_mode { STORE_READ, STORE_WRITE };

struct store_driver {
        const char *scheme; /* "sqlite", "postgres": what store.url starts with */
        /* Spellings of the schema's AUTOKEY, INTKEY and TEXT. */
        const char *auto_key;  /* "INTEGER PRIMARY KEY AUTOINCREMENT" */
        const char *int_key;   /* "INTEGER PRIMARY KEY" */
        const char *text_type; /* "TEXT"; compares bytes, so PostgreSQL needs COLLATE "C" */

        /* STORE_WRITE also creates what is missing and keeps other writers out (ERR_BUSY). */
        struct store_conn *(*open)(const struct store_options *options, enum store_mode mode,
                                   struct error *err);
        /* See store_has_writer. */
        int (*has_writer)(const struct store_options *options);
        void (*close)(struct store_conn *c);
        /* Checks integrity: ERR_CORRUPT. Only samples a database over max_bytes (0: no limit). */
        int (*check)(struct store_conn *c, int64_t max_bytes, struct error *err);
        /* Runs several statements without parameters. */
        int (*script)(struct store_conn *c, const char *sql, struct error *err);
        /* Frees caches. */
        void (*trim)(struct store_conn *c);

        int (*begin)(struct store_conn *c, struct error *err);
        int (*commit)(struct store_conn *c, struct error *err);
        /* Does no harm if the database has already rolled back. */
        void (*rollback)(struct store_conn *c);

        struct store_stmt *(*prepare)(struct store_conn *c, const char *sql, struct error *err);
        void (*finalize)(struct store_stmt *s);
        /* Borrows a text until the statement is reset. */
        void (*bind)(struct store_stmt *s, int at, const struct sql_value *value);
        /*
         * Runs the statement to its end. exec may only queue it: its error then comes with a later
         * statement or the commit. update returns how many rows changed; insert: see sql_insert.
         */
        int (*exec)(struct store_stmt *s, struct error *err);
        int64_t (*update)(struct store_stmt *s, struct error *err);
        int (*insert)(struct store_stmt *s, int64_t *key, struct error *err);
        /* 1: a row is there; 0: the end; -1. */
        int (*step)(struct store_stmt *s, struct error *err);
        /* Drops bindings and the rest of the result. */
        void (*reset)(struct store_stmt *s);
        /* Reads column `at` (from 0) as `type`; {0} for null. A text lives until the next step. */
        struct sql_value (*column)(struct store_stmt *s, int at, enum sql_type type);

        /*
         * Copies the database, called repeatedly while it returns 1. *state is NULL at first and is
         * freed with 0 or -1. NULL if the driver has no backup.
         */
        int (*backup_step)(struct store_conn *c, const char *to_path, void **state, int *percent,
                           struct error *err);
        /* Gives up between two steps: frees *state and removes what was written. */
        void (*backup_abort)(struct store_conn *c, void **state);
};

extern const struct store_driver store_sqlite;

#endif
