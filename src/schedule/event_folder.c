#include "schedule/event_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/mem.h"
#include "road/channel_folder.h"

#define NAMES_TAKEN_MOST 1000

static int64_t ms_of(const struct timespec *t)
{
        return (int64_t)t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

/* ---- reading ---- */

static void entry_release(struct event_entry *e)
{
        event_file_release(&e->file);
        buf_release(&e->problem);
        free(e->name);
}

void event_listing_release(struct event_listing *l)
{
        for (size_t i = 0; i < l->count; i++)
                entry_release(&l->items[i]);
        free(l->items);
        *l = (struct event_listing){ 0 };
}

static int by_name(const void *a, const void *b)
{
        return strcmp(((const struct event_entry *)a)->name, ((const struct event_entry *)b)->name);
}

bool event_listing_has(const struct event_listing *l, const char *name)
{
        struct event_entry key = { .name = (char *)(uintptr_t)name };

        return l->count > 0 && bsearch(&key, l->items, l->count, sizeof(key), by_name) != NULL;
}

/* The same file again has the same mark; one written later, even with the same bytes, has not. */
static void set_mark(struct event_entry *e, const struct buf *text, const struct stat *st)
{
        char hex[SHA256_HEX_SIZE];
        struct buf all;

        buf_init(&all, 0);
        buf_addf(&all, "%lld.%09ld\n", (long long)st->st_mtim.tv_sec, (long)st->st_mtim.tv_nsec);
        buf_add(&all, text->data, text->len);
        crypto_sha256_hex(all.data, all.len, hex);
        snprintf(e->mark, sizeof(e->mark), "%.16s", hex);
        buf_release(&all);
}

/* -1: it is gone. */
static int read_entry(int folder, const struct event_folder *f, int64_t now_ms,
                      struct event_entry *e)
{
        char *path = mem_printf("%s/%s", f->path, e->name);
        struct error err = { 0 };
        struct stat st = { 0 };
        struct buf text;
        int64_t size, age_ms;
        int fd = beneath_open_file(folder, f->path, e->name, EVENT_FILE_MAX, &size, &err), rc = -1;

        buf_init(&text, 0);
        buf_init(&e->problem, 0);
        if (fd >= 0 && fstat(fd, &st) == 0 &&
            file_read_fd(fd, path, EVENT_FILE_MAX, &text, &err) == 0)
                rc = event_file_parse(path, text.data, text.len, &e->file, &e->problem, &err);
        else if (fd < 0)
                fstatat(folder, e->name, &st, AT_SYMLINK_NOFOLLOW);
        set_mark(e, &text, &st);
        if (rc < 0 && e->problem.len == 0)
                buf_addf(&e->problem, "%s\n", err.text);
        age_ms = now_ms - ms_of(&st.st_mtim);
        e->state = rc == 0 ? EVENT_ENTRY_READ
                   /* a time in the future says nothing */
                   : age_ms >= -EVENT_FOLDER_SETTLE && age_ms < EVENT_FOLDER_SETTLE
                           ? EVENT_ENTRY_SETTLING
                           : EVENT_ENTRY_BROKEN;
        if (fd >= 0)
                close(fd);
        buf_release(&text);
        free(path);
        return rc < 0 && err.kind == ERR_MISSING ? -1 : 0;
}

static void add_entry(struct event_listing *l, int folder, const struct event_folder *f,
                      const char *name, int64_t now_ms)
{
        struct event_entry e = { .name = mem_strdup(name) };

        if (read_entry(folder, f, now_ms, &e) < 0) {
                entry_release(&e);
                return;
        }
        l->items = mem_realloc(l->items, (l->count + 1) * sizeof(e));
        l->items[l->count++] = e;
        l->settling = l->settling || e.state == EVENT_ENTRY_SETTLING;
}

/* Opens the folder for reading; -1 with errno. */
static int open_folder(const struct event_folder *f, const char *below)
{
        char *path = below ? mem_printf("%s/%s", f->path, below) : mem_strdup(f->path);
        int fd = beneath_open(f->root, path, O_RDONLY | O_DIRECTORY, 0), why = errno;

        free(path);
        errno = why;
        return fd;
}

int event_folder_read(const struct event_folder *f, const char *only, int64_t now_ms,
                      struct event_listing *out, struct error *err)
{
        int folder = open_folder(f, NULL);
        struct dirent *entry;
        DIR *dir;

        *out = (struct event_listing){ 0 };
        if (folder < 0 && errno == ENOENT)
                return 0;
        if (folder < 0)
                return error_set(err, ERR_IO, "cannot open the folder '%s' of the workspace: %s",
                                 f->path, strerror(errno));
        if (only) {
                if (event_file_is_name(only))
                        add_entry(out, folder, f, only, now_ms);
                close(folder);
                return 0;
        }
        dir = fdopendir(folder);
        while (dir && !out->more && (entry = readdir(dir))) {
                if (!event_file_is_name(entry->d_name))
                        continue;
                out->more = out->count == EVENT_FOLDER_MOST;
                if (!out->more)
                        add_entry(out, folder, f, entry->d_name, now_ms);
        }
        if (dir)
                closedir(dir);
        if (out->count > 0)
                qsort(out->items, out->count, sizeof(*out->items), by_name);
        return 0;
}

/* ---- moving ---- */

/* Makes and opens a folder inside; -1 with errno. */
static int open_inside(const struct event_folder *f, int folder, const char *name)
{
        bool made = mkdirat(folder, name, f->is_agents ? 0700 : 0755) == 0;
        int fd = beneath_open(folder, name, O_RDONLY | O_DIRECTORY, 0);

        if (fd >= 0 && made && f->is_agents)
                channel_folder_give(fd);
        return fd;
}

/* Never replaces a file. *taken is the name it has there, yours to free. */
static int rename_free(int from, const char *name, int to, char **taken)
{
        int rc = -1;

        *taken = NULL;
        for (unsigned i = 1; i <= NAMES_TAKEN_MOST; i++) {
                free(*taken);
                *taken = i == 1 ? mem_strdup(name)
                                : mem_printf("%.*s-%u.json", (int)(strlen(name) - 5), name, i);
                rc = renameat2(from, name, to, *taken, RENAME_NOREPLACE);
                if (rc == 0 || errno != EEXIST)
                        break;
        }
        return rc;
}

static int write_note(const struct event_folder *f, int folder, const char *name, const char *note)
{
        char *path = mem_printf("%s.txt", name);
        int fd, rc = -1;

        unlinkat(folder, path, 0); /* of an earlier file of this name, which somebody removed */
        fd = beneath_open(folder, path, O_WRONLY | O_CREAT | O_EXCL, f->is_agents ? 0600 : 0644);
        if (fd >= 0) {
                rc = file_write(fd, note, strlen(note));
                if (f->is_agents)
                        channel_folder_give(fd);
                close(fd);
        }
        free(path);
        return rc;
}

int event_folder_move(const struct event_folder *f, const char *name, const char *to,
                      const char *note, struct error *err)
{
        int from = open_folder(f, NULL), inside = -1, rc = -1;
        char *taken = NULL;

        if (from >= 0)
                inside = open_inside(f, from, to);
        if (inside >= 0)
                rc = rename_free(from, name, inside, &taken);
        /* the confined daemon makes no links, not even by a move: one stays, with a note */
        if (note && (rc == 0 || (inside >= 0 && errno == EACCES)))
                rc = write_note(f, inside, taken, note);
        if (rc < 0 && (errno != ENOENT || inside < 0))
                error_set(err, ERR_IO, "cannot move '%s/%s' to '%s': %s", f->path, name, to,
                          strerror(errno));
        else
                rc = rc == 0;
        if (inside >= 0)
                close(inside);
        if (from >= 0)
                close(from);
        free(taken);
        return rc;
}

/* ---- pruning ---- */

struct old_file {
        char *name;
        int64_t changed_ms;
};

static int newest_first(const void *a, const void *b)
{
        const struct old_file *x = a, *y = b;

        return x->changed_ms > y->changed_ms ? -1 : x->changed_ms < y->changed_ms;
}

size_t event_folder_prune(const struct event_folder *f, int64_t before_ms, size_t most)
{
        int folder = open_folder(f, "done");
        DIR *dir = folder < 0 ? NULL : fdopendir(folder);
        struct old_file *files = NULL;
        size_t count = 0, removed = 0;
        struct dirent *entry;
        struct stat st;

        while (dir && (entry = readdir(dir))) {
                if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    S_ISDIR(st.st_mode))
                        continue;
                files = mem_realloc(files, (count + 1) * sizeof(*files));
                /* ctime: when it was moved here */
                files[count++] = (struct old_file){ mem_strdup(entry->d_name), ms_of(&st.st_ctim) };
        }
        if (count > 0)
                qsort(files, count, sizeof(*files), newest_first);
        for (size_t i = 0; i < count; i++) {
                if ((i >= most || files[i].changed_ms < before_ms) &&
                    unlinkat(folder, files[i].name, 0) == 0)
                        removed++;
                free(files[i].name);
        }
        free(files);
        if (dir)
                closedir(dir);
        else if (folder >= 0)
                close(folder);
        return removed;
}

