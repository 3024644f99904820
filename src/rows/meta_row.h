/*
 * meta_row: single values by key.
 */
#ifndef ROWS_META_ROW_H
#define ROWS_META_ROW_H

#include "rows/rows.h"

/* 1: *value is yours to free; 0: no such key, *value is NULL; -1. */
int meta_row_get(struct store_tx *tx, const char *key, char **value, struct error *err);
int meta_row_put(struct store_tx *tx, const char *key, const char *value, struct error *err);
/* Keeps an existing value. */
int meta_row_put_new(struct store_tx *tx, const char *key, const char *value, struct error *err);

#endif
