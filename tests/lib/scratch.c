#include "scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

char *scratch_new(void)
{
        const char *tmp = getenv("TMPDIR");
        char *dir = mem_printf("%s/dragoman-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");

        if (!mkdtemp(dir)) {
                perror("mkdtemp");
                abort();
        }
        return dir;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
        (void)st;
        (void)type;
        (void)where;
        return remove(path);
}

void scratch_free(char *dir)
{
        nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        free(dir);
}

char *scratch_path(const char *dir, const char *name)
{
        return mem_printf("%s/%s", dir, name);
}
