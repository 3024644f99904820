/*
 * schema: every table of the product, as numbered steps.
 *
 * What the row files have in common: functions return -1 with an error. _get: 1 and a copy in one
 * block to free(), or 0 and NULL. _list opens a statement; _next: 1 and a row that is borrowed
 * until the next step, or 0 at the end; _end leaves a list before that. _name and _parse convert
 * an enum to and from the stored text.
 */
#ifndef ROWS_SCHEMA_H
#define ROWS_SCHEMA_H

#include "store/store.h"

extern const struct store_migration schema_steps[]; /* ended by version 0 */

#endif
