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
 * Code pages equal the file and can always be dropped. Constants include pages that the loader has
 * written to, so let the kernel drop only clean private ones. 0: leave the mapping alone.
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
                if (advice != 0) /* old kernels refuse; harmless */
                        (void)!madvise((void *)from, to - from, advice);
        }
        fclose(maps);
}
