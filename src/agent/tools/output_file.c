#include "agent/tools/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/workspace/scratch_folder.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/mem.h"

#define WAITING_MAX (1 << 20) /* bytes that wait for the disk; more are left out */

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
        f->path = mem_printf("%s/" SCRATCH_FOLDER "/%s", v->folder, f->name);
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

static int make_file(struct output_file *f)
{
        int folder = scratch_folder_open(f->channel, &f->err);

        if (folder < 0)
                return -1;
        scratch_folder_trim(folder, OUTPUT_FILE_NAME, OUTPUT_FILES - 1);
        f->fd = scratch_folder_make(folder, f->name, &f->err);
        close(folder);
        return f->fd;
}

static void write_on_pool(void *arg)
{
        struct output_file *f = arg;

        if (f->err.kind != ERR_NONE || (f->fd < 0 && make_file(f) < 0))
                return;
        if (file_write(f->fd, f->writing.data, f->writing.len) < 0)
                error_set(&f->err, ERR_IO, "cannot write it: %s", strerror(errno));
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
        if (!f->working && f->waiting.len == 0 && (f->fd >= 0 || f->err.kind != ERR_NONE)) {
                f->working = true; /* nothing to do, but never at once */
                loop_defer(f->loop, on_written, f);
        } else {
                pump(f);
        }
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
