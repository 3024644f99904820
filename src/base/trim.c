#include "base/trim.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21 /* Linux 5.4 */
#endif

/* A mapping of a file that we cannot write to: code and constants. */
static int is_clean_file(const char *permissions, const char *path)
{
        return path[0] == '/' && permissions[0] == 'r' && permissions[1] == '-';
}

void trim_idle_memory(void)
{
        FILE *maps = fopen("/proc/self/maps", "re");
        char line[512];

        malloc_trim(0);
        if (!maps)
                return;
        while (fgets(line, sizeof(line), maps)) {
                char permissions[8], path[300] = "";
                uintptr_t from, to;

                if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %299s", &from, &to, permissions, path) < 3)
                        continue;
                /* an old kernel says no; then everything stays as it was */
                if (is_clean_file(permissions, path))
                        (void)!madvise((void *)from, to - from, MADV_PAGEOUT);
        }
        fclose(maps);
}
