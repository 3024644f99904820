/*
 * adapter_file: an adapter's small state file, and the lock on its token.
 *
 * The file holds what must survive a restart and is not in the store: which commands were
 * published, which chats moved, how an operator is reached. It is written rarely.
 */
#ifndef PLATFORM_ADAPTER_FILE_H
#define PLATFORM_ADAPTER_FILE_H

#include <jansson.h>

#include "base/error.h"
#include "base/secret.h"
#include "platform/platform.h"

/*
 * A descriptor that holds the lock. -1 with an error: another adapter or process of this data
 * directory has the token.
 */
int adapter_file_lock(const struct adapter *a, const struct secret *token, struct error *err);
/* -1 is fine. */
void adapter_file_unlock(int lock);
/* The object in state/<platform>-<adapter>.json; an empty one when there is none. Yours. */
json_t *adapter_file_read(const struct adapter *a);
/* Replaces the file atomically. A failure is logged, and the change is lost with the process. */
void adapter_file_write(const struct adapter *a, const json_t *state);

#endif
