/*
 * number_row: the next unused turn or delivery number, reserved in blocks.
 */
#ifndef ROWS_NUMBER_ROW_H
#define ROWS_NUMBER_ROW_H

#include "rows/rows.h"

/* Reserves `count` numbers of "turn" or "delivery", from *first on. */
int number_row_reserve(struct store_tx *tx, const char *name, int64_t count, int64_t *first,
                       struct error *err);
/* Returns the numbers first to end - 1, unless later ones were reserved. */
int number_row_return(struct store_tx *tx, const char *name, int64_t first, int64_t end,
                      struct error *err);

#endif
