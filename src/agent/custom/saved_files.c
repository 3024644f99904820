#include "agent/custom/saved_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/mem.h"

#define PREFIX      "tool-"
#define SCANNED_MAX 1000 /* names of ours in the folder */

struct saved_file {
        char *path, *inside; /* below the channel's folder, and for the agent */
        char *bytes;
        size_t n;
        json_t *block;
        int failure; /* errno */
};

struct saved_files {
        int channel;
        char *folder; /* inside */
        struct saved_file *items;
        size_t count;
        loop_fn *done;
        void *arg;
};

struct saved_files *saved_files_new(const struct workspace_view *v)
{
        struct saved_files *f = mem_zalloc(sizeof(*f));

        f->channel = fcntl(v->channel_fd, F_DUPFD_CLOEXEC, 3);
        f->folder = mem_strdup(v->folder);
        return f;
}

void saved_files_free(struct saved_files *f)
{
        if (!f)
                return;
        for (size_t i = 0; i < f->count; i++) {
                free(f->items[i].path);
                free(f->items[i].inside);
                free(f->items[i].bytes);
                json_decref(f->items[i].block);
        }
        free(f->items);
        free(f->folder);
        if (f->channel >= 0)
                close(f->channel);
        free(f);
}

static const char *extension(const char *type)
{
        static const char *const known[][2] = {
                { "audio/wav", "wav" },       { "audio/mpeg", "mp3" },
                { "audio/ogg", "ogg" },       { "image/png", "png" },
                { "image/jpeg", "jpg" },      { "image/gif", "gif" },
                { "image/webp", "webp" },     { "image/svg+xml", "svg" },
                { "application/pdf", "pdf" }, { "application/json", "json" },
                { "application/zip", "zip" }, { "text/html", "html" },
                { "text/csv", "csv" },        { "text/markdown", "md" },
                { "application/gzip", "gz" }, { "text/plain", "txt" },
        };

        for (size_t i = 0; i < COUNT(known); i++)
                if (strcmp(known[i][0], type) == 0)
                        return known[i][1];
        return "bin";
}

const char *saved_files_add(struct saved_files *f, const char *type, char *bytes, size_t n)
{
        char hash[SHA256_HEX_SIZE];
        struct saved_file *s;

        f->items = mem_realloc(f->items, (f->count + 1) * sizeof(*f->items));
        s = &f->items[f->count++];
        *s = (struct saved_file){ .bytes = bytes, .n = n };
        crypto_sha256_hex(bytes, n, hash);
        /* sorted by name is sorted by time */
        s->path = mem_printf("scratch/" PREFIX "%013lld-%.8s.%s", (long long)clock_wall_ms(), hash,
                             extension(type));
        s->inside = mem_printf("%s/%s", f->folder, s->path);
        return s->inside;
}

void saved_files_named_by(struct saved_files *f, json_t *block)
{
        f->items[f->count - 1].block = json_incref(block);
}

size_t saved_files_count(const struct saved_files *f)
{
        return f ? f->count : 0;
}

/* ---- on a pool thread ---- */

static int write_file(int folder, const char *name, const char *bytes, size_t n)
{
        int fd, rc = 0;

        /* what a program in the sandbox has put there under this name is not written to */
        unlinkat(folder, name, 0);
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return errno;
        while (n > 0 && rc == 0) {
                ssize_t done = write(fd, bytes, n);

                if (done < 0 && errno != EINTR)
                        rc = errno;
                if (done > 0) {
                        bytes += done;
                        n -= (size_t)done;
                }
        }
        if (rc == 0 && workspace_give(fd, NULL) < 0)
                rc = EPERM;
        close(fd);
        return rc;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void remove_oldest(int folder)
{
        char **names = mem_array(SCANNED_MAX, sizeof(*names));
        DIR *d = fdopendir(fcntl(folder, F_DUPFD_CLOEXEC, 3));
        const struct dirent *e;
        size_t n = 0;

        while (d && n < SCANNED_MAX && (e = readdir(d)))
                if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0)
                        names[n++] = mem_strdup(e->d_name);
        if (d)
                closedir(d);
        qsort(names, n, sizeof(*names), by_name);
        for (size_t i = 0; i < n; i++) {
                if (i + SAVED_FILES_KEPT < n)
                        unlinkat(folder, names[i], 0);
                free(names[i]);
        }
        free(names);
}

static void write_work(void *arg)
{
        struct saved_files *f = arg;

        for (size_t i = 0; i < f->count; i++) {
                struct saved_file *s = &f->items[i];
                const char *name;
                int folder = f->channel < 0 ? -1 : beneath_make_folder(f->channel, s->path, &name);

                if (folder < 0) {
                        s->failure = errno;
                        continue;
                }
                s->failure = write_file(folder, name, s->bytes, s->n);
                if (i + 1 == f->count)
                        remove_oldest(folder);
                close(folder);
        }
}

static void write_done(void *arg)
{
        struct saved_files *f = arg;

        for (size_t i = 0; i < f->count; i++) {
                char *text;

                if (!f->items[i].failure || !f->items[i].block)
                        continue;
                text = mem_printf("[A part of the result, %zu bytes, could not be saved: %s]",
                                  f->items[i].n, strerror(f->items[i].failure));
                json_object_set_new(f->items[i].block, "text", json_string(text));
                free(text);
        }
        f->done(f->arg);
        saved_files_free(f);
}

void saved_files_write(struct saved_files *f, struct loop *l, loop_fn *done, void *arg)
{
        f->done = done;
        f->arg = arg;
        loop_work(l, write_work, write_done, f);
}