/* ---- finding ---- */

static bool has_files(int root, const char *path)
{
        int folder = beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0);
        DIR *dir = folder < 0 ? NULL : fdopendir(folder);
        struct dirent *entry;
        bool found = false;

        while (dir && !found && (entry = readdir(dir)))
                found = event_file_is_name(entry->d_name);
        if (dir)
                closedir(dir);
        return found;
}

static void find_in(int root, const char *adapter,
                    void (*each)(void *arg, const char *adapter, const char *channel), void *arg)
{
        char *path = mem_printf("channels/%s", adapter);
        int folder = beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0);
        DIR *dir = folder < 0 ? NULL : fdopendir(folder);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                char *events = mem_printf("%s/%s/events", path, entry->d_name);

                if (entry->d_name[0] != '.' && has_files(root, events))
                        each(arg, adapter, entry->d_name);
                free(events);
        }
        if (dir)
                closedir(dir);
        free(path);
}

void event_folder_find(int root, void (*each)(void *arg, const char *adapter, const char *channel),
                       void *arg)
{
        int folder = beneath_open(root, "channels", O_RDONLY | O_DIRECTORY, 0);
        DIR *dir = folder < 0 ? NULL : fdopendir(folder);
        struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        find_in(root, entry->d_name, each, arg);
        if (dir)
                closedir(dir);
}
