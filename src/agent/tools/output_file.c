#include "agent/tools/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"

#define WAITING_MAX (1 << 20) /* bytes that wait for the disk; more are left out */
#define SCANNED_MAX 10000     /* names in the scratch folder */

struct output_file {
        struct loop *loop;
        int channel, fd; /* fd -1: not made yet */
        char *path;      /* inside */
        char name[64];
        struct buf waiting, writing;
        size_t kept;
        bool working, left_out, finished;
        struct error err;
        output_file_fn *done; /* NULL: dropped */
        void *arg;
};

struct output_file *output_file_new(struct loop *l, const struct workspace_view *v)
{
        struct output_file *f = mem_zalloc(sizeof(*f));
        unsigned char salt[4];

        f->loop = l;
        f->fd = -1;
        f->channel = fcntl(v->channel_fd, F_DUPFD_CLOEXEC, 3);
        if (f->channel < 0)
                error_set(&f->err, ERR_IO, "%s", strerror(errno));
        id_random_bytes(salt, sizeof(salt));
        /* sorted by name is sorted by time */
        snprintf(f->name, sizeof(f->name), OUTPUT_FILE_NAME "%013lld-%02x%02x%02x%02x.txt",
                 (long long)clock_wall_ms(), salt[0], salt[1], salt[2], salt[3]);
        f->path = mem_printf("%s/scratch/%s", v->folder, f->name);
        buf_init(&f->waiting, 0);
        buf_init(&f->writing, 0);
        return f;
}

static void free_file(struct output_file *f)
{
        if (f->fd >= 0)
                close(f->fd);
        if (f->channel >= 0)
                close(f->channel);
        buf_release(&f->waiting);
        buf_release(&f->writing);
        free(f->path);
        free(f);
}

/* ---- on a pool thread ---- */

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Makes room for one more. */
static void remove_oldest(int folder)
{
        char *names[SCANNED_MAX / 10];
        size_t n = 0, scanned = 0;
        const struct dirent *e;
        DIR *d = fdopendir(fcntl(folder, F_DUPFD_CLOEXEC, 3));

        if (!d)
                return;
        while (n < COUNT(names) && scanned++ < SCANNED_MAX && (e = readdir(d)))
                if (strncmp(e->d_name, OUTPUT_FILE_NAME, strlen(OUTPUT_FILE_NAME)) == 0)
                        names[n++] = mem_strdup(e->d_name);
        closedir(d);
        qsort(names, n, sizeof(names[0]), by_name);
        for (size_t i = 0; i < n; i++) {
                if (n - i >= OUTPUT_FILES)
                        unlinkat(folder, names[i], 0);
                free(names[i]);
        }
}

/* The agent may have put anything in its place, so no link is followed. */
static int open_scratch(int channel, struct error *err)
{
        bool made = mkdirat(channel, "scratch", 0700) == 0;
        int fd = beneath_open(channel, "scratch", O_RDONLY | O_DIRECTORY, 0);

        if (fd >= 0 && made && workspace_give(fd, err) < 0) {
                close(fd);
                return -1;
        }
        if (fd < 0)
                error_set(err, ERR_IO, "cannot open the folder scratch: %s", strerror(errno));
        return fd;
}

static int make_file(struct output_file *f)
{
        int folder = open_scratch(f->channel, &f->err);

        if (folder < 0)
                return -1;
        remove_oldest(folder);
        f->fd = openat(folder, f->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (f->fd < 0)
                error_set(&f->err, ERR_IO, "cannot make a file in scratch: %s", strerror(errno));
        else
                workspace_give(f->fd, &f->err);
        close(folder);
        return f->fd;
}

static void write_on_pool(void *arg)
{
        struct output_file *f = arg;
        const char *p = f->writing.data;
        size_t n = f->writing.len;

        if (f->err.kind != ERR_NONE || (f->fd < 0 && make_file(f) < 0))
                return;
        while (n > 0) {
                ssize_t done = write(f->fd, p, n);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0) {
                        error_set(&f->err, ERR_IO, "cannot write it: %s", strerror(errno));
                        return;
                }
                p += done;
                n -= (size_t)done;
        }
}

/* ---- on the loop ---- */

static void pump(struct output_file *f);

static void on_written(void *arg)
{
        struct output_file *f = arg;

        f->working = false;
        buf_clear(&f->writing);
        pump(f);
}

static void pump(struct output_file *f)
{
        struct buf empty = f->writing;

        if (f->working)
                return;
        if (f->waiting.len > 0 || (f->finished && f->fd < 0 && f->err.kind == ERR_NONE)) {
                f->writing = f->waiting;
                f->waiting = empty;
                f->working = true;
                loop_work(f->loop, write_on_pool, on_written, f);
        } else if (f->finished) {
                if (f->done)
                        f->done(f->arg, f->err.kind == ERR_NONE ? f->path : NULL, f->err.text);
                free_file(f);
        }
}

void output_file_add(struct output_file *f, const char *bytes, size_t n)
{
        static const char mark[] = "\n[more output was left out here]\n";

        if (f->kept + n > OUTPUT_FILE_BYTES || f->waiting.len + n > WAITING_MAX) {
                if (!f->left_out)
                        buf_add(&f->waiting, mark, sizeof(mark) - 1);
                f->left_out = true;
        } else {
                f->kept += n;
                f->left_out = false;
                buf_add(&f->waiting, bytes, n);
        }
        pump(f);
}

void output_file_finish(struct output_file *f, output_file_fn *done, void *arg)
{
        f->done = done;
        f->arg = arg;
        f->finished = true;
        if (!f->working && f->waiting.len == 0 && (f->fd >= 0 || f->err.kind != ERR_NONE))
                loop_defer(f->loop, on_written, f); /* nothing to do, but never at once */
        else
                pump(f);
}

void output_file_drop(struct output_file *f)
{
        if (!f)
                return;
        f->done = NULL;
        f->finished = true;
        if (!f->working)
                free_file(f);
}
