/*
 * adapter_memory: what an adapter must remember over a restart besides the store, and the lock on
 * its token.
 *
 * Rare and small: which commands were registered, where a chat has moved to, where an operator is
 * reached.
 */
#ifndef PLATFORM_ADAPTER_FILE_H
#define PLATFORM_ADAPTER_FILE_H

#include <jansson.h>

#include "base/error.h"
#include "base/secret.h"
#include "platform/platform.h"

/*
 * A descriptor that holds the lock, or -1 with a sentence: another adapter or process of this data
 * directory has the token.
 */
int adapter_file_lock(const struct adapter *a, const struct secret *token, struct error *err);
/* -1 is fine. */
void adapter_file_unlock(int lock);
/* The object in state/<platform>-<adapter>.json; an empty one when there is none. Yours. */
json_t *adapter_file_read(const struct adapter *a);
/*
 * Replaces the file in one step; a failure is logged, and the memory lives on until the process
 * ends.
 */
void adapter_file_write(const struct adapter *a, const json_t *memory);

#endif
