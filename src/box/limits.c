#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "box/box.h"

/* The server itself has none, so that it can still start, stop and report when a limit is met. */
static struct {
        const char *name;
        unsigned resource;
        rlim_t unit, value; /* value 0: none */
} limits[] = {
        { "cpu", RLIMIT_CPU, 1, 0 },           /* seconds, per process */
        { "memory", RLIMIT_DATA, 1 << 20, 0 }, /* MiB, per process */
        { "processes", RLIMIT_NPROC, 1, 0 },   /* in the sandbox's user namespace */
        { "file", RLIMIT_FSIZE, 1 << 20, 0 },  /* MiB, per file */
        { "open", RLIMIT_NOFILE, 1, 0 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool read_limit(const char *word)
{
        for (size_t i = 0; i < COUNT(limits); i++) {
                size_t n = strlen(limits[i].name);

                if (strncmp(word, limits[i].name, n) != 0 || word[n] != '=')
                        continue;
                limits[i].value = strtoull(word + n + 1, NULL, 10);
                return true;
        }
        return false;
}

char **limits_read(char **argv)
{
        while (*argv && read_limit(*argv))
                argv++;
        return argv;
}

void limits_apply(bool no_writes)
{
        const struct rlimit none = { 0, 0 };
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        /* if memory runs out, commands are killed before the daemon and its neighbours */
        if (fd >= 0) {
                ssize_t written = write(fd, "500", 3);

                (void)written;
                close(fd);
        }
        setrlimit(RLIMIT_CORE, &none);
        if (no_writes && setrlimit(RLIMIT_FSIZE, &none) < 0)
                _exit(126);
        for (size_t i = 0; i < COUNT(limits); i++) {
                rlim_t at = limits[i].value * limits[i].unit;
                struct rlimit both = { at, at };

                if (no_writes && limits[i].resource == RLIMIT_FSIZE)
                        continue;
                if (at > 0 && setrlimit(limits[i].resource, &both) < 0)
                        _exit(126); /* never without a limit that was asked for */
        }
}
