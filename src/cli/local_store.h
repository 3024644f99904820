/*
 * local_store: reads the store of a data directory, with or without a daemon.
 */
#ifndef CLI_LOCAL_STORE_H
#define CLI_LOCAL_STORE_H

#include "store/store.h"

/* Close with store_close. ERR_MISSING when there is no database yet. */
struct store *local_store_open(const char *dir, struct error *err);
/* 1 yes, 0 no, -1 could not find out. */
int local_store_has_daemon(const char *dir);
/* Runs fn in a read transaction. */
int local_store_read(const char *dir, store_fn *fn, void *arg, struct error *err);

#endif
