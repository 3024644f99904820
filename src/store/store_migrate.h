/*
 * migrate: the steps of the schema and what the store notes about itself. Inside the store room
 * only.
 *
 * The table store_info holds the schema's version and whether the last writer closed in order.
 */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include "store/store_tx.h"

/* How a store was found. */
struct store_state {
        int version;  /* 0: new */
        bool unclean; /* the last writer did not close */
};

/* Makes store_info when it is missing and reads it. */
int store_state_read(struct store_tx *tx, struct store_state *state, struct error *err);
/* Only looks: ERR_MISSING when there is no store_info. */
int store_state_peek(struct store_tx *tx, struct store_state *state, struct error *err);
/* Notes that a writer is here (false) or has closed in order (true). */
int store_state_mark(struct store_tx *tx, bool clean, struct error *err);

/* ERR_INVALID when the store is newer than the program. */
int store_migrate_check(const struct store_migration *steps, int version, struct error *err);
/* Are there steps after `version`? */
bool store_migrate_pending(const struct store_migration *steps, int version);
/* Applies the steps after `version`, each in its transaction. */
int store_migrate(struct store_tx *tx, const struct store_migration *steps, int version,
                  struct error *err);
/* The step's SQL with AUTOKEY, INTKEY and TEXT in the driver's spelling; yours to free. */
char *store_migrate_spell(const struct store_driver *driver, const char *sql);

#endif
