/* workspace: the files agents may send to people. */
#ifndef PLATFORM_WORKSPACE_H
#define PLATFORM_WORKSPACE_H

#include "base/error.h"

/* The real path of a file, yours to free. NULL with an error: there is none, or it is outside. */
char *workspace_file(const char *dir, const char *path, struct error *err);

#endif
