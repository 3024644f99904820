/*
 * Events are deleted by age and stream, so a log may have lines of events that are gone between
 * lines of events that are not. All lines before the first number from which the journal is
 * complete are kept; later ones are made anew.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/workspace/log_file.h"
#include "agent/workspace/log_record.h"
#include "base/beneath.h"
#include "base/mem.h"
#include "road/channel_folder.h"
#include "rows/journal_row.h"

#define PAGE      500
#define LINE_MOST ((size_t)16 << 20)
#define NEW_NAME  LOG_FILE_NAME ".new"

/* ---- what the journal has ---- */

struct first {
        int64_t seq[STREAM_COUNT]; /* of the first event with a payload; 0: none yet */
};

static void on_first(void *arg, const struct bus_event *e)
{
        struct first *f = arg;
        int stream = bus_stream_of(e->type);

        if (stream >= 0 && f->seq[stream] == 0 && strcmp(e->payload, "{}") != 0)
                f->seq[stream] = e->seq;
}

/* From where on the streams are complete; INT64_MAX: there is nothing. */
static int complete_from(struct store_tx *tx, int64_t *out, struct error *err)
{
        static const unsigned streams[] = { STREAM_MESSAGE, STREAM_DELIVERY, STREAM_SCHEDULE };

        *out = 0;
        for (size_t i = 0; i < COUNT(streams); i++) {
                struct bus_filter filter = { .streams = 1u << streams[i] };
                struct first first = { 0 };
                int64_t scanned = 0;

                do {
                        filter.after = scanned;
                        if (bus_read(tx, &filter, PAGE, on_first, &first, &scanned, err) < 0)
                                return -1;
                } while (scanned > filter.after && first.seq[streams[i]] == 0);
                if (first.seq[streams[i]] > *out)
                        *out = first.seq[streams[i]];
        }
        if (*out == 0)
                *out = INT64_MAX;
        return 0;
}

/* ---- what is kept ---- */

struct rebuild_run {
        struct log_target to;
        int64_t from;
        struct log_rebuild *report;
        struct bus_event *events[PAGE];
        size_t count;
        int rc;
        struct error *err;
};

static int copy_kept(struct rebuild_run *b, FILE *in, FILE *out)
{
        char *line = NULL;
        size_t cap = 0;
        ssize_t n;

        while ((n = getline(&line, &cap, in)) > 0) {
                if (line[n - 1] != '\n' || (size_t)n > LINE_MOST ||
                    log_record_event(line, (size_t)n) >= b->from)
                        continue;
                if (fwrite(line, 1, (size_t)n, out) != (size_t)n)
                        break;
                b->report->kept++;
        }
        free(line);
        return ferror(in) || ferror(out) ? -1 : 0;
}

static int prune_file(struct rebuild_run *b, int folder, const char *place)
{
        int64_t size;
        int from = beneath_open_file(folder, place, LOG_FILE_NAME, INT64_MAX, &size, NULL), to, rc;
        FILE *in, *out;

        if (from < 0)
                return 0; /* none, or not ours */
        unlinkat(folder, NEW_NAME, 0);
        to = beneath_open(folder, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (to < 0) {
                close(from);
                return error_set(b->err, ERR_IO, "cannot write in '%s': %s", place,
                                 strerror(errno));
        }
        in = fdopen(from, "r");
        out = fdopen(to, "w");
        rc = copy_kept(b, in, out);
        fclose(in);
        if (fclose(out) != 0)
                rc = -1;
        if (rc == 0)
                rc = renameat(folder, NEW_NAME, folder, LOG_FILE_NAME);
        b->report->channels++;
        return rc < 0 ? error_set(b->err, ERR_IO, "cannot write '%s/" LOG_FILE_NAME "': %s", place,
                                  strerror(errno))
                      : 0;
}

static int each_folder(int at, const char *path, int (*fn)(struct rebuild_run *, int, const char *),
                       struct rebuild_run *b)
{
        int fd = beneath_open(at, path, O_RDONLY | O_DIRECTORY, 0), rc = 0;
        DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *e;

        while (d && rc == 0 && (e = readdir(d))) {
                char *place = mem_printf("%s/%s", path, e->d_name);
                int folder = e->d_name[0] == '.'
                                     ? -1
                                     : beneath_open(at, place, O_RDONLY | O_DIRECTORY, 0);

                if (folder >= 0) {
                        rc = fn(b, at, place);
                        close(folder);
                }
                free(place);
        }
        if (d)
                closedir(d);
        return rc;
}

static int prune_channel(struct rebuild_run *b, int root, const char *place)
{
        int folder = beneath_open(root, place, O_RDONLY | O_DIRECTORY, 0), rc = 0;

        if (folder >= 0) {
                rc = prune_file(b, folder, place);
                close(folder);
        }
        return rc;
}

static int prune_adapter(struct rebuild_run *b, int root, const char *place)
{
        return each_folder(root, place, prune_channel, b);
}

/* ---- what is written ---- */

static int write_page(struct rebuild_run *b)
{
        size_t next;

        log_file_sort(b->events, b->count);
        for (size_t i = 0; i < b->count && b->rc == 0; i = next) {
                next = log_file_group(b->events, i, b->count);
                b->rc = log_file_append(&b->to, (const struct bus_event *const *)b->events + i,
                                        next - i, b->err);
        }
        for (size_t i = 0; i < b->count; i++)
                free(b->events[i]);
        b->count = 0;
        return b->rc;
}

static void on_event(void *arg, const struct bus_event *e)
{
        struct rebuild_run *b = arg;
        struct buf line;

        if (!e->adapter || !e->channel || strcmp(e->payload, "{}") == 0)
                return;
        buf_init(&line, 0);
        if (log_record_from_event(e, &line) == 1) {
                b->events[b->count++] = bus_event_dup(e);
                b->report->written++;
        }
        buf_release(&line);
}

static int write_all(struct store_tx *tx, struct rebuild_run *b)
{
        struct bus_filter filter = { .streams = LOG_FILE_STREAMS };
        int64_t scanned = 0;

        do {
                filter.after = scanned;
                if (bus_read(tx, &filter, PAGE, on_event, b, &scanned, b->err) < 0 ||
                    write_page(b) < 0)
                        return -1;
        } while (scanned > filter.after);
        return 0;
}

int log_rebuild(struct store_tx *tx, const char *dir, int64_t max_bytes, struct log_rebuild *out,
                struct error *err)
{
        struct rebuild_run *b = mem_zalloc(sizeof(*b));
        int root = channel_folder_open_root(dir), rc = -1;
        int64_t first;

        *out = (struct log_rebuild){ 0 };
        b->to = (struct log_target){ dir, max_bytes, 0 };
        b->report = out;
        b->err = err;
        if (root < 0)
                error_set(err, ERR_IO, "cannot open '%s/workspace': %s", dir, strerror(errno));
        else if (journal_row_bounds(tx, &first, &b->to.head, err) == 0 &&
                 complete_from(tx, &b->from, err) == 0 &&
                 each_folder(root, "channels", prune_adapter, b) == 0)
                rc = write_all(tx, b);
        if (root >= 0)
                close(root);
        free(b);
        return rc;
}
