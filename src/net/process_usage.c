#include "net/process_usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define FIELD_PARENT 1 /* after the name and the state, see proc(5) */
#define FIELD_UTIME  11
#define FIELD_STIME  12
#define FIELD_RSS    21
#define FIELDS       22

struct entry {
        int pid, parent, root; /* root: index of the process it is counted for; -1: none */
        long long ticks, pages;
};

/* False: it is gone. */
static bool read_entry(const char *pid, struct entry *e)
{
        char path[64], text[1024], *p;
        long long fields[FIELDS] = { 0 };
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
        if (n <= 0)
                return false;
        text[n] = '\0';
        p = strrchr(text, ')'); /* the name may contain anything */
        if (!p || strlen(p) < 4)
                return false;
        p += 4; /* ") S " */
        for (int i = FIELD_PARENT; i < FIELDS && *p; i++)
                fields[i] = strtoll(p, &p, 10);
        *e = (struct entry){ .pid = (int)strtol(pid, NULL, 10),
                             .parent = (int)fields[FIELD_PARENT],
                             .root = -1,
                             .ticks = fields[FIELD_UTIME] + fields[FIELD_STIME],
                             .pages = fields[FIELD_RSS] };
        return true;
}

static struct entry *read_all(size_t *count)
{
        DIR *dir = opendir("/proc");
        struct entry *all = NULL;
        struct dirent *d;
        size_t cap = 0;

        *count = 0;
        while (dir && (d = readdir(dir))) {
                if (d->d_name[0] < '1' || d->d_name[0] > '9')
                        continue;
                if (*count == cap) {
                        cap = cap ? cap * 2 : 256;
                        all = mem_realloc(all, cap * sizeof(*all));
                }
                if (read_entry(d->d_name, &all[*count]))
                        (*count)++;
        }
        if (dir)
                closedir(dir);
        return all;
}

static int by_pid(const void *a, const void *b)
{
        const struct entry *x = a, *y = b;

        return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Which of the list is above the process; -1: none. Parents are few, so it looks upwards. */
static int find_root(const struct entry *all, size_t count, const struct entry *e,
                     const struct process_usage *list, size_t n)
{
        for (int depth = 0; e && depth < 64; depth++) {
                struct entry key = { .pid = e->parent };

                for (size_t i = 0; i < n; i++)
                        if (list[i].pid == e->pid)
                                return (int)i;
                e = bsearch(&key, all, count, sizeof(*all), by_pid);
        }
        return -1;
}

void process_usage_read(struct process_usage *list, size_t n)
{
        long page = sysconf(_SC_PAGESIZE), hertz = sysconf(_SC_CLK_TCK);
        size_t count;
        struct entry *all = read_all(&count);

        if (count > 0)
                qsort(all, count, sizeof(*all), by_pid);
        for (size_t i = 0; i < n; i++)
                list[i] = (struct process_usage){ .pid = list[i].pid };
        for (size_t i = 0; i < count; i++) {
                int root = find_root(all, count, &all[i], list, n);

                if (root < 0)
                        continue;
                list[root].memory_bytes += all[i].pages * page;
                list[root].cpu_ms += all[i].ticks * 1000 / hertz;
                list[root].processes++;
        }
        free(all);
}
