#include "platform/attachment_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "road/channel_folder.h"

#define AT(field)      offsetof(struct attachment_limits, field)
#define SWEEP_FIRST_MS 5000
#define SWEEP_MS       3600000
#define PEBIBYTE       1125899906842624
#define DAY_MS         86400000.0
#define BLOCK          4096    /* a small file uses a block, so quotas also limit their number */
#define PART           ":part" /* of a file that is being written; no safe name has a colon */
#define FOLDER         "attachments"

/* clang-format off */
const struct setting attachment_settings[] = {
        { "totalBytes", SETTING_INT, "5368709120", 1048576, PEBIBYTE, .at = AT(total_bytes),
          .help = "Limit for all saved attachments together. Above it the least recently used "
                  "are deleted, except those that a turn needs now." },
        { "chatBytes", SETTING_INT, "1073741824", 1048576, PEBIBYTE, .at = AT(chat_bytes),
          .help = "The same limit for one chat." },
        { "keepDays", SETTING_NUMBER, "30", -1, 36500, .at = AT(keep_days),
          .help = "Delete saved attachments that were not used for this long; -1: never." },
        { "adapterBytesPerHour", SETTING_INT, "2147483648", 0, PEBIBYTE,
          .at = AT(adapter_hour_bytes),
          .help = "How much one adapter downloads per hour. Further attachments are marked as not "
                  "available for the agent." },
        { "senderBytesPerHour", SETTING_INT, "268435456", 0, PEBIBYTE, .at = AT(sender_hour_bytes),
          .help = "The same limit for one sender." },
        { "adapterQueue", SETTING_INT, "200", 1, 100000, .at = AT(adapter_queue),
          .help = "How many downloads of one adapter may wait or run. Above that the newest "
                  "download of the sender with the most is dropped." },
        { "senderQueue", SETTING_INT, "20", 1, 100000, .at = AT(sender_queue),
          .help = "How many downloads of one sender may wait or run." },
        SETTING_END,
};
/* clang-format on */

enum job_kind { JOB_FIND, JOB_SAVE, JOB_SWEEP };

struct attachment_job {
        struct attachment_files *files; /* NULL: freed */
        enum job_kind kind;
        char *dir, *path;
        char *bytes;
        size_t n;
        int64_t wanted; /* FIND: size; 0: any */
        struct attachment_limits limits;
        char **pinned; /* sorted */
        size_t pinned_count;
        int64_t total;           /* of all saved attachments; -1: not known */
        int64_t size;            /* result; -1: no file */
        unsigned gone;           /* result: deleted files */
        char why[200];           /* result */
        attachment_job_fn *done; /* NULL: dropped, or a sweep */
        void *arg;
        STAILQ_ENTRY(attachment_job) next;
};

struct attachment_files {
        struct loop *loop;
        char *dir;
        struct attachment_limits limits;
        struct map pins; /* path → how often */
        STAILQ_HEAD(, attachment_job) jobs;
        struct attachment_job *running;
        int64_t total;
        struct timer *sweep;
};

/* ---- on a worker thread ---- */

struct found {
        char *path;
        int64_t bytes, used_ms;
};

struct scan {
        struct found *items;
        size_t count, cap;
        int64_t bytes;
};

static void scan_release(struct scan *s)
{
        for (size_t i = 0; i < s->count; i++)
                free(s->items[i].path);
        free(s->items);
}

static int64_t blocks(int64_t bytes)
{
        return bytes < BLOCK ? BLOCK : bytes;
}

/* "<digits>-<name>" */
static bool is_ours(const char *name)
{
        size_t n = strspn(name, "0123456789");

        return n > 0 && name[n] == '-';
}

static DIR *open_dir(int at, const char *path)
{
        int fd = beneath_open(at, path, O_RDONLY | O_DIRECTORY, 0);
        DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

        if (fd >= 0 && !d)
                close(fd);
        return d;
}

static void scan_folder(struct scan *s, int workspace, const char *folder)
{
        DIR *d = open_dir(workspace, folder);
        const struct dirent *e;
        struct stat st;

        while (d && (e = readdir(d))) {
                if (!is_ours(e->d_name) ||
                    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    !S_ISREG(st.st_mode))
                        continue;
                if (s->count == s->cap) {
                        s->cap = s->cap ? s->cap * 2 : 64;
                        s->items = mem_realloc(s->items, s->cap * sizeof(*s->items));
                }
                s->items[s->count++] =
                        (struct found){ mem_printf("%s/%s", folder, e->d_name), blocks(st.st_size),
                                        (int64_t)st.st_mtim.tv_sec * 1000 +
                                                st.st_mtim.tv_nsec / 1000000 };
                s->bytes += blocks(st.st_size);
        }
        if (d)
                closedir(d);
}

