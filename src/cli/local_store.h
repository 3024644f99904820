/*
 * offline: looks into the database of a directory, whether a daemon runs on it or not. Reading
 * only.
 */
#ifndef CLI_LOCAL_STORE_H
#define CLI_LOCAL_STORE_H

#include "store/store.h"

/* ERR_MISSING when there is no database yet. store_close it. */
struct store *local_store_open(const char *dir, struct error *err);
/* Does a daemon run on this directory? 1, 0, or -1: could not find out. */
int local_store_has_daemon(const char *dir);
/* Runs fn inside a reading transaction. ERR_MISSING as above; whatever fn says. */
int local_store_read(const char *dir, store_fn *fn, void *arg, struct error *err);

#endif
