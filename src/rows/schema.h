/*
 * schema: all tables, as numbered steps.
 */
#ifndef ROWS_SCHEMA_H
#define ROWS_SCHEMA_H

#include "store/store.h"

extern const struct store_migration schema_steps[]; /* ended by version 0 */

#endif