static void scan_adapter(struct scan *s, int workspace, const char *adapter)
{
        char *path = mem_printf("channels/%s", adapter);
        DIR *d = open_dir(workspace, path);
        const struct dirent *e;

        while (d && (e = readdir(d))) {
                char *folder = mem_printf("%s/%s/" FOLDER, path, e->d_name);

                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                        scan_folder(s, workspace, folder);
                free(folder);
        }
        if (d)
                closedir(d);
        free(path);
}

static void scan_all(struct scan *s, int workspace)
{
        DIR *d = open_dir(workspace, "channels");
        const struct dirent *e;

        while (d && (e = readdir(d)))
                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                        scan_adapter(s, workspace, e->d_name);
        if (d)
                closedir(d);
}

static int by_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_use(const void *a, const void *b)
{
        const struct found *x = a, *y = b;

        return x->used_ms < y->used_ms ? -1 : x->used_ms > y->used_ms;
}

/* Deletes a file unless it is pinned, through its folder: a link there is not followed. */
static bool delete_found(struct attachment_job *j, int workspace, const struct found *f)
{
        const char *name = strrchr(f->path, '/') + 1;
        char *folder;
        int fd, rc = -1;

        if (bsearch(&f->path, j->pinned, j->pinned_count, sizeof(char *), by_text))
                return false;
        folder = mem_strndup(f->path, (size_t)(name - f->path - 1));
        fd = beneath_open(workspace, folder, O_RDONLY | O_DIRECTORY, 0);
        free(folder);
        if (fd >= 0) {
                rc = unlinkat(fd, name, 0);
                close(fd);
        }
        j->gone += rc == 0;
        return rc == 0;
}

/* Deletes the ones unused for longest until at most `limit` bytes are left, if it can. */
static void evict(struct attachment_job *j, struct scan *s, int workspace, int64_t limit)
{
        if (s->count > 0) /* else there is no list */
                qsort(s->items, s->count, sizeof(*s->items), by_use);
        for (size_t i = 0; i < s->count && s->bytes > limit; i++) {
                if (!delete_found(j, workspace, &s->items[i]))
                        continue;
                s->bytes -= s->items[i].bytes;
                if (j->total >= 0)
                        j->total -= s->items[i].bytes;
        }
}

static bool has_room_in_chat(struct attachment_job *j, int workspace)
{
        char *folder = mem_strndup(j->path, (size_t)(strrchr(j->path, '/') - j->path));
        int64_t limit = j->limits.chat_bytes - blocks((int64_t)j->n);
        struct scan s = { 0 };

        scan_folder(&s, workspace, folder);
        if (s.bytes > limit)
                evict(j, &s, workspace, limit);
        if (s.bytes > limit)
                snprintf(j->why, sizeof(j->why),
                         "the attachments of this chat that are in use leave no room for it "
                         "(attachments.chatBytes)");
        free(folder);
        scan_release(&s);
        return !j->why[0];
}

/* Scans all folders only when the total is not known or used up; then makes more room at once. */
static bool has_room(struct attachment_job *j, int workspace)
{
        int64_t limit = j->limits.total_bytes - blocks((int64_t)j->n);
        struct scan s = { 0 };

        if (j->total >= 0 && j->total <= limit)
                return true;
        scan_all(&s, workspace);
        j->total = s.bytes;
        if (s.bytes > limit)
                evict(j, &s, workspace, limit - j->limits.total_bytes / 10);
        if (s.bytes > limit)
                snprintf(j->why, sizeof(j->why),
                         "the attachments in use leave no room for it (attachments.totalBytes)");
        scan_release(&s);
        return !j->why[0];
}

static int write_file(int folder, const char *name, const char *bytes, size_t n)
{
        int fd;

        unlinkat(folder, name, 0); /* of an attempt that was interrupted */
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -1;
        channel_folder_give(fd); /* else the agent cannot read it, and says so */
        if (file_write(fd, bytes, n) < 0) {
                close(fd);
                return -1;
        }
        return close(fd);
}

