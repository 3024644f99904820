#include "scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
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

void scratch_put(const char *dir, const char *name, const char *text)
{
        char *path = scratch_path(dir, name), *slash = strrchr(path, '/');
        FILE *f;

        *slash = '\0';
        file_make_dirs(path, NULL);
        *slash = '/';
        f = fopen(path, "w");
        if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
                perror(path);
                abort();
        }
        free(path);
}
