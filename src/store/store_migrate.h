/*
 * store_migrate: the steps of the schema, and the store's own state. For the store alone.
 *
 * The table store_info holds the schema's version and whether the last writer closed in order.
 */
#ifndef STORE_STORE_MIGRATE_H
#define STORE_STORE_MIGRATE_H

#include "store/store_tx.h"

struct store_state {
        int version;  /* 0: new */
        bool unclean; /* the last writer did not close */
};

/* Creates store_info if it is missing, and reads it. */
int store_migrate_read_state(struct store_tx *tx, struct store_state *state, struct error *err);
/* Only reads: ERR_MISSING if there is no store_info. */
int store_migrate_peek_state(struct store_tx *tx, struct store_state *state, struct error *err);
/* false: a writer is active; true: it has closed in order. */
int store_migrate_mark_clean(struct store_tx *tx, bool clean, struct error *err);

/* ERR_INVALID if the store is newer than the program. */
int store_migrate_check(const struct store_migration *steps, int version, struct error *err);
/* Are there steps after `version`? */
bool store_migrate_is_pending(const struct store_migration *steps, int version);
/* Applies the steps after `version`, each in its transaction. */
int store_migrate(struct store_tx *tx, const struct store_migration *steps, int version,
                  struct error *err);
/* The step's SQL with AUTOKEY, INTKEY and TEXT in the driver's spelling; yours to free. */
char *store_migrate_spell(const struct store_driver *driver, const char *sql);

#endif
