/*
 * offline: looks into the database of a directory on which no daemon runs. Reading only.
 */
#ifndef CLI_OFFLINE_H
#define CLI_OFFLINE_H

#include "store/store.h"

/* Runs fn inside a reading transaction. ERR_MISSING when there is no database yet; whatever fn says. */
int offline_read(const char *dir, store_fn *fn, void *arg, struct error *err);

#endif
