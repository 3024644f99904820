#include "platform/workspace.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

char *workspace_file(const char *dir, const char *path, struct error *err)
{
        char *root = mem_printf("%s/workspace", dir), *wanted = mem_printf("%s/%s", root, path);
        char real_root[PATH_MAX], real[PATH_MAX];
        bool inside = realpath(root, real_root) && realpath(wanted, real) &&
                      strncmp(real, real_root, strlen(real_root)) == 0 &&
                      real[strlen(real_root)] == '/';

        free(root);
        free(wanted);
        if (inside)
                return mem_strdup(real);
        error_set(err, ERR_MISSING, "there is no file '%.100s' in the workspace", path);
        return NULL;
}
