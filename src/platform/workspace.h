/*
 * workspace: the files agents may hand to people.
 */
#ifndef PLATFORM_WORKSPACE_H
#define PLATFORM_WORKSPACE_H

#include "base/error.h"

/*
 * The real path of a file in the workspace of a data directory, yours to free; NULL: there is none,
 * or it is elsewhere.
 */
char *workspace_file(const char *dir, const char *path, struct error *err);

#endif
