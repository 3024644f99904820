/*
 * store_driver: what a database must do to be our store. Callers see store.h; this is for drivers.
 *
 * A driver is synchronous and knows nothing of threads, queues or the loop: each connection is used by one thread at a time.
 * The front end (store.c) has the writer and reader threads, the batches, retries of a batch without its failing member,
 * migrations and completions.
 */
#ifndef STORE_STORE_DRIVER_H
#define STORE_STORE_DRIVER_H

#include "store/store.h"

/* The driver's connection and statement begin with these. */
struct store_conn {
        const struct store_driver *driver;
};

enum store_mode { STORE_READ, STORE_WRITE };

struct store_driver {
        const char *scheme; /* "sqlite", "postgres": what store.url starts with */
        const char *auto_key; /* "INTEGER PRIMARY KEY AUTOINCREMENT" */
        const char *int_key;  /* "INTEGER PRIMARY KEY" */

        struct store_conn *(*open)(const struct store_options *options, enum store_mode mode, struct error *err);
        void (*close)(struct store_conn *c);
        int (*check)(struct store_conn *c, struct error *err); /* integrity; ERR_CORRUPT */
        int (*script)(struct store_conn *c, const char *sql, struct error *err); /* several statements, no parameters */

        int (*begin)(struct store_conn *c, struct error *err);
        int (*commit)(struct store_conn *c, struct error *err);
        void (*rollback)(struct store_conn *c);

        struct store_stmt *(*prepare)(struct store_conn *c, const char *sql, struct error *err);
        void (*finalize)(struct store_stmt *s);
        void (*bind_int)(struct store_stmt *s, int at, int64_t value);
        void (*bind_real)(struct store_stmt *s, int at, double value);
        void (*bind_text)(struct store_stmt *s, int at, const char *text, size_t n); /* text NULL: null */
        int (*step)(struct store_stmt *s, struct error *err);
        void (*reset)(struct store_stmt *s);
        int64_t (*changes)(struct store_conn *c);
        int64_t (*col_int)(struct store_stmt *s, int at);
        double (*col_real)(struct store_stmt *s, int at);
        const char *(*col_text)(struct store_stmt *s, int at, size_t *n);

        /* Copies the whole database; called repeatedly on its own connection until it returns 0 (1: more to do, *percent set; -1). NULL: not offered. */
        int (*backup_step)(struct store_conn *c, const char *to_path, void **state, int *percent, struct error *err);
};

extern const struct store_driver store_sqlite;

/* Every statement begins with this. */
struct store_stmt_base {
        const struct store_driver *driver;
};

#endif
