/*
 * scratch_folder: the channel's folder for files that results leave behind, where the agent can
 * read them. All calls block.
 */
#ifndef AGENT_WORKSPACE_SCRATCH_FOLDER_H
#define AGENT_WORKSPACE_SCRATCH_FOLDER_H

#include <stddef.h>

#include "base/error.h"

#define SCRATCH_FOLDER "scratch"

/*
 * Opens it, making it for the user of the sandbox if it is missing. The agent may have put anything
 * in its place, so no link is followed. -1: ERR_IO.
 */
int scratch_folder_open(int channel, struct error *err);
/* Makes a file for that user. -1: ERR_IO. */
int scratch_folder_make(int folder, const char *name, struct error *err);
/* Deletes all but the last `keep` files whose names begin with the prefix, in the order of names.
 */
void scratch_folder_trim(int folder, const char *prefix, size_t keep);

#endif
