#include "agent/workspace/projection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/file.h"
#include "base/id.h"
#include "base/mem.h"

#define BLOCK    ((int64_t)65536)
#define LAST_MAX ((int64_t)16 << 20) /* bytes searched for the end of the last line but one */

static int fail(const char *what, const char *name, struct error *err)
{
        enum error_kind kind = errno == ENOSPC || errno == EDQUOT   ? ERR_FULL
                               : errno == EMFILE || errno == ENFILE ? ERR_LIMIT
                                                                    : ERR_IO;

        return error_set(err, kind, "cannot %s '%s': %s", what, name, strerror(errno));
}

bool projection_can_retry(const struct error *err)
{
        return err->kind == ERR_FULL || err->kind == ERR_LIMIT;
}

/* Whatever an agent put there keeps existing under another name. */
static int open_file(int folder, const char *name, struct stat *st)
{
        const int flags = O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY;
        char mark[9], *aside;
        int fd = beneath_open(folder, name, flags, 0644);

        if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_nlink == 1)
                return fd;
        if (fd < 0 && errno != ELOOP && errno != EISDIR && errno != ENXIO && errno != EACCES)
                return -1;
        if (fd >= 0)
                close(fd);
        aside = mem_printf("%s.%s.aside", name, id_random_text(mark, sizeof(mark) - 1));
        fd = -1;
        if (renameat(folder, name, folder, aside) == 0)
                fd = beneath_open(folder, name, flags | O_EXCL, 0644);
        free(aside);
        return fd >= 0 && fstat(fd, st) == 0 ? fd : -1;
}

/* Where the line that ends before `end` begins; -1: it is too long, or cannot be read. */
static int64_t line_start(int fd, int64_t end)
{
        char *block = mem_alloc((size_t)BLOCK);
        int64_t at = end, found = -1;

        while (found < 0 && at > 0 && end - at < LAST_MAX) {
                int64_t n = at < BLOCK ? at : BLOCK;
                const char *nl = NULL;

                at -= n;
                if (pread(fd, block, (size_t)n, at) != n)
                        break;
                nl = memrchr(block, '\n', (size_t)n);
                if (nl)
                        found = at + (nl - block) + 1;
                else if (at == 0)
                        found = 0;
        }
        free(block);
        return end == 0 ? 0 : found;
}

/* Removes a line without an end, then reads the last one. */
static int read_last(struct projection *p, const char *name, struct error *err)
{
        int64_t start = line_start(p->fd, p->size);
        char *room;

        if (start >= 0 && start < p->size) {
                if (ftruncate(p->fd, start) < 0)
                        return fail("mend", name, err);
                p->size = start;
        }
        if (start < 0 || p->size == 0)
                return start < 0 ? error_set(err, ERR_CORRUPT, "'%s' has a line of more than %d MB",
                                             name, (int)(LAST_MAX >> 20))
                                 : 0;
        start = line_start(p->fd, p->size - 1);
        if (start < 0)
                return 0; /* nothing of ours */
        room = buf_reserve(&p->last, (size_t)(p->size - start));
        if (pread(p->fd, room, (size_t)(p->size - start), start) != p->size - start)
                return fail("read", name, err);
        buf_grew(&p->last, (size_t)(p->size - start - 1));
        return 0;
}

int projection_open(struct projection *p, int folder, const char *name, struct error *err)
{
        struct stat st = { 0 };

        buf_init(&p->last, 0);
        p->fd = open_file(folder, name, &st);
        if (p->fd < 0)
                return fail("open", name, err);
        p->size = st.st_size;
        if (read_last(p, name, err) == 0)
                return 0;
        projection_close(p);
        return -1;
}

int projection_append(struct projection *p, const char *text, size_t n, struct error *err)
{
        size_t done = 0;

        while (done < n) {
                ssize_t one = pwrite(p->fd, text + done, n - done, p->size + (int64_t)done);

                if (one < 0 && errno == EINTR)
                        continue;
                if (one < 0) {
                        fail("write to", "the file", err);
                        (void)!ftruncate(p->fd, p->size);
                        return -1;
                }
                done += (size_t)one;
        }
        p->size += (int64_t)n;
        return 0;
}

void projection_close(struct projection *p)
{
        if (p->fd >= 0)
                close(p->fd);
        p->fd = -1;
        buf_release(&p->last);
}

/* The file itself stays: sandboxes have it mounted. */
int projection_rotate(int folder, const char *name, struct error *err)
{
        const char *dot = strrchr(name, '.');
        char *old = mem_printf("%.*s.1%s", (int)(dot - name), name, dot),
             *part = mem_printf("%s.part", old);
        int from = beneath_open(folder, name, O_RDWR | O_NONBLOCK, 0), to = -1, rc = -1;
        struct stat st;

        if (from < 0 || (fstat(from, &st) == 0 &&
                         (st.st_size == 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1))) {
                rc = 0; /* there is nothing to keep */
                goto out;
        }
        unlinkat(folder, part, 0);
        to = beneath_open(folder, part, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (to >= 0 && file_copy(from, to) == 0 && renameat(folder, part, folder, old) == 0)
                rc = ftruncate(from, 0);
        if (rc < 0)
                fail("put aside", name, err);
out:
        if (to >= 0)
                close(to);
        if (from >= 0)
                close(from);
        free(old);
        free(part);
        return rc;
}
