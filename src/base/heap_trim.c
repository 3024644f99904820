#include "base/heap_trim.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21 /* Linux 5.4 */
#endif

/*
 * Code is as it is in the file: it can be dropped whoever else uses it, and comes back from the
 * kernel's cache. Among constants are pages that the loader has written to; the kernel is asked to
 * drop only what is clean and ours alone. 0: leave it.
 */
static int advice_for(const char *permissions, const char *path)
{
        if (path[0] != '/' || permissions[0] != 'r' || permissions[1] != '-')
                return 0;
        return permissions[2] == 'x' ? MADV_DONTNEED : MADV_PAGEOUT;
}

void heap_trim_freed(void)
{
        malloc_trim(0);
}

void heap_trim_idle(void)
{
        FILE *maps = fopen("/proc/self/maps", "re");
        char line[512];

        malloc_trim(0);
        if (!maps)
                return;
        while (fgets(line, sizeof(line), maps)) {
                char permissions[8], path[300] = "";
                uintptr_t from, to;
                int advice;

                if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %299s", &from, &to, permissions, path) <
                    3)
                        continue;
                advice = advice_for(permissions, path);
                if (advice != 0) /* an old kernel says no; then everything stays as it was */
                        (void)!madvise((void *)from, to - from, advice);
        }
        fclose(maps);
}