/* Writes under another name first: only whole files appear under their own. */
static void save(struct attachment_job *j, int workspace)
{
        const char *name = "";
        int folder;
        char *part;

        if (!has_room_in_chat(j, workspace) || !has_room(j, workspace))
                return;
        folder = beneath_make_folder(workspace, j->path, &name);
        if (folder >= 0)
                channel_folder_give(folder);
        part = mem_printf("%s" PART, name);
        if (folder < 0 || write_file(folder, part, j->bytes, j->n) < 0 ||
            renameat(folder, part, folder, name) < 0) {
                snprintf(j->why, sizeof(j->why), "it could not be saved: %s", strerror(errno));
                if (folder >= 0)
                        unlinkat(folder, part, 0);
        } else {
                j->size = (int64_t)j->n;
                j->total += blocks((int64_t)j->n);
        }
        if (folder >= 0)
                close(folder);
        free(part);
}

static void find(struct attachment_job *j, int workspace)
{
        int64_t size;
        int fd = beneath_open_file(workspace, "", j->path, INT64_MAX, &size, NULL);

        if (fd < 0)
                return;
        if (j->wanted == 0 || j->wanted == size) {
                j->size = size;
                futimens(fd, NULL);
        }
        close(fd);
}

/* No save runs during a sweep, so a part is of a save that was interrupted. */
static bool is_part(const char *path)
{
        size_t n = strlen(path);

        return n > strlen(PART) && strcmp(path + n - strlen(PART), PART) == 0;
}

static void sweep(struct attachment_job *j, int workspace)
{
        int64_t now_ms = clock_wall_ms(),
                kept_ms = j->limits.keep_days < 0 ? INT64_MAX
                                                  : (int64_t)(j->limits.keep_days * DAY_MS);
        struct scan s = { 0 };
        size_t kept = 0;

        scan_all(&s, workspace);
        j->total = s.bytes;
        for (size_t i = 0; i < s.count; i++) {
                struct found f = s.items[i];
                int64_t age_ms = now_ms - f.used_ms;

                if ((age_ms > kept_ms || is_part(f.path)) && delete_found(j, workspace, &f)) {
                        s.bytes -= f.bytes;
                        j->total -= f.bytes;
                        free(f.path);
                } else {
                        s.items[kept++] = f;
                }
        }
        s.count = kept;
        evict(j, &s, workspace, j->limits.total_bytes);
        scan_release(&s);
}

static void work(void *arg)
{
        struct attachment_job *j = arg;
        int workspace = channel_folder_open_root(j->dir);

        if (workspace < 0) {
                snprintf(j->why, sizeof(j->why), "the workspace cannot be opened: %s",
                         strerror(errno));
                return;
        }
        if (j->kind == JOB_FIND)
                find(j, workspace);
        else if (j->kind == JOB_SAVE)
                save(j, workspace);
        else
                sweep(j, workspace);
        close(workspace);
}

/* ---- on the loop ---- */

static void job_free(struct attachment_job *j)
{
        for (size_t i = 0; i < j->pinned_count; i++)
                free(j->pinned[i]);
        free(j->pinned);
        free(j->dir);
        free(j->path);
        free(j->bytes);
        free(j);
}

static void start_next(struct attachment_files *fs);

static void on_worked(void *arg)
{
        struct attachment_job *j = arg;
        struct attachment_files *fs = j->files;

        if (fs) {
                fs->running = NULL;
                if (j->kind != JOB_FIND)
                        fs->total = j->total;
                if (j->gone > 0)
                        log_info("old attachments deleted", LOG_I("count", j->gone),
                                 LOG_I("bytesLeft", fs->total));
                start_next(fs);
                if (j->done)
                        j->done(j->arg, j->size, j->why[0] ? j->why : NULL);
        }
        job_free(j);
}

/* Pins as of now: a file that is pinned later is looked for by a later job. */
static void copy_pins(struct attachment_job *j)
{
        const char *path;

        j->pinned = mem_array(j->files->pins.count, sizeof(char *));
        for (size_t i = 0; map_each(&j->files->pins, &i, &path, NULL);)
                j->pinned[j->pinned_count++] = mem_strdup(path);
        if (j->pinned_count > 0)
                qsort(j->pinned, j->pinned_count, sizeof(char *), by_text);
}

