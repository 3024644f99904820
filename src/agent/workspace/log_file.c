#include "agent/workspace/log_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/workspace/log_record.h"
#include "agent/workspace/workspace.h"
#include "base/log.h"
#include "base/mem.h"
#include "road/channel_folder.h"

#define OLD_NAME "log.1.jsonl"
#define RETRY_MS 5000

/* ---- one file ---- */

/* The last event that the log has; in the older file when this one is new. */
static int64_t last_event(int folder, const struct projection *p)
{
        struct projection old;
        struct error err;
        int64_t seq = log_record_event(p->last.data, p->last.len);

        if (p->size > 0 || faccessat(folder, OLD_NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
            projection_open(&old, folder, OLD_NAME, &err) < 0)
                return seq;
        seq = log_record_event(old.last.data, old.last.len);
        projection_close(&old);
        return seq;
}

static int append(const struct log_target *to, int folder, const struct bus_event *const *events,
                  size_t count, struct error *err)
{
        struct projection p;
        struct buf lines;
        int64_t last;
        int rc = 0;

        if (projection_open(&p, folder, LOG_FILE_NAME, err) < 0)
                return -1;
        last = last_event(folder, &p);
        if (last > to->head)
                last = 0; /* an agent on the host could write it */
        buf_init(&lines, 0);
        for (size_t i = 0; i < count; i++)
                if (events[i]->seq > last)
                        log_record_from_event(events[i], &lines);
        if (lines.len > 0)
                rc = projection_append(&p, lines.data, lines.len, err);
        if (rc == 0 && p.size > to->max_bytes)
                rc = projection_rotate(folder, LOG_FILE_NAME, err);
        buf_release(&lines);
        projection_close(&p);
        return rc;
}

static int open_folder(const char *dir, const char *adapter, const char *channel, struct error *err)
{
        int root = channel_folder_open_root(dir), fd = -1;
        char *folder;

        if (root < 0)
                return error_set(err, ERR_IO, "cannot open '%s/workspace'", dir);
        folder = channel_folder(adapter, channel);
        fd = workspace_open_channel(root, folder, err);
        free(folder);
        close(root);
        return fd;
}

int log_file_append(const struct log_target *to, const struct bus_event *const *events,
                    size_t count, struct error *err)
{
        int folder = open_folder(to->dir, events[0]->adapter, events[0]->channel, err), rc;

        if (folder < 0)
                return -1;
        rc = append(to, folder, events, count, err);
        close(folder);
        return rc;
}

static int by_channel(const void *a, const void *b)
{
        const struct bus_event *x = *(struct bus_event *const *)a,
                               *y = *(struct bus_event *const *)b;
        int rc = strcmp(x->adapter, y->adapter);

        if (rc == 0)
                rc = strcmp(x->channel, y->channel);
        return rc ? rc : x->seq < y->seq ? -1 : x->seq > y->seq;
}

void log_file_sort(struct bus_event **events, size_t count)
{
        if (count > 0)
                qsort(events, count, sizeof(*events), by_channel);
}

size_t log_file_group(struct bus_event *const *events, size_t i, size_t count)
{
        size_t next = i + 1;

        while (next < count && strcmp(events[i]->adapter, events[next]->adapter) == 0 &&
               strcmp(events[i]->channel, events[next]->channel) == 0)
                next++;
        return next;
}

/* ---- the consumer ---- */

struct log_job {
        struct log_files *files; /* NULL: freed */
        char *dir;
        struct log_target to;
        struct bus_event **events; /* copies, sorted by channel */
        size_t count;
        bool again; /* result: try it later */
        struct error err;
};

struct log_files {
        struct loop *loop;
        struct bus *bus;
        char *dir;
        int64_t max_bytes;
        struct bus_consumer *consumer;
        struct log_job *job;
        struct timer *retry;
};

static void job_free(struct log_job *j)
{
        for (size_t i = 0; i < j->count; i++)
                free(j->events[i]);
        free(j->events);
        free(j->dir);
        free(j);
}

/* A channel whose file cannot be written for good must not stop the others. */
static void work(void *arg)
{
        struct log_job *j = arg;
        size_t next;

        j->again = false;
        for (size_t i = 0; i < j->count; i = next) {
                struct error err;

                next = log_file_group(j->events, i, j->count);
                if (log_file_append(&j->to, (const struct bus_event *const *)j->events + i,
                                    next - i, &err) == 0)
                        continue;
                j->err = err;
                if (projection_can_retry(&err)) {
                        j->again = true;
                        return;
                }
        }
}

static void on_worked(void *arg)
{
        struct log_job *j = arg;
        struct log_files *fs = j->files;

        if (!fs) {
                job_free(j);
                return;
        }
        if (j->err.kind != ERR_NONE)
                log_warn(j->again ? "cannot write message logs; retrying"
                                  : "cannot write a message log; see `dragoman workspace rebuild`",
                         LOG_S("error", j->err.text));
        error_clear(&j->err);
        if (j->again) {
                timer_start(fs->retry, RETRY_MS);
                return;
        }
        fs->job = NULL;
        job_free(j);
        bus_consumer_ack(fs->consumer);
}

static void on_retry(void *arg)
{
        struct log_files *fs = arg;

        loop_work(fs->loop, work, on_worked, fs->job);
}

/* Events with only their key left have nothing to show. */
static void on_events(void *arg, const struct bus_event *const *events, unsigned count)
{
        struct log_files *fs = arg;
        struct log_job *j = mem_zalloc(sizeof(*j));

        j->files = fs;
        j->dir = mem_strdup(fs->dir);
        j->to = (struct log_target){ j->dir, fs->max_bytes, bus_head(fs->bus) };
        j->events = mem_array(count, sizeof(struct bus_event *));
        for (unsigned i = 0; i < count; i++)
                if (events[i]->adapter && events[i]->channel && strcmp(events[i]->payload, "{}"))
                        j->events[j->count++] = bus_event_dup(events[i]);
        if (j->count == 0) {
                job_free(j);
                bus_consumer_ack(fs->consumer);
                return;
        }
        log_file_sort(j->events, j->count);
        fs->job = j;
        loop_work(fs->loop, work, on_worked, j);
}

struct log_files *log_files_new(struct loop *l, struct bus *b, const char *dir, int64_t max_bytes)
{
        struct log_files *fs = mem_zalloc(sizeof(*fs));

        fs->loop = l;
        fs->bus = b;
        fs->dir = mem_strdup(dir);
        fs->max_bytes = max_bytes;
        fs->retry = timer_new(l, on_retry, fs);
        fs->consumer = bus_consume(b, LOG_FILE_CONSUMER, LOG_FILE_STREAMS, 0, on_events, fs);
        return fs;
}

void log_files_free(struct log_files *fs)
{
        if (!fs)
                return;
        bus_consumer_stop(fs->consumer);
        if (fs->job && timer_active(fs->retry))
                job_free(fs->job);
        else if (fs->job)
                fs->job->files = NULL;
        timer_free(fs->retry);
        free(fs->dir);
        free(fs);
}
