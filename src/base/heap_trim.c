#include "base/heap_trim.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21 /* Linux 5.4 */
#endif

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

                if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %299s", &from, &to, permissions, path) <
                    3)
                        continue;
                if (path[0] != '/' || permissions[0] != 'r' || permissions[1] != '-')
                        continue;
                /*
                 * Code pages equal the file and can be dropped. The loader has written to some
                 * pages of constants; MADV_PAGEOUT drops only clean ones, or fails on old kernels.
                 */
                (void)!madvise((void *)from, to - from,
                               permissions[2] == 'x' ? MADV_DONTNEED : MADV_PAGEOUT);
        }
        fclose(maps);
}