static void start_next(struct attachment_files *fs)
{
        struct attachment_job *j;

        while (!fs->running && (j = STAILQ_FIRST(&fs->jobs))) {
                STAILQ_REMOVE_HEAD(&fs->jobs, next);
                if (!j->done && j->kind != JOB_SWEEP) { /* dropped */
                        job_free(j);
                        continue;
                }
                fs->running = j;
                j->limits = fs->limits;
                j->total = fs->total;
                if (j->kind != JOB_FIND)
                        copy_pins(j);
                loop_work(fs->loop, work, on_worked, j);
        }
}

static struct attachment_job *job_new(struct attachment_files *fs, enum job_kind kind,
                                      const char *path, attachment_job_fn *done, void *arg)
{
        struct attachment_job *j = mem_zalloc(sizeof(*j));

        j->files = fs;
        j->kind = kind;
        j->dir = mem_strdup(fs->dir); /* the worker thread may outlive us */
        j->path = mem_strdup(path);
        j->size = -1;
        j->done = done;
        j->arg = arg;
        STAILQ_INSERT_TAIL(&fs->jobs, j, next);
        return j;
}

struct attachment_job *attachment_files_find(struct attachment_files *fs, const char *path,
                                             int64_t size, attachment_job_fn *done, void *arg)
{
        struct attachment_job *j = job_new(fs, JOB_FIND, path, done, arg);

        j->wanted = size;
        start_next(fs);
        return j;
}

struct attachment_job *attachment_files_save(struct attachment_files *fs, const char *path,
                                             char *bytes, size_t n, attachment_job_fn *done,
                                             void *arg)
{
        struct attachment_job *j = job_new(fs, JOB_SAVE, path, done, arg);

        j->bytes = bytes;
        j->n = n;
        start_next(fs);
        return j;
}

void attachment_files_sweep(struct attachment_files *fs, attachment_job_fn *done, void *arg)
{
        job_new(fs, JOB_SWEEP, NULL, done, arg);
        start_next(fs);
}

void attachment_files_drop(struct attachment_job *j)
{
        if (j)
                j->done = NULL;
}

static void on_sweep(void *arg)
{
        struct attachment_files *fs = arg;

        attachment_files_sweep(fs, NULL, NULL);
        timer_start(fs->sweep, SWEEP_MS);
}

void attachment_files_pin(struct attachment_files *fs, const char *path)
{
        uintptr_t n = (uintptr_t)map_get(&fs->pins, path);

        map_put(&fs->pins, path, (void *)(n + 1));
}

void attachment_files_unpin(struct attachment_files *fs, const char *path)
{
        uintptr_t n = (uintptr_t)map_get(&fs->pins, path);

        if (n > 1)
                map_put(&fs->pins, path, (void *)(n - 1));
        else
                map_remove(&fs->pins, path);
}

void attachment_files_set_limits(struct attachment_files *fs, const struct attachment_limits *l)
{
        fs->limits = *l;
}

const struct attachment_limits *attachment_files_limits(const struct attachment_files *fs)
{
        return &fs->limits;
}

struct attachment_files *attachment_files_new(struct loop *l, const char *dir)
{
        static const struct setting *const tables[] = { attachment_settings, NULL };
        struct settings_source *defaults = settings_source_new(NULL, NULL, "{}", 2, NULL);
        struct attachment_files *fs = mem_zalloc(sizeof(*fs));

        settings_read(defaults, "", settings_source_root(defaults), tables, NULL, &fs->limits,
                      NULL);
        settings_source_free(defaults);
        fs->loop = l;
        fs->dir = mem_strdup(dir);
        fs->total = -1;
        map_init(&fs->pins);
        STAILQ_INIT(&fs->jobs);
        fs->sweep = timer_new(l, on_sweep, fs);
        timer_start(fs->sweep, SWEEP_FIRST_MS);
        timer_unref(fs->sweep);
        return fs;
}

void attachment_files_free(struct attachment_files *fs)
{
        struct attachment_job *j;

        if (!fs)
                return;
        while ((j = STAILQ_FIRST(&fs->jobs))) {
                STAILQ_REMOVE_HEAD(&fs->jobs, next);
                job_free(j);
        }
        if (fs->running)
                fs->running->files = NULL;
        timer_free(fs->sweep);
        map_release(&fs->pins);
        free(fs->dir);
        free(fs);
}
